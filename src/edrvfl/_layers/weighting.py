"""The samples' weights in the next layer, from what this layer got right (Eq. 12-14)."""

from __future__ import annotations

from typing import Any

from .._seam.arrays import Array, array_namespace, from_numpy


def next_weights(right: Array, counts: Array, omega_r: Any) -> Array:
    """omega_r for the right samples, omega_w = (m - n_r omega_r) / n_w for the wrong ones (Eq. 14).

    Parameters
    ----------
    right : bool array of shape (..., m), which samples this layer classified correctly
    counts : array of shape (m,), the user's sample weights; n_r, n_w and m count weight, not rows
    omega_r : float in (0, 1], or NumPy array of the shape (...)

    Returns
    -------
    omega : array of shape (..., m) with sum(counts * omega) = sum(counts). All are exactly 1
        where nothing is wrong, nothing is right, or omega_r is 1
    """
    xp = array_namespace(counts)
    omega_r = from_numpy(omega_r, counts)[..., None]
    zero, one = xp.zeros_like(counts), xp.ones_like(counts)
    n_r = xp.sum(xp.where(right, counts, zero), axis=-1, keepdims=True)
    n_w = xp.sum(xp.where(right, zero, counts), axis=-1, keepdims=True)
    # Eq. 14 divides by n_w and would be 0 / 0 when nothing is wrong
    neutral = (n_r == 0) | (n_w == 0) | (omega_r == 1)
    # m - n_r omega_r, written without the difference of two large numbers
    omega_w = (n_w + n_r * (1 - omega_r)) / xp.where(neutral, xp.ones_like(n_w), n_w)
    return xp.where(neutral, one, xp.where(right, omega_r, omega_w))
