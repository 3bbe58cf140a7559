"""Average ranks, and tests of whether methods differ."""

from __future__ import annotations

from functools import partial

import pandas as pd

from ...comparison import (
    DIGITS,
    FEWEST,
    CriticalDifference,
    Pairwise,
    critical_difference,
    friedman,
    round_half_up,
)
from ...figures import critical_difference_figure
from ..page import LONG, Grid, GridCell, GridRow, Picture, Section, p_cell, pairs_matrix, wins_cell
from ..sentences import count, p_text
from ..summary import Summary

KEY, TITLE = "statistics", "Ranks and tests"


def show_ranks(s: Summary) -> Section:
    """Show the critical-difference diagram, the signs and the p-values of all pairs."""
    scores = s.standing.compared
    if len(s.standing.ranks) < 2 or scores.empty:
        return Section(KEY, TITLE, ("Ranks and tests need two methods and a dataset that both have.",))
    text = [
        "Wilcoxon's signed-rank test, paired by dataset, two-sided; equal figures are left out. The normal "
        "approximation corrects for ties and has no continuity correction; the exact test counts every "
        "assignment of signs. Accuracies are rounded to the printed digits first. Holm's adjustment is over "
        "all pairs of a table. Beside the searches by the strict choice stand the methods at their defaults; "
        "the paper's choice is of searches only."
    ]
    found = {"strict": friedman(scores), "paper": s.paper.friedman}
    text += [
        f"Friedman's test, {name} choice: chi-square {f.statistic:.2f}, p = {p_text(f.p_value)}, "
        f"{f.n_methods} methods, {f.n_datasets} datasets."
        for name, f in found.items()
        if f is not None
    ]
    cd, pictures = critical_difference(scores), list[Picture]()
    if cd is None:
        text.append("No critical-difference diagram: it needs two methods and two datasets.")
    else:
        pictures.append(diagram(cd, "critical_difference", "Average ranks by accuracy"))
    pairs = {"strict": (s.standing.pairs, len(scores)), "paper": (s.paper.pairs, len(s.paper.common))}
    shown = {name: found for name, (found, n) in pairs.items() if found.comparisons and n >= FEWEST}
    if len(shown) < len(pairs):
        text.append(f"Pairs are tested where {FEWEST} datasets or more are compared: fewer show nothing.")
    grids = tuple(make(found, name, f"{name} choice") for name, found in shown.items() for make in GRIDS)
    return Section(KEY, TITLE, tuple(text), pictures=tuple(pictures), grids=grids)


def diagram(cd: CriticalDifference, key: str, title: str) -> Picture:
    """Show average ranks and which of them Nemenyi's test does not tell apart."""
    table = pd.DataFrame({"method": cd.methods, "average_rank": cd.ranks}).round(4)
    table["critical_difference"] = round(cd.difference, 4)
    p_values = cd.p_values.map(lambda p: float(f"{p:.4g}")).add_prefix("p_against_", axis="columns")
    best, worst = round_half_up(cd.ranks[0]), round_half_up(cd.ranks[-1])
    return Picture(
        key,
        f"{title} over {count(cd.n_datasets, 'dataset')} (strict choice)",
        f"From {cd.methods[0]}, {best:.2f}, to {cd.methods[-1]}, {worst:.2f}. Ranks closer "
        f"than {cd.difference:.2f}, joined by bars, are not told apart by Nemenyi's test at {cd.alpha:g}.",
        pd.concat([table, p_values.reset_index(drop=True)], axis="columns"),
        critical_difference_figure,
    )


def signs_grid(pairs: Pairwise, key: str, what: str) -> Grid:
    """Show which method is better than which, after Holm and without."""
    note = (
        f"+ the row's method is better than the column's at {pairs.alpha:g}, - worse, after Holm; in "
        "brackets: only without Holm; a dot: neither."
    )
    cell = partial(sign_cell, pairs)
    return pairs_matrix(f"signs-{key}", f"Pairwise signs, {what}", pairs.methods, cell, note)


def sign_cell(pairs: Pairwise, row: str, column: str) -> GridCell:
    """Show a sign after Holm, one without Holm in brackets, or a dot."""
    plain, adjusted = (pairs.sign(row, column, holm=holm) for holm in (False, True))
    return GridCell(adjusted or (f"({plain})" if plain else "·"), adjusted or plain)


def pairs_grid(pairs: Pairwise, key: str, what: str, *, better: int = 1, digits: int = DIGITS) -> Grid:
    """Show every pair with its p-values. `better` is -1 if the table holds the negatives of what is shown."""
    rows = tuple(
        GridRow(
            f"{c.first} against {c.second}",
            (
                wins_cell(c),
                GridCell(f"{better * c.mean_difference:+.{digits}f}", better * c.mean_difference),
                p_cell(c.p_normal),
                p_cell(c.p_exact),
                p_cell(c.p_holm),
            ),
            c.first,
            c.second,
        )
        for c in pairs.comparisons
    )
    columns = ("pair", "win / tie / loss", "mean difference", "p, normal", "p, exact", "p, normal, Holm")
    return Grid(f"pairs-{key}", f"All pairs, {what}", columns, rows, folded=len(rows) > LONG)


GRIDS = (signs_grid, pairs_grid)
