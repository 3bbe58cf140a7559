"""The parts that rows come in, and sums over them.

Whatever a fit needs of all rows is a sum of what it needs of each part. The parts may be read one after
another on this machine, or lie on the workers of a cluster: who asks for a sum need not know.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """Some rows as they came."""

    number: int  # from 0, the part's place among all parts
    X: Any  # an array or a frame
    y: Any
    weight: Any  # (rows,) or None for ones


@contextmanager
def about_block(number: int) -> Iterator[None]:
    """Make an error about a part begin with its number."""
    try:
        yield
    except (TypeError, ValueError) as error:
        # subclasses may take other arguments
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"Block {number} of the source: {error}") from error


class Parts(Protocol):
    """All rows, part by part, as often as they are asked for."""

    @property
    def spill(self) -> Any:
        """Whether features are kept in files between passes: True, False, "auto", or a folder for them."""

    @property
    def device(self) -> Any:
        """Where torch computes, for instance "cuda"; None for NumPy."""

    @property
    def threads(self) -> int:
        """How many parts are computed at once."""

    def total(self, function: Callable[[Part], Any], heard: Callable[[int], None] | None = None) -> Any:
        """Return the sum of function(part) over the parts, in some order, by the operator +.

        The function is an object that can be sent to another process. `heard` is called with the number of
        parts that are done.
        """


@dataclass(frozen=True, slots=True, eq=False)
class Marked:
    """A sum over some parts, with what tells whether a part is the same as before."""

    value: Any  # None if these parts have no rows
    marks: dict[int, tuple[int, int]] = field(default_factory=dict)  # by part: its rows, and a checksum

    def __add__(self, other: Marked) -> Marked:
        """Return the sum over both sets of parts."""
        if self.value is None or other.value is None:
            value = other.value if self.value is None else self.value
        else:
            value = self.value + other.value
        return Marked(value, self.marks | other.marks)


@dataclass(frozen=True, slots=True, eq=False)
class Sums:
    """Several sums over the same rows."""

    values: tuple[Any, ...]

    def __add__(self, other: Sums) -> Sums:
        """Return the sums over both sets of rows."""
        return Sums(tuple(a + b for a, b in zip(self.values, other.values, strict=True)))


@dataclass(frozen=True, slots=True, eq=False)
class Together:
    """Ask several functions for their sums in one pass."""

    functions: tuple[Callable[..., Any], ...]

    def __call__(self, *given: Any) -> Sums:
        """Return what each function makes of the rows."""
        return Sums(tuple(function(*given) for function in self.functions))
