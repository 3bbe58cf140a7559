"""Where a mean is far from the published one. docs/compare.md says why, for the study that is shipped."""

from __future__ import annotations

from ...comparison import mean, round_half_up
from ..page import Grid, GridRow, Section, count_cell, number_cell, signed_cell
from ..sentences import count, points_apart
from ..summary import Summary

FAR = 2.0  # points between the measured and the published mean that deserve a row
KEY, TITLE = "differences", "Where our figures differ from the published ones"


def show_differences(s: Summary) -> Section | None:
    """List the methods whose mean is far from the published one."""
    cells = s.against_paper
    if not cells:
        return None
    gap = sum(c.measured - c.published for c in cells) / len(cells)
    text = (
        f"On the {count(len(cells), 'cell')} that the paper prints too, the measured accuracy (the paper's "
        f"choice) is on average {points_apart(gap)} the published one."
    )
    grid = _grid(s)
    if not grid.rows:
        return Section(KEY, TITLE, (f"{text} No method's mean is more than {FAR:g} points away.",))
    return Section(KEY, TITLE, (text,), grids=(grid,))


def _grid(s: Summary) -> Grid:
    rows = []
    for method in s.methods:
        cells = [c for c in s.against_paper if c.method == method]
        if not cells:
            continue
        ours, theirs = mean(c.measured for c in cells), mean(c.published for c in cells)
        if abs(difference := round_half_up(ours - theirs)) <= FAR:
            continue
        shown = (number_cell(ours), number_cell(theirs), signed_cell(difference), count_cell(len(cells)))
        rows.append(GridRow(method, shown, method))
    columns = ("method", "mean, measured", "mean, published, same datasets", "difference", "datasets")
    caption = f"Means more than {FAR:g} points from the published ones (the paper's choice)"
    return Grid("differences", caption, columns, tuple(rows))
