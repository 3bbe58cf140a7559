"""Test accuracy of every method on every dataset, for both choices."""

from __future__ import annotations

import math

import pandas as pd

from ...figures import heatmap_figure
from ..page import Grid, GridCell, GridRow, Picture, Section, number_cell, status_cell
from ..sentences import count, points_apart, what_is_compared
from ..summary import ChoiceSummary, Summary


def show_accuracy(s: Summary) -> Section:
    """Show the accuracies as a heat map and as tables."""
    if not s.strict.methods:
        return Section("accuracy", "Accuracy", ("There are no figures to show.",))
    gaps = [r.scored["paper"].accuracy - r.scored["strict"].accuracy for r in s.with_status("ok")]
    text = (
        f"Over {count(len(gaps), 'cell')} the paper's choice is on average "
        f"{points_apart(sum(gaps) / len(gaps))} the strict one."
    )
    grids = tuple(_accuracy_grid(s, choice) for choice in s.choices.values())
    return Section("accuracy", "Accuracy", (text,), pictures=(_heatmap(s.strict.scores),), grids=grids)


def _heatmap(scores: pd.DataFrame) -> Picture:
    rows = [(d, m, scores.loc[d, m]) for d in scores.index for m in scores]
    return Picture(
        "accuracy_by_dataset",
        "Test accuracy in percent by dataset and method (strict choice)",
        f"{count(len(scores), 'row')}, one for each dataset, and a column for each method; the darker a "
        "cell, the farther it is behind the best of its row.",
        pd.DataFrame(rows, columns=["dataset", "method", "accuracy"]),
        heatmap_figure,
    )


def _accuracy_grid(s: Summary, choice: ChoiceSummary) -> Grid:
    methods = choice.methods
    rows = tuple(GridRow(d, tuple(_cell(s, choice, d, m) for m in methods)) for d in choice.scores.index)
    foot = (
        GridRow("mean", tuple(number_cell(choice.means.get(m)) for m in methods)),
        GridRow("average rank", tuple(number_cell(choice.ranks.get(m)) for m in methods)),
    )
    return Grid(
        f"accuracy-{choice.name}",
        f"Test accuracy in percent, {choice.name} choice",
        ("dataset", *methods),
        rows,
        foot,
        methods=(None, *methods),
        notes=(what_is_compared(choice), "The best of a dataset is marked with *."),
        scores=True,
    )


def _cell(s: Summary, choice: ChoiceSummary, dataset: str, method: str) -> GridCell:
    value, result = float(choice.scores.loc[dataset, method]), s.results[dataset, method]
    if math.isnan(value):
        return status_cell(result.status)
    sd = result.scored[choice.name].sd
    text = f"{value:.2f}" + ("" if sd is None else f" ± {sd:.2f}")
    best = len(choice.methods) > 1 and value == choice.scores.loc[dataset].max()
    return GridCell(text, value, "best" if best else "")
