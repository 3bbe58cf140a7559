"""The page as data: sections with text, tables and pictures. Every format is made from it."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import pandas as pd
from matplotlib.figure import Figure

from .. import svg
from ..comparison import Comparison, Ranking
from ..names import MISSING, plural
from ..paper import two_digits

LONG = 12  # rows; a longer table of pairs is folded

Value = str | int | float | None


@dataclass(frozen=True, slots=True)
class GridCell:
    """What a table shows in one place, what the place is sorted by, and a class for style sheets."""

    text: str
    value: Value = None
    mark: str = ""  # "best", "differs", "agrees", "failed" or "missing"
    dots: tuple[float, ...] = ()  # drawn beside the text, from 0 on the left to 1 on the right


@dataclass(frozen=True, slots=True)
class GridRow:
    """A heading and cells. The row hides when the reader hides `method` or `other`."""

    head: str
    cells: tuple[GridCell, ...]
    method: str | None = None
    other: str | None = None
    mark: str = ""  # a class for style sheets


@dataclass(frozen=True, slots=True)
class Grid:
    """A table to be looked at. `methods` says which method a column belongs to, if any."""

    key: str
    caption: str
    columns: tuple[str, ...]  # the first is the heading of the row headings
    rows: tuple[GridRow, ...]
    foot: tuple[GridRow, ...] = ()
    methods: tuple[str | None, ...] = ()
    notes: tuple[str, ...] = ()
    folded: bool = False  # long and rarely read: the page shows it on request
    holds: str = "rows"  # what a page that shows it folded calls its rows
    sorted_by: str | None = None  # the column that the rows are in the order of, the least first
    least_is_best: frozenset[str] = frozenset()  # a first click sorts these columns upwards


@dataclass(frozen=True, slots=True)
class Drawing:
    """A drawn picture as text: for the page, for a file, and its data."""

    inline: str
    svg: str
    csv: str

    @property
    def width(self) -> int:
        """The figure's own width in pixels. A page that shows it smaller makes its letters too small."""
        points = re.search(r'viewBox="0 0 ([\d.]+)', self.inline)
        return round(float(points[1]) * 4 / 3) if points else 0


