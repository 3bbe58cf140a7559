"""What the cells of a column say: numbers, true and false, or text, and where something is wrong.

A CSV file has no types. Which columns hold numbers is decided once, by all training rows; the model keeps it,
and later files are read in the same way, whatever their cells look like.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
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

LIKE_NUMBER = re.compile(r"\s*[-+]?[$€£]?\s?\d[\d.,' \u00a0\u202f]*[%$€£]?\s*")
REPAIR = "Correct it, or leave it empty if missing."

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


def find_kinds(
    table: Table, names: Sequence[str], blocks: Iterable[Block], note: Callable[[str], object] = len
) -> dict[str, Kind]:
    """Tell what each column holds. For a CSV file all cells are looked at, for Parquet the types.

    `note` is told where cells that may have been meant as numbers make a column one of text.
    """
    if not isinstance(table, CsvFile):
        first = next(iter(blocks)).columns
        return {name: _kind_of_type(first[name]) for name in names}
    possible: dict[str, list[Kind]] = {name: ["numbers", "truth"] for name in names}
    for block in blocks:
        for name, left in possible.items():
            if left:
                possible[name] = [kind for kind in left if _may_be(kind, block.columns[name])]
                if not possible[name] and (row := _stray_cell(block.columns[name])) is not None:
                    note(
                        f"column {name!r} is taken for text, because of {brief(block.columns[name][row])} in "
                        f"{table.where(block.start + row)}. If its cells are numbers, write them like 1234.5."
                    )
    return {name: left[0] if left else "text" for name, left in possible.items()}


def _may_be(kind: Kind, cells: list[str]) -> bool:
    """Tell whether all cells that are not missing are numbers, or all are true or false."""
    if kind == "truth":
        return set(cells) <= MISSING | TRUTH.keys()
    return _at_once(cells) is not None or all(c not in TRUTH and number_of(c) is not None for c in cells)


def _stray_cell(cells: list[str]) -> int | None:
    """Return the first cell that is no number, if half of them are numbers or look like 1,234 or 5 %."""
    found = [(i, cell) for i, cell in enumerate(cells) if cell not in MISSING]
    alike = [LIKE_NUMBER.fullmatch(cell) is not None or number_of(cell) is not None for _, cell in found]
    if 2 * sum(alike) < len(found):
        return None
    return next((i for i, cell in found if cell in TRUTH or number_of(cell) is None), None)


def _kind_of_type(column: Any) -> Kind:
    if pandas.api.types.is_bool_dtype(column.dtype):
        return "truth"
    return "numbers" if pandas.api.types.is_numeric_dtype(column.dtype) else "text"


def _at_once(cells: list[str]) -> numpy.ndarray | None:
    """Return numbers if all cells are numbers or missing: the fast way, which most columns go."""
    together = "".join(cells)
    if "_" in together or not together.isascii():
        return None
    for texts in (cells, ("nan" if cell in MISSING else cell for cell in cells)):
        try:
            return numpy.fromiter(map(float, texts), numpy.float64, len(cells))
        except ValueError:  # a column without gaps needs no look at each cell
            pass
    return None


# --- the cells of a column ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Place:
    """Where a column stands, for messages."""

    table: Table
    name: str
    start: int  # rows before the block

    def wrong(self, row: int, what: str) -> ValueError:
        """Return an error about a row of the block. Rows are counted from 1 below the header."""
        where = self.table.where(self.start + row)
        return ValueError(f"{self.table.path}: column {self.name!r}, {where}: {what}")


def read_numbers(column: Column, place: Place) -> Any:
    """Return numbers, NaN where missing; refuse the first cell that is neither."""
    if not isinstance(column, list):
        if isinstance(getattr(column, "dtype", None), pandas.CategoricalDtype):
            column = column.astype(column.cat.categories.dtype)
        if not _holds_text(column):
            return _finite(column, place)
        column = [
            "" if value is None else value for value in column.astype(object).where(column.notna(), None)
        ]
    found = _at_once(column)
    if found is None:
        values = [number_of(cell) for cell in column]
        if None in values:
            row = values.index(None)
            raise place.wrong(row, f"{brief(column[row])} is not a number. {REPAIR}")
        found = numpy.array(values, dtype=numpy.float64)
    return _finite(found, place, column)


def _finite(numbers: Any, place: Place, cells: Sequence[str] | None = None) -> Any:
    """Return numbers of which none is infinite."""
    if numbers.dtype.kind == "f" and numpy.isinf(numbers).any():
        row = int(numpy.isinf(numbers).argmax())
        text = str(numbers[row]) if cells is None else cells[row]
        raise place.wrong(row, f"{brief(text)} is infinite or too large. {REPAIR}")
    return numbers


def brief(cell: str, most: int = 60) -> str:
    """Quote a cell, or the beginning of a long one.

    Examples
    --------
    >>> brief("old"), brief("a very long text", 6)
    ("'old'", "'a very...'")
    """
    return repr(cell if len(cell) <= most else f"{cell[:most]}...")


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


def refuse_missing(column: Column, place: Place, labels: Iterable[Any] = ()) -> None:
    """Refuse a target that has a gap. A text such as NA is none where it is one of a model's labels."""
    missing = MISSING.difference(map(str, labels))
    gaps = [cell in missing for cell in column] if isinstance(column, list) else column.isna().tolist()
    if True in gaps:
        row = gaps.index(True)
        what = f" ({column[row]!r})" if isinstance(column, list) and column[row] else ""
        raise place.wrong(row, f"the target is missing{what}. Fill it in, or remove the row.")
