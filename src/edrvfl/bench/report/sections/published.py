"""The paper's numbers: as printed, as they follow from its own Table 3, and as measured here."""

from __future__ import annotations

import math

import pandas as pd

from ... import paper
from ...comparison import Pairwise, Ranking, mean, round_half_up
from ...figures.points import published_figure
from ...methods import subject_first
from ...names import plural
from ...paper import two_digits
from ..page import (
    ABSENT,
    Grid,
    GridCell,
    Picture,
    Section,
    make_row,
    p_cell,
    pairs_matrix,
    signed_cell,
    verdict_cell,
    wins_cell,
)
from ..sentences import points_apart
from ..summary import Summary
from .ranks import sign_cell

NAMED = 5  # outliers in the picture's description
FAR = 2.0  # points between the measured and the published mean that deserve a row
MEANS = (
    *("method", "mean, published", "mean, recomputed", "rank, published", "rank, recomputed", "verdict"),
    *("rank, measured", "mean, measured", "mean, published, same datasets", "difference", "datasets"),
)
P_VALUES = (
    *("WPedRVFL against", "p, published", "p, recomputed (normal)", "p, recomputed (exact)", "verdict"),
    *("win / tie / loss, recomputed", "p, measured (normal)", "p, measured (Holm)"),
    "win / tie / loss, measured",
)


def show_published(s: Summary) -> Section:
    """Compare the measured numbers with the published ones, and those with the paper's own Table 3."""
    p_values, signs = paper.printed_p_values(), paper.printed_signs()
    ours = rank_the_papers(s)
    text = [
        "Published: as the paper prints it. Recomputed: what follows from the paper's own Table 3. Measured: "
        "this study, with the paper's choice. The measured mean is over the datasets of Table 3 that the "
        "method has here; beside it is the published mean over the same.",
        f"All 12 means and average ranks follow from Table 3; {sum(p.differs for p in p_values)} of "
        f"{len(p_values)} p-values of Table 4 and {sum(sign.differs for sign in signs)} of {len(signs)} "
        "signs of Table 5 do not.",
    ]
    grids = [_means_grid(s, ours), _p_values_grid(ours), _signs_grid()]
    if len(ours.ranks) > 1:
        text.append(_how_many_signs(ours))
        grids.append(_measured_signs_grid(ours.pairs))
    title, pictures = "Published, recomputed, measured", _scatter(s.against_paper)
    return Section("published", title, tuple(text), pictures=pictures, grids=(*grids, _sd_grid(s)))


def rank_the_papers(s: Summary) -> Ranking:
    """Rank the paper's methods on its datasets, by the paper's choice.

    The paper's ranks and adjustments are among its own twelve, so those beside them leave out all others.
    """
    printed, scores = paper.accuracies(), s.paper.scores
    return Ranking.of(scores.loc[scores.index.isin(printed.index), scores.columns.isin(printed)])


def _scatter(cells: pd.DataFrame) -> tuple[Picture, ...]:
    if cells.empty:
        return ()
    gaps = cells["measured"] - cells["published"]
    far = cells.assign(gap=gaps).loc[gaps.abs().sort_values(ascending=False, kind="stable").index[:NAMED]]
    named = ", ".join(f"{c.method} on {c.dataset} {c.gap:+.2f}" for c in far.itertuples())
    return (
        Picture(
            "ours_against_published",
            "Measured accuracy against published, in percent (the paper's choice)",
            f"{plural(len(cells), 'cell')}, {(gaps > 0).sum()} of them above the diagonal of equality. "
            f"Farthest from it: {named}.",
            cells,
            published_figure,
        ),
    )


def _means(s: Summary) -> dict[str, tuple[float, float, int]]:
    """Average by method: measured, published over the same datasets, and how many these are."""
    return {
        str(method): (mean(cells["measured"]), mean(cells["published"]), len(cells))
        for method, cells in s.against_paper.groupby("method")
    }


def _means_grid(s: Summary, measured: Ranking) -> Grid:
    rows, feet, means = [], {foot.method: foot for foot in paper.feet()}, _means(s)
    for method in subject_first(feet, {m: foot.rank for m, foot in feet.items()}):
        foot = feet[method]
        ours, theirs, n = means.get(method, (None, None, 0))
        difference = signed_cell(None if ours is None or theirs is None else ours - theirs)
        printed = (foot.mean, foot.recomputed_mean, foot.rank, foot.recomputed_rank)
        here = (measured.ranks.get(method), ours, theirs, difference, n)
        rows.append(make_row(method, *printed, verdict_cell(differs=foot.differs), *here, method=method))
    note = (
        f"The measured rank is among the {plural(len(measured.ranks), 'method')} of the paper that are "
        "compared here, over the datasets that all of them have."
    )
    title = "Mean accuracy in percent and average rank (Tables 3 and 4)"
    return Grid("published-means", title, MEANS, tuple(rows), notes=(note,))


