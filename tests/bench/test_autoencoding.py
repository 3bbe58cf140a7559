"""BLS and H-ELM: coders against scikit-learn's Lasso, codes against random projections, steps by hand."""

import numpy as np
import pytest
from helpers import to_host
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.linear_model import Lasso, Ridge
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from edrvfl.bench.baselines.autoencoding import (
    BLSClassifier,
    HELMClassifier,
    lasso_admm,
    lasso_fista,
    random_projection,
    with_constant,
)

# ---- the sparse coders

# The coder, by how much its |A B - H|^2 is divided, and its steps to the optimum.
CODERS = {"BLS": (lasso_admm, 2, 1500), "H-ELM": (lasso_fista, 1, 600)}


def best_codes(A, H, lam, half):
    """Return the minimum of |A B - H|^2 / half + lam |B|_1 by scikit-learn, which divides by 2 m."""
    alpha = lam * half / (2 * len(A))
    return Lasso(alpha=alpha, fit_intercept=False, tol=1e-12, max_iter=100_000).fit(A, H).coef_.T


@pytest.mark.parametrize("lam", [0.001, 5.0, 30.0, 60.0])
@pytest.mark.parametrize("method", CODERS)
def test_a_coder_reaches_the_lasso_optimum(xp, rng, method, lam):
    coder, half, steps = CODERS[method]
    A = rng.standard_normal((80, 12))
    B = np.where(rng.random((12, 5)) < 0.4, rng.standard_normal((12, 5)), 0)
    H = A @ B + rng.standard_normal((80, 5))
    G, R = xp.asarray(A.T @ A), xp.asarray(A.T @ H)

    def objective(B):
        return ((A @ B - H) ** 2).sum() / half + lam * np.abs(B).sum()

    best = best_codes(A, H, lam, half)
    B = to_host(coder(G, R, lam, steps))
    assert objective(B) <= objective(best) * (1 + 1e-10)
    np.testing.assert_allclose(B, best, atol=1e-6)
    np.testing.assert_array_equal(B == 0, np.abs(best) < 1e-9)
    if method == "H-ELM":
        fifty = objective(to_host(coder(G, R, lam, 50)))
        assert objective(best) * (1 - 1e-12) <= fifty <= objective(best) * 1.001


def test_fifty_steps_of_admm_are_enough_at_the_released_penalty(rng):
    A = rng.uniform(-1, 1, (200, 10))
    H = rng.standard_normal((200, 8))
    found = lasso_admm(A.T @ A, A.T @ H, 1e-3, 50)
    np.testing.assert_allclose(found, best_codes(A, H, 1e-3, 2), atol=1e-3)


def test_a_stack_of_windows_is_each_window_alone(xp, rng):
    A, H = rng.standard_normal((3, 40, 7)), rng.standard_normal((40, 4))
    G, R = A.swapaxes(1, 2) @ A, A.swapaxes(1, 2) @ H
    stack = to_host(lasso_admm(xp.asarray(G), xp.asarray(R), 0.5, 50))
    for i in range(3):
        np.testing.assert_allclose(stack[i], lasso_admm(G[i], R[i], 0.5, 50), atol=1e-12)


def test_fista_is_faster_than_plain_steps(rng):
    """Momentum with the wrong sign would be slower: 50 steps beat 200 steps of plain proximal gradient."""
    A = rng.standard_normal((80, 30)) * np.geomspace(1, 0.03, 30)
    H = A @ rng.standard_normal((30, 2))
    G, R, lam = A.T @ A, A.T @ H, 1e-3
    step, B = 1 / (2 * np.linalg.eigvalsh(G)[-1]), np.zeros((30, 2))
    for _ in range(200):
        C = B - step * 2 * (G @ B - R)
        B = np.sign(C) * np.maximum(np.abs(C) - step * lam, 0)

    def objective(B):
        return ((A @ B - H) ** 2).sum() + lam * np.abs(B).sum()

    assert objective(lasso_fista(G, R, lam, 50)) < objective(B)


