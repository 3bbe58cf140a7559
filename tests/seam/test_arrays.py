"""The seam between array libraries."""

import os
from pathlib import Path

import numpy as np
import pytest
from helpers import beside, to_host

from edrvfl._seam import arrays as _arrays


@pytest.mark.parametrize("least", [1, 128])
def test_row_blocks_cover_all_rows_once(least):
    blocks = list(_arrays.row_blocks(np.zeros(1), 1000, 10**7, least))
    assert [i for b in blocks for i in range(b.start, b.stop)] == list(range(1000))
    assert {b.stop - b.start for b in blocks[:-1]} == {least}  # a row is larger than the budget


def test_a_block_fills_the_budget_and_no_more():
    (first, *_) = _arrays.row_blocks(np.zeros(1, np.float32), 10**6, 100)
    assert first.stop == _arrays.CPU_BLOCK_BYTES // 400
    assert not list(_arrays.row_blocks(np.zeros(1), 0, 100))


def test_buffer_rows_are_aligned_and_packed_to_the_caller(xp):
    D = _arrays.empty_rows((2, 5, 19), like=xp.zeros((1,), dtype=xp.float64))
    assert D.shape == (2, 5, 19)
    if isinstance(D, np.ndarray):
        assert D.strides[-2:] == (32 * 8, 8)


@pytest.mark.parametrize("columns", [slice(1, 3), [0, 2]])
def test_columns_come_as_a_copy(xp, columns):
    D = xp.asarray(np.arange(8.0).reshape(2, 4))
    index = columns if isinstance(columns, slice) else xp.asarray(columns)
    A = _arrays.take_columns(D, index)
    D[...] = -1.0
    np.testing.assert_array_equal(to_host(A), np.arange(8.0).reshape(2, 4)[:, columns])


def test_rows_come_as_a_copy_also_of_a_strided_matrix(xp):
    D = xp.asarray(np.arange(20.0).reshape(4, 5))
    A = _arrays.take_rows(D[:, :3], xp.asarray([2, 0]))
    D[...] = -1.0
    np.testing.assert_array_equal(to_host(A), [[10, 11, 12], [0, 1, 2]])


@pytest.mark.parametrize("root", [None, [1.0, 3.0], [[1.0, 3.0], [2.0, 0.5]]], ids=["none", "one", "stack"])
def test_a_weighted_copy_does_not_touch_its_source(xp, root):
    D = xp.asarray(np.arange(6.0).reshape(2, 3))
    S = _arrays.weighted_copy(D, beside(xp, root))
    expected = np.arange(6.0).reshape(2, 3) * (1 if root is None else np.array(root)[..., None])
    S[...] = S + 0  # S can be written, and is not D
    D[...] = -1.0
    np.testing.assert_array_equal(to_host(S), expected)


def test_where_widths_are_aligned_copies_end_in_extra_columns():
    # torch's "meta" device counts as an accelerator and computes shapes alone, so this runs without a GPU
    torch = pytest.importorskip("torch")
    D = torch.empty((3, 40, 19), device="meta", dtype=torch.float64)
    assert _arrays.take_columns(D, slice(0, 5)).shape == (3, 40, 16)
    assert _arrays.take_columns(D, torch.empty(5, device="meta", dtype=torch.int64)).shape == (3, 40, 16)
    assert _arrays.side_by_side_copy([D]).shape == (3, 40, 32)
    assert _arrays.side_by_side_copy([D[0], D[0]], torch.ones((7, 40), device="meta")).shape == (7, 40, 48)
    assert next(_arrays.row_blocks(D, 10**9, 19)).stop == _arrays.GPU_BLOCK_BYTES // (19 * 8)


@pytest.mark.parametrize("root", [None, [1.0, 3.0], [[1.0, 3.0], [2.0, 0.5]]], ids=["none", "one", "stack"])
def test_copies_side_by_side_end_in_zero_columns(xp, root):
    if xp.__name__ == "array_api_strict":
        pytest.skip("it cannot write a product to a place")
    A, B = np.arange(6.0).reshape(2, 3), np.arange(4.0).reshape(2, 2) - 9
    S = to_host(_arrays.side_by_side_copy([xp.asarray(A), xp.asarray(B)], beside(xp, root)))
    factor = 1 if root is None else np.array(root)[..., None]
    np.testing.assert_array_equal(S[..., :5], np.concatenate([A, B], axis=-1) * factor)
    assert S.shape[-1] == 16
    assert not S[..., 5:].any()


