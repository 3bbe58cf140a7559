"""EDRVFLRegressor: scikit-learn's contract, the reference loops, weights, units of y, and bad input."""

import pickle
import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
import reference
import sklearn
from helpers import (
    FixedSeed,
    Recorder,
    assert_passes_scikit_learns_checks,
    features_by_layer,
    noisy_values,
    scores_by_layer,
    to_host,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import LinAlgWarning
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.exceptions import NotFittedError
from sklearn.inspection import permutation_importance
from sklearn.linear_model import Ridge
from sklearn.metrics import r2_score
from sklearn.model_selection import GridSearchCV, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils._array_api import move_estimator_to

from edrvfl import EDRVFLRegressor, TabularEncoder, to_numpy
from edrvfl._layers.activations import ACTIVATIONS
from edrvfl._ridge.choose import LAMBDAS

SMALL = EDRVFLRegressor(n_layers=3, n_hidden=16, encoder="standard", random_state=0)
OPTIONS = {
    "plain": {},
    "dual": {"n_hidden": 150},
    "pruning": {"prune_rate": 0.4},
    "given penalty": {"regularization": 0.5},
    "Moore-Penrose": {"regularization": 0.0},
    "weighting": {"correct_weight": 0.4},
    "weighting, dual": {"correct_weight": 0.4, "n_hidden": 150},
    "weighting by training rows": {"correct_weight": 0.4, "weight_from": "train", "n_hidden": 150},
    "pairs": {"pair_share": 0.5},
    "gradient": {"input_scaling": "gradient"},
    "bins": {"encoder": TabularEncoder("bins", n_bins=4)},
    "sparse": {"inputs_per_neuron": 2, "hidden_per_neuron": 4, "norm_scale": (0.5, 2.0)},
    "weighted votes": {"layer_votes": "weighted"},
    "prefix": {"layer_votes": "prefix", "n_hidden": "auto"},
    "numbers as they are": {"encoder": None, "renormalize": False},
    "joint": {"readout": "joint", "prune_rate": 0.0, "n_hidden": 8},
    "joint, dual": {"readout": "joint", "prune_rate": 0.0, "n_hidden": 60},
}
EVERY_OPTION = pytest.mark.parametrize("name", OPTIONS)
# settings for scikit-learn's checks: options that do not meet in the code share one
CHECKED = [
    ("plain",),
    ("pruning", "bins", "weighted votes"),
    ("Moore-Penrose",),
    ("weighting", "pairs"),
    ("weighting, dual",),
    ("sparse", "gradient"),
    ("prefix",),
    ("numbers as they are",),
    ("joint, dual",),
]


def small(name="plain", **params):
    return clone(SMALL).set_params(**OPTIONS[name], **params)


@pytest.mark.parametrize("names", CHECKED, ids=" and ".join)
def test_scikit_learns_checks_pass(names):
    params = {option: value for name in names for option, value in OPTIONS[name].items()}
    assert_passes_scikit_learns_checks(small(**params))


def test_scikit_learns_checks_pass_for_the_defaults():
    assert_passes_scikit_learns_checks(EDRVFLRegressor())


@pytest.mark.parametrize("activation", [g for g in ACTIVATIONS if g != "relu"])
def test_every_activation_learns(rng, activation):
    X, y = noisy_values(rng, 300, 4)
    model = small(activation=activation, n_hidden=40).fit(X[:200], y[:200])
    assert model.score(X[200:], y[200:]) > 0.4


# --- against loops ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [1, 3], ids=["one output", "three outputs"])
@pytest.mark.parametrize(
    "params",
    [
        {"regularization": 0.5, "prune_rate": 0.3},
        {"regularization": 0.5, "prune_rate": 0.0, "n_hidden": 60, "norm_scale": 1.5, "norm_shift": -0.5},
        {"regularization": 0.5, "correct_weight": 0.4, "weight_from": "train"},
        {"regularization": 0.5, "correct_weight": 0.4, "prune_rate": 0.5, "inputs_per_neuron": 2},
        {"regularization": 2.0, "correct_weight": 0.3, "n_hidden": 60},
        {"regularization": "loo", "prune_rate": 0.25, "norm_scale": (0.5, 2.0), "hidden_per_neuron": 3},
        {"regularization": "loo", "correct_weight": 0.5, "n_hidden": 40, "activation": "sigmoid"},
        {"regularization": 0.5, "renormalize": False},
    ],
    ids=str,
)
def test_layers_are_those_of_the_reference(rng, k, params):
    X, y = noisy_values(rng, 42, 4, k)
    model = EDRVFLRegressor(
        **{"n_layers": 3, "n_hidden": 10, "encoder": "standard", "random_state": FixedSeed(5), **params}
    )
    model.fit(X[:30], y[:30])
    p = model.get_params()
    expected = reference.layer_scores(
        X[:30], y[:30], X[30:], 5, 3, p["n_hidden"], p["regularization"], p["activation"], p["renormalize"],
        p["norm_scale"], p["norm_shift"], p["correct_weight"], p["prune_rate"], p["weight_from"],
        p["inputs_per_neuron"], p["hidden_per_neuron"],
    )  # fmt: skip
    np.testing.assert_allclose(scores_by_layer(model.network_, X[30:]), expected, atol=1e-7)
    means = np.cumsum(expected, axis=0) / np.arange(1, 4)[:, None, None]
    for stage, mean in zip(model.staged_predict(X[30:]), means, strict=True):
        np.testing.assert_allclose(stage, mean[:, 0] if k == 1 else mean, atol=1e-7)
    np.testing.assert_array_equal(model.predict(X[30:]), stage)


@pytest.mark.parametrize("n_hidden", [12, 60], ids=["primal", "dual"])
@pytest.mark.parametrize("regularization", [0.0, 0.3, "loo"])
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
def test_read_outs_are_ridges_and_leave_one_out_is_leaving_each_row_out(
    rng, n_hidden, regularization, weighted
):
    X, y = noisy_values(rng, 30, 4, 2)
    counts = rng.choice([0.4, 1.0, 3.0], 30) if weighted else np.ones(30)
    model = EDRVFLRegressor(
        n_layers=2, n_hidden=n_hidden, regularization=regularization, prune_rate=0.3, random_state=0
    ).fit(X, y, counts if weighted else None)
    mean = np.average(y, axis=0, weights=counts)
    sd = np.sqrt(np.average((y - mean) ** 2, axis=0, weights=counts))
    Y, left_out = (y - mean) / sd, []
    for l, D in enumerate(features_by_layer(model.network_, X)):
        lam = model.regularization_[l]
        if regularization == "loo":
            losses = {}
            for candidate in LAMBDAS:
                alone = reference.scores_without_each_row(D, Y, candidate, np.ones(30), counts)
                losses[candidate] = np.average(((alone - Y) ** 2).mean(axis=1), weights=counts)
            assert lam == min(losses, key=losses.get)
        left_out.append(reference.scores_without_each_row(D, Y, lam, np.ones(30), counts))
        if lam > 0:
            ridge = Ridge(lam, fit_intercept=False, solver="svd").fit(D, Y, counts)
            np.testing.assert_allclose(
                D @ model.network_.readouts[l], ridge.predict(D) * sd + mean, atol=1e-8
            )
        own = r2_score(y, D @ model.network_.readouts[l], sample_weight=counts)
        assert model.train_r2_scores_[l] == pytest.approx(own, abs=1e-9)
        together = np.mean(left_out, axis=0) * sd + mean
        expected = r2_score(y, together, sample_weight=counts)
        assert model.loo_r2_scores_[l] == pytest.approx(expected, abs=1e-6)


def test_figures_of_the_fit(rng):
    X, y = noisy_values(rng, 80, 5)
    model = small(prune_rate=0.25).fit(pd.DataFrame(X, columns=list("abcde")), y)
    assert model.n_features_in_ == 5
    assert list(model.feature_names_in_) == list("abcde")
    assert (model.n_layers_, model.n_hidden_, model.neurons_kept_) == (3, 16, (12, 12, 12))
    assert len(model.loo_r2_scores_) == len(model.train_r2_scores_) == len(model.regularization_) == 3
    assert all(type(score) is float for score in model.loo_r2_scores_ + model.train_r2_scores_)
    assert model.fallback_layers_ == ()
    assert model.set_params(coverage_from=None).fit(X, y).loo_r2_scores_ == ()


def test_leave_one_out_is_honest(rng):
    X, y = noisy_values(rng, 3300, 4)
    model = small(n_hidden=64).fit(X[:300], y[:300])
    assert abs(model.loo_r2_scores_[-1] - model.score(X[300:], y[300:])) < 0.06
    assert model.train_r2_scores_[-1] > model.loo_r2_scores_[-1]


def test_of_many_rows_a_part_is_judged(rng):
    X, y = noisy_values(rng, 24_000, 4)
    counts = rng.choice([0.0, 1.0, 3.0], 14_000 + 5_000)
    for params in ({}, {"correct_weight": 0.5}):
        model = EDRVFLRegressor(n_layers=2, n_hidden=40, random_state=0, **params)
        model.fit(X[:19_000], y[:19_000], counts)
        assert abs(model.loo_r2_scores_[-1] - model.score(X[19_000:], y[19_000:])) < 0.02


@EVERY_OPTION
def test_every_stage_is_the_shallower_network(rng, name):
    X, y = noisy_values(rng, 80, 4, 2)
    deep = small(name).fit(X, y)
    for depth, values in enumerate(deep.staged_predict(X), start=1):
        np.testing.assert_allclose(values, small(name, n_layers=depth).fit(X, y).predict(X), atol=1e-10)
    assert depth == deep.n_layers_


@pytest.mark.parametrize("votes", ["prefix", "weighted"])
def test_votes_do_not_raise_the_leave_one_out_error(rng, votes):
    X, y = noisy_values(rng, 200, 4)
    extreme = {"n_layers": 6, "n_hidden": 60, "correct_weight": 0.01, "regularization": 0.01}
    equal, other = (small(**extreme, layer_votes=v).fit(X, y) for v in ("equal", votes))
    if votes == "prefix":
        assert other.n_layers_ == 1 + np.argmax(equal.loo_r2_scores_) < 6
        np.testing.assert_array_equal(other.predict(X), list(equal.staged_predict(X))[other.n_layers_ - 1])
    else:
        assert other.loo_r2_scores_[-1] > equal.loo_r2_scores_[-1]
        scores, weights = scores_by_layer(other.network_, X), other.network_.votes
        np.testing.assert_allclose(other.predict(X), np.average(scores, axis=0, weights=weights)[:, 0])


# --- weights ---------------------------------------------------------------------------------------------


def few_values(rng, k):
    """Draw rows of which some have the same value; two outputs that are opposite have a sign to choose."""
    X, y = noisy_values(rng, 60, 4)
    y = np.round(2 * y) / 2
    return X, y if k is None else np.column_stack([y, -y + 0.3 * rng.standard_normal(60)])


@EVERY_OPTION
@pytest.mark.parametrize("k", [None, 2], ids=["one output", "two outputs"])
def test_neither_order_nor_repetition_of_rows_matters(name, k):
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X, y = few_values(rng, k)
        counts = rng.integers(0, 4, 60)
        weighted = small(name).fit(X, y, sample_weight=counts)
        again = rng.permutation(np.repeat(np.arange(60), counts))
        repeated = small(name).fit(X[again], y[again])
        np.testing.assert_allclose(weighted.predict(X), repeated.predict(X), atol=1e-7)
        np.testing.assert_allclose(weighted.loo_r2_scores_, repeated.loo_r2_scores_, atol=1e-7)
        np.testing.assert_allclose(weighted.train_r2_scores_, repeated.train_r2_scores_, atol=1e-9)


def test_a_weight_of_zero_leaves_the_row_out(rng):
    X, y = noisy_values(rng, 80, 4)
    some = np.arange(80) < 60
    far = np.where(some, y, 1e9)
    np.testing.assert_allclose(
        small().fit(X, far, some).predict(X), small().fit(X[some], y[some]).predict(X), atol=1e-9
    )


@EVERY_OPTION
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_small_weights_have_no_scale(rng, name, dtype):
    X, y = noisy_values(rng, 80, 4)
    X, weights = X.astype(dtype), rng.uniform(0.2, 1, 80)
    # exact factors: nothing may change but the penalties' scale
    one, tiny = (
        small(name).set_params(regularization="loo").fit(X, y, unit * weights) for unit in (2.0**-1, 2.0**-30)
    )
    np.testing.assert_allclose(tiny.predict(X), one.predict(X), rtol=1e-3 if dtype == np.float32 else 1e-9)
    np.testing.assert_allclose(np.divide(one.regularization_, tiny.regularization_), 2.0**29)
    plain, equal = (
        small(name).set_params(regularization="loo").fit(X, y, w) for w in (None, np.full(80, 2.0**-20))
    )
    np.testing.assert_allclose(equal.predict(X), plain.predict(X), rtol=1e-3 if dtype == np.float32 else 1e-9)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.zeros(60), "at least one non-zero"),
        (-np.ones(60), "Negative values"),
        (np.full(60, np.nan), "NaN"),
        (np.ones(3), "expected"),
        (np.full(60, 1e307), "The weights are too large"),
    ],
)
def test_weights_that_cannot_be(rng, weights, message):
    with pytest.raises(ValueError, match=message):
        small().fit(*noisy_values(rng, 60, 4), sample_weight=weights)


