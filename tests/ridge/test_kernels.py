"""Kernels: distances, formulas and gradients, against SciPy, plain loops and finite differences."""

import numpy as np
import pytest
from helpers import to_host
from scipy.spatial.distance import cdist

from edrvfl._ridge.distances import Columns, Euclid
from edrvfl._ridge.kernels import KERNELS, width_of

ROOT3 = np.sqrt(3)


def by_hand(kernel, X, Z, width):
    """K(x, z), by its definition."""
    if kernel == "laplace":
        return np.exp(-cdist(X, Z) / width)
    if kernel == "matern":
        q = ROOT3 * cdist(X, Z) / width
        return (1 + q) * np.exp(-q)
    by_column = np.exp(-np.abs(X[:, None, :] - Z) / width)
    return by_column.prod(axis=2) if kernel == "product" else by_column.mean(axis=2) ** 2


def mixed_rows(rng, m, d=4):
    """Columns of numbers, and columns of two values as one-hot ones are."""
    return np.hstack(
        [rng.standard_normal((m, d)), rng.choice([0.0, 1.7], (m, 2)), rng.choice([-1.0, 2.0], (m, 1))]
    )


# --- distances -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_distances_are_euclidean(xp, rng, offset):
    X, Z = offset + rng.standard_normal((700, 9)), offset + rng.standard_normal((80, 9))
    np.testing.assert_allclose(to_host(Euclid(xp.asarray(Z))(xp.asarray(X))), cdist(X, Z), atol=1e-8)


@pytest.mark.parametrize("kernel", KERNELS)
def test_rows_are_as_alike_among_themselves_as_to_their_copies(xp, rng, kernel):
    X = mixed_rows(rng, 900)  # more than a block of the columns that are compared one by one
    measure, alike = KERNELS[kernel].measure(xp.asarray(X)), KERNELS[kernel].alike
    own, others = (to_host(alike(one, 1.3)) for one in (measure.own(), measure(xp.asarray(X.copy()))))
    np.testing.assert_allclose(own, others, atol=1e-6)


def test_a_row_is_at_no_distance_from_itself(xp, rng):
    X = xp.asarray(rng.standard_normal((300, 50)).astype(np.float32))
    assert (np.diag(to_host(Euclid(X).own())) == 0).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("d", [1, 7, 400])
def test_a_copy_is_at_no_distance_and_other_rows_are_at_theirs(xp, rng, dtype, d):
    Z = (rng.standard_normal((60, d)) * rng.choice([0.1, 1, 5], d)).astype(dtype)
    X = np.concatenate([Z[::-1], Z + 0.01 * rng.standard_normal((60, d)).astype(dtype)])
    found = to_host(Euclid(xp.asarray(Z))(xp.asarray(X)))
    assert (np.diag(found[59::-1]) == 0).all()
    # a distance that is lost below rounding is one to a near row
    lost = np.sqrt(16 * np.finfo(dtype).eps) * np.linalg.norm(X[60:] - Z.mean(axis=0), axis=1)
    assert (np.abs(found[60:] - cdist(X[60:], Z)) <= 1.01 * lost[:, None] + 1e-12).all()


def test_distances_of_absurd_rows_are_finite(xp):
    X = xp.asarray(np.array([[1e308, -1e308], [0.0, 1.0], [-1e308, -1e308]]))
    for D in (Euclid(X).own(), Euclid(X[1:2, :])(X)):
        assert np.isfinite(to_host(D)).all()
        assert to_host(D)[0].max() > 1e70


def test_columns_of_two_values_cost_one_product_and_are_compared_as_others(xp, rng):
    Z = mixed_rows(rng, 30)
    X = np.vstack([Z[::-1], mixed_rows(rng, 20)])
    strange = X.copy()
    strange[3, 5] = 0.4  # a value that no landmark has
    assert Columns(xp.asarray(Z)).two.tolist() == [False] * 4 + [True] * 3
    for rows in (X, strange):
        found = Columns(xp.asarray(Z)).sums(xp.asarray(rows), lambda apart: apart)
        np.testing.assert_allclose(to_host(found), cdist(rows, Z, "cityblock"), atol=1e-12)


