"""How far encoded rows are apart, for kernels: what does not depend on the width is computed once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy

from .._inputs.rows import to_host
from .._seam.arrays import (
    Array,
    array_namespace,
    device,
    from_numpy,
    on_accelerator,
    row_blocks,
    take_columns,
)

CACHED = 32_768  # numbers that a core's cache holds several times
LEAST_ROWS = 16  # of a block of distances, which has as many columns as landmarks: it should stay in a cache


def by_columns(Z: Array) -> Array:
    """Return Z' (d, s) with each column of Z side by side in memory: comparisons take half of the time."""
    xp = array_namespace(Z)
    packed = xp.empty((Z.shape[1], Z.shape[0]), dtype=Z.dtype, device=device(Z))
    packed[...] = xp.matrix_transpose(Z)
    return packed


class Codes:
    """The columns of the rows of Z (s, d) that hold codes of categories: equal in two rows, or different.

    There are as many of them as `contrasts` (q,), none for None, and they are the last ones. A difference
    counts as that of two rows in one-hot columns: each of two columns differs by the contrast.
    """

    def __init__(self, Z: Array, contrasts: Array | None) -> None:
        xp = array_namespace(Z)
        none = xp.zeros((0,), dtype=Z.dtype, device=device(Z))
        self.contrasts = none if contrasts is None else contrasts
        self.n = int(self.contrasts.shape[0])
        self._columns = by_columns(self.of(Z))

    def of(self, X: Array) -> Array:
        """Return the codes among the columns of X."""
        return X[:, X.shape[1] - self.n :]

    def others(self, X: Array) -> Array:
        """Return the other columns of X."""
        return X[:, : X.shape[1] - self.n] if self.n else X

    def differ(self, X: Array, j: int) -> Array:
        """Return 1 where the rows x of X (m, d) and z of Z have different codes in the column j, else 0."""
        codes = self.of(X)[:, j]
        return array_namespace(X).astype(codes[:, None] != self._columns[j, :], X.dtype)

    def add(self, X: Array, gains: Array, out: Array) -> None:
        """out += sum_j gain_j [x_j != z_j] for every row x of X (m, d) and z of Z."""
        for j in range(self.n):
            out += self.differ(X, j) * gains[j]


class Euclid:
    """Euclidean distances to the rows of Z (s, d), whose part of the work is done once."""

    def __init__(self, Z: Array, contrasts: Array | None = None) -> None:
        xp = array_namespace(Z)
        self._Z, self._bound = Z, float(xp.finfo(Z.dtype).max) ** 0.25
        self._codes = Codes(Z, contrasts)
        self._gains = 2 * self._codes.contrasts * self._codes.contrasts
        Z = self._codes.others(Z)
        self._center = xp.mean(xp.clip(Z, -self._bound, self._bound), axis=0)  # large offsets would cancel
        Z = self._centred(Z)
        self._squares, self._minus = xp.sum(Z * Z, axis=1), -2 * xp.matrix_transpose(Z)

    def _centred(self, X: Array) -> Array:
        """Move the centre to 0. Absurdly far rows come nearer, so that no square overflows."""
        return array_namespace(X).clip(X - self._center, -self._bound, self._bound)

    def __call__(self, X: Array) -> Array:
        """|x - z| = sqrt(|x|^2 + |z|^2 - 2 x'z) for every row x of X (m, d), by blocks.

        Different codes add 2 c^2 to the square, c being their contrast. What could be rounding is 0: a copy
        of a row is where the row is, whichever library multiplies.
        """
        xp, s = array_namespace(X), self._squares.shape[0]
        rounding = 16 * float(xp.finfo(X.dtype).eps)
        out = xp.empty((X.shape[0], s), dtype=X.dtype, device=device(X))
        for rows in row_blocks(X, X.shape[0], 4 * s + X.shape[1], LEAST_ROWS):
            block = self._centred(self._codes.others(X[rows, :]))
            own = xp.sum(block * block, axis=1)[:, None]
            squares = block @ self._minus
            squares += own
            squares += self._squares
            squares = xp.where(squares > rounding * own, squares, xp.zeros_like(squares))
            self._codes.add(X[rows, :], self._gains, squares)
            out[rows, :] = xp.sqrt(squares)
        return out

    def own(self) -> Array:
        """Return the distances between the rows of Z, exactly 0 from each row to itself.

        Rounding would keep a row from itself, in float32 by a thousandth.
        """
        D = self(self._Z)
        xp = array_namespace(D)
        for rows in row_blocks(D, D.shape[0], 4 * D.shape[1], LEAST_ROWS):
            corner = D[rows, rows]
            places = xp.arange(corner.shape[0], device=device(D))
            D[rows, rows] = xp.where(places[:, None] == places, 0 * corner, corner)
        return D


