"""The Laplace kernel and its ridge, against scikit-learn and brute force."""

import numpy as np
import pytest
from helpers import random_counts, random_regression, regression, to_host, with_twins
from scipy.spatial.distance import cdist
from sklearn.kernel_ridge import KernelRidge

from edrvfl._ridge.kernel import (
    Measure,
    distances,
    kernel_ridge,
    landmark_features,
    laplace,
    mean_squared_gradients,
)


def kernel_of(X, Z, width):
    return np.exp(-cdist(X, Z) / width)


@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_distances_are_euclidean(xp, rng, offset):
    X, Z = offset + rng.standard_normal((700, 9)), offset + rng.standard_normal((80, 9))
    np.testing.assert_allclose(to_host(Measure(xp.asarray(Z))(xp.asarray(X))), cdist(X, Z), atol=1e-8)


def test_a_row_is_at_no_distance_from_itself(xp, rng):
    X = xp.asarray(rng.standard_normal((300, 50)).astype(np.float32))
    assert (np.diag(to_host(distances(X))) == 0).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("d", [1, 7, 400])
def test_a_copy_is_at_no_distance_and_other_rows_are_at_theirs(xp, rng, dtype, d):
    Z = (rng.standard_normal((60, d)) * rng.choice([0.1, 1, 5], d)).astype(dtype)
    X = np.concatenate([Z[::-1], Z + 0.01 * rng.standard_normal((60, d)).astype(dtype)])
    found = to_host(Measure(xp.asarray(Z))(xp.asarray(X)))
    assert (np.diag(found[59::-1]) == 0).all()
    # a distance that is lost below rounding is one to a near row
    lost = np.sqrt(16 * np.finfo(dtype).eps) * np.linalg.norm(X[60:] - Z.mean(axis=0), axis=1)
    assert (np.abs(found[60:] - cdist(X[60:], Z)) <= 1.01 * lost[:, None] + 1e-12).all()


def test_distances_of_absurd_rows_are_finite(xp):
    X = xp.asarray(np.array([[1e308, -1e308], [0.0, 1.0], [-1e308, -1e308]]))
    for D in (distances(X), Measure(X[1:2, :])(X)):
        assert np.isfinite(to_host(D)).all()
        assert to_host(D)[0].max() > 1e70


