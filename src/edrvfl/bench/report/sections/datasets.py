"""A panel for each dataset: all methods on it, best first, with every seed as a dot."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ...data import ALL_FRAMES, UCI24
from ...methods import kind_of, line_name
from ...names import plural
from ...record import Scored
from ..page import ABSENT, Grid, GridCell, GridRow, Section, make_row, number_cell, panel_key
from ..standing import CHOICE
from ..summary import Summary

AT_THE_EDGE = 0.15  # this share of the dots, the worst, stands at the left edge, so that the others spread


@dataclass(frozen=True, slots=True)
class Panel:
    """What a panel shows of a task: the metric that orders it, and the others."""

    metric: str
    title: str
    scale: int
    digits: int
    others: tuple[tuple[str, str, int], ...]  # metric, title, digits


PANELS = {
    "classification": Panel(
        *("test_accuracy", "accuracy %", 100, 2),
        (("log_loss", "log-loss", 4), ("calibration_error", "calibration error", 4)),
    ),
    "regression": Panel("r2", "R²", 1, 4, (("rmse", "root mean squared error", 4),)),
}


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


def _grid(dataset: str, panel: Panel, lines: Sequence[Line]) -> Grid | None:
    seeds = {e.name: panel.scale * e.scored.by_seed(panel.metric) for e in lines if e.scored is not None}
    if not seeds:
        return None
    more = dict.fromkeys(name for line in lines for name in getattr(line.scored, "more", ()))
    panel = replace(panel, others=(*panel.others, *((name, name, 4) for name in more)))
    every = np.concatenate(list(seeds.values()))
    low, high = float(np.quantile(every, AT_THE_EDGE)), float(every.max())
    order = sorted(lines, key=lambda e: -float(seeds[e.name].mean()) if e.name in seeds else np.inf)
    rows = tuple(_row(panel, line, seeds.get(line.name), low, high, i == 0) for i, line in enumerate(order))
    titles = (panel.title, "each seed", *(title for _, title, _ in panel.others))
    return Grid(
        panel_key(dataset),
        f"{dataset}{_facts(dataset)}",
        ("method", *titles, "seconds of a fit", "configurations tried"),
        rows,
        folded=True,
        holds="methods",
        least_is_best=frozenset((*titles[2:], "seconds of a fit")),
    )


def _row(panel: Panel, line: Line, seeds: np.ndarray | None, low: float, high: float, best: bool) -> GridRow:
    kind = kind_of(line.name)
    if seeds is None or line.scored is None:
        cells = (GridCell(line.status, None, line.status), *[ABSENT] * (2 + len(panel.others)), ABSENT)
        return make_row(line.name, *cells, method=line.name, mark=kind)
    mean, sd = float(seeds.mean()), float(seeds.std(ddof=1)) if len(seeds) > 1 else None
    spread = "" if sd is None else f" ± {sd:.{panel.digits}f}"
    score = GridCell(f"{mean:.{panel.digits}f}{spread}", mean, "best" if best else "")
    ends = f"{seeds.min():.{panel.digits}f} to {seeds.max():.{panel.digits}f}"
    places = np.clip((seeds - low) / max(high - low, 1e-12), 0, 1)
    dots = replace(GridCell(ends, float(seeds.min())), dots=tuple(float(place) for place in places))
    others = [line.scored.mean(metric) for metric, _, _ in panel.others]
    figures = [
        number_cell(None if np.isnan(value) else value, digits)
        for value, (_, _, digits) in zip(others, panel.others, strict=True)
    ]
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
