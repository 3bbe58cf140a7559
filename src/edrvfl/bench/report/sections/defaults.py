"""Methods as they come, on frames and on the 24: accuracy and probabilities, or R^2, and seconds."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

import pandas as pd

from ...comparison import average_ranks, comparable, mean, round_half_up
from ...data import FRAME_GROUPS
from ...defaults import Defaults
from ...figures import MISSING
from ...methods import CONTENDERS, line_name, subject_first
from ...record import AsItComesRecord
from ..page import Grid, GridCell, GridRow, Section, count_cell, number_cell, status_cell, text_cell
from ..sentences import CALIBRATION_ERROR, count
from ..summary import Summary

GROUPS = {
    "frames": "mixed frames",
    "confirmation": "frames of the confirmation",
    "values": "frames with values",
    "uci24": "datasets of the paper",
    "others": "other datasets",
    "other values": "other datasets with values",
}
NEAR_NOISE = "monks-3"  # its training and test files were standardised apart: see the oddities


@dataclass(frozen=True, slots=True)
class Measure:
    """How one metric is shown."""

    metric: str
    title: str
    digits: int
    scale: int = 1
    sign: int = -1  # 1 if more is better
    seconds: bool = False

    @property
    def name(self) -> str:
        """Write the title as it stands inside a sentence."""
        return self.title if self.title.isupper() else self.title.lower()


_SECONDS = (
    Measure("fit_seconds", "Seconds of one fit", 3, seconds=True),
    Measure("predict_seconds", "Seconds to answer the test rows", 3, seconds=True),
)
# By task. Errors in the units of a target have no mean over datasets, so R^2 stands alone.
MEASURES: Mapping[str, tuple[Measure, ...]] = MappingProxyType(
    {
        "classification": (
            Measure("test_accuracy", "Test accuracy in percent", 2, scale=100, sign=1),
            Measure("log_loss", "Log-loss", 4),
            Measure("calibration_error", "Calibration error", 4),
            *_SECONDS,
        ),
        "regression": (Measure("r2", "R^2", 4, sign=1), *_SECONDS),
    }
)


def show_defaults(s: Summary) -> Section | None:
    """Show every metric of the methods that were run at their defaults, with what a user types for each."""
    d = s.defaults
    if d is None:
        return None
    text = [
        "Every method at the defaults of its package, on one thread; nothing is searched. A fit is on the "
        "training rows of a split (fit and validation rows), the scores are on its test rows. A figure is "
        f"the mean over splits and seeds, of seconds the median. Calibration error: {CALIBRATION_ERROR}. "
        "Seconds do not count what a frame needs before a package takes it.",
        *(_leaders(d, group, datasets) for group, datasets in d.groups().items()),
    ]
    groups = d.groups()
    grids = [grid for group, datasets in groups.items() for grid in _overviews(d, group, datasets)]
    grids += [_frames_grid(group, groups[group]) for group in FRAME_GROUPS if group in groups]
    for group, datasets in groups.items():
        grids += [_grid(d, group, datasets, measure) for measure in MEASURES[d.task(datasets)]]
    return Section("defaults", "Methods at their defaults", tuple(text), _typed(d), grids=tuple(grids))


def _typed(d: Defaults) -> tuple[tuple[str, str], ...]:
    """List what a user types for each method, for classes and then for values."""
    occurring = {(record.task, method) for (_, method), record in d.records.items()}
    return tuple(
        (name if task == "classification" else f"{name}, values", row.code)
        for task, rows in CONTENDERS.items()
        for name, row in rows.items()
        if (task, name) in occurring
    )


def _ranked(measures: Sequence[Measure]) -> list[Measure]:
    """Return the measures that methods are ranked by: at most the first two, never seconds."""
    return [measure for measure in measures[:2] if not measure.seconds]


def _leaders(d: Defaults, group: str, datasets: Sequence[str]) -> str:
    """Say which method has the best average rank by accuracy and by log-loss, or by R^2."""
    said = []
    for measure in _ranked(MEASURES[d.task(datasets)]):
        scores = comparable(_table(d, datasets, measure)).dropna()
        if ranks := average_ranks(measure.sign * scores):
            best = min(ranks, key=ranks.__getitem__)
            over = count(len(scores), "dataset")
            said.append(f"by {measure.name} {best} ({ranks[best]:.2f} over {over})")
    return f"Best average rank on the {GROUPS[group]}: {'; '.join(said) or 'none, nothing is complete'}."


# --- one line for each method ------------------------------------------------------------------------


def _overviews(d: Defaults, group: str, datasets: Sequence[str]) -> list[Grid]:
    """Show all methods in one table, and in a second one without the dataset that is near noise."""
    grids = [_overview(d, datasets, f"defaults-{group}-overview", f"All in one table, {GROUPS[group]}")]
    if NEAR_NOISE in datasets and len(datasets) > 1:
        rest = [name for name in datasets if name != NEAR_NOISE]
        key, caption = f"defaults-{group}-overview-rest", f"The same without {NEAR_NOISE}"
        grids.append(_overview(d, rest, key, caption))
    return [grid for grid in grids if grid is not None]


def _overview(d: Defaults, datasets: Sequence[str], key: str, caption: str) -> Grid | None:
    """Average each metric over the datasets that all compared methods have; None if there is no such one."""
    measures = MEASURES[d.task(datasets)]
    compared = comparable(_table(d, datasets, measures[0])).dropna()
    if compared.empty:
        return None
    common, methods = list(compared.index), list(compared)
    shown, ranked = measures[:-1], _ranked(measures)
    ranks = [average_ranks(m.sign * _table(d, common, m)[methods]) for m in ranked]
    rows = []
    for name in methods:
        figures = [_mean_cell(d, common, name, measure) for measure in shown]
        rows.append(GridRow(name, (*figures, *(number_cell(by_method[name]) for by_method in ranks))))
    rows.sort(key=lambda row: ranks[0][row.head])
    notes = [
        f"Means over {count(len(common), 'dataset')}, and standard deviations of these means over the seeds, "
        "where there are several. Seconds are means here and medians below."
    ]
    if behind := [m for m in d.methods(datasets) if m not in methods]:
        notes.append(f"Not shown, because they have fewer datasets: {', '.join(behind)}.")
    columns = ("method", *(m.title for m in shown), *(f"Average rank by {m.name}" for m in ranked))
    return Grid(key, caption, columns, _mark_best(rows, shown), notes=tuple(notes))


def _mean_cell(d: Defaults, datasets: Sequence[str], method: str, measure: Measure) -> GridCell:
    """Show the mean of the printed figures, as below the single tables, with its deviation over the seeds."""
    average, sd = (measure.scale * value for value in d.mean_and_sd(datasets, method, measure.metric))
    if not measure.seconds:
        average = mean((_figure(d.records[name, method], measure) for name in datasets), measure.digits)
    average = round_half_up(average, measure.digits)
    spread = "" if math.isnan(sd) else f" ± {round_half_up(sd, measure.digits):.{measure.digits}f}"
    return GridCell(f"{average:.{measure.digits}f}{spread}", average)


def _mark_best(rows: Sequence[GridRow], shown: Sequence[Measure]) -> tuple[GridRow, ...]:
    """Mark the best of each column; of the ranks, which follow the metrics, the least is the best."""
    signs = [*(m.sign for m in shown), *[-1] * (len(rows[0].cells) - len(shown))]

    def marked(cell: GridCell, i: int) -> GridCell:
        column = [row.cells[i].value for row in rows]
        values = [signs[i] * value for value in column if isinstance(value, float)]
        best = isinstance(cell.value, float) and len(rows) > 1 and signs[i] * cell.value == max(values)
        return replace(cell, mark="best") if best else cell

    return tuple(replace(row, cells=tuple(marked(c, i) for i, c in enumerate(row.cells))) for row in rows)


# --- one table for each metric -----------------------------------------------------------------------


def _table(d: Defaults, datasets: Sequence[str], measure: Measure) -> pd.DataFrame:
    """Make a score table, rounded as it is printed; NaN where there is no figure."""
    methods = d.methods(datasets)
    rows = [[_figure(d.records.get((name, m)), measure) for m in methods] for name in datasets]
    table = pd.DataFrame(rows, index=list(datasets), columns=list(methods), dtype=float)
    empty = [method for method in methods if table[method].isna().all()]
    return table[list(subject_first(methods, average_ranks(measure.sign * comparable(table)), empty))]


def _figure(record: AsItComesRecord | None, measure: Measure) -> float:
    if record is None or record.status != "ok":
        return math.nan
    if measure.seconds:
        found = statistics.median(s for row in getattr(record, measure.metric) for s in row)
    else:
        found = record.mean(measure.metric)
    return round_half_up(measure.scale * found, measure.digits)


def _grid(d: Defaults, group: str, datasets: Sequence[str], measure: Measure) -> Grid:
    scores = _table(d, datasets, measure)
    cells = {name: tuple(_cell(d, scores, measure, name, m) for m in scores) for name in datasets}
    foot = _foot(scores, measure, "")
    if NEAR_NOISE in datasets and len(datasets) > 1:
        foot += _foot(scores.drop(index=NEAR_NOISE), measure, f" without {NEAR_NOISE}")
    return Grid(
        f"defaults-{group}-{measure.metric}",
        f"{measure.title}, {GROUPS[group]}",
        ("dataset", *scores.columns),
        tuple(GridRow(name, row) for name, row in cells.items()),
        foot,
        methods=(None, *(line_name(method, tuned=False) for method in scores)),
        notes=_notes(d, scores),
        folded=True,  # the overview says it in one table
    )


def _cell(d: Defaults, scores: pd.DataFrame, measure: Measure, dataset: str, method: str) -> GridCell:
    value, row = float(scores.loc[dataset, method]), measure.sign * scores.loc[dataset]
    if math.isnan(value):
        record = d.records.get((dataset, method))
        return status_cell(MISSING if record is None else record.status)
    best = scores.shape[1] > 1 and measure.sign * value == row.max()
    return GridCell(f"{value:.{measure.digits}f}", value, "best" if best else "")


def _foot(scores: pd.DataFrame, measure: Measure, what: str) -> tuple[GridRow, ...]:
    """Average over the datasets that all compared methods have."""
    complete = comparable(scores).dropna()
    if complete.empty:
        return ()
    means = {method: mean(complete[method], measure.digits) for method in complete}
    ranks = average_ranks(measure.sign * complete)
    return (
        GridRow(f"mean{what}", tuple(number_cell(means.get(m), measure.digits) for m in scores)),
        GridRow(f"average rank{what}", tuple(number_cell(ranks.get(m)) for m in scores)),
    )


def _notes(d: Defaults, scores: pd.DataFrame) -> tuple[str, ...]:
    """Say what the foot is over, and why a cell has no figure."""
    compared = comparable(scores)
    best = "The best of a dataset is marked with *."
    notes = [f"Means and ranks are over the {count(len(compared.dropna()), 'dataset')} without a gap. {best}"]
    if behind := [m for m in scores if m not in compared]:
        notes.append(f"Not compared, because they have fewer: {', '.join(behind)}.")
    pairs = [(name, m) for name in scores.index for m in scores]
    if any(pair not in d.records for pair in pairs):
        notes.append("A missing cell has no record in this store; `edrvfl bench defaults` makes it.")
    failed = [r for pair in pairs if (r := d.records.get(pair)) is not None and r.status != "ok"]
    return (*notes, *(f"{r.method} on {r.dataset} failed: {r.message or 'no message'}" for r in failed))


def _frames_grid(group: str, datasets: Sequence[str]) -> Grid:
    """List the frames: where they come from and what they hold."""
    classes = all(FRAME_GROUPS[group][name].task == "classification" for name in datasets)
    rows = []
    for name in datasets:
        f = FRAME_GROUPS[group][name]
        sizes = (f.rows, f.numbers, f.categories, f.missing, *([f.classes] if classes else []))
        cells = (text_cell(f.package), text_cell(f.target), *(count_cell(n) for n in sizes))
        rows.append(GridRow(name, cells))
    package = "package of R" if classes else "package"
    sizes_of = ("rows", "columns of numbers", "of texts", "gaps", *(["classes"] if classes else []))
    columns = ("frame", package, "target", *sizes_of)
    draws = "stratified draws" if classes else "draws"
    note = f"Five {draws} of 75 and 25 % of the rows; rows without a target are left out."
    return Grid(f"defaults-{group}", f"The {GROUPS[group]}", columns, tuple(rows), notes=(note,), folded=True)
