"""Section 5.6 of the paper: how long training takes."""

from __future__ import annotations

from ... import paper
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
        f"({'; '.join(t.blas) or 'BLAS unknown'}), {t.processor}.",
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
    settings = tuple(dict.fromkeys(f"{timed.method}: {timed.parameters}" for timed in t.timed))
    grid = Grid("timing", "Training time in seconds", columns, tuple(rows), notes=settings)
    return Section("timing", "Training time (section 5.6)", text, grids=(grid,))
