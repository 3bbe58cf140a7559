"""The seam between array libraries: what the array API standard lacks, written once for NumPy, torch, CuPy.

This file and `_seam/linalg.py` are the only ones that ask which library or which device an array belongs to.
"""

from __future__ import annotations

import dataclasses
import importlib
import math
import os
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import numpy
from array_api_compat import array_namespace as array_namespace
from array_api_compat import device as device
from array_api_compat import is_cupy_array, is_torch_array
from array_api_compat import is_numpy_array as is_numpy_array

Array: TypeAlias = Any  # an array of any library that follows the standard

# A block of rows should stay in a core's cache on a CPU and fill a GPU. Both sizes were measured.
CPU_BLOCK_BYTES = 2 * 2**20
GPU_BLOCK_BYTES = 2**30
GROUP_ROWS = 256  # measured: sums over fewer or more rows at a time take longer
COMPILED_SIZE = 2**24  # for fewer numbers a kernel takes longer to compile than it can save
MIN_BLOCK_ROWS = 128  # with fewer rows a product is bound by reading the other matrix


def like_on(where: Any, dtype: str) -> Array:
    """Return an empty array of a dtype: NumPy's for None, else torch's on a device such as "cuda"."""
    if where is None:
        return numpy.empty(0, dtype=dtype)
    torch = importlib.import_module("torch")
    return torch.empty(0, dtype=getattr(torch, dtype), device=where)


def from_numpy(values: Any, like: Array, dtype: Any = None) -> Array:
    """Bring a host value beside `like`: to its namespace, its device and, unless given, its dtype."""
    xp = array_namespace(like)
    dtype = like.dtype if dtype is None else dtype
    if _on_cuda(like) and not is_torch_array(values):  # from pinned memory, because then nobody waits
        # "cpu", because the user may have set another default
        host = xp.asarray(values, dtype=dtype, device="cpu")
        return host.pin_memory().to(like.device, non_blocking=True)
    return xp.asarray(values, dtype=dtype, device=device(like))


def converted(value: Any, converter: Callable[[Array], Array]) -> Any:
    """Apply a converter to all arrays in a record, in records within it, and in tuples of these."""
    if isinstance(value, tuple):
        return tuple(converted(v, converter) for v in value)
    if getattr(value, "stays_in_numpy", False):
        return value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = [field.name for field in dataclasses.fields(value)]
        return type(value)(**{name: converted(getattr(value, name), converter) for name in fields})
    if isinstance(value, numpy.ndarray) and value.dtype.kind in "OUS":
        return value  # labels and categories that are strings stay in NumPy
    return converter(value) if hasattr(value, "__dlpack__") else value


def ignore_overflow() -> Any:
    """Silence NumPy's warnings about infinities. The code inside must check its result."""
    return numpy.errstate(over="ignore", invalid="ignore", divide="ignore")


def _on_cuda(array: Array) -> bool:
    return is_torch_array(array) and array.device.type == "cuda"


def on_accelerator(array: Array) -> bool:
    """Tell whether the array lives on a GPU or a similar device."""
    return is_cupy_array(array) or (is_torch_array(array) and array.device.type != "cpu")


