"""Some of the rows in parts, brought to memory: above all those that leave-one-out judges."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy

from .._inputs.judged import Judged, judged_places, stands_for
from .._inputs.rows import Rows
from .._inputs.strata import codes_of
from .._inputs.targets import joined_targets
from .._inputs.weights import RowWeights
from .._seam.arrays import Array, array_namespace, from_numpy, take_rows
from .rows import PartedRows


def deal(indices: numpy.ndarray, sizes: Mapping[int, int]) -> dict[int, numpy.ndarray]:
    """Return, by part, which of its rows the indices among all rows name; the sizes are in order."""
    ends = numpy.cumsum(list(sizes.values()))
    parts = numpy.searchsorted(ends, indices, side="right")
    order = numpy.argsort(parts, kind="stable")
    each = numpy.split(indices[order], numpy.searchsorted(parts[order], numpy.arange(1, len(ends))))
    return {number: some - (end - sizes[number]) for number, end, some in zip(sizes, ends, each, strict=True)}


def joined_rows(parts: list[Rows]) -> Rows:
    """Return the rows of all parts, one after another."""
    X = array_namespace(parts[0].X).concat([part.X for part in parts])
    targets = joined_targets([part.targets for part in parts])
    return Rows(X, parts[0].classes, targets, RowWeights.joined([part.weights for part in parts]))


def some_of(rows: Rows, which: Array) -> Rows:
    """Return the rows with these indices."""
    X, targets = take_rows(rows.X, which), rows.targets.some(which)
    return Rows(X, rows.classes, targets, rows.weights.some(which))


@dataclass(frozen=True, slots=True, eq=False)
class TakeByPart:
    """Take the named rows of each part."""

    places: dict[int, numpy.ndarray]  # by part: sorted indices among its rows that have a weight

    def __call__(self, rows: Rows, number: int) -> list[Rows]:
        """Return the rows that are taken of one part."""
        xp = array_namespace(rows.X)
        return [some_of(rows, from_numpy(self.places[number], rows.X, xp.int64))]


@dataclass(frozen=True, slots=True, eq=False)
class TakeByClass:
    """Take rows by their places among the rows of their class; values are one class."""

    places: dict[int, list[numpy.ndarray]]  # by part and class: indices among the part's rows of the class

    def __call__(self, rows: Rows, number: int) -> list[Rows]:
        """Return the rows that are taken of one part, in their order."""
        codes = codes_of(rows.targets)
        chosen = [numpy.flatnonzero(codes == c)[at] for c, at in enumerate(self.places[number]) if len(at)]
        which = numpy.sort(numpy.concatenate([numpy.empty(0, dtype=int), *chosen]))
        return [some_of(rows, from_numpy(which, rows.X, array_namespace(rows.X).int64))]


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """The rows that leave-one-out judges, in memory, and how many each stands for."""

    rows: Rows
    judged: Judged | None  # all of these rows, with what they stand for; None if they are all there are

    @property
    def stand_for(self) -> Array | None:
        """How many rows each row stands for; None for itself."""
        return None if self.judged is None else self.judged.stand_for


def judged_sample(parted: PartedRows) -> Sample:
    """Bring the judged rows to memory: those that a fit in memory would judge."""
    sizes = numpy.sum(list(parted.sizes.values()), axis=0)  # (k,)
    places = judged_places(sizes, parted.classes is not None)
    asked = [numpy.arange(size) for size in sizes] if places is None else places
    rows = joined_rows(parted.gather(TakeByClass(_by_part(asked, parted))))
    if places is None:
        return Sample(rows, None)
    like, xp = parted.reader.like, array_namespace(parted.reader.like)
    stand_for = stands_for(sizes, places)[codes_of(rows.targets)]
    indices = from_numpy(numpy.arange(rows.X.shape[0]), like, xp.int64)
    return Sample(rows, Judged(indices, from_numpy(stand_for, like), parted.class_weights))


def _by_part(places: list[numpy.ndarray], parted: PartedRows) -> dict[int, list[numpy.ndarray]]:
    """Return, by part and class, the places among the part's rows of the class, from those among all."""
    numbers = sorted(parted.sizes)
    dealt = [
        deal(of_class, {number: int(parted.sizes[number][c]) for number in numbers})
        for c, of_class in enumerate(places)
    ]
    return {number: [of_class[number] for of_class in dealt] for number in numbers}
