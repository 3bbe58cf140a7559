"""What the cells of a column say: numbers, true and false, dates, or text, and where something is wrong.

A CSV file has no types. Which columns hold numbers is decided once, by all training rows; the model keeps it,
and later files are read in the same way, whatever their cells look like.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, time
from typing import Any, Literal, TypeAlias

import numpy
import pandas

from .tables import Block, Column, CsvFile, Table

# What stands for a missing value: the texts that pandas.read_csv takes for it.
_NOTHING = "#N/A #NA -1.#IND -1.#QNAN -NaN -nan 1.#IND 1.#QNAN <NA> N/A NA NULL NaN None n/a nan null"
MISSING = frozenset(("", "#N/A N/A", *_NOTHING.split()))
TRUTH = {"true": 1.0, "True": 1.0, "TRUE": 1.0, "false": 0.0, "False": 0.0, "FALSE": 0.0}

LIKE_NUMBER = re.compile(r"\s*[-+]?[$€£]?\s?\d[\d.,' \u00a0\u202f]*[%$€£]?\s*")
REPAIR = "Correct it, or leave it empty if missing."

# Whole dates as ISO 8601 writes them, with or without a time of day and its zone
ISO_DATE = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d{1,6})?)?(Z|[+-]\d\d(:?\d\d)?)?)?")
ISO_TIME = re.compile(r"\d\d:\d\d(:\d\d(\.\d{1,6})?)?")

Kind: TypeAlias = Literal["numbers", "truth", "dates", "text"]
# What a model knows of a column: its categories, texts or floats; None for a column of numbers; or a record
# of dates, which tells by `holds` whether these are dates, times of day or durations, or one of text.
Known: TypeAlias = Mapping[str, Any]


def number_of(cell: str) -> float | None:
    """Return the number that a cell holds, NaN if it is missing; None if it holds something else.

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


def date_of(cell: str, holds: str = "date") -> Any:
    """Return the date, or the time of day, that a cell holds, or None if it holds something else.

    >>> date_of("2024-02-29 18:30").isoformat(), date_of("29.2.2024"), date_of("2023-02-29")
    ('2024-02-29T18:30:00', None, None)
    >>> date_of("2024-02-29T18:30-05").isoformat()  # as PostgreSQL writes zones
    '2024-02-29T18:30:00-05:00'
    """
    form, read = {"date": (ISO_DATE, datetime.fromisoformat), "time": (ISO_TIME, time.fromisoformat)}[holds]
    try:
        return read(cell) if form.fullmatch(cell) else None
    except ValueError:  # no such day
        return None


# --- which kind of cells a column has ----------------------------------------------------------------


def find_kinds(
    table: Table, names: Sequence[str], blocks: Iterable[Block], note: Callable[[str], object] = len
) -> dict[str, Kind]:
    """Tell what each column holds. For a CSV file all cells are looked at, for Parquet the types and texts.

    `note` is told where cells that may have been meant as numbers make a column one of text.
    """
    if not isinstance(table, CsvFile):
        types = table.empty(names).dtypes
        dated = _written_dates([name for name in names if _may_be_texts(types[name])], blocks)
        return {name: "dates" if name in dated else _kind_of_type(types[name]) for name in names}
    kinds: dict[str, set[Kind]] = {name: set() for name in names}
    for block in blocks:
        for name, seen in kinds.items():
            if _together(seen) == "text":
                continue
            cells = block.columns[name]
            seen.update(map(_kind_of_cell, set(cells) - MISSING))
            if _together(seen) == "text" and (row := _stray_cell(cells)) is not None:
                note(
                    f"column {name!r} is taken for text, because of {brief(cells[row])} in "
                    f"{table.where(block.start + row)}. If its cells are numbers, write them like 1234.5, "
                    "and dates like 2024-01-31."
                )
    return {name: _together(seen) for name, seen in kinds.items()}


def _may_be_texts(dtype: Any) -> bool:
    """Tell whether cells of a type may be texts; pandas has objects for other values too."""
    return pandas.api.types.is_object_dtype(dtype) or isinstance(dtype, pandas.StringDtype)


def _written_dates(names: Sequence[str], blocks: Iterable[Block]) -> set[str]:
    """Return the columns, among some of a Parquet file, whose cells are texts and all of them dates."""
    left, dated = set(names), set[str]()
    for block in blocks if left else ():
        for name in tuple(left):
            cells = block.columns[name].dropna()
            if not all(isinstance(cell, str) and date_of(cell) for cell in set(cells) - MISSING):
                left.remove(name)
            elif not MISSING.issuperset(cells):
                dated.add(name)
        if not left:  # other columns of text are known for it by their first rows
            break
    return dated & left


def _kind_of_cell(cell: str) -> Kind:
    if cell in TRUTH:
        return "truth"
    if number_of(cell) is not None:
        return "numbers"
    return "text" if date_of(cell) is None else "dates"


def _together(kinds: set[Kind]) -> Kind:
    """Return what a column with cells of these kinds holds; one that is empty could hold numbers."""
    return "text" if len(kinds) > 1 else next(iter(kinds), "numbers")


