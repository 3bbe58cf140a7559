"""The backend seam: what the array API standard lacks, once, for NumPy, torch, CuPy and the rest."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy
from array_api_compat import (
    array_namespace,
    device,
    is_cupy_array,
    is_numpy_array,
    is_torch_array,
)
from scipy.linalg import blas, lapack

Array: TypeAlias = Any  # an array of any library that follows the standard

# A block of rows should stay in a core's cache on a CPU and fill a GPU (measured, benchmarks/).
CPU_BLOCK_BYTES = 2 * 2**20
GPU_BLOCK_BYTES = 256 * 2**20
MIN_BLOCK_ROWS = 128

__all__ = [
    "Array",
    "Cholesky",
    "add_gram",
    "add_to_diagonal",
    "aligned",
    "array_namespace",
    "block_bytes",
    "cholesky",
    "cholesky_solve",
    "device",
    "empty_rows",
    "free_bytes",
    "from_numpy",
    "ignore_overflow",
    "index_dtype",
    "inverse_forms",
    "itemsize",
    "matmul_into",
    "moments_of_block",
    "on_accelerator",
    "packed_width",
    "positive_part",
    "product",
    "row_blocks",
    "scale_and_shift",
    "symmetric",
    "take_columns",
    "take_rows",
    "weighted_copy",
]


def from_numpy(values: Any, like: Array, dtype: Any = None) -> Array:
    """A host value as an array beside `like`: its namespace, its device, its dtype unless given."""
    xp = array_namespace(like)
    return xp.asarray(values, dtype=like.dtype if dtype is None else dtype, device=device(like))


def index_dtype(like: Array) -> Any:
    """The integer type that indexes arrays of this library."""
    return array_namespace(like).int64


def ignore_overflow() -> Any:
    """A context in which NumPy lets infinities pass; whoever opens it checks the result."""
    return numpy.errstate(over="ignore", invalid="ignore")


def on_accelerator(array: Array) -> bool:
    """Whether the array lives on a GPU or the like."""
    return is_cupy_array(array) or (is_torch_array(array) and array.device.type != "cpu")


def aligned(width: int) -> int:
    """The next multiple of 16: products of odd widths and odd strides run at a fraction of the speed."""
    return -(-width // 16) * 16


def packed_width(like: Array, width: int) -> int:
    """Columns of a packed copy of `width` columns: on a GPU zero columns are added for alignment."""
    return aligned(width) if on_accelerator(like) else width


def empty_rows(shape: tuple[int, ...], like: Array) -> Array:
    """An uninitialised (..., m, c) array whose rows start at multiples of 16 numbers."""
    xp = array_namespace(like)
    padded = (*shape[:-1], aligned(shape[-1]))
    return xp.empty(padded, dtype=like.dtype, device=device(like))[..., : shape[-1]]


def itemsize(like: Array) -> int:
    """Bytes of one number."""
    return int(array_namespace(like).finfo(like.dtype).bits) // 8


def product(*factors: Array | None) -> Array | None:
    """The product of those that are given; None if none is."""
    given = [f for f in factors if f is not None]
    return math.prod(given[1:], start=given[0]) if given else None


def row_blocks(like: Array, m: int, row_numbers: int, least: int = MIN_BLOCK_ROWS) -> Iterator[slice]:
    """Slices that cut m rows of `row_numbers` numbers each into blocks of a good size."""
    row_bytes = row_numbers * itemsize(like)
    step = block_bytes(on_accelerator(like), row_bytes, least) // row_bytes
    for start in range(0, m, step):
        yield slice(start, min(start + step, m))


def block_bytes(gpu: bool, row_bytes: int, least: int = MIN_BLOCK_ROWS) -> int:
    """Size of a full block of rows, `least` of them or more."""
    budget = GPU_BLOCK_BYTES if gpu else CPU_BLOCK_BYTES
    return max(least, budget // row_bytes) * row_bytes


def free_bytes(like: Array) -> int | None:
    """Memory that the array's accelerator has left; None off an accelerator."""
    if is_cupy_array(like):
        return int(like.device.mem_info[0])
    if is_torch_array(like) and like.device.type == "cuda":
        free, _ = array_namespace(like).cuda.mem_get_info(like.device)
        return int(free)
    return None


def take_rows(D: Array, rows: Array) -> Array:
    """A copy of the named rows of D (m, c); NumPy's own `take` would first copy all of a strided D."""
    return D[rows] if is_numpy_array(D) else array_namespace(D).take(D, rows, axis=0)


def take_columns(D: Array, columns: Array | slice) -> Array:
    """A packed copy, see `packed_width`, of the named columns of D (..., m, c)."""
    if is_numpy_array(D):
        # "clip" skips a slow bounds check
        return D[..., columns].copy() if isinstance(columns, slice) else D.take(columns, -1, mode="clip")
    xp = array_namespace(D)
    A = D[..., columns] if isinstance(columns, slice) else xp.take(D, columns, axis=-1)
    if on_accelerator(D):
        return _with_zero_columns(A)
    return xp.asarray(A, copy=True) if isinstance(columns, slice) else A


