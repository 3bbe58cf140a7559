"""Leave-one-group-out: scores of rows by a read-out that saw no row of their group, exact given the features.

With residuals r and H = W^(1/2) D (D'WD + lam I)^-1 D'W^(1/2), both weighted, a group G has the errors
e_G = (I - H_GG)^-1 r_G. In the dual, where I - H_GG would cancel, they are e_G = C_GG^-1 u_G, with
C = (W^(1/2) K W^(1/2) + lam I)^-1 and the dual solution u. A group of more rows than there are columns has
its sums subtracted from those of all rows instead: beta_G = (D'WD + lam I - D_G'WD_G)^-1 (D'WY - D_G'WY_G).
A group of one row gives the formulas of `leave_one_out.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy

from .._inputs.rows import to_host
from .._seam.arrays import Array, array_namespace, device, from_numpy, row_blocks, take_entries, take_rows
from .._seam.linalg import Cholesky, half_inverse
from .equations import Regression, normal_equations

CHOOSING_FLOPS = 1e11  # for the errors of the groups that choose a penalty, some seconds of one core,
LEAST_CHOOSING = 5  # but so many groups choose whatever they cost


@dataclass(frozen=True, slots=True, eq=False)
class Inverse:
    """The inverse of a system's matrix for some penalties, V diag(inverse) V', and their solutions."""

    V: Array  # (c, j), or of the dual (m, j)
    inverse: Array  # (j, penalties)
    solution: Array  # (c, penalties, k), or of the dual (m, penalties, k)
    dual: bool

    @classmethod
    def of(cls, factor: Cholesky, solution: Array, dual: bool) -> Inverse:
        """Take a single system (c, c) and its solution (c, k)."""
        V, xp = half_inverse(factor), array_namespace(solution)
        ones = xp.ones((V.shape[1], 1), dtype=V.dtype, device=device(V))
        return cls(V, ones, solution[:, None, :], dual)

    def only(self, i: int) -> Inverse:
        """Return that of one penalty."""
        return replace(self, inverse=self.inverse[:, i : i + 1], solution=self.solution[:, i : i + 1, :])


@dataclass(frozen=True, slots=True, eq=False)
class Batches:
    """The groups that have judged rows, those of equal size side by side."""

    rows: tuple[numpy.ndarray, ...]  # each (groups, rows of a group)
    judged: numpy.ndarray  # (judged rows,)

    @classmethod
    def of(cls, problem: Regression) -> Batches:
        """Sort the rows of a problem by group."""
        numbers = problem.groups
        assert numbers is not None
        judged = numpy.arange(len(numbers)) if problem.judged is None else to_host(problem.judged.rows)
        order = numpy.argsort(numbers, kind="stable")
        starts = numpy.flatnonzero(numpy.diff(numbers[order], prepend=-1))
        sizes = numpy.diff(starts, append=len(order))
        asked = numpy.isin(numbers[order[starts]], numbers[judged])
        rows = []
        for size in numpy.unique(sizes[asked]):
            first = starts[asked & (sizes == size)]
            rows.append(order[first[:, None] + numpy.arange(size)])
        return cls(tuple(rows), judged)

    def cheapest(self, cost: Callable[[int], float]) -> Batches:
        """Return some groups, drawn once and for all, that cost no more than choosing a penalty may."""
        sizes = numpy.concatenate([numpy.full(len(batch), batch.shape[1]) for batch in self.rows])
        costs = numpy.concatenate([numpy.full(len(batch), cost(batch.shape[1])) for batch in self.rows])
        if costs.sum() <= CHOOSING_FLOPS:
            return self
        order = numpy.argsort(numpy.random.PCG64(0).random_raw(len(sizes)), kind="stable")
        n = max(LEAST_CHOOSING, int(numpy.searchsorted(numpy.cumsum(costs[order]), CHOOSING_FLOPS)))
        kept = numpy.zeros(len(sizes), dtype=bool)
        kept[order[:n]] = True
        parts = numpy.split(kept, numpy.cumsum([len(batch) for batch in self.rows])[:-1])
        some = tuple(batch[part] for batch, part in zip(self.rows, parts, strict=True) if part.any())
        return Batches(some, self.judged)


def leave_groups_out(problem: Regression, found: Inverse) -> Array:
    """Return the scores (judged rows, k) of one penalty, each by a read-out without the row's group."""
    xp, batches = array_namespace(problem.D), Batches.of(problem)
    parts = list(scores_without_groups(problem, found, batches))
    rows = numpy.concatenate([which for which, _ in parts])
    place = numpy.empty(problem.D.shape[-2], dtype=int)
    place[rows] = numpy.arange(len(rows))
    scores = xp.concat([of_rows[0, ...] for _, of_rows in parts])
    return take_rows(scores, from_numpy(place[batches.judged], scores, xp.int64))