def _stray_cell(cells: list[str]) -> int | None:
    """Return the first cell of another kind, if half of them are dates, numbers, or look like 1,234."""
    found = [(i, cell) for i, cell in enumerate(cells) if cell not in MISSING]
    alike = [LIKE_NUMBER.fullmatch(cell) is not None or number_of(cell) is not None for _, cell in found]
    dated = [date_of(cell) is not None for _, cell in found]
    if 2 * sum(dated) >= len(found):
        return next((i for (i, _), date in zip(found, dated, strict=True) if not date), None)
    if 2 * sum(alike) < len(found):
        return None
    return next((i for i, cell in found if _kind_of_cell(cell) != "numbers"), None)


def _kind_of_type(dtype: Any) -> Kind:
    if pandas.api.types.is_bool_dtype(dtype):
        return "truth"
    return "numbers" if pandas.api.types.is_numeric_dtype(dtype) else "text"


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
        return ValueError(f"{self.table.source}: column {self.name!r}, {where}: {what}")


def read_numbers(column: Column, place: Place, wrong: str = f"{{}} is not a number. {REPAIR}") -> Any:
    """Return numbers, NaN where missing; refuse the first cell that is neither, by the text `wrong`."""
    if not isinstance(column, list):
        if isinstance(getattr(column, "dtype", None), pandas.CategoricalDtype):
            column = column.astype(column.cat.categories.dtype)
        if pandas.api.types.infer_dtype(column, skipna=True) != "string":
            return _finite(column, place)  # else texts of a Parquet file, which may be numbers
        column = ["" if gap else value for value, gap in zip(column, column.isna(), strict=True)]
    values = list(map(number_of, column))
    if None in values:
        row = values.index(None)
        raise place.wrong(row, wrong.format(brief(column[row])))
    return _finite(numpy.array(values, dtype=numpy.float64), place, column)


def _finite(numbers: Any, place: Place, cells: Sequence[str] | None = None) -> Any:
    """Return numbers of which none is infinite."""
    if numbers.dtype.kind == "f" and numpy.isinf(numbers).any():
        row = int(numpy.isinf(numbers).argmax())
        text = str(numbers[row]) if cells is None else cells[row]
        raise place.wrong(row, f"{brief(text)} is infinite or too large. {REPAIR}")
    return numbers


def brief(cell: str, most: int = 60) -> str:
    """Quote a cell, or the beginning of a long one.

    >>> brief("old"), brief("a very long text", 6)
    ("'old'", "'a very...'")
    """
    return repr(cell if len(cell) <= most else f"{cell[:most]}...")


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


def read_dates(column: Column, place: Place, holds: str = "date") -> Any:
    """Return dates or times of day, None where missing; refuse the first cell that is neither.

    Durations have no common form in text.
    """
    if not isinstance(column, list):
        if pandas.api.types.infer_dtype(column, skipna=True) != "string":
            return column
        column = column.where(column.notna(), "").tolist()  # dates that a Parquet file holds as texts
    if holds == "duration":
        row = next((i for i, cell in enumerate(column) if cell not in MISSING), None)
        if row is not None:
            raise place.wrong(row, f"{brief(column[row])} stands for a duration, which Parquet files hold.")
    known = {cell: None if cell in MISSING else date_of(cell, holds) for cell in set(column)}
    wrong = {cell for cell, found in known.items() if found is None and cell not in MISSING}
    if wrong:
        row = next(i for i, cell in enumerate(column) if cell in wrong)
        like = {"date": "2024-01-31 or 2024-01-31T18:30", "time": "18:30"}[holds]
        raise place.wrong(row, f"{brief(column[row])} is not a {holds}. Write it like {like}. {REPAIR}")
    return pandas.Series([known[cell] for cell in column])


def make_frame(table: Table, block: Block, known: Known) -> Any:
    """Return the columns that a model knows, in its order and as it knows them."""
    columns = {}
    for name, categories in known.items():
        cells, place = block.columns[name], Place(table, name, block.start)
        if categories is None:
            columns[name] = read_numbers(cells, place)
        elif hasattr(categories, "holds"):
            columns[name] = read_dates(cells, place, categories.holds)
        elif not isinstance(categories, numpy.ndarray):
            columns[name] = read_categories(cells)  # text
        else:
            columns[name] = read_categories(cells, categories)
    return pandas.DataFrame(columns)


# --- targets -----------------------------------------------------------------------------------------


def gaps_of(column: Column, labels: Iterable[Any] = ()) -> numpy.ndarray:
    """Tell which rows have no target. A text such as NA is no gap where it is one of a model's labels."""
    missing = MISSING.difference(map(str, labels))
    return numpy.array([c in missing for c in column] if isinstance(column, list) else column.isna())


def refuse_gaps(gaps: numpy.ndarray, column: Column, place: Place) -> None:
    """Refuse a target that has a gap."""
    if gaps.any():
        row = int(gaps.argmax())
        what = f" ({column[row]!r})" if isinstance(column, list) and column[row] else ""
        raise place.wrong(row, f"the target is missing{what}. Fill it in, or remove the row.")


def texts_of(column: Column) -> list[str]:
    """Return labels as texts. Times are written as pandas writes one of them."""
    return [str(value) for value in column]