# --- units of y ------------------------------------------------------------------------------------------


@settings(max_examples=40)
@given(
    name=st.sampled_from([name for name in OPTIONS if name != "pairs"]),
    size=st.floats(-250, 250),
    sign=st.sampled_from([-1, 1]),
    offset=st.floats(-1e5, 1e5),
    seed=st.integers(0, 5),
)
def test_answers_have_the_units_of_y(name, size, sign, offset, seed):
    X, y = noisy_values(np.random.default_rng(seed), 40, 3)
    scale = sign * 10.0**size
    plain, other = small(name).fit(X, y), small(name).fit(X, scale * (y + offset))
    np.testing.assert_allclose(other.predict(X) / scale - offset, plain.predict(X), atol=1e-6)
    np.testing.assert_allclose(other.loo_r2_scores_, plain.loo_r2_scores_, atol=1e-6)


def test_pairs_follow_the_values_up(rng):
    X, y = noisy_values(rng, 60, 4)
    one, two = (small("pairs").fit(X, v).predict(X) for v in (y, 1e-200 * y))
    np.testing.assert_allclose(two / 1e-200, one, atol=1e-9)


@pytest.mark.parametrize("scale", [1e300, 1e-300, 5e-324])
def test_extreme_units(rng, scale):
    X, y = noisy_values(rng, 60, 4)
    y = scale * (np.sign(y) if scale < 1e-320 else y)
    model = small().fit(X, y)
    assert np.isfinite(model.predict(X)).all()
    assert model.train_r2_scores_[-1] > 0.3
    if scale > 1e-320:
        np.testing.assert_allclose(model.predict(X) / scale, small().fit(X, y / scale).predict(X), atol=1e-9)


