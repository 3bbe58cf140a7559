"""The backend seam: what the array API standard lacks, once, for NumPy, torch, CuPy and the rest."""

from __future__ import annotations

from collections.abc import Iterator
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
GPU_BLOCK_BYTES = 512 * 2**20
MIN_BLOCK_ROWS = 128

__all__ = [
    "Array",
    "add_gram",
    "add_to_diagonal",
    "array_namespace",
    "cholesky_solve",
    "device",
    "empty_rows",
    "from_numpy",
    "ignore_overflow",
    "index_dtype",
    "matmul_into",
    "positive_part",
    "row_blocks",
    "symmetric",
    "take_columns",
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


def empty_rows(shape: tuple[int, ...], like: Array) -> Array:
    """An uninitialised (..., m, c) array whose rows start at multiples of 16 numbers."""
    xp = array_namespace(like)
    padded = (*shape[:-1], -(-shape[-1] // 16) * 16)  # odd strides slow matrix products down
    return xp.empty(padded, dtype=like.dtype, device=device(like))[..., : shape[-1]]


def row_blocks(like: Array, m: int, row_numbers: int) -> Iterator[slice]:
    """Slices that cut m rows of `row_numbers` numbers each into blocks of a good size."""
    row_bytes = row_numbers * array_namespace(like).finfo(like.dtype).bits // 8
    on_cpu = not is_cupy_array(like) and not (is_torch_array(like) and like.device.type != "cpu")
    budget = CPU_BLOCK_BYTES if on_cpu else GPU_BLOCK_BYTES
    step = max(MIN_BLOCK_ROWS, budget // row_bytes)
    for start in range(0, m, step):
        yield slice(start, min(start + step, m))


def take_columns(D: Array, columns: Array | slice) -> Array:
    """A packed copy of the named columns of D (..., m, c)."""
    if isinstance(columns, slice):
        return array_namespace(D).asarray(D[..., columns], copy=True)
    if is_numpy_array(D):
        return D.take(columns, axis=-1, mode="clip")  # "clip" skips a slow bounds check
    return array_namespace(D).take(D, columns, axis=-1)


def matmul_into(A: Array, B: Array, out: Array) -> None:
    """out = A B, without a temporary where the library can."""
    if is_numpy_array(A):
        numpy.matmul(A, B, out=out)
    elif is_torch_array(A):
        array_namespace(A).matmul(A, B, out=out)
    else:
        out[...] = A @ B


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
        S = numpy.ascontiguousarray(S)
        for i in numpy.ndindex(S.shape[:-2]):
            # Fortran sees the transposes, so its upper triangle is our lower one: no copy is made.
            syrk(1.0, S[i].T, beta=1.0, c=G[i].T, overwrite_c=True)
        return
    c = S.shape[-1]
    step = c if c <= 512 else -(-c // 4)  # four panels: 5/8 of the full product
    for j in range(0, c, step):
        panel = S[..., j : j + step]
        G[..., j:, j : j + step] += array_namespace(S).matrix_transpose(S[..., j:]) @ panel


def symmetric(G: Array) -> Array:
    """The full symmetric matrix whose lower triangle G holds."""
    xp = array_namespace(G)
    return xp.tril(G) + xp.matrix_transpose(xp.tril(G, k=-1))


def _diagonal(G: Array) -> Array:
    return array_namespace(G).linalg.diagonal(G)


def add_to_diagonal(G: Array, value: Any) -> Array:
    """G + value I, for a value a stack member or one for all; G may be overwritten."""
    if is_numpy_array(G):
        numpy.einsum("...ii->...i", G)[...] += numpy.asarray(value)[..., None]
        return G
    xp = array_namespace(G)
    eye = xp.eye(G.shape[-1], dtype=G.dtype, device=device(G))
    return G + from_numpy(value, G)[..., None, None] * eye


def cholesky_solve(G: Array, B: Array) -> tuple[Array, Array]:
    """Solve G X = B for symmetric positive definite G; also which stack members could be solved.

    A member is refused when a pivot keeps less than eps * size of its diagonal entry: that column is,
    to working precision, a combination of the ones before it. Scaling rows and columns of G does not
    change the verdict. X of a refused member means nothing.
    """
    xp = array_namespace(G)
    if is_torch_array(G):
        L, info = xp.linalg.cholesky_ex(G)
        X, solved = xp.cholesky_solve(B, L), info == 0
    else:
        solve = _cholesky_solve_lapack if is_numpy_array(G) else _cholesky_solve_standard
        stack = G.shape[:-2]
        members = [solve(G[(*i, ...)], B[(*i, ...)]) for i in numpy.ndindex(stack)]
        L = xp.reshape(xp.stack([m[0] for m in members]), G.shape)
        X = xp.reshape(xp.stack([m[1] for m in members]), B.shape)
        solved = xp.reshape(xp.asarray([m[2] for m in members], dtype=xp.bool, device=device(G)), stack)
    floor = xp.finfo(G.dtype).eps * G.shape[-1]
    return X, solved & xp.all(_diagonal(L) ** 2 > floor * _diagonal(G), axis=-1)


def _cholesky_solve_lapack(G: Array, B: Array) -> tuple[Array, Array, bool]:
    single = G.dtype == numpy.float32
    potrf, potrs = (lapack.spotrf, lapack.spotrs) if single else (lapack.dpotrf, lapack.dpotrs)
    L, info = potrf(G.T, lower=True, clean=False)
    if info != 0:
        return L, B, False
    X, _ = potrs(L, B, lower=True)
    return L, X, True


def _cholesky_solve_standard(G: Array, B: Array) -> tuple[Array, Array, bool]:
    # The standard has no triangular solve; Cholesky is the test, LU the solution.
    xp = array_namespace(G)
    try:
        L = xp.linalg.cholesky(G)
    except numpy.linalg.LinAlgError:
        return G, B, False
    if not bool(xp.all(xp.isfinite(L))):  # how CuPy reports an indefinite matrix
        return G, B, False
    return L, xp.linalg.solve(G, B), True
