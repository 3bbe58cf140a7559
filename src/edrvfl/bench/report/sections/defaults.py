"""Methods as they come, on frames and on the 24: accuracy and probabilities, or R^2, and seconds."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import replace

from ...comparison import Ranking, average_ranks, mean, round_half_up, score_table
from ...data import FRAME_GROUPS
from ...defaults import Defaults
from ...methods import CONTENDERS, line_name, subject_first
from ...names import plural
from ...record import AsItComesRecord
from ...scores import ACCURACY, CALIBRATION, FIT_SECONDS, LOG_LOSS, R2, Metric
from ..page import Grid, GridCell, GridRow, Section, foot_of, make_row, score_grid
from ..sentences import CALIBRATION_ERROR
from ..summary import Summary

GROUPS = {
    "frames": "mixed frames",
    "confirmation": "frames of the confirmation",
    "values": "frames with values",
    "common": "common tables",
    "common-values": "common tables with values",
    "common-apart": "common tables put aside",
    "common-values-apart": "common tables with values put aside",
    "tables": "tables with dates, texts and many categories",
    "tables-later": "tables split in time",
    "tables-values": "tables with dates, texts and many categories, and values",
    "tables-values-later": "tables with values, split in time",
    "uci24": "datasets of the paper",
    "others": "other datasets",
    "other values": "other datasets with values",
}
NEAR_NOISE = "monks-3"  # its training and test files were standardised apart: see the oddities


_SECONDS = (
    replace(FIT_SECONDS, words="seconds of one fit"),
    Metric("predict_seconds", "seconds to answer the test rows", 3),
)
# By task. Errors in the units of a target have no mean over datasets, so R^2 stands alone.
MEASURES: Mapping[str, tuple[Metric, ...]] = {
    "classification": (
        *(replace(ACCURACY, words="test accuracy in percent"), LOG_LOSS, CALIBRATION),
        *_SECONDS,
    ),
    "regression": (replace(R2, words="R^2"), *_SECONDS),
}


def show_defaults(s: Summary) -> Section | None:
    """Show every metric of the methods that were run at their defaults, with what a user types for each."""
    d = s.study.defaults
    if d is None:
        return None
    groups = d.groups()
    text = (
        "Every method at the defaults of its package, on one thread; nothing is searched. A fit is on the "
        "training rows of a split (fit and validation rows), the scores are on its test rows. A figure is "
        f"the mean over splits and seeds, of seconds the median. Calibration error: {CALIBRATION_ERROR}. "
        "Seconds do not count what a frame needs before a package takes it.",
        *(_leaders(d, group, datasets) for group, datasets in groups.items()),
    )
    grids = [grid for group, datasets in groups.items() for grid in _overviews(d, group, datasets)]
    grids += [_frames_grid(group, groups[group]) for group in FRAME_GROUPS if group in groups]
    for group, datasets in groups.items():
        grids += [_grid(d, group, datasets, measure) for measure in MEASURES[d.task(datasets)]]
    return Section("defaults", "Methods at their defaults", text, _typed(d), grids=tuple(grids))


def _typed(d: Defaults) -> tuple[tuple[str, str], ...]:
    """List what a user types for each method, for classes and then for values."""
    occurring = {(record.task, method) for (_, method), record in d.records.items()}
    return tuple(
        (name if task == "classification" else f"{name}, values", row.code)
        for task, rows in CONTENDERS.items()
        for name, row in rows.items()
        if (task, name) in occurring
    )


def _rank(d: Defaults, datasets: Sequence[str], measure: Metric) -> Ranking:
    """Rank the methods by their figures as they are printed, the subject's columns first."""
    methods = d.methods(datasets)
    cells = {(name, m): _figure(d.records.get((name, m)), measure) for name in datasets for m in methods}
    table = score_table(cells, datasets, methods, measure.digits)
    empty = [method for method in methods if table[method].isna().all()]
    ranks = Ranking.of(table, measure.digits, measure.sign).ranks
    return Ranking.of(table[list(subject_first(methods, ranks, empty))], measure.digits, measure.sign)


def _figure(record: AsItComesRecord | None, measure: Metric) -> float:
    if record is None or record.status != "ok":
        return math.nan
    if measure.is_seconds:
        return statistics.median(s for row in getattr(record, measure.key) for s in row)
    return measure.scale * record.mean(measure.key)


def _ranked(measures: Sequence[Metric]) -> list[Metric]:
    """Return the measures that methods are ranked by: at most the first two, never seconds."""
    return [measure for measure in measures[:2] if not measure.is_seconds]


def _leaders(d: Defaults, group: str, datasets: Sequence[str]) -> str:
    """Say which method has the best average rank by accuracy and by log-loss, or by R^2."""
    said = []
    for measure in _ranked(MEASURES[d.task(datasets)]):
        if by_rank := (ranking := _rank(d, datasets, measure)).by_rank:
            over = plural(len(ranking.common), "dataset")
            said.append(f"by {measure.words} {by_rank[0]} ({ranking.ranks[by_rank[0]]:.2f} over {over})")
    return f"Best average rank on the {GROUPS[group]}: {'; '.join(said) or 'none, nothing is complete'}."


# --- one line for each method ------------------------------------------------------------------------