def test_values_too_large_for_the_precision_of_the_rows(rng):
    X, y = noisy_values(rng, 60, 4)
    for large in (1e39 * y, np.full(60, 1e39)):
        with pytest.raises(ValueError, match=r"y are too large for float32.* Divide y by a number"):
            small().fit(X.astype(np.float32), large)


@pytest.mark.parametrize(
    ("move", "message"),
    [
        (lambda y: 1.7e9 + y, r"y has the mean 1\.7e\+09 and the standard deviation \d"),
        (lambda y: 1e-50 * y, "y has the mean -?0 and the standard deviation 0"),
        (lambda y: np.column_stack([y, 1e9 - y]), "output 1 of y has the mean 1e.09"),
    ],
)
def test_values_that_the_precision_of_the_rows_cannot_tell_apart(rng, move, message):
    X, y = noisy_values(rng, 60, 4)
    with pytest.raises(ValueError, match=rf"In float32, .*{message}.* Give X in float64, or subtract"):
        small().fit(X.astype(np.float32), move(y))
    expected = small().fit(X, np.reshape(move(y), (60, -1)) - np.reshape(move(y), (60, -1)).mean(axis=0))
    np.testing.assert_allclose(small().fit(X, move(y)).loo_r2_scores_, expected.loo_r2_scores_, atol=1e-6)
    # a constant has nothing to resolve
    assert (small().fit(X.astype(np.float32), np.full(60, 2.0**30)).predict(X) == 2.0**30).all()


