"""Symmetric positive definite systems: Gram matrices, Cholesky factors, eigenvalues.

For NumPy these are direct BLAS and LAPACK calls, because the general functions copy their input (measured:
one copy of a Gram of 1051 columns costs as much as its Cholesky factor's solve).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy
from array_api_compat import array_namespace, device, is_numpy_array, is_torch_array
from scipy.linalg import blas, lapack

from .arrays import Array, aligned, from_numpy, on_accelerator, side_by_side_copy, weighted_copy
from .threads import threads_of_system

# A Gram of many columns is summed by panels, because a product cannot leave out the upper triangle: three do
# 2/3 of the full product, and eight of this width 9/16, which pays from so many rows on (measured).
PANEL = 128
PANEL_ROWS = 32_768
# LAPACK inverts a triangular factor of more columns faster than BLAS solves for a few of them at a time: at
# 320 columns that takes two thirds of its time, in float32 a third (measured).
FEW_COLUMNS, SMALL_PANEL = 640, 64


def add_gram(G: Array, S: Array) -> None:
    """Add S'S to the lower triangle of G (..., c, c), in place. The upper triangle may hold anything."""
    if is_numpy_array(S):
        syrk = blas.ssyrk if S.dtype == numpy.float32 else blas.dsyrk
        S = numpy.ascontiguousarray(S)  # makes no copy after `weighted_copy`
        for i in numpy.ndindex(S.shape[:-2]):
            # Fortran sees the transposes, so its upper triangle is our lower one: no copy is made.
            syrk(1.0, S[i].T, beta=1.0, c=G[i].T, overwrite_c=True)
        return
    _add_panels(G, None, S)


