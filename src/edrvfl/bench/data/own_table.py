"""Read a user's own table from a file."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np

from ..tables import Table, check_names, need_column, open_table
from .catalogue import ALIASES, DEMO, GROUPS, UCI24
from .frames import ALL_FRAMES
from .records import DataError, Dataset, draw_dataset, import_extra

# From these numbers on, drawing a quarter and then a quarter of the rest leaves every class in every part
# that needs it: scikit-learn wants a row for each class in a part, and the fit rows must know all classes.
MIN_CLASS_ROWS = 3
MIN_MEAN_ROWS = 6

Label = Decimal | str


def csv_dataset(path: str | Path, target: str) -> Dataset:
    """Read a table: comma-separated, with a header, numeric columns, and the classes in column `target`.

    The dataset is named after the file. Its splits are drawn in the same way as those of the demo group.
    """
    path = Path(path)
    name = table_name(path)
    import_extra("pandas", "a table of your own")
    table = open_table(path, ",")
    table = replace(table, names=[name.strip() for name in table.names])
    check_names(table)
    need_column(table, target, "--target")
    if "" in table.names:
        at = table.names.index("") + 1
        raise DataError(f"{path}: column {at} has no name; name it, or drop it if it is an index")
    if len(table.names) == 1:
        raise DataError(f"{path}: {target!r} is the only column; add at least one numeric column")
    numbers, labels = _read(table, target)
    codes, classes = _encode_labels(path, target, labels)
    return draw_dataset(name, numbers, codes, classes)


def table_name(path: Path, *, frames: bool = False) -> str:
    """Return the name of a table's dataset, which none of the study may have."""
    name = path.name.removesuffix(".gz").removesuffix(".csv")
    taken = (*UCI24, *DEMO, *GROUPS, *ALIASES, *(ALL_FRAMES if frames else ()))
    if name.casefold() in {known.casefold() for known in taken}:
        raise DataError(f"{path}: {name!r} already names a dataset of the study; rename the file")
    return name


def _read(table: Table, target: str) -> tuple[np.ndarray, list[str]]:
    """Return the numbers of all rows (rows, columns) and their labels; refuse gaps."""
    from .. import cells as read  # with pandas, which takes half a second

    parts, labels = [], list[str]()
    for block in table.blocks(table.names):
        columns = []
        for name, cells in block.columns.items():
            place = read.Place(table, name, block.start)
            if name == target:
                read.refuse_gaps(read.gaps_of(cells), cells, place)
                labels += [label.strip() for label in read.texts_of(cells)]
                continue
            numbers = np.asarray(read.read_numbers(cells, place), dtype=float)
            if (gaps := np.isnan(numbers)).any():
                raise place.wrong(int(gaps.argmax()), "a value is missing; fill it in, or drop row or column")
            columns.append(numbers)
        parts.append(np.column_stack(columns))
    return np.concatenate(parts), labels


def _encode_labels(path: Path, target: str, labels: list[str]) -> tuple[np.ndarray, tuple[str, ...]]:
    """Return the code of every label and the classes, sorted by value, or by letter if some are words."""
    # `1` and `1.0` are one class. Decimal compares their values without rounding, however long they are.
    keys: list[Label] = [Decimal(label) if _is_number(label) else label for label in labels]
    spelling: dict[Label, str] = {}
    for key, label in zip(keys, labels, strict=True):
        spelling.setdefault(key, label)  # a class is called what it is called first
    check_class_sizes(path, target, [spelling[key] for key in keys])
    numeric = all(isinstance(key, Decimal) for key in spelling)
    order: list[Any] = sorted(spelling, key=None if numeric else spelling.__getitem__)
    code = {key: i for i, key in enumerate(order)}
    return np.array([code[key] for key in keys]), tuple(spelling[key] for key in order)


def _is_number(label: str) -> bool:
    try:
        return "_" not in label and math.isfinite(float(label))  # Python would read 1_000
    except ValueError:
        return False


def check_class_sizes(path: Path, target: str, labels: list[Any]) -> None:
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
