"""Neuron importance, and which neurons feed the next layer (Eq. 17)."""

from __future__ import annotations

from typing import Any

import numpy

from .._seam.arrays import Array, array_namespace, device, from_numpy


def importance(beta: Array) -> Array:
    """theta = sum over the classes of |beta| (Eq. 17), for the hidden rows of beta (..., n, k)."""
    xp = array_namespace(beta)
    return xp.sum(xp.abs(beta), axis=-1)


def n_pruned(n: int, p: Any) -> Any:
    """Return how many of n neurons a pruning rate p removes: int(p n), and never all of them.

    The small term keeps 0.29 * 100 from counting as 28.
    """
    return numpy.minimum(n - 1, numpy.floor(numpy.asarray(p) * n + 1e-9).astype(int))


def survivors(theta: Array, p: float) -> Array:
    """Return the indices of the neurons that stay. If neurons are equally important, the later ones stay."""
    return array_namespace(theta).nonzero(survivor_mask(theta, p))[0]


def surviving_columns(theta: Array, p: float, d: int) -> Array:
    """Return the columns of [H, X] that the next layer reads: neurons that stay, and all d inputs."""
    xp, n = array_namespace(theta), theta.shape[0]
    kept = survivors(theta, p)
    return xp.concat([kept, xp.arange(n, n + d, dtype=kept.dtype, device=device(kept))])


def survivor_mask(theta: Array, p: Any) -> Array:
    """Return factors (..., n), 1 for a survivor and 0 for others: members of a stack keep different ones."""
    xp = array_namespace(theta)
    # argsort of argsort is the rank
    rank = xp.argsort(xp.argsort(theta, axis=-1, stable=True), axis=-1)
    drop = from_numpy(n_pruned(theta.shape[-1], p), theta, xp.int64)
    return xp.astype(rank >= drop[..., None], theta.dtype)
