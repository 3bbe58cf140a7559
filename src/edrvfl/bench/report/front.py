"""The first screen: what was compared, the answer, all methods by rank, and time against accuracy."""

from __future__ import annotations

from collections import Counter

import pandas as pd

from .. import paper
from ..comparison import ALPHA, compare_pairs
from ..figures.points import time_figure
from ..methods import TABLE
from ..names import MISSING, listing, plural
from .page import ABSENT, Front, Grid, GridCell, GridRow, Picture, make_row, number_cell, p_text
from .sentences import compared, leader
from .standing import Entry, Standing
from .summary import Summary

PORTFOLIO = "edRVFL portfolio"
BLANK = "\N{NO-BREAK SPACE}"  # keeps a number and its sign on one line
COLUMNS = (
    *("method", "accuracy %", "average rank", "log-loss"),
    *("calibration error", "seconds of a fit", "configurations tried"),
)
NOTES = (
    "Seconds are of one fit, the geometric mean over datasets, on one thread of a processor, as each record "
    "was made: machines and what else they did differ; the section on training time has methods side by "
    "side; GPU: on a GPU, where fits side by side share the time.",
    "Methods without all datasets stand last, with the number that they have, and are not ranked.",
    "Clearly: by Wilcoxon's test at 0.05, after Holm over all pairs of the paper's methods. p: that test, "
    "after Holm over all pairs of this table. Ahead on: the datasets on which accuracy is higher.",
)


def make_front(summary: Summary) -> Front:
    """Lay out the first screen."""
    standing = summary.standing
    grid = _grid(standing) if standing.entries else None
    return Front(compared(standing), answer(summary), grid, _picture(standing))


def _grid(standing: Standing) -> Grid:
    """Make one row for each line, best average rank first."""
    over, n = plural(len(standing.common), "dataset"), len(standing.ranks)
    return Grid(
        "standing",
        "All methods by average rank (strict choice)",
        COLUMNS,
        tuple(_row(standing, entry) for entry in standing.entries.values()),
        notes=(f"Means over {over}, on test rows; ranks are by accuracy, among {n} methods.", *NOTES),
        sorted_by="average rank",
        least_is_best=frozenset(COLUMNS[2:6]),
    )


def _row(standing: Standing, entry: Entry) -> GridRow:
    tried = GridCell(entry.configurations, max(r.configurations for r in entry.results.values()))
    if entry.name not in standing.ranks:
        has = GridCell(f"{len(entry.results)} of {len(standing.scores)}", None, MISSING)
        return make_row(entry.name, has, *[ABSENT] * 4, tried, mark=entry.kind)
    common = standing.common
    return make_row(
        entry.name,
        standing.means[entry.name],
        standing.ranks[entry.name],
        number_cell(entry.mean("log_loss", common, 3), 3),
        number_cell(entry.mean("calibration_error", common, 3), 3),
        _seconds_cell(entry, entry.seconds(common)),
        tried,
        mark=entry.kind,
    )


def _seconds_cell(entry: Entry, seconds: float | None) -> GridCell:
    """Show seconds with two digits that count, and whether a GPU took them."""
    if seconds is None:
        return ABSENT
    text = f"{seconds:.0f}" if seconds >= 9.95 else f"{seconds:#.2g}"
    return GridCell(f"{text} GPU" if entry.on_gpu else text, seconds)


def _picture(standing: Standing) -> Picture | None:
    rows = [
        (entry.name, round(seconds, 6), standing.means[entry.name], entry.kind, entry.on_gpu)
        for entry in standing.entries.values()
        if entry.name in standing.ranks and (seconds := entry.seconds(standing.common)) is not None
    ]
    if not rows:
        return None
    return Picture(
        "time_and_accuracy",
        "Time to fit against accuracy: up and to the left is better",
        f"Seconds of one fit, mean test accuracy over {plural(len(standing.common), 'dataset')}. "
        f"{sum(on_gpu for *_, on_gpu in rows)} of the {plural(len(rows), 'method')} ran on a GPU (hollow), "
        "which the line of the best leaves out.",
        pd.DataFrame(rows, columns=["method", "fit_seconds", "accuracy", "kind", "gpu"]),
        time_figure,
    )


