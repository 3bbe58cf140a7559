"""Section 5.6 of the paper: how long training takes."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import geometric_mean

from ... import paper
from ...timing import Timed
from ..page import EMPTY, Grid, GridCell, GridRow, Section, count_cell, number_cell, text_cell
from ..sentences import count
from ..sentences_experiments import timing_sentences
from ..summary import Summary


def show_timing(s: Summary) -> Section | None:
    """Show the measured seconds beside the paper's Table 8."""
    t = s.timing
    if t is None:
        return None
    text = (
        f"Section 5.6 of the paper: seconds of one fit on the training rows of the first split, median of "
        f"{t.repeats} after {count(t.warmups, 'warm-up')}, {count(t.threads, 'BLAS thread')} "
        f"({'; '.join(t.blas) or 'BLAS unknown'}), {t.processor}. The edRVFL family has n and "
        "lambda of Table 7, other methods have their defaults, which for BLS, H-ELM and SCN are smaller "
        "networks than most of their searches.",
        " ".join(timing_sentences(t)),
    )
    printed = paper.training_seconds()
    rows = []
    for timed in t.timed:
        published = printed.get((timed.dataset, timed.method))  # none of other datasets and methods
        least, most = min(timed.seconds), max(timed.seconds)
        cells = (
            text_cell(timed.method),
            count_cell(timed.rows),
            count_cell(timed.features),
            number_cell(timed.median, 4),
            GridCell(f"{least:.4f} to {most:.4f}", least),
            number_cell(published, 4) if published else EMPTY,
        )
        rows.append(GridRow(timed.dataset, cells, timed.method))
    columns = ("dataset", "method", "rows", "features", "median", "least to most", "published (Table 8)")
    settings = dict.fromkeys(f"{timed.method}: {timed.parameters}" for timed in t.timed)
    notes = ("Table 8 has SNN and WPedRVFL only.", *settings)
    ratios = _ratios(t.timed)
    # The ratios answer the question; every fit is there for whoever wants to see it.
    every = Grid("timing", "Training time in seconds", columns, tuple(rows), notes=notes, folded=bool(ratios))
    return Section("timing", "Training time (section 5.6)", text, grids=(*ratios, every))


def _ratios(timed: Sequence[Timed]) -> tuple[Grid, ...]:
    """Compare the methods that were timed wherever WPedRVFL was. Two methods need no table of their own."""
    medians = {(t.dataset, t.method): t.median for t in timed}
    datasets = [d for d, method in medians if method == paper.BEST]
    methods = [m for m in dict.fromkeys(t.method for t in timed) if all((d, m) in medians for d in datasets)]
    if not datasets or len(methods) < 3:
        return ()
    found = {m: [medians[d, m] / medians[d, paper.BEST] for d in datasets] for m in methods}
    means = {m: geometric_mean(ratios) for m, ratios in found.items()}
    rows = [
        GridRow(m, tuple(number_cell(ratio, 2) for ratio in (*found[m], means[m])), m)
        for m in sorted(methods, key=means.__getitem__)
    ]
    return (
        Grid(
            "timing-ratios",
            f"Training time, as a multiple of {paper.BEST}'s; the mean is geometric",
            ("method", *datasets, "mean"),
            tuple(rows),
            sorted_by="mean",
            least_is_best=frozenset((*datasets, "mean")),
        ),
    )
