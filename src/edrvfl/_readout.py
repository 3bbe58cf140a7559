"""The closed-form read-out: ridge regression, primal, dual and weighted (Eq. 1-4, 15, 16)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy

from ._arrays import (
    Array,
    add_gram,
    add_to_diagonal,
    array_namespace,
    cholesky_solve,
    device,
    on_accelerator,
    packed_width,
    row_blocks,
    symmetric,
    weighted_copy,
)


@dataclass(frozen=True, slots=True, eq=False)
class Readout:
    """Output weights, and which members of the stack needed the fall-back."""

    beta: Array  # (..., c, k)
    fell_back: Array  # (...) of bool


def ridge(D: Array, Y: Array, lam: Any, omega: Array | None = None) -> Readout:
    """beta = argmin |W^(1/2) (D beta - Y)|^2 + lam |beta|^2 (Eq. 1), solved by Eq. 2, 3, 4, 15 or 16.

    Parameters
    ----------
    D : array of shape (..., m, c)
    Y : array of shape (m, k)
    lam : float or NumPy array of the stack's shape; 0 is the Moore-Penrose solution
    omega : array of shape (m,) or (..., m), positive; None for ones
    """
    lam = numpy.asarray(lam, dtype=float)
    if D.ndim > 2 and numpy.any(lam == 0):
        return _member_by_member(D, Y, lam, omega)
    if numpy.all(lam == 0):
        return _moore_penrose(D, Y, omega)
    primal = D.shape[-1] <= D.shape[-2]
    return (_primal if primal else _dual)(D, Y, lam, omega)


def ridge_path(
    D: Array, Y: Array, lam: Any, omega: Array | None = None, base: Array | None = None
) -> Readout:
    """`ridge` for many read-outs of the same features at once: they share what does not depend on them.

    Parameters
    ----------
    D : array of shape (..., m, c)
    Y : array of shape (m, k)
    lam : NumPy array of shape (..., r), positive: one value for each read-out
    omega : array of shape (..., r, m) in which a read-out's weights take two values at the most, as
        Eq. 14 makes them; None for ones
    base : array of shape (m,), weights common to all; None for ones

    Returns
    -------
    Readout
        beta of shape (..., r, c, k)
    """
    *_, m, c = D.shape
    if c > m:
        return _dual_path(D, Y, lam, omega, base)
    if omega is None or on_accelerator(D):
        xp = array_namespace(D)
        G, R = _normal_equations(D[..., None, :, :], Y, _times(base, omega))
        R = xp.broadcast_to(R, (*lam.shape, *R.shape[-2:]))
        return Readout(*_solve(add_to_diagonal(xp.broadcast_to(G, (*lam.shape, c, c)), lam, copy=True), R))
    return _two_level_path(D, Y, lam, omega, base)


def _times(a: Array | None, b: Array | None) -> Array | None:
    return a if b is None else b if a is None else a * b


def _two_level_path(D: Array, Y: Array, lam: Any, omega: Array, base: Array | None) -> Readout:
    """D'WD = low D'D + (high - low) D_w'D_w: the first Gram is shared, the second has few rows."""
    xp = array_namespace(D)
    G, R = _normal_equations(D, Y, base)
    betas, fell_back = [], []
    for i in range(lam.shape[-1]):
        low, high = xp.min(omega[i, :]), xp.max(omega[i, :])
        G_i, R_i = low * G, low * R
        if high > low:
            wrong = xp.nonzero(omega[i, :] == high)[0]
            rows = xp.take(D, wrong, axis=0), xp.take(Y, wrong, axis=0)
            G_w, R_w = _normal_equations(*rows, None if base is None else xp.take(base, wrong))
            G_i += (high - low) * G_w
            R_i += (high - low) * R_w
        beta, fell = _solve(add_to_diagonal(G_i, lam[i]), R_i)
        betas.append(beta)
        fell_back.append(fell)
    return Readout(xp.stack(betas), xp.stack(fell_back))


def _dual_path(D: Array, Y: Array, lam: Any, omega: Array | None, base: Array | None) -> Readout:
    """beta = S'(W^(1/2) SS' W^(1/2) + lam I)^-1 W^(1/2) Y: one Gram of the rows S for all weights."""
    xp = array_namespace(D)
    S, T = _weighted(D, Y, base)
    K = (S @ xp.matrix_transpose(S))[..., None, :, :]
    T = xp.broadcast_to(T, (*lam.shape, *T.shape))
    if omega is None:
        dual, fell_back = _solve(
            add_to_diagonal(xp.broadcast_to(K, (*lam.shape, *K.shape[-2:])), lam, copy=True), T
        )
    else:
        root = xp.sqrt(omega)
        scaled = root[..., :, None] * K * root[..., None, :]
        dual, fell_back = _solve(add_to_diagonal(scaled, lam), root[..., None] * T)
        dual = root[..., None] * dual
    return Readout(xp.matrix_transpose(S)[..., None, :, :] @ dual, fell_back)