@dataclass(frozen=True, slots=True, eq=False)
class Picture:
    """A figure that is not drawn yet, with its data."""

    key: str  # also the name of its files
    title: str
    description: str
    table: pd.DataFrame
    draw: Callable[[pd.DataFrame], Figure]

    def drawing(self) -> Drawing:
        """Draw the figure."""
        figure = self.draw(self.table)
        inline = svg.to_inline_svg(figure, self.key, self.title, self.description)
        return Drawing(inline, svg.to_svg(figure), csv_text(self.table))


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and what is below it, in this order."""

    key: str
    title: str
    text: tuple[str, ...] = ()
    items: tuple[tuple[str, str], ...] = ()  # a term and its meaning, or "" and a point of a list
    pictures: tuple[Picture, ...] = ()
    grids: tuple[Grid, ...] = ()


@dataclass(frozen=True, slots=True)
class Front:
    """The first screen: what was compared, the answer, and one table with one picture beside it."""

    compared: str
    answer: tuple[str, ...]
    grid: Grid | None
    picture: Picture | None


@dataclass(frozen=True, eq=False)
class Page:
    """The whole report, the same for every format."""

    front: Front
    methods: tuple[str, ...]  # that a reader can show or hide
    subject: tuple[str, ...]  # those of them that the study is about
    sections: tuple[Section, ...]
    results: pd.DataFrame  # every result as a row, for CSV

    @cached_property
    def panels(self) -> Mapping[str, str]:
        """The panels of datasets, which the names of datasets link to: their keys by name."""
        keys = {grid.key for section in self.sections for grid in section.grids}
        heads = {row.head for section in self.sections for grid in section.grids for row in grid.rows}
        return {head: key for head in heads if (key := panel_key(head)) in keys}

    @cached_property
    def drawings(self) -> Mapping[str, Drawing]:
        """Every picture by its key, drawn when it is first asked for and only once."""
        first = () if self.front.picture is None else (self.front.picture,)
        pictures = (*first, *(picture for section in self.sections for picture in section.pictures))
        return {picture.key: picture.drawing() for picture in pictures}


def panel_key(dataset: str) -> str:
    """Name the panel of a dataset, as an address can have it.

    >>> panel_key("wall-following"), panel_key("a b")
    ('dataset-wall-following', 'dataset-a-20b')
    """
    return "dataset-" + re.sub(r"[^A-Za-z0-9_-]", lambda found: f"-{ord(found[0]):x}", dataset)


def csv_text(table: pd.DataFrame) -> str:
    """Write a table as comma-separated text with a header; what is missing is empty."""
    return str(table.to_csv(index=False, lineterminator="\n"))


# --- cells -----------------------------------------------------------------------------------------------

EMPTY = GridCell("")  # where nothing belongs
ABSENT = GridCell(MISSING, None, MISSING)  # where a figure belongs that there is not


def make_row(head: str, *values: GridCell | Value, method: str | None = None, mark: str = "") -> GridRow:
    """Make a row of cells, or of what they show: texts, counts and figures of two digits, None if missing."""
    cells = (v if isinstance(v, GridCell) else _cell(v) for v in values)
    return GridRow(head, tuple(cells), method, mark=mark)


def _cell(value: Value) -> GridCell:
    return number_cell(value) if value is None or isinstance(value, float) else GridCell(str(value), value)


def number_cell(value: float | None, digits: int = 2) -> GridCell:
    """Show a number; None is missing."""
    return ABSENT if value is None else GridCell(f"{value:.{digits}f}", float(value))


def signed_cell(value: float | None, error: float | None = None, digits: int = 2) -> GridCell:
    """Show a difference with its sign and, if there is one, its standard error."""
    if value is None:
        return ABSENT
    return GridCell(f"{value:+.{digits}f}" + ("" if error is None else f" ± {error:.2f}"), value)


def p_text(p: float) -> str:
    """Write a p-value with two digits.

    >>> p_text(0.5412), p_text(0.0497), p_text(0.000335)
    ('0.54', '0.050', '3.4e-4')
    """
    return f"{p:#.2g}" if p >= 0.001 else two_digits(p)


def p_cell(p: float) -> GridCell:
    return GridCell(p_text(p), p)


def wins_cell(comparison: Comparison) -> GridCell:
    """Show wins, ties and losses, sorted by wins minus losses."""
    c = comparison
    return GridCell(f"{c.wins} / {c.ties} / {c.losses}", c.wins - c.losses)


def verdict_cell(*, differs: bool) -> GridCell:
    word = "differs" if differs else "agrees"
    return GridCell(word, word, word)


# --- tables ----------------------------------------------------------------------------------------------


def score_grid(
    key: str,
    caption: str,
    ranking: Ranking,
    *,
    beside: Mapping[tuple[str, str], str] = {},
    notes: Sequence[str] = (),
    folded: bool = False,
) -> Grid:
    """Show figures by dataset and method, the best of a dataset marked, with means and ranks below.

    `beside` says by dataset and method what stands beside a figure, or in the place of one.
    """
    scores, methods = ranking.scores, tuple(ranking.scores)

    def cell(dataset: str, method: str) -> GridCell:
        value, word = float(scores.loc[dataset, method]), beside.get((dataset, method))
        if math.isnan(value):
            return GridCell(word or MISSING, None, word or MISSING)
        best = len(methods) > 1 and ranking.sign * value == (ranking.sign * scores.loc[dataset]).max()
        return GridCell(f"{value:.{ranking.digits}f}{word or ''}", value, "best" if best else "")

    over = f"Means and ranks are over the {plural(len(ranking.common), 'dataset')} without a gap."
    few = f" Not compared, because they have fewer: {'; '.join(ranking.behind)}." if ranking.behind else ""
    return Grid(
        key,
        caption,
        ("dataset", *methods),
        tuple(GridRow(d, tuple(cell(d, m) for m in methods)) for d in scores.index),
        foot_of(ranking),
        methods=(None, *methods),
        notes=(f"{over}{few} The best of a dataset is marked with *.", *notes),
        folded=folded,
        least_is_best=frozenset(methods if ranking.sign < 0 else ()),
    )


def foot_of(ranking: Ranking, what: str = "") -> tuple[GridRow, ...]:
    """Show the means and average ranks of the methods that are compared."""
    if not ranking.ranks:
        return ()
    averages = (number_cell(ranking.means.get(m), ranking.digits) for m in ranking.scores)
    ranks = (ranking.ranks.get(m) for m in ranking.scores)
    return make_row(f"mean{what}", *averages), make_row(f"average rank{what}", *ranks)


def pairs_matrix(
    key: str, caption: str, methods: Sequence[str], cell: Callable[[str, str], GridCell], note: str
) -> Grid:
    """Make a table of methods against methods. The diagonal is empty; a long table is folded."""
    rows = tuple(GridRow(m, tuple(EMPTY if m == n else cell(m, n) for n in methods), m) for m in methods)
    names = (None, *methods)
    folded = len(rows) > LONG
    return Grid(key, caption, ("method", *methods), rows, methods=names, notes=(note,), folded=folded)
