"""H-ELM: its blocks against scikit-learn's Lasso and Ridge, its autoencoders against random projections."""

import json
import pickle
import re

import numpy as np
import pytest
import sklearn
from conftest import assert_passes_scikit_learns_checks, to_host
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.linear_model import Lasso, Ridge
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from edrvfl.bench.baselines.helm import (
    HELMClassifier,
    configurations,
    lasso_fista,
    random_layer,
    random_projection,
    ridge,
    scaled,
    with_constant,
)

LOADERS = [load_iris, load_wine, load_breast_cancer]


@pytest.mark.parametrize("params", [{}, {"scaling": "sample"}, {"n_hidden": 10}, {"regularization": 0.0}])
def test_scikit_learns_checks_pass(params):
    assert_passes_scikit_learns_checks(HELMClassifier(**{"n_encoder": 20, "n_hidden": 60, **params}))


# ---- the blocks


def lasso_problem(rng):
    A = rng.standard_normal((80, 12))
    return A, A @ np.where(rng.random((12, 5)) < 0.4, rng.standard_normal((12, 5)), 0) + rng.standard_normal(
        (80, 5)
    )


@pytest.mark.parametrize("lam", [0.001, 5.0, 60.0])
def test_fista_reaches_the_lasso_optimum(xp, rng, lam):
    """|A B - H|^2 + lam |B|_1 is 2 m times scikit-learn's objective at alpha = lam / (2 m)."""
    A, H = lasso_problem(rng)
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


@pytest.mark.parametrize("shape", [(60, 9), (9, 60)], ids=["tall", "wide"])
@pytest.mark.parametrize("C", [1e-12, 1e-3, 10.0])
def test_ridge_is_scikit_learns(xp, rng, shape, C):
    """Both solvers, both forms. At 1e-12 the two may differ by what the condition number allows."""
    D, Y = rng.standard_normal(shape), rng.standard_normal((shape[0], 3))
    expected = Ridge(alpha=C, fit_intercept=False, solver="svd").fit(D, Y).coef_.T
    np.testing.assert_allclose(
        to_host(ridge(xp.asarray(D), xp.asarray(Y), C)), expected, rtol=1e-9, atol=1e-9
    )


def test_ridge_of_a_singular_system_is_the_least_norm_solution(xp, rng):
    D = rng.standard_normal((50, 6)) @ rng.standard_normal((6, 15))
    Y = rng.standard_normal((50, 2))
    expected = np.linalg.pinv(D, rcond=1e-7) @ Y
    for C in (0.0, 2.0**-60):
        np.testing.assert_allclose(to_host(ridge(xp.asarray(D), xp.asarray(Y), C)), expected, atol=1e-8)


@pytest.mark.parametrize("n", [4, 11, 30], ids=["narrow", "square", "wide"])
def test_the_random_layer_is_orthonormal_times_one_factor(rng, n):
    H = rng.standard_normal((50, 11))
    W = random_layer(H, n, 0.7, np.random.default_rng(0))
    assert W.shape == (11, n)
    G = W.T @ W if n <= 11 else W @ W.T
    np.testing.assert_allclose(G, G[0, 0] * np.eye(len(G)), atol=1e-12)
    assert np.abs(H @ W).max() == pytest.approx(0.7)


def test_scaling_by_feature_and_by_sample(rng):
    A = rng.standard_normal((6, 4)) * [1, 10, 100, 1000]
    columns, rows = (scaled(StandardScaler(), A, scaling) for scaling in ("feature", "sample"))
    np.testing.assert_allclose([columns.mean(0), columns.std(0)], [[0] * 4, [1] * 4], atol=1e-12)
    np.testing.assert_allclose([rows.mean(1), rows.std(1)], [[0] * 6, [1] * 6], atol=1e-12)
    P = random_projection(A, 5, "sample", rng)
    np.testing.assert_allclose([P.min(1), P.max(1)], [[-1] * 6, [1] * 6])


# ---- the method


def lost(H, T):
    """Share of H's squares that the best linear map from T leaves."""
    left = H - T @ np.linalg.lstsq(T, H, rcond=None)[0]
    return (left**2).sum() / (H**2).sum()


@pytest.mark.parametrize("load", LOADERS)
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


def test_new_rows_are_scaled_with_the_training_rows_statistics():
    X, y = load_wine(return_X_y=True)
    for scaling in ("feature", "sample"):
        model = HELMClassifier(n_encoder=9, n_hidden=30, scaling=scaling, random_state=0).fit(X, y)
        np.testing.assert_allclose(model.decision_function(X[:5]), model.decision_function(X)[:5], atol=1e-8)


