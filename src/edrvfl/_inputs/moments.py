"""Weighted mean and variance of columns, summed by blocks of rows."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from typing import Any

from .._seam.arrays import Array, array_namespace, moments_of_block


@dataclass(frozen=True, slots=True, eq=False)
class Moments:
    """Weight, mean and weighted sum of squared deviations of columns."""

    weight: Any
    mean: Array
    scatter: Array

    @classmethod
    def of(cls, Z: Array, counts: Array | None) -> Moments:
        """Measure the columns of Z (..., r, n), centred on their own mean. None counts every row once."""
        return cls(*moments_of_block(Z, counts))

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
