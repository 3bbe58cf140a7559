"""The sums over rows that an encoding is learnt from: sums over some rows add up to those over all.

An encoding asks for a first look at all rows, for number columns in order, and for moments. Rows in memory
answer here; rows that come in parts answer in `_parts/encoding.py`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, Protocol

import numpy

from .._seam.arrays import Array, array_namespace, row_blocks
from .categories import code_weights
from .inputs import Bins, Numbers, taken
from .moments import Moments
from .ranked import Ranked
from .rows import to_host
from .targets import weight_of_one

Step = Callable[[Array, Array | None], Any]  # makes a sum of rows (m, d) and their counts


class InOrder(Protocol):
    """A column in order: what `Ranked` tells of a column in memory."""

    def quantiles(self, shares: Sequence[float]) -> numpy.ndarray:
        """Return, for each share, the smallest value whose cumulated weight reaches it."""

    def distinct(self, most: int) -> tuple[numpy.ndarray, numpy.ndarray] | None:
        """Return the different values and the weight of each, or None if there are more than `most`."""

    def variance(self, divisor: float) -> float:
        """Return the variance of the values over the divisor."""


class TrainingSums(Protocol):
    """All training rows, as the learning of an encoding sees them."""

    @property
    def like(self) -> Array:
        """An array in the precision, of the library and on the device of the rows."""

    def look(self, coded: Sequence[int]) -> Look:
        """Take the first look; columns `coded` hold codes of categories."""

    def in_order(
        self, look: Look, columns: Sequence[int], divisor: numpy.ndarray, shares: Sequence[float]
    ) -> Iterator[InOrder]:
        """Yield columns in order, which will be asked for no other shares; each has its divisor."""

    def total(self, step: Step) -> Any:
        """Return the sum of what the step makes of the rows."""


@dataclass(frozen=True, slots=True, eq=False)
class Look:
    """What a first look at the rows tells of each column."""

    total: float  # the weight of all rows
    one: float  # the weight of one row, see `weight_of_one`
    low: Array  # (d,), the smallest number, infinity where all are missing
    high: Array
    missing: numpy.ndarray  # (d,), the weight of the rows where the column is missing
    codes: tuple[numpy.ndarray, ...]  # the weights of the codes of each column of categories

    def ends(self) -> tuple[Array, Array]:
        """Return smallest and largest numbers; a column without any is as constant as one of zeros."""
        xp = array_namespace(self.low)
        nothing = self.low > self.high
        low, high = (xp.where(nothing, xp.zeros_like(end), end) for end in (self.low, self.high))
        return low, high

    def __add__(self, other: Look) -> Look:
        """Return what both sets of rows tell, but for the weight of one row."""
        xp = array_namespace(self.low)
        low, high = xp.minimum(self.low, other.low), xp.maximum(self.high, other.high)
        codes = (padded_sum(*both) for both in zip(self.codes, other.codes, strict=True))
        return Look(self.total + other.total, 1.0, low, high, self.missing + other.missing, tuple(codes))


def padded_sum(a: numpy.ndarray, b: numpy.ndarray) -> numpy.ndarray:
    """Add vectors, the shorter one as if zeros followed."""
    a, b = (a, b) if len(a) >= len(b) else (b, a)
    added = a.copy()
    added[: len(b)] += b
    return added


@dataclass(frozen=True, slots=True)
class LookAt:
    """Take a first look at rows."""

    coded: tuple[int, ...]

    def __call__(self, X: Array, counts: Array | None) -> Look:
        """Return what these rows tell."""
        xp = array_namespace(X)
        total = float(X.shape[0] if counts is None else xp.sum(counts, dtype=xp.float64))
        low, high, gaps = _extremes(X)
        missing = numpy.zeros(X.shape[1])
        for j in numpy.flatnonzero(gaps).tolist():
            missing[j] = _missing_weight(X[:, j], counts)
        codes = (code_weights(*observed(X[:, j], counts, bool(gaps[j]))) for j in self.coded)
        return Look(total, 1.0, low, high, missing, tuple(codes))


def _extremes(X: Array) -> tuple[Array, Array, numpy.ndarray]:
    """Return the smallest and largest number of each column of X, and which columns have gaps."""
    xp = array_namespace(X)
    low, high = xp.min(X, axis=0), xp.max(X, axis=0)
    gaps = to_host(xp.isnan(low))
    if gaps.any():
        far = xp.full_like(low, float("inf"))
        low, high = far, -far
        for rows in row_blocks(X, *X.shape):
            Z = X[rows, :]
            missing = xp.isnan(Z)
            low = xp.minimum(low, xp.min(xp.where(missing, far, Z), axis=0))
            high = xp.maximum(high, xp.max(xp.where(missing, -far, Z), axis=0))
    return low, high, gaps


def _missing_weight(column: Array, counts: Array | None) -> float:
    """Return the weight of the rows where a column is missing."""
    xp = array_namespace(column)
    weights = xp.astype(xp.isnan(column), xp.float64)
    return float(xp.sum(weights if counts is None else weights * xp.astype(counts, xp.float64)))


def observed(column: Array, counts: Array | None, gaps: bool) -> tuple[Array, Array | None]:
    """Return the values of a column that are not missing, and their counts."""
    if not gaps:
        return column, counts
    seen = ~array_namespace(column).isnan(column)
    return column[seen], None if counts is None else counts[seen]


@dataclass(frozen=True, slots=True, eq=False)
class Measured:
    """Moments of scaled numbers and of their bins."""

    numbers: Moments
    bins: Moments | None

    def __add__(self, other: Measured) -> Measured:
        """Return the moments of both sets of rows."""
        bins = None if self.bins is None or other.bins is None else self.bins + other.bins
        return Measured(self.numbers + other.numbers, bins)


@dataclass(frozen=True, slots=True, eq=False)
class Measure:
    """Sum the moments of number columns and of their bins. A gap without a fill counts as the mean."""

    numbers: Numbers  # whose moments are not known; without a fill, missing numbers become the mean
    bins: Bins | None
    gaps: bool  # whether some numbers are missing

    def __call__(self, X: Array, counts: Array | None) -> Measured:
        """Return the moments of these rows."""
        width = max(X.shape[1], 0 if self.bins is None else self.bins.left.shape[0])
        blocks = row_blocks(X, X.shape[0], width)
        return reduce(
            operator.add,
            (self._block(X[rows, :], None if counts is None else counts[rows]) for rows in blocks),
        )

    def _block(self, X: Array, counts: Array | None) -> Measured:
        numbers, xp = self.numbers, array_namespace(X)
        Z = taken(X, numbers.columns) / numbers.divisor
        if self.gaps and numbers.fill is None:
            return Measured(Moments.of_observed(Z, counts), None)
        if self.gaps:
            Z = xp.where(xp.isnan(Z), numbers.fill, Z)
        bins = None if self.bins is None else Moments.of(self.bins.of(Z), counts)
        return Measured(Moments.of(numbers.clipped(Z), counts), bins)


@dataclass(frozen=True, slots=True, eq=False)
class InMemory:
    """Training rows in memory: one part that is all rows."""

    X: Array
    counts: Array | None

    @property
    def like(self) -> Array:
        """The rows themselves."""
        return self.X

    def look(self, coded: Sequence[int]) -> Look:
        """Take the first look."""
        found: Look = self.total(LookAt(tuple(coded)))
        if self.counts is None:
            return found
        one = weight_of_one(to_host(self.counts).astype(float))
        return replace(found, one=one)

    def in_order(
        self,
        look: Look,
        columns: Sequence[int],
        divisor: numpy.ndarray,  # noqa: ARG002
        shares: Sequence[float],  # noqa: ARG002
    ) -> Iterator[InOrder]:
        """Sort one column after another."""
        for j in columns:
            yield Ranked.of(*observed(self.X[:, j], self.counts, bool(look.missing[j] > 0)))

    def total(self, step: Step) -> Any:
        """Return what the step makes of all rows."""
        return step(self.X, self.counts)
