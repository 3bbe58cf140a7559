"""BLS: its coder against scikit-learn's Lasso, its windows against random projections, its steps by hand."""

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

from edrvfl.bench.baselines.bls import BLSClassifier, configurations, lasso_admm

LOADERS = [load_iris, load_wine, load_breast_cancer]


@pytest.mark.parametrize("params", [{}, {"scaling": "sample"}, {"n_windows": 1, "n_window_nodes": 30}])
def test_scikit_learns_checks_pass(params):
    assert_passes_scikit_learns_checks(BLSClassifier(n_enhancement=40, **params))


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


@pytest.mark.parametrize("load", LOADERS)
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


def test_new_rows_are_scaled_with_the_training_rows_statistics():
    X, y = load_wine(return_X_y=True)
    for scaling in ("feature", "sample"):
        model = BLSClassifier(n_enhancement=30, scaling=scaling, random_state=0).fit(X, y)
        np.testing.assert_allclose(model.decision_function(X[:5]), model.decision_function(X)[:5], atol=1e-8)


def test_the_two_scalings_differ():
    """Multiplying a row changes nothing when each row is scaled alone, and much when each column is."""
    X, y = load_wine(return_X_y=True)
    model = BLSClassifier(n_enhancement=30, regularization=1e-3, random_state=0)
    by_feature, by_sample = (clone(model).set_params(scaling=s).fit(X, y) for s in ("feature", "sample"))
    np.testing.assert_allclose(by_sample.decision_function(3 * X), by_sample.decision_function(X), atol=1e-8)
    assert np.abs(by_feature.decision_function(3 * X) - by_feature.decision_function(X)).max() > 0.1


# ---- the contract


@pytest.mark.parametrize("load", LOADERS)
def test_accuracy_is_sensible(load):
    X, y = load(return_X_y=True)
    split = train_test_split(X, y, test_size=0.4, stratify=y, random_state=0)
    model = BLSClassifier(random_state=0).fit(split[0], split[2])
    assert model.score(split[1], split[3]) > 0.9


def test_scores_labels_and_probabilities_agree():
    X, y = load_wine(return_X_y=True)
    for labels in (np.array(["b", "c", "a"])[y], np.array(["yes", "no"])[(y > 0).astype(int)]):
        model = BLSClassifier(n_enhancement=50, random_state=0).fit(X, labels)
        P, scores = model.predict_proba(X), model.decision_function(X)
        np.testing.assert_array_equal(model.predict(X), model.classes_[P.argmax(1)])
        np.testing.assert_allclose(P.sum(1), 1)
        if scores.ndim == 1:
            np.testing.assert_allclose(scores, np.log(P[:, 1] / P[:, 0]))
        else:
            np.testing.assert_array_equal(scores.argsort(1), P.argsort(1))


def test_same_seed_same_bits():
    X, y = load_wine(return_X_y=True)
    one, two, other = (BLSClassifier(n_enhancement=50, random_state=s).fit(X, y) for s in (0, 0, 1))
    np.testing.assert_array_equal(one.decision_function(X), two.decision_function(X))
    again = pickle.loads(pickle.dumps(one))
    np.testing.assert_array_equal(one.decision_function(X), again.decision_function(X))
    assert np.abs(one.decision_function(X) - other.decision_function(X)).max() > 1e-3


@pytest.mark.parametrize("scaling", ["feature", "sample"])
def test_torch_gives_the_same_network(scaling):
    torch = pytest.importorskip("torch")
    X, y = load_wine(return_X_y=True)
    one = BLSClassifier(n_enhancement=50, regularization=0.01, scaling=scaling, random_state=0).fit(X, y)
    with sklearn.config_context(array_api_dispatch=True):
        two = clone(one).fit(torch.asarray(X), torch.asarray(y))
        scores = two.decision_function(torch.asarray(X))
    assert isinstance(scores, torch.Tensor)
    np.testing.assert_allclose(scores.numpy(), one.decision_function(X), atol=1e-7)


@pytest.mark.parametrize(
    ("params", "phrase"),
    [
        ({"scaling": "column"}, "'scaling' parameter of BLSClassifier must be a str among"),
        ({"n_windows": 0}, "'n_windows' parameter of BLSClassifier must be an int in the range"),
        ({"scale": 0}, "'scale' parameter of BLSClassifier must be a float in the range"),
    ],
)
def test_bad_parameters(params, phrase):
    with pytest.raises(ValueError, match=re.escape(phrase)):
        BLSClassifier(**params).fit(*load_wine(return_X_y=True))


# ---- the search space


def test_configurations():
    drawn = configurations(60, 5)
    assert len(drawn) == 60
    assert configurations(60, 5) == drawn == json.loads(json.dumps(drawn))
    assert configurations(7, 5) == drawn[:7]
    assert configurations(60, 6) != drawn
    ranges = {
        "n_windows": (3, 20),
        "n_window_nodes": (5, 30),
        "n_enhancement": (50, 1000),
        "regularization": (2**-30, 2**10),
        "scale": (0.1, 1),
    }
    for name, (low, high) in ranges.items():
        values = [c[name] for c in drawn]
        assert low * 0.99 <= min(values) < low + (high - low) / 10
        assert low + (high - low) / 4 < max(values) <= high * 1.01
    model = BLSClassifier(random_state=0, **drawn[0])
    assert model.fit(*load_wine(return_X_y=True)).score(*load_wine(return_X_y=True)) > 0.9
    with pytest.raises(ValueError, match="trials must be at least 1, got 0"):
        configurations(0, 5)