def aligned(width: int) -> int:
    """Round up to a multiple of 16: products of odd widths and strides run at a fraction of the speed."""
    return -(-width // 16) * 16


def packed_width(like: Array, width: int) -> int:
    """Return how many columns a packed copy has. On a GPU some are added for alignment, with any values."""
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


def power_of_two(largest: Array) -> Array:
    """Return the power of two next below numbers; for 0 the smallest one.

    It is an exact factor, and numbers over it have squares that neither overflow nor vanish.
    """
    xp = array_namespace(largest)
    some = largest > 0
    powers = 2.0 ** xp.floor(xp.log2(xp.where(some, largest, xp.ones_like(largest))))
    return xp.where(some, powers, xp.full_like(largest, float(xp.finfo(largest.dtype).smallest_normal)))


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
    if _on_cuda(like):
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
    if hasattr(D, "take_rows"):  # the rows are elsewhere
        return D.take_rows(rows)
    if is_numpy_array(D) or isinstance(rows, slice):  # NumPy's own `take` would first copy all of a strided D
        return D[..., rows, :]
    return array_namespace(D).take(D, rows, axis=-2)


def take_entries(values: Array, rows: Array | slice) -> Array:
    """Return the named entries of values (..., m)."""
    if isinstance(rows, slice):
        return values[..., rows]
    return array_namespace(values).take(values, rows, axis=-1)


def take_columns(D: Array, columns: Array | slice) -> Array:
    """Copy the named columns of D (..., m, c) into a packed array. See `packed_width` for extra columns."""
    if is_numpy_array(D):
        # mode="clip" skips a slow check of the bounds
        return D[..., columns].copy() if isinstance(columns, slice) else D.take(columns, -1, mode="clip")
    xp = array_namespace(D)
    if isinstance(columns, slice):
        A = D[..., columns]
        return side_by_side_copy([A]) if on_accelerator(D) else xp.asarray(A, copy=True)
    if on_accelerator(D):  # columns that come twice cost less than a second copy; see `matmul_into`
        extra = packed_width(D, columns.shape[0]) - columns.shape[0]
        columns = xp.concat([columns, xp.broadcast_to(columns[:1], (extra,))])
    return xp.take(D, columns, axis=-1)


def weighted_copy(D: Array, root: Array | None) -> Array:
    """Copy D (..., m, c), its rows times root (..., m), into a packed array."""
    if root is None:
        return array_namespace(D).asarray(D, copy=True)
    return D * root[..., None]


def side_by_side_copy(parts: list[Array], root: Array | None = None) -> Array:
    """Copy matrices (..., m, c) side by side, rows times root (..., m), with zero columns for alignment."""
    xp, like, width = array_namespace(parts[0]), parts[0], sum(part.shape[-1] for part in parts)
    shapes = [part.shape[:-1] for part in parts] + ([] if root is None else [root.shape])
    # empty, not zeros: only the few extra columns need to be cleared
    shape = (*numpy.broadcast_shapes(*shapes), aligned(width))
    out = xp.empty(shape, dtype=like.dtype, device=device(like))
    out[..., width:] = 0
    start = 0
    for part in parts:
        place = out[..., start : start + part.shape[-1]]
        if root is None:
            place[...] = part
        else:
            xp.multiply(part, root[..., None], out=place)
        start += part.shape[-1]
    return out


def matmul_into(A: Array, B: Array, out: Array) -> None:
    """Write A B to `out`, without a temporary where the library can. A may end in extra columns."""
    if is_numpy_array(A):
        numpy.matmul(A, B, out=out)
        return
    xp = array_namespace(A)
    if A.shape[-1] > B.shape[-2]:  # extra columns of A meet zero rows of B: the product is the same
        shape = (*B.shape[:-2], A.shape[-1] - B.shape[-2], B.shape[-1])
        B = xp.concat([B, xp.zeros(shape, dtype=B.dtype, device=device(B))], axis=-2)
    if is_torch_array(A) and A.ndim == B.ndim == 2:  # torch refuses to write into strided stacks
        xp.matmul(A, B, out=out)
    else:
        out[...] = A @ B


def moments_of_blocks(Z: Array, counts: Array | None) -> list[tuple[Any, Array, Array]]:
    """Return weight, mean and weighted sum of squared deviations of the columns of Z (..., r, n).

    They are those of all rows, or of two sets of rows, if the library is faster then.
    """
    xp, rows = array_namespace(Z), Z.shape[-2]
    if counts is None and is_torch_array(Z):  # one pass over memory instead of four
        return _moments_by_groups(Z)
    if counts is None:
        counts = xp.ones((rows,), dtype=Z.dtype, device=device(Z))
    weight = xp.sum(counts)
    mean = (counts @ Z) / weight
    deviation = Z - mean[..., None, :]
    deviation *= deviation
    return [(weight, mean, counts @ deviation)]


def _moments_by_groups(Z: Array) -> list[tuple[int, Array, Array]]:
    """Return what `moments_of_blocks` does, from groups of rows: torch keeps a GPU busy with many of them."""
    xp, rows = array_namespace(Z), Z.shape[-2]
    if rows <= GROUP_ROWS:
        variance, mean = xp.var_mean(Z, dim=-2, correction=0)
        return [(rows, mean, variance * rows)]
    full = rows - rows % GROUP_ROWS
    variances, means = xp.var_mean(Z[..., :full, :].unflatten(-2, (-1, GROUP_ROWS)), dim=-2, correction=0)
    between, mean = xp.var_mean(means, dim=-2, correction=0)
    groups = (full, mean, (xp.mean(variances, dim=-2) + between) * full)
    return [groups] if full == rows else [groups, *_moments_by_groups(Z[..., full:, :])]


def scale_and_shift(Z: Array, scale: Array, shift: Array) -> None:
    """Replace Z by scale Z + shift, column by column, in one pass over memory where the library can."""
    scale, shift = scale[..., None, :], shift[..., None, :]
    if is_torch_array(Z):
        array_namespace(Z).addcmul(shift, Z, scale, out=Z)
    else:
        Z *= scale
        Z += shift


def positive_part(Z: Array) -> Array:
    """Return max(Z, 0). Z may be overwritten."""
    if is_numpy_array(Z):
        return numpy.maximum(Z, 0, out=Z)
    if is_torch_array(Z):
        return Z.clamp_(min=0)
    return array_namespace(Z).clip(Z, 0.0, None)


def rectified(Z: Array, scale: Array, shift: Array) -> bool:
    """Replace Z by max(scale Z + shift, 0) in one pass over memory; tell whether that could be done."""
    if not (_on_cuda(Z) and Z.ndim == 2 and Z.stride(1) == 1 and Z.numel() >= COMPILED_SIZE):
        return False
    if not scale.dtype == shift.dtype == Z.dtype:  # the kernel reads all three as the same type
        return False
    xp = array_namespace(Z)
    kernel = _rectifier(xp, Z.device, Z.dtype)
    if kernel is None:
        return False
    with xp.cuda.device(Z.device):
        args = [Z, scale.contiguous(), shift.contiguous(), Z.stride(0), Z.shape[1]]
        kernel(grid=(Z.shape[0], 1, 1), block=(256, 1, 1), args=args)
    return True


@cache
def _rectifier(xp: Any, where: Any, dtype: Any) -> Any:
    """Compile the kernel of `rectified`, because torch has none. Return None if this torch cannot compile."""
    source = _RECTIFY.replace("REAL", "float" if dtype == xp.float32 else "double")
    with suppress(AttributeError, OSError, RuntimeError), xp.cuda.device(where):
        return xp.cuda._compile_kernel(source, "rectify")
    return None


# One block of threads for each row. A NaN stays one, as the check for overflows expects.
_RECTIFY = """
extern "C" __global__ void rectify(
    REAL* __restrict__ Z, const REAL* __restrict__ scale, const REAL* __restrict__ shift, int stride, int n)
{
    REAL* row = Z + (long long)blockIdx.x * stride;
    #pragma unroll 4
    for (int j = threadIdx.x; j < n; j += blockDim.x) {
        REAL z = scale[j] * row[j] + shift[j];
        row[j] = z < 0 ? 0 : z;
    }
}
"""