def test_the_kernel_is_the_exponential(xp, rng):
    D = rng.random((500, 40))
    np.testing.assert_allclose(to_host(laplace(xp.asarray(D), 0.3)), np.exp(-D / 0.3), rtol=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
def test_coefficients_are_those_of_scikit_learn(xp, rng, weighted):
    X, Y, base = random_regression(rng, 60, 4)
    K = kernel_of(X, X, 1.5)
    base = base if weighted else None
    found = kernel_ridge(xp.asarray(K.copy()), regression(X, Y, base, xp=xp), 0.3)
    expected = KernelRidge(alpha=0.3, kernel="precomputed").fit(K, Y, base).dual_coef_
    assert found.regular
    np.testing.assert_allclose(to_host(found.alpha), expected, atol=1e-9)


def left_out_scores(K, Y, base, twins, lam):
    """Fit again without each row and its twins."""
    scores = []
    for i in range(len(K)):
        kept = twins != twins[i]
        model = KernelRidge(alpha=lam, kernel="precomputed").fit(K[np.ix_(kept, kept)], Y[kept], base[kept])
        scores.append(model.predict(K[[i]][:, kept])[0])
    return np.array(scores)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("way", ["dual", "landmarks"])
@pytest.mark.parametrize("n_twins", [1, 8])
def test_leave_one_out_is_a_fit_without_the_row_and_its_twins(xp, rng, weighted, way, n_twins):
    X, Y, costs = random_regression(rng, 40, 3)
    X, twins = with_twins(rng, X, n_twins)
    base = random_counts(rng, 40, weighted) * (costs if weighted else 1)
    K = kernel_of(X, X, 1.0)
    problem = regression(X, Y, base, twins=twins, xp=xp)
    if way == "dual":
        found = kernel_ridge(xp.asarray(K.copy()), problem, 0.1)
    else:
        found = landmark_features(xp.asarray(K.copy()), xp.asarray(K), problem).ridge(0.1)
    np.testing.assert_allclose(to_host(found.loo), left_out_scores(K, Y, base, twins, 0.1), atol=1e-8)


def test_all_rows_as_landmarks_give_the_exact_answer(xp, rng):
    X, Y, base = random_regression(rng, 50, 3)
    K = kernel_of(X, X, 1.0)
    problem = regression(X, Y, base, xp=xp)
    exact = kernel_ridge(xp.asarray(K.copy()), problem, 0.1)
    found = landmark_features(xp.asarray(K.copy()), xp.asarray(K), problem).ridge(0.1)
    np.testing.assert_allclose(to_host(found.alpha), to_host(exact.alpha), atol=1e-8)
    np.testing.assert_allclose(to_host(found.loo), to_host(exact.loo), atol=1e-8)


def test_few_landmarks_solve_their_own_least_squares(xp, rng):
    X, Y, base = random_regression(rng, 80, 3)
    K, Q = kernel_of(X, X[:9], 1.0), kernel_of(X[:9], X[:9], 1.0)
    found = landmark_features(xp.asarray(K.copy()), xp.asarray(Q), regression(X, Y, base, xp=xp)).ridge(0.2)
    expected = np.linalg.solve(K.T @ (base[:, None] * K) + 0.2 * Q, K.T @ (base[:, None] * Y))
    np.testing.assert_allclose(to_host(found.alpha), expected, atol=1e-9)


def test_a_landmark_twice_changes_no_score(xp, rng):
    X, Y, _ = random_regression(rng, 60, 3)
    some = np.arange(10)
    answers = []
    for Z in (X[some], X[np.append(some, 3)]):
        K, Q = kernel_of(X, Z, 1.0), kernel_of(Z, Z, 1.0)
        found = landmark_features(xp.asarray(K.copy()), xp.asarray(Q), regression(X, Y, xp=xp)).ridge(0.2)
        answers.append(K @ to_host(found.alpha))
    np.testing.assert_allclose(*answers, atol=1e-5)


@pytest.mark.parametrize("way", ["dual", "landmarks"])
def test_judged_rows_get_their_scores(xp, rng, way):
    X, Y, _ = random_regression(rng, 30, 3)
    K, some = kernel_of(X, X, 1.0), np.array([2, 5, 11])

    def scores(judged):
        problem = regression(X, Y, judged=judged, xp=xp)
        if way == "dual":
            return to_host(kernel_ridge(xp.asarray(K.copy()), problem, 0.1).loo)
        return to_host(landmark_features(xp.asarray(K.copy()), xp.asarray(K), problem).ridge(0.1).loo)

    np.testing.assert_allclose(scores(some), scores(None)[some], atol=1e-12)


def test_a_singular_system_is_told(xp, rng):
    X, Y, _ = random_regression(rng, 30, 3)
    twice = np.concatenate([X, X])
    K = xp.asarray(kernel_of(twice, twice, 1.0))
    assert not kernel_ridge(K, regression(twice, np.concatenate([Y, Y]), xp=xp), 1e-18).regular


def test_float32_stays(xp, rng):
    X, Y, _ = random_regression(rng, 40, 3)
    X, Y = X.astype(np.float32), Y.astype(np.float32)
    K = laplace(distances(xp.asarray(X)), 1.0)
    found = kernel_ridge(K, regression(X, Y, xp=xp), 0.1)
    assert found.alpha.dtype == found.loo.dtype == xp.float32
    expected = KernelRidge(alpha=0.1, kernel="precomputed").fit(kernel_of(X, X, 1.0), Y).dual_coef_
    np.testing.assert_allclose(to_host(found.alpha), expected, rtol=5e-3, atol=5e-3)


# --- gradients -------------------------------------------------------------------------------------------


def gradients_by_differences(X, Z, alpha, width, step=1e-6):
    """Differentiate the scores of the rows X along each column, (rows, columns, classes)."""
    slopes = []
    for j in range(X.shape[1]):
        e = step * np.eye(X.shape[1])[j]
        slopes.append((kernel_of(X + e, Z, width) - kernel_of(X - e, Z, width)) @ alpha / (2 * step))
    return np.stack(slopes, axis=1)


@pytest.mark.parametrize("weighted", [False, True])
def test_squared_gradients_by_finite_differences(xp, rng, weighted):
    X, alpha = rng.standard_normal((40, 3)), rng.standard_normal((40, 2))
    counts = rng.uniform(0.5, 3, 40) if weighted else np.ones(40)
    # central differences see a kink as flat, as the kernel ridge does
    slopes = gradients_by_differences(X, X, alpha, 1.3)
    expected = np.average((slopes**2).sum(axis=2), axis=0, weights=counts)
    found = mean_squared_gradients(*(xp.asarray(a) for a in (X, alpha, counts)), 1.3)
    np.testing.assert_allclose(to_host(found), expected, rtol=1e-6)


def test_squared_gradients_take_a_weight_as_repetition(xp, rng):
    X, alpha, counts = rng.standard_normal((30, 3)), rng.standard_normal((30, 2)), rng.integers(1, 4, 30)
    rows = np.repeat(np.arange(30), counts)
    weighted = mean_squared_gradients(*(xp.asarray(a) for a in (X, alpha, counts.astype(float))), 0.8)
    shared = (alpha / counts[:, None])[rows]  # the same scores
    repeated = mean_squared_gradients(*(xp.asarray(a) for a in (X[rows], shared, np.ones(len(rows)))), 0.8)
    np.testing.assert_allclose(to_host(weighted), to_host(repeated), rtol=1e-8)


def test_squared_gradients_in_float32(xp, rng):
    X, alpha, counts = rng.standard_normal((50, 4)), rng.standard_normal((50, 2)), np.ones(50)
    X = X + 100  # an offset that no distance sees
    exact = mean_squared_gradients(X, alpha, counts, 1.0)
    found = mean_squared_gradients(*(xp.asarray(a.astype(np.float32)) for a in (X, alpha, counts)), 1.0)
    assert found.dtype == xp.float32
    np.testing.assert_allclose(to_host(found), exact, rtol=1e-2)