def _add_panels(G: Array, R: Array | None, S: Array) -> None:
    """Add S'S to the lower triangle of G, panel by panel of columns. S may have more columns than G has.

    With R (..., c, k), columns c to c + k of S are targets T, and S'T, a part of each panel, is added to R.
    """
    xp, c, width = array_namespace(S), G.shape[-1], S.shape[-1]
    few = width if width <= 512 else aligned(-(-width // 3))
    step = few if S.shape[-2] < PANEL_ROWS else PANEL
    for j in range(0, c, step):
        end = min(j + step, c)
        panel = xp.matrix_transpose(S[..., j:]) @ S[..., j : min(j + step, width)]
        panel = panel[..., : end - j]  # without the columns that keep the last product aligned
        G[..., j:, j:end] += panel[..., : c - j, :]
        if R is not None:
            R[..., j:end, :] += xp.matrix_transpose(panel[..., c - j : c - j + R.shape[-1], :])


def add_products(G: Array, R: Array, D: Array, Y: Array, root: Array | None, packed: bool) -> None:
    """Add D'WD to the lower triangle of G (..., c, c) and D'WY to R (..., c, k), in place, with W = root^2.

    `packed` tells that D is a copy already, which a CPU need not make again.
    """
    if on_accelerator(D):
        _add_panels(G, R, side_by_side_copy([D, Y], root))
        return
    S = D if packed and root is None else weighted_copy(D, root)
    add_gram(G, S)
    R += array_namespace(S).matrix_transpose(S) @ (Y if root is None else Y * root[..., None])


def symmetric(G: Array) -> Array:
    """Copy the lower triangle of G over its upper one, and return G."""
    xp = array_namespace(G)
    c, step = G.shape[-1], 512
    for j in range(0, c, step):  # by tiles, so that no second matrix is held
        end = min(j + step, c)
        tile = xp.tril(G[..., j:end, j:end])
        G[..., j:end, j:end] = tile + xp.matrix_transpose(xp.tril(tile, k=-1))
        if end < c:
            G[..., j:end, end:] = xp.matrix_transpose(G[..., end:, j:end])
    return G


def add_to_diagonal(G: Array, value: Any) -> Array:
    """Return G + value I as an array of its own shape and `value`'s stack, (*stack, c, c).

    G is overwritten where it already has that shape.
    """
    xp = array_namespace(G)
    stack = numpy.broadcast_shapes(G.shape[:-2], numpy.shape(value))
    if stack != G.shape[:-2]:
        G = xp.asarray(xp.broadcast_to(G, (*stack, *G.shape[-2:])), copy=True)
    if is_numpy_array(G):
        numpy.einsum("...ii->...i", G)[...] += numpy.asarray(value, dtype=G.dtype)[..., None]
        return G
    if is_torch_array(G):
        G.diagonal(dim1=-2, dim2=-1).add_(from_numpy(value, G)[..., None])
        return G
    eye = xp.eye(G.shape[-1], dtype=G.dtype, device=device(G))
    return G + from_numpy(value, G)[..., None, None] * eye


@dataclass(frozen=True, slots=True, eq=False)
class Cholesky:
    """G = LL' for each member of a stack, and which members have such a factor."""

    G: Array  # (..., c, c)
    L: Array  # (..., c, c); means nothing where `regular` is False
    regular: Array  # (...) of bool

    @property
    def singular_members(self) -> list[tuple[int, ...]]:
        """The indices of the members without a factor."""
        if bool(array_namespace(self.regular).all(self.regular)):
            return []
        return [i for i in numpy.ndindex(self.regular.shape) if not bool(self.regular[i])]

    def rounded(self, dtype: Any) -> Cholesky:
        """Return the factors in another precision."""
        xp = array_namespace(self.G)
        G, L = (xp.astype(A, dtype, copy=False) for A in (self.G, self.L))
        return Cholesky(G, L, self.regular)


def factorise(G: Array, eps: float | None = None, *, overwrite: bool = False) -> Cholesky:
    """Factorise symmetric positive definite matrices by Cholesky; `overwrite` lets NumPy put L in G's place.

    A member counts as singular when a pivot keeps less than eps * size of its diagonal entry: that column
    is, to the precision eps of the numbers, a combination of the columns before it. Scaling the rows and
    columns of G does not change this verdict. By default eps is that of G's type.
    """
    xp = array_namespace(G)
    entries = xp.linalg.diagonal(G) * 1.0
    if is_torch_array(G):
        L, info = xp.linalg.cholesky_ex(G)
        regular = info == 0
    else:
        one: Any = partial(_cholesky_lapack, overwrite=overwrite) if is_numpy_array(G) else _cholesky_standard
        members = [one(G[(*i, ...)]) for i in numpy.ndindex(G.shape[:-2])]
        L = _stack([L for L, _ in members], G.shape)
        regular = xp.asarray([ok for _, ok in members], dtype=xp.bool, device=device(G))
        regular = xp.reshape(regular, G.shape[:-2])
    floor = (xp.finfo(G.dtype).eps if eps is None else eps) * G.shape[-1]
    # pivot^2 / entry is the share of the column that the columns before it do not explain
    pivots = xp.linalg.diagonal(L)
    return Cholesky(G, L, regular & xp.all(pivots**2 > floor * entries, axis=-1))


def _stack(members: list[Array], shape: tuple[int, ...]) -> Array:
    """Put the members of a stack together. A single matrix is not copied."""
    xp = array_namespace(members[0])
    return members[0] if len(shape) == members[0].ndim else xp.reshape(xp.stack(members), shape)


def _cholesky_lapack(G: Array, overwrite: bool) -> tuple[Array, bool]:
    potrf = lapack.spotrf if G.dtype == numpy.float32 else lapack.dpotrf
    # To LAPACK, which reads columns, our lower triangle is the upper one. U' = L lies in memory by rows, so
    # the solves below hand L' to LAPACK without a copy.
    with threads_of_system(len(G)):
        U, info = potrf(G.T, lower=False, clean=False, overwrite_a=overwrite)
    return U.T, info == 0


def _cholesky_standard(G: Array) -> tuple[Array, bool]:
    xp = array_namespace(G)
    try:
        L = xp.linalg.cholesky(G)
    except numpy.linalg.LinAlgError:
        return G, False
    return L, bool(xp.all(xp.isfinite(L)))  # CuPy reports an indefinite matrix by values that are not finite


def solve(factor: Cholesky, B: Array) -> Array:
    """Solve G X = B by the factor. X of a singular member means nothing."""
    G, L = factor.G, factor.L
    xp = array_namespace(G)
    if is_torch_array(G):
        return xp.cholesky_solve(B, L)
    B = xp.broadcast_to(B, (*G.shape[:-2], *B.shape[-2:]))
    if not is_numpy_array(G):
        return _lu_solve(factor, B)
    potrs = lapack.spotrs if G.dtype == numpy.float32 else lapack.dpotrs
    return _stack([potrs(L[i].T, B[i], lower=False)[0] for i in numpy.ndindex(G.shape[:-2])], B.shape)


def inverse_forms(factor: Cholesky, S: Array) -> Array:
    """Return s' G^-1 s for every row s of S (..., rows, c), as |L^-1 s|^2, which is a sum of squares."""
    G, L = factor.G, factor.L
    xp = array_namespace(G)
    if is_torch_array(G):
        Z = xp.linalg.solve_triangular(L, xp.matrix_transpose(S), upper=False)
        return xp.sum(Z * Z, axis=-2)
    S = xp.broadcast_to(S, (*G.shape[:-2], *S.shape[-2:]))
    if not is_numpy_array(G):
        return xp.sum(xp.matrix_transpose(S) * _lu_solve(factor, xp.matrix_transpose(S)), axis=-2)
    trtrs = lapack.strtrs if G.dtype == numpy.float32 else lapack.dtrtrs
    members = []
    for i in numpy.ndindex(G.shape[:-2]):
        Z, _ = trtrs(L[i].T, S[i].copy().T, lower=False, trans=True, overwrite_b=True)
        members.append(numpy.einsum("ij,ij->j", Z, Z))
    return _stack(members, S.shape[:-1])


def half_inverse(factor: Cholesky) -> Array:
    """Return L^-T of one matrix (c, c): a product with its transpose is G^-1. It is upper triangular."""
    G, L = factor.G, factor.L
    xp = array_namespace(G)
    if is_numpy_array(G):
        return _clear_below(_inverse_lapack(L))
    eye = xp.eye(G.shape[-1], dtype=G.dtype, device=device(G))
    if is_torch_array(G):
        return xp.matrix_transpose(xp.linalg.solve_triangular(L, eye, upper=False))
    return xp.matrix_transpose(xp.linalg.solve(L, eye))


def inverse_diagonal(factor: Cholesky, last: int | None = None) -> Array:
    """Return the diagonal of G^-1 (..., c): the squared norms of the columns of L^-1.

    The end of the diagonal asks for no more than the last corner of L, so `last` entries of it cost less.
    """
    if last is not None:
        factor = _corner(factor, last)
    G, L = factor.G, factor.L
    if not is_numpy_array(G):
        return inverse_forms(factor, array_namespace(G).eye(G.shape[-1], dtype=G.dtype, device=device(G)))
    one = _norms_by_panels if L.shape[-1] <= FEW_COLUMNS else _norms_of_inverse
    return _stack([one(L[i]) for i in numpy.ndindex(G.shape[:-2])], G.shape[:-1])


def _norms_by_panels(L: Array) -> Array:
    """Solve LX = I by panels of columns, each from its diagonal on: LAPACK inverts small factors slowly."""
    trsm, n = blas.strsm if L.dtype == numpy.float32 else blas.dtrsm, len(L)
    norms = numpy.empty(n, dtype=L.dtype)
    with threads_of_system(n):
        for j in range(0, n, SMALL_PANEL):
            columns = numpy.zeros((min(SMALL_PANEL, n - j), n - j), dtype=L.dtype)  # to BLAS its transpose
            numpy.fill_diagonal(columns, 1.0)
            X = trsm(1.0, numpy.asfortranarray(L[j:, j:].T), columns.T, trans_a=True, overwrite_b=True)
            norms[j : j + SMALL_PANEL] = numpy.einsum("ij,ij->j", X, X)
    return norms


def _corner(factor: Cholesky, n: int) -> Cholesky:
    """Return the last corner (n, n) of a factor: the factor of the inverse of that corner of G^-1."""
    L = factor.L[..., -n:, -n:]
    kept = is_numpy_array(L) or is_torch_array(L)  # other libraries solve without the factor
    G = factor.G[..., -n:, -n:] if kept else L @ array_namespace(L).matrix_transpose(L)
    return Cholesky(G, L, factor.regular)


def _inverse_lapack(L: Array) -> Array:
    """Return L^-T in the upper triangle; below its diagonal LAPACK leaves what was there."""
    # LAPACK's solve for the identity knows that the solution is triangular too, and does a third of the work
    trtri = lapack.strtri if L.dtype == numpy.float32 else lapack.dtrtri
    with threads_of_system(len(L)):
        return trtri(L.T, lower=0)[0]


def _clear_below(V: Array) -> Array:
    """Set V below its diagonal to 0, in place: V is stored by columns, and may be all that memory holds."""
    for j in range(0, len(V), 256):
        V[j + 256 :, j : j + 256] = 0
        V[j : j + 256, j : j + 256] = numpy.triu(V[j : j + 256, j : j + 256])
    return V


def _norms_of_inverse(L: Array) -> Array:
    """Sum the squares of each row of L^-T, by panels of columns: it is stored by columns."""
    V = _inverse_lapack(L)
    norms = numpy.zeros_like(V[0])
    for j in range(0, len(V), 256):
        panel = V[:, j : j + 256]
        end = j + panel.shape[1]
        norms[:j] += numpy.einsum("ij,ij->i", panel[:j], panel[:j])
        corner = numpy.triu(panel[j:end])
        norms[j:end] += numpy.einsum("ij,ij->i", corner, corner)
    return norms


def _lu_solve(factor: Cholesky, B: Array) -> Array:
    """Solve G X = B without the factor, because the array API standard has no triangular solve."""
    xp = array_namespace(B)
    eye = xp.eye(B.shape[-2], dtype=B.dtype, device=device(B))  # in place of singular members
    return xp.linalg.solve(xp.where(factor.regular[..., None, None], factor.G, eye), B)


def eigenvalues(G: Array) -> tuple[Array, Array]:
    """Return the eigenvalues and the eigenvectors of a symmetric G (c, c)."""
    with threads_of_system(G.shape[-1]):
        values, V = array_namespace(G).linalg.eigh(G)
    return values, V


def kept_eigenvalues(G: Array) -> tuple[Array, Array]:
    """Return 1 / eigenvalue and the eigenvectors of G (c, c).

    Directions with an eigenvalue below eps * size * max count as absent: their inverse is 0, so that
    V (inverse V'B) is the solution of G X = B of least norm.
    """
    xp = array_namespace(G)
    values, V = eigenvalues(G)
    kept = values > xp.finfo(G.dtype).eps * G.shape[-1] * xp.max(values)
    safe = xp.where(kept, values, xp.ones_like(values))  # avoids a division by zero where it is unused
    return xp.where(kept, 1 / safe, xp.zeros_like(values)), V
