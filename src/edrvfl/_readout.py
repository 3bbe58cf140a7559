"""The closed-form read-out: ridge regression, primal, dual and weighted (Eq. 1-4, 15, 16); leave-one-out."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy

from ._arrays import (
    Array,
    Cholesky,
    add_gram,
    add_to_diagonal,
    array_namespace,
    cholesky,
    cholesky_solve,
    device,
    from_numpy,
    inverse_forms,
    on_accelerator,
    packed_width,
    product,
    row_blocks,
    symmetric,
    take_rows,
    weighted_copy,
)

TIE_DIGITS = 12  # accuracies that agree to so many digits are equal
LOO_PATH = 2.0 ** numpy.arange(-12, 13)  # the lambdas among which leave-one-out chooses


@dataclass(frozen=True, slots=True, eq=False)
class Readout:
    """Output weights, which members of the stack needed the fall-back, and what was asked for beside."""

    beta: Array  # (..., c, k)
    fell_back: Array  # (...) of bool
    loo: Array | None = None  # (..., m, k), scores of each row by the read-out fitted without it


def ridge(D: Array, Y: Array, lam: Any, omega: Array | None = None, left_out: Array | None = None) -> Readout:
    """beta = argmin |W^(1/2) (D beta - Y)|^2 + lam |beta|^2 (Eq. 1), solved by Eq. 2, 3, 4, 15 or 16.

    Parameters
    ----------
    D : array of shape (..., m, c)
    Y : array of shape (m, k)
    lam : float or NumPy array of the stack's shape; 0 is the Moore-Penrose solution
    omega : array of shape (m,) or (..., m), positive; None for ones
    left_out : array of shape (m,), the share of its weight that a row loses when it is left out, 1 for all
        of it; None if leave-one-out scores are not wanted
    """
    lam = numpy.asarray(lam, dtype=float)
    if D.ndim > 2 and numpy.any(lam == 0):
        return _member_by_member(D, Y, lam, omega, left_out)
    if numpy.all(lam == 0):
        return _moore_penrose(D, Y, omega, left_out)
    primal = D.shape[-1] <= D.shape[-2]
    return (_primal if primal else _dual)(D, Y, lam, omega, left_out)


def ridge_path(
    D: Array,
    Y: Array,
    lam: Any,
    omega: Array | None = None,
    base: Array | None = None,
    left_out: Array | None = None,
) -> Readout:
    """`ridge` for many read-outs of the same features at once: they share what does not depend on them.

    Parameters
    ----------
    D : array of shape (..., m, c)
    Y : array of shape (m, k)
    lam : NumPy array of shape (..., r): one value for each read-out
    omega : array of shape (..., r, m) in which a read-out's weights take two values at the most, as
        Eq. 14 makes them; None for ones
    base : array of shape (m,), weights common to all; None for ones
    left_out : as in `ridge`

    Returns
    -------
    Readout
        beta of shape (..., r, c, k)
    """
    *_, m, c = D.shape
    if numpy.any(lam == 0):  # nothing is shared with the Moore-Penrose solution
        return _one_by_one(D, Y, lam, omega, base, left_out)
    if on_accelerator(D):
        return (_primal_stack if c <= m else _dual_stack)(D, Y, lam, omega, base, left_out)
    return (_primal_path if c <= m else _dual_path)(D, Y, lam, omega, base, left_out)


def _primal_path(
    D: Array, Y: Array, lam: Any, omega: Array | None, base: Array | None, left_out: Array | None
) -> Readout:
    """One read-out after another, D (m, c): D'WD = low D'D + (high - low) D_w'D_w.

    The first Gram is shared, the second has few rows: those that were wrong.
    """
    xp = array_namespace(D)
    G, R = _normal_equations(D, Y, base)
    each = []
    for i in range(lam.shape[-1]):
        own = None if omega is None else omega[i, :]
        low, high = (1.0, 1.0) if own is None else (xp.min(own), xp.max(own))
        G_i, R_i = low * G, low * R
        if high > low:
            wrong = xp.nonzero(own == high)[0]
            G_w, R_w = _normal_equations(D, Y, base, wrong)
            G_w *= high - low
            G_i += G_w
            R_i += (high - low) * R_w
            del G_w
        each.append(_read_out(add_to_diagonal(G_i, lam[i]), R_i, D, Y, product(base, own), left_out))
    return _stacked(each)


def _dual_path(
    D: Array, Y: Array, lam: Any, omega: Array | None, base: Array | None, left_out: Array | None
) -> Readout:
    """One read-out after another, D (m, c): K = W^(1/2) SS' W^(1/2), in which SS' is shared."""
    xp = array_namespace(D)
    S, T = _weighted(D, Y, base)
    K = S @ xp.matrix_transpose(S)
    each = []
    for i in range(lam.shape[-1]):
        root = None if omega is None else xp.sqrt(omega[i, :])
        K_i = 1.0 * K if root is None else root[:, None] * K * root
        T_i = T if root is None else T * root[:, None]
        each.append(_dual_read_out(add_to_diagonal(K_i, lam[i]), T_i, S, root, Y, lam[i], base, left_out))
    return _stacked(each)


def _primal_stack(
    D: Array, Y: Array, lam: Any, omega: Array | None, base: Array | None, left_out: Array | None
) -> Readout:
    """All read-outs side by side; unweighted, one Gram is enough for them."""
    xp = array_namespace(D)
    c = D.shape[-1]
    weights = product(base, omega)
    G, R = _normal_equations(D[..., None, :, :], Y, weights)
    if omega is None:
        G, R = (xp.broadcast_to(A, (*lam.shape, c, A.shape[-1])) for A in (G, R))
    return _read_out(add_to_diagonal(G, lam, copy=omega is None), R, D[..., None, :, :], Y, weights, left_out)


def _dual_stack(
    D: Array, Y: Array, lam: Any, omega: Array | None, base: Array | None, left_out: Array | None
) -> Readout:
    """The same for more columns than rows."""
    xp = array_namespace(D)
    S, T = _weighted(D, Y, base)
    K = (S @ xp.matrix_transpose(S))[..., None, :, :]
    T = xp.broadcast_to(T, (*lam.shape, *T.shape))
    root = None if omega is None else xp.sqrt(omega)
    if root is None:
        K = xp.broadcast_to(K, (*lam.shape, *K.shape[-2:]))
    else:
        K, T = root[..., :, None] * K * root[..., None, :], root[..., None] * T
    K = add_to_diagonal(K, lam, copy=root is None)
    return _dual_read_out(K, T, S[..., None, :, :], root, Y, lam, base, left_out)


def _primal(D: Array, Y: Array, lam: Any, omega: Array | None, left_out: Array | None = None) -> Readout:
    """beta = (D'WD + lam I)^-1 D'WY (Eq. 3, 15)."""
    G, R = _normal_equations(D, Y, omega)
    return _read_out(add_to_diagonal(G, lam), R, D, Y, omega, left_out)


def _normal_equations(
    D: Array, Y: Array, omega: Array | None, only: Array | None = None
) -> tuple[Array, Array]:
    """D'WD and D'WY, summed over blocks of rows: of all, or of those whose indices are given, D (m, c)."""
    xp = array_namespace(D)
    *stack, m, c = D.shape
    root = None if omega is None else xp.sqrt(omega)
    if root is not None:
        stack = numpy.broadcast_shapes(tuple(stack), root.shape[:-1])
    width = packed_width(D, c)
    G = xp.zeros((*stack, width, width), dtype=D.dtype, device=device(D))
    R = xp.zeros((*stack, width, Y.shape[-1]), dtype=D.dtype, device=device(D))
    for rows in row_blocks(D, m if only is None else only.shape[0], c * math.prod(stack)):
        D_b, T = D[..., rows, :], Y[rows, :]
        part = None if root is None else root[..., rows]
        if only is not None:
            D_b, T = take_rows(D, only[rows]), take_rows(Y, only[rows])
            part = None if root is None else xp.take(root, only[rows])
        S = D_b if only is not None and part is None else weighted_copy(D_b, part)
        T = T if part is None else T * part[..., None]
        add_gram(G, S)
        R += xp.matrix_transpose(S) @ T
    return symmetric(G[..., :c, :c]), R[..., :c, :]


def _dual(D: Array, Y: Array, lam: Any, omega: Array | None, left_out: Array | None = None) -> Readout:
    """beta = D'(DD' + lam I)^-1 Y (Eq. 4, 16), with the rows of D and Y scaled by sqrt(omega)."""
    xp = array_namespace(D)
    S, T = _weighted(D, Y, omega)
    T = xp.broadcast_to(T, (*S.shape[:-1], T.shape[-1]))
    K = add_to_diagonal(S @ xp.matrix_transpose(S), lam)
    return _dual_read_out(K, T, S, None, Y, lam, omega, left_out)


def _moore_penrose(D: Array, Y: Array, omega: Array | None, left_out: Array | None = None) -> Readout:
    """beta = D^+ Y (Eq. 2) from the singular values: the Gram would square the condition number."""
    xp = array_namespace(D)
    S, T = _weighted(D, Y, omega)
    never = xp.zeros((), dtype=xp.bool, device=device(D))
    if not bool(xp.all(xp.isfinite(S))):
        return Readout(_not_a_number(xp.matrix_transpose(S) @ T), never)
    floor = xp.finfo(D.dtype).eps * max(D.shape)
    U, inverse, Vt = _kept_directions(S, floor)
    beta = xp.matrix_transpose(Vt) @ (inverse[:, None] * (xp.matrix_transpose(U) @ T))
    loo = None if left_out is None else _least_norm_loo(U, inverse, D @ beta, Y, omega, left_out)
    return Readout(beta, never, loo)


def _kept_directions(S: Array, floor: float) -> tuple[Array, Array, Array]:
    """U, 1 / sigma and V' of S = U sigma V', without the directions below floor * max(sigma)."""
    xp = array_namespace(S)
    U, sigma, Vt = xp.linalg.svd(S, full_matrices=False)
    kept = sigma > floor * xp.max(sigma)
    inverse = xp.where(kept, 1 / xp.where(kept, sigma, xp.ones_like(sigma)), xp.zeros_like(sigma))
    return U, inverse, Vt


def _member_by_member(D: Array, Y: Array, lam: Any, omega: Array | None, left_out: Array | None) -> Readout:
    lam = numpy.broadcast_to(lam, D.shape[:-2]).copy()
    of = [omega if omega is None or omega.ndim == 1 else omega[i, ...] for i in range(len(lam))]
    return _stacked([ridge(D[i, ...], Y, lam[i], of[i], left_out) for i in range(len(lam))])


def _one_by_one(
    D: Array, Y: Array, lam: Any, omega: Array | None, base: Array | None, left_out: Array | None
) -> Readout:
    of = [None if omega is None else omega[i, ...] for i in range(len(lam))]
    if D.ndim > 2:
        each = [_one_by_one(D[i, ...], Y, lam[i], of[i], base, left_out) for i in range(len(lam))]
    else:
        each = [ridge(D, Y, lam[i], product(of[i], base), left_out) for i in range(len(lam))]
    return _stacked(each)


def _stacked(each: list[Readout]) -> Readout:
    xp = array_namespace(each[0].beta)
    loo = None if each[0].loo is None else xp.stack([r.loo for r in each])
    return Readout(xp.stack([r.beta for r in each]), xp.stack([r.fell_back for r in each]), loo)


def _weighted(D: Array, Y: Array, omega: Array | None) -> tuple[Array, Array]:
    """Rows times sqrt(omega): the weighted problem as a plain one, and symmetric in both forms."""
    if omega is None:
        return D, Y
    root = array_namespace(D).sqrt(omega)[..., None]
    return D * root, Y * root


# --- the systems and their factors --------------------------------------------------------------------


def _read_out(
    G: Array, R: Array, D: Array, Y: Array, weights: Array | None, left_out: Array | None
) -> Readout:
    """The primal read-out of G beta = R, with leave-one-out scores from the same factor."""
    beta, factor = _solve(G, R)
    loo = None
    if factor is not None and left_out is not None:
        loo = _primal_loo(factor, D, Y, beta, weights, left_out)
        loo = _repaired(loo, factor, D, Y, beta, weights, left_out)
    return Readout(beta, _fell_back(G, factor), loo)


def _dual_read_out(
    K: Array,
    T: Array,
    S: Array,
    root: Array | None,
    Y: Array,
    lam: Any,
    base: Array | None,
    left_out: Array | None,
) -> Readout:
    """The dual read-out of K dual = T, where K = root SS' root + lam I and S holds the rows times base."""
    xp = array_namespace(K)
    dual, factor = _solve(K, T)
    beta = xp.matrix_transpose(S) @ (dual if root is None else root[..., None] * dual)
    loo = None
    if factor is not None and left_out is not None:
        weights = product(base, None if root is None else root * root)
        loo = _dual_loo(factor, dual, Y, lam, weights, left_out)
        unweighted = S if base is None else S / xp.sqrt(base)[..., None]
        loo = _repaired(loo, factor, unweighted, Y, beta, weights, left_out)
    return Readout(beta, _fell_back(K, factor), loo)


