"""What is known about the columns of X, and which columns of the coded matrix each of them becomes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from numbers import Integral
from typing import Annotated, Any, ClassVar, TypeAlias

import numpy

from .._seam.fields import Long
from .dates import LEAST_WAVE, WORDS, Dates
from .text import VARIANCE, Text

Kind: TypeAlias = Dates | Text


@dataclass(frozen=True, slots=True)
class Part:
    """A column of the coded matrix."""

    column: int  # of X, of which it is made
    source: int  # the coded column that stands for those that say one thing, as a sine and its cosine
    label: str = ""  # what it adds to the column's name
    least: float = 0.0  # it says nothing if it varies by less than this in training
    bins: bool = True  # whether single values and stretches of it mean something
    variance: float = 1.0  # that it has when it is encoded
    categories: numpy.ndarray | None = field(default=None, compare=False)  # whose texts are hashed


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """What is known about the columns of X: which hold categories, dates and text, and which categories."""

    categorical: Annotated[tuple[bool, ...], Long("given")]
    # the sorted values of a column of categories, float64 or text in an object array; None for others
    categories: Annotated[tuple[numpy.ndarray | None, ...], Long("given")]
    names: Annotated[tuple[str, ...], Long("given")]  # "x0", "x1", ... if X has none
    # what is known of columns of dates and of text, None for other columns; None if there are no such columns
    kinds: Annotated[tuple[Kind | None, ...], Long("given")] | None = None

    stays_in_numpy: ClassVar = True  # when arrays move: frames are read with the categories

    @property
    def kind_of(self) -> tuple[Kind | None, ...]:
        """What is known of each column of X that holds dates or text, None for others."""
        return (None,) * len(self.names) if self.kinds is None else self.kinds

    def words(self, j: int) -> str:
        """Say what a column of X holds."""
        kind = self.kind_of[j]
        if isinstance(kind, Dates):
            return WORDS[kind.holds]
        return "text" if kind is not None else "categories" if self.categorical[j] else "numbers"

    @property
    def width(self) -> int:
        """How many columns the coded matrix has."""
        return sum(1 if kind is None else len(kind.parts) for kind in self.kind_of)

    @property
    def starts(self) -> list[int]:
        """Where the first coded column of each column of X is, and their number."""
        widths = [1 if kind is None else len(kind.parts) for kind in self.kind_of]
        return [0, *numpy.cumsum(widths, dtype=int).tolist()]

    @property
    def parts(self) -> tuple[Part, ...]:
        """What the columns of the coded matrix are."""
        found: list[Part] = []
        for j, kind in enumerate(self.kind_of):
            first = len(found)
            if kind is None:
                found.append(Part(j, first, categories=self.categories[j]))
            elif isinstance(kind, Text):
                share = VARIANCE / kind.n_columns
                found += [Part(j, first, label, bins=False, variance=share) for label in kind.parts]
            else:
                for i, label in enumerate(kind.parts):
                    if label.endswith(("_sin", "_cos")):
                        source = first + i - label.endswith("_cos")
                        found.append(Part(j, source, label, LEAST_WAVE, bins=False))
                    else:
                        found.append(Part(j, first + i, label))
        return tuple(found)

    @property
    def coded(self) -> tuple[bool, ...]:
        """Which columns of the coded matrix hold codes of categories."""
        if self.kinds is None:
            return self.categorical
        return tuple(self.categorical[part.column] for part in self.parts)


def declared_columns(given: Any, what: str, d: int, named: tuple[str, ...] | None) -> list[bool]:
    """Return the mask of the columns that a parameter `what` names: by names, positions or a mask."""
    if given is None or (isinstance(given, str) and given == "from_dtype"):
        return [False] * d
    items = [] if isinstance(given, str) else list(given)
    mask = [isinstance(item, (bool, numpy.bool_)) for item in items]
    if items and all(mask):
        if len(items) != d:
            raise ValueError(f"{what} is a mask of {len(items)} values, but X has {d} columns.")
        return [bool(item) for item in items]
    if items and all(isinstance(item, str) for item in items):
        return _declared_by_name(items, what, named)
    if isinstance(given, str) or any(mask) or not all(isinstance(i, Integral) for i in items):
        raise ValueError(
            f'{what} must be "from_dtype", None, a list of names, a list of positions or a mask '
            f"(not a mixture of these), got {given!r}."
        )
    if outside := [int(item) for item in items if not 0 <= item < d]:
        raise ValueError(f"{what} names positions {outside}, but X has the columns 0 to {d - 1}.")
    positions = set(items)
    return [j in positions for j in range(d)]


def _declared_by_name(items: list[str], what: str, named: tuple[str, ...] | None) -> list[bool]:
    if named is None:
        raise ValueError(f"{what} holds names, but X has no names of columns. Use positions or a mask.")
    if unknown := [item for item in items if item not in named]:
        raise ValueError(
            f"{what} names columns that X does not have: {', '.join(map(repr, unknown))}. "
            f"X has {', '.join(map(repr, named))}."
        )
    return [name in items for name in named]


def refuse_both(categories: Iterable[bool], texts: Iterable[bool], names: tuple[str, ...]) -> None:
    """Refuse columns that are declared to hold categories and text."""
    both = [name for name, *twice in zip(names, categories, texts, strict=True) if all(twice)]
    if both:
        raise ValueError(
            f"categorical_features and text_features both name {', '.join(both)}. Name a column in one only."
        )
