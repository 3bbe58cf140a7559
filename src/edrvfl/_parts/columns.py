"""What is known about the columns of parts, taken together.

A column of all rows holds categories if the type of a part's column says so, or if a part holds text. Until
all parts were seen, a part of numbers may turn out to hold categories that are written as text; the values
of such columns are read in one more pass, which is taken only then.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy

from .._inputs.columns import Columns, declared_columns
from .._inputs.dates import CENTURIES, WORDS, Dates, refuse_written_dates
from .._inputs.rows import to_host
from .._inputs.table import Table, learn_table, open_table
from .._inputs.text import Text, holds_text
from .._inputs.values import (
    Values,
    column_holds_text,
    column_values,
    count_present,
    learn_categories,
    text_of,
)
from .._seam.arrays import Array
from .parts import Part
from .watched import WatchedParts

NEVER = CENTURIES  # the first day of a part in which all dates are missing: any other one is earlier


@dataclass(frozen=True, slots=True, eq=False)
class Kind:
    """What a column holds in some parts. A column that is missing throughout may hold anything."""

    numbers: bool = False  # whether it holds numbers in a part, the values of which were not noted
    categories: numpy.ndarray | None = None  # sorted, float64 or text; None if no part holds categories
    known: Dates | Text | None = None  # dates, or text that was declared
    cells: int = 0  # how many hold a category
    may_be_text: bool = True  # whether these may be text: they are of no type that is made for categories

    def __add__(self, other: Kind) -> Kind:
        """Return what the column holds in both sets of parts."""
        known, its = self.known, other.known
        for one, two in ((self, other), (other, self)):
            values = two.numbers or (two.categories is not None and len(two.categories))
            if isinstance(one.known, Dates) and values:
                raise TypeError(f"holds {WORDS[one.known.holds]} in one block and other values in another.")
        if isinstance(known, Dates) and isinstance(its, Dates):
            known = known + its
        return Kind(
            self.numbers or other.numbers,
            union(self.categories, other.categories),
            its if known is None else known,
            self.cells + other.cells,
            self.may_be_text and other.may_be_text,
        )

    def found(self) -> Dates | Text | None:
        """Return the dates or the text that the column of all rows holds, None if it holds something else."""
        if isinstance(self.known, Dates) and self.known.origin == NEVER:
            return replace(self.known, origin=0)
        if self.known is not None or self.numbers or self.categories is None or not self.may_be_text:
            return self.known
        return Text() if holds_text(self.categories.tolist(), self.cells) else None

    @property
    def is_mixed(self) -> bool:
        """Whether there are numbers in one part and text in another: then all are text."""
        return self.numbers and self.categories is not None and self.categories.dtype == object

    def settled(self, single: bool) -> numpy.ndarray | None:
        """Return the categories of the column of all rows, None for numbers, in the precision of the fit."""
        if self.numbers or self.categories is None or self.found() is not None:
            return None
        if single and self.categories.dtype != object:
            return numpy.unique(self.categories.astype(numpy.float32).astype(numpy.float64))
        return self.categories


def union(a: numpy.ndarray | None, b: numpy.ndarray | None) -> numpy.ndarray | None:
    """Return the categories of both, sorted. Numbers beside text become text; None has no categories."""
    if a is None or b is None:
        return b if a is None else a
    if a.dtype != object and b.dtype != object:
        return numpy.union1d(a, b)
    known, more = (list(map(text_of, c.tolist())) if c.dtype != object else c.tolist() for c in (a, b))
    if len(known) < len(more):
        known, more = more, known
    new = set(more).difference(known)
    if not new and (a.dtype == object) is (b.dtype == object):
        return a if len(a) >= len(b) else b
    return numpy.array(sorted({*known, *new}), dtype=object)


@dataclass(frozen=True, slots=True, eq=False)
class Kinds:
    """What the columns hold in some parts."""

    names: tuple[str, ...]
    kinds: tuple[Kind, ...]

    def __add__(self, other: Kinds) -> Kinds:
        """Return what the columns hold in both sets of parts."""
        kinds = []
        for name, ours, its in zip(self.names, self.kinds, other.kinds, strict=True):
            try:
                kinds.append(ours + its)
            except TypeError as error:
                raise TypeError(f"Column {name!r} {error}") from error
        return Kinds(self.names, tuple(kinds))

    @property
    def mixed(self) -> list[int]:
        """The columns whose values must be read as text."""
        return [j for j, kind in enumerate(self.kinds) if kind.is_mixed]

    def settled(self, single: bool) -> Columns:
        """Return what `learn_table` says of all rows; `single` if all numbers are float32."""
        assert not self.mixed
        found = tuple(kind.settled(single) for kind in self.kinds)
        known = tuple(kind.found() for kind in self.kinds)
        some = any(kind is not None for kind in known)
        return Columns(tuple(c is not None for c in found), found, self.names, known if some else None)


def look_at_columns(table: Table, encoder: Any) -> tuple[Array, Kinds]:
    """Check a part as `learn_table` does; return its coded matrix and what its columns hold.

    Categories that are numbers are not rounded: the precision of all parts is not yet known. Whether text is
    text or categories is not known either, so that it counts as categories here.
    """
    declared, texts = encoder.categorical_features, encoder.text_features
    finds_text = texts is not None
    if table.matrix is None:
        table = replace(table, dtype=numpy.dtype(numpy.float64))
    X, columns = learn_table(table, declared, texts, finds_text=False)
    named = declared_columns(declared, "categorical_features", table.shape[1], table.named)
    kinds = []
    for j, (start, categories) in enumerate(zip(columns.starts, columns.categories, strict=False)):
        x, known = X[:, start], columns.kind_of[j]
        if isinstance(known, Dates) and _is_missing(x):
            known = replace(known, origin=NEVER)
        if known is not None or categories is None:
            kinds.append(Kind(known is None and not _is_missing(x), None, known))
            continue
        may_be_text = finds_text and not named[j] and table.matrix is None
        may_be_text = may_be_text and column_holds_text(table.columns[j])
        cells = int(numpy.count_nonzero(~numpy.isnan(to_host(x))))
        kinds.append(Kind(False, categories, None, cells, may_be_text))
    return X, Kinds(columns.names, tuple(kinds))


def _is_missing(column: Array) -> bool:
    """Tell whether all values of a column are missing; most columns are not in the first row."""
    return bool(numpy.isnan(to_host(column[:1])).all() and numpy.isnan(to_host(column)).all())


def _read_texts(columns: Sequence[int], part: Part) -> Kinds | None:
    """Read the values of columns of a part as text, and return these texts as their categories."""
    if part.n_rows == 0:
        return None
    table = open_table(part.X)
    kinds = tuple(_read_text(table, j) for j in columns)
    return Kinds(tuple(table.names[j] for j in columns), kinds)


def _read_text(table: Table, j: int) -> Kind:
    """Return the texts of a column, and how many of its cells hold one."""
    values: Values
    if table.matrix is not None:
        values, places = to_host(table.matrix[:, j]).astype(numpy.float64), None
    else:
        values, places = column_values(table.columns[j])
    texts = learn_categories(values)
    if texts.dtype != object:
        texts = numpy.array(sorted(map(text_of, texts.tolist())), dtype=object)
    return Kind(False, texts, None, count_present(values, places))


def with_texts(kinds: Kinds, parts: WatchedParts) -> Kinds:
    """Read columns that hold numbers in one part and text in another, if there are any, as text."""
    if not kinds.mixed:
        return _checked(kinds)
    texts = dict(zip(kinds.mixed, parts.total(partial(_read_texts, kinds.mixed)).kinds, strict=True))
    # where it is declared, or of a type for categories in one part, it is no text in any
    found = {j: replace(text, may_be_text=kinds.kinds[j].may_be_text) for j, text in texts.items()}
    return _checked(replace(kinds, kinds=tuple(found.get(j, kind) for j, kind in enumerate(kinds.kinds))))


def _checked(kinds: Kinds) -> Kinds:
    """Refuse dates that are written as text, of which each part may have had few."""
    for name, kind in zip(kinds.names, kinds.kinds, strict=True):
        if kind.may_be_text and kind.categories is not None and kind.categories.dtype == object:
            try:
                refuse_written_dates(kind.categories)
            except ValueError as error:
                raise ValueError(f"Column {name!r} {error}") from error
    return kinds