def _solve(G: Array, B: Array) -> tuple[Array, Cholesky | None]:
    """Solve symmetric positive definite systems; a singular member falls back to `eigh`, alone.

    Features that overflowed give not-a-number and no factor, for the caller to report with the layer's name.
    """
    xp = array_namespace(G)
    if not bool(xp.all(xp.isfinite(xp.linalg.diagonal(G)))):
        return _not_a_number(B), None
    factor = cholesky(G)
    X = cholesky_solve(factor, B)
    for i in _refused(factor):
        X[(*i, ...)] = _eigen_solve(G[(*i, ...)], B[(*i, ...)])
    return X, factor


def _refused(factor: Cholesky) -> list[tuple[int, ...]]:
    """Indices of the members without a factor."""
    if bool(array_namespace(factor.solved).all(factor.solved)):
        return []
    return [i for i in numpy.ndindex(factor.solved.shape) if not bool(factor.solved[i])]


def _fell_back(G: Array, factor: Cholesky | None) -> Array:
    xp = array_namespace(G)
    return xp.zeros(G.shape[:-2], dtype=xp.bool, device=device(G)) if factor is None else ~factor.solved


def _not_a_number(B: Array) -> Array:
    return array_namespace(B).full_like(B, float("nan"))


def _eigen_solve(G: Array, B: Array) -> Array:
    """Least-norm solution of G X = B; eigenvalues below eps * size * max are dropped."""
    xp = array_namespace(G)
    values, V = xp.linalg.eigh(G)
    floor = xp.finfo(G.dtype).eps * G.shape[-1] * xp.max(values)
    inverse = xp.where(values > floor, 1 / values, xp.zeros_like(values))
    return V @ (inverse[:, None] * (xp.matrix_transpose(V) @ B))


