"""What the frames of the groups `tables` are before the study splits them: dates, texts and many categories.

Each has a date, a text, or a column of more than 50 categories. The package has dates as texts, and frames of
hundreds of thousands of rows: here dates become dates, and 3,000 rows are drawn.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

import numpy as np

from ..cell import seed_of
from .records import LATER, Frame, Split

MOST_ROWS = 3000
LEAST_OF_CLASS = 20  # rows; rarer classes are left out
LATER_SHARE = 0.25  # of the rows, the last ones

_AFTER_DEPARTURE = (
    *("year", "month", "day", "hour", "minute", "dep_time", "dep_delay"),
    *("arr_time", "arr_delay", "air_time"),
)
_BREEDS = ("license_number", "primary_breed", "secondary_breed")
_OTHER_SHARES = tuple(
    f"{kind}poll_{name}"
    for kind in ("raw", "adj")
    for name in ("clinton", "trump", "johnson", "mcmullin")
    if (kind, name) != ("raw", "trump")
)
# `frames.py` says what a row is.
TABLES = (
    # What is known before the plane leaves; the date has the parts of the day too.
    Frame("nycflights13", "flights", "arrived", 3000, 3, 5, 0, 2, dates=1, drop=_AFTER_DEPARTURE),
    Frame("carData", "MplsStops", "problem", 3000, 3, 7, 2206, 2, dates=1, drop=("idNum", "citationIssued")),
    # A breed is one of a species.
    Frame("openintro", "seattlepets", "species", 2998, 0, 2, 54, 2, dates=1, drop=_BREEDS),
    Frame("openintro", "birds", "phase_of_flt", 2981, 4, 10, 7075, 6, dates=1, drop=("opid",)),
    Frame(
        "openintro",
        "mn_police_use_of_force",
        "force_type",
        2981,
        2,
        8,
        3592,
        7,
        dates=1,
        drop=("force_type_action",),
    ),
    Frame("vcd", "Bundesliga", "winner", 3000, 2, 2, 1, 3, dates=1, drop=("HomeGoals", "AwayGoals")),
    Frame(
        "dslabs",
        "trump_tweets",
        "source",
        2910,
        2,
        2,
        0,
        6,
        dates=1,
        drop=("id_str", "in_reply_to_user_id_str"),
    ),
    Frame("Ecdat", "HHSCyberSecurityBreaches", "Type.of.Breach", 1071, 1, 6, 50, 7, dates=1),
    Frame("modeldata", "training_data", "score", 3000, 0, 2, 0, 2),
    Frame("medicaldata", "covid_testing", "result", 3000, 6, 8, 2697, 3, drop=("subject_id", "ct_result")),
)
TABLE_VALUES = (
    Frame("nycflights13", "planes", "year", 3000, 2, 5, 0, 0, drop=("speed",)),
    # These are the shares of the ratings.
    Frame(
        "ggplot2movies", "movies", "rating", 3000, 11, 2, 5455, 0, drop=tuple(f"r{i}" for i in range(1, 11))
    ),
    Frame("modeldata", "tate_text", "year", 3000, 0, 3, 0, 0, drop=("id",)),
    Frame("causaldata", "restaurant_inspections", "inspection_score", 3000, 2, 2, 0, 0),
    Frame("causaldata", "scorecard", "earnings_med", 3000, 4, 2, 193, 0, drop=("unitid",)),
    Frame(
        "dslabs", "polls_us_election_2016", "rawpoll_trump", 3000, 1, 4, 295, 0, dates=2, drop=_OTHER_SHARES
    ),
)
# The same with one split in time.
_WHEN = {
    "flights": "time_hour",
    "MplsStops": "date",
    "seattlepets": "license_issue_date",
    "birds": "date",
    "mn_police_use_of_force": "response_datetime",
    "Bundesliga": "Date",
    "trump_tweets": "created_at",
    "HHSCyberSecurityBreaches": "Breach.Submission.Date",
    "polls_us_election_2016": "enddate",
}


def in_time(rows: tuple[Frame, ...]) -> tuple[Frame, ...]:
    """Return the rows of the frames that have a date, with one split by it."""
    return tuple(replace(f, name=f.name + LATER, when=_WHEN[f.name]) for f in rows if f.name in _WHEN)


@dataclass(frozen=True, slots=True)
class Recipe:
    """How a frame of the package becomes a table: its columns of dates, and a target that has to be made."""

    dates: Mapping[str, str] = field(default_factory=dict)  # name -> format of `pandas.to_datetime`
    make: Callable[[Any], Any] = lambda table: table


def _with_delay(table: Any) -> Any:
    """Say which flights came more than a quarter of an hour late; what never arrived is left out."""
    late = np.where(table["arr_delay"] > 15, "late", "on time")
    return table.assign(arrived=late)[table["arr_delay"].notna()]


def _with_result(table: Any) -> Any:
    """Say who won a match."""
    results = np.array(["guests", "nobody", "hosts"])
    return table.assign(winner=results[np.sign(table["HomeGoals"] - table["AwayGoals"]) + 1])


def _in_text(table: Any) -> Any:
    """Take numbers of categories as texts."""
    return table.assign(flight=(table["carrier"] + table["flight"].astype(str)).astype(object))


# By the name of the frame in its package.
RECIPES: Mapping[str, Recipe] = MappingProxyType(
    {
        "flights": Recipe({"time_hour": "ISO8601"}, lambda table: _in_text(_with_delay(table))),
        "MplsStops": Recipe({"date": "ISO8601"}),
        "seattlepets": Recipe({"license_issue_date": "ISO8601"}),
        "birds": Recipe({"date": "%m/%d/%Y %H:%M:%S"}),
        "mn_police_use_of_force": Recipe({"response_datetime": "%Y/%m/%d %H:%M:%S"}),
        "Bundesliga": Recipe({"Date": "ISO8601"}, _with_result),
        "trump_tweets": Recipe({"created_at": "ISO8601"}),
        "HHSCyberSecurityBreaches": Recipe({"Breach.Submission.Date": "ISO8601"}),
        "polls_us_election_2016": Recipe({"startdate": "ISO8601", "enddate": "ISO8601"}),
        **{
            name: Recipe()
            for name in (
                *("training_data", "covid_testing", "planes", "movies"),
                *("tate_text", "restaurant_inspections", "scorecard"),
            )
        },
    }
)


def make_table(table: Any, name: str, target: str, classes: bool) -> Any:
    """Return at most `MOST_ROWS` rows in their order, with dates as dates and without rare classes."""
    pandas, recipe = importlib.import_module("pandas"), RECIPES[name]
    table = recipe.make(table).dropna(subset=target)
    rng = np.random.default_rng(seed_of("rows", name))
    table = table.iloc[np.sort(rng.permutation(len(table))[:MOST_ROWS])]
    if classes:
        table = table[table.groupby(target)[target].transform("size") >= LEAST_OF_CLASS]
    dates = {
        column: pandas.to_datetime(table[column], format=form, utc=True).dt.tz_localize(None).dt.as_unit("s")
        for column, form in recipe.dates.items()
    }
    return table.assign(**dates).reset_index(drop=True)


def split_in_time(dates: Any, codes: np.ndarray | None) -> Split:
    """Test the rows after a day, and train by those before.

    Rows without a date are for training, and so are those of a class that has no rows before.
    """
    test = (dates > dates.quantile(1 - LATER_SHARE)).to_numpy()
    if codes is not None:
        test = test & np.isin(codes, codes[~test])
    return Split(fit=~test, validation=np.zeros(len(test), dtype=bool), test=test)