def test_four_steps_of_the_precision_in_a_standard_deviation_are_enough(rng):
    X, y = noisy_values(rng, 400, 4)
    single, mean = X.astype(np.float32), y.std() / (4.1 * np.finfo(np.float32).eps)
    exact = small(n_hidden=64).fit(X, y)
    far = small(n_hidden=64).fit(single, mean + y).predict(single).astype(float) - mean
    assert np.mean((far - exact.predict(X)) ** 2) < 0.02 * y.var()


@EVERY_OPTION
def test_a_constant_value_is_the_answer(rng, name):
    X, y = noisy_values(rng, 50, 4)
    for value in (0.0, 0.1, -1e300):
        model = small(name).fit(X, np.full(50, value))
        np.testing.assert_allclose(model.predict(2 * X), value, rtol=1e-15)
        assert set(model.loo_r2_scores_) == {1.0}  # as r2_score says
    beside = small(name).fit(X, np.column_stack([np.full(50, 0.1), y]))
    np.testing.assert_allclose(beside.predict(X)[:, 0], 0.1, rtol=1e-15)
    assert beside.loo_r2_scores_[-1] > 0.5


def test_a_constant_among_many_weighted_rows_is_a_constant(rng):
    X, y = noisy_values(rng, 100_000, 2 + 1)
    model = EDRVFLRegressor(n_layers=1, n_hidden=4, encoder="standard", random_state=0, coverage_from=None)
    model.fit(X, np.column_stack([np.full(100_000, 0.1), y]), rng.uniform(0.1, 3, 100_000))
    assert np.unique(model.predict(X)[:, 0]).size == 1