# --- leave-one-out: exact given the features ----------------------------------------------------------
#
# Without row i the read-out gives it (score - h y) / (1 - h), with the leverage
# h = left_out * omega * d'(D'WD + lam I)^-1 d. In the dual 1 - h would cancel; there
# y - loo = dual / (sqrt(omega) q) with q the diagonal of (K + lam I)^-1, and no difference is taken.


def _without(score: Array, Y: Array, h: Array) -> Array:
    """(score - h y) / (1 - h)."""
    xp = array_namespace(score)
    rest = xp.clip(1 - h, float(xp.finfo(score.dtype).eps), None)[..., None]
    return (score - h[..., None] * Y) / rest


def _without_in_dual(error: Array, Y: Array, q: Array, left_out: Array, lam: Array) -> Array:
    """y - error / ((1 - left_out) / lam + left_out q), with error = dual / sqrt(omega)."""
    return Y - error / ((1 - left_out) / lam + left_out * q)[..., None]


def _primal_loo(
    factor: Cholesky, D: Array, Y: Array, beta: Array, weights: Array | None, left_out: Array
) -> Array:
    xp = array_namespace(D)
    *_, m, c = D.shape
    loo = xp.empty((*beta.shape[:-2], m, Y.shape[-1]), dtype=D.dtype, device=device(D))
    share = left_out if weights is None else left_out * weights
    for rows in row_blocks(D, m, c * math.prod(beta.shape[:-2])):
        h = share[..., rows] * inverse_forms(factor, D[..., rows, :])
        loo[..., rows, :] = _without(D[..., rows, :] @ beta, Y[rows, :], h)
    return loo


