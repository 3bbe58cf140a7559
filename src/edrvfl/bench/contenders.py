"""A method as it comes: what a user types who searches nothing, and how a frame is handed to it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .baselines.packages import missing_package, refuse_missing
from .data.frames import date_columns, text_columns

MOST_CATEGORIES = 255  # that scikit-learn's HistGradientBoosting takes in one column
MOSTLY_NEW = 0.5  # a column of text has so many values for each cell
EPOCH = np.datetime64("2000-01-01")

Prepared = tuple[Any, Any, dict[str, Any]]  # training rows, test rows, parameters of the estimator


def as_it_comes(train: Any, test: Any) -> Prepared:
    """Hand the frame over as it is."""
    return train, test, {}


def without_dates_and_text(train: Any, test: Any) -> Prepared:
    """Hand over numbers and categories alone: no dates, and no texts of which half or more come once."""
    gone = [c for c in text_columns(train) if train[c].nunique() >= MOSTLY_NEW * train[c].notna().sum()]
    gone += date_columns(train)
    return train.drop(columns=gone), test.drop(columns=gone), {}


def _days(rows: Any) -> Any:
    """Make numbers of dates, in days; a frame without dates stays as it is."""
    dates = {name: (rows[name] - EPOCH) / np.timedelta64(1, "D") for name in date_columns(rows)}
    return rows.assign(**dates) if dates else rows


def as_categories(train: Any, test: Any, **settings: Any) -> Prepared:
    """Give columns of texts pandas' category dtype, and make numbers of dates.

    A text that the training rows lack becomes missing.
    """
    names = text_columns(train)
    train, test = (_days(rows).astype(dict.fromkeys(names, "category")) for rows in (train, test))
    known = {name: test[name].cat.set_categories(train[name].cat.categories) for name in names}
    return train, test.assign(**known), settings


def as_categories_or_codes(train: Any, test: Any, *, most: int = MOST_CATEGORIES) -> Prepared:
    """Do as `as_categories`, but make numbers of a column of too many texts for the method."""
    train, test, settings = as_categories(train, test)
    many = [name for name in text_columns(train) if len(train[name].cat.categories) > most]

    def numbered(rows: Any) -> Any:
        codes = {name: rows[name].cat.codes.astype(float) for name in many}
        return rows.assign(**{name: column.where(column >= 0) for name, column in codes.items()})

    return numbered(train), numbered(test), settings


def as_numbered_categories(train: Any, test: Any) -> Prepared:
    """Do as `as_categories`, and number the columns: LightGBM refuses some characters in their names."""
    names = [f"column{i}" for i in range(train.shape[1])]
    return as_categories(train.set_axis(names, axis="columns"), test.set_axis(names, axis="columns"))


def as_named_texts(train: Any, test: Any, *, parameter: str = "cat_features") -> Prepared:
    """Name the columns of texts, and make a missing text a text of its own: CatBoost refuses gaps there."""
    names = text_columns(train)
    gaps = dict.fromkeys(names, "missing")
    # A tuple, because scikit-learn refuses to clone a CatBoost that was given a list.
    return _days(train).fillna(gaps), _days(test).fillna(gaps), {parameter: tuple(names)}


@dataclass(frozen=True, slots=True)
class Contender:
    """A method as it comes. Its functions are importable, or partials of such, for other processes."""

    name: str
    code: str  # what a user types, for the report
    estimator: Callable[..., Any]  # (random_state=seed, **parameters) -> estimator, not fitted
    prepare: Callable[[Any, Any], Prepared] | None = None  # how it takes frames; None if it takes none
    package: str = "sklearn"
    settings: Mapping[str, Any] = field(default_factory=dict)  # a part of the cell's key


def check_packages(contenders: Iterable[Contender]) -> None:
    """Raise an error that names everything the methods need and that is not installed."""
    refuse_missing(missing_package(one.name, one.package, "peers") for one in contenders)
