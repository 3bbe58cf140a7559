"""Read-outs over the first columns of one matrix A, for more and more columns: one factorisation for all.

The columns come in blocks. With G = A'WA + lam I = LL' and V = L^-1, the rows of V of the blocks so far stay
when a block joins: L21 = G21 V11', L22 = chol(G22 - L21 L21'), V22 = L22^-1, V21 = -V22 L21 V11. So
beta = V'VR, the scores and the leverages |Va|^2 are sums over blocks, and a block adds to what there is.
"""

from __future__ import annotations

from typing import Any

import numpy

from .._seam.arrays import Array, array_namespace, device, on_accelerator, row_blocks, take_entries, take_rows
from .._seam.linalg import Cholesky, add_to_diagonal, factorise, half_inverse
from .choose import read_outs, ridge_by_loo, together
from .equations import Regression, dual_system, gram_of_rows
from .leave_one_out import from_leverage
from .solve import ReadOut, require_finite, ridge


class NestedReadOuts:
    """Fit read-outs, one for each lambda, on the first columns of a matrix, each time on more of them.

    All together cost about as much as the last ones alone, if lambda is given and there are no more columns
    than rows. With more columns than rows, each number of columns has a factorisation of its own; the Gram
    of the rows is summed once. Where leave-one-out chooses lambda (None), for lambda 0, and once a system is
    numerically singular, each number of columns is worked from the beginning.
    """

    def __init__(self, lam: numpy.ndarray | None) -> None:
        self._lam = lam
        of_lambda = [] if lam is None else [float(value) for value in lam]
        self._nested = [_OfLambda(value) if value > 0 else None for value in of_lambda]
        self._R: Array = None  # A'WY
        self._K: Array = None  # AA' of the first columns
        self._in_K = 0

    def add(self, problem: Regression) -> ReadOut:
        """Return the read-outs, with beta (r, c, k). The problem's D has all earlier columns and new ones."""
        if self._lam is None:
            return together([ridge_by_loo(problem, on_accelerator(problem.D))])
        if not problem.primal:
            return self._dual(problem, self._lam)
        if problem.groups is not None and problem.want_loo:  # forms of single rows would not be enough
            self._nested = [None] * len(self._lam)
        found: dict[int, ReadOut] = {}
        if any(self._nested):
            G = self._sum_new_rows(problem)
            for i, nested in enumerate(self._nested):
                readout = None if nested is None else nested.add(problem, G, self._R)
                if readout is None:
                    self._nested[i] = None
                else:
                    found[i] = readout
        if others := [i for i in range(len(self._lam)) if i not in found]:
            apart = read_outs(problem, self._lam[others])
            found |= {i: _member(apart, j) for j, i in enumerate(others)}
        return together([found[i] for i in range(len(self._lam))])

    def _sum_new_rows(self, problem: Regression) -> Array:
        """Return the rows of A'WA that belong to the new columns, (n, c), and add such rows to A'WY."""
        A, targets, weights = problem.D, problem.targets, problem.weights
        xp, (m, c), k = array_namespace(A), A.shape, targets.width
        known = 0 if self._R is None else self._R.shape[0]
        n = c - known
        G = xp.zeros((n, c), dtype=A.dtype, device=device(A))
        R = xp.zeros((n, k), dtype=A.dtype, device=device(A))
        for rows in row_blocks(A, m, 2 * n + k):
            H = A[rows, known:] if weights is None else A[rows, known:] * weights[rows, None]
            G += xp.matrix_transpose(H) @ A[rows, :]
            R += xp.matrix_transpose(H) @ targets.rows(rows)
        require_finite(xp.linalg.diagonal(G[:, known:]))
        self._R = R if self._R is None else xp.concat([self._R, R])
        return G

    def _dual(self, problem: Regression, lam: numpy.ndarray) -> ReadOut:
        """Fit by the Gram of the rows, to which the new columns are added."""
        self._nested, self._R = [None] * len(lam), None  # more columns will not need them
        if numpy.any(lam > 0):
            new = gram_of_rows(problem.D[:, self._in_K :])
            if self._K is not None:
                new += self._K
            self._K = new
            self._in_K = problem.D.shape[-1]
        each = []
        for value in lam:
            # a system without weights is K itself, which the solver overwrites
            K = 1.0 * self._K if value > 0 and problem.weights is None else self._K
            each.append(ridge(problem, float(value), None if value == 0 else dual_system(problem, K)))
        return together(each)