def _dual_loo(
    factor: Cholesky, dual: Array, Y: Array, lam: Any, weights: Array | None, left_out: Array
) -> Array:
    xp = array_namespace(dual)
    q = inverse_forms(factor, xp.eye(dual.shape[-2], dtype=dual.dtype, device=device(dual)))
    error = dual if weights is None else dual / xp.sqrt(weights)[..., None]
    return _without_in_dual(error, Y, q, left_out, from_numpy(lam, dual)[..., None])


def _repaired(
    loo: Array,
    factor: Cholesky,
    D: Array,
    Y: Array,
    beta: Array,
    weights: Array | None,
    left_out: Array,
) -> Array:
    """Leave-one-out scores in which those of the members that fell back follow their least-norm solution."""
    refused = _refused(factor)
    if not refused:
        return loo
    xp = array_namespace(D)
    stack = beta.shape[:-2]
    D = xp.broadcast_to(D, (*stack, *D.shape[-2:]))
    weights = None if weights is None else xp.broadcast_to(weights, (*stack, weights.shape[-1]))
    for i in refused:
        own = None if weights is None else weights[(*i, ...)]
        S, _ = _weighted(D[(*i, ...)], Y, own)
        floor = (float(xp.finfo(D.dtype).eps) * min(S.shape)) ** 0.5  # of eigenvalues, eps * size
        U, inverse, _ = _kept_directions(S, floor)
        loo[(*i, ...)] = _least_norm_loo(U, inverse, D[(*i, ...)] @ beta[(*i, ...)], Y, own, left_out)
    return loo


