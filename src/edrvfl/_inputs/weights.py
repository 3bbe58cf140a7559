"""How much rows weigh: sample weights, class costs, and the weights of a layer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy

from .._seam.arrays import Array, array_namespace, device, ignore_overflow, product, take_entries
from .._seam.sklearn import _convert_to_numpy


@dataclass(frozen=True, slots=True, eq=False)
class WeightSums:
    """Sums of the weights of some rows, by which one knows how many rows they are worth."""

    n_rows: int  # with a positive weight
    total: float
    largest: float
    shares: float  # the sum of the weights over the largest one, whose squares would vanish if it is tiny
    squares: float  # of these

    @classmethod
    def of(cls, counts: numpy.ndarray, times: numpy.ndarray | float = 1.0) -> WeightSums:
        """Sum positive weights of rows, each of which comes so many times."""
        largest = float(counts.max(initial=0.0))
        shares = counts / largest if largest else counts
        sums = (counts * times).sum(), largest, (shares * times).sum(), (shares * times) @ shares
        return cls(len(counts), *map(float, sums))

    def __add__(self, other: WeightSums) -> WeightSums:
        """Return the sums over both sets of rows."""
        largest = max(self.largest, other.largest)
        a, b = (one.largest / largest if largest else 0.0 for one in (self, other))
        shares, squares = self.shares * a + other.shares * b, self.squares * a**2 + other.squares * b**2
        return WeightSums(self.n_rows + other.n_rows, self.total + other.total, largest, shares, squares)

    @property
    def equal(self) -> float:
        """(sum w)^2 / sum w^2: how many rows of equal weight say as much (Kish); their scale is no matter.

        That is the number of rows where all weights are equal.
        """
        return self.shares**2 / self.squares if self.n_rows else 0.0

    @property
    def worth(self) -> float:
        """How many rows without weights say as much as rows with these weights.

        Weight 2 is the row twice, so this is their sum. Weights below 1 may have any scale, for instance a
        sum of 1; then it is (sum w)^2 / sum w^2, which does not depend on the scale, and which is never above
        the sum of weights that are 1 or more.
        """
        return max(self.total, self.equal)

    @property
    def of_one(self) -> float:
        """The weight of one row: 1 if weights are 1 or more, but weights below 1 may have any scale."""
        return self.total / self.worth


def rows_worth(counts: numpy.ndarray, times: numpy.ndarray | float = 1.0) -> float:
    """Return how many rows without weights say as much as rows with these counts: see `WeightSums`."""
    return WeightSums.of(counts, times).worth


def equal_rows(counts: numpy.ndarray, times: numpy.ndarray | float = 1.0) -> float:
    """Return how many rows of equal weight say as much as rows with these counts: see `WeightSums`."""
    return WeightSums.of(counts, times).equal


def weight_of_one(counts: numpy.ndarray) -> float:
    """Return the weight of one row among rows with these counts: see `WeightSums`."""
    return WeightSums.of(counts).of_one


@dataclass(frozen=True, slots=True, eq=False)
class RowWeights:
    """How much each training row weighs, apart from the layer's own omega (Eq. 14).

    None stands for ones. No weight is 0: `prepare_rows` has dropped rows of weight 0.
    """

    counts: Array | None = None  # (m,), sample weights: weight 2 is the row twice, in every statistic
    costs: Array | None = None  # (m,), class weights: factors of the row's squared error alone

    @property
    def base(self) -> Array | None:
        """The factor of a row's squared error in every read-out; a layer multiplies it by its omega."""
        return product(self.counts, self.costs)

    @property
    def unit(self) -> float:
        """The weight of one row, see `WeightSums.of_one`. Class weights are no part of it."""
        counts = self.counts
        if counts is None:
            return 1.0
        return weight_of_one(numpy.asarray(_convert_to_numpy(counts, array_namespace(counts)), dtype=float))

    @classmethod
    def joined(cls, parts: Sequence[RowWeights]) -> RowWeights:
        """Return the weights of all parts, one after another."""

        def join(each: list[Array | None]) -> Array | None:
            return None if each[0] is None else array_namespace(each[0]).concat(each)

        return cls(join([part.counts for part in parts]), join([part.costs for part in parts]))

    def some(self, which: Array | slice) -> RowWeights:
        """Return the weights of some rows."""
        return RowWeights(*(None if w is None else take_entries(w, which) for w in (self.counts, self.costs)))

    def counts_of(self, m: int, like: Array) -> Array:
        """Return the counts of m rows as an array, ones if there are none."""
        if self.counts is not None:
            return self.counts
        return array_namespace(like).ones((m,), dtype=like.dtype, device=device(like))

    def left_out_shares(self, m: int, like: Array) -> Array:
        """Return how much of a row's weight leave-one-out removes.

        A row of weight 3 stands for three rows, so leaving one out removes a third of its weight. A row of
        weight 1 or less is removed completely.
        """
        counts = self.counts_of(m, like)
        with ignore_overflow():  # the inverse of a tiny weight is infinite and becomes 1
            return array_namespace(counts).clip(1 / counts, None, 1.0)