def _p_values_grid(measured: Ranking) -> Grid:
    rows = []
    for p in paper.printed_p_values():
        c, here = p.comparison, [ABSENT] * 3
        printed = (GridCell(two_digits(value), value) for value in (p.printed, c.p_normal, c.p_exact))
        if {paper.BEST, p.method} <= measured.ranks.keys():
            ours = measured.pairs.pair(paper.BEST, p.method)
            here = [p_cell(ours.p_normal), p_cell(ours.p_holm), wins_cell(ours)]
        verdict = verdict_cell(differs=p.differs)
        rows.append(make_row(p.method, *printed, verdict, wins_cell(c), *here, method=p.method))
    note = (
        "The verdict compares the published value with the normal approximation, to two digits. Holm's "
        "adjustment is over all pairs of the paper's methods that are compared here."
    )
    title = "Wilcoxon p-values of WPedRVFL against each method (Table 4)"
    return Grid("published-p", title, P_VALUES, tuple(rows), notes=(note,))


def _signs_grid() -> Grid:
    signs = {(sign.row, sign.column): sign for sign in paper.printed_signs()}

    def cell(row: str, column: str) -> GridCell:
        sign = signs[row, column]
        printed, recomputed = sign.printed or "·", sign.recomputed or "·"
        if sign.differs:
            return GridCell(f"{printed} differs: {recomputed}", recomputed, "differs")
        return GridCell(printed, printed)

    note = (
        "+ the row's method is better than the column's at 0.05, - worse, a dot: neither. Where they differ, "
        "the published sign comes first and the recomputed one, without Holm, after it."
    )
    title = "Signs of all pairs (Table 5), published and recomputed"
    return pairs_matrix("published-signs", title, list(dict.fromkeys(row for row, _ in signs)), cell, note)


def _how_many_signs(measured: Ranking) -> str:
    """Count how many of Table 5's signs come out as published, without Holm, and how many are opposite."""
    have = [p for p in paper.printed_signs() if {p.row, p.column} <= measured.ranks.keys()]
    signs = [(p.printed, measured.pairs.sign(p.row, p.column, holm=False)) for p in have]
    same = sum(printed == found for printed, found in signs)
    opposite = sum({printed, found} == {"+", "-"} for printed, found in signs)
    return (
        f"Measured on {plural(len(measured.common), 'dataset')}, {same} of the {len(signs)} signs of Table 5 "
        f"between the {len(measured.ranks)} methods compared come out as published, without Holm as there; "
        f"{opposite} are opposite."
    )


def _measured_signs_grid(pairs: Pairwise) -> Grid:
    """Show the published sign and the measured one of every pair of Table 5 that was measured."""
    printed = {(sign.row, sign.column): sign.printed for sign in paper.printed_signs()}
    methods = [m for m in dict.fromkeys(row for row, _ in printed) if m in pairs.methods]

    def cell(row: str, column: str) -> GridCell:
        differs = printed[row, column] != pairs.sign(row, column, holm=False)
        text = f"{printed[row, column] or '·'} / {sign_cell(pairs, row, column).text}"
        return GridCell(text, text, "differs" if differs else "")

    note = (
        "Published / measured. + the row's method is better than the column's at 0.05, - worse, a dot: "
        "neither; measured signs in brackets: only without Holm. Marked where they differ without Holm."
    )
    title = "Signs of all pairs (Table 5), published and measured (the paper's choice)"
    return pairs_matrix("measured-signs", title, methods, cell, note)


def _sd_grid(s: Summary) -> Grid:
    rows = []
    for foot in paper.feet():
        if foot.sd is None:
            continue
        scored = [r.scored["paper"] for r in s.with_status("ok") if r.line == foot.method]
        sds = [choice.sd for choice in scored if not math.isnan(choice.sd)]
        average = sum(sds) / len(sds) if sds else None
        verdict = verdict_cell(differs=foot.differs)
        cells = (foot.sd, foot.recomputed_sd, verdict, average, len(sds))
        rows.append(make_row(foot.method, *cells, method=foot.method))
    columns = ("method", "published", "recomputed", "verdict", "measured", "datasets")
    title = "Mean over datasets of the standard deviation over seeds, in points (Table 6)"
    return Grid("published-sd", title, columns, tuple(rows))


def show_differences(s: Summary) -> Section | None:
    """List the methods whose mean is far from the published one; docs/compare.md says why."""
    cells = s.against_paper
    if cells.empty:
        return None
    gap = float((cells["measured"] - cells["published"]).mean())
    text = (
        f"On the {plural(len(cells), 'cell')} that the paper prints too, the measured accuracy (the paper's "
        f"choice) is on average {points_apart(gap)} the published one."
    )
    found = _means(s)
    rows = [
        make_row(method, ours, theirs, signed_cell(difference), n, method=method)
        for method in s.methods
        if method in found
        for ours, theirs, n in [found[method]]
        if abs(difference := round_half_up(ours - theirs)) > FAR
    ]
    caption = f"Means more than {FAR:g} points from the published ones (the paper's choice)"
    grid = Grid("differences", caption, ("method", *MEANS[-4:]), tuple(rows))
    return Section(
        "differences", "Where our figures differ from the published ones", (text,), grids=(grid,) * bool(rows)
    )
