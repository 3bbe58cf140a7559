"""BLS: its coder against scikit-learn's Lasso, its windows against random projections, its steps by hand."""

import numpy as np
import pytest
from helpers import to_host
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.linear_model import Lasso, Ridge
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from edrvfl.bench.baselines.bls import BLSClassifier, lasso_admm

# ---- the sparse coder


@pytest.mark.parametrize("lam", [0.001, 5.0, 30.0])
def test_admm_reaches_the_lasso_optimum(xp, rng, lam):
    """|A B - H|^2 / 2 + lam |B|_1 is m times scikit-learn's objective at alpha = lam / m."""
    A = rng.standard_normal((80, 12))
    B = np.where(rng.random((12, 5)) < 0.4, rng.standard_normal((12, 5)), 0)
    H = A @ B + rng.standard_normal((80, 5))
    G, R = xp.asarray(A.T @ A), xp.asarray(A.T @ H)

    def objective(B):
        return ((A @ B - H) ** 2).sum() / 2 + lam * np.abs(B).sum()

    best = Lasso(alpha=lam / 80, fit_intercept=False, tol=1e-12, max_iter=100_000).fit(A, H).coef_.T
    B = to_host(lasso_admm(G, R, lam, 1500))
    assert objective(B) <= objective(best) * (1 + 1e-10)
    np.testing.assert_allclose(B, best, atol=1e-6)
    np.testing.assert_array_equal(B == 0, np.abs(best) < 1e-9)


def test_fifty_steps_are_enough_at_the_released_penalty(rng):
    A = rng.uniform(-1, 1, (200, 10))
    H = rng.standard_normal((200, 8))
    best = Lasso(alpha=1e-3 / 200, fit_intercept=False, tol=1e-12, max_iter=100_000).fit(A, H).coef_.T
    np.testing.assert_allclose(lasso_admm(A.T @ A, A.T @ H, 1e-3, 50), best, atol=1e-3)


def test_a_stack_of_windows_is_each_window_alone(xp, rng):
    A, H = rng.standard_normal((3, 40, 7)), rng.standard_normal((40, 4))
    G, R = A.swapaxes(1, 2) @ A, A.swapaxes(1, 2) @ H
    stack = to_host(lasso_admm(xp.asarray(G), xp.asarray(R), 0.5, 50))
    for i in range(3):
        np.testing.assert_allclose(stack[i], lasso_admm(G[i], R[i], 0.5, 50), atol=1e-12)


# ---- the method


def lost(H, T):
    """Share of H's squares that the best linear map from T leaves."""
    left = H - T @ np.linalg.lstsq(T, H, rcond=None)[0]
    return (left**2).sum() / (H**2).sum()


@pytest.mark.parametrize("load", [load_iris, load_wine, load_breast_cancer])
def test_a_window_keeps_more_than_a_random_basis_of_its_size(load):
    """H = [X, 0.1] from a window's n feature nodes H B', and from n random projections H U: less is lost.

    n is half the columns, so something must be lost; ten windows. Both maps back are the best linear ones.
    The reason: where the penalty is small, H B' = H H'A (A'A)^-1, a power step towards the principal
    directions.
    """
    X, y = load(return_X_y=True)
    n = (X.shape[1] + 1) // 2
    model = BLSClassifier(n_windows=10, n_window_nodes=n, n_enhancement=5, random_state=0).fit(X, y)
    H = np.hstack([StandardScaler().fit_transform(X), np.full((len(X), 1), 0.1)])
    rng = np.random.default_rng(0)
    windows = [lost(H, H @ B) for B in np.split(model.feature_weights_, 10, axis=1)]
    projections = [lost(H, H @ rng.uniform(-1, 1, (H.shape[1], n))) for _ in range(10)]
    assert np.mean(windows) < 0.75 * np.mean(projections)
    assert sum(a < b for a, b in zip(sorted(windows), sorted(projections), strict=True)) == 10


def test_the_fitted_model_by_hand():
    """Every step once more, from the fitted weights alone and scikit-learn's Ridge."""
    X, y = load_wine(return_X_y=True)
    settings = {"n_windows": 4, "n_window_nodes": 5, "n_enhancement": 30, "regularization": 0.1}
    model = BLSClassifier(**settings, random_state=0).fit(X, y)
    ones = np.ones((len(X), 1))
    H = np.hstack([StandardScaler().fit_transform(X), 0.1 * ones])
    T = MinMaxScaler().fit_transform(H @ model.feature_weights_)
    Z = np.hstack([T, 0.1 * ones]) @ model.enhancement_weights_
    assert (T.shape[1], Z.shape[1]) == (20, 30)
    assert np.abs(Z).max() == pytest.approx(0.8)
    F, Y = np.hstack([T, np.tanh(Z)]), np.where(y[:, None] == np.arange(3), 1.0, -1.0)
    beta = Ridge(alpha=0.1, fit_intercept=False).fit(F, Y).coef_.T
    np.testing.assert_allclose(model.output_weights_, beta, atol=1e-8)
    np.testing.assert_allclose(model.decision_function(X), F @ beta, atol=1e-8)


def test_windows_are_different_and_more_of_them_extend_the_few():
    X, y = load_wine(return_X_y=True)
    few, many = (BLSClassifier(n_windows=n, random_state=0).fit(X, y).feature_weights_ for n in (2, 3))
    np.testing.assert_allclose(few, many[:, :20], atol=1e-12)
    assert np.abs(few[:, :10] - few[:, 10:]).max() > 0.01
