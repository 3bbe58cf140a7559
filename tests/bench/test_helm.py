"""H-ELM: its coder against scikit-learn's Lasso, its autoencoders against random projections, its steps."""

import numpy as np
import pytest
from helpers import to_host
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.linear_model import Lasso, Ridge
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from edrvfl.bench.baselines.helm import HELMClassifier, lasso_fista
from edrvfl.bench.baselines.randomised import random_projection, with_constant

# ---- the sparse coder


@pytest.mark.parametrize("lam", [0.001, 5.0, 60.0])
def test_fista_reaches_the_lasso_optimum(xp, rng, lam):
    """|A B - H|^2 + lam |B|_1 is 2 m times scikit-learn's objective at alpha = lam / (2 m)."""
    A = rng.standard_normal((80, 12))
    B = np.where(rng.random((12, 5)) < 0.4, rng.standard_normal((12, 5)), 0)
    H = A @ B + rng.standard_normal((80, 5))
    G, R = xp.asarray(A.T @ A), xp.asarray(A.T @ H)

    def objective(B):
        return ((A @ B - H) ** 2).sum() + lam * np.abs(B).sum()

    best = Lasso(alpha=lam / 160, fit_intercept=False, tol=1e-12, max_iter=100_000).fit(A, H).coef_.T
    B = to_host(lasso_fista(G, R, lam, 600))
    assert objective(B) <= objective(best) * (1 + 1e-10)
    np.testing.assert_allclose(B, best, atol=1e-6)
    np.testing.assert_array_equal(B == 0, np.abs(best) < 1e-9)
    fifty = objective(to_host(lasso_fista(G, R, lam, 50)))
    assert objective(best) * (1 - 1e-12) <= fifty <= objective(best) * 1.001


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


# ---- the method


def lost(H, T):
    """Share of H's squares that the best linear map from T leaves."""
    left = H - T @ np.linalg.lstsq(T, H, rcond=None)[0]
    return (left**2).sum() / (H**2).sum()


@pytest.mark.parametrize("load", [load_iris, load_wine, load_breast_cancer])
def test_an_autoencoder_keeps_more_than_a_random_basis_of_its_size(load):
    """H = [X, 0.1] from its n codes H B', and from n random projections H U: less is lost from the codes.

    n is half the columns, so something must be lost; the mean over ten draws. Both maps back are the best
    linear ones. The reason: where the penalty is small, H B' = H H'A (A'A)^-1, a power step towards the
    principal directions.
    """
    H = with_constant(StandardScaler().fit_transform(load(return_X_y=True)[0]))
    n = H.shape[1] // 2
    codes, projections = [], []
    for seed in range(10):
        A = random_projection(H, n, "feature", np.random.default_rng(seed))
        codes.append(lost(H, H @ lasso_fista(A.T @ A, A.T @ H, 1e-3, 50).T))
        projections.append(lost(H, H @ np.random.default_rng(seed).uniform(-1, 1, (H.shape[1], n))))
    assert np.mean(codes) < 0.75 * np.mean(projections)
    assert sum(a < b for a, b in zip(codes, projections, strict=True)) >= 9


def test_the_fitted_model_by_hand():
    """Every step once more, from the fitted weights alone and scikit-learn's Ridge."""
    X, y = load_wine(return_X_y=True)
    model = HELMClassifier(n_encoder=9, n_hidden=30, regularization=0.1, random_state=0).fit(X, y)
    T = StandardScaler().fit_transform(X)
    ones = np.ones((len(X), 1))
    for W in model.encoder_weights_:
        T = MinMaxScaler().fit_transform(np.hstack([T, 0.1 * ones]) @ W)
        np.testing.assert_allclose([T.min(), T.max()], [0, 1], atol=1e-12)
    Z = np.hstack([T, 0.1 * ones]) @ model.hidden_weights_
    assert np.abs(Z).max() == pytest.approx(0.8)
    F, Y = np.tanh(Z), np.where(y[:, None] == np.arange(3), 1.0, -1.0)
    beta = Ridge(alpha=0.1, fit_intercept=False).fit(F, Y).coef_.T
    np.testing.assert_allclose(model.output_weights_, beta, atol=1e-8)
    np.testing.assert_allclose(model.decision_function(X), F @ beta, atol=1e-8)
