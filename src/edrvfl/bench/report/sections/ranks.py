"""Average ranks, and tests of whether methods differ."""

from __future__ import annotations

from functools import partial

import pandas as pd

from ...comparison import ALPHA, FEWEST, Pairwise, Ranking, critical_difference, round_half_up
from ...figures.charts import critical_difference_figure
from ...names import plural
from ..page import (
    LONG,
    Grid,
    GridCell,
    GridRow,
    Picture,
    Section,
    p_cell,
    pairs_matrix,
    signed_cell,
    wins_cell,
)
from ..sentences import friedman_sentence
from ..summary import Summary

TEXT = (
    "Wilcoxon's signed-rank test, paired by dataset, two-sided; equal figures are left out. The normal "
    "approximation corrects for ties and has no continuity correction; the exact test counts every "
    "assignment of signs. Accuracies are rounded to the printed digits first. Holm's adjustment is over "
    "all pairs of a table. Beside the searches by the strict choice stand the methods at their defaults; "
    f"the paper's choice is of searches only. Pairs are tested where {FEWEST} datasets or more are compared: "
    "fewer show nothing."
)
PAIRS = ("pair", "win / tie / loss", "mean difference", "p, normal", "p, exact", "p, normal, Holm")


def show_ranks(s: Summary) -> Section:
    """Show the critical-difference diagram, the signs and the p-values of all pairs."""
    choices = {"strict choice": s.standing, "paper choice": s.paper}
    tests = [text for what, ranking in choices.items() for text in friedman_sentence(ranking, what)]
    grids = [g for what, ranking in choices.items() for g in pair_grids(ranking, what.split()[0], what)]
    pictures = diagram(s.standing, "critical_difference", "Average ranks by accuracy")
    return Section("statistics", "Ranks and tests", (TEXT, *tests), pictures=pictures, grids=tuple(grids))


def diagram(ranking: Ranking, key: str, title: str) -> tuple[Picture, ...]:
    """Show average ranks and which of them Nemenyi's test does not tell apart, if it can be run."""
    cd = critical_difference(ranking.sign * ranking.compared)
    if cd is None:
        return ()
    table = pd.DataFrame({"method": cd.methods, "average_rank": cd.ranks}).round(4)
    table["critical_difference"] = round(cd.difference, 4)
    p_values = cd.p_values.map(lambda p: float(f"{p:.4g}")).add_prefix("p_against_", axis="columns")
    best, worst = round_half_up(cd.ranks[0]), round_half_up(cd.ranks[-1])
    return (
        Picture(
            key,
            f"{title} over {plural(cd.n_datasets, 'dataset')} (strict choice)",
            f"From {cd.methods[0]}, {best:.2f}, to {cd.methods[-1]}, {worst:.2f}. Ranks closer than "
            f"{cd.difference:.2f}, joined by bars, are not told apart by Nemenyi's test at {ALPHA:g}.",
            pd.concat([table, p_values.reset_index(drop=True)], axis="columns"),
            critical_difference_figure,
        ),
    )


def pair_grids(ranking: Ranking, key: str, what: str) -> tuple[Grid, ...]:
    """Show the signs and the p-values of all pairs, where there are enough datasets to test them."""
    pairs = ranking.pairs
    if len(ranking.common) < FEWEST or not pairs.comparisons:
        return ()
    note = (
        f"+ the row's method is better than the column's at {ALPHA:g}, - worse, after Holm; in "
        "brackets: only without Holm; a dot: neither."
    )
    caption, cell = f"Pairwise signs, {what}", partial(sign_cell, pairs)
    signs = pairs_matrix(f"signs-{key}", caption, pairs.methods, cell, note)
    rows = []
    for c in pairs.comparisons:
        difference = signed_cell(ranking.sign * c.mean_difference, digits=ranking.digits)
        cells = (wins_cell(c), difference, p_cell(c.p_normal), p_cell(c.p_exact), p_cell(c.p_holm))
        rows.append(GridRow(f"{c.first} against {c.second}", cells, c.first, c.second))
    folded = len(rows) > LONG
    return signs, Grid(f"pairs-{key}", f"All pairs, {what}", PAIRS, tuple(rows), folded=folded)


def sign_cell(pairs: Pairwise, row: str, column: str) -> GridCell:
    """Show a sign after Holm, one without Holm in brackets, or a dot."""
    plain, adjusted = (pairs.sign(row, column, holm=holm) for holm in (False, True))
    return GridCell(adjusted or (f"({plain})" if plain else "·"), adjusted or plain)