def _overviews(d: Defaults, group: str, datasets: Sequence[str]) -> list[Grid]:
    """Show all methods in one table, and in a second one without the dataset that is near noise."""
    grids = [_overview(d, datasets, f"defaults-{group}-overview", f"All in one table, {GROUPS[group]}")]
    if NEAR_NOISE in datasets and len(datasets) > 1:
        rest = [name for name in datasets if name != NEAR_NOISE]
        key, caption = f"defaults-{group}-overview-rest", f"The same without {NEAR_NOISE}"
        grids.append(_overview(d, rest, key, caption))
    return [grid for grid in grids if grid.rows]


def _overview(d: Defaults, datasets: Sequence[str], key: str, caption: str) -> Grid:
    """Average each metric over the datasets that all compared methods have."""
    measures = MEASURES[d.task(datasets)]
    first = _rank(d, datasets, measures[0])
    common, methods = first.common, list(first.compared) if first.ranks else []
    shown, ranked = measures[:-1], _ranked(measures)
    ranks = [average_ranks(m.sign * _rank(d, common, m).scores[methods]) for m in ranked] if methods else []
    rows = []
    for name in sorted(methods, key=lambda name: ranks[0][name]):
        figures = (_mean_cell(d, common, name, measure) for measure in shown)
        rows.append(make_row(name, *figures, *(by_method[name] for by_method in ranks)))
    notes = [
        f"Means over {plural(len(common), 'dataset')}, and standard deviations of these means over the "
        "seeds, where there are several. Seconds are means here and medians below."
    ]
    if first.behind:
        notes.append(f"Not shown, because they have fewer datasets: {', '.join(first.behind)}.")
    columns = ("method", *(m.title for m in shown), *(f"Average rank by {m.words}" for m in ranked))
    return Grid(key, caption, columns, _mark_best(rows, shown), notes=tuple(notes))


def _mean_cell(d: Defaults, datasets: Sequence[str], method: str, measure: Metric) -> GridCell:
    """Show the mean of the printed figures, as below the single tables, with its deviation over the seeds."""
    digits = measure.digits
    average, sd = (measure.scale * value for value in d.mean_and_sd(datasets, method, measure.key))
    if not measure.is_seconds:
        figures = (_figure(d.records[name, method], measure) for name in datasets)
        average = mean((round_half_up(figure, digits) for figure in figures), digits)
    average = round_half_up(average, digits)
    spread = "" if math.isnan(sd) else f" ± {round_half_up(sd, digits):.{digits}f}"
    return GridCell(f"{average:.{digits}f}{spread}", average)


def _mark_best(rows: Sequence[GridRow], shown: Sequence[Metric]) -> tuple[GridRow, ...]:
    """Mark the best of each column; of the ranks, which follow the metrics, the least is the best."""
    columns = []
    for i, column in enumerate(zip(*(row.cells for row in rows), strict=True)):
        pick = max if i < len(shown) and shown[i].sign > 0 else min
        best = pick(cell.value for cell in column) if len(rows) > 1 else None
        columns.append([replace(cell, mark="best") if cell.value == best else cell for cell in column])
    by_row = zip(*columns, strict=True)
    return tuple(replace(row, cells=cells) for row, cells in zip(rows, by_row, strict=True))


# --- one table for each metric -----------------------------------------------------------------------


def _grid(d: Defaults, group: str, datasets: Sequence[str], measure: Metric) -> Grid:
    ranking = _rank(d, datasets, measure)
    failed = {pair: r for pair, r in d.records.items() if pair[0] in datasets and r.status != "ok"}
    grid = score_grid(
        f"defaults-{group}-{measure.key}",
        f"{measure.title}, {GROUPS[group]}",
        ranking,
        beside={pair: r.status for pair, r in failed.items()},
        notes=[f"{r.method} on {r.dataset} failed: {r.message or 'no message'}" for r in failed.values()],
        folded=True,  # the overview says it in one table
    )
    foot = grid.foot
    if NEAR_NOISE in datasets and len(datasets) > 1:
        rest = ranking.scores.drop(index=NEAR_NOISE)
        foot += foot_of(Ranking.of(rest, measure.digits, measure.sign), f" without {NEAR_NOISE}")
    lines = (line_name(method, tuned=False) for method in ranking.scores)
    return replace(grid, foot=foot, methods=(None, *lines))


def _frames_grid(group: str, datasets: Sequence[str]) -> Grid:
    """List the frames: where they come from and what they hold."""
    classes = all(FRAME_GROUPS[group][name].task == "classification" for name in datasets)
    rows, of_dates = [], ["of dates"] if group.startswith("tables") else []
    for name in datasets:
        f = FRAME_GROUPS[group][name]
        dates = [f.dates] if of_dates else []
        sizes = (f.rows, f.numbers, f.categories, *dates, f.missing, *([f.classes] if classes else []))
        rows.append(make_row(name, f.package, f.target, *sizes))
    draws = "stratified draws" if classes else "draws"
    sizes_of = (
        "rows",
        "columns of numbers",
        "of texts",
        *of_dates,
        "gaps",
        *(["classes"] if classes else []),
    )
    columns = ("frame", "package", "target", *sizes_of)
    split = "The last quarter of the rows is tested" if f.when else f"Five {draws} of 75 and 25 % of the rows"
    note = f"{split}; rows without a target are left out."
    return Grid(f"defaults-{group}", f"The {GROUPS[group]}", columns, tuple(rows), notes=(note,), folded=True)
