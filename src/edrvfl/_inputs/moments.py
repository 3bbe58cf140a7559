"""Weighted mean and variance of columns, summed by blocks of rows."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from typing import Any

from .._seam.arrays import Array, array_namespace, moments_of_blocks, power_of_two, weighted_mean


@dataclass(frozen=True, slots=True, eq=False)
class Moments:
    """Weight, mean and weighted sum of squared deviations of columns."""

    weight: Any
    mean: Array
    scatter: Array

    @classmethod
    def of(cls, Z: Array, counts: Array | None) -> Moments:
        """Measure the columns of Z (..., r, n), centred on their own mean. None counts every row once."""
        return reduce(operator.add, (cls(*each) for each in moments_of_blocks(Z, counts)))

    @classmethod
    def of_observed(cls, Z: Array, counts: Array | None) -> Moments:
        """Measure the numbers of Z (r, n) that are not missing. Each column has a weight of its own."""
        xp = array_namespace(Z)
        missing, zeros = xp.isnan(Z), xp.zeros_like(Z)
        w = xp.ones_like(Z[:, 0]) if counts is None else counts
        weight = w @ xp.astype(~missing, Z.dtype)
        # that of a column without numbers is next to nothing, so that nothing is divided by 0
        least = float(xp.finfo(Z.dtype).smallest_normal)
        weight = xp.where(weight > 0, weight, xp.full_like(weight, least))
        mean = w @ xp.where(missing, zeros, Z) / weight
        deviation = xp.where(missing, zeros, Z - mean)
        return cls(weight, mean, w @ (deviation * deviation))

    def __add__(self, other: Moments) -> Moments:
        """Return the moments of both sets of rows (Chan, Golub and LeVeque, 1979); no large means cancel."""
        weight = self.weight + other.weight
        share = other.weight / weight
        gap = other.mean - self.mean
        scatter = self.scatter + other.scatter + gap * gap * (self.weight * share)
        return Moments(weight, self.mean + gap * share, scatter)


def moments(blocks: Iterable[tuple[Array, Array | None]]) -> tuple[Array, Array]:
    """Return weighted mean and variance of the columns (Eq. 8, 9) of rows that come in (Z, counts) blocks."""
    total: Moments = reduce(operator.add, (Moments.of(Z, counts) for Z, counts in blocks))
    return total.mean, total.scatter / total.weight


@dataclass(frozen=True, slots=True, eq=False)
class ValueScale:
    """The moments of outputs over units that are powers of two: see `power_of_two`."""

    unit: Array  # (k,)
    moments: Moments  # of the values over the unit

    @classmethod
    def of(cls, Y: Array, counts: Array | None) -> ValueScale:
        """Measure the values (m, k), in float64, of rows with these counts."""
        xp = array_namespace(Y)
        if Y.shape[0] == 0:
            nothing = xp.sum(Y, axis=0)
            return cls(power_of_two(nothing), Moments(0.0, nothing, nothing))
        unit = power_of_two(xp.max(xp.abs(Y), axis=0))
        Y = xp.matrix_transpose(Y / unit)
        weight = float(Y.shape[1] if counts is None else xp.sum(counts, dtype=xp.float64))
        mean = weighted_mean(Y, counts)
        mean = mean + weighted_mean(Y - mean[:, None], counts)  # what rounding left
        deviation = Y - mean[:, None]
        return cls(unit, Moments(weight, mean, weighted_mean(deviation * deviation, counts) * weight))

    @property
    def mean(self) -> Array:
        """The mean (k,), over the unit."""
        return self.moments.mean

    @property
    def sd(self) -> Array:
        """The standard deviation (k,), over the unit."""
        return array_namespace(self.unit).sqrt(self.moments.scatter / self.moments.weight)

    def __add__(self, other: ValueScale) -> ValueScale:
        """Return the scale of both sets of values."""
        if not (self.moments.weight and other.moments.weight):
            return self if self.moments.weight else other
        unit = array_namespace(self.unit).maximum(self.unit, other.unit)
        return ValueScale(unit, self._over(unit) + other._over(unit))

    def _over(self, unit: Array) -> Moments:
        """Return the moments over another unit."""
        ratio, own = self.unit / unit, self.moments
        return Moments(own.weight, own.mean * ratio, own.scatter * ratio**2)