def _least_norm_loo(
    U: Array, inverse: Array, score: Array, Y: Array, weights: Array | None, left_out: Array
) -> Array:
    """Leave-one-out scores of beta = V (1 / sigma) U'T, the limit of lam -> 0.

    A row that lies outside the span of the others has leverage 1: the dual form is its limit.
    """
    xp = array_namespace(U)
    root = xp.ones_like(left_out) if weights is None else xp.sqrt(weights)
    kept = xp.astype(inverse > 0, U.dtype)
    h = xp.sum(U * U * kept, axis=-1)
    q = xp.sum(U * U * (inverse * inverse), axis=-1)
    dual = U @ ((inverse * inverse)[:, None] * (xp.matrix_transpose(U) @ (Y * root[:, None])))
    alone = (h > 1 - float(xp.finfo(U.dtype).eps) ** 0.5) & (left_out == 1)
    of_span = _without(score, Y, xp.where(alone, xp.zeros_like(h), left_out * h))
    of_alone = Y - dual / (root * xp.where(alone, q, xp.ones_like(q)))[:, None]
    return xp.where(alone[:, None], of_alone, of_span)


@dataclass(frozen=True, slots=True, eq=False)
class LooReadout:
    """The read-out whose lambda leave-one-out chose."""

    beta: Array  # (c, k)
    fell_back: Array  # () of bool
    lam: float
    right: Array  # (m,) of bool, whether leave-one-out classifies the row correctly


def ridge_by_loo(D: Array, Y: Array, y: Array, omega: Array | None, left_out: Array) -> LooReadout:
    """`ridge` with the lambda of `LOO_PATH` whose leave-one-out accuracy, weighted by omega, is best.

    Of equals the larger. One decomposition serves all of them; those at which the system is numerically
    singular do not compete.

    Parameters
    ----------
    D : array of shape (m, c)
    Y, y : arrays of shape (m, k) and (m,), targets and the same as codes
    omega, left_out : as in `ridge`
    """
    xp = array_namespace(D)
    m, c = D.shape
    primal = c <= m
    if primal:
        G, R = _normal_equations(D, Y, omega)
    else:
        S, R = _weighted(D, Y, omega)
        G = S @ xp.matrix_transpose(S)
    regular = numpy.zeros(len(LOO_PATH), dtype=bool)
    if bool(xp.all(xp.isfinite(xp.linalg.diagonal(G)))):
        values, V = xp.linalg.eigh(G)
        values = xp.clip(values, 0.0, None)
        floor = float(xp.finfo(D.dtype).eps * min(m, c) * xp.max(values))
        regular = LOO_PATH + float(xp.min(values)) > floor
    if not regular.any():
        lam = float(LOO_PATH[-1])
        plain = ridge(D, Y, lam, omega, left_out)
        right = xp.zeros_like(y) == 1 if plain.loo is None else xp.argmax(plain.loo, axis=-1) == y
        return LooReadout(plain.beta, plain.fell_back, lam, right)
    lams = LOO_PATH[regular]
    inverse = 1 / (values[:, None] + from_numpy(lams, D))  # (min(m, c), lambdas)
    R = xp.matrix_transpose(V) @ R
    weights = left_out if omega is None else left_out * omega
    right = xp.empty((len(lams), m), dtype=xp.bool, device=device(D))
    spread = xp.reshape(inverse[:, :, None] * R[:, None, :], (V.shape[0], -1))
    for rows in row_blocks(D, m, c):
        P = D[rows, :] @ V if primal else V[rows, :]
        answers = xp.reshape(P @ spread, (-1, len(lams), Y.shape[-1]))
        forms = (P * P) @ inverse
        if primal:
            loo = _without(answers, Y[rows, None, :], weights[rows, None] * forms)
        else:
            root = 1.0 if omega is None else xp.sqrt(omega[rows])[:, None, None]
            share = left_out[rows, None]
            loo = _without_in_dual(answers / root, Y[rows, None, :], forms, share, from_numpy(lams, D))
        right[:, rows] = xp.matrix_transpose(xp.argmax(loo, axis=-1) == y[rows, None])
    counts = xp.ones_like(left_out) if omega is None else omega
    total = xp.sum(xp.where(right, counts, xp.zeros_like(counts)), axis=-1) / xp.sum(counts)
    accuracy = [round(float(total[i]), TIE_DIGITS) for i in range(len(lams))]
    best = max(range(len(lams)), key=lambda i: (accuracy[i], lams[i]))
    beta = V @ (inverse[:, best, None] * R)
    if not primal:
        beta = xp.matrix_transpose(S) @ beta
    never = xp.zeros((), dtype=xp.bool, device=device(D))
    return LooReadout(beta, never, float(lams[best]), right[best, :])
