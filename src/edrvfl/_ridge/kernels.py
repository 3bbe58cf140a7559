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

from .._seam.arrays import Array, array_namespace, device, on_accelerator, row_blocks
from .distances import CACHED, LEAST_ROWS, CityBlock, Codes, Columns, Euclid, Pair, Uncompared, by_columns

ROOT3 = math.sqrt(3.0)


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
    for rows in row_blocks(D, D.shape[0], 4 * D.shape[1], LEAST_ROWS):
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
        m, Z = X.shape[0], by_columns(X)
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