class Columns:
    """The columns of the rows of Z (s, d), which are compared one by one.

    Columns of two values, as one-hot ones are, cost one product of matrices together.
    """

    def __init__(self, Z: Array, contrasts: Array | None = None) -> None:
        xp = array_namespace(Z)
        self.whole, self.codes = Z, Codes(Z, contrasts)
        Z = self.codes.others(Z)
        self.n = int(Z.shape[1]) + 2 * self.codes.n  # a column of codes counts as two that differ
        self.Z, self.low, self.high = Z, xp.min(Z, axis=0), xp.max(Z, axis=0)
        self.two = self._of_two(Z)

    def _of_two(self, X: Array) -> numpy.ndarray:
        """Mark the columns of X that hold nothing but the smallest and the largest value of that of Z."""
        xp = array_namespace(X)
        return to_host(xp.all((self.low == X) | (self.high == X), axis=0))

    def sums(self, X: Array, of_column: Callable[[Array], Array]) -> Array:
        """sum_j g(|x_j - z_j|) for every row x of X (m, d) and z of Z, by blocks that a cache holds."""
        same = of_column(0 * self.codes.contrasts)
        gains, whole, X = 2 * (of_column(self.codes.contrasts) - same), X, self.codes.others(X)
        xp, m, s = array_namespace(X), X.shape[0], self.Z.shape[0]
        two = self.two & self._of_two(X)
        out = self._of_pairs(X, numpy.flatnonzero(two), of_column)
        step, Z = m if on_accelerator(X) else max(8, CACHED // s), by_columns(self.Z)
        own = whole is self.whole  # then the sums are symmetric: those of earlier rows are known
        for start in range(0, m, step):
            rows = slice(start, min(start + step, m))
            others = slice(start if own else 0, s)
            block = out[rows, others]
            for j in numpy.flatnonzero(~two).tolist():
                block += of_column(xp.abs(X[rows, j][:, None] - Z[j, others]))
            out[rows, others] = block
            if own:
                out[rows.stop :, rows] = xp.matrix_transpose(block[:, rows.stop - start :])
        for start in range(0, m if self.codes.n else 0, step):
            rows = slice(start, min(start + step, m))
            out[rows, :] += 2 * xp.sum(same)
            self.codes.add(whole[rows, :], gains, out[rows, :])
        return out

    def _of_pairs(self, X: Array, which: numpy.ndarray, of_column: Callable[[Array], Array]) -> Array:
        """g(0) (d - n) + g(gap) n where columns differ: two values differ or they do not."""
        xp = array_namespace(X)
        if not len(which):
            return xp.zeros((X.shape[0], self.Z.shape[0]), dtype=X.dtype, device=device(X))
        gap, B, C = self.gaps(which), self.marks(X, which), self.marks(self.Z, which)
        same = of_column(xp.zeros_like(gap))
        more = of_column(gap) - same
        out = (B * (-2 * more)) @ xp.matrix_transpose(C)
        of_rows, of_others = (xp.sum(marks * more, axis=1) for marks in (B, C))
        for rows in row_blocks(out, out.shape[0], 4 * out.shape[1], LEAST_ROWS):
            block = out[rows, :] + of_rows[rows, None]
            block += of_others
            out[rows, :] = block + xp.sum(same)
        return out

    def gaps(self, which: numpy.ndarray) -> Array:
        """Return by how much the two values of some columns differ."""
        low, high = (from_numpy(to_host(end)[which], self.Z) for end in (self.low, self.high))
        return high - low

    def marks(self, X: Array, which: numpy.ndarray) -> Array:
        """Return 1 where some columns of X (m, d) of two values hold the larger one, else 0."""
        xp = array_namespace(X)
        places = from_numpy(which, X, xp.int64)
        return xp.astype(take_columns(X, places) > xp.take(self.low, places), X.dtype)


class CityBlock:
    """Sums of absolute differences to the rows of Z (s, d)."""

    def __init__(self, Z: Array, contrasts: Array | None = None) -> None:
        self._columns = Columns(Z, contrasts)

    def __call__(self, X: Array) -> Array:
        """sum_j |x_j - z_j| for every row x of X (m, d)."""
        D, xp = self._columns.sums(X, lambda apart: apart), array_namespace(X)
        for rows in row_blocks(D, D.shape[0], 4 * D.shape[1], LEAST_ROWS):
            D[rows, :] = xp.clip(D[rows, :], 0.0, None)
        return D

    def own(self) -> Array:
        """Return the distances between the rows of Z."""
        return self(self._columns.whole)


@dataclass(frozen=True, slots=True, eq=False)
class Pair:
    """Rows X (m, d), and the columns of landmarks that they are compared with when a width is known."""

    X: Array
    columns: Columns


class Uncompared:
    """The rows of Z (s, d), for a kernel that compares column by column with the width."""

    def __init__(self, Z: Array, contrasts: Array | None = None) -> None:
        self._columns = Columns(Z, contrasts)

    def __call__(self, X: Array) -> Pair:
        """Return X (m, d) beside the columns of Z."""
        return Pair(X, self._columns)

    def own(self) -> Pair:
        """Return Z beside its own columns."""
        return Pair(self._columns.whole, self._columns)
