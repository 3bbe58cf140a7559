"""Training rows of a fit, in parts: read and weighed alike, summed, or brought to memory one by one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy

from .._inputs.moments import ValueScale
from .._inputs.rows import (
    Rows,
    as_matrix,
    class_costs,
    refuse_large_weights,
    refuse_one_class,
    refuse_unresolved,
    standard_values,
    to_host,
    weights_on_host,
)
from .._inputs.table import Columns, learn_table, open_table, read_table
from .._inputs.targets import Classes, RowWeights, WeightSums
from .._seam.arrays import Array, array_namespace, converted, from_numpy
from .parts import Part, Several, about_block
from .survey import Survey
from .watched import WatchedParts


@dataclass(frozen=True, slots=True, eq=False)
class Reader:
    """How a part becomes rows of a fit, after all parts were surveyed."""

    columns: Columns | None
    n_features: int  # of the coded matrix
    like: Array  # an array in the precision, of the library and on the device of the fit
    classes: numpy.ndarray | None  # (k,), that are fitted; None for values
    costs: numpy.ndarray | None  # (k,), class weights
    scale: ValueScale | None
    weighted: bool  # whether rows have sample weights

    @classmethod
    def of(cls, survey: Survey, like: Array) -> Reader:
        """Return the reader of the parts that were surveyed, without class weights."""
        return cls(
            columns=survey.columns,
            n_features=survey.n_features if survey.columns is None else survey.columns.width,
            like=like,
            classes=survey.labels,
            costs=None,
            scale=survey.scale,
            weighted=survey.weighted,
        )

    def __call__(self, part: Part) -> Rows | None:
        """Return the rows that have a weight; None if there are none."""
        if part.n_rows == 0:
            return None
        X, y, counts = self._matrix(part.X), self._targets(part.y), part.counts()
        kept = counts > 0
        if self.classes is not None:
            codes = numpy.minimum(numpy.searchsorted(self.classes, y), len(self.classes) - 1)
            kept &= self.classes[codes] == y  # a class of weight 0 is not fitted
            y = codes
        if not kept.all():
            X, y, counts = X[kept], y[kept], counts[kept]
        return self._rows(X, y, counts) if len(X) else None

    def _matrix(self, X: Any) -> numpy.ndarray:
        table = open_table(X, to_host(self.like).dtype)
        matrix = learn_table(table, None)[0] if self.columns is None else read_table(table, self.columns)
        return numpy.asarray(matrix)

    def _targets(self, y: Any) -> numpy.ndarray:
        """Return labels (rows,) or values (rows, k)."""
        y = numpy.asarray(y)
        return as_matrix(y).astype(float) if self.classes is None else y.reshape(-1)

    def one_row(self, scale: ValueScale) -> Rows:
        """Return a row whose values are a standard deviation above their means."""
        values = (scale.mean + scale.sd) * scale.unit
        return self._rows(numpy.zeros((1, self.n_features)), values[None, :], numpy.ones(1))

    def _rows(self, X: numpy.ndarray, y: numpy.ndarray, counts: numpy.ndarray) -> Rows:
        like, xp = self.like, array_namespace(self.like)
        if not isinstance(like, numpy.ndarray):
            # torch warns of memory that it may not write, such as Arrow's
            X, counts = (values if values.flags.writeable else values.copy() for values in (X, counts))
        matrix = from_numpy(X, like)
        own = from_numpy(counts, like) if self.weighted else None
        if self.scale is not None:
            Y = from_numpy(y, like, xp.float64)
            scale = converted(self.scale, lambda of_all: from_numpy(of_all, like, xp.float64))
            return Rows(matrix, None, standard_values(Y, scale, like.dtype), RowWeights(own))
        assert self.classes is not None
        targets = Classes(from_numpy(y, like, xp.int64), len(self.classes), like[:0])
        costs = None if self.costs is None else from_numpy(self.costs[y], like)
        return Rows(matrix, self.classes, targets, RowWeights(own, costs))


def _read(reader: Reader, function: Callable[[Rows, int], Any], part: Part) -> Any:
    """Read a part, and hand its rows to a function."""
    with about_block(part.number):
        rows = reader(part)
    return None if rows is None else function(rows, part.number)


def _take(places: Mapping[int, numpy.ndarray], rows: Rows, number: int) -> list[Rows]:
    """Take rows of a part: sorted indices, by part, among its rows that have a weight."""
    return [rows.some(from_numpy(places[number], rows.X, array_namespace(rows.X).int64))]


@dataclass(eq=False)
class PartedRows:
    """All training rows, in parts, with what one may want to know of them as a whole."""

    parts: WatchedParts
    reader: Reader
    sizes: dict[int, numpy.ndarray]  # by part, in order: how many rows each class has, or all if no classes
    class_weights: numpy.ndarray | None  # (k,), sample weights of each class
    weights: WeightSums  # of the sample weights
    base: WeightSums  # of sample weights times class weights

    def total(self, function: Callable[[Rows, int], Any]) -> Any:
        """Return the sum of function(rows, number of the part) over all parts that have rows."""
        return self.parts.total(partial(_read, self.reader, function))

    def gather(self, function: Callable[[Rows, int], list[Any]]) -> list[Any]:
        """Return the lists that function(rows, number) gives, one after another, part by part."""
        return self.total(function) or []

    def take(self, indices: Array) -> Rows:
        """Bring rows to memory by one pass: those with these numbers among all rows, in this order."""
        chosen, order = numpy.unique(to_host(indices), return_inverse=True)
        rows = Rows.joined(self.gather(partial(_take, deal(chosen, self.part_sizes))))
        return rows.some(from_numpy(order, rows.X, array_namespace(rows.X).int64))

    @property
    def classes(self) -> numpy.ndarray | None:
        """The labels, sorted; None for values."""
        return self.reader.classes

    @property
    def part_sizes(self) -> dict[int, int]:
        """How many rows with a weight each part has, in the order of the parts."""
        return {number: int(sizes.sum()) for number, sizes in self.sizes.items()}

    @property
    def worth(self) -> float:
        """How many rows these are, where weight 2 is the row twice."""
        return self.weights.worth


def deal(indices: numpy.ndarray, sizes: Mapping[int, int]) -> dict[int, numpy.ndarray]:
    """Return, by part, which of its rows the indices among all rows name; the sizes are in order."""
    ends = numpy.cumsum(list(sizes.values()))
    parts = numpy.searchsorted(ends, indices, side="right")
    order = numpy.argsort(parts, kind="stable")
    each = numpy.split(indices[order], numpy.searchsorted(parts[order], numpy.arange(1, len(ends))))
    return {number: some - (end - sizes[number]) for number, end, some in zip(sizes, ends, each, strict=True)}


def parted_rows(parts: WatchedParts, survey: Survey, class_weight: Any, like: Array) -> PartedRows:
    """Return the rows of a fit, after the first look at all parts."""
    reader, weights = Reader.of(survey, like), survey.weights
    rows = PartedRows(parts, reader, survey.class_rows, survey.class_weights, weights, weights)
    if survey.labels is not None and class_weight is not None:
        rows = _with_class_weights(rows, class_weight)
    if survey.scale is not None:
        refuse_unresolved(reader.one_row(survey.scale))
    refuse_large_weights(rows.base.largest, rows.base.n_rows, like)
    return rows


def _with_class_weights(rows: PartedRows, class_weight: Any) -> PartedRows:
    """Weigh the classes; those of weight 0 are not fitted. One pass sums the weights of the rows that are."""
    labels, weights = rows.classes, rows.class_weights
    assert labels is not None
    assert weights is not None
    # scikit-learn's rule sees one row for each class, which has all its weight
    costs = class_costs(class_weight, labels, labels, weights)
    fitted = costs > 0
    refuse_one_class(labels[fitted])
    reader = replace(rows.reader, classes=labels[fitted], costs=costs[fitted])
    sizes = {number: of_classes[fitted] for number, of_classes in rows.sizes.items()}
    rows = replace(rows, reader=reader, sizes=sizes, class_weights=weights[fitted])
    rows.weights, rows.base = rows.total(_weigh).values
    return rows


def _weigh(rows: Rows, _number: int) -> Several:
    """Sum the weights of a part's rows, without and with class weights."""
    each = (rows.weights.counts, rows.weights.base)
    return Several(tuple(WeightSums.of(weights_on_host(weights, rows.X.shape[0])) for weights in each))
