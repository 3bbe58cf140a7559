"""A column in order: weighted quantiles and distinct values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy

from .._seam.arrays import Array, array_namespace, from_numpy
from .moments import moments
from .rows import to_host

SLACK = 1e-10  # of the total weight: sums in another order must not move a quantile to the next value


@dataclass(frozen=True, slots=True, eq=False)
class Ranked:
    """The values of a column without gaps, sorted."""

    values: Array  # (n,)
    counts: Array | None  # (n,), None for ones
    reach: Array | None  # (n,), the weight up to and with each value, in float64; None for 1, 2, ... n

    @classmethod
    def of(cls, column: Array, counts: Array | None) -> Ranked:
        """Sort a column."""
        xp = array_namespace(column)
        if counts is None:
            return cls(xp.sort(column), None, None)
        order = xp.argsort(column)
        counts = xp.take(counts, order)
        return cls(xp.take(column, order), counts, xp.cumulative_sum(xp.astype(counts, xp.float64)))

    @property
    def total(self) -> float:
        """The weight of all rows."""
        return float(self.values.shape[0] if self.reach is None else self.reach[-1])

    def quantiles(self, shares: Sequence[float]) -> numpy.ndarray:
        """Return, for each share, the smallest value whose cumulated weight reaches that share of the total.

        A row of weight 2 is the row twice, exactly: there is no interpolation between values.
        """
        xp = array_namespace(self.values)
        goals = [(share - SLACK) * self.total for share in shares]
        if self.reach is None:
            ranks = from_numpy([max(math.ceil(goal), 1) - 1 for goal in goals], self.values, xp.int64)
        else:
            ranks = xp.searchsorted(self.reach, from_numpy(goals, self.reach), side="left")
        return to_host(xp.take(self.values, ranks))

    def distinct(self, most: int) -> tuple[numpy.ndarray, numpy.ndarray] | None:
        """Return the different values and the weight of each, or None if there are more than `most`."""
        xp = array_namespace(self.values)
        changes = self.values[1:] > self.values[:-1]
        if int(xp.count_nonzero(changes)) >= most:
            return None
        last = [*to_host(xp.nonzero(changes)[0]).tolist(), self.values.shape[0] - 1]
        ranks = from_numpy(last, self.values, xp.int64)
        up_to = numpy.asarray(last) + 1.0 if self.reach is None else to_host(xp.take(self.reach, ranks))
        return to_host(xp.take(self.values, ranks)), numpy.diff(up_to, prepend=0.0)

    def variance(self, divisor: float) -> float:
        """Return the variance of the values over the divisor, whose squares are finite."""
        _, variance = moments([((self.values / divisor)[:, None], self.counts)])
        return float(variance[0])
