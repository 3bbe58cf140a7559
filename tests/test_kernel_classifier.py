"""KernelRidgeClassifier: what is fitted, calibration, scaled inputs, and weights of any size."""

import numpy as np
import pandas as pd
import pytest
from helpers import noisy_rows
from scipy.linalg import LinAlgWarning
from sklearn.base import clone
from sklearn.datasets import load_wine
from sklearn.metrics import log_loss

from edrvfl import KernelRidgeClassifier, TabularEncoder
from edrvfl._fitting.systems import BANDWIDTHS, LAMBDAS

GRID = [
    {},
    {"bandwidth": 0.3},
    {"regularization": 0.1, "n_landmarks": None},
    {"bandwidth": 2.0, "regularization": 1e-6},
    {"n_landmarks": 60},
    {"n_landmarks": 80, "calibration": "temperature"},
    {"calibration": None, "encoder": "standard"},
    {"encoder": None, "calibration": "matrix"},
    {"encoder": TabularEncoder("robust", categorical_features=[3])},
    {"class_weight": "balanced"},
    {"input_scaling": None},
    {"kernel": "matern", "encoder": "standard"},
    {"kernel": "product", "encoder": "ranks", "n_landmarks": 50},
    {"kernel": "additive", "encoder": "loo", "input_scaling": "gradient"},
    {"kernel": "loo", "input_scaling": None},
]


def setting_name(params):
    return "-".join(f"{k}={v}" for k, v in params.items()) or "defaults"


@pytest.fixture
def wine():
    return load_wine(return_X_y=True, as_frame=True)


@pytest.mark.parametrize("params", GRID, ids=setting_name)
def test_every_setting_learns(rng, params):
    X, y = noisy_rows(rng, 280, 4)
    model = KernelRidgeClassifier(random_state=0, **params).fit(X[:160], y[:160])
    P = model.predict_proba(X[160:])
    np.testing.assert_allclose(P.sum(axis=1), 1, atol=1e-12)
    assert log_loss(y[160:], P) < log_loss(y[160:], np.tile(np.bincount(y) / 280, (120, 1)))
    assert model.score(X[160:], y[160:]) > 0.5


def test_figures_of_the_fit(wine, capsys):
    X, y = wine
    model = KernelRidgeClassifier(verbose=1).fit(X, y)
    assert model.n_landmarks_ == 178
    assert model.bandwidth_ in BANDWIDTHS
    assert model.regularization_ in LAMBDAS
    assert list(model.feature_names_in_) == list(X.columns)
    assert model.loo_accuracy_ > 0.95
    assert (
        f"accuracy {model.loo_accuracy_:.4f}, log-loss {model.loo_log_loss_:.4f}" in capsys.readouterr().out
    )
    assert "178 landmarks" not in capsys.readouterr().out
    few = KernelRidgeClassifier(n_landmarks=np.int64(30), bandwidth=1, regularization=1).fit(X, y)
    assert (few.n_landmarks_, few.bandwidth_, few.regularization_) == (30, 1, 1)


def test_leave_one_out_figures_are_honest(rng):
    X, y = noisy_rows(rng, 2400, 4)
    model = KernelRidgeClassifier().fit(X[:400], y[:400])
    P = model.predict_proba(X[400:])
    assert abs(model.loo_accuracy_ - (P.argmax(axis=1) == y[400:]).mean()) < 0.06
    assert abs(model.loo_log_loss_ - log_loss(y[400:], P)) < 0.1


def test_calibration_lowers_the_log_loss(rng):
    X, y = noisy_rows(rng, 600, 4)
    losses = {}
    for rule in (None, "temperature", "loo"):
        model = KernelRidgeClassifier(calibration=rule).fit(X[:300], y[:300])
        losses[rule] = log_loss(y[300:], model.predict_proba(X[300:]))
    assert losses["temperature"] < 0.95 * losses[None]
    assert losses["loo"] < 0.95 * losses[None]


def test_scaled_inputs_see_through_columns_of_noise(rng):
    X = rng.standard_normal((700, 12))
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    scores = {}
    for scaling in ("gradient", None):
        model = KernelRidgeClassifier(input_scaling=scaling).fit(X[:400], y[:400])
        scores[scaling] = model.score(X[400:], y[400:])
        assert (model.model_.voter.inputs.factors is None) == (scaling is None)
    assert scores["gradient"] > scores[None] + 0.1


def test_balanced_classes_are_equally_frequent(rng):
    X = rng.standard_normal((600, 3))
    y = (X[:, 0] + rng.standard_normal(600) > 1.8).astype(int)
    plain = KernelRidgeClassifier().fit(X, y)
    balanced = KernelRidgeClassifier(class_weight="balanced").fit(X, y)
    assert y.mean() < 0.15
    typical = X.mean(axis=0, keepdims=True)
    assert balanced.predict_proba(typical)[0, 1] > 2 * plain.predict_proba(typical)[0, 1]
    assert balanced.predict(X).mean() > 1.5 * plain.predict(X).mean()


def test_a_singular_kernel_warns_and_is_repaired(wine):
    X, y = wine
    model = KernelRidgeClassifier(regularization=1e-18)
    with pytest.warns(
        LinAlgWarning, match=r"singular with regularization=1e-18; .* was taken instead"
    ) as seen:
        model.fit(pd.concat([X, X * (1 + 1e-13)]), np.concatenate([y, y]))  # copies but for rounding
    assert seen[0].filename == __file__
    assert model.regularization_ > 1e-18
    assert model.score(X, y) > 0.99


@pytest.mark.parametrize("value", [np.finfo(float).max, -np.finfo(float).max])
@pytest.mark.parametrize("encoder", [None, "bins"])
def test_an_absurd_row_at_predict_is_finite(wine, value, encoder):
    X, y = wine
    model = KernelRidgeClassifier(encoder=encoder).fit(X, y)
    assert np.isfinite(model.predict_proba(pd.DataFrame(np.full((1, 13), value), columns=X.columns))).all()


@pytest.mark.parametrize("n_landmarks", ["auto", 50])
@pytest.mark.parametrize("weight", [1e40, 1e-50])
def test_weights_beyond_float32_do_not_hang(rng, n_landmarks, weight):
    X, y = noisy_rows(rng, 1100, 3)
    one = np.ones(len(y))
    one[0] = weight
    with pytest.raises(ValueError, match="Bring the weights closer together"):
        KernelRidgeClassifier(n_landmarks=n_landmarks, encoder="standard").fit(X, y, one)


def test_the_scale_of_small_weights_does_not_matter(rng, limit):
    limit(DOUBLE_ROWS=100)  # in float32 2^-150 would be 0
    X, y = noisy_rows(rng, 300, 3)
    w = rng.choice([0.25, 0.5, 1.0], len(y))
    model = KernelRidgeClassifier(encoder="standard", random_state=0)
    P, Q = (clone(model).fit(X, y, scale * w).predict_proba(X[:50]) for scale in (1, 2.0**-150))
    np.testing.assert_allclose(P, Q, atol=1e-5)


def test_few_rows_with_all_the_weight_among_many(rng, limit):
    limit(PART_ROWS={False: 30, True: 30}, LEAST_PART=10, MOST_ROWS={False: 100, True: 100})
    X, y = noisy_rows(rng, 400, 3)
    w = np.full(400, 1e-3)
    w[:2] = 1e6
    P = KernelRidgeClassifier(encoder="standard", random_state=0).fit(X, y, w).predict_proba(X)
    assert np.isfinite(P).all()