def test_float32_in_float32_out_and_accurate(rng):
    X, y = noisy_values(rng, 600, 5)
    single = X.astype(np.float32)
    exact, rough = small(n_hidden=64).fit(X, y), small(n_hidden=64).fit(single, y)
    assert rough.predict(X).dtype == np.float32
    for layer, beta in zip(rough.network_.layers, rough.network_.readouts, strict=True):
        assert layer.W.dtype == beta.dtype == np.float32
    np.testing.assert_allclose(rough.predict(single), exact.predict(X), atol=2e-3)
    np.testing.assert_allclose(rough.loo_r2_scores_, exact.loo_r2_scores_, atol=1e-3)
    far = small(n_hidden=64).fit(single, 1e6 + y)
    step = np.spacing(np.float32(1e6))
    assert np.abs(far.predict(single).astype(float) - 1e6 - exact.predict(X)).max() < 10 * step
    np.testing.assert_allclose(far.loo_r2_scores_, exact.loo_r2_scores_, atol=1e-3)
    mixed = small(n_hidden=64).fit(X, y.astype(np.float32)).predict(X)
    assert mixed.dtype == np.float64
    np.testing.assert_allclose(mixed, exact.predict(X), atol=1e-5)


# --- forms of y ------------------------------------------------------------------------------------------


def test_outputs_are_fitted_side_by_side(rng):
    X, y = noisy_values(rng, 100, 4, 3)
    # what looks at all outputs at once, pruning and the penalty, is off
    model = small(regularization=0.5, prune_rate=0.0)
    together = clone(model).fit(X, y)
    alone = [clone(model).fit(X, y[:, j]) for j in range(3)]
    assert together.predict(X).shape == (100, 3)
    np.testing.assert_allclose(together.predict(X), np.column_stack([m.predict(X) for m in alone]), atol=1e-9)
    mean = np.mean([m.loo_r2_scores_ for m in alone], axis=0)
    np.testing.assert_allclose(together.loo_r2_scores_, mean, atol=1e-9)
    assert together.score(X, y) == pytest.approx(np.mean([m.score(X, y[:, j]) for j, m in enumerate(alone)]))


