"""Read a user's own table from a CSV file."""

from __future__ import annotations

import difflib
import math
import zlib
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np

from .catalogue import ALIASES, DEMO, GROUPS, UCI24
from .records import DataError, Dataset, draw_dataset, import_extra

MISSING = frozenset({"", "?", "na", "n/a", "nan", "null", "none"})
# From these numbers on, drawing a quarter and then a quarter of the rest leaves every class in every part
# that needs it: scikit-learn wants a row for each class in a part, and the fit rows must know all classes.
MIN_CLASS_ROWS = 3
MIN_MEAN_ROWS = 6

Frame = Any  # pandas is imported only when a table is read, since it takes half a second
Label = Decimal | str


def csv_dataset(path: str | Path, target: str) -> Dataset:
    """Read a table: comma-separated, with a header, numeric columns, and the classes in column `target`.

    The dataset is named after the file. Its splits are drawn in the same way as those of the demo group.
    """
    path = Path(path)
    name = path.name.removesuffix(".gz").removesuffix(".csv")
    if name.casefold() in {known.casefold() for known in (*UCI24, *DEMO, *GROUPS, *ALIASES)}:
        raise DataError(f"{path}: {name!r} already names a dataset of the study; rename the file")
    cells = _read_cells(path)
    if target not in cells:
        near = difflib.get_close_matches(target, list(cells), n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise DataError(f"{path}: there is no column {target!r}.{hint} Columns: {', '.join(cells)}")
    gaps = _first_cells(cells, cells.apply(lambda column: column.str.lower().isin(MISSING)))
    if gaps:
        raise DataError(f"{path}: values are missing in {gaps}; fill them in, or drop these rows or columns")
    inputs = cells.drop(columns=target)
    if inputs.empty:
        raise DataError(f"{path}: {target!r} is the only column; add at least one numeric column")
    numbers = inputs.map(_number)
    words = _first_cells(inputs, ~np.isfinite(numbers))
    if words:
        raise DataError(f"{path}: columns must hold finite numbers, but see {words}; encode or drop them")
    codes, classes = _encode_labels(path, target, list(cells[target]))
    return draw_dataset(name, numbers.to_numpy(), codes, classes)


def _read_cells(path: Path) -> Frame:
    """Read a CSV file as a frame of texts, without the spaces around them; every column has its own name."""
    pandas = import_extra("pandas", "a table of your own")
    try:
        # The header is read as a row, because pandas would rename columns that have the same name.
        table = pandas.read_csv(
            path,
            header=None,
            dtype=str,
            keep_default_na=False,
            encoding="utf-8-sig",
            compression="gzip" if path.suffix == ".gz" else None,
        )
    except pandas.errors.EmptyDataError:
        table = pandas.DataFrame()
    except (OSError, EOFError, zlib.error, ValueError) as error:
        raise DataError(
            f"{path}: cannot be read as comma-separated text in UTF-8 ({str(error).strip()}); "
            "correct the file"
        ) from error
    if len(table) < 2:
        raise DataError(f"{path}: expected a header and rows below it, got {len(table)} line(s)")
    table = table.apply(lambda column: column.str.strip())
    header = list(table.iloc[0])
    if "" in header:
        at = header.index("") + 1
        raise DataError(f"{path}: column {at} has no name; name it, or drop it if it is an index")
    repeated = [key for key, count in Counter(header).items() if count > 1]
    if repeated:
        raise DataError(f"{path}: column names must differ, but these repeat: {', '.join(repeated)}")
    return table[1:].set_axis(header, axis="columns").reset_index(drop=True)


def _first_cells(cells: Frame, wrong: Frame) -> str:
    """Name the columns that have a wrong cell, each with the first one; the text is empty if none has."""
    firsts = {key: int(wrong[key].argmax()) for key in wrong.columns[wrong.any()]}
    return ", ".join(f"{key!r} (row {row + 1}: {cells[key].iloc[row]!r})" for key, row in firsts.items())


def _number(cell: str) -> float:
    """Read a number; NaN stands for everything else, also for 1_000, which Python would read."""
    try:
        return math.nan if "_" in cell else float(cell)
    except ValueError:
        return math.nan


def _encode_labels(path: Path, target: str, labels: list[str]) -> tuple[np.ndarray, tuple[str, ...]]:
    """Return the code of every label and the classes, sorted by value, or by letter if some are words."""
    # `1` and `1.0` are one class. Decimal compares their values without rounding, however long they are.
    keys: list[Label] = [Decimal(label) if math.isfinite(_number(label)) else label for label in labels]
    spelling: dict[Label, str] = {}
    for key, label in zip(keys, labels, strict=True):
        spelling.setdefault(key, label)  # a class is called what it is called first
    _check_class_sizes(path, target, [spelling[key] for key in keys])
    numeric = all(isinstance(key, Decimal) for key in spelling)
    order: list[Any] = sorted(spelling, key=None if numeric else spelling.__getitem__)
    code = {key: i for i, key in enumerate(order)}
    return np.array([code[key] for key in keys]), tuple(spelling[key] for key in order)


def _check_class_sizes(path: Path, target: str, labels: list[str]) -> None:
    """Raise a DataError if there are too few classes, or too few rows to split them."""
    counts = Counter(labels)
    smallest = min(counts, key=counts.__getitem__)
    if len(counts) < 2:
        raise DataError(f"{path}: {target!r} must have two or more classes, got only {smallest!r}")
    if counts[smallest] < MIN_CLASS_ROWS or len(labels) < MIN_MEAN_ROWS * len(counts):
        raise DataError(
            f"{path}: the splits need {MIN_CLASS_ROWS} rows of every class and {MIN_MEAN_ROWS} on average; "
            f"{target!r} has {len(counts)} classes in {len(labels)} rows, {counts[smallest]} of them of "
            f"{smallest!r}; merge or drop small classes, and check that this column holds classes"
        )