class _OfLambda:
    """The factor of one lambda and what it gives, as far as the columns have come."""

    def __init__(self, lam: float) -> None:
        self._lam = lam
        self._V: list[Array] = []  # the rows of V of each block, as far as they are not zero
        self._beta: Array = None
        self._forms: Array = None  # |Va|^2 of the judged rows
        self._scores: Array = None
        self._share = numpy.inf  # the least share of a column that the columns before it do not explain

    def add(self, problem: Regression, G: Array, R: Array) -> ReadOut | None:
        """Take the new rows (n, c) of the Gram; return the read-out, or None if the Gram is singular."""
        xp, (n, c) = array_namespace(G), G.shape
        L = self._off_diagonal(G)
        factor = self._factorise(G, L)
        if factor is None:
            return None
        own = xp.matrix_transpose(half_inverse(factor))
        V = xp.empty((n, c), dtype=G.dtype, device=device(G))
        V[:, c - n :] = own
        if self._V:
            V[:, : c - n] = -own @ self._times_V(L)
        self._V.append(V)
        u = V @ R
        beta = xp.matrix_transpose(V) @ u
        if self._beta is not None:
            beta[: c - n, :] += self._beta
        self._beta = beta
        loo = self._leave_one_out(problem, V, u) if problem.want_loo else None
        return ReadOut(beta, xp.zeros((), dtype=xp.bool, device=device(G)), loo)

    def _off_diagonal(self, G: Array) -> Array:
        """L21 = G21 V11', block by block, because V11 is triangular."""
        n, c = G.shape
        xp, start = array_namespace(G), 0
        L = xp.empty((n, c - n), dtype=G.dtype, device=device(G))
        for V in self._V:
            end = V.shape[-1]
            L[:, start:end] = G[:, :end] @ xp.matrix_transpose(V)
            start = end
        return L

    def _times_V(self, L: Array) -> Array:
        """L21 V11, block by block."""
        product, start = array_namespace(L).zeros_like(L), 0
        for V in self._V:
            end = V.shape[-1]
            product[:, :end] += L[:, start:end] @ V
            start = end
        return product

    def _factorise(self, G: Array, L: Array) -> Cholesky | None:
        """Factorise G22 + lam I - L21 L21'; None if the whole Gram is singular by the rule of `factorise`."""
        xp, (n, c) = array_namespace(G), G.shape
        corner = G[:, c - n :]
        factor = factorise(add_to_diagonal(corner - L @ xp.matrix_transpose(L), self._lam))
        pivots, entries = xp.linalg.diagonal(factor.L), xp.linalg.diagonal(corner) + self._lam
        if not bool(factor.regular):
            return None
        self._share = min(self._share, float(xp.min(pivots**2 / entries)))
        return factor if self._share > float(xp.finfo(G.dtype).eps) * c else None

    def _leave_one_out(self, problem: Regression, V: Array, u: Array) -> Array:
        """Return leave-one-out scores (rows, k) of the judged rows, to which the block V adds its part."""
        A, left = problem.D, problem.left_out
        xp, k, m = array_namespace(A), problem.targets.width, problem.n_judged
        if self._forms is None:
            self._forms = xp.zeros((m,), dtype=A.dtype, device=device(A))
            self._scores = xp.zeros((m, k), dtype=A.dtype, device=device(A))
        loo = xp.empty((m, k), dtype=A.dtype, device=device(A))
        for place in row_blocks(A, m, V.shape[0] + 3 * k):
            rows = problem.judged_rows(place)
            Z = take_rows(A, rows) @ xp.matrix_transpose(V)
            self._forms[place] += xp.sum(Z * Z, axis=-1)
            self._scores[place, :] += Z @ u
            h = take_entries(left.own_weights, rows) * self._forms[place]
            loo[place, :] = from_leverage(self._scores[place, :], left.targets.rows(rows), h)
        return loo


def _member(many: ReadOut, i: int) -> ReadOut:
    loo: Any = None if many.loo is None else many.loo[i, ...]
    return ReadOut(many.beta[i, ...], many.fell_back[i, ...], loo)
