"""Test accuracy of every method on every dataset, for both choices."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import pandas as pd

from ...figures import MISSING, heatmap_figure
from ...methods import kind_of
from ..page import Grid, GridCell, GridRow, Picture, Section, number_cell, status_cell
from ..sentences import count, points_apart, what_is_compared
from ..standing import Standing
from ..study import Pair, Result
from ..summary import ChoiceSummary, Summary

HEATMAP_METHODS = 15  # whose figures fit side by side
BEST = "The best of a dataset is marked with *."


def show_accuracy(s: Summary) -> Section:
    """Show the accuracies as a heat map and as tables: all methods by the strict choice, then the paper's."""
    if not s.standing.entries:
        return Section("accuracy", "Accuracy", ("There are no figures to show.",))
    gaps = [r.scored["paper"].accuracy - r.scored["strict"].accuracy for r in s.with_status("ok")]
    text: tuple[str, ...] = ()
    if gaps:
        apart = points_apart(sum(gaps) / len(gaps))
        text = (
            f"Over {count(len(gaps), 'cell')}, each a method on a dataset, the paper's choice is on average "
            f"{apart} the strict one.",
        )
    scores = s.standing.scores.dropna(how="all")
    grids = [_strict_grid(s, scores)]
    if s.paper.methods:
        grids.append(_paper_grid(s, s.paper))
    return Section("accuracy", "Accuracy", text, pictures=(_heatmap(s.standing, scores),), grids=tuple(grids))


def _heatmap(standing: Standing, scores: pd.DataFrame) -> Picture:
    """Draw the subject and the best of the others, as many as can be read; the table has all."""
    by_rank = [*(m for m in standing.entries if kind_of(m) == "ours"), *standing.entries]
    shown = set(tuple(dict.fromkeys(by_rank))[:HEATMAP_METHODS])
    methods = [m for m in scores if m in shown]
    rows = [(d, m, scores.loc[d, m]) for d in scores.index for m in methods]
    best = (
        f" {len(methods)} of {scores.shape[1]} methods, edRVFL and the best of the others."
        if len(methods) < scores.shape[1]
        else ""
    )
    return Picture(
        "accuracy_by_dataset",
        "Test accuracy in percent by dataset and method (strict choice)",
        f"The darker a cell, the farther it is behind the best of its row.{best}",
        pd.DataFrame(rows, columns=["dataset", "method", "accuracy"]),
        heatmap_figure,
    )


def _strict_grid(s: Summary, scores: pd.DataFrame) -> Grid:
    standing = s.standing
    results = {(d, e.name): r for e in standing.entries.values() for d, r in e.results.items()}
    notes = (_over(standing), BEST)
    return _grid("strict", scores, {**s.results, **results}, (standing.means, standing.ranks), notes)


def _paper_grid(s: Summary, choice: ChoiceSummary) -> Grid:
    notes = (what_is_compared(choice), BEST)
    return _grid("paper", choice.scores, s.results, (choice.means, choice.ranks), notes)


def _grid(
    choice: str,
    scores: pd.DataFrame,
    results: Mapping[Pair, Result],
    foot: Sequence[Mapping[str, float]],
    notes: tuple[str, ...],
) -> Grid:
    methods = tuple(scores)
    rows = []
    for d in scores.index:
        best = scores.loc[d].max() if len(methods) > 1 else None
        rows.append(
            GridRow(d, tuple(_cell(choice, results.get((d, m)), scores.loc[d, m], best) for m in methods))
        )
    heads = ("mean", "average rank")
    return Grid(
        f"accuracy-{choice}",
        f"Test accuracy in percent, {choice} choice",
        ("dataset", *methods),
        tuple(rows),
        tuple(
            GridRow(head, tuple(number_cell(of.get(m)) for m in methods))
            for head, of in zip(heads, foot, strict=True)
        ),
        methods=(None, *methods),
        notes=notes,
    )


def _cell(choice: str, result: Result | None, value: float, best: float | None) -> GridCell:
    if result is None or math.isnan(value):
        return status_cell(MISSING if result is None else result.status)
    sd = result.scored[choice].sd
    text = f"{value:.2f}" + ("" if math.isnan(sd) else f" ± {sd:.2f}")
    return GridCell(text, float(value), "best" if value == best else "")


def _over(standing: Standing) -> str:
    """Say which datasets the foot is over, and which methods are not ranked."""
    common, behind = standing.common, [m for m in standing.scores if m not in standing.ranks]
    who = "that the other methods have" if behind else "that all methods have"
    text = f"Means and ranks are over the {count(len(common), 'dataset')} {who}."
    return text + (f" Not ranked, because they have fewer: {', '.join(behind)}." if behind else "")
