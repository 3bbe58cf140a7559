"""Solve least-squares problems for output weights: by Cholesky, and otherwise if that fails."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy

from .._arrays import Array, array_namespace, device
from .._linalg import Cholesky, add_to_diagonal, factorise, kept_eigenvalues, solve
from .equations import NormalEquations, Regression, layer_equations, normal_equations
from .leave_one_out import dual_scores, least_norm_scores, primal_scores


@dataclass(frozen=True, slots=True, eq=False)
class ReadOut:
    """The output weights of one read-out or of a stack of them, and what else was asked for."""

    beta: Array  # (..., c, k)
    fell_back: Array  # (...) of bool: the system was singular, and beta is the least-norm solution
    loo: Array | None = None  # (..., m, k), scores of each row by the read-out fitted without it
    lam: float | None = None  # the penalty, where leave-one-out chose it


def ridge(
    problem: Regression, lam: Any, equations: NormalEquations | None = None, K: Array | None = None
) -> ReadOut:
    """beta = argmin |W^(1/2) (D beta - Y)|^2 + lam |beta|^2 (Eq. 1), solved by Eq. 2, 3, 4, 15 or 16.

    `lam` is a number, or a NumPy array of positive numbers for a stack; the number 0 asks for the
    Moore-Penrose solution. Sums that are known already may be given, and are overwritten: the normal
    equations, or K = DD' where D has more columns than rows.
    """
    if isinstance(lam, float | int) and lam == 0:
        return _moore_penrose(problem)
    if problem.primal:
        return _primal(problem, layer_equations(problem) if equations is None else equations, lam)
    return _dual(problem, gram_of_rows(problem.D) if K is None else K, lam)


def gram_of_rows(D: Array) -> Array:
    """Return K = DD'."""
    return D @ array_namespace(D).matrix_transpose(D)


def _primal(problem: Regression, equations: NormalEquations, lam: Any) -> ReadOut:
    """beta = (D'WD + lam I)^-1 D'WY (Eq. 3, 15)."""
    G = add_to_diagonal(equations.G, lam)
    xp = array_namespace(G)
    if not _is_finite(G):
        return _not_a_number(problem, G.shape[:-2])
    factor = factorise(G)
    R = xp.broadcast_to(equations.R, (*G.shape[:-1], equations.R.shape[-1]))
    beta = solve(factor, R)
    loo = None if problem.shares is None else primal_scores(problem, factor, beta)

    def solve_alone(i: tuple[int, ...], member: Regression, lam: float) -> ReadOut:
        if G.dtype == xp.float32:
            return _primal(member, normal_equations(member, dtype=xp.float64), lam)
        return _least_norm(member, G[(*i, ...)], R[(*i, ...)])

    return _mend(ReadOut(beta, xp.asarray(~factor.regular), loo), problem, factor, lam, solve_alone)


def _dual(problem: Regression, K: Array, lam: Any) -> ReadOut:
    """beta = D'W^(1/2) (W^(1/2) DD' W^(1/2) + lam I)^-1 W^(1/2) Y (Eq. 4, 16 made symmetric).

    The rows of D and Y are scaled by the roots of their weights, because the printed Eq. 16 inverts a
    matrix that is not symmetric.
    """
    xp, D, root = array_namespace(K), problem.D, problem.root
    T = xp.astype(problem.Y, K.dtype, copy=False)
    if root is not None:
        K, T = root[..., :, None] * K, root[..., None] * T
        K *= root[..., None, :]
    K = add_to_diagonal(K, lam)
    if not _is_finite(K):
        return _not_a_number(problem, K.shape[:-2])
    factor = factorise(K)
    T = xp.broadcast_to(T, (*K.shape[:-1], T.shape[-1]))
    dual = solve(factor, T)
    D = xp.astype(D, K.dtype, copy=False)  # K has more digits than D in the second try, see `_mend`
    beta = xp.matrix_transpose(D) @ (dual if root is None else root[..., None] * dual)
    loo = None if problem.shares is None else dual_scores(problem, factor, dual, lam)

    def solve_alone(i: tuple[int, ...], member: Regression, lam: float) -> ReadOut:
        if K.dtype == xp.float32:
            return _dual(member, gram_of_rows(xp.astype(member.D, xp.float64)), lam)
        return _least_norm(member, K[(*i, ...)], T[(*i, ...)])

    return _mend(ReadOut(beta, xp.asarray(~factor.regular), loo), problem, factor, lam, solve_alone)