# ---- the methods


def lost(H, T):
    """Share of H's squares that the best linear map from T leaves."""
    left = H - T @ np.linalg.lstsq(T, H, rcond=None)[0]
    return (left**2).sum() / (H**2).sum()


@pytest.mark.parametrize("load", [load_iris, load_wine, load_breast_cancer])
def test_codes_keep_more_than_a_random_basis_of_their_size(load):
    """H = [X, 0.1] from n codes H B', and from n random projections H U: less is lost from the codes.

    n is half the columns, so something must be lost; ten windows of BLS, ten draws of H-ELM. Both maps back
    are the best linear ones. The reason: where the penalty is small, H B' = H H'A (A'A)^-1, a power step
    towards the principal directions.
    """
    X, y = load(return_X_y=True)
    H = with_constant(StandardScaler().fit_transform(X))
    n = H.shape[1] // 2
    model = BLSClassifier(n_windows=10, n_window_nodes=n, n_enhancement=5, random_state=0).fit(X, y)
    windows = [lost(H, H @ B) for B in np.split(model.feature_weights_, 10, axis=1)]
    codes, projections = [], []
    for seed in range(10):
        A = random_projection(H, n, "feature", np.random.default_rng(seed))
        codes.append(lost(H, H @ lasso_fista(A.T @ A, A.T @ H, 1e-3, 50).T))
        projections.append(lost(H, H @ np.random.default_rng(seed).uniform(-1, 1, (H.shape[1], n))))
    assert max(np.mean(windows), np.mean(codes)) < 0.75 * np.mean(projections)
    assert sum(a < b for a, b in zip(sorted(windows), sorted(projections), strict=True)) == 10
    assert sum(a < b for a, b in zip(codes, projections, strict=True)) >= 9


def scaled_codes(T, W):
    return MinMaxScaler().fit_transform(with_constant(T) @ W)


def features_of_bls(model, X):
    T = scaled_codes(StandardScaler().fit_transform(X), model.feature_weights_)
    Z = with_constant(T) @ model.enhancement_weights_
    assert (T.shape[1], Z.shape[1]) == (20, 30)
    return Z, np.hstack([T, np.tanh(Z)])


def features_of_helm(model, X):
    T = StandardScaler().fit_transform(X)
    for W in model.encoder_weights_:
        T = scaled_codes(T, W)
        np.testing.assert_allclose([T.min(), T.max()], [0, 1], atol=1e-12)
    Z = with_constant(T) @ model.hidden_weights_
    return Z, np.tanh(Z)


BY_HAND = {
    "BLS": (BLSClassifier(n_windows=4, n_window_nodes=5, n_enhancement=30), features_of_bls),
    "H-ELM": (HELMClassifier(n_encoder=9, n_hidden=30), features_of_helm),
}


@pytest.mark.parametrize("method", BY_HAND)
def test_the_fitted_model_by_hand(method):
    """Every step once more, from the fitted weights alone and scikit-learn's Ridge."""
    X, y = load_wine(return_X_y=True)
    model, features = BY_HAND[method]
    model.set_params(regularization=0.1, random_state=0).fit(X, y)
    Z, F = features(model, X)
    assert np.abs(Z).max() == pytest.approx(0.8)
    Y = np.where(y[:, None] == np.arange(3), 1.0, -1.0)
    beta = Ridge(alpha=0.1, fit_intercept=False).fit(F, Y).coef_.T
    np.testing.assert_allclose(model.output_weights_, beta, atol=1e-8)
    np.testing.assert_allclose(model.decision_function(X), F @ beta, atol=1e-8)


def test_windows_are_different_and_more_of_them_extend_the_few():
    X, y = load_wine(return_X_y=True)
    few, many = (BLSClassifier(n_windows=n, random_state=0).fit(X, y).feature_weights_ for n in (2, 3))
    np.testing.assert_allclose(few, many[:, :20], atol=1e-12)
    assert np.abs(few[:, :10] - few[:, 10:]).max() > 0.01