def _primal(D: Array, Y: Array, lam: Any, omega: Array | None) -> Readout:
    """beta = (D'WD + lam I)^-1 D'WY (Eq. 3, 15)."""
    G, R = _normal_equations(D, Y, omega)
    return Readout(*_solve(add_to_diagonal(G, lam), R))


def _normal_equations(D: Array, Y: Array, omega: Array | None) -> tuple[Array, Array]:
    """D'WD and D'WY, summed over blocks of rows."""
    xp = array_namespace(D)
    *stack, m, c = D.shape
    root = None if omega is None else xp.sqrt(omega)
    if root is not None:
        stack = numpy.broadcast_shapes(tuple(stack), root.shape[:-1])
    width = packed_width(D, c)
    G = xp.zeros((*stack, width, width), dtype=D.dtype, device=device(D))
    R = xp.zeros((*stack, width, Y.shape[-1]), dtype=D.dtype, device=device(D))
    for rows in row_blocks(D, m, c * math.prod(stack)):
        part = None if root is None else root[..., rows]
        S = weighted_copy(D[..., rows, :], part)
        T = Y[rows, :] if part is None else Y[rows, :] * part[..., None]
        add_gram(G, S)
        R += xp.matrix_transpose(S) @ T
    return symmetric(G[..., :c, :c]), R[..., :c, :]


def _dual(D: Array, Y: Array, lam: Any, omega: Array | None) -> Readout:
    """beta = D'(DD' + lam I)^-1 Y (Eq. 4, 16), with the rows of D and Y scaled by sqrt(omega)."""
    xp = array_namespace(D)
    S, T = _weighted(D, Y, omega)
    T = xp.broadcast_to(T, (*S.shape[:-1], T.shape[-1]))
    dual, fell_back = _solve(add_to_diagonal(S @ xp.matrix_transpose(S), lam), T)
    return Readout(xp.matrix_transpose(S) @ dual, fell_back)


def _moore_penrose(D: Array, Y: Array, omega: Array | None) -> Readout:
    """beta = D^+ Y (Eq. 2) from the singular values: the Gram would square the condition number."""
    xp = array_namespace(D)
    S, T = _weighted(D, Y, omega)
    never = xp.zeros((), dtype=xp.bool, device=device(D))
    if not bool(xp.all(xp.isfinite(S))):
        return Readout(_not_a_number(xp.matrix_transpose(S) @ T), never)
    U, sigma, Vt = xp.linalg.svd(S, full_matrices=False)
    floor = xp.finfo(D.dtype).eps * max(D.shape) * xp.max(sigma)
    inverse = xp.where(sigma > floor, 1 / sigma, xp.zeros_like(sigma))
    beta = xp.matrix_transpose(Vt) @ (inverse[:, None] * (xp.matrix_transpose(U) @ T))
    return Readout(beta, never)


def _member_by_member(D: Array, Y: Array, lam: Any, omega: Array | None) -> Readout:
    xp = array_namespace(D)
    lam = numpy.broadcast_to(lam, D.shape[:1])
    of = [omega if omega is None or omega.ndim == 1 else omega[i, ...] for i in range(lam.size)]
    each = [ridge(D[i, ...], Y, lam[i], of[i]) for i in range(lam.size)]
    return Readout(xp.stack([r.beta for r in each]), xp.stack([r.fell_back for r in each]))


def _weighted(D: Array, Y: Array, omega: Array | None) -> tuple[Array, Array]:
    """Rows times sqrt(omega): the weighted problem as a plain one, and symmetric in both forms."""
    if omega is None:
        return D, Y
    root = array_namespace(D).sqrt(omega)[..., None]
    return D * root, Y * root


def _solve(G: Array, B: Array) -> tuple[Array, Array]:
    """Solve symmetric positive definite systems; a singular member falls back to `eigh`, alone.

    Features that overflowed give not-a-number, for the caller to report with the layer's name.
    """
    xp = array_namespace(G)
    if not bool(xp.all(xp.isfinite(xp.linalg.diagonal(G)))):
        return _not_a_number(B), xp.zeros(G.shape[:-2], dtype=xp.bool, device=device(G))
    X, solved = cholesky_solve(G, B)
    if not bool(xp.all(solved)):
        for i in numpy.ndindex(G.shape[:-2]):
            if not bool(solved[i]):
                X[(*i, ...)] = _eigen_solve(G[(*i, ...)], B[(*i, ...)])
    return X, ~solved


def _not_a_number(B: Array) -> Array:
    return array_namespace(B).full_like(B, float("nan"))


def _eigen_solve(G: Array, B: Array) -> Array:
    """Least-norm solution of G X = B; eigenvalues below eps * size * max are dropped."""
    xp = array_namespace(G)
    values, V = xp.linalg.eigh(G)
    floor = xp.finfo(G.dtype).eps * G.shape[-1] * xp.max(values)
    inverse = xp.where(values > floor, 1 / values, xp.zeros_like(values))
    return V @ (inverse[:, None] * (xp.matrix_transpose(V) @ B))