def scores_without_groups(
    problem: Regression, found: Inverse, batches: Batches
) -> Iterator[tuple[numpy.ndarray, Array]]:
    """Yield indices of rows, and their scores (penalties, rows, k) by read-outs without the rows' groups.

    The rows are those of groups that have judged rows, and perhaps not all of them are judged.
    """
    c, n_penalties = found.inverse.shape
    k = problem.targets.width
    is_judged = numpy.zeros(problem.D.shape[-2], dtype=bool)
    is_judged[batches.judged] = True
    for batch in batches.rows:
        g = batch.shape[1]
        if not found.dual and subtracts(g, c, n_penalties):
            for rows in batch:
                asked = rows[is_judged[rows]]
                yield asked, _by_subtracting(problem, found, rows, asked)
            continue
        for some in row_blocks(found.V, len(batch), g * (3 * c + g + n_penalties * k), least=1):
            rows = batch[some].reshape(-1)
            yield rows, _by_blocks(problem, found, rows, g)


def cost_of(g: int, c: int, n_penalties: int, dual: bool) -> float:
    """Return about how many operations the errors of a group of g rows cost."""
    return min(_cost_of_blocks(g, c, n_penalties), numpy.inf if dual else _cost_of_sums(g, c, n_penalties))


def subtracts(g: int, c: int, n_penalties: int) -> bool:
    """Tell whether a group's sums are subtracted, because a system of its own rows would cost more."""
    return _cost_of_sums(g, c, n_penalties) < _cost_of_blocks(g, c, n_penalties)


def _cost_of_blocks(g: int, c: int, n_penalties: int) -> float:
    return 2.0 * g * c * c + n_penalties * (2.0 * g * g * c + g**3 * 2 / 3)


def _cost_of_sums(g: int, c: int, n_penalties: int) -> float:
    return 1.0 * g * c * c + 4.0 * c**3 + n_penalties * c**3 * 2 / 3


def _by_blocks(problem: Regression, found: Inverse, rows: numpy.ndarray, g: int) -> Array:
    """Return scores (penalties, rows, k) of groups of g rows each, which stand side by side."""
    xp, k, dtype = array_namespace(found.V), problem.targets.width, found.V.dtype
    which = from_numpy(rows, found.V, xp.int64)
    Y = xp.astype(problem.targets.rows(which), dtype, copy=False)
    root = xp.sqrt(xp.astype(take_entries(problem.own_weights, which), dtype, copy=False))[:, None]
    if not found.dual:
        D = xp.astype(take_rows(problem.D, which), dtype, copy=False)
        S = root * (D @ found.V)
        answers = D @ xp.reshape(found.solution, (D.shape[1], -1))
        errors = root[..., None] * (Y[:, None, :] - xp.reshape(answers, (len(rows), -1, k)))
    else:
        S, errors = take_rows(found.V, which), xp.take(found.solution, which, axis=0)
    S = xp.reshape(S, (-1, g, S.shape[1]))
    errors = xp.reshape(errors, (-1, g, *errors.shape[1:]))
    scores = []
    for i in range(found.inverse.shape[1]):
        H = (S * found.inverse[:, i]) @ xp.matrix_transpose(S)
        A = H if found.dual else _rest(H)
        scores.append(Y - xp.reshape(xp.linalg.solve(A, errors[:, :, i, :]), (len(rows), k)) / root)
    return xp.stack(scores)


