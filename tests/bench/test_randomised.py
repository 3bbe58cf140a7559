"""What SCN, BLS and H-ELM promise alike: the contract, their building blocks, and sampling."""

import json
import pickle
import re
from functools import partial

import numpy as np
import pytest
import sklearn
from helpers import assert_passes_scikit_learns_checks, to_host
from scipy import stats
from scipy.special import softmax
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.linear_model import Ridge
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from edrvfl.bench.baselines.autoencoding import (
    BLSClassifier,
    HELMClassifier,
    fit_scaling,
    random_layer,
    random_projection,
    soft_threshold,
)
from edrvfl.bench.baselines.randomised import BLOCK_ROWS, LogInteger, ridge, sample_configurations
from edrvfl.bench.baselines.scn import SCNClassifier
from edrvfl.bench.methods import METHODS

SMALL = {
    "SCN": partial(SCNClassifier, max_nodes=20, n_candidates=20),
    "BLS": partial(BLSClassifier, n_enhancement=40, regularization=0.01),
    "H-ELM": partial(HELMClassifier, n_encoder=20, n_hidden=60, regularization=0.01),
}


@pytest.fixture(params=list(SMALL))
def make(request):
    return SMALL[request.param]


@pytest.fixture(params=["BLS", "H-ELM"])
def make_autoencoding(request):
    return SMALL[request.param]


@pytest.fixture(scope="module")
def wine():
    return load_wine(return_X_y=True)


# ---- the contract


@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("SCN", {}),
        ("SCN", {"standardize": False, "scales": [2.0], "contractions": [0.9999]}),
        ("BLS", {}),
        ("BLS", {"scaling": "sample", "n_windows": 1, "n_window_nodes": 30}),
        ("H-ELM", {}),
        ("H-ELM", {"scaling": "sample"}),
        ("H-ELM", {"n_hidden": 10}),
        ("H-ELM", {"regularization": 0.0}),
    ],
)
def test_scikit_learns_checks_pass(name, params):
    assert_passes_scikit_learns_checks(SMALL[name](**params))


@pytest.mark.parametrize("load", [load_iris, load_wine, load_breast_cancer])
@pytest.mark.parametrize(
    "model", [SCNClassifier(max_nodes=25), BLSClassifier(), HELMClassifier()], ids=list(SMALL)
)
def test_accuracy_is_sensible(model, load):
    X, y = load(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.4, stratify=y, random_state=0)
    assert clone(model).set_params(random_state=0).fit(X_train, y_train).score(X_test, y_test) > 0.9


def test_scores_labels_and_probabilities_agree(make, wine):
    X, y = wine
    for labels in (np.array(["b", "c", "a"])[y], np.array(["yes", "no"])[(y > 0).astype(int)]):
        model = make(random_state=0).fit(X, labels)
        P, scores = model.predict_proba(X), model.decision_function(X)
        np.testing.assert_array_equal(model.predict(X), model.classes_[P.argmax(1)])
        np.testing.assert_allclose(P.sum(1), 1)
        if scores.ndim == 1:
            np.testing.assert_allclose(scores, np.log(P[:, 1] / P[:, 0]))
        else:
            np.testing.assert_array_equal(scores.argsort(1), P.argsort(1))


def test_what_is_said_of_probabilities_is_true_of_these(make, wine):
    """The library's estimators calibrate theirs by leave-one-out, and say so."""
    X, y = wine
    model = make(random_state=0).fit(X, y)
    assert "leave-one-out" not in model.predict_proba.__doc__
    assert model.predict_proba.__doc__.startswith("Return the softmax of the classes' scores.")
    np.testing.assert_allclose(model.predict_proba(X), softmax(model.decision_function(X), axis=1))


def test_same_seed_same_bits(make, wine):
    X, y = wine
    one, two, other = (make(random_state=s).fit(X, y) for s in (0, 0, 1))
    np.testing.assert_array_equal(one.decision_function(X), two.decision_function(X))
    again = pickle.loads(pickle.dumps(one))
    np.testing.assert_array_equal(one.decision_function(X), again.decision_function(X))
    assert np.abs(one.decision_function(X) - other.decision_function(X)).max() > 1e-3


