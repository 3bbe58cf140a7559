"""A kernel ridge, against scikit-learn and brute force."""

import numpy as np
import pytest
from helpers import random_counts, random_regression, regression, to_host, with_twins
from scipy.spatial.distance import cdist
from sklearn.kernel_ridge import KernelRidge

from edrvfl._ridge.distances import Euclid
from edrvfl._ridge.kernel import kernel_ridge, landmark_features
from edrvfl._ridge.kernels import laplace


def kernel_of(X, Z, width):
    return np.exp(-cdist(X, Z) / width)


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


@pytest.mark.parametrize(("lam", "exactly"), [(0.3, False), (1e-5, True)])
def test_a_factor_in_float32_serves_where_the_penalty_is_large(xp, rng, lam, exactly):
    X, Y, _ = random_regression(rng, 150, 3)
    X, twins = with_twins(rng, X, 8)
    K = kernel_of(X, X, 1.0)
    found = kernel_ridge(xp.asarray(K.copy()), regression(X, Y, xp=xp), lam)
    inverse = np.linalg.inv(K + lam * np.eye(150))
    size = np.abs(inverse @ Y).max()
    np.testing.assert_allclose(to_host(found.alpha) / size, inverse @ Y / size, atol=1e-9)
    errors = to_host(found.loo) - (Y - inverse @ Y / np.diagonal(inverse)[:, None])
    assert (np.abs(errors).max() < 1e-9) == exactly
    assert np.abs(errors).max() < 1e-4
    of_twins = kernel_ridge(xp.asarray(K.copy()), regression(X, Y, twins=twins, xp=xp), lam)
    together = [np.flatnonzero(twins == first) for first in twins]  # the errors of rows left out together
    apart = [np.linalg.solve(inverse[np.ix_(rows, rows)], (inverse @ Y)[rows]) for rows in together]
    errors = np.stack(
        [error[rows == i][0] for i, (rows, error) in enumerate(zip(together, apart, strict=True))]
    )
    np.testing.assert_allclose(to_host(of_twins.loo), Y - errors, atol=1e-4)


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
    K = laplace(Euclid(xp.asarray(X)).own(), 1.0)
    found = kernel_ridge(K, regression(X, Y, xp=xp), 0.1)
    assert found.alpha.dtype == found.loo.dtype == xp.float32
    expected = KernelRidge(alpha=0.1, kernel="precomputed").fit(kernel_of(X, X, 1.0), Y).dual_coef_
    np.testing.assert_allclose(to_host(found.alpha), expected, rtol=5e-3, atol=5e-3)
