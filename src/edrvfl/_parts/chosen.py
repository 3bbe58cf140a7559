"""Rows in parts of which some are chosen: those that leave-one-out judges, and those that are held back.

Others choose rows too, by targets, weights and a hash of each row: `ledger` holds these, and no columns.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy

from .._inputs.chosen import HeldBack, Judged, codes_of, hold_back, judged_places, stands_for
from .._inputs.rows import Rows, row_hashes, to_host
from .._inputs.targets import Classes, Targets
from .._seam.arrays import Array, array_namespace, device, from_numpy
from .rows import PartedRows, deal
from .watched import WatchedParts


def _take_by_class(places: dict[int, list[numpy.ndarray]], rows: Rows, number: int) -> list[Rows]:
    """Take rows of a part, by part and class: indices among its rows of the class. Values are one class."""
    codes = codes_of(rows.targets)
    chosen = [numpy.flatnonzero(codes == c)[at] for c, at in enumerate(places[number]) if len(at)]
    which = numpy.sort(numpy.concatenate([numpy.empty(0, dtype=int), *chosen]))
    return [rows.some(from_numpy(which, rows.X, array_namespace(rows.X).int64))]


def judged_rows(parted: PartedRows) -> tuple[Rows, Judged | None]:
    """Bring the rows to memory that a fit in memory would judge; None says that they are all rows."""
    sizes = numpy.sum(list(parted.sizes.values()), axis=0)  # (k,)
    places = judged_places(sizes, parted.classes is not None)
    asked = [numpy.arange(size) for size in sizes] if places is None else places
    rows = Rows.joined(parted.gather(partial(_take_by_class, _by_part(asked, parted))))
    if places is None:
        return rows, None
    like, xp = parted.reader.like, array_namespace(parted.reader.like)
    stand_for = stands_for(sizes, places)[codes_of(rows.targets)]
    indices = from_numpy(numpy.arange(rows.X.shape[0]), like, xp.int64)
    return rows, Judged(indices, from_numpy(stand_for, like), parted.class_weights)


def _by_part(places: list[numpy.ndarray], parted: PartedRows) -> dict[int, list[numpy.ndarray]]:
    """Return, by part and class, the places among the part's rows of the class, from those among all."""
    dealt = [
        deal(of_class, {number: int(sizes[c]) for number, sizes in parted.sizes.items()})
        for c, of_class in enumerate(places)
    ]
    return {number: [of_class[number] for of_class in dealt] for number in parted.sizes}


class DistantMatrix:
    """Stands for the matrix X of all rows where they are in parts: gives single rows by a pass over them."""

    ndim = 2

    def __init__(self, parted: PartedRows) -> None:
        self._parted, self._like = parted, parted.reader.like
        self.shape = (sum(parted.part_sizes.values()), parted.reader.n_features)
        self.dtype, self.device = self._like.dtype, device(self._like)

    def __array_namespace__(self, **_: Any) -> Any:
        """Return the library of the rows."""
        return array_namespace(self._like)

    def take_rows(self, which: Array) -> Array:
        """Return the rows with these indices, in their order."""
        return self._parted.take(which).X


def _without_columns(rows: Rows, _number: int) -> list[Rows]:
    hashes = row_hashes(to_host(rows.X))
    return [Rows(rows.X[:, :0], rows.classes, rows.targets, rows.weights, hashes)]


def ledger(parted: PartedRows) -> Rows:
    """Return all rows as a fit in memory knows them, but for X, whose rows are fetched when somebody asks.

    In memory is a hash, a target and the weights of each row.
    """
    each: list[Rows] = parted.gather(_without_columns)
    rows, hashes = Rows.joined(each), numpy.concatenate([part.hashes for part in each])
    return Rows(DistantMatrix(parted), parted.classes, rows.targets, rows.weights, hashes)


def hold_back_parted(parted: PartedRows, seed: int) -> tuple[WatchedParts, HeldBack]:
    """Hold back the rows that a fit in memory would; return the parts without these rows, and the rows."""
    rows = ledger(parted)
    m, y = rows.X.shape[0], _as_it_came(rows.targets, rows.classes)
    _, held = hold_back(numpy.arange(m)[:, None], y, rows.weights.counts, seed, rows.classes is not None)
    indices = held.X[:, 0]
    fitted = parted.parts.without(deal(indices, parted.part_sizes))
    counts = None if held.counts is None else from_numpy(held.counts, parted.reader.like)
    return fitted, HeldBack(parted.take(indices).X, held.y, counts, held.returned)


def _as_it_came(targets: Targets, classes: Array | None) -> numpy.ndarray:
    """Return the labels, or the values in the units of y."""
    if isinstance(targets, Classes):
        labels: numpy.ndarray = to_host(classes)[to_host(targets.codes)]
        return labels
    assert targets.mean is not None
    assert targets.sd is not None
    Y: numpy.ndarray = to_host(targets.Y).astype(float) * to_host(targets.sd) + to_host(targets.mean)
    return Y
