"""What the frames of the groups `tables` are before the study splits them: dates, texts and many categories.

Each has a date, a text, or a column of more than 50 categories. The package has dates as texts, and frames of
hundreds of thousands of rows: here dates become dates, and 3,000 rows are drawn.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..cell import seed_of
from .records import Split

MOST_ROWS = 3000
LEAST_OF_CLASS = 20  # rows; rarer classes are left out
LATER_SHARE = 0.25  # of the rows, the last ones


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
RECIPES: Mapping[str, Recipe] = {
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
