"""What is learnt about the columns of X: from the rows of one fit or one split, never before."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from .._arrays import Array, array_namespace, moments_of_block, row_blocks


@dataclass(frozen=True, slots=True, eq=False)
class Scaling:
    """How columns are brought to mean 0 and variance 1: (x / divisor - mean) / sd."""

    divisor: Array  # the largest absolute value of the column; infinity where the column is constant
    mean: Array
    sd: Array


@dataclass(frozen=True, slots=True, eq=False)
class Inputs:
    """What was learnt about the columns: how many the network sees, and how they are scaled."""

    width: int
    scaling: Scaling | None  # None leaves the columns as they are

    def apply(self, X: Array) -> Array:
        """Return the rows of X as the network sees them. Far outliers are clipped: no layer overflows."""
        if self.scaling is None:
            return X
        xp = array_namespace(X)
        bound = float(xp.finfo(X.dtype).max) ** 0.25  # squares and their sums stay finite
        clipped = xp.clip(X / self.scaling.divisor, -bound, bound)
        return (clipped - self.scaling.mean) / self.scaling.sd


def learn_inputs(X: Array, counts: Array | None, standardize: bool) -> Inputs:
    """Learn the scaling of the columns of X (m, d) from their weighted moments.

    scikit-learn's StandardScaler is not used: it copies X, overflows on columns of 1e200, and scales what
    rounding left of a constant column. Here constant columns become 0.
    """
    if not standardize:
        return Inputs(X.shape[1], None)
    xp = array_namespace(X)
    low, high = xp.min(X, axis=0), xp.max(X, axis=0)
    largest = xp.maximum(xp.abs(low), xp.abs(high))
    # compare the extremes, not the variance: rounding leaves a variance in constant columns
    divisor = xp.where(low == high, xp.full_like(largest, float("inf")), largest)
    blocks = row_blocks(X, *X.shape)
    mean, variance = moments(
        (X[rows, :] / divisor, None if counts is None else counts[rows]) for rows in blocks
    )
    # a column whose spread is lost in rounding is only centred
    sd = xp.where(variance > 0, xp.sqrt(variance), xp.ones_like(variance))
    return Inputs(X.shape[1], Scaling(divisor, mean, sd))


def moments(blocks: Iterable[tuple[Array, Array | None]]) -> tuple[Array, Array]:
    """Return weighted mean and variance of the columns (Eq. 8, 9) of rows that come in (Z, counts) blocks.

    Each block is centred on its own mean before it is squared, and blocks are merged by the exact
    update of Chan, Golub and LeVeque (1979), so large means do not cancel. None counts every row once.
    """
    total: Array = 0.0
    mean: Array = 0.0
    scatter: Array = 0.0
    for Z, counts in blocks:
        weight, block_mean, block_scatter = moments_of_block(Z, counts)
        share = weight / (total + weight)  # 1 for the first block, so that it replaces the zeros
        gap = block_mean - mean
        scatter = scatter + block_scatter + gap * gap * (total * share)
        mean = mean + gap * share
        total = total + weight
    return mean, scatter / total
