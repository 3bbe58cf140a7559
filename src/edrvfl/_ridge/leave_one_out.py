"""Exact leave-one-out scores, given the features: the formula in its primal, dual and least-norm form.

Without row i a read-out gives the row (score - h y) / (1 - h), with the leverage
h = share * w * d'(D'WD + lam I)^-1 d, where `share` is the part of the row's weight that is left out.
In the dual 1 - h would cancel. There the error is taken from the dual solution itself:
y - loo = (dual / sqrt(w)) / ((1 - share) / lam + share * q), with q the diagonal of (K + lam I)^-1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from .._seam.arrays import Array, array_namespace, device, from_numpy, row_blocks, take_entries, take_rows
from .._seam.linalg import Cholesky, inverse_diagonal, inverse_forms, kept_eigenvalues
from .equations import NormalEquations, Regression


def from_leverage(score: Array, Y: Array, h: Array) -> Array:
    """Return (score - h y) / (1 - h)."""
    xp = array_namespace(score)
    # a row with leverage 1 fixes its own score; eps keeps the quotient finite
    rest = xp.clip(1 - h, float(xp.finfo(score.dtype).eps), None)[..., None]
    return (score - h[..., None] * Y) / rest


def from_dual(error: Array, Y: Array, q: Array, shares: Array, lam: Array) -> Array:
    """Return y - error / ((1 - share) / lam + share * q), with error = dual / sqrt(w)."""
    return Y - error / ((1 - shares) / lam + shares * q)[..., None]


def leave_one_out(problem: Regression, factor: Cholesky, solution: Array, lam: Any) -> Array:
    """Return leave-one-out scores (..., rows, k) of the judged rows from a system's factor and solution."""
    D, targets, root = problem.D, problem.targets, problem.root
    xp, dtype, stack = array_namespace(D), factor.G.dtype, solution.shape[:-2]
    if not problem.primal:
        q = inverse_diagonal(factor)
        error = solution if root is None else solution / root[..., None]
        scores = from_dual(error, problem.Y, q, problem.shares, from_numpy(lam, solution)[..., None])
        return take_rows(scores, problem.judged_rows(slice(None)))
    k, removed = targets.width, problem.removed
    loo = xp.empty((*stack, problem.n_judged, k), dtype=dtype, device=device(D))
    for place in row_blocks(D, problem.n_judged, (D.shape[-1] + 3 * k) * math.prod(stack)):
        rows = problem.judged_rows(place)
        block = xp.astype(take_rows(D, rows), dtype, copy=False)
        h = take_entries(removed, rows) * inverse_forms(factor, block)
        loo[..., place, :] = from_leverage(block @ solution, targets.rows(rows), h)
    return loo


def least_norm_scores(problem: Regression, U: Array, inverse: Array, B: Array, beta: Array) -> Array:
    """Return leave-one-out scores (rows, k) of the least-norm solution, the limit of lam -> 0.

    U (m, j) holds left singular vectors of the weighted rows, `inverse` (j,) is 1 / singular value, or 0
    for a direction that counts as absent, and B (j, k) is U' times the weighted targets, over all rows. A row
    that lies outside the span of the other rows has leverage 1, and (score - h y) / (1 - h) is 0 / 0 there:
    for such a row the dual form is the limit.
    """
    xp, shares = array_namespace(U), problem.shares
    D, Y = (xp.astype(A, U.dtype, copy=False) for A in (problem.D, problem.Y))
    root = xp.ones_like(shares) if problem.root is None else problem.root
    squares = U * U
    h = xp.sum(squares * xp.astype(inverse > 0, U.dtype), axis=-1)
    q = xp.sum(squares * (inverse * inverse), axis=-1)
    dual = U @ ((inverse * inverse)[:, None] * B)
    alone = (h > 1 - float(xp.finfo(U.dtype).eps) ** 0.5) & (shares == 1)
    inside = from_leverage(D @ beta, Y, xp.where(alone, xp.zeros_like(h), shares * h))
    outside = Y - dual / (root * xp.where(alone, q, xp.ones_like(q)))[:, None]
    return take_rows(xp.where(alone[:, None], outside, inside), problem.judged_rows(slice(None)))


@dataclass(frozen=True, slots=True, eq=False)
class LeastNorm:
    """The solution of least norm of a primal system that is singular, by its eigenvalues."""

    inverse: Array  # (c,), 1 / eigenvalue; 0 for a direction that counts as absent
    V: Array  # (c, c), the eigenvectors
    B: Array  # (c, k), V'R

    @classmethod
    def of(cls, system: NormalEquations) -> LeastNorm:
        """Solve a system, to whose Gram lambda is added."""
        inverse, V = kept_eigenvalues(system.G)
        return cls(inverse, V, array_namespace(V).matrix_transpose(V) @ system.R)

    @property
    def solution(self) -> Array:
        """The output weights, (c, k)."""
        return self.V @ (self.inverse[:, None] * self.B)

    def scores(self, problem: Regression) -> Array:
        """Return leave-one-out scores of rows, which are some of those that the system is of."""
        xp, root = array_namespace(self.V), problem.root
        D = xp.astype(problem.D, self.V.dtype, copy=False)
        sigma = xp.sqrt(self.inverse)
        U = ((D if root is None else D * root[:, None]) @ self.V) * sigma
        return least_norm_scores(problem, U, sigma, sigma[:, None] * self.B, self.solution)
