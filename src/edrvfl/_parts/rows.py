"""All training rows of a fit, in parts: sums over them, and single rows that are brought to memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy

from .._inputs.rows import (
    Rows,
    class_costs,
    refuse_large_weights,
    refuse_one_class,
    refuse_unresolved,
    to_host,
    weights_on_host,
)
from .._inputs.targets import WeightSums
from .._seam.arrays import Array, array_namespace, from_numpy
from .parts import Part, Several, about_block
from .reader import Reader
from .survey import Survey
from .watched import WatchedParts


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
