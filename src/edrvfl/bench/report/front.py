"""The first screen: what was compared, the answer, all methods by rank, and time against accuracy."""

from __future__ import annotations

import pandas as pd

from ..figures import MISSING, time_figure
from .page import ABSENT, Front, Grid, GridCell, GridRow, Picture, number_cell
from .sentences import PAPER, PAPER_LINK, WHAT, compared, count
from .sentences_answer import answer
from .standing import Entry, Standing
from .summary import Summary

COLUMNS = (
    "method",
    "accuracy %",
    "average rank",
    "log-loss",
    "calibration error",
    "seconds of a fit",
    "configurations tried",
)
CLEARLY = (
    "Clearly: by Wilcoxon's test at 0.05, after Holm over all pairs of the paper's methods. p: that test, "
    "after Holm over all pairs of this table. Ahead on: the datasets on which accuracy is higher."
)
LEAST_IS_BEST = frozenset(COLUMNS[2:6])


def make_front(summary: Summary) -> Front:
    """Lay out the first screen."""
    standing, said = summary.standing, answer(summary)
    return Front(
        WHAT,
        compared(standing),
        said,
        _grid(standing, notes=(CLEARLY,) if "clearly" in said[0] else ()) if standing.entries else None,
        _picture(standing),
        (PAPER, PAPER_LINK),
    )


def _grid(standing: Standing, notes: tuple[str, ...]) -> Grid:
    """Make one row for each line, best average rank first."""
    n, every = len(standing.ranks), len(standing.entries)
    over, gpu = count(len(standing.common), "dataset"), any(e.on_gpu for e in standing.entries.values())
    said = [
        f"Means over {over}, on test rows; ranks are by accuracy, among {n} methods. Seconds are of one fit, "
        "the geometric mean over datasets, on one thread of a processor, as each record was made: machines "
        "and what else they did differ; the section on training time has methods side by side"
        + ("; GPU: on a GPU, where fits side by side share the time." if gpu else ".")
    ]
    if n < every:
        said.append(
            "Methods without all datasets stand last, with the number that they have, and are not ranked."
        )
    return Grid(
        "standing",
        "All methods by average rank"
        + (" (strict choice)" if any(e.tuned for e in standing.entries.values()) else ""),
        COLUMNS,
        tuple(_row(standing, entry) for entry in standing.entries.values()),
        notes=(*said, *notes),
        sorted_by="average rank",
        least_is_best=LEAST_IS_BEST,
    )


def _row(standing: Standing, entry: Entry) -> GridRow:
    tried = GridCell(entry.configurations, max(r.configurations for r in entry.results.values()))
    if entry.name not in standing.ranks:
        has = f"{len(entry.results)} of {len(standing.datasets)}"
        return GridRow(entry.name, (GridCell(has, None, MISSING), *[ABSENT] * 4, tried), mark=entry.kind)
    common = standing.common
    cells = (
        number_cell(standing.means.get(entry.name)),
        number_cell(standing.ranks[entry.name]),
        number_cell(entry.mean("log_loss", common, 3), 3),
        number_cell(entry.mean("calibration_error", common, 3), 3),
        _seconds_cell(entry, entry.seconds(common)),
        tried,
    )
    return GridRow(entry.name, cells, mark=entry.kind)


def _seconds_cell(entry: Entry, seconds: float | None) -> GridCell:
    """Show seconds with two digits that count, and whether a GPU took them."""
    if seconds is None:
        return ABSENT
    text = f"{seconds:.0f}" if seconds >= 9.95 else f"{seconds:#.2g}"
    return GridCell(f"{text} GPU" if entry.on_gpu else text, seconds)


def _picture(standing: Standing) -> Picture | None:
    rows = []
    for entry in standing.entries.values():
        if entry.name in standing.ranks and (seconds := entry.seconds(standing.common)) is not None:
            accuracy = standing.means[entry.name]
            rows.append((entry.name, round(seconds, 6), accuracy, entry.kind, entry.on_gpu))
    if not rows:
        return None
    gpu = sum(on_gpu for *_, on_gpu in rows)
    where = (
        f" {gpu} of the {len(rows)} methods ran on a GPU (hollow), which the line of the best leaves out."
        if gpu
        else ""
    )
    return Picture(
        "time_and_accuracy",
        "Time to fit against accuracy: up and to the left is better",
        f"Seconds of one fit, mean test accuracy over {count(len(standing.common), 'dataset')}.{where}",
        pd.DataFrame(rows, columns=["method", "fit_seconds", "accuracy", "kind", "gpu"]),
        time_figure,
    )