@pytest.mark.parametrize(
    "form",
    [
        list,
        pl.Series,
        pd.Series,
        lambda y: y[:, None],
        lambda y: y.astype(object),
        lambda y: pd.DataFrame({"y": y}),
        lambda y: pd.Series(y).astype("Int64"),
        lambda y: y.astype(np.int16),
    ],
    ids=["list", "polars", "pandas", "column", "objects", "frame", "nullable", "integers"],
)
def test_values_come_in_many_forms(rng, form):
    X, y = noisy_values(rng, 60, 4)
    y = np.round(10 * y)
    answer = small().fit(X, form(y)).predict(X)
    np.testing.assert_array_equal(answer, small().fit(X, y).predict(X))
    assert answer.dtype == np.float64


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (np.where(np.arange(60) == 3, np.nan, 1.0), "y has a missing value in row 3. Fill it in, or leave"),
        (np.where(np.arange(60) == 3, np.inf, 1.0), "Input y contains infinity"),
        (np.array([None, *range(59)], dtype=object), "y has a missing value in row 0"),
        (pl.Series([None, *range(59)]), "y has a missing value in row 0"),
        (np.zeros((60, 1, 1)), r"takes y of shape .* or \(n_samples, n_outputs\), got \(60, 1, 1\)"),
        (np.full(60, "high"), "EDRVFLRegressor predicts numbers, but y holds 'high'.*use a classifier"),
        (pd.Series([1.0, "low"] * 30, dtype=object), "predicts numbers, but y holds 'low'"),
        (pd.Series(pd.date_range("2026", periods=60)), "predicts numbers, but y holds dates or times"),
        (np.zeros(60) + 1j, "Complex data not supported"),
        (np.zeros((60, 0)), "0 feature"),
        (np.zeros(5), "inconsistent numbers of samples"),
        (None, "requires y to be passed"),
    ],
    ids=[
        "gap",
        "infinite",
        "None",
        "null",
        "cube",
        "text",
        "mixed",
        "dates",
        "complex",
        "empty",
        "short",
        "no",
    ],
)
def test_values_that_cannot_be(rng, y, message):
    with pytest.raises(ValueError, match=message):
        small().fit(rng.standard_normal((60, 3)), y)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_few_rows(rng, n):
    X, y = noisy_values(rng, 3, 4)
    model = small().fit(X[:n], y[:n])
    assert np.isfinite(model.predict(X)).all()
    assert np.isfinite(model.loo_r2_scores_).all()


# --- array libraries, frames, copies ---------------------------------------------------------------------


@EVERY_OPTION
def test_every_library_makes_the_same_network(xp, rng, name):
    X, y = noisy_values(rng, 60, 4, 2)
    counts = rng.choice([1.0, 2.0], 60)
    expected = small(name).fit(X, y, counts)
    with sklearn.config_context(array_api_dispatch=True):
        model = small(name).fit(*(xp.asarray(part) for part in (X, y, counts)))
        values, home = model.predict(xp.asarray(X)), to_numpy(model)
    np.testing.assert_allclose(to_host(values), expected.predict(X), atol=1e-7)
    np.testing.assert_allclose(home.predict(X), to_host(values), atol=1e-10)
    np.testing.assert_allclose(model.loo_r2_scores_, expected.loo_r2_scores_, atol=1e-8)
    assert home.regularization_ == expected.regularization_


def test_numpy_values_beside_torch_rows_and_the_way_there(rng):
    torch = pytest.importorskip("array_api_compat.torch")
    X, y = noisy_values(rng, 60, 4)
    here = small().fit(X, y)
    with sklearn.config_context(array_api_dispatch=True):
        model = small().fit(torch.asarray(X.astype(np.float32)), y)
        values = model.predict(torch.asarray(X.astype(np.float32)))
        assert values.dtype == torch.float32
        np.testing.assert_allclose(to_host(values), here.predict(X), atol=1e-3)
        with pytest.raises(ValueError, match="must use the same namespace and the same device"):
            model.predict(X)
        moved = move_estimator_to(here, torch, "cpu")
        np.testing.assert_allclose(to_host(moved.predict(torch.asarray(X))), here.predict(X), atol=1e-12)


def mixed_frame(rng, library, m):
    """Draw a table with words, numbers and gaps, and values that need both columns."""
    kind, size = rng.choice(["red", "green", "blue"], m), rng.standard_normal(m)
    y = np.where(kind == "red", size, -size) + 0.1 * rng.standard_normal(m)
    size[::17] = np.nan
    words = [None if i % 23 == 0 else str(k) for i, k in enumerate(kind)]
    return library.DataFrame({"kind": words, "size": size}), y


