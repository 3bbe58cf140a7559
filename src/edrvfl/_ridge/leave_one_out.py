"""Exact leave-one-out scores, given the features: the formula in its primal, dual and least-norm form.

Without row i a read-out gives the row (score - h y) / (1 - h), with the leverage h = w d'(D'WD + lam I)^-1 d.
In the dual 1 - h would cancel. There the error is taken from the dual solution itself:
y - loo = (dual / sqrt(w)) / q, with q the diagonal of (K + lam I)^-1.
Twins, rows of the same features, are left out together: w is the sum of their weights, y their mean target.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy

from .._seam.arrays import Array, array_namespace, device, row_blocks, take_entries, take_rows
from .._seam.linalg import Cholesky, inverse_diagonal, inverse_forms, kept_eigenvalues
from .equations import NormalEquations, Regression
from .groups import Inverse, least_norm_without_groups, leave_groups_out
from .twins import Twins


def from_leverage(score: Array, Y: Array, h: Array) -> Array:
    """Return (score - h y) / (1 - h)."""
    xp = array_namespace(score)
    # a row with leverage 1 fixes its own score; eps keeps the quotient finite
    rest = xp.clip(1 - h, float(xp.finfo(score.dtype).eps), None)[..., None]
    return (score - h[..., None] * Y) / rest


def from_dual(problem: Regression, factor: Cholesky, solution: Array) -> Array:
    """Return y - (dual / sqrt(w)) / q (..., rows, k) of the judged rows, of whatever kernel the system is."""
    if problem.groups is not None:
        return _each_without_groups(problem, factor, solution, dual=True)
    root, twins, q = problem.root, problem.twins, _diagonal(problem, factor)
    if twins is not None:
        directions = array_namespace(q).astype(twin_directions(problem, twins), q.dtype, copy=False)
        q = twins.put(q, inverse_forms(factor, directions))
    error = solution if root is None else solution / root[..., None]
    return take_rows(problem.left_out.Y - error / q[..., None], problem.judged_rows(slice(None)))


def _diagonal(problem: Regression, factor: Cholesky) -> Array:
    """Return the diagonal of the inverse (..., m) at the judged rows; ones may stand elsewhere."""
    judged, m = problem.judged, factor.L.shape[-1]
    if judged is None or not judged.last:
        return inverse_diagonal(factor)
    q = inverse_diagonal(factor, judged.rows.shape[0])
    xp = array_namespace(q)
    ones = xp.ones((*q.shape[:-1], m - q.shape[-1]), dtype=q.dtype, device=device(q))
    return xp.concat([ones, q], axis=-1)


def twin_directions(problem: Regression, twins: Twins) -> Array:
    """Return unit vectors (..., groups, m): where in the dual is one row that stands for all its twins."""
    shares = problem.own_weights / problem.left_out.own_weights
    return twins.directions(array_namespace(shares).sqrt(shares))


def leave_one_out(problem: Regression, factor: Cholesky, solution: Array) -> Array:
    """Return leave-one-out scores (..., rows, k) of the judged rows from a system's factor and solution."""
    D, xp, dtype, stack = problem.D, array_namespace(problem.D), factor.G.dtype, solution.shape[:-2]
    if not problem.primal:
        return from_dual(problem, factor, solution)
    if problem.groups is not None:
        return _each_without_groups(problem, factor, solution, dual=False)
    k, left = problem.targets.width, problem.left_out
    loo = xp.empty((*stack, problem.n_judged, k), dtype=dtype, device=device(D))
    for place in row_blocks(D, problem.n_judged, (D.shape[-1] + 3 * k) * math.prod(stack)):
        rows = problem.judged_rows(place)
        block = xp.astype(take_rows(D, rows), dtype, copy=False)
        h = take_entries(left.own_weights, rows) * inverse_forms(factor, block)
        loo[..., place, :] = from_leverage(block @ solution, left.targets.rows(rows), h)
    return loo


def _each_without_groups(problem: Regression, factor: Cholesky, solution: Array, dual: bool) -> Array:
    """Return leave-one-group-out scores (..., rows, k) of one system after another of a stack."""
    xp, stack = array_namespace(solution), solution.shape[:-2]
    shape = problem.n_judged, solution.shape[-1]
    each = []
    for i in numpy.ndindex(stack):
        if bool(factor.regular[i]):
            one = Cholesky(factor.G[(*i, ...)], factor.L[(*i, ...)], factor.regular[i])
            found = Inverse.of(one, solution[(*i, ...)], dual)
            each.append(leave_groups_out(problem.member(i, stack), found))
        else:  # whoever asked takes another solution
            each.append(xp.full(shape, math.nan, dtype=solution.dtype, device=device(solution)))
    return xp.reshape(xp.stack(each), (*stack, *shape))


def least_norm_scores(problem: Regression, U: Array, inverse: Array, B: Array, beta: Array) -> Array:
    """Return leave-one-out scores (rows, k) of the least-norm solution, the limit of lam -> 0.

    U (m, j) holds left singular vectors of the weighted rows, `inverse` (j,) is 1 / singular value, or 0
    for a direction that counts as absent, and B (j, k) is U' times the weighted targets, over all rows. A row
    that lies outside the span of the other rows has leverage 1, and (score - h y) / (1 - h) is 0 / 0 there:
    for such a row the dual form is the limit.
    """
    if problem.groups is not None:
        return least_norm_without_groups(problem, U, inverse, B, beta)
    xp, left = array_namespace(U), problem.left_out
    D, Y = (xp.astype(A, U.dtype, copy=False) for A in (problem.D, left.Y))
    root = xp.sqrt(left.own_weights)
    if problem.twins is not None:  # one row that stands for all its twins has a longer vector
        U = U * (root / xp.sqrt(problem.own_weights))[:, None]
    squares = U * U
    h = xp.sum(squares * xp.astype(inverse > 0, U.dtype), axis=-1)
    q = xp.sum(squares * (inverse * inverse), axis=-1)
    dual = U @ ((inverse * inverse)[:, None] * B)
    alone = h > 1 - float(xp.finfo(U.dtype).eps) ** 0.5
    inside = from_leverage(D @ beta, Y, xp.where(alone, xp.zeros_like(h), h))
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
