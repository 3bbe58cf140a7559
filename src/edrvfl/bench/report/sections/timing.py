"""Section 5.6 of the paper: how long training takes."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import geometric_mean

from ... import paper
from ...names import plural
from ...record import TimingRecord
from ..page import EMPTY, Grid, GridCell, Section, make_row, number_cell
from ..summary import Summary

COLUMNS = ("dataset", "method", "rows", "features", "median", "least to most", "published (Table 8)")


def show_timing(s: Summary) -> Section | None:
    """Show the measured seconds beside the paper's Table 8."""
    t = s.study.timing
    if t is None:
        return None
    one = t.timed[0]
    text = (
        f"Section 5.6 of the paper: seconds of one fit on the training rows of the first split, median of "
        f"{one.repeats} after {plural(one.warmups, 'warm-up')}, {plural(one.threads, 'BLAS thread')} "
        f"({'; '.join(t.blas) or 'BLAS unknown'}), {one.processor}. The edRVFL family has n and "
        "lambda of Table 7, other methods have their defaults, which for BLS, H-ELM and SCN are smaller "
        "networks than most of their searches.",
        *timing_sentences(t.timed),
    )
    printed = paper.training_seconds()
    rows = []
    for timed in t.timed:
        published = printed.get((timed.dataset, timed.method))  # none of other datasets and methods
        least, most = min(timed.seconds), max(timed.seconds)
        cells = (
            *(timed.method, timed.rows, timed.features, number_cell(timed.median, 4)),
            GridCell(f"{least:.4f} to {most:.4f}", least),
            number_cell(published, 4) if published else EMPTY,
        )
        rows.append(make_row(timed.dataset, *cells, method=timed.method))
    settings = dict.fromkeys(f"{timed.method}: {timed.parameters}" for timed in t.timed)
    notes = ("Table 8 has SNN and WPedRVFL only.", *settings)
    ratios = _ratios(t.timed)
    # The ratios answer the question; every fit is there for whoever wants to see it.
    every = Grid("timing", "Training time in seconds", COLUMNS, tuple(rows), notes=notes, folded=bool(ratios))
    return Section("timing", "Training time (section 5.6)", text, grids=(*ratios, every))


def timing_sentences(timed: Sequence[TimingRecord]) -> list[str]:
    """Compare the seconds with Table 8, and the ratio of the two methods with the paper's ratio."""
    printed, medians = paper.training_seconds(), {(t.dataset, t.method): t.median for t in timed}
    ours = {d: seconds for (d, m), seconds in medians.items() if m == paper.BEST and (d, m) in printed}
    said = []
    if slower := [seconds / printed[d, paper.BEST] for d, seconds in ours.items()]:
        said.append(
            f"WPedRVFL took {min(slower):.2g} to {max(slower):.2g} times the seconds that Table 8 prints, on "
            f"{len(slower)} of its datasets; the machine is another, and the paper does not say which "
            "settings its Table 8 has."
        )
    if both := [d for d in ours if (d, "SNN") in medians]:
        here, there = ([by[d, "SNN"] / by[d, paper.BEST] for d in both] for by in (medians, printed))
        said.append(
            f"SNN takes {min(here):.2g} to {max(here):.2g} times as long as WPedRVFL here and "
            f"{min(there):.2g} to {max(there):.2g} times in Table 8."
        )
    return said


def _ratios(timed: Sequence[TimingRecord]) -> tuple[Grid, ...]:
    """Compare the methods that were timed wherever WPedRVFL was. Two methods need no table of their own."""
    medians = {(t.dataset, t.method): t.median for t in timed}
    datasets = [d for d, method in medians if method == paper.BEST]
    methods = [m for m in dict.fromkeys(t.method for t in timed) if all((d, m) in medians for d in datasets)]
    if not datasets or len(methods) < 3:
        return ()
    found = {m: [medians[d, m] / medians[d, paper.BEST] for d in datasets] for m in methods}
    means = {m: geometric_mean(ratios) for m, ratios in found.items()}
    rows = [make_row(m, *found[m], means[m], method=m) for m in sorted(methods, key=means.__getitem__)]
    columns, caption = (
        (*datasets, "mean"),
        f"Training time, as a multiple of {paper.BEST}'s; the mean is geometric",
    )
    return (
        Grid(
            *("timing-ratios", caption, ("method", *columns), tuple(rows)),
            sorted_by="mean",
            least_is_best=frozenset(columns),
        ),
    )