@pytest.mark.parametrize("library", [pd, pl], ids=["pandas", "polars"])
def test_frames_with_categories_and_gaps(rng, library):
    frame, y = mixed_frame(rng, library, 400)
    model = small(n_hidden=60).fit(frame[:300], y[:300])
    assert list(model.feature_names_in_) == ["kind", "size"]
    assert model.score(frame[300:], y[300:]) > 0.7
    strange = library.DataFrame({"kind": ["violet", None], "size": [np.nan, 1e300]})
    assert np.isfinite(model.predict(strange)).all()
    copy = to_numpy(pickle.loads(pickle.dumps(model)))
    np.testing.assert_array_equal(copy.predict(frame), model.predict(frame))


def test_pandas_and_polars_are_the_same_table():
    answers = []
    for library in (pd, pl):
        frame, y = mixed_frame(np.random.default_rng(0), library, 90)
        answers.append(small().fit(frame, y).predict(frame))
    np.testing.assert_allclose(*answers, atol=1e-12)


def test_copies_and_seeds(rng):
    X, y = noisy_values(rng, 80, 4)
    model = small().fit(X, y)
    values = model.predict(X)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X), values)
    np.testing.assert_array_equal(clone(model).fit(X, y).predict(X), values)
    np.testing.assert_array_equal(model.fit(X[:, :2], y[:, None] ** [1, 2]).fit(X, y).predict(X), values)
    assert np.abs(small(random_state=1).fit(X, y).predict(X) - values).max() > 1e-3
    np.testing.assert_allclose(model.predict(X[5:6]), values[5:6], atol=1e-12)


def test_what_decides_an_answer_is_fitted(rng):
    X, y = noisy_values(rng, 80, 4)
    model = small().fit(X, y)
    before = model.predict(X)
    model.set_params(
        activation="sin", n_hidden=3, encoder=None, renormalize=False, n_layers=1, random_state=5
    )
    np.testing.assert_array_equal(model.predict(X), before)


def test_among_scikit_learns_tools(rng):
    X, y = noisy_values(rng, 240, 4)
    positive = np.exp(y)
    logged = TransformedTargetRegressor(small(), func=np.log, inverse_func=np.exp).fit(X, positive)
    np.testing.assert_allclose(logged.predict(X), np.exp(small().fit(X, y).predict(X)), rtol=1e-6)
    search = GridSearchCV(make_pipeline(StandardScaler(), small()), {"edrvflregressor__prune_rate": [0, 0.5]})
    assert search.fit(X, y).best_score_ > 0.5
    both = np.column_stack([y, positive])
    assert r2_score(y, cross_val_predict(small(), X, both, cv=3)[:, 0]) > 0.5
    found = permutation_importance(small().fit(X, y), X, y, n_repeats=2, random_state=0).importances_mean
    assert found[:3].min() > 5 * abs(found[3])


# --- following a fit, and failures -----------------------------------------------------------------------


def test_callbacks_follow_the_layers_and_can_end_the_fit(rng):
    X, y = noisy_values(rng, 80, 4)
    recorder = Recorder()
    full = small().set_callbacks(recorder).fit(X, y)
    assert recorder.told == ["setup", "begin fit", *["begin layer", "end layer"] * 3, "end fit", "teardown"]
    for so_far, stage in zip(recorder.estimators[:3], full.staged_predict(X), strict=True):
        np.testing.assert_array_equal(so_far.predict(X), stage)
    model = small().set_callbacks(Recorder(stop_after=2)).fit(X, y)
    assert model.n_layers_ == len(model.loo_r2_scores_) == len(model.regularization_) == 2
    np.testing.assert_array_equal(model.predict(X), list(full.staged_predict(X))[1])


