"""Sample weights of the next layer, from what this layer got right (Eq. 12-14)."""

from __future__ import annotations

from typing import Any

from ._arrays import Array, array_namespace, from_numpy


def next_weights(right: Array, s: Array, omega_r: Any) -> Array:
    """omega_r for the right samples, omega_w = (m - n_r omega_r) / n_w for the wrong ones (Eq. 14).

    Parameters
    ----------
    right : bool array of shape (..., m), which samples this layer classified correctly
    s : array of shape (m,), the user's sample weights; n_r, n_w and m count weight, not rows
    omega_r : float in (0, 1] or NumPy array of the stack's shape

    Returns
    -------
    omega : array of shape (..., m) with sum(s * omega) = sum(s); exact ones where nothing is wrong,
        nothing is right, or omega_r is 1
    """
    xp = array_namespace(s)
    omega_r = from_numpy(omega_r, s)[..., None]
    zero, one = xp.zeros_like(s), xp.ones_like(s)
    n_r = xp.sum(xp.where(right, s, zero), axis=-1, keepdims=True)
    n_w = xp.sum(xp.where(right, zero, s), axis=-1, keepdims=True)
    neutral = (n_r == 0) | (n_w == 0) | (omega_r == 1)
    omega_w = (n_w + n_r * (1 - omega_r)) / xp.where(neutral, xp.ones_like(n_w), n_w)
    return xp.where(neutral, one, xp.where(right, omega_r, omega_w))
