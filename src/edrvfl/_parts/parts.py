"""The parts that rows come in, and sums over them.

Whatever a fit needs of all rows is a sum of what it needs of each part. The parts may be read one after
another on this machine, or lie on the workers of a cluster: who asks for a sum need not know.

Users know a part as a block of a `RowBlocks` or a partition of a Dask collection, and errors call it a block.
Inside, a block is a stretch of rows that is computed at a time, so what came together is called a part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import reduce
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

    def without(self, rows: Any) -> Part:
        """Give weight 0 to rows, which are named by their places among the rows that have a weight."""
        weights = self.counts().copy()
        weights[numpy.flatnonzero(weights > 0)[rows]] = 0.0
        return replace(self, weight=weights)


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
    def device(self) -> Any:
        """Where torch computes, for instance "cuda"; None for NumPy."""

    def total(self, function: Callable[[Part], Any], heard: Callable[[int], None] | None = None) -> Any:
        """Return the sum of function(part) over the parts, by the operator + and in their order.

        The function is an object that can be sent to another process; None is nothing to add. `heard` is
        called with the number of parts that are done.
        """


def add(one: Any, other: Any) -> Any:
    """Return the sum, where None stands for nothing."""
    if one is None or other is None:
        return other if one is None else one
    return one + other


class TreeSum:
    """A sum of neighbours by pairs, of these pairs by pairs, and so on: ((0 + 1) + (2 + 3)) + (4 + 5) ...

    Its rounding depends on the number of parts alone, and is the same here and on a cluster. As few sums as
    the number has binary digits are held, and a list that each part adds to is copied as seldom.
    """

    def __init__(self) -> None:
        self._sums: list[tuple[int, Any]] = []  # each of more parts than the next, with their number

    def add(self, value: Any) -> None:
        """Add what the next part gives."""
        n = 1
        while self._sums and self._sums[-1][0] == n:
            value, n = add(self._sums.pop()[1], value), 2 * n
        self._sums.append((n, value))

    def total(self) -> Any:
        """Return the sum over all parts so far; None if there are none."""
        sums = [value for _, value in reversed(self._sums)]
        return reduce(lambda right, left: add(left, right), sums, None)


@dataclass(frozen=True, slots=True, eq=False)
class Several:
    """Several sums over the same rows."""

    values: tuple[Any, ...]

    def __add__(self, other: Several) -> Several:
        """Return the sums over both sets of rows."""
        return Several(tuple(map(add, self.values, other.values)))


def together(functions: Sequence[Callable[..., Any]], *given: Any) -> Several:
    """Return what each function makes of some rows: several sums in one pass."""
    return Several(tuple(function(*given) for function in functions))
