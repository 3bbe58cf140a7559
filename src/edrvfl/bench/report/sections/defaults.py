"""Methods as they come: accuracy, log-loss, calibration error and seconds, on frames and on the 24."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from ...comparison import average_ranks, comparable, mean, round_half_up
from ...data import FRAMES
from ...defaults import CONTENDERS, Defaults
from ...record import DefaultsRecord
from ...scores import CALIBRATION_BINS
from ..page import Grid, GridCell, GridRow, Section, count_cell, number_cell, status_cell, text_cell
from ..sentences import count
from ..summary import Summary

GROUPS = {"frames": "mixed frames", "uci24": "datasets of the paper", "others": "other datasets"}
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


MEASURES = (
    Measure("test_accuracy", "Test accuracy in percent", 2, scale=100, sign=1),
    Measure("log_loss", "Log-loss", 4),
    Measure("calibration_error", "Calibration error", 4),
    Measure("fit_seconds", "Seconds of one fit", 3, seconds=True),
    Measure("predict_seconds", "Seconds to answer the test rows", 3, seconds=True),
)


def show_defaults(s: Summary) -> Section | None:
    """Show every metric of the methods that were run at their defaults, with what a user types for each."""
    d = s.defaults
    if d is None:
        return None
    text = [
        "Every method at the defaults of its package, on one thread; nothing is searched. A fit is on the "
        "training rows of a split (fit and validation rows), the scores are on its test rows. A figure is "
        "the mean over splits and seeds, of seconds the median. Calibration error: the gap between "
        f"confidence and accuracy in {CALIBRATION_BINS} bins of equal width of the largest probability, "
        "weighted by their rows. Seconds do not count what a frame needs before a package takes it.",
        *(_leaders(d, group, datasets) for group, datasets in d.groups().items()),
    ]
    grids = [_frames_grid(d)] if "frames" in d.groups() else []
    for group, datasets in d.groups().items():
        grids += [_grid(d, group, datasets, measure) for measure in MEASURES]
    typed = [m for m in CONTENDERS if any(m == method for _, method in d.records)]
    items = tuple((name, CONTENDERS[name].code) for name in typed)
    return Section("defaults", "Methods at their defaults", tuple(text), items, grids=tuple(grids))


def _leaders(d: Defaults, group: str, datasets: Sequence[str]) -> str:
    """Say which method has the best average rank by accuracy and by log-loss."""
    said = []
    for measure in MEASURES[:2]:
        scores = comparable(_table(d, datasets, measure)).dropna()
        if ranks := average_ranks(measure.sign * scores):
            best = min(ranks, key=ranks.__getitem__)
            over = count(len(scores), "dataset")
            said.append(f"by {measure.title.lower()} {best} ({ranks[best]:.2f} over {over})")
    return f"Best average rank on the {GROUPS[group]}: {'; '.join(said) or 'none, nothing is complete'}."


def _table(d: Defaults, datasets: Sequence[str], measure: Measure) -> pd.DataFrame:
    """Make a score table, rounded as it is printed; NaN where there is no figure."""
    methods = d.methods(datasets)
    rows = [[_figure(d.records.get((name, m)), measure) for m in methods] for name in datasets]
    return pd.DataFrame(rows, index=list(datasets), columns=list(methods), dtype=float)


def _figure(record: DefaultsRecord | None, measure: Measure) -> float:
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
        notes=_notes(d, scores),
        folded=measure.seconds,
    )


def _cell(d: Defaults, scores: pd.DataFrame, measure: Measure, dataset: str, method: str) -> GridCell:
    value, row = float(scores.loc[dataset, method]), measure.sign * scores.loc[dataset]
    if math.isnan(value):
        record = d.records.get((dataset, method))
        return status_cell("missing" if record is None else record.status)
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


def _frames_grid(d: Defaults) -> Grid:
    """List the frames: where they come from and what they hold."""
    rows = []
    for name in d.groups()["frames"]:
        f = FRAMES[name]
        sizes = (f.rows, f.numbers, f.categories, f.missing, f.classes)
        cells = (text_cell(f.package), text_cell(f.target), *(count_cell(n) for n in sizes))
        rows.append(GridRow(name, cells))
    columns = ("frame", "package of R", "target", "rows", "columns of numbers", "of texts", "gaps", "classes")
    note = "Five stratified draws of 75 and 25 % of the rows; rows without a target are left out."
    return Grid("defaults-frames", "The mixed frames", columns, tuple(rows), notes=(note,))