def answer(summary: Summary) -> tuple[str, str]:
    """Say where WPedRVFL stands among the paper's methods and where the portfolio stands among boosting.

    A study that has not enough of these says which method is best, and whether its lead is more than chance.
    """
    standing = summary.standing
    if not standing.entries:
        states = Counter(r.status for r in summary.results.values())
        counted = ", ".join(f"{n} {status}" for status, n in states.items()) or "no cells at all"
        return (
            f"There is no finished cell of a search to report on. The store holds {counted}.",
            "What follows from the published tables alone is below.",
        )
    first, second = leader(standing, "accuracy")
    return _among_the_papers(standing) or first, _among_boosting(standing) or second


def _among_the_papers(standing: Standing) -> str | None:
    """Say where WPedRVFL stands among the paper's methods and tuned boosting; None if it cannot be said."""
    every = tuple(paper.accuracies())
    methods = [m for m in standing.by_rank if m in every]
    if paper.BEST not in methods or len(methods) < 3:
        return None
    # The ranks are those of the table beside it, so that the two agree; the tests are among the paper's own.
    pairs = compare_pairs(standing.compared[methods])
    ahead = methods[: methods.index(paper.BEST)]
    signs = Counter(pairs.sign(paper.BEST, m, holm=True) for m in methods if m != paper.BEST)
    who = "" if len(methods) == len(every) else f"{len(methods)} of the "
    place = f"behind {listing(ahead)}" if ahead else "first"
    return (
        f"Among the {who}paper's {len(every)} methods, each tuned, {paper.BEST} "
        f"({_percent(standing.means[paper.BEST])}) ranks {place}, clearly better than "
        f"{signs['+'] or 'none'} of the other {len(methods) - 1} and clearly worse than "
        f"{signs['-'] or 'none'}{_against(standing, paper.BEST, '; it ranks ')}."
    )


def _among_boosting(standing: Standing) -> str | None:
    """Say where the portfolio stands among tuned and default boosting; None if it is not there."""
    if PORTFOLIO not in standing.ranks:
        return None
    losses = {m: standing.entries[m].mean("log_loss", standing.common, 3) for m in standing.ranks}
    mine, known = losses[PORTFOLIO] or 0.0, [loss for loss in losses.values() if loss is not None]
    defaults = _boosting(standing, tuned=False)
    beaten = sum(standing.ranks[PORTFOLIO] < standing.ranks[m] for m in defaults)
    at_defaults = f" and of {beaten or 'none'} of {len(defaults)} at their defaults" if defaults else ""
    return (
        f"The {PORTFOLIO}, without any search, reaches {_percent(standing.means[PORTFOLIO])}"
        f"{_against(standing, PORTFOLIO, ' and ranks ')}{at_defaults}; its log-loss, {mine:.3f}, has "
        f"place {1 + sum(loss < mine for loss in known)} of {len(known)}."
    )


def _boosting(standing: Standing, *, tuned: bool) -> list[str]:
    """List the boosting packages that have all datasets, best rank first."""
    packages = [row.name for row in TABLE.values() if row.boosting]
    entries = standing.entries
    return [m for m in standing.by_rank if entries[m].method in packages and entries[m].tuned is tuned]


def _against(standing: Standing, method: str, begin: str) -> str:
    """Say how many tuned boosting packages a method is ahead of, and how it compares with the best of them.

    The p-value is adjusted over all pairs of the table beside the sentence, as in the report's tables.
    """
    boosting = _boosting(standing, tuned=True)
    if not boosting:
        return ""
    best, beaten = boosting[0], sum(standing.ranks[method] < standing.ranks[m] for m in boosting)
    pair = standing.pairs.pair(method, best)
    clear = "significant" if pair.p_holm < ALPHA else "not significant"
    return (
        f"{begin}ahead of {beaten or 'none'} of {plural(len(boosting), 'tuned boosting package')} (best: "
        f"{standing.entries[best].method}, {_percent(standing.means[best])}; ahead on {pair.wins} of "
        f"{len(standing.common)}, {clear} among {len(standing.ranks)} methods, "
        f"p{BLANK}={BLANK}{p_text(pair.p_holm)})"
    )


def _percent(value: float) -> str:
    return f"{value:.2f}{BLANK}%"
