"""The paper's numbers: as printed, as they follow from its own Table 3, and as measured here."""

from __future__ import annotations

import math
from collections.abc import Mapping

import pandas as pd

from ... import paper
from ...comparison import Pairwise, average_ranks, comparable, compare_pairs, mean
from ...figures import published_figure
from ...methods import subject_first
from ...paper import two_digits
from ..page import (
    ABSENT,
    Grid,
    GridCell,
    GridRow,
    Picture,
    Section,
    count_cell,
    number_cell,
    p_cell,
    pairs_matrix,
    signed_cell,
    verdict_cell,
    wins_cell,
)
from ..sentences import count
from ..summary import AgainstPaper, Summary
from .ranks import sign_cell

NAMED = 5  # outliers in the picture's description


def show_published(s: Summary) -> Section:
    """Compare the measured numbers with the published ones, and those with the paper's own Table 3."""
    p_values, signs = paper.printed_p_values(), paper.printed_signs()
    text: tuple[str, ...] = (
        "Published: as the paper prints it. Recomputed: what follows from the paper's own Table 3. Measured: "
        "this study, with the paper's choice. The measured mean is over the datasets of Table 3 that the "
        "method has here; beside it is the published mean over the same.",
        f"All 12 means and average ranks follow from Table 3; {sum(p.differs for p in p_values)} of "
        f"{len(p_values)} p-values of Table 4 and {sum(sign.differs for sign in signs)} of {len(signs)} "
        "signs of Table 5 do not.",
    )
    pictures = (_scatter(s.against_paper),) if s.against_paper else ()
    ours = measured_here(s)
    pairs = compare_pairs(ours) if ours.shape[1] > 1 and len(ours) else None
    grids = [_means_grid(s, average_ranks(ours)), _p_values_grid(pairs), _signs_grid()]
    if pairs is not None:
        text = (*text, _how_many_signs(pairs, len(ours)))
        grids.append(_measured_signs_grid(pairs))
    grids.append(_sd_grid(s))
    title = "Published, recomputed, measured"
    return Section("published", title, text, pictures=pictures, grids=tuple(grids))


def measured_here(s: Summary) -> pd.DataFrame:
    """Return the accuracies of the paper's methods on its datasets, without a gap, by the paper's choice.

    The paper's ranks and adjustments are among its own twelve, so those beside them leave out all others.
    """
    printed = paper.accuracies()
    scores = s.paper.scores.loc[
        [d for d in s.paper.scores.index if d in printed.index], [m for m in s.paper.scores if m in printed]
    ]
    return comparable(scores).dropna()


def _scatter(cells: tuple[AgainstPaper, ...]) -> Picture:
    above = sum(c.measured > c.published for c in cells)
    far = sorted(cells, key=lambda c: -abs(c.measured - c.published))[:NAMED]
    named = ", ".join(f"{c.method} on {c.dataset} {c.measured - c.published:+.2f}" for c in far)
    return Picture(
        "ours_against_published",
        "Measured accuracy against published, in percent (the paper's choice)",
        f"{count(len(cells), 'cell')}, {above} of them above the diagonal of equality. Farthest from it: "
        f"{named}.",
        pd.DataFrame(list(cells)),
        published_figure,
    )


def _means_grid(s: Summary, ranks: Mapping[str, float]) -> Grid:
    rows = []
    feet = {foot.method: foot for foot in paper.feet()}
    for method in subject_first(feet, {m: foot.rank for m, foot in feet.items()}):
        foot = feet[method]
        cells = [c for c in s.against_paper if c.method == foot.method]
        ours = mean(c.measured for c in cells) if cells else None
        theirs = mean(c.published for c in cells) if cells else None
        shown = (
            number_cell(foot.mean),
            number_cell(foot.recomputed_mean),
            number_cell(foot.rank),
            number_cell(foot.recomputed_rank),
            verdict_cell(differs=foot.differs),
            number_cell(ranks.get(foot.method)),
            number_cell(ours),
            number_cell(theirs),
            signed_cell(None if ours is None or theirs is None else ours - theirs),
            count_cell(len(cells)),
        )
        rows.append(GridRow(foot.method, shown, foot.method))
    columns = (
        "method",
        "mean, published",
        "mean, recomputed",
        "rank, published",
        "rank, recomputed",
        "verdict",
        "rank, measured",
        "mean, measured",
        "mean, published, same datasets",
        "difference",
        "datasets",
    )
    note = (
        f"The measured rank is among the {count(len(ranks), 'method')} of the paper that are compared here, "
        "over the datasets that all of them have."
    )
    title = "Mean accuracy in percent and average rank (Tables 3 and 4)"
    return Grid("published-means", title, columns, tuple(rows), notes=(note,))


def _p_values_grid(measured: Pairwise | None) -> Grid:
    rows = []
    for p in paper.printed_p_values():
        c = p.comparison
        cells = [
            GridCell(two_digits(p.printed), p.printed),
            GridCell(two_digits(c.p_normal), c.p_normal),
            GridCell(two_digits(c.p_exact), c.p_exact),
            verdict_cell(differs=p.differs),
            wins_cell(c),
            *[ABSENT] * 3,
        ]
        if measured is not None and {paper.BEST, p.method} <= set(measured.methods):
            ours = measured.pair(paper.BEST, p.method)
            cells[-3:] = [p_cell(ours.p_normal), p_cell(ours.p_holm), wins_cell(ours)]
        rows.append(GridRow(p.method, tuple(cells), p.method))
    columns = (
        "WPedRVFL against",
        "p, published",
        "p, recomputed (normal)",
        "p, recomputed (exact)",
        "verdict",
        "win / tie / loss, recomputed",
        "p, measured (normal)",
        "p, measured (Holm)",
        "win / tie / loss, measured",
    )
    note = (
        "The verdict compares the published value with the normal approximation, to two digits. Holm's "
        "adjustment is over all pairs of the paper's methods that are compared here."
    )
    title = "Wilcoxon p-values of WPedRVFL against each method (Table 4)"
    return Grid("published-p", title, columns, tuple(rows), notes=(note,))


def _signs_grid() -> Grid:
    signs = {(sign.row, sign.column): sign for sign in paper.printed_signs()}
    methods = tuple(dict.fromkeys(row for row, _ in signs))

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
    return pairs_matrix("published-signs", title, methods, cell, note)


def _how_many_signs(pairs: Pairwise, n_datasets: int) -> str:
    """Count how many of Table 5's signs come out as published, without Holm, and how many are opposite."""
    have = [p for p in paper.printed_signs() if {p.row, p.column} <= set(pairs.methods)]
    signs = [(p.printed, pairs.sign(p.row, p.column, holm=False)) for p in have]
    same = sum(printed == found for printed, found in signs)
    opposite = sum({printed, found} == {"+", "-"} for printed, found in signs)
    return (
        f"Measured on {count(n_datasets, 'dataset')}, {same} of the {len(signs)} signs of Table 5 between "
        f"the {len(pairs.methods)} methods compared come out as published, without Holm as there; "
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
        cells = (
            number_cell(foot.sd),
            number_cell(foot.recomputed_sd),
            verdict_cell(differs=foot.differs),
            number_cell(sum(sds) / len(sds) if sds else None),
            count_cell(len(sds)),
        )
        rows.append(GridRow(foot.method, cells, foot.method))
    columns = ("method", "published", "recomputed", "verdict", "measured", "datasets")
    title = "Mean over datasets of the standard deviation over seeds, in points (Table 6)"
    return Grid("published-sd", title, columns, tuple(rows))