def test_the_two_scalings_differ():
    """Multiplying a row changes nothing when each row is scaled alone, and much when each column is."""
    X, y = load_wine(return_X_y=True)
    model = HELMClassifier(n_encoder=9, n_hidden=30, regularization=1e-3, random_state=0)
    by_feature, by_sample = (clone(model).set_params(scaling=s).fit(X, y) for s in ("feature", "sample"))
    np.testing.assert_allclose(by_sample.decision_function(3 * X), by_sample.decision_function(X), atol=1e-8)
    assert np.abs(by_feature.decision_function(3 * X) - by_feature.decision_function(X)).max() > 0.1


# ---- the contract


@pytest.mark.parametrize("load", LOADERS)
def test_accuracy_is_sensible(load):
    X, y = load(return_X_y=True)
    split = train_test_split(X, y, test_size=0.4, stratify=y, random_state=0)
    model = HELMClassifier(random_state=0).fit(split[0], split[2])
    assert model.score(split[1], split[3]) > 0.9


def test_scores_labels_and_probabilities_agree():
    X, y = load_wine(return_X_y=True)
    for labels in (np.array(["b", "c", "a"])[y], np.array(["yes", "no"])[(y > 0).astype(int)]):
        model = HELMClassifier(n_hidden=50, random_state=0).fit(X, labels)
        P, scores = model.predict_proba(X), model.decision_function(X)
        np.testing.assert_array_equal(model.predict(X), model.classes_[P.argmax(1)])
        np.testing.assert_allclose(P.sum(1), 1)
        if scores.ndim == 1:
            np.testing.assert_allclose(scores, np.log(P[:, 1] / P[:, 0]))
        else:
            np.testing.assert_array_equal(scores.argsort(1), P.argsort(1))


def test_same_seed_same_bits():
    X, y = load_wine(return_X_y=True)
    one, two, other = (HELMClassifier(n_hidden=50, random_state=s).fit(X, y) for s in (0, 0, 1))
    np.testing.assert_array_equal(one.decision_function(X), two.decision_function(X))
    again = pickle.loads(pickle.dumps(one))
    np.testing.assert_array_equal(one.decision_function(X), again.decision_function(X))
    assert np.abs(one.decision_function(X) - other.decision_function(X)).max() > 1e-3


@pytest.mark.parametrize("scaling", ["feature", "sample"])
def test_torch_gives_the_same_network(scaling):
    torch = pytest.importorskip("torch")
    X, y = load_wine(return_X_y=True)
    one = HELMClassifier(n_encoder=20, n_hidden=50, regularization=0.01, scaling=scaling, random_state=0).fit(
        X, y
    )
    with sklearn.config_context(array_api_dispatch=True):
        two = clone(one).fit(torch.asarray(X), torch.asarray(y))
        scores = two.decision_function(torch.asarray(X))
    assert isinstance(scores, torch.Tensor)
    np.testing.assert_allclose(scores.numpy(), one.decision_function(X), atol=1e-7)


@pytest.mark.parametrize(
    ("params", "phrase"),
    [
        ({"scaling": "column"}, "'scaling' parameter of HELMClassifier must be a str among"),
        ({"n_encoder": 0}, "'n_encoder' parameter of HELMClassifier must be an int in the range"),
        ({"regularization": -1}, "'regularization' parameter of HELMClassifier must be a float in the range"),
    ],
)
def test_bad_parameters(params, phrase):
    with pytest.raises(ValueError, match=re.escape(phrase)):
        HELMClassifier(**params).fit(*load_wine(return_X_y=True))


# ---- the search space


def test_configurations():
    drawn = configurations(60, 5)
    assert len(drawn) == 60
    assert configurations(60, 5) == drawn == json.loads(json.dumps(drawn))
    assert configurations(7, 5) == drawn[:7]
    assert configurations(60, 6) != drawn
    ranges = {
        "n_encoder": (20, 300),
        "n_hidden": (50, 1000),
        "regularization": (2**-30, 2**10),
        "scale": (0.1, 1),
    }
    for name, (low, high) in ranges.items():
        values = [c[name] for c in drawn]
        assert low * 0.99 <= min(values) < low + (high - low) / 10
        assert low + (high - low) / 4 < max(values) <= high * 1.01
    model = HELMClassifier(random_state=0, **drawn[0])
    assert model.fit(*load_wine(return_X_y=True)).score(*load_wine(return_X_y=True)) > 0.9
    with pytest.raises(ValueError, match="trials must be at least 1, got 0"):
        configurations(0, 5)