def _by_subtracting(problem: Regression, found: Inverse, rows: numpy.ndarray, asked: numpy.ndarray) -> Array:
    """Return scores (penalties, asked rows, k) without a group, whose sums are subtracted from all rows'.

    With A = D'WD + lam I = (V Q V')^-1 and q = Q^(1/2), what is added to beta is
    V q (I - q V'D_G'WD_G V q)^-1 q V' (D_G'WD_G beta - D_G'WY_G): eigenvalues from 0 to 1 lose no digits.
    """
    xp, V = array_namespace(found.V), found.V
    sums = normal_equations(problem, from_numpy(rows, V, xp.int64))
    G, R = (xp.astype(part, V.dtype, copy=False) for part in (sums.G, sums.R))
    of_group = xp.matrix_transpose(V) @ (G @ V)
    D = xp.astype(take_rows(problem.D, from_numpy(asked, V, xp.int64)), V.dtype, copy=False)
    scores = []
    for i in range(found.inverse.shape[1]):
        beta, q = found.solution[:, i, :], xp.sqrt(found.inverse[:, i])[:, None]
        off = q * (xp.matrix_transpose(V) @ (G @ beta - R))
        A = _rest(q * of_group * q[:, 0])
        scores.append(D @ (beta + V @ (q * xp.linalg.solve(A, off))))
    return xp.stack(scores)


def _rest(H: Array) -> Array:
    """Return I - H (..., g, g). A little more keeps it regular where rows fix their own scores."""
    xp = array_namespace(H)
    one = 1 + 2 * float(xp.finfo(H.dtype).eps)
    return one * xp.eye(H.shape[-1], dtype=H.dtype, device=device(H)) - H


def least_norm_without_groups(problem: Regression, U: Array, inverse: Array, B: Array, beta: Array) -> Array:
    """Return scores (judged rows, k) of the least-norm solution, the limit for lam -> 0: `least_norm_scores`.

    There C_GG is N / lam + Q and u_G is r_G / lam + a, with N = (I - UU')_GG, Q = (U inverse^2 U')_GG and
    a = U_G inverse^2 B. Where N has directions of eigenvalue 0, which lie outside the span of the other rows,
    the errors along these follow from Q.
    """
    xp, batches = array_namespace(U), Batches.of(problem)
    D, Y = (xp.astype(part, U.dtype, copy=False) for part in (problem.D, problem.Y))
    root = xp.sqrt(xp.astype(problem.own_weights, U.dtype, copy=False))[:, None]
    residuals, duals = root * (Y - D @ beta), U @ ((inverse * inverse)[:, None] * B)
    kept = U * xp.astype(inverse > 0, U.dtype)
    scores = xp.zeros_like(Y)
    limit = float(xp.finfo(U.dtype).eps) ** 0.5
    for rows in (rows for batch in batches.rows for rows in batch):
        which = from_numpy(rows, U, xp.int64)
        S, r, a = (take_rows(part, which) for part in (kept, residuals, duals))
        values, Z = xp.linalg.eigh(xp.eye(len(rows), dtype=U.dtype, device=device(U)) - S @ S.T)
        S, r, a = (xp.matrix_transpose(Z) @ part for part in (S, r, a))
        Q = (S * (inverse * inverse)) @ S.T
        inside = (values > limit)[:, None]
        inner = xp.where(
            inside, r / xp.where(inside, values[:, None], xp.ones_like(r[:, :1])), xp.zeros_like(r)
        )
        outside = ~inside & ~inside.T
        A = xp.where(outside, Q, xp.zeros_like(Q)) + xp.eye(len(rows), dtype=U.dtype) * xp.astype(
            inside, U.dtype
        )
        error = Z @ xp.linalg.solve(A, xp.where(inside, inner, a - Q @ inner))
        for place, row in enumerate(rows.tolist()):
            scores[row, :] = Y[row, :] - error[place, :] / root[row, 0]
    return take_rows(scores, from_numpy(batches.judged, scores, xp.int64))
