"""Gram matrices, Cholesky factors, eigenvalues, against NumPy's general functions."""

import numpy as np
import pytest
from helpers import to_host

from edrvfl._seam import linalg as _linalg


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("c", [7, 700])
def test_gram_adds_the_lower_triangle(xp, rng, dtype, c):
    S = rng.standard_normal((3, 20, c)).astype(dtype)
    G = xp.zeros((3, c, c), dtype=getattr(xp, dtype))
    for part in (S[:, :8], S[:, 8:]):
        _linalg.add_gram(G, xp.asarray(part))
    full = _linalg.symmetric(G)
    expected = S.astype(float).mT @ S.astype(float)
    np.testing.assert_allclose(to_host(full), expected, atol=1e-4 if dtype == "float32" else 1e-12)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("c", [7, 700])
@pytest.mark.parametrize("panel_rows", [1, 1000], ids=["narrow", "wide"])
def test_targets_beside_the_features_give_both_sums(xp, rng, limit, panel_rows, dtype, c):
    if xp.__name__.endswith("numpy"):
        pytest.skip("NumPy calls BLAS")
    S = rng.standard_normal((20, c + 16)).astype(dtype)  # c features, 3 targets, 13 columns for alignment
    G, R = (xp.zeros((c, k), dtype=getattr(xp, dtype)) for k in (c, 3))
    limit(PANEL_ROWS=panel_rows)
    _linalg._add_panels(G, R, xp.asarray(S))
    expected = S[:, :c].astype(float).T @ S.astype(float)
    close = 1e-4 if dtype == "float32" else 1e-12
    np.testing.assert_allclose(np.tril(to_host(G)), np.tril(expected[:, :c]), atol=close)
    np.testing.assert_allclose(to_host(R), expected[:, c : c + 3], atol=close)


def test_gram_of_a_strided_view(rng):
    padded = rng.standard_normal((30, 16))
    G = np.zeros((11, 11))
    _linalg.add_gram(G, padded[:, :11])
    np.testing.assert_allclose(_linalg.symmetric(G), padded[:, :11].T @ padded[:, :11], atol=1e-12)


def test_diagonal_takes_one_value_or_one_for_each_member(xp):
    G = xp.zeros((2, 3, 3), dtype=xp.float64)
    added = _linalg.add_to_diagonal(_linalg.add_to_diagonal(G, 1.0), np.array([1.0, 10.0]))
    np.testing.assert_array_equal(to_host(added), np.eye(3) * np.array([2.0, 11.0])[:, None, None])


def test_several_values_make_a_stack_and_leave_the_matrix_alone(xp):
    G = xp.zeros((3, 3), dtype=xp.float64)
    added = _linalg.add_to_diagonal(G, np.array([[1.0, 10.0]]))
    np.testing.assert_array_equal(to_host(added), np.eye(3) * np.array([[1.0, 10.0]])[..., None, None])
    assert not to_host(G).any()


def test_cholesky_refuses_only_the_singular_member(xp, rng):
    good = np.eye(4) + 0.1
    B = rng.standard_normal((3, 4, 2))
    factor = _linalg.factorise(xp.asarray(np.stack([good, np.ones((4, 4)), -np.eye(4)])))
    assert to_host(factor.regular).tolist() == [True, False, False]
    assert factor.singular_members == [(1,), (2,)]
    X = to_host(_linalg.solve(factor, xp.asarray(B)))
    np.testing.assert_allclose(good @ X[0], B[0], atol=1e-12)
    forms = to_host(_linalg.inverse_forms(factor, xp.asarray(B.mT)))
    np.testing.assert_allclose(forms[0], np.einsum("ij,ij->j", B[0], np.linalg.solve(good, B[0])), atol=1e-12)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_diagonal_of_the_inverse(xp, rng, dtype):
    S = rng.standard_normal((2, 9, 6))
    G = S.mT @ S + np.eye(6)
    factor = _linalg.factorise(xp.asarray(G.astype(dtype)))
    diagonal = _linalg.inverse_diagonal(factor)
    expected = np.diagonal(np.linalg.inv(G), axis1=1, axis2=2)
    np.testing.assert_allclose(to_host(diagonal), expected, rtol=1e-5 if dtype == "float32" else 1e-12)
    assert to_host(diagonal).dtype == dtype
    end = _linalg.inverse_diagonal(factor, 2)
    np.testing.assert_allclose(to_host(end), to_host(diagonal)[:, -2:], rtol=1e-5)


@pytest.mark.parametrize("c", [150, 700])  # by panels, and by the inverse of the factor
def test_the_diagonal_of_the_inverse_of_larger_systems(rng, c):
    S = rng.standard_normal((2 * c, c))
    G = S.T @ S / c + np.eye(c)
    factor = _linalg.factorise(G.copy(), overwrite=True)
    expected = np.diagonal(np.linalg.inv(G))
    np.testing.assert_allclose(_linalg.inverse_diagonal(factor), expected, rtol=1e-10)
    np.testing.assert_allclose(_linalg.inverse_diagonal(factor, 20), expected[-20:], rtol=1e-10)


def test_one_system_alone(xp, rng):
    good, B = np.eye(4) + 0.1, rng.standard_normal((4, 2))
    factor = _linalg.factorise(xp.asarray(good))
    assert factor.singular_members == []
    np.testing.assert_allclose(to_host(_linalg.solve(factor, xp.asarray(B))), np.linalg.solve(good, B))
    assert _linalg.factorise(xp.ones((4, 4), dtype=xp.float64)).singular_members == [()]


def test_one_right_side_serves_a_stack(xp, rng):
    G = np.stack([np.eye(4) + 0.1, 2 * np.eye(4)])
    B, S = rng.standard_normal((4, 2)), rng.standard_normal((5, 4))
    factor = _linalg.factorise(xp.asarray(G))
    np.testing.assert_allclose(to_host(_linalg.solve(factor, xp.asarray(B))), np.linalg.solve(G, B))
    forms = to_host(_linalg.inverse_forms(factor, xp.asarray(S)))
    np.testing.assert_allclose(forms, np.einsum("ij,sjk,ik->si", S, np.linalg.inv(G), S))


def test_cholesky_verdict_does_not_depend_on_scaling(rng):
    A = rng.standard_normal((40, 5))
    scales = np.diag([1e-60, 1e-20, 1.0, 1e20, 1e60])
    A[:, 4] = A[:, 3] + 1e-3 * A[:, 4]
    assert bool(_linalg.factorise(scales @ A.T @ A @ scales).regular)
    A[:, 4] = A[:, 3] + A[:, 2]
    assert not bool(_linalg.factorise(scales @ A.T @ A @ scales).regular)


def test_eigenvalues_give_the_pseudo_inverse(xp, rng):
    A = rng.standard_normal((3, 6))
    G = A.T @ A
    inverse, V = (to_host(part) for part in _linalg.kept_eigenvalues(xp.asarray(G)))
    assert np.count_nonzero(inverse) == 3
    np.testing.assert_allclose(V @ np.diag(inverse) @ V.T, np.linalg.pinv(G), atol=1e-10)


def test_eigenvalues_of_zero_do_not_divide(xp):
    inverse, _ = _linalg.kept_eigenvalues(xp.zeros((3, 3), dtype=xp.float64))
    assert not to_host(inverse).any()