@pytest.mark.parametrize("stack", [(), (2,)], ids=["alone", "stack"])
def test_a_product_goes_where_it_is_told(xp, rng, stack):
    A, B = rng.standard_normal((*stack, 5, 4)), rng.standard_normal((*stack, 4, 3))
    in_numpy = isinstance(xp.asarray(A), np.ndarray)
    for extra in (0,) if in_numpy else (0, 3):  # NumPy's copies never end in extra columns
        buffer = xp.zeros((*stack, 5, 8), dtype=xp.float64)
        padded = np.concatenate([A, np.ones((*stack, 5, extra))], axis=-1)
        _arrays.matmul_into(xp.asarray(padded), xp.asarray(B), buffer[..., :3])
        np.testing.assert_allclose(to_host(buffer)[..., :3], A @ B)
        assert not to_host(buffer)[..., 3:].any()


@pytest.mark.parametrize("rows", [9, 512, 700])
@pytest.mark.parametrize("weighted", [False, True])
def test_moments_of_a_block(xp, rng, weighted, rows):
    Z, counts = rng.standard_normal((2, rows, 3)) + 5, rng.uniform(0.5, 2, rows) if weighted else None
    weight, mean, scatter = _arrays.moments_of_block(xp.asarray(Z), beside(xp, counts))
    c = np.ones(rows) if counts is None else counts
    np.testing.assert_allclose(float(weight), c.sum())
    expected = np.average(Z, axis=-2, weights=c)
    np.testing.assert_allclose(to_host(mean), expected)
    np.testing.assert_allclose(to_host(scatter), c @ (Z - expected[:, None, :]) ** 2)


def test_the_product_of_nothing_is_nothing():
    assert _arrays.product(None, None) is None
    assert _arrays.product(None, 3.0) == 3.0
    assert _arrays.product(2.0, None, 3.0) == 6.0


def test_free_memory_is_some_of_this_machine():
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert 0 < _arrays.free_bytes(np.zeros(1)) <= total


@pytest.mark.parametrize(
    ("limit", "used", "free"),
    [("max", "0", 8000), ("100000000", "0", 8000), ("5000", "2000", 3000), ("5000", "6000", 0)],
)
def test_a_container_has_less_memory_than_its_machine(monkeypatch, limit, used, free):
    files = {
        "/proc/meminfo": f"MemTotal: 99 kB\nMemAvailable:    {8000 * 1024} kB\n",
        "/sys/fs/cgroup/memory.max": limit if limit == "max" else str(int(limit) * 2**20),
        "/sys/fs/cgroup/memory.current": str(int(used) * 2**20),
    }
    monkeypatch.setattr(Path, "read_text", lambda path: files[str(path)])
    assert _arrays.free_bytes(np.zeros(1)) == free * 2**20


@pytest.mark.parametrize("where", ["cpu", "cuda"])
def test_values_go_beside_an_array_whatever_the_default_device_is(where):
    torch = pytest.importorskip("torch")
    if where == "cuda" and not torch.cuda.is_available():
        pytest.skip("there is no GPU")
    like = torch.zeros(1, device=where)
    with torch.device("meta" if where == "cpu" else "cuda"):
        values = _arrays.from_numpy(np.arange(3.0), like)
    assert values.device.type == where
    np.testing.assert_array_equal(to_host(values), [0.0, 1.0, 2.0])


def test_the_kernel_is_for_numbers_of_one_type():
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("there is no GPU")
    Z = torch.ones((_arrays.COMPILED_SIZE // 64, 64), device="cuda")
    scale, shift = (torch.full((64,), value, dtype=torch.float64, device="cuda") for value in (2.0, -1.0))
    assert not _arrays.rectified(Z, scale, shift.float())
    assert not _arrays.rectified(Z, scale.float(), shift)
    assert float(Z.min()) == float(Z.max()) == 1.0