def weighted_copy(D: Array, root: Array | None) -> Array:
    """A packed copy, see `packed_width`, of D (..., m, c) with its rows times root (..., m)."""
    if on_accelerator(D):
        return _with_zero_columns(D, root)
    if root is None:
        return array_namespace(D).asarray(D, copy=True)
    return D * root[..., None]


def _with_zero_columns(A: Array, root: Array | None = None) -> Array:
    xp = array_namespace(A)
    width = A.shape[-1]
    shape = A.shape[:-1] if root is None else numpy.broadcast_shapes(A.shape[:-1], root.shape)
    out = xp.empty((*shape, packed_width(A, width)), dtype=A.dtype, device=device(A))
    out[..., width:] = 0
    if root is None:
        out[..., :width] = A
    else:
        xp.multiply(A, root[..., None], out=out[..., :width])
    return out


def matmul_into(A: Array, B: Array, out: Array) -> None:
    """out = A B, without a temporary where the library can; A may have zero columns behind its own."""
    if is_numpy_array(A):
        numpy.matmul(A, B, out=out)
        return
    xp = array_namespace(A)
    if A.shape[-1] > B.shape[-2]:
        shape = (*B.shape[:-2], A.shape[-1] - B.shape[-2], B.shape[-1])
        B = xp.concat([B, xp.zeros(shape, dtype=B.dtype, device=device(B))], axis=-2)
    if is_torch_array(A) and A.ndim == B.ndim == 2:  # torch refuses strided stacks
        xp.matmul(A, B, out=out)
    else:
        out[...] = A @ B


def moments_of_block(Z: Array, s: Array | None) -> tuple[Any, Array, Array]:
    """Total weight, mean and weighted sum of squared deviations of the columns of Z (..., r, n)."""
    xp = array_namespace(Z)
    if s is None and is_torch_array(Z):  # one pass over memory instead of four
        variance, mean = xp.var_mean(Z, dim=-2, correction=0)
        return Z.shape[-2], mean, variance * Z.shape[-2]
    if s is None:
        s = xp.ones((Z.shape[-2],), dtype=Z.dtype, device=device(Z))
    weight = xp.sum(s)
    mean = (s @ Z) / weight
    deviation = Z - mean[..., None, :]
    deviation *= deviation
    return weight, mean, s @ deviation


def scale_and_shift(Z: Array, scale: Array, shift: Array) -> None:
    """Z = scale Z + shift by column, in place, in one pass over memory where the library can."""
    scale, shift = scale[..., None, :], shift[..., None, :]
    if is_torch_array(Z):
        array_namespace(Z).addcmul(shift, Z, scale, out=Z)
    else:
        Z *= scale
        Z += shift


def positive_part(Z: Array) -> Array:
    """max(Z, 0); Z may be overwritten."""
    if is_numpy_array(Z):
        return numpy.maximum(Z, 0, out=Z)
    if is_torch_array(Z):
        return Z.clamp_(min=0)
    xp = array_namespace(Z)
    return xp.where(Z > 0, Z, xp.zeros_like(Z))


