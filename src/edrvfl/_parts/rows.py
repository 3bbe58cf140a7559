"""All training rows of a fit, in parts: sums over them, which see that no part changes between passes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Any

import numpy

from .._inputs.rows import Rows, class_costs, refuse_large_weights, refuse_one_class, refuse_unresolved
from .._seam.arrays import Array
from .parts import ByPart, Marked, Part, Parts, Several, about_block
from .reader import Reader
from .scales import WeightSums
from .survey import Survey


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
        return Marked(value, ByPart.of(part.number, mark))


@dataclass(frozen=True, slots=True, eq=False)
class _Numbered:
    """Hand on what a function returns, with the number of the part."""

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
            before = {number: (n_rows, None) for number, n_rows in self.part_sizes.items()}
        found: Marked = self.parts.total(_Read(self.reader, function, before), self.heard) or Marked(None)
        marks = found.marks.together()
        for number, (n_rows, _) in before.items():
            if n_rows and number not in marks:
                with about_block(number):
                    raise ValueError(changed_message(n_rows, 0))
        self._marks = marks
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
    def part_sizes(self) -> dict[int, int]:
        """How many rows with a weight each part has, in the order of the parts."""
        return {number: int(self.sizes[number].sum()) for number in sorted(self.sizes)}

    @property
    def n_parts(self) -> int:
        """How many parts there are; those without rows are counted after the first pass."""
        return len(self.sizes if self._marks is None else self._marks)

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
    reader, weights = Reader.of(survey, like), survey.weights
    rows = PartedRows(parts, reader, survey.class_rows, survey.class_weights, weights, weights, heard)
    if survey.labels is not None and class_weight is not None:
        rows = _with_class_weights(rows, class_weight)
    if survey.scale is not None:
        refuse_unresolved(reader.one_row(survey.scale))
    if rows.base.given:
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
    weights, m = rows.weights, rows.X.shape[0]
    return Several((WeightSums.of_rows(weights.counts, m), WeightSums.of_rows(weights.base, m)))