def test_more_rows_than_a_block_are_answered_like_few(make, wine):
    X, y = wine
    model = make(random_state=0).fit(X, y)
    many = np.tile(X, (BLOCK_ROWS // len(X) + 1, 1))
    assert len(many) > BLOCK_ROWS
    expected = np.tile(model.predict_proba(X), (len(many) // len(X), 1))
    np.testing.assert_allclose(model.predict_proba(many), expected, atol=1e-9)


@pytest.mark.parametrize(
    ("name", "params"),
    [("SCN", {}), *((n, {"scaling": s}) for n in ("BLS", "H-ELM") for s in ("feature", "sample"))],
)
def test_torch_gives_the_same_network(name, params, wine):
    torch = pytest.importorskip("torch")
    X, y = wine
    one = SMALL[name](random_state=0, **params).fit(X, y)
    with sklearn.config_context(array_api_dispatch=True):
        two = clone(one).fit(torch.asarray(X), torch.asarray(y))
        scores = two.decision_function(torch.asarray(X))
    assert isinstance(scores, torch.Tensor)
    np.testing.assert_allclose(scores.numpy(), one.decision_function(X), atol=1e-7)


@pytest.mark.parametrize(
    ("name", "params", "phrase"),
    [
        ("BLS", {"scaling": "column"}, "'scaling' parameter of BLSClassifier must be a str among"),
        ("BLS", {"scale": 0}, "'scale' parameter of BLSClassifier must be a float in the range"),
        ("H-ELM", {"n_encoder": 0}, "'n_encoder' parameter of HELMClassifier must be an int in the range"),
        ("SCN", {"scales": 3}, "'scales' parameter of SCNClassifier must be an array-like"),
        ("SCN", {"scales": []}, "scales must be ascending positive numbers, at least one, got"),
        ("SCN", {"scales": [1, 0.5]}, "scales must be ascending"),
        ("SCN", {"scales": [0, 1]}, "scales must be ascending positive"),
        ("SCN", {"contractions": [0.9, 1.0]}, "contractions must be ascending positive numbers below 1"),
    ],
)
def test_bad_parameters(name, params, phrase, wine):
    with pytest.raises(ValueError, match=re.escape(phrase)):
        SMALL[name]().set_params(**params).fit(*wine)


def test_one_class_is_refused(make, wine):
    X, y = wine
    with pytest.raises(ValueError, match="needs at least two classes, but y holds only one class"):
        make().fit(X, np.zeros_like(y))


# ---- the building blocks of BLS and H-ELM


def test_new_rows_are_scaled_with_the_training_rows_statistics(make_autoencoding, wine):
    X, y = wine
    for scaling in ("feature", "sample"):
        model = make_autoencoding(scaling=scaling, random_state=0).fit(X, y)
        np.testing.assert_allclose(model.decision_function(X[:5]), model.decision_function(X)[:5], atol=1e-8)


def test_the_two_scalings_differ(make_autoencoding, wine):
    """Multiplying a row changes nothing when each row is scaled alone, and much when each column is."""
    X, y = wine
    by_feature, by_sample = (
        make_autoencoding(scaling=s, random_state=0).fit(X, y) for s in ("feature", "sample")
    )
    np.testing.assert_allclose(by_sample.decision_function(3 * X), by_sample.decision_function(X), atol=1e-8)
    assert np.abs(by_feature.decision_function(3 * X) - by_feature.decision_function(X)).max() > 0.1


def test_scaling_by_feature_and_by_sample(rng):
    A = rng.standard_normal((6, 4)) * [1, 10, 100, 1000]
    columns, rows = (fit_scaling(StandardScaler(), A, scaling) for scaling in ("feature", "sample"))
    np.testing.assert_allclose([columns.mean(0), columns.std(0)], [[0] * 4, [1] * 4], atol=1e-12)
    np.testing.assert_allclose([rows.mean(1), rows.std(1)], [[0] * 6, [1] * 6], atol=1e-12)
    P = random_projection(A, 5, "sample", rng)
    np.testing.assert_allclose([P.min(1), P.max(1)], [[-1] * 6, [1] * 6])


@pytest.mark.parametrize("n", [4, 11, 30], ids=["narrow", "square", "wide"])
def test_the_random_layer_is_orthonormal_times_one_factor(rng, n):
    H = rng.standard_normal((50, 11))
    W = random_layer(H, n, 0.7, np.random.default_rng(0))
    assert W.shape == (11, n)
    G = W.T @ W if n <= 11 else W @ W.T
    np.testing.assert_allclose(G, G[0, 0] * np.eye(len(G)), atol=1e-12)
    assert np.abs(H @ W).max() == pytest.approx(0.7)


def test_soft_threshold_by_hand(xp):
    made = to_host(soft_threshold(xp.asarray([-3.0, -1.0, 0.5, 4.0]), 1.5))
    np.testing.assert_array_equal(made, [-1.5, 0, 0, 2.5])


@pytest.mark.parametrize("shape", [(60, 9), (9, 60)], ids=["tall", "wide"])
def test_ridge_is_scikit_learns(xp, rng, shape):
    D, Y = rng.standard_normal(shape), rng.standard_normal((shape[0], 3))
    expected = Ridge(alpha=1e-3, fit_intercept=False, solver="svd").fit(D, Y).coef_.T
    np.testing.assert_allclose(to_host(ridge(xp.asarray(D), xp.asarray(Y), 1e-3)), expected, atol=1e-9)


# ---- sampling


@pytest.mark.parametrize(
    ("name", "ranges"),
    [
        ("BLS", {"n_windows": (3, 20), "n_window_nodes": (5, 30), "n_enhancement": (50, 11000)}),
        ("H-ELM", {"n_encoder": (20, 700), "n_hidden": (50, 12000)}),
        ("SCN", {"max_nodes": (50, 1000)}),
    ],
)
def test_configurations(name, ranges, wine):
    method, make = METHODS[name], METHODS[name].estimator
    drawn = method.configurations(60, 5)
    assert len(drawn) == 60
    assert method.configurations(60, 5) == drawn == json.loads(json.dumps(drawn))
    assert method.configurations(7, 5) == drawn[:7], "more trials go on where fewer end"
    assert method.configurations(60, 6) != drawn
    if name != "SCN":
        ranges = {**ranges, "regularization": (2**-30, 2**10), "scale": (0.1, 1)}
    for name, (low, high) in ranges.items():
        values = [c[name] for c in drawn]
        assert low * 0.99 <= min(values) < low + (high - low) / 10
        assert low + (high - low) / 4 < max(values) <= high * 1.01
    for configuration in drawn[:3]:
        make(**configuration)._validate_params()
    assert make(random_state=0, **drawn[0]).fit(*wine).score(*wine) > 0.9
    with pytest.raises(ValueError, match="trials must be at least 1, got 0"):
        method.configurations(0, 5)


def test_samples_are_plain_numbers_with_six_digits():
    space = {"a": LogInteger(1, 9), "b": stats.uniform(0, 1), "c": np.array([1, 2]), "d": ("x", None)}
    for drawn in sample_configurations(space, 20, 0):
        assert [type(drawn[k]) for k in "abc"] == [int, float, int]
        assert drawn["b"] == float(f"{drawn['b']:.6g}")
        assert drawn["d"] in ("x", None)


def test_whole_numbers_are_uniform_in_the_logarithm():
    """A third of the draws from 1 to 1000 lies in each decade; both ends are reached."""
    state = np.random.RandomState(0)
    drawn = np.array([LogInteger(1, 1000).rvs(state) for _ in range(3000)])
    np.testing.assert_allclose(np.histogram(drawn, [1, 9.5, 99.5, 1001])[0] / 3000, 1 / 3, atol=0.03)
    assert (drawn.min(), drawn.max() > 990) == (1, True)
