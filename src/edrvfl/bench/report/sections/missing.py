"""The cells without a result, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ..page import Grid, GridCell, GridRow, Section, text_cell
from ..sentences import count
from ..study import Result
from ..summary import Summary

KEY, TITLE = "missing", "Failed and missing cells"


def show_missing(s: Summary) -> Section:
    """Say in a sentence which cells have no result; the list with their messages is folded."""
    without = [r for r in s.results.values() if r.status != "ok"]
    if not without:
        none = "None: every method that was searched has a figure on every dataset."
        return Section(KEY, TITLE, (none if s.results else "There are no cells at all.",))
    rows = tuple(
        GridRow(
            r.dataset,
            (text_cell(r.line), GridCell(r.status, r.status, r.status), text_cell(r.message)),
            r.line,
        )
        for r in without
    )
    grid = Grid("missing", "Which they are", ("dataset", "method", "status", "message"), rows, folded=True)
    return Section(KEY, TITLE, (_sentence(without, len(s.results)),), grids=(grid,))


def _sentence(without: Sequence[Result], every: int) -> str:
    """Say how many cells have no figure, of which methods.

    Examples
    --------
    >>> _sentence([Result("iris", "SNN", "missing"), Result("wine", "SNN", "missing")], 20)
    '2 of 20 cells have no figure: SNN 2.'
    """
    methods = Counter(r.line for r in without)
    failed = sum(r.status == "failed" for r in without)
    have = "has" if len(without) == 1 else "have"
    text = f"{len(without)} of {count(every, 'cell')} {have} no figure: "
    text += ", ".join(f"{method} {n}" for method, n in methods.items())
    return text + (f"; {failed} of them failed." if failed else ".")
