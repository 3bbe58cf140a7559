"""The first screen: what was compared, the answer, all methods by rank, and time against accuracy."""

from __future__ import annotations

import pandas as pd

from ..figures import MISSING, time_figure
from ..names import plural
from .page import ABSENT, Front, Grid, GridCell, GridRow, Picture, make_row, number_cell
from .sentences import compared
from .sentences_answer import answer
from .standing import Entry, Standing
from .summary import Summary

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
