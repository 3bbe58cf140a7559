"""Solve least-squares problems for output weights: by Cholesky, or by eigenvalues if a system is singular."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy

from .._seam.arrays import Array, array_namespace, device
from .._seam.linalg import add_to_diagonal, factorise, solve
from .equations import NormalEquations, Regression, linear_system, output_weights
from .leave_one_out import LeastNorm, least_norm_scores, leave_one_out


@dataclass(frozen=True, slots=True, eq=False)
class ReadOut:
    """The output weights of one read-out or of a stack, and leave-one-out scores if they were wanted."""

    beta: Array  # (..., c, k)
    fell_back: Array  # (...) of bool: the system was singular, and beta is the least-norm solution
    loo: Array | None = None  # (..., rows, k), scores of each judged row by the read-out fitted without it
    lam: float | None = None  # the penalty, where leave-one-out chose it


def ridge(
    problem: Regression, lam: Any, system: NormalEquations | None = None, exact: bool = False
) -> ReadOut:
    """beta = argmin |W^(1/2) (D beta - Y)|^2 + lam |beta|^2 (Eq. 1), solved by Eq. 2, 3, 4, 15 or 16.

    `lam` is a number, or a NumPy array of positive numbers for a stack; the number 0 asks for the
    Moore-Penrose solution. The system may be given if it is known already. It is overwritten. `exact`
    tells that it has all its digits; otherwise those of D decide what is singular. Where only the sums over
    rows are known, lam 0 is solved by them too.
    """
    if isinstance(lam, float | int) and lam == 0 and problem.summed is None:
        return _moore_penrose(problem)
    system = linear_system(problem) if system is None else system
    G = add_to_diagonal(system.G, lam)
    xp, stack = array_namespace(G), G.shape[:-2]
    D = problem.D
    factor = factorise(G, None if exact else float(xp.finfo(D.dtype).eps))
    R = xp.broadcast_to(system.R, (*G.shape[:-1], system.R.shape[-1]))
    solution = solve(factor, R)
    beta = xp.astype(output_weights(problem, solution), D.dtype, copy=False)
    loo = None
    if problem.want_loo:
        if not exact:  # the digits of D are enough for scores, and faster
            factor, solution = factor.rounded(D.dtype), xp.astype(solution, D.dtype, copy=False)
        loo = xp.astype(leave_one_out(problem, factor, solution), D.dtype, copy=False)
    readout = ReadOut(beta, xp.asarray(~factor.regular), loo)
    singular = factor.singular_members
    if singular:  # not before, because the host would wait for the sums; a regular system is finite
        require_finite(xp.linalg.diagonal(G))
    for i in singular:
        member, own = problem.member(i, stack), float(numpy.broadcast_to(lam, stack)[i])
        if D.dtype == xp.float32 and not exact:
            # A collinear column among many rows makes the Gram singular to seven digits while lambda is far
            # above sixteen, so the second try sums and solves in float64.
            again = ridge(member, own, linear_system(member, xp.float64), exact=True)
        else:
            again = _least_norm(member, NormalEquations(G[(*i, ...)], R[(*i, ...)]))
        beta[(*i, ...)] = xp.astype(again.beta, beta.dtype)
        readout.fell_back[(*i, ...)] = again.fell_back
        if loo is not None:
            loo[(*i, ...)] = xp.astype(again.loo, loo.dtype)
    return readout


def _least_norm(problem: Regression, system: NormalEquations) -> ReadOut:
    """Solve one singular system, primal or dual, by its eigenvalues: the solution of least norm."""
    xp, found = array_namespace(system.G), LeastNorm.of(system)
    beta = output_weights(problem, found.solution)
    fell_back = xp.ones((), dtype=xp.bool, device=device(beta))
    if not problem.want_loo:
        return ReadOut(beta, fell_back)
    if problem.primal:
        return ReadOut(beta, fell_back, found.scores(problem))
    # the dual is SS' of the weighted rows S, so its eigenvectors are the left singular vectors of S
    return ReadOut(
        beta, fell_back, least_norm_scores(problem, found.V, xp.sqrt(found.inverse), found.B, beta)
    )


def _moore_penrose(problem: Regression) -> ReadOut:
    """beta = D^+ Y (Eq. 2) from the singular values, because the Gram would square the condition number."""
    D, Y, root = problem.D, problem.Y, problem.root
    xp = array_namespace(D)
    S, T = (D, Y) if root is None else (D * root[:, None], Y * root[:, None])
    require_finite(S)
    U, sigma, Vt = xp.linalg.svd(S, full_matrices=False)
    kept = sigma > xp.finfo(D.dtype).eps * max(D.shape) * xp.max(sigma)
    inverse = xp.where(kept, 1 / xp.where(kept, sigma, xp.ones_like(sigma)), xp.zeros_like(sigma))
    B = xp.matrix_transpose(U) @ T
    beta = xp.matrix_transpose(Vt) @ (inverse[:, None] * B)
    loo = least_norm_scores(problem, U, inverse, B, beta) if problem.want_loo else None
    return ReadOut(beta, xp.zeros((), dtype=xp.bool, device=device(D)), loo)


def require_finite(A: Array) -> None:
    """Raise if some number of A is not finite. The caller knows the layer and says so."""
    xp = array_namespace(A)
    if not bool(xp.all(xp.isfinite(A))):
        raise FloatingPointError(f"The features overflow {A.dtype}.")
