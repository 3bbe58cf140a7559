"""Sums over parts that tell the scale of weights and of values."""

from __future__ import annotations

from dataclasses import dataclass

import numpy

from .._inputs.rows import weights_on_host
from .._seam.arrays import Array


@dataclass(frozen=True, slots=True, eq=False)
class WeightSums:
    """Sums of the rows' weights, by which one knows how many rows they are worth."""

    n_rows: int  # with a positive weight
    total: float
    largest: float
    squares: float  # of the weights over the largest one, which may be tiny
    given: bool  # whether there are weights; without them all are 1

    @classmethod
    def of(cls, counts: numpy.ndarray, given: bool) -> WeightSums:
        """Sum positive weights."""
        largest = float(counts.max(initial=0.0))
        shares = counts / largest if largest else counts
        return cls(len(counts), float(counts.sum()), largest, float(shares @ shares), given)

    @classmethod
    def of_rows(cls, weights: Array | None, m: int) -> WeightSums:
        """Sum the weights of m rows, of any library; None stands for ones."""
        return cls.of(weights_on_host(weights, m), weights is not None)

    def __add__(self, other: WeightSums) -> WeightSums:
        """Return the sums over both sets of rows."""
        largest = max(self.largest, other.largest)
        squares = sum(one.squares * (one.largest / largest) ** 2 for one in (self, other) if one.largest)
        n_rows, total = self.n_rows + other.n_rows, self.total + other.total
        return WeightSums(n_rows, total, largest, squares, self.given or other.given)

    @property
    def worth(self) -> float:
        """How many rows these are, as `rows_worth` tells it of weights in memory."""
        if not self.given:
            return float(self.n_rows)
        return max(self.total, (self.total / self.largest) ** 2 / self.squares)

    @property
    def of_one(self) -> float:
        """The weight of one row, as `weight_of_one` tells it."""
        return self.total / self.worth


@dataclass(frozen=True, slots=True, eq=False)
class ValueScale:
    """Weight, mean and scatter of values, in units that are powers of two: their squares stay finite."""

    unit: numpy.ndarray  # (k,)
    weight: float
    mean: numpy.ndarray  # (k,), over the unit
    scatter: numpy.ndarray  # (k,), the weighted sum of squared deviations, over the squared unit

    @classmethod
    def of(cls, Y: numpy.ndarray, counts: numpy.ndarray) -> ValueScale:
        """Measure the values (rows, k)."""
        largest = numpy.abs(Y).max(axis=0, initial=0.0)
        unit = 2.0 ** numpy.floor(numpy.log2(numpy.where(largest > 0, largest, 1.0)))
        weight = float(counts.sum())
        Y = Y.astype(float) / unit
        mean = counts @ Y / weight if weight else numpy.zeros(Y.shape[1])
        if weight:
            mean = mean + counts @ (Y - mean) / weight  # what rounding left
        return cls(unit, weight, mean, counts @ numpy.square(Y - mean))

    @property
    def sd(self) -> numpy.ndarray:
        """The standard deviation (k,), over the unit."""
        return numpy.sqrt(self.scatter / self.weight)

    @property
    def _is_zero(self) -> numpy.ndarray:
        return (self.mean == 0) & (self.scatter == 0)

    def __add__(self, other: ValueScale) -> ValueScale:
        """Return the scale of both sets of values, by the update of Chan, Golub and LeVeque (1979)."""
        units = [numpy.where(one._is_zero, 0.0, one.unit) for one in (self, other)]  # zeros have no unit
        largest = numpy.maximum(*units)
        unit = numpy.where(largest > 0, largest, 1.0)
        a, b = (one.mean * (its / unit) for one, its in zip((self, other), units, strict=True))
        scatter = sum(one.scatter * (its / unit) ** 2 for one, its in zip((self, other), units, strict=True))
        weight = self.weight + other.weight
        share = other.weight / weight if weight else 0.0
        return ValueScale(unit, weight, a + (b - a) * share, scatter + (b - a) ** 2 * (self.weight * share))
