"""The seam between array libraries: what the array API standard lacks, written once for NumPy, torch, CuPy.

This file and `_linalg.py` are the only ones that ask which library or which device an array belongs to.
"""

from __future__ import annotations

import dataclasses
import math
import os
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeAlias

import numpy
from array_api_compat import array_namespace as array_namespace
from array_api_compat import device as device
from array_api_compat import is_cupy_array, is_numpy_array, is_torch_array

Array: TypeAlias = Any  # an array of any library that follows the standard

# A block of rows should stay in a core's cache on a CPU and fill a GPU. Both sizes were measured.
CPU_BLOCK_BYTES = 2 * 2**20
GPU_BLOCK_BYTES = 256 * 2**20
CPU_PASS_BYTES = 256 * 2**10  # of a block, for operations that pass over it one after another
MIN_BLOCK_ROWS = 128  # with fewer rows a product is bound by reading the other matrix


def from_numpy(values: Any, like: Array, dtype: Any = None) -> Array:
    """Bring a host value beside `like`: to its namespace, its device and, unless given, its dtype."""
    xp = array_namespace(like)
    return xp.asarray(values, dtype=like.dtype if dtype is None else dtype, device=device(like))


def converted(value: Any, converter: Callable[[Array], Array]) -> Any:
    """Apply a converter to all arrays in a record, in records within it, and in tuples of these."""
    if isinstance(value, tuple):
        return tuple(converted(v, converter) for v in value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = [field.name for field in dataclasses.fields(value)]
        return type(value)(**{name: converted(getattr(value, name), converter) for name in fields})
    if isinstance(value, numpy.ndarray) and value.dtype.kind in "OUS":
        return value  # labels and categories that are strings stay in NumPy
    return converter(value) if hasattr(value, "__dlpack__") else value


def ignore_overflow() -> Any:
    """Silence NumPy's warnings about infinities. The code inside must check its result."""
    return numpy.errstate(over="ignore", invalid="ignore", divide="ignore")


def on_accelerator(array: Array) -> bool:
    """Tell whether the array lives on a GPU or a similar device."""
    return is_cupy_array(array) or (is_torch_array(array) and array.device.type != "cpu")


def aligned(width: int) -> int:
    """Round up to a multiple of 16: products of odd widths and strides run at a fraction of the speed."""
    return -(-width // 16) * 16


def packed_width(like: Array, width: int) -> int:
    """Return how many columns a packed copy has. On a GPU zero columns are added for alignment."""
    return aligned(width) if on_accelerator(like) else width


def empty_rows(shape: tuple[int, ...], like: Array) -> Array:
    """Allocate an uninitialised (..., m, c) array whose rows start at multiples of 16 numbers."""
    xp = array_namespace(like)
    padded = (*shape[:-1], aligned(shape[-1]))
    return xp.empty(padded, dtype=like.dtype, device=device(like))[..., : shape[-1]]


def itemsize(like: Array) -> int:
    """Return the bytes of one number."""
    return int(array_namespace(like).finfo(like.dtype).bits) // 8


def sum_dtype(like: Array) -> Any:
    """Return the precision of sums over rows: float64 for NumPy's float32, whose error grows with the rows.

    At 75,000 rows scores by sums in float32 are off by 2e-4, and by 8e-6 if the sums of a few blocks each are
    summed in float64, in the same time.
    """
    return numpy.dtype(numpy.float64) if is_numpy_array(like) else like.dtype


def product(*factors: Array | None) -> Array | None:
    """Multiply the factors that are not None. None stands for ones, so the result is None if all are."""
    given = [f for f in factors if f is not None]
    return math.prod(given[1:], start=given[0]) if given else None


def weighted_mean(values: Array, weights: Array | None) -> Array:
    """Average (..., m) over its last axis in float64, so that equal accuracies of float32 stay equal."""
    xp = array_namespace(values)
    values = xp.astype(values, xp.float64)
    if weights is None:
        return xp.mean(values, axis=-1)
    weights = xp.astype(weights, xp.float64)
    return xp.sum(values * weights, axis=-1) / xp.sum(weights)


def row_blocks(like: Array, m: int, row_numbers: int, least: int = MIN_BLOCK_ROWS) -> Iterator[slice]:
    """Cut m rows into slices of a good size. `row_numbers` is how many numbers are held for each row."""
    row_bytes = max(1, row_numbers) * itemsize(like)
    step = block_bytes(on_accelerator(like), row_bytes, least) // row_bytes
    for start in range(0, m, step):
        yield slice(start, min(start + step, m))


def block_bytes(gpu: bool, row_bytes: int, least: int = MIN_BLOCK_ROWS) -> int:
    """Return the bytes of a full block, which has `least` rows or more."""
    budget = GPU_BLOCK_BYTES if gpu else CPU_BLOCK_BYTES
    return max(least, budget // row_bytes) * row_bytes


def free_bytes(like: Array) -> int:
    """Return the free memory, in bytes, of the array's GPU or of this machine."""
    if is_cupy_array(like):
        return int(like.device.mem_info[0])
    if is_torch_array(like) and like.device.type == "cuda":
        free, _ = array_namespace(like).cuda.mem_get_info(like.device)
        return int(free)
    return _free_bytes_of_machine()


def _free_bytes_of_machine() -> int:
    """Return what Linux calls available memory, within a container's limit; elsewhere half of all memory."""
    try:
        found = [1024 * int(re.findall(r"MemAvailable:\s+(\d+)", Path("/proc/meminfo").read_text())[0])]
    except (OSError, IndexError):
        return (
            os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2 if hasattr(os, "sysconf") else 2**32
        )
    with suppress(OSError, ValueError):  # there is no container, or its limit is "max"
        limit, used = (int(Path(f"/sys/fs/cgroup/memory.{name}").read_text()) for name in ("max", "current"))
        found.append(max(0, limit - used))
    return min(found)


def take_rows(D: Array, rows: Array | slice) -> Array:
    """Return the named rows of D (..., m, c): a view for a slice, a copy for indices."""
    if is_numpy_array(D) or isinstance(rows, slice):  # NumPy's own `take` would first copy all of a strided D
        return D[..., rows, :]
    return array_namespace(D).take(D, rows, axis=-2)


def take_entries(values: Array, rows: Array | slice) -> Array:
    """Return the named entries of values (..., m)."""
    if isinstance(rows, slice):
        return values[..., rows]
    return array_namespace(values).take(values, rows, axis=-1)


def take_columns(D: Array, columns: Array | slice) -> Array:
    """Copy the named columns of D (..., m, c) into a packed array, see `packed_width`."""
    if is_numpy_array(D):
        # mode="clip" skips a slow check of the bounds
        return D[..., columns].copy() if isinstance(columns, slice) else D.take(columns, -1, mode="clip")
    xp = array_namespace(D)
    A = D[..., columns] if isinstance(columns, slice) else xp.take(D, columns, axis=-1)
    if on_accelerator(D):
        return _with_zero_columns(A)
    return xp.asarray(A, copy=True) if isinstance(columns, slice) else A


def weighted_copy(D: Array, root: Array | None) -> Array:
    """Copy D (..., m, c), its rows times root (..., m), into a packed array, see `packed_width`."""
    if on_accelerator(D):
        return _with_zero_columns(D, root)
    if root is None:
        return array_namespace(D).asarray(D, copy=True)
    return D * root[..., None]


def _with_zero_columns(A: Array, root: Array | None = None) -> Array:
    xp = array_namespace(A)
    width = A.shape[-1]
    shape = A.shape[:-1] if root is None else numpy.broadcast_shapes(A.shape[:-1], root.shape)
    # empty, not zeros: only the few extra columns need to be cleared
    out = xp.empty((*shape, packed_width(A, width)), dtype=A.dtype, device=device(A))
    out[..., width:] = 0
    if root is None:
        out[..., :width] = A
    else:
        xp.multiply(A, root[..., None], out=out[..., :width])
    return out


def matmul_into(A: Array, B: Array, out: Array) -> None:
    """Write A B to `out`, without a temporary where the library can. A may end in extra zero columns."""
    if is_numpy_array(A):
        numpy.matmul(A, B, out=out)
        return
    xp = array_namespace(A)
    if A.shape[-1] > B.shape[-2]:  # extra zero columns of A meet zero rows of B: the product is the same
        shape = (*B.shape[:-2], A.shape[-1] - B.shape[-2], B.shape[-1])
        B = xp.concat([B, xp.zeros(shape, dtype=B.dtype, device=device(B))], axis=-2)
    if is_torch_array(A) and A.ndim == B.ndim == 2:  # torch refuses to write into strided stacks
        xp.matmul(A, B, out=out)
    else:
        out[...] = A @ B


def moments_of_block(Z: Array, counts: Array | None) -> tuple[Any, Array, Array]:
    """Return total weight, mean and weighted sum of squared deviations of the columns of Z (..., r, n)."""
    xp = array_namespace(Z)
    if counts is None and is_torch_array(Z):  # one pass over memory instead of four
        variance, mean = xp.var_mean(Z, dim=-2, correction=0)
        return Z.shape[-2], mean, variance * Z.shape[-2]
    if counts is None:
        counts = xp.ones((Z.shape[-2],), dtype=Z.dtype, device=device(Z))
    weight = xp.sum(counts)
    mean = (counts @ Z) / weight
    deviation = Z - mean[..., None, :]
    deviation *= deviation
    return weight, mean, counts @ deviation


def in_cache(Z: Array) -> Iterator[Array]:
    """Cut a block of rows into parts that stay in a core's own cache while several operations pass over them.

    Only NumPy needs it, which makes one pass for each operation: 64 rows of 512 numbers take half the time
    that they take in a block of 2 MB.
    """
    if not is_numpy_array(Z):
        yield Z
        return
    step = max(1, CPU_PASS_BYTES // max(1, Z.itemsize * math.prod(Z.shape[:-2]) * Z.shape[-1]))
    for start in range(0, Z.shape[-2], step):
        yield Z[..., start : start + step, :]


def scaled_and_shifted(Z: Array, scale: Array | None, shift: Array) -> Array:
    """Return scale Z + shift, column by column. torch overwrites Z, in one pass over memory."""
    shift = shift[..., None, :]
    if scale is None:
        Z += shift
        return Z
    scale = scale[..., None, :]
    if is_torch_array(Z):
        return array_namespace(Z).addcmul(shift, Z, scale, out=Z)
    Z = Z * scale  # a small array, which stays in cache: Z is in memory that is far away
    Z += shift
    return Z


def positive_part(Z: Array) -> Array:
    """Return max(Z, 0). Z may be overwritten."""
    if is_numpy_array(Z):
        return numpy.maximum(Z, 0, out=Z)
    if is_torch_array(Z):
        return Z.clamp_(min=0)
    return array_namespace(Z).clip(Z, 0.0, None)
