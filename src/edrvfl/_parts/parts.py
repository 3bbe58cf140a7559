"""The parts that rows come in, and sums over them.

Whatever a fit needs of all rows is a sum of what it needs of each part. The parts may be read one after
another on this machine, or lie on the workers of a cluster: who asks for a sum need not know.

Users know a part as a block of a `RowBlocks` or a partition of a Dask collection, and errors call it a block.
Inside, a block is a stretch of rows that is computed at a time, so what came together is called a part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, Protocol

import numpy


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """Some rows as they came."""

    number: int  # from 0, the part's place among all parts
    X: Any  # an array or a frame
    y: Any
    weight: Any  # (rows,) or None for ones

    @property
    def n_rows(self) -> int:
        """How many rows the part has."""
        return len(self.y)

    def counts(self) -> numpy.ndarray:
        """Return the weights in float64, ones if there are none.

        They are not rounded to the precision of X, as in memory: that of all parts may not be known yet.
        """
        if self.weight is None:
            return numpy.ones(self.n_rows)
        weights = numpy.asarray(self.weight, dtype=numpy.float64)
        if weights.shape != (self.n_rows,):
            raise ValueError(f"Its weights have the shape {weights.shape}, expected ({self.n_rows},).")
        if not (numpy.isfinite(weights).all() and (weights >= 0).all()):
            raise ValueError("Its weights must be finite and not negative.")
        return weights


def block_name(number: int) -> str:
    """Return how errors begin that are about a part."""
    return f"Block {number} of the source"


@contextmanager
def about_block(number: int) -> Iterator[None]:
    """Make an error about a part begin with its number."""
    try:
        yield
    except (TypeError, ValueError) as error:
        # subclasses may take other arguments
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"{block_name(number)}: {error}") from error


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

        The function is an object that can be sent to another process; None is nothing to add. `heard` is
        called with the number of parts that are done.
        """


def add(one: Any, other: Any) -> Any:
    """Return the sum, where None stands for nothing."""
    if one is None or other is None:
        return other if one is None else one
    return one + other


@dataclass(frozen=True, slots=True, eq=False)
class ByPart:
    """Something of each part. One dict would be copied with every part that is added.

    So there are several, each larger than the next: an entry is copied once for each time that they double.
    """

    dicts: tuple[dict[int, Any], ...] = ()

    @classmethod
    def of(cls, number: int, value: Any) -> ByPart:
        """Return what there is of one part."""
        return cls(({number: value},))

    def __add__(self, other: ByPart) -> ByPart:
        """Return what there is of both sets of parts."""
        dicts = list(self.dicts)
        for one in other.dicts:
            dicts.append(one)
            while len(dicts) > 1 and len(dicts[-2]) <= len(dicts[-1]):
                dicts[-2:] = [dicts[-2] | dicts[-1]]
        return ByPart(tuple(dicts))

    def together(self) -> dict[int, Any]:
        """Return all in one dict, in the order of the parts."""
        return dict(sorted((pair for one in self.dicts for pair in one.items()), key=itemgetter(0)))


@dataclass(frozen=True, slots=True, eq=False)
class Marked:
    """A sum over some parts, with what tells whether a part is the same as before."""

    value: Any  # None if these parts have no rows
    marks: ByPart = ByPart()  # its rows, and a checksum

    def __add__(self, other: Marked) -> Marked:
        """Return the sum over both sets of parts."""
        return Marked(add(self.value, other.value), self.marks + other.marks)


@dataclass(frozen=True, slots=True, eq=False)
class Several:
    """Several sums over the same rows."""

    values: tuple[Any, ...]

    def __add__(self, other: Several) -> Several:
        """Return the sums over both sets of rows."""
        return Several(tuple(a + b for a, b in zip(self.values, other.values, strict=True)))


@dataclass(frozen=True, slots=True, eq=False)
class Together:
    """Ask several functions for their sums in one pass."""

    functions: tuple[Callable[..., Any], ...]

    def __call__(self, *given: Any) -> Several:
        """Return what each function makes of the rows."""
        return Several(tuple(function(*given) for function in self.functions))
