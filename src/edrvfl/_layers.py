"""Hidden layers: draw, project, re-normalise, activate (Eq. 5-11), and the scaling of the inputs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy

from ._arrays import (
    Array,
    array_namespace,
    from_numpy,
    matmul_into,
    moments_of_block,
    row_blocks,
    scale_and_shift,
)

EPSILON = 1e-5  # of Eq. 10: a constant neuron stays constant instead of dividing by zero


def draw(seed: int, layer: int, n_inputs: int, n_hidden: int) -> tuple[numpy.ndarray, numpy.ndarray]:
    """Random W ~ U[-1, 1] of shape (n_inputs, n_hidden) and b ~ U[0, 1] of one layer (Eq. 5, 6).

    Layer l is child l of the seed, W and b are children of that: a prefix of a deep network is the
    shallower network, and W and b are independent.
    """
    of_W, of_b = (
        numpy.random.default_rng(numpy.random.SeedSequence(seed, spawn_key=(layer, role))) for role in (0, 1)
    )
    return of_W.uniform(-1.0, 1.0, (n_inputs, n_hidden)), of_b.uniform(0.0, 1.0, n_hidden)


def project(A: Array, W: Array, out: Array) -> None:
    """The input of the activation functions: out = A W (Eq. 7, inside Eq. 5 and 6)."""
    matmul_into(A, W, out)


def moments(blocks: Iterable[tuple[Array, Array | None]]) -> tuple[Array, Array]:
    """Weighted mean and variance of the columns (Eq. 8, 9) of rows that come in (Z, s) blocks.

    Each block is centred on its own mean before it is squared, and blocks are merged by the exact
    update of Chan, Golub and LeVeque (1979), so large means do not cancel. s is None for ones.
    """
    total: Array = 0.0
    mean: Array = 0.0
    scatter: Array = 0.0
    for Z, s in blocks:
        weight, block_mean, block_scatter = moments_of_block(Z, s)
        share = weight / (total + weight)  # 1 for the first block, which so replaces the zeros
        gap = block_mean - mean
        scatter = scatter + block_scatter + gap * gap * (total * share)
        mean = mean + gap * share
        total = total + weight
    return mean, scatter / total


def renormalisation(mean: Array, variance: Array, b: Array, gamma: Any, alpha: Any) -> tuple[Array, Array]:
    """Scale and shift of each neuron, gamma xhat + alpha + b = scale z + shift (Eq. 10, 11)."""
    gamma, alpha = (from_numpy(v, mean)[..., None] for v in (gamma, alpha))
    scale = gamma / array_namespace(mean).sqrt(variance + EPSILON)
    return scale, alpha + b - mean * scale


def activate(Z: Array, scale: Array | None, shift: Array, g: Callable[[Array], Array]) -> None:
    """H = g(scale z + shift), written over Z (Eq. 5, 6 after Eq. 11)."""
    if scale is None:
        Z += shift[..., None, :]
    else:
        scale_and_shift(Z, scale, shift)
    H = g(Z)
    if H is not Z:
        Z[...] = H


@dataclass(frozen=True, slots=True, eq=False)
class Scaling:
    """How inputs are brought to mean 0 and variance 1: (x / divisor - mean) / sd."""

    divisor: Array  # the largest absolute value of the column; infinity where it is constant
    mean: Array
    sd: Array


def input_scaling(X: Array, s: Array | None = None) -> Scaling:
    """Scaling of the columns of X (m, d) by their weighted moments; constant columns become 0."""
    xp = array_namespace(X)
    low, high = xp.min(X, axis=0), xp.max(X, axis=0)
    constant = low == high
    largest = xp.maximum(xp.abs(low), xp.abs(high))
    infinity = xp.full_like(largest, float("inf"))
    divisor = xp.where(constant, infinity, largest)
    blocks = row_blocks(X, *X.shape)
    mean, variance = moments((X[rows, :] / divisor, None if s is None else s[rows]) for rows in blocks)
    sd = xp.where(variance > 0, xp.sqrt(variance), xp.ones_like(variance))
    return Scaling(divisor, mean, sd)


def scale_inputs(X: Array, scaling: Scaling | None) -> Array:
    """Inputs as the network sees them; far outliers are clipped so that no layer overflows."""
    xp = array_namespace(X)
    if scaling is None:
        return X
    bound = float(xp.finfo(X.dtype).max) ** 0.25
    return (xp.clip(X / scaling.divisor, -bound, bound) - scaling.mean) / scaling.sd