def test_scikit_learns_own_callbacks_work(rng, capsys):
    callback = pytest.importorskip("sklearn.callback")
    pytest.importorskip("rich")
    X, y = noisy_values(rng, 80, 4)
    monitor = callback.ScoringMonitor(scoring="r2")
    model = small().set_callbacks(callback.ProgressBar(), monitor).fit(X, y)
    assert "EDRVFLRegressor - fit" in capsys.readouterr().out
    by_layer = [row["r2"] for row in monitor.get_logs().data if row["task_name"] == "layer"]
    assert by_layer == [r2_score(y, stage) for stage in model.staged_predict(X)]


def test_verbose_prints_a_line_a_layer(rng, capsys):
    X, y = noisy_values(rng, 80, 4)
    model = small(verbose=1).fit(X, y)
    lines = capsys.readouterr().out.splitlines()
    expected = [f"leave-one-out R^2 {score:.4f}" for score in model.loo_r2_scores_]
    assert lines == [f"[EDRVFLRegressor] layer {l}/3: {text}" for l, text in enumerate(expected, start=1)]
    small(verbose=1, coverage_from=None).fit(X, y)
    first = capsys.readouterr().out.splitlines()[0]
    assert re.fullmatch(r"\[EDRVFLRegressor\] layer 1/3: training R\^2 0\.\d{4}", first)
    small().fit(X, y)
    assert capsys.readouterr().out == ""


def test_a_fit_that_fails_changes_nothing(rng):
    X, y = noisy_values(rng, 80, 4)
    model = small().fit(X, y)
    before, attributes = model.predict(X), set(vars(model))
    with pytest.raises(ValueError, match="missing value"):
        model.fit(X[:, :2], np.full(80, np.nan))
    with pytest.raises(ValueError, match="overflow"):
        model.set_params(renormalize=False, encoder=None).fit(X[:, :2] * 1e200, y)
    assert set(vars(model)) == attributes
    np.testing.assert_array_equal(model.set_params(renormalize=True, encoder="standard").predict(X), before)


def test_predict_before_fit_and_of_other_columns(rng):
    X, y = noisy_values(rng, 80, 4)
    frame = pd.DataFrame(X, columns=list("abcd"))
    for ask in (small().predict, lambda X: list(small().staged_predict(X))):
        with pytest.raises(NotFittedError):
            ask(X)
    with pytest.raises(ValueError, match="feature names should match those that were passed during fit"):
        small().fit(frame, y).predict(frame.rename(columns={"a": "z"}))
    with pytest.raises(ValueError, match="X has 3 features, but EDRVFLRegressor is expecting 4"):
        small().fit(X, y).predict(X[:, 1:])


@pytest.mark.parametrize(
    "params",
    [
        {"n_layers": 0},
        {"regularization": -1},
        {"coverage_from": "train"},
        {"correct_weight": 0},
        {"prune_rate": 1},
        {"layer_votes": "best"},
        {"encoder": "onehot"},
    ],
    ids=str,
)
def test_wrong_parameters(rng, params):
    with pytest.raises(ValueError, match=f"'{next(iter(params))}' parameter of EDRVFLRegressor"):
        EDRVFLRegressor(**params).fit(*noisy_values(rng, 30, 3))


def test_a_singular_gram_warns_where_fit_was_called(rng):
    X, y = noisy_values(rng, 80, 4)
    model = EDRVFLRegressor(n_layers=2, n_hidden=8, regularization=1e-14, renormalize=False, random_state=0)
    with pytest.warns(LinAlgWarning, match=r"singular in layer\(s\) 1, 2 with regularization=1e-14") as seen:
        model.fit(np.column_stack([X, X]), y)
    assert seen[0].filename == __file__
    assert np.isfinite(model.predict(np.column_stack([X, X]))).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_an_absurd_row_at_predict_is_finite(rng, dtype):
    X, y = noisy_values(rng, 80, 4)
    model = small().fit(X.astype(dtype), y)
    assert np.isfinite(model.predict(np.full((1, 4), np.finfo(dtype).max))).all()


def test_skewed_columns_do_not_make_the_answers_run_away(rng):
    Z = rng.normal(size=(400, 5))
    X, y = np.exp(3 * Z), Z[:, 0] + 2 * np.sin(Z[:, 1]) + 0.5 * rng.normal(size=400)
    assert EDRVFLRegressor(random_state=0).fit(X[:200], y[:200]).score(X[200:], y[200:]) > 0.8
