"""The cells without a result, and why."""

from __future__ import annotations

from ..page import Grid, GridCell, GridRow, Section, text_cell
from ..sentences import count
from ..summary import Summary

KEY, TITLE = "missing", "Failed and missing cells"


def show_missing(s: Summary) -> Section:
    """List the failed and the missing cells with their messages."""
    without = [r for r in s.results.values() if r.status != "ok"]
    if not without:
        none = "None: every method has a figure on every dataset."
        return Section(KEY, TITLE, (none if s.results else "There are no cells at all.",))
    rows = tuple(
        GridRow(
            r.dataset,
            (text_cell(r.method), GridCell(r.status, r.status, r.status), text_cell(r.message)),
            r.method,
        )
        for r in without
    )
    caption = f"{count(len(without), 'cell')} without a figure"
    grid = Grid("missing", caption, ("dataset", "method", "status", "message"), rows)
    return Section(KEY, TITLE, grids=(grid,))
