"""Training rows that come in parts: checked, coded and weighed alike in every part."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import numpy
from sklearn.utils import compute_class_weight

from .._arrays import Array, array_namespace, from_numpy, take_rows
from .._inputs.judged import Judged, judged_places, stands_for
from .._inputs.rows import Rows, as_matrix, refuse_large_weights, refuse_unresolved, standard_values, to_host
from .._inputs.table import Columns, learn_table, open_table, read_table
from .._inputs.targets import Classes, joined_targets
from .._inputs.weights import RowWeights
from .parts import Marked, Part, Parts, about_block
from .scales import ValueScale, WeightSums
from .survey import Survey, read_weights


@dataclass(frozen=True, slots=True, eq=False)
class Reader:
    """How a part becomes rows of a fit, after all parts were surveyed."""

    columns: Columns | None
    named: tuple[str, ...] | None
    n_features: int
    like: Array  # an array in the precision, of the library and on the device of the fit
    classes: numpy.ndarray | None  # (k,), that are fitted; None for values
    costs: numpy.ndarray | None  # (k,), class weights
    scale: ValueScale | None
    weighted: bool  # whether rows have sample weights

    def __call__(self, part: Part) -> tuple[Rows | None, tuple[int, int]]:
        """Return the rows that have a weight, None if there are none, and what tells whether they change."""
        n_rows = len(part.y)
        if n_rows == 0:
            return None, (0, 0)
        X, y = self._matrix(part.X), self._targets(part.y)
        if not len(X) == len(y) == n_rows:
            raise ValueError(f"X has {len(X)} rows, but y has {len(y)}.")
        counts = read_weights(part.weight, n_rows)
        kept = counts > 0
        if self.classes is not None:
            codes = numpy.minimum(numpy.searchsorted(self.classes, y), len(self.classes) - 1)
            kept &= self.classes[codes] == y  # a class of weight 0 is not fitted
            y = codes
        if not kept.all():
            X, y, counts = X[kept], y[kept], counts[kept]
        mark = (len(X), _checksum(X, y, counts))
        return (self._rows(X, y, counts) if len(X) else None), mark

    def _matrix(self, X: Any) -> numpy.ndarray:
        dtype = to_host(self.like).dtype
        table = open_table(X, dtype)
        if table.shape[1] != self.n_features or table.named != self.named:
            raise ValueError("Its columns are not those of the first pass.")
        if self.columns is None:
            matrix = learn_table(table, None)[0]  # which refuses text
            if not numpy.isfinite(matrix).all():
                raise ValueError("X holds values that are missing.")
            return numpy.asarray(matrix)
        return numpy.asarray(read_table(table, self.columns))

    def _targets(self, y: Any) -> numpy.ndarray:
        """Return labels (rows,) or values (rows, k)."""
        y = numpy.asarray(y)
        return as_matrix(y).astype(float) if self.classes is None else y.reshape(-1)

    def one_row(self, scale: ValueScale) -> Rows:
        """Return a row whose values are a standard deviation above their means."""
        values = (scale.mean + numpy.sqrt(scale.scatter / scale.weight)) * scale.unit
        return self._rows(numpy.zeros((1, self.n_features)), values[None, :], numpy.ones(1))

    def _rows(self, X: numpy.ndarray, y: numpy.ndarray, counts: numpy.ndarray) -> Rows:
        like, xp = self.like, array_namespace(self.like)
        if not isinstance(
            like, numpy.ndarray
        ):  # torch warns of memory that it may not write, such as Arrow's
            X, counts = (values if values.flags.writeable else values.copy() for values in (X, counts))
        matrix = from_numpy(X, like)
        own = from_numpy(counts, like) if self.weighted else None
        if self.scale is not None:
            scale = self.scale
            Y = from_numpy(y / scale.unit, like, xp.float64)
            sd = numpy.sqrt(scale.scatter / scale.weight)
            unit, mean, sd = (from_numpy(part, like, xp.float64) for part in (scale.unit, scale.mean, sd))
            return Rows(matrix, None, standard_values(Y, unit, mean, sd, like.dtype), RowWeights(own))
        assert self.classes is not None
        targets = Classes(from_numpy(y, like, xp.int64), len(self.classes), like[:0])
        costs = None if self.costs is None else from_numpy(self.costs[y], like)
        return Rows(matrix, self.classes, targets, RowWeights(own, costs))


def _checksum(*arrays: numpy.ndarray) -> int:
    """Return a checksum that sees changed, and swapped, values and rows.

    CRC-32 takes 4 GB/s. Sums of words times random numbers take 10 GB/s, but in columns of small whole
    numbers they miss one of 2000 swaps: only the few highest bits of these differ.
    """
    check = 0
    for array in arrays:
        # in the order of memory, for a copy in another order would take three times as long
        array = array.T if array.flags.f_contiguous else numpy.ascontiguousarray(array)
        check = zlib.crc32(array.data, check)
    return check


@dataclass(frozen=True, slots=True, eq=False)
class _Read:
    """Read a part, compare it with earlier passes, and hand its rows to a function."""

    reader: Reader
    function: Callable[[Rows, int], Any]
    before: Mapping[int, tuple[int, int | None]]  # by part: its rows, and their checksum if it is known

    def __call__(self, part: Part) -> Marked:
        with about_block(part.number):
            rows, mark = self.reader(part)
            n_rows, check = self.before.get(part.number, (0, None))
            if n_rows != mark[0] or check not in (None, mark[1]):
                raise ValueError(changed_message(n_rows, mark[0]))
        value = None if rows is None else self.function(rows, part.number)
        return Marked(value, {part.number: mark})


@dataclass(frozen=True, slots=True, eq=False)
class _Numbered:
    """Note of which part something is."""

    function: Callable[[Rows, int], list[Any]]

    def __call__(self, rows: Rows, number: int) -> list[tuple[int, list[Any]]]:
        return [(number, self.function(rows, number))]


@dataclass(eq=False)
class PartedRows:
    """All training rows, in parts, with what one may want to know of them as a whole."""

    parts: Parts
    reader: Reader
    sizes: dict[int, numpy.ndarray]  # by part: how many rows each class has; values are one class
    class_weights: numpy.ndarray | None  # (k,), sample weights of each class
    weights: WeightSums  # of the sample weights
    base: WeightSums  # of sample weights times class weights
    heard: Callable[[int], None] | None = None  # is told how many parts of a pass are done
    _marks: dict[int, tuple[int, int]] | None = None  # of the pass before

    def total(self, function: Callable[[Rows, int], Any]) -> Any:
        """Return the sum of function(rows, number of the part) over all parts that have rows."""
        before: Mapping[int, tuple[int, int | None]] | None = self._marks
        if before is None:  # the survey counted rows, and had no codes for a checksum
            before = {number: (int(sizes.sum()), None) for number, sizes in self.sizes.items()}
        found: Marked = self.parts.total(_Read(self.reader, function, before), self.heard) or Marked(None)
        for number, (n_rows, _) in sorted(before.items()):
            if n_rows and number not in found.marks:
                with about_block(number):
                    raise ValueError(changed_message(n_rows, 0))
        self._marks = found.marks
        return found.value

    def gather(self, function: Callable[[Rows, int], list[Any]]) -> list[Any]:
        """Return the lists that function(rows, number) gives, one after another, in the order of the parts.

        A sum of lists would not do: threads and workers add parts up in another order.
        """
        found: list[tuple[int, list[Any]]] = self.total(_Numbered(function)) or []
        return [value for _, values in sorted(found, key=itemgetter(0)) for value in values]

    @property
    def classes(self) -> numpy.ndarray | None:
        """The labels, sorted; None for values."""
        return self.reader.classes

    @property
    def n_rows(self) -> int:
        """How many rows have a weight."""
        return self.weights.n_rows

    @property
    def worth(self) -> float:
        """How many rows these are, where weight 2 is the row twice."""
        return self.weights.worth


def changed_message(before: int, now: int) -> str:
    """Say that a part changed between two passes."""
    values = ", with other values or in another order" if before == now else ""
    return (
        f"it changed between two passes. It had {before} rows, and now has {now}{values}. A source must give "
        "the same blocks, in the same order, whenever it is read."
    )


def parted_rows(
    parts: Parts, survey: Survey, class_weight: Any, like: Array, heard: Callable[[int], None] | None = None
) -> PartedRows:
    """Return the rows of a fit, after the first look at all parts."""
    classes, costs, sizes, class_weights = survey.labels, None, survey.class_rows, survey.class_weights
    base = survey.weights
    if classes is not None and class_weights is not None:
        heavy = class_weights > 0
        if class_weight is not None:
            costs = class_costs(class_weight, classes[heavy], class_weights[heavy])
            heavy[heavy] = costs > 0
            costs = costs[costs > 0]
        classes, class_weights = classes[heavy], class_weights[heavy]
        if len(classes) < 2:
            raise ValueError(
                "A fit needs at least two classes, but y holds only one class "
                f"({classes.tolist()[0]!r}) in the rows with positive weight."
            )
        sizes = {number: of_classes[heavy] for number, of_classes in sizes.items()}
    reader = Reader(
        survey.columns,
        survey.named,
        survey.n_features,
        like,
        classes,
        costs,
        survey.scale,
        survey.weights.given,
    )
    rows = PartedRows(parts, reader, sizes, class_weights, survey.weights, base, heard)
    if costs is not None or len(classes if classes is not None else ()) != len(
        survey.labels if survey.labels is not None else ()
    ):
        rows.weights, rows.base = rows.total(_weigh).sums
    if survey.scale is not None:
        refuse_unresolved(reader.one_row(survey.scale))
    if rows.base.given:
        refuse_large_weights(rows.base.largest, rows.base.n_rows, like)
    return rows


@dataclass(frozen=True, slots=True, eq=False)
class _Weighed:
    sums: tuple[WeightSums, WeightSums]

    def __add__(self, other: _Weighed) -> _Weighed:
        return _Weighed((self.sums[0] + other.sums[0], self.sums[1] + other.sums[1]))


def _weigh(rows: Rows, number: int) -> _Weighed:  # noqa: ARG001
    """Sum the weights of the rows of a part, without and with class weights."""
    weights, m = rows.weights, rows.X.shape[0]
    of_rows = (weights.counts, weights.base)
    sums = [
        WeightSums.of(numpy.ones(m) if w is None else to_host(w).astype(float), w is not None)
        for w in of_rows
    ]
    return _Weighed((sums[0], sums[1]))


def class_costs(class_weight: Any, classes: numpy.ndarray, weights: numpy.ndarray) -> numpy.ndarray:
    """Return the class weights: scikit-learn's rule, with a row for each class that has all its weight."""
    costs = compute_class_weight(class_weight, classes=classes, y=classes, sample_weight=weights)
    if not (numpy.isfinite(costs).all() and (costs >= 0).all() and (costs > 0).any()):
        raise ValueError(
            "class_weight must hold finite weights that are not negative and, for the classes of y, not all "
            f"zero, got {class_weight!r}."
        )
    return numpy.asarray(costs)


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
    """Take rows by their places among the rows of their class."""

    places: dict[int, list[numpy.ndarray]]  # by part and class: indices among the part's rows of the class

    def __call__(self, rows: Rows, number: int) -> list[Rows]:
        """Return the rows that are taken of one part, in their order."""
        xp, targets = array_namespace(rows.X), rows.targets
        if isinstance(targets, Classes):
            codes = to_host(targets.codes)
            chosen = [
                numpy.flatnonzero(codes == c)[at] for c, at in enumerate(self.places[number]) if len(at)
            ]
            which = numpy.sort(numpy.concatenate([numpy.empty(0, dtype=int), *chosen]))
        else:
            which = self.places[number][0]
        return [some_of(rows, from_numpy(which, rows.X, xp.int64))]


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
    numbers = sorted(parted.sizes)
    by_part = numpy.stack([parted.sizes[number] for number in numbers])  # (parts, k)
    sizes = by_part.sum(axis=0)
    places = judged_places(sizes, parted.classes is not None)
    every = places is None
    if places is None:
        places = [numpy.arange(size) for size in sizes]
    starts = numpy.cumsum(by_part, axis=0) - by_part
    chosen = {
        number: [
            at[(at >= start) & (at < start + size)] - start
            for at, start, size in zip(places, starts[i], by_part[i], strict=True)
        ]
        for i, number in enumerate(numbers)
    }
    rows = joined_rows(parted.gather(TakeByClass(chosen)))
    if every:
        return Sample(rows, None)
    like, xp = parted.reader.like, array_namespace(parted.reader.like)
    of_class = stands_for(sizes, places)
    codes = (
        to_host(rows.targets.codes)
        if isinstance(rows.targets, Classes)
        else numpy.zeros(rows.X.shape[0], int)
    )
    indices = from_numpy(numpy.arange(rows.X.shape[0]), like, xp.int64)
    return Sample(rows, Judged(indices, from_numpy(of_class[codes], like), parted.class_weights))
