"""The report's sections, one file each. A section is a function from the summary to a `Section` or None."""

from __future__ import annotations

import pandas as pd

from ... import paper
from ...comparison import DIGITS, round_half_up
from ..page import Page
from ..sentences import TITLE, answer
from ..summary import CHOICES, Summary
from .accuracy import show_accuracy
from .defaults import show_defaults
from .depth_and_time import show_depth_and_time
from .how import show_run
from .missing import show_missing
from .oddities import show_oddities
from .origins import show_origins
from .probabilities import show_probabilities
from .published import show_published
from .ranks import show_ranks
from .sensitivity import show_sensitivity
from .timing import show_timing

SECTIONS = (  # in the order of the page
    show_run,
    show_accuracy,
    show_ranks,
    show_probabilities,
    show_published,
    show_depth_and_time,
    show_defaults,
    show_sensitivity,
    show_timing,
    show_missing,
    show_origins,
    show_oddities,
)


def make_page(summary: Summary) -> Page:
    """Lay out the report."""
    found = [section for show in SECTIONS if (section := show(summary)) is not None]
    return Page(TITLE, answer(summary), summary.methods, tuple(found), results_table(summary))


def results_table(summary: Summary) -> pd.DataFrame:
    """Make one row for each dataset, method and choice: the report as data."""

    def rounded(value: float | None, digits: int = DIGITS) -> float | None:
        return None if value is None else round_half_up(value, digits)

    printed = paper.accuracies().stack().to_dict()
    rows = []
    for pair, r in summary.results.items():
        for choice in CHOICES:
            s = r.scored.get(choice)
            rows.append(
                {
                    "dataset": r.dataset,
                    "method": r.method,
                    "choice": choice,
                    "status": r.status,
                    "accuracy": s and rounded(s.accuracy),
                    "sd": s and rounded(s.sd),
                    "balanced_accuracy": s and rounded(s.balanced_accuracy),
                    "log_loss": s and rounded(s.log_loss, 4),
                    "calibration_error": s and rounded(s.calibration_error, 4),
                    "published": printed.get(pair),
                    "depth": s and "/".join(map(str, s.depth)),
                    "configurations": r.configurations or None,
                    "seeds": r.seeds or None,
                    "fit_seconds": s and rounded(r.fit_seconds, 4),
                    "search_seconds": s and rounded(r.search_seconds),
                    "message": r.message,
                }
            )
    return pd.DataFrame(rows, dtype=object)  # object: a column of whole numbers with gaps stays whole
