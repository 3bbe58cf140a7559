"""The encoder as a graph: columns of a frame or of an array become the columns that a network sees."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy

from ..._inputs.columns import Columns
from ..._inputs.dates import Dates
from ..._inputs.inputs import CUT, MISSING, SMOOTH, Bins, Categories, Inputs, Numbers, OneHots, Ranks
from .dates import date_parts
from .graph import Graph, Name, texts

Source = Name | Sequence[Name]  # one tensor (rows, d), or d tensors (rows, 1)
MISSING_TEXTS = ("", "nan", "<missing>")  # the first that is no category of the column stands for missing


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """The columns of the coded matrix in the graph, in float64: numbers as they are, categories as codes."""

    numbers: Name | None  # (rows, number columns)
    codes: Name | None  # (rows, categorical columns)
    place: numpy.ndarray  # (d,), where a coded column stands, among the numbers or among the codes
    widths: tuple[int, int]  # of numbers and codes
    bound: float  # how large a number may be


def missing_text(categories: numpy.ndarray) -> str:
    """Return the text that stands for missing in a column of these categories."""
    known = set(categories.tolist())
    names = (*MISSING_TEXTS, *(f"<missing {i}>" for i in range(len(known) + 1)))
    return next(text for text in names if text not in known)


def holds_text(columns: Columns | None, j: int) -> bool:
    """Tell whether a column has categories that are compared as text."""
    categories = None if columns is None else columns.categories[j]
    return categories is not None and categories.dtype == object


def holds_dates(columns: Columns | None, j: int) -> bool:
    """Tell whether a column holds dates, times of day or durations."""
    return columns is not None and isinstance(columns.kind_of[j], Dates)


def read_columns(graph: Graph, columns: Columns | None, X: Source, d: int, bound: float) -> Table:
    """Return the coded columns of the d columns of X in float64.

    The codes are those of `_inputs/table.py`: places among the sorted categories, -1 for a value never
    seen, NaN for missing.
    """
    known = (None,) * d if columns is None else columns.categories
    coded = (False,) * d if columns is None else columns.coded
    is_number = ~numpy.array(coded)
    place = numpy.where(is_number, numpy.cumsum(is_number), numpy.cumsum(~is_number)) - 1
    numbers = codes = None
    if is_number.any():
        numbers = _read_numbers(graph, columns, X, d)
    if not is_number.all():
        parts = []
        for j, categories in enumerate(known):
            if categories is not None:
                code = _code_text if holds_text(columns, j) else _code_numbers
                parts.append(code(graph, _columns_of(graph, X, numpy.array([j]), d), categories))
        codes = graph.concat(parts)
    widths = int(is_number.sum()), int((~is_number).sum())
    return Table(numbers, codes, place, widths, bound)


def _read_numbers(graph: Graph, columns: Columns | None, X: Source, d: int) -> Name:
    """Return the numbers of X, and the parts of its dates, in their order."""
    kinds: Sequence[Any] = (None,) * d if columns is None else columns.kind_of
    known = (None,) * d if columns is None else columns.categories
    parts: list[Name] = []
    of_numbers = [j for j in range(d) if known[j] is None]
    for dates, some in groupby(of_numbers, lambda j: isinstance(kinds[j], Dates)):
        if dates:
            parts += [date_parts(graph, _columns_of(graph, X, numpy.array([j]), d), kinds[j]) for j in some]
        else:
            parts.append(graph.to_double(_columns_of(graph, X, numpy.array([*some]), d)))
    return graph.concat(parts)


def _columns_of(graph: Graph, X: Source, places: numpy.ndarray, d: int) -> Name:
    if isinstance(X, str):
        return graph.columns(X, places, d)
    return graph.concat([X[j] for j in places])


def _code_text(graph: Graph, column: Name, categories: numpy.ndarray) -> Name:
    keys = [*texts(categories.tolist(), "Category"), missing_text(categories)]
    values = [*map(float, range(len(categories))), float("nan")]
    entries: dict[str, Any] = {"keys_strings": keys, "values_floats": values, "default_float": -1.0}
    code = graph.add("LabelEncoder", column, domain="ai.onnx.ml", **entries)
    return graph.cast(code, numpy.float64)


def _code_numbers(graph: Graph, column: Name, categories: numpy.ndarray) -> Name:
    known = categories.astype(graph.dtype)
    if len(numpy.unique(known)) < len(categories):
        raise ValueError(
            f"Some categories that are numbers are one number in {graph.dtype}. Export with dtype='float64'."
        )
    missing = graph.add("IsNaN", column)
    if not len(known):
        code = graph.constant([[-1.0]])
    else:
        same = graph.add("Equal", column, graph.constant(known[None, :], graph.dtype))
        places = graph.constant(1.0 + numpy.arange(len(known))[:, None])
        found = graph.add("MatMul", graph.cast(same, numpy.float64), places)
        code = graph.add("Sub", found, 1.0)
    return graph.add("Where", missing, numpy.nan, code)


class Encoder:
    """Encodes the columns of a table, in the ways that models ask for: each way once."""

    def __init__(self, graph: Graph, table: Table) -> None:
        self._graph, self._table = graph, table
        self._known: dict[int, Name] = {}

    def __call__(self, inputs: Inputs) -> Name:
        """Return the encoded columns (rows, width) in float64. Voters with the same inputs share them."""
        if id(inputs) not in self._known:
            self._known[id(inputs)] = encode(self._graph, inputs, self._table)
        return self._known[id(inputs)]


def encode(graph: Graph, inputs: Inputs, table: Table) -> Name:
    """Return the encoded columns (rows, width) in float64, as `Inputs.apply` does."""
    parts, bases, base_widths = [], [], 0
    if inputs.plain:
        assert table.numbers is not None
        parts.append(table.numbers)
    if inputs.numbers is not None:
        filled, scaled = _scaled(graph, inputs.numbers, table)
        parts.append(scaled)
        bases.append(filled)
        base_widths += len(inputs.numbers.divisor)
    if inputs.missing is not None:
        gaps = _numbers(graph, table, inputs.missing)
        parts.append(graph.cast(graph.add("IsNaN", gaps), numpy.float64))
    if inputs.bins is not None:
        parts.append(_binned(graph, inputs.bins, bases[0], base_widths))
    if inputs.categories is not None:
        bases.append(_places(graph, inputs.categories, table))
        base_widths += len(inputs.categories.start)
    if inputs.onehots is not None:
        parts.append(_one_hot(graph, inputs.onehots, graph.concat(bases), base_widths))
    if inputs.codes is None:
        return _times(graph, graph.concat(parts), inputs.factors)
    if parts:
        factors = None if inputs.factors is None else inputs.factors[: inputs.width - len(inputs.codes)]
        parts = [_times(graph, graph.concat(parts), factors)]
    return graph.concat([*parts, _codes(graph, inputs.codes, table)])


def _times(graph: Graph, encoded: Name, factors: numpy.ndarray | None) -> Name:
    return encoded if factors is None else graph.add("Mul", encoded, factors)


def _codes(graph: Graph, columns: numpy.ndarray, table: Table) -> Name:
    """Return codes of categories as a kernel compares them: a missing one has a code of its own."""
    assert table.codes is not None
    codes = graph.columns(table.codes, table.place[columns], table.widths[1])
    return graph.add("Where", graph.add("IsNaN", codes), MISSING, codes)


def _numbers(graph: Graph, table: Table, columns: numpy.ndarray | None) -> Name:
    """Return columns of X that are numbers; None takes all."""
    assert table.numbers is not None
    if columns is None:
        return table.numbers
    return graph.columns(table.numbers, table.place[columns], table.widths[0])


def _scaled(graph: Graph, numbers: Numbers, table: Table) -> tuple[Name, Name]:
    """Return the numbers divided and without gaps, and these with mean 0 and variance 1."""
    bound = table.bound
    X = _numbers(graph, table, numbers.columns)
    Z = graph.add("Div", X, numbers.divisor)
    Z = graph.add("Clip", Z, -bound, bound)
    filled = graph.add("Where", graph.add("IsNaN", X), numbers.fill, Z)
    Z = filled
    if numbers.ranks is not None:
        Z = _ranked(graph, numbers.ranks, Z)
    if numbers.center is not None:
        Z = graph.add("Div", graph.add("Sub", Z, numbers.center), numbers.spread)
        Z = graph.add("Clip", Z, -bound, bound)
        third = graph.add("Div", Z, SMOOTH)
        root = graph.add("Sqrt", graph.add("Add", graph.add("Mul", third, third), 1.0))
        Z = graph.add("Div", Z, root)
    Z = graph.add("Div", graph.add("Sub", Z, numbers.mean), numbers.sd)
    if numbers.center is not None:
        Z = graph.add("Clip", Z, -CUT, CUT)
    return filled, Z


def _ranked(graph: Graph, ranks: Ranks, filled: Name) -> Name:
    """Return sum_i height_i clip((z - left_i) slope_i, 0, 1), with the steps along a second axis."""
    Z = graph.add("Unsqueeze", filled, graph.constant([1], numpy.int64))  # (rows, 1, d)
    Z = graph.add("Mul", graph.add("Sub", Z, ranks.left), ranks.slope)
    Z = graph.add("Clip", Z, 0.0, 1.0)
    Z = graph.add("Mul", Z, ranks.height)
    return graph.add("ReduceSum", Z, graph.constant([1], numpy.int64), keepdims=0)


def _binned(graph: Graph, bins: Bins, filled: Name, width: int) -> Name:
    A = graph.columns(filled, numpy.asarray(bins.columns), width)
    A = graph.add("Mul", graph.add("Sub", A, bins.left), bins.slope)
    return graph.between(graph.add("Add", A, bins.offset), bins.low, bins.high)


def _places(graph: Graph, categories: Categories, table: Table) -> Name:
    assert table.codes is not None
    codes = graph.columns(table.codes, table.place[categories.columns], table.widths[1])
    start, end = (numpy.asarray(ends, dtype=numpy.float64) for ends in (categories.start, categories.end))
    known = graph.between(graph.add("Add", codes, start + 1), start, end - 1)
    entries = graph.add("Where", graph.add("IsNaN", codes), end, known)
    return graph.add("Gather", graph.constant(categories.table), graph.cast(entries, numpy.int64), axis=0)


def _one_hot(graph: Graph, onehots: OneHots, bases: Name, width: int) -> Name:
    A = graph.columns(bases, numpy.asarray(onehots.columns), width)
    above = graph.add("GreaterOrEqual", A, onehots.low)
    inside = graph.add("And", above, graph.add("Less", A, onehots.high))
    return graph.add("Where", inside, onehots.on, onehots.off)
