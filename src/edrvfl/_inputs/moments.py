"""Weighted mean and variance of columns, summed by blocks of rows."""

from __future__ import annotations

from collections.abc import Iterable

from .._arrays import Array, moments_of_block


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