def add_gram(G: Array, S: Array) -> None:
    """Add S'S to the lower triangle of G (..., c, c), in place; the upper one may hold anything."""
    if is_numpy_array(S):
        syrk = blas.ssyrk if S.dtype == numpy.float32 else blas.dsyrk
        S = numpy.ascontiguousarray(S)  # no copy after `weighted_copy`
        for i in numpy.ndindex(S.shape[:-2]):
            # Fortran sees the transposes, so its upper triangle is our lower one: no copy is made.
            syrk(1.0, S[i].T, beta=1.0, c=G[i].T, overwrite_c=True)
        return
    c = S.shape[-1]
    step = c if c <= 512 else aligned(-(-c // 3))  # three panels: 2/3 of the full product
    for j in range(0, c, step):
        end = min(j + step, c)
        G[..., j:, j:end] += array_namespace(S).matrix_transpose(S[..., j:]) @ S[..., j:end]


def symmetric(G: Array) -> Array:
    """The full symmetric matrix whose lower triangle G holds, written over G."""
    xp = array_namespace(G)
    c, step = G.shape[-1], 512
    for j in range(0, c, step):  # by tiles: no second matrix is held
        end = min(j + step, c)
        tile = xp.tril(G[..., j:end, j:end])
        G[..., j:end, j:end] = tile + xp.matrix_transpose(xp.tril(tile, k=-1))
        if end < c:
            G[..., j:end, end:] = xp.matrix_transpose(G[..., end:, j:end])
    return G


def _diagonal(G: Array) -> Array:
    return array_namespace(G).linalg.diagonal(G)


def add_to_diagonal(G: Array, value: Any, copy: bool = False) -> Array:
    """G + value I, for a value a stack member or one for all; G may be overwritten unless `copy`."""
    if is_numpy_array(G):
        G = G.copy() if copy else G
        numpy.einsum("...ii->...i", G)[...] += numpy.asarray(value)[..., None]
        return G
    xp = array_namespace(G)
    if is_torch_array(G):
        G = G.clone() if copy else G
        G.diagonal(dim1=-2, dim2=-1).add_(from_numpy(value, G)[..., None])
        return G
    eye = xp.eye(G.shape[-1], dtype=G.dtype, device=device(G))
    return G + from_numpy(value, G)[..., None, None] * eye


@dataclass(frozen=True, slots=True, eq=False)
class Cholesky:
    """G = LL' of each stack member, and which members have one; L of the others means nothing."""

    G: Array  # (..., c, c)
    L: Array  # (..., c, c)
    solved: Array  # (...) of bool


def cholesky(G: Array) -> Cholesky:
    """Factorise symmetric positive definite matrices.

    A member is refused when a pivot keeps less than eps * size of its diagonal entry: that column is,
    to working precision, a combination of the ones before it. Scaling rows and columns of G does not
    change the verdict.
    """
    xp = array_namespace(G)
    if is_torch_array(G):
        L, info = xp.linalg.cholesky_ex(G)
        solved = info == 0
    else:
        factorise = _cholesky_lapack if is_numpy_array(G) else _cholesky_standard
        members = [factorise(G[(*i, ...)]) for i in numpy.ndindex(G.shape[:-2])]
        L = xp.reshape(xp.stack([L for L, _ in members]), G.shape)
        solved = xp.asarray([ok for _, ok in members], dtype=xp.bool, device=device(G))
        solved = xp.reshape(solved, G.shape[:-2])
    floor = xp.finfo(G.dtype).eps * G.shape[-1]
    return Cholesky(G, L, solved & xp.all(_diagonal(L) ** 2 > floor * _diagonal(G), axis=-1))


def _cholesky_lapack(G: Array) -> tuple[Array, bool]:
    potrf = lapack.spotrf if G.dtype == numpy.float32 else lapack.dpotrf
    L, info = potrf(G.T, lower=True, clean=False)
    return L, info == 0


def _cholesky_standard(G: Array) -> tuple[Array, bool]:
    xp = array_namespace(G)
    try:
        L = xp.linalg.cholesky(G)
    except numpy.linalg.LinAlgError:
        return G, False
    return L, bool(xp.all(xp.isfinite(L)))  # not finite is how CuPy reports an indefinite matrix


def cholesky_solve(factor: Cholesky, B: Array) -> Array:
    """Solve G X = B; X of a refused member means nothing."""
    G, L = factor.G, factor.L
    xp = array_namespace(G)
    if is_torch_array(G):
        return xp.cholesky_solve(B, L)
    if is_numpy_array(G):
        potrs = lapack.spotrs if G.dtype == numpy.float32 else lapack.dpotrs
        # LAPACK reads columns: L' is the upper factor, without a copy
        members = [potrs(L[i].T, B[i], lower=False)[0] for i in numpy.ndindex(G.shape[:-2])]
    else:  # the standard has no triangular solve
        indices = list(numpy.ndindex(G.shape[:-2]))
        members = [_lu_solve(factor, B[(*i, ...)], i) for i in indices]
    return xp.reshape(xp.stack(members), B.shape)


def inverse_forms(factor: Cholesky, S: Array) -> Array:
    """s' G^-1 s of every row s of S (..., rows, c), as (..., rows): |L^-1 s|^2, a sum of squares."""
    G, L = factor.G, factor.L
    xp = array_namespace(G)
    if is_torch_array(G):
        Z = xp.linalg.solve_triangular(L, xp.matrix_transpose(S), upper=False)
        return xp.sum(Z * Z, axis=-2)
    S = xp.broadcast_to(S, (*G.shape[:-2], *S.shape[-2:]))
    if is_numpy_array(G):
        trtrs = lapack.strtrs if G.dtype == numpy.float32 else lapack.dtrtrs
        members = []
        for i in numpy.ndindex(G.shape[:-2]):
            Z, _ = trtrs(L[i].T, S[i].copy().T, lower=False, trans=True, overwrite_b=True)
            members.append(numpy.einsum("ij,ij->j", Z, Z))
    else:
        indices = list(numpy.ndindex(G.shape[:-2]))
        rows = [S[(*i, ...)] for i in indices]
        members = [
            xp.sum(s * xp.matrix_transpose(_lu_solve(factor, xp.matrix_transpose(s), i)), axis=-1)
            for i, s in zip(indices, rows, strict=True)
        ]
    return xp.reshape(xp.stack(members), S.shape[:-1])


def _lu_solve(factor: Cholesky, B: Array, i: tuple[int, ...]) -> Array:
    if not bool(factor.solved[i]):
        return B
    return array_namespace(B).linalg.solve(factor.G[(*i, ...)], B)
