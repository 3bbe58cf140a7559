"""The backend seam."""

import numpy as np
import pytest
from conftest import to_host

from edrvfl import _arrays


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("c", [7, 700])
def test_gram_adds_the_lower_triangle(xp, rng, dtype, c):
    S = rng.standard_normal((3, 20, c)).astype(dtype)
    G = xp.zeros((3, c, c), dtype=getattr(xp, dtype))
    for part in (S[:, :8], S[:, 8:]):
        _arrays.add_gram(G, xp.asarray(part))
    full = _arrays.symmetric(G)
    expected = np.einsum("kmi,kmj->kij", S.astype(float), S.astype(float))
    np.testing.assert_allclose(to_host(full), expected, atol=1e-4 if dtype == "float32" else 1e-12)


def test_gram_of_a_strided_view(rng):
    padded = rng.standard_normal((30, 16))
    G = np.zeros((11, 11))
    _arrays.add_gram(G, padded[:, :11])
    np.testing.assert_allclose(_arrays.symmetric(G), padded[:, :11].T @ padded[:, :11], atol=1e-12)


def test_diagonal_takes_one_value_or_one_a_member(xp):
    G = xp.zeros((2, 3, 3), dtype=xp.float64)
    added = _arrays.add_to_diagonal(_arrays.add_to_diagonal(G, 1.0), np.array([1.0, 10.0]))
    np.testing.assert_array_equal(to_host(added), np.eye(3) * np.array([2.0, 11.0])[:, None, None])


def test_cholesky_refuses_only_the_singular_member(xp, rng):
    good = np.eye(4) + 0.1
    singular = np.ones((4, 4))
    indefinite = -np.eye(4)
    B = rng.standard_normal((3, 4, 2))
    factor = _arrays.cholesky(xp.asarray(np.stack([good, singular, indefinite])))
    assert to_host(factor.solved).tolist() == [True, False, False]
    X = to_host(_arrays.cholesky_solve(factor, xp.asarray(B)))
    np.testing.assert_allclose(good @ X[0], B[0], atol=1e-12)
    forms = to_host(_arrays.inverse_forms(factor, xp.asarray(B.mT)))
    np.testing.assert_allclose(forms[0], np.einsum("ij,ij->j", B[0], np.linalg.solve(good, B[0])), atol=1e-12)


def test_cholesky_verdict_does_not_depend_on_scaling(rng):
    A = rng.standard_normal((40, 5))
    scales = np.diag([1e-60, 1e-20, 1.0, 1e20, 1e60])
    A[:, 4] = A[:, 3] + 1e-3 * A[:, 4]
    assert bool(_arrays.cholesky(scales @ A.T @ A @ scales).solved)


def test_row_blocks_cover_all_rows_once():
    like = np.zeros(1)
    blocks = list(_arrays.row_blocks(like, 1000, 10**7))
    assert len(blocks) > 1
    assert [i for b in blocks for i in range(b.start, b.stop)] == list(range(1000))


def test_buffer_rows_are_aligned_and_packed_to_the_caller(xp):
    D = _arrays.empty_rows((2, 5, 19), like=xp.zeros((1,), dtype=xp.float64))
    assert D.shape == (2, 5, 19)


@pytest.mark.parametrize("columns", [slice(1, 3), [0, 2]])
def test_columns_come_as_a_copy(xp, columns):
    D = xp.asarray(np.arange(8.0).reshape(2, 4))
    index = columns if isinstance(columns, slice) else xp.asarray(columns)
    A = _arrays.take_columns(D, index)
    D[...] = -1.0
    np.testing.assert_array_equal(to_host(A), np.arange(8.0).reshape(2, 4)[:, columns])