def _mend(
    readout: ReadOut,
    problem: Regression,
    factor: Cholesky,
    lam: Any,
    solve_alone: Callable[[tuple[int, ...], Regression, float], ReadOut],
) -> ReadOut:
    """Solve the singular members of a stack again, each alone.

    In float32 the second try sums and solves in float64: a collinear column among many rows makes the Gram
    singular to seven digits while lambda is far above sixteen. What is singular in float64 too gets the
    least-norm solution.
    """
    xp, stack = array_namespace(readout.beta), factor.regular.shape
    for i in factor.singular_members:
        again = solve_alone(i, problem.member(i, stack), float(numpy.broadcast_to(lam, stack)[i]))
        readout.beta[(*i, ...)] = xp.astype(again.beta, readout.beta.dtype)
        readout.fell_back[(*i, ...)] = again.fell_back
        if readout.loo is not None:
            readout.loo[(*i, ...)] = xp.astype(again.loo, readout.loo.dtype)
    return readout


def _least_norm(problem: Regression, G: Array, B: Array) -> ReadOut:
    """Solve one singular system G x = B, primal or dual, by its eigenvalues: the solution of least norm."""
    xp, root = array_namespace(G), problem.root
    D = xp.astype(problem.D, G.dtype, copy=False)  # G has more digits in the second try, see `_mend`
    inverse, V = kept_eigenvalues(G)
    beta = V @ (inverse[:, None] * (xp.matrix_transpose(V) @ B))
    if not problem.primal:
        beta = xp.matrix_transpose(D) @ (beta if root is None else root[:, None] * beta)
    fell_back = xp.ones((), dtype=xp.bool, device=device(D))
    if problem.shares is None:
        return ReadOut(beta, fell_back)
    # The left singular vectors of the weighted rows S: in the dual G = SS' and V holds them, in the primal
    # G = S'S and they are SV / sigma.
    sigma = xp.sqrt(inverse)
    U = ((D if root is None else D * root[:, None]) @ V) * sigma if problem.primal else V
    return ReadOut(beta, fell_back, least_norm_scores(problem, U, sigma, beta))


def _moore_penrose(problem: Regression) -> ReadOut:
    """beta = D^+ Y (Eq. 2) from the singular values, because the Gram would square the condition number."""
    D, Y, root = problem.D, problem.Y, problem.root
    xp = array_namespace(D)
    S, T = (D, Y) if root is None else (D * root[:, None], Y * root[:, None])
    if not bool(xp.all(xp.isfinite(S))):
        return _not_a_number(problem, ())
    U, sigma, Vt = xp.linalg.svd(S, full_matrices=False)
    kept = sigma > xp.finfo(D.dtype).eps * max(D.shape) * xp.max(sigma)
    inverse = xp.where(kept, 1 / xp.where(kept, sigma, xp.ones_like(sigma)), xp.zeros_like(sigma))
    beta = xp.matrix_transpose(Vt) @ (inverse[:, None] * (xp.matrix_transpose(U) @ T))
    loo = None if problem.shares is None else least_norm_scores(problem, U, inverse, beta)
    return ReadOut(beta, xp.zeros((), dtype=xp.bool, device=device(D)), loo)


def _is_finite(G: Array) -> bool:
    """Tell whether the features are finite: otherwise the diagonal of the Gram is not."""
    xp = array_namespace(G)
    return bool(xp.all(xp.isfinite(xp.linalg.diagonal(G))))


def _not_a_number(problem: Regression, stack: tuple[int, ...]) -> ReadOut:
    """Return output weights that are not numbers, for the caller to report with the layer's number."""
    xp, D, k = array_namespace(problem.D), problem.D, problem.targets.width
    m, c = D.shape[-2:]

    def nothing(rows: int) -> Array:
        return xp.full((*stack, rows, k), float("nan"), dtype=D.dtype, device=device(D))

    fell_back = xp.zeros(stack, dtype=xp.bool, device=device(D))
    return ReadOut(nothing(c), fell_back, None if problem.shares is None else nothing(m))
