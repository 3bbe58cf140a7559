"""Test accuracy of every method on every dataset, for both choices, and validation accuracy by depth."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import pandas as pd

from ...comparison import Ranking
from ...figures.charts import depth_figure, heatmap_figure
from ...methods import kind_of
from ...names import plural
from ..page import Grid, Picture, Section, score_grid
from ..sentences import points_apart
from ..standing import Standing
from ..study import Pair, Result
from ..summary import Summary

HEATMAP_METHODS = 15  # whose figures fit side by side


def show_accuracy(s: Summary) -> Section:
    """Show the accuracies as a heat map and as tables: all methods by the strict choice, then the paper's."""
    standing = s.standing
    if not standing.entries:
        return Section("accuracy", "Accuracy", ("There are no figures to show.",))
    gaps = [r.scored["paper"].accuracy - r.scored["strict"].accuracy for r in s.with_status("ok")]
    text = (
        f"Over {plural(len(gaps), 'cell')}, each a method on a dataset, the paper's choice is on average "
        f"{points_apart(sum(gaps) / max(1, len(gaps)))} the strict one."
    )
    strict = Ranking(standing.scores.dropna(how="all"), standing.compared)
    results = {(d, e.name): r for e in standing.entries.values() for d, r in e.results.items()}
    grids = [_grid("strict", strict, {**s.results, **results})]
    if s.paper.scores.size:
        grids.append(_grid("paper", s.paper, s.results))
    pictures = (_heatmap(standing, strict.scores),)
    return Section("accuracy", "Accuracy", (text,), pictures=pictures, grids=tuple(grids))


def _heatmap(standing: Standing, scores: pd.DataFrame) -> Picture:
    """Draw the subject and the best of the others, as many as can be read; the table has all."""
    by_rank = [*(m for m in standing.entries if kind_of(m) == "ours"), *standing.entries]
    shown = set(tuple(dict.fromkeys(by_rank))[:HEATMAP_METHODS])
    methods = [m for m in scores if m in shown]
    rows = [(d, m, scores.loc[d, m]) for d in scores.index for m in methods]
    return Picture(
        "accuracy_by_dataset",
        "Test accuracy in percent by dataset and method (strict choice)",
        "The darker a cell, the farther it is behind the best of its row. "
        f"{len(methods)} of {plural(scores.shape[1], 'method')}, edRVFL and the best of the others.",
        pd.DataFrame(rows, columns=["dataset", "method", "accuracy"]),
        heatmap_figure,
    )


def _grid(choice: str, ranking: Ranking, results: Mapping[Pair, Result]) -> Grid:
    """Show accuracies with their standard deviations, or why there is none."""
    beside = {}
    for pair, r in results.items():
        spread = r.scored[choice].sd if choice in r.scored else None
        beside[pair] = r.status if spread is None else "" if math.isnan(spread) else f" ± {spread:.2f}"
    caption = f"Test accuracy in percent, {choice} choice"
    return score_grid(f"accuracy-{choice}", caption, ranking, beside=beside)


def show_depth(s: Summary) -> Section | None:
    """Average each depth over the datasets that all methods with several depths have."""
    curves = {pair: c for pair, c in s.study.depth_accuracies.items() if len(c) > 1}
    deep = [m for m in s.methods if any(m == method for _, method in curves)]
    common = [d for d in s.datasets if deep and all((d, m) in curves for m in deep)]
    if not common:
        return None
    rows = []
    for method in deep:
        deepest = min(len(curves[d, method]) for d in common)
        by_depth = np.mean([curves[d, method][:deepest] for d in common], axis=0)
        rows += [(method, l, round(float(value), 4), len(common)) for l, value in enumerate(by_depth, 1)]
    picture = Picture(
        "accuracy_by_depth",
        f"Validation accuracy in percent by depth, mean over {plural(len(common), 'dataset')}",
        "Each depth with its own best configuration, so these are choices, not test figures.",
        pd.DataFrame(rows, columns=["method", "depth", "accuracy", "datasets"]),
        depth_figure,
    )
    return Section("depth", "Depth", pictures=(picture,))
