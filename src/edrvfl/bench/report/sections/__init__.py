"""The report's sections, one file each. A section is a function from the summary to a `Section` or None."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import pandas as pd

from ... import paper
from ...comparison import DIGITS, round_half_up
from ...methods import kind_of
from ...record import Choice
from ..front import make_front
from ..page import Page
from ..standing import Entry, Standing
from ..study import Result
from ..summary import CHOICES, Summary
from .accuracy import show_accuracy, show_depth
from .datasets import show_datasets
from .defaults import show_defaults
from .probabilities import show_probabilities
from .published import show_differences, show_published
from .ranks import show_ranks
from .run import show_missing, show_oddities, show_origins, show_run
from .sensitivity import show_sensitivity
from .timing import show_timing

RESULT_COLUMNS = (
    *("dataset", "method", "choice", "status", "accuracy", "average_rank", "sd", "balanced_accuracy"),
    *("log_loss", "calibration_error", "published", "depth", "configurations", "seeds"),
    *("fit_seconds", "search_seconds", "message"),
)
SECTIONS = (  # in the order of the page
    show_accuracy,
    show_ranks,
    show_probabilities,
    show_published,
    show_differences,
    show_depth,
    show_defaults,
    show_datasets,
    show_sensitivity,
    show_timing,
    show_run,
    show_missing,
    show_origins,
    show_oddities,
)


def make_page(summary: Summary) -> Page:
    """Lay out the report."""
    found = [section for show in SECTIONS if (section := show(summary)) is not None]
    standing = tuple(summary.standing.scores)
    methods = (*standing, *(m for m in summary.methods if m not in standing))
    subject = tuple(m for m in methods if kind_of(m) == "ours")
    return Page(make_front(summary), methods, subject, tuple(found), results_table(summary))


def results_table(summary: Summary) -> pd.DataFrame:
    """Make the report as data: a row for each method over all datasets, then one for each of its results.

    A method as it comes has chosen nothing, so it stands under the choice "default".
    """
    standing = summary.standing
    rows = [_mean_row(standing, entry) for entry in standing.entries.values() if entry.name in standing.ranks]
    rows += [_result_row(r, choice, choice) for r in summary.results.values() for choice in CHOICES]
    unsearched = [entry for entry in standing.entries.values() if not entry.tuned]
    rows += [_result_row(r, "strict", "default") for entry in unsearched for r in entry.results.values()]
    return pd.DataFrame(rows, columns=RESULT_COLUMNS, dtype=object)  # whole numbers with gaps stay whole


def _mean_row(standing: Standing, entry: Entry) -> dict[str, Any]:
    """Make the row of a method's means, with its rank."""
    common = standing.common
    return {
        "dataset": f"all {len(common)}",
        "method": entry.name,
        "choice": "strict" if entry.tuned else "default",
        "status": "ok",
        "accuracy": standing.means[entry.name],
        "average_rank": standing.ranks[entry.name],
        "log_loss": entry.mean("log_loss", common, 4),
        "calibration_error": entry.mean("calibration_error", common, 4),
        "configurations": entry.configurations if entry.tuned else 1,
        "fit_seconds": _rounded(entry.seconds(common), 4),
    }


def _result_row(r: Result, choice: str, name: str) -> dict[str, Any]:
    """Make the row of one method on one dataset, by one choice."""
    s = r.scored.get(choice)
    return {
        "dataset": r.dataset,
        "method": r.line,
        "choice": name,
        "status": r.status,
        "accuracy": s and _rounded(s.accuracy),
        "sd": s and _rounded(s.sd),
        "balanced_accuracy": s and _rounded(100 * s.mean("balanced_accuracy")),
        "log_loss": s and _rounded(s.mean("log_loss"), 4),
        "calibration_error": s and _rounded(s.mean("calibration_error"), 4),
        "published": _published().get((r.dataset, r.line)),
        "depth": "/".join(map(str, s.depth)) if isinstance(s, Choice) else s and "",
        "configurations": r.configurations or None,
        "seeds": r.seeds or None,
        "fit_seconds": s and _rounded(r.fit_seconds, 4),
        "search_seconds": s and _rounded(r.search_seconds),
        "message": r.message,
    }


@cache
def _published() -> dict[Any, float]:
    return dict(paper.accuracies().stack().to_dict())


def _rounded(value: float | None, digits: int = DIGITS) -> float | None:
    return None if value is None or math.isnan(value) else round_half_up(value, digits)