# --- kernels ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", KERNELS)
def test_kernels_are_their_formulas(xp, rng, kernel):
    X, Z = mixed_rows(rng, 300), mixed_rows(rng, 40)
    measure = KERNELS[kernel].measure(xp.asarray(Z))
    found = KERNELS[kernel].alike(measure(xp.asarray(X)), 0.7)
    np.testing.assert_allclose(to_host(found), by_hand(kernel, X, Z, 0.7), rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_row_is_like_itself_and_others_are_less(xp, rng, kernel, dtype):
    X = xp.asarray(mixed_rows(rng, 60).astype(dtype))
    K = to_host(KERNELS[kernel].alike(KERNELS[kernel].measure(X).own(), 1.3))
    assert K.dtype == dtype
    np.testing.assert_allclose(np.diag(K), 1, atol=20 * np.finfo(dtype).eps)
    np.testing.assert_allclose(K, K.T, atol=20 * np.finfo(dtype).eps)
    assert np.linalg.eigvalsh(K.astype(float)).min() > -1e-4
    assert K[~np.eye(60, dtype=bool)].max() < 1


def test_a_bandwidth_means_the_same_over_few_columns_and_many():
    assert [width_of(kernel, 0.5, 16) for kernel in KERNELS] == [2.0, 2.0, 8.0, 0.5]


# --- gradients -------------------------------------------------------------------------------------------


def gradients_by_differences(kernel, X, alpha, width, step=1e-6):
    """Differentiate the scores of the rows X along each column, (rows, columns, classes)."""
    slopes = []
    for j in range(X.shape[1]):
        e = step * np.eye(X.shape[1])[j]
        change = by_hand(kernel, X + e, X, width) - by_hand(kernel, X - e, X, width)
        slopes.append(change @ alpha / (2 * step))
    return np.stack(slopes, axis=1)


def squared_gradients(kernel, *arrays):
    return KERNELS[kernel].squared_gradients(*arrays)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("weighted", [False, True])
def test_squared_gradients_by_finite_differences(xp, rng, kernel, weighted):
    X, alpha = mixed_rows(rng, 40, 3), rng.standard_normal((40, 2))
    counts = rng.uniform(0.5, 3, 40) if weighted else np.ones(40)
    # central differences see a kink as flat, as the kernel ridge does
    slopes = gradients_by_differences(kernel, X, alpha, 1.3)
    expected = np.average((slopes**2).sum(axis=2), axis=0, weights=counts)
    found = squared_gradients(kernel, *(xp.asarray(a) for a in (X, alpha, counts)), 1.3)
    np.testing.assert_allclose(to_host(found), expected, rtol=1e-5)


@pytest.mark.parametrize("kernel", KERNELS)
def test_squared_gradients_take_a_weight_as_repetition(xp, rng, kernel):
    X, alpha, counts = mixed_rows(rng, 30, 3), rng.standard_normal((30, 2)), rng.integers(1, 4, 30)
    rows = np.repeat(np.arange(30), counts)
    weighted = squared_gradients(kernel, *(xp.asarray(a) for a in (X, alpha, counts.astype(float))), 0.8)
    shared = (alpha / counts[:, None])[rows]  # the same scores
    repeated = squared_gradients(kernel, *(xp.asarray(a) for a in (X[rows], shared, np.ones(len(rows)))), 0.8)
    np.testing.assert_allclose(to_host(weighted), to_host(repeated), rtol=1e-8)


@pytest.mark.parametrize("kernel", KERNELS)
def test_squared_gradients_in_float32(xp, rng, kernel):
    X, alpha, counts = rng.standard_normal((50, 4)), rng.standard_normal((50, 2)), np.ones(50)
    X = X + 100  # an offset that no distance sees
    exact = squared_gradients(kernel, X, alpha, counts, 1.0)
    found = squared_gradients(kernel, *(xp.asarray(a.astype(np.float32)) for a in (X, alpha, counts)), 1.0)
    assert found.dtype == xp.float32
    np.testing.assert_allclose(to_host(found), exact, rtol=1e-2)
