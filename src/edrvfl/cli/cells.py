"""What the cells of a column say: numbers, true and false, or text, and where something is wrong.

A CSV file has no types. Which columns hold numbers is decided once, by all training rows; the model keeps it,
and later files are read in the same way, whatever their cells look like.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy
import pandas

from .tables import Block, Column, CsvFile, Table

# What stands for a missing value: the texts that pandas.read_csv takes for it.
MISSING = frozenset(
    [
        "",
        "#N/A",
        "#N/A N/A",
        "#NA",
        "-1.#IND",
        "-1.#QNAN",
        "-NaN",
        "-nan",
        "1.#IND",
        "1.#QNAN",
        "<NA>",
        "N/A",
        "NA",
        "NULL",
        "NaN",
        "None",
        "n/a",
        "nan",
        "null",
    ]
)
TRUTH = {"true": 1.0, "True": 1.0, "TRUE": 1.0, "false": 0.0, "False": 0.0, "FALSE": 0.0}

Kind: TypeAlias = Literal["numbers", "truth", "text"]
# What a model knows of a column: its categories, texts or floats, or None for a column of numbers.
Known: TypeAlias = Mapping[str, numpy.ndarray | None]


def number_of(cell: str) -> float | None:
    """Return the number that a cell holds, NaN if it is missing; None if it holds something else.

    Examples
    --------
    >>> [number_of(cell) for cell in ("1e3", " 7", "True", "", "1_000", "red")]
    [1000.0, 7.0, 1.0, nan, None, None]
    """
    if cell in MISSING:
        return math.nan
    if cell in TRUTH:
        return TRUTH[cell]
    try:
        return float(cell) if cell.isascii() and "_" not in cell else None  # Python knows more digits
    except ValueError:
        return None


# --- which kind of cells a column has ----------------------------------------------------------------


def find_kinds(table: Table, names: Sequence[str], blocks: Iterable[Block]) -> dict[str, Kind]:
    """Tell what each column holds. For a CSV file all cells are looked at, for Parquet the types."""
    if not isinstance(table, CsvFile):
        first = next(iter(blocks)).columns
        return {name: _kind_of_type(first[name]) for name in names}
    possible: dict[str, list[Kind]] = {name: ["numbers", "truth"] for name in names}
    for block in blocks:
        for name, left in possible.items():
            if left:
                possible[name] = [kind for kind in left if _may_be(kind, block.columns[name])]
    return {name: left[0] if left else "text" for name, left in possible.items()}


def _may_be(kind: Kind, cells: list[str]) -> bool:
    """Tell whether all cells that are not missing are numbers, or all are true or false."""
    if kind == "truth":
        return set(cells) <= MISSING | TRUTH.keys()
    return _at_once(cells) is not None or all(c not in TRUTH and number_of(c) is not None for c in cells)


def _kind_of_type(column: Any) -> Kind:
    if pandas.api.types.is_bool_dtype(column.dtype):
        return "truth"
    return "numbers" if pandas.api.types.is_numeric_dtype(column.dtype) else "text"


def _at_once(cells: list[str]) -> numpy.ndarray | None:
    """Return numbers if all cells are numbers or missing: the fast way, which most columns go."""
    together = "".join(cells)
    if "_" in together or not together.isascii():
        return None
    texts = ["nan" if cell in MISSING else cell for cell in cells]
    try:
        found: numpy.ndarray = numpy.array(texts, dtype=object).astype(numpy.float64)
    except ValueError:
        return None
    return found


# --- the cells of a column ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Place:
    """Where a column stands, for messages."""

    table: Table
    name: str
    start: int  # rows before the block

    def wrong(self, row: int, what: str) -> ValueError:
        """Return an error about a row of the block. Rows are counted from 1 below the header."""
        return ValueError(f"{self.table.path}: column {self.name!r}, row {self.start + row + 1}: {what}")


def read_numbers(column: Column, place: Place) -> Any:
    """Return numbers, NaN where missing; refuse the first cell that is neither."""
    if not isinstance(column, list):
        if not _holds_text(column):
            return column
        column = [
            "" if value is None else value for value in column.astype(object).where(column.notna(), None)
        ]
    found = _at_once(column)
    if found is None:
        values = [number_of(cell) for cell in column]
        if None in values:
            row = values.index(None)
            raise place.wrong(
                row, f"{column[row]!r} is not a number. Correct it, or leave it empty if missing."
            )
        found = numpy.array(values, dtype=numpy.float64)
    if numpy.isinf(found).any():
        row = int(numpy.isinf(found).argmax())
        raise place.wrong(row, f"{column[row]!r} is too large. Correct it, or leave it empty if missing.")
    return found


def _holds_text(column: Any) -> bool:
    """Tell whether a column of a Parquet file holds text, which may be numbers that were written as text."""
    return pandas.api.types.infer_dtype(column, skipna=True) == "string"


def read_categories(column: Column, categories: numpy.ndarray | None = None) -> Any:
    """Return texts, None where missing, or numbers where the model's categories are numbers.

    A text that stands for missing is no gap where the model knows it as a category.
    """
    if not isinstance(column, list):
        return column
    if categories is not None and categories.dtype != object:
        return pandas.Series([_number_or_text(cell) for cell in column], dtype=object)
    missing = MISSING if categories is None else MISSING.difference(categories.tolist())
    return pandas.Series([None if cell in missing else cell for cell in column], dtype=object)


def _number_or_text(cell: str) -> float | str | None:
    if cell in MISSING:
        return None
    found = number_of(cell)
    return cell if found is None else found


def make_frame(table: Table, block: Block, known: Known) -> Any:
    """Return the columns that a model knows, in its order and as it knows them."""
    columns = {}
    for name, categories in known.items():
        cells, place = block.columns[name], Place(table, name, block.start)
        if categories is None:
            columns[name] = read_numbers(cells, place)
        else:
            columns[name] = read_categories(cells, categories)
    return pandas.DataFrame(columns)


# --- targets -----------------------------------------------------------------------------------------


def refuse_missing(column: Column, place: Place) -> None:
    """Refuse a target that has a gap."""
    gaps = [cell in MISSING for cell in column] if isinstance(column, list) else column.isna().tolist()
    if any(gaps):
        raise place.wrong(gaps.index(True), "the target is missing. Fill it in, or remove the row.")
