"""Large systems with a kernel: conjugate gradients, which a partial Cholesky factor makes short.

The system is S u = W^(1/2) Y with S = W^(1/2) K W^(1/2) + lam I, as in `kernel_ridge`, and alpha = W^(1/2) u.
K stands in its own precision; everything else is in float64, because the factor would drown in the rounding
of float32 where the penalty is small.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy

from .._inputs.rows import to_host
from .._seam.arrays import Array, array_namespace, device, from_numpy, on_accelerator, row_blocks, take_rows
from .._seam.linalg import Cholesky, add_to_diagonal, factorise, half_inverse, solve

TILE = {False: 512, True: 8_192}  # rows and columns, on a CPU and on a GPU
MOST_RAISES = 30  # of the diagonal of pivots, each by 4
ROUNDS = 10  # in which pivots are drawn; those of one round do not know of each other
STOP_EARLY = 0.9  # of the tolerance: what the steps take for the residual is not quite the residual


@dataclass(frozen=True, slots=True, eq=False)
class Gram:
    """K (m, m) of a kernel that is 1 between a row and itself: held, or computed for every product."""

    rows: Callable[[slice | Array], Array]  # which -> K[which, :]
    like: Array  # (m, ...), whose library, device and precision K has
    whole: Array | None = None  # K itself, if memory holds it

    def times(self, V: Array) -> Array:
        """Return K V (m, c) in float64, multiplied in the precision of K."""
        xp, m = array_namespace(V), V.shape[0]
        if self.whole is not None:
            # V'K, with V' packed, takes two thirds of the time of KV (measured, NumPy, 2 to 25 columns)
            T = xp.empty((V.shape[1], m), dtype=self.like.dtype, device=device(V))
            T[...] = xp.astype(xp.matrix_transpose(V), self.like.dtype, copy=False)
            return xp.matrix_transpose(xp.astype(T @ self.whole, xp.float64, copy=False))
        V = xp.astype(V, self.like.dtype, copy=False)
        out = xp.empty(V.shape, dtype=xp.float64, device=device(V))
        for rows in row_blocks(V, m, 3 * m):
            out[rows, :] = xp.astype(self.rows(rows) @ V, xp.float64, copy=False)
        return out


def gram(X: Array, compared: Callable[[Array], Callable[[Array], Array]], hold: bool) -> Gram:
    """K = K(X, X), where compared(Z) is the function of rows x that returns K(x, Z).

    To hold K takes m x m numbers, once. It is computed by tiles, of which the cache of a core holds several,
    and half of them are those of the other half.
    """
    if not hold:
        alike = compared(X)
        return Gram(lambda which: alike(take_rows(X, which)), X)
    xp, m, step = array_namespace(X), X.shape[0], TILE[on_accelerator(X)]
    K = xp.empty((m, m), dtype=X.dtype, device=device(X))
    tiles = [slice(start, min(start + step, m)) for start in range(0, m, step)]
    for i, columns in enumerate(tiles):
        alike = compared(X[columns, :])
        for rows in tiles[i:]:
            tile = alike(X[rows, :])
            K[rows, columns] = tile
            K[columns, rows] = xp.matrix_transpose(tile)
    return Gram(lambda which: take_rows(K, which), X, K)


def pivoted_cholesky(
    K: Gram,
    root: Array,
    rank: int,
    generator: numpy.random.Generator,
    order: numpy.ndarray,
    enough: float = 0.0,
) -> tuple[Array, Array]:
    """W^(1/2) K W^(1/2) = FF' + E: return F (m, rank or less) and the diagonal of E, which is no less than 0.

    A mean of this diagonal far below the penalty is `enough`: more columns cost more than steps.

    Pivots are drawn with probabilities like the diagonal that is left (Chen, Epperly, Tropp, Webber, 2023),
    among the rows in an order that should not be that of the table.
    """
    xp, m = array_namespace(root), root.shape[0]
    F = xp.zeros((m, rank), dtype=xp.float64, device=device(root))
    left = start = root * root
    step, done = -(-rank // ROUNDS), 0
    eps = float(xp.finfo(K.like.dtype).eps)
    while done < rank:
        running = numpy.cumsum(to_host(left)[order])
        if not running[-1] > max(eps * float(xp.sum(start)), enough * m * (done > 0)):
            break
        ends = generator.random(min(step, rank - done)) * running[-1]
        which = numpy.unique(order[numpy.minimum(numpy.searchsorted(running, ends, side="right"), m - 1)])
        pivots = from_numpy(which, root, xp.int64)
        C = xp.matrix_transpose(xp.astype(K.rows(pivots), xp.float64)) * root[:, None]
        C *= xp.take(root, pivots)
        C -= F[:, :done] @ xp.matrix_transpose(take_rows(F[:, :done], pivots))
        new = slice(done, done + len(which))
        F[:, new] = C @ half_inverse(_factor(take_rows(C, pivots), eps * float(xp.max(start))))
        left = xp.clip(left - xp.sum(F[:, new] * F[:, new], axis=1), 0.0, None)
        done += len(which)
    return F[:, :done], left


def _factor(H: Array, jitter: float) -> Cholesky:
    """Factorise a matrix of pivots; what rounding makes of near copies is covered by a larger diagonal."""
    for raised in range(MOST_RAISES):  # numbers that are not finite stay singular, and no step will help
        factor = factorise(add_to_diagonal(H * 1.0, 4.0**raised * jitter))
        if bool(factor.regular):
            break
    return factor


@dataclass(frozen=True, slots=True, eq=False)
class Preconditioner:
    """M^-1 = D^(-1/2) (I - V V') D^(-1/2) for M = FF' + D, D = lam I + diag(E).

    V = D^(-1/2) F L^-T with LL' = I + F' D^-1 F. Of a rough kernel much is left on the diagonal: with lam
    alone in place of D the same factor needs twice the steps.
    """

    V: Array  # (m, s)
    shrink: Array  # (m,), the diagonal of D^(-1/2)

    @classmethod
    def of(cls, F: Array, left: Array, lam: float) -> Preconditioner:
        """Take a partial factor, which is overwritten."""
        xp = array_namespace(F)
        shrink = 1 / xp.sqrt(left + lam)
        F *= shrink[:, None]
        inverse = half_inverse(factorise(add_to_diagonal(xp.matrix_transpose(F) @ F, 1.0)))
        for rows in row_blocks(F, F.shape[0], 2 * F.shape[1]):
            F[rows, :] = F[rows, :] @ inverse
        return cls(F, shrink)


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """Rows that one of several systems lacks."""

    kept: Array  # (m, 1), 0 for these rows and 1 for the others
    factor: Cholesky  # of I - V_r' V_r, with the rows r of the preconditioner

    @classmethod
    def of(cls, which: numpy.ndarray, near: Preconditioner) -> Group:
        """Leave out some rows."""
        xp, V = (
            array_namespace(near.V),
            take_rows(near.V, from_numpy(which, near.V, array_namespace(near.V).int64)),
        )
        kept = numpy.ones((near.V.shape[0], 1))
        kept[which] = 0
        return cls(from_numpy(kept, V), factorise(add_to_diagonal(-(xp.matrix_transpose(V) @ V), 1.0)))


@dataclass(frozen=True, slots=True, eq=False)
class Large:
    """A large system; or several, which stand side by side, one for each group of rows that is left out."""

    K: Gram
    root: Array  # (m,) in float64, the roots of the weights
    lam: float
    near: Preconditioner
    groups: tuple[Group, ...] = ()

    def without(self, rows: list[numpy.ndarray]) -> Large:
        """Return systems that lack a group of rows each."""
        return replace(self, groups=tuple(Group.of(which, self.near) for which in rows))

    def repeated(self, V: Array) -> Array:
        """Return V (m, k) once for each group, 0 at its rows: targets, or where the steps begin."""
        return self.clear(array_namespace(V).concat([V] * len(self.groups), axis=1))

    def left_out(self, U: Array) -> Array:
        """Return the scores (m, k) of each group's rows by the system that lacks them; 0 for other rows."""
        scores = self.K.times(U * self.root[:, None])
        parts = [scores[:, columns] * (1 - group.kept) for columns, group in self._of_groups(scores)]
        return sum(parts[1:], start=parts[0])

    def clear(self, V: Array) -> Array:
        """Set V (m, groups x k) to 0 at the rows that each system lacks, in place."""
        for columns, group in self._of_groups(V):
            V[:, columns] *= group.kept
        return V

    def _of_groups(self, V: Array) -> Iterator[tuple[slice, Group]]:
        k = V.shape[1] // max(1, len(self.groups))
        for i, group in enumerate(self.groups):
            yield slice(i * k, (i + 1) * k), group

    def times(self, V: Array) -> Array:
        """Return S V."""
        product = self.K.times(V * self.root[:, None])
        product *= self.root[:, None]
        product += self.lam * V
        return self.clear(product)

    def precondition(self, R: Array) -> Array:
        """Return M^-1 R, which is S^-1 R but for the part of K that the factor does not know."""
        xp, near, shrink = array_namespace(R), self.near, self.near.shrink[:, None]
        Z = R * shrink
        T = xp.matrix_transpose(near.V) @ Z
        for columns, group in self._of_groups(T):
            T[:, columns] = solve(group.factor, T[:, columns])
        Z -= near.V @ T
        Z *= shrink
        return self.clear(Z)


@dataclass(frozen=True, slots=True, eq=False)
class Iterated:
    """What conjugate gradients found."""

    U: Array  # (m, c)
    n_steps: int  # products with K
    residual: float  # the largest |B - S U| / |B| of a column

    def reached(self, tolerance: float) -> bool:
        """Tell whether the residual is as small as that."""
        return self.residual <= tolerance


def conjugate_gradients(
    system: Large, B: Array, tolerance: float, most: int, start: Array | None = None
) -> Iterated:
    """S U = B until |B - S U| <= tolerance |B| in every column, or for `most` steps.

    Each column has its own steps, and all columns share the products with K. U is then the exact solution for
    other targets, which are off by so much. The residual is computed from U itself before it is believed.
    """
    xp, n_steps = array_namespace(B), 0
    U = xp.zeros_like(B) if start is None else start
    R = B if start is None else B - system.times(start)
    sizes = _norms(B)
    sizes = xp.where(sizes > 0, sizes, xp.ones_like(sizes))
    while True:
        residual = float(xp.max(_norms(R) / sizes))
        if not residual > tolerance or n_steps >= most:
            return Iterated(U, n_steps, residual)
        P, before = xp.zeros_like(B), xp.zeros_like(sizes)
        while n_steps < most and float(xp.max(_norms(R) / sizes)) > STOP_EARLY * tolerance:
            Z = system.precondition(R)
            ahead = xp.sum(R * Z, axis=0)
            P = Z + P * _quotient(ahead, before)
            SP = system.times(P)
            size = _quotient(ahead, xp.sum(P * SP, axis=0))
            U, R, before, n_steps = U + P * size, R - SP * size, ahead, n_steps + 1
        R = B - system.times(U)
        n_steps += 1


def _norms(V: Array) -> Array:
    xp = array_namespace(V)
    return xp.sqrt(xp.sum(V * V, axis=0))


def _quotient(a: Array, b: Array) -> Array:
    """Return a / b, and 0 where a column is done or begins."""
    xp = array_namespace(a)
    usable = (b > 0) & (a > 0)
    return xp.where(usable, a, xp.zeros_like(a)) / xp.where(usable, b, xp.ones_like(b))
