"""Kernels: how alike two encoded rows are, from 1 where they agree towards 0 where they are far apart.

What does not depend on the width is computed once, and every width that is tried begins with that: distances
between rows, or the rows themselves for the additive kernel, which has no single distance.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

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

ROOT3 = math.sqrt(3.0)
CACHED = 32_768  # numbers that a core's cache holds several times


# --- how far rows are apart ------------------------------------------------------------------------------


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
        self._columns = xp.matrix_transpose(self.of(Z))

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
        for rows in row_blocks(X, X.shape[0], 2 * s + X.shape[1]):
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
        for rows in row_blocks(D, D.shape[0], 2 * D.shape[1]):
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
        step, Z = m if on_accelerator(X) else max(8, CACHED // s), xp.matrix_transpose(self.Z)
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
        for rows in row_blocks(out, out.shape[0], out.shape[1]):
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
        for rows in row_blocks(D, D.shape[0], 2 * D.shape[1]):
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


# --- how alike they are, and how steep scores are --------------------------------------------------------


def laplace(distance: Array, width: float) -> Array:
    """exp(-distance / width)."""
    xp = array_namespace(distance)
    return by_blocks(distance, lambda r: xp.exp(r * (-1 / width)))


def matern(distance: Array, width: float) -> Array:
    """(1 + q) exp(-q), q = sqrt(3) distance / width: the Matern kernel of smoothness 3/2."""
    xp = array_namespace(distance)

    def of_block(r: Array) -> Array:
        q = r * (ROOT3 / width)
        return (1 + q) * xp.exp(-q)

    return by_blocks(distance, of_block)


def additive(pair: Pair, width: float) -> Array:
    """((1/d) sum_j exp(-|x_j - z_j| / width))^2: columns add, and pairs of columns work together."""
    mean = _mean_of_columns(pair, width)
    return by_blocks(mean, lambda block: block * block)


def _mean_of_columns(pair: Pair, width: float) -> Array:
    xp, d = array_namespace(pair.X), max(1, pair.columns.n)
    return pair.columns.sums(pair.X, lambda apart: xp.exp(apart * (-1 / width)) * (1 / d))


def by_blocks(D: Array, function: Callable[[Array], Array]) -> Array:
    """Return a function of every number of D (m, s), block by block."""
    out = array_namespace(D).empty_like(D)
    for rows in row_blocks(D, D.shape[0], 2 * D.shape[1]):
        out[rows, :] = function(D[rows, :])
    return out


def _laplace_slope(distance: Array, width: float) -> Array:
    """-k'(r) / r = exp(-r / width) / (width r). At a row itself there is a kink, which counts as flat."""
    xp = array_namespace(distance)
    itself = 1e-3 * float(xp.max(distance))  # the row itself, as far as rounding lets one see

    def of_block(r: Array) -> Array:
        r = xp.where(r < itself, xp.full_like(r, math.inf), r)
        return xp.exp(r * (-1 / width)) / (width * r)

    return by_blocks(distance, of_block)


def _matern_slope(distance: Array, width: float) -> Array:
    """-k'(r) / r = (3 / width^2) exp(-q), q = sqrt(3) r / width."""
    return laplace(distance, width / ROOT3) * (3 / width**2)


Squares = Callable[..., Array]


def _of_codes(M: Array, X: Array, alpha: Array, counts: Array, codes: Codes, scale: Array) -> list[Array]:
    """sum_x sum_c (scale_j sum_z alpha_zc M(x, z) [x_j != z_j])^2 for each column of codes.

    This is the slope in the one-hot column of a row's own category.
    """
    xp, found = array_namespace(X), []
    for j in range(codes.n):
        gradient = ((M * codes.differ(X, j)) @ alpha) * scale[j]
        found.append(xp.sum(counts @ (gradient * gradient)))
    return found


def _radial(slope: Callable[[Array, float], Array]) -> Squares:
    """mean_x sum_c (ds_c / dx_j)^2 where ds_c / dx = -sum_z alpha_zc M(x, z) (x - z), M = -k'(r) / r."""

    def squares(
        X: Array,
        alpha: Array,
        counts: Array,
        width: float,
        contrasts: Array | None = None,
        apart: Array | None = None,
    ) -> Array:
        xp, codes = array_namespace(X), Codes(X, contrasts)
        M = slope(Euclid(X, contrasts).own() if apart is None else apart, width)
        of_codes = _of_codes(M, X, alpha, counts, codes, codes.contrasts)
        X = codes.others(X)
        total = xp.zeros((X.shape[1],), dtype=X.dtype, device=device(X))
        for c in range(alpha.shape[1]):
            gradient = _differences(M, alpha[:, c], X)
            total += counts @ (gradient * gradient)
        return (xp.concat([total, xp.stack(of_codes)]) if of_codes else total) / xp.sum(counts)

    return squares


