"""Average ranks, and tests of whether methods differ."""

from __future__ import annotations

import pandas as pd

from ...comparison import CriticalDifference
from ...figures import critical_difference_figure
from ..page import EMPTY, Grid, GridCell, GridRow, Picture, Section, p_cell, signed_cell, wins_cell
from ..sentences import count, p_text
from ..summary import ChoiceSummary, Summary

KEY, TITLE = "statistics", "Ranks and tests"
LONG = 12  # pairs; a longer table is folded


def show_ranks(s: Summary) -> Section:
    """Show the critical-difference diagram, the signs and the p-values of all pairs."""
    if len(s.strict.methods) < 2 or not s.strict.common:
        return Section(KEY, TITLE, ("Ranks and tests need two methods and a dataset that both have.",))
    text = [
        "Wilcoxon's signed-rank test, paired by dataset, two-sided; equal figures are left out. The normal "
        "approximation corrects for ties and has no continuity correction; the exact test counts every "
        "assignment of signs. Accuracies are rounded to the printed digits first. Holm's adjustment is over "
        "all pairs."
    ]
    text += [
        f"Friedman's test, {choice.name} choice: chi-square {f.statistic:.2f}, p = {p_text(f.p_value)}, "
        f"{f.n_methods} methods, {f.n_datasets} datasets."
        for choice in s.choices.values()
        if (f := choice.friedman) is not None
    ]
    pictures: tuple[Picture, ...] = ()
    if s.strict.critical_difference is None:
        text.append("No critical-difference diagram: it needs two methods and two datasets.")
    else:
        pictures = (_diagram(s.strict.critical_difference),)
    grids = tuple(grid(c) for c in s.choices.values() for grid in (_signs_grid, _pairs_grid))
    return Section(KEY, TITLE, tuple(text), pictures=pictures, grids=grids)


def _diagram(cd: CriticalDifference) -> Picture:
    table = pd.DataFrame({"method": cd.methods, "average_rank": cd.ranks}).round(4)
    table["critical_difference"] = round(cd.difference, 4)
    p_values = cd.p_values.map(lambda p: float(f"{p:.4g}")).add_prefix("p_against_", axis="columns")
    groups = "; ".join(", ".join(group) for group in cd.groups) or "none"
    ranked = ", ".join(f"{m} {rank:.2f}" for m, rank in zip(cd.methods, cd.ranks, strict=True))
    return Picture(
        "critical_difference",
        f"Average ranks over {count(cd.n_datasets, 'dataset')} (strict choice)",
        f"From best to worst: {ranked}. Ranks closer than {cd.difference:.2f} are not told apart by "
        f"Nemenyi's test at {cd.alpha:g}; groups not told apart: {groups}.",
        pd.concat([table, p_values.reset_index(drop=True)], axis="columns"),
        critical_difference_figure,
    )


def _signs_grid(choice: ChoiceSummary) -> Grid:
    pairs = choice.pairs

    def cell(row: str, column: str) -> GridCell:
        if row == column:
            return EMPTY
        plain, adjusted = (pairs.sign(row, column, holm=holm) for holm in (False, True))
        return GridCell(adjusted or (f"({plain})" if plain else "·"), adjusted or plain)

    rows = tuple(GridRow(m, tuple(cell(m, n) for n in pairs.methods), m) for m in pairs.methods)
    note = (
        f"+ the row's method is better than the column's at {pairs.alpha:g}, - worse, after Holm; in "
        "brackets: only without Holm; a dot: neither."
    )
    return Grid(
        f"signs-{choice.name}",
        f"Pairwise signs, {choice.name} choice",
        ("method", *pairs.methods),
        rows,
        methods=(None, *pairs.methods),
        notes=(note,),
    )


def _pairs_grid(choice: ChoiceSummary) -> Grid:
    rows = tuple(
        GridRow(
            f"{c.first} against {c.second}",
            (
                wins_cell(c),
                signed_cell(c.mean_difference),
                p_cell(c.p_normal),
                p_cell(c.p_exact),
                p_cell(c.p_holm),
            ),
            c.first,
            c.second,
        )
        for c in choice.pairs.comparisons
    )
    columns = ("pair", "win / tie / loss", "mean difference", "p, normal", "p, exact", "p, normal, Holm")
    title = f"All pairs, {choice.name} choice"
    return Grid(f"pairs-{choice.name}", title, columns, rows, folded=len(rows) > LONG)
