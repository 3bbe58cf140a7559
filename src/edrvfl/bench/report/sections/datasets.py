"""A panel for each dataset: all methods on it, best first, with every seed as a dot."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ...data import ALL_FRAMES, UCI24
from ...methods import kind_of, line_name
from ...names import plural
from ...record import Scored
from ...scores import ACCURACY, CALIBRATION, LOG_LOSS, R2, RMSE, Metric
from ..page import ABSENT, Grid, GridCell, GridRow, Section, make_row, number_cell, panel_key
from ..standing import CHOICE
from ..summary import Summary

AT_THE_EDGE = 0.15  # this share of the dots, the worst, stands at the left edge, so that the others spread


# By task what a panel shows; the first metric orders it.
PANELS = {"classification": (ACCURACY, LOG_LOSS, CALIBRATION), "regression": (R2, RMSE)}


@dataclass(frozen=True, slots=True)
class Line:
    """A method on a dataset: its figures, or the word that stands in their place."""

    name: str
    scored: Scored | None
    configurations: int = 1
    status: str = "ok"


def show_datasets(s: Summary) -> Section | None:
    """Show all methods dataset by dataset, folded; the names of datasets in other tables lead here."""
    grids = [grid for name, task, lines in _datasets(s) if (grid := _grid(name, PANELS[task], lines))]
    if not grids:
        return None
    text = (
        f"All methods on each of {plural(len(grids), 'dataset')}, best first; the name of a dataset in any "
        "table leads to its panel. Figures are means over splits and seeds, of searches by the strict "
        "choice, of seconds the median. A dot is one seed, its mean over the splits: better is further "
        f"right, and the worst {AT_THE_EDGE:.0%} of the dots of a panel stand at its left edge."
    )
    return Section("datasets", "Dataset by dataset", (text,), grids=tuple(grids))


def _datasets(s: Summary) -> Iterator[tuple[str, str, list[Line]]]:
    """List the datasets with their tasks and lines: those of the searches, then those at defaults alone."""
    records = {} if s.study.defaults is None else s.study.defaults.records
    first = tuple(s.standing.scores.index)
    for dataset in first:
        entries = [e for e in s.standing.entries.values() if dataset in e.results]
        found = [Line(e.name, (r := e.results[dataset]).scored[CHOICE], r.configurations) for e in entries]
        without = [r for r in s.results.values() if r.dataset == dataset and CHOICE not in r.scored]
        yield dataset, "classification", [*found, *(Line(r.line, None, 0, r.status) for r in without)]
    for dataset in dict.fromkeys(name for name, _ in records if name not in first):
        some = [record for (name, _), record in records.items() if name == dataset]
        lines = [
            Line(line_name(r.method, tuned=False), r if r.status == "ok" else None, status=r.status)
            for r in some
        ]
        yield dataset, some[0].task, lines


def _grid(dataset: str, metrics: tuple[Metric, ...], lines: Sequence[Line]) -> Grid | None:
    first = metrics[0]
    seeds = {e.name: first.scale * e.scored.by_seed(first.key) for e in lines if e.scored is not None}
    if not seeds:
        return None
    more = dict.fromkeys(name for line in lines for name in getattr(line.scored, "more", ()))
    metrics = (*metrics, *(Metric(name, name, 4) for name in more))
    every = np.concatenate(list(seeds.values()))
    low, high = float(np.quantile(every, AT_THE_EDGE)), float(every.max())
    order = sorted(lines, key=lambda e: -float(seeds[e.name].mean()) if e.name in seeds else np.inf)
    rows = tuple(_row(metrics, line, seeds.get(line.name), low, high, i == 0) for i, line in enumerate(order))
    titles = (first.words, "each seed", *(metric.words for metric in metrics[1:]))
    return Grid(
        panel_key(dataset),
        f"{dataset}{_facts(dataset)}",
        ("method", *titles, "seconds of a fit", "configurations tried"),
        rows,
        folded=True,
        holds="methods",
        least_is_best=frozenset((*titles[2:], "seconds of a fit")),
    )


def _row(
    metrics: Sequence[Metric], line: Line, seeds: np.ndarray | None, low: float, high: float, best: bool
) -> GridRow:
    kind, (first, *others) = kind_of(line.name), metrics
    if seeds is None or line.scored is None:
        cells = (GridCell(line.status, None, line.status), *[ABSENT] * (2 + len(others)), ABSENT)
        return make_row(line.name, *cells, method=line.name, mark=kind)
    mean, sd = float(seeds.mean()), float(seeds.std(ddof=1)) if len(seeds) > 1 else None
    spread = "" if sd is None else f" ± {sd:.{first.digits}f}"
    score = GridCell(f"{mean:.{first.digits}f}{spread}", mean, "best" if best else "")
    ends = f"{seeds.min():.{first.digits}f} to {seeds.max():.{first.digits}f}"
    places = np.clip((seeds - low) / max(high - low, 1e-12), 0, 1)
    dots = replace(GridCell(ends, float(seeds.min())), dots=tuple(float(place) for place in places))
    means = [(line.scored.mean(metric.key), metric.digits) for metric in others]
    figures = [number_cell(None if np.isnan(value) else value, digits) for value, digits in means]
    seconds = GridCell(f"{line.scored.seconds:.3g}", line.scored.seconds)
    return make_row(
        line.name, score, dots, *figures, seconds, line.configurations, method=line.name, mark=kind
    )


def _facts(dataset: str) -> str:
    """Say how large a dataset is, if the study knows it."""
    entry = UCI24.get(dataset) or ALL_FRAMES.get(dataset)
    if entry is None:
        return ""
    classes = f", {entry.classes} classes" if entry.classes else ""
    return f", {entry.rows:,} rows, {plural(entry.features, 'column')}{classes}"