def _differences(M: Array, alpha: Array, X: Array) -> Array:
    """sum_z alpha_z M(x, z) (x - z) for every row x of X, in one product."""
    xp = array_namespace(X)
    sums = M @ (alpha[:, None] * xp.concat([X, xp.ones_like(X[:, :1])], axis=1))
    return sums[:, -1:] * X - sums[:, :-1]


def _by_column(outer: Callable[[Columns, float, Any], tuple[Array, bool]]) -> Squares:
    """mean_x sum_c (ds_c / dx_j)^2 where ds_c / dx_j = -sum_z alpha_zc M_j(x, z) sign(x_j - z_j)."""

    def squares(
        X: Array, alpha: Array, counts: Array, width: float, contrasts: Array | None = None, apart: Any = None
    ) -> Array:
        xp, columns = array_namespace(X), Columns(X, contrasts)
        M, by_column = outer(columns, width, apart)

        def shrunk(apart: Array) -> Array:
            return xp.exp(apart * (-1 / width)) if by_column else 0 * apart + 1

        of_codes = _of_codes(M, X, alpha, counts, columns.codes, shrunk(columns.codes.contrasts))
        X = columns.Z
        total = list(xp.zeros((X.shape[1],), dtype=X.dtype, device=device(X)))
        m, Z = X.shape[0], xp.matrix_transpose(X)
        step = m if on_accelerator(X) else max(8, CACHED // m)  # of each column a cache holds so many rows
        # a difference of ranks, cut at 1, is a sign: several times as fast
        ranks = {
            j: xp.astype(xp.unique_inverse(X[:, j]).inverse_indices, X.dtype)
            for j in numpy.flatnonzero(~columns.two).tolist()
        }
        for start in range(0, m, step):
            rows = slice(start, min(start + step, m))
            block = M[rows, :]
            for j, places in ranks.items():
                steep = block * shrunk(xp.abs(X[rows, j][:, None] - Z[j, :])) if by_column else block
                sign = xp.clip(places[rows][:, None] - places, -1.0, 1.0)
                gradient = (sign * steep) @ alpha
                total[j] = total[j] + xp.sum(counts[rows] @ (gradient * gradient))
        which = numpy.flatnonzero(columns.two)
        if len(which):
            B, scale = columns.marks(X, which), shrunk(columns.gaps(which))
            found = xp.zeros_like(scale)
            for c in range(alpha.shape[1]):
                gradient = _differences(M, alpha[:, c], B) * scale
                found += counts @ (gradient * gradient)
            for i, j in enumerate(which.tolist()):
                total[j] = found[i]
        return xp.stack([*total, *of_codes]) / xp.sum(counts)

    return squares


def _product_slope(columns: Columns, width: float, distance: Array | None) -> tuple[Array, bool]:
    """exp(-|x - z|_1 / width) / width, for all columns alike."""
    if distance is None:
        distance = columns.sums(columns.whole, lambda apart: apart)
    return laplace(distance, width) * (1 / width), False


def _additive_slope(columns: Columns, width: float, _: Any) -> tuple[Array, bool]:
    """(2 / (d width)) mean, which each column multiplies by its own exp(-|x_j - z_j| / width)."""
    mean = _mean_of_columns(Pair(columns.whole, columns), width)
    return mean * (2 / (max(1, columns.n) * width)), True


@dataclass(frozen=True, slots=True)
class Kernel:
    """A kernel: what is measured between rows, how alike that makes them, and how steep it is."""

    # of the landmarks and the contrasts of their codes, if any; called with rows, or `own` for the landmarks
    measure: Callable[[Array, Array | None], Any]
    alike: Callable[[Any, float], Array]  # (what was measured, width) -> K
    unit: Callable[[int], float]  # the width of a bandwidth of 1 over so many columns
    # (X, alpha, counts, width, contrasts, what was measured between X if that is known) -> mean_x sum_c
    # (ds_c / dx_j)^2 of the scores s = K alpha, for each column
    squared_gradients: Squares
    dear: bool = False  # whether a width costs far more than copying K, and no distances are held


# Product and additive kernels use no distance across columns, so they see thresholds as trees do.
KERNELS: Mapping[str, Kernel] = {
    "laplace": Kernel(Euclid, laplace, math.sqrt, _radial(_laplace_slope)),
    "matern": Kernel(Euclid, matern, math.sqrt, _radial(_matern_slope)),
    "product": Kernel(CityBlock, laplace, float, _by_column(_product_slope)),
    "additive": Kernel(Uncompared, additive, lambda _: 1.0, _by_column(_additive_slope), dear=True),
}


def width_of(kernel: str, bandwidth: float, d: int) -> float:
    """Return the width of a bandwidth over d columns."""
    return bandwidth * KERNELS[kernel].unit(max(1, d))
