"""EDRVFLRegressor: the reference loops, leave-one-out, units and forms of y."""

import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
import reference
from helpers import FixedSeed, features_by_layer, noisy_values, scores_by_layer
from scipy.linalg import LinAlgWarning
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.inspection import permutation_importance
from sklearn.linear_model import Ridge
from sklearn.metrics import r2_score
from sklearn.model_selection import GridSearchCV, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from edrvfl import EDRVFLRegressor
from edrvfl._layers.layers import ACTIVATIONS
from edrvfl._ridge.choose import LAMBDAS


def small(**params):
    return EDRVFLRegressor(
        **{"n_layers": 3, "n_hidden": 16, "encoder": "standard", "random_state": 0, **params}
    )


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
    X[26:], y[29] = X[[0, 0, 1, 2]], y[2]  # copies, of which the last has the same values too
    twins = np.unique(X, axis=0, return_inverse=True)[1]
    counts = rng.choice([0.4, 1.0, 3.0], 30) if weighted else np.ones(30)
    model = EDRVFLRegressor(n_layers=2, n_hidden=n_hidden, regularization=regularization, random_state=0).fit(
        X, y, counts if weighted else None
    )
    mean = np.average(y, axis=0, weights=counts)
    sd = np.sqrt(np.average((y - mean) ** 2, axis=0, weights=counts))
    Y, left_out = (y - mean) / sd, []
    for l, D in enumerate(features_by_layer(model.network_, X)):
        lam = model.regularization_[l]
        if regularization == "loo":
            losses = {}
            for candidate in LAMBDAS:
                alone = reference.scores_without_each_row(D, Y, candidate, np.ones(30), counts, twins)
                losses[candidate] = np.average(((alone - Y) ** 2).mean(axis=1), weights=counts)
            assert lam == min(losses, key=losses.get)
        left_out.append(reference.scores_without_each_row(D, Y, lam, np.ones(30), counts, twins))
        if lam > 0:
            ridge = Ridge(lam, fit_intercept=False, solver="svd").fit(D, Y, counts)
            np.testing.assert_allclose(
                D @ model.network_.readouts[l], ridge.predict(D) * sd + mean, atol=1e-8
            )
        own = r2_score(y, D @ model.network_.readouts[l], sample_weight=counts)
        assert model.train_r2_scores_[l] == pytest.approx(own, abs=1e-9)
        together = np.mean(left_out, axis=0) * sd + mean
        expected = r2_score(y, together, sample_weight=counts)
        if regularization != "loo":  # else folds judge: see fitting/test_folds.py
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


@pytest.mark.parametrize("votes", ["prefix", "weighted"])
def test_votes_do_not_raise_the_leave_one_out_error(rng, votes):
    X, y = noisy_values(rng, 200, 4)
    extreme = {"n_layers": 6, "n_hidden": 60, "correct_weight": 0.01, "regularization": 1.0}
    equal, other = (small(**extreme, layer_votes=v).fit(X, y) for v in ("equal", votes))
    if votes == "prefix":
        assert other.n_layers_ == 1 + np.argmax(equal.loo_r2_scores_) < 6
        np.testing.assert_array_equal(other.predict(X), list(equal.staged_predict(X))[other.n_layers_ - 1])
    else:
        assert other.loo_r2_scores_[-1] > equal.loo_r2_scores_[-1]
        scores, weights = scores_by_layer(other.network_, X), other.network_.votes
        np.testing.assert_allclose(other.predict(X), np.average(scores, axis=0, weights=weights)[:, 0])


# --- units of y ------------------------------------------------------------------------------------------


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


def test_a_constant_among_many_weighted_rows_is_a_constant(rng):
    X, y = noisy_values(rng, 100_000, 2 + 1)
    model = EDRVFLRegressor(n_layers=1, n_hidden=4, random_state=0, coverage_from=None)
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


# --- array libraries, frames, copies ---------------------------------------------------------------------


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


def test_a_singular_gram_warns_where_fit_was_called(rng):
    X, y = noisy_values(rng, 80, 4)
    model = EDRVFLRegressor(n_layers=2, n_hidden=8, regularization=1e-14, renormalize=False, random_state=0)
    with pytest.warns(LinAlgWarning, match=r"singular in layers 1, 2 with regularization=1e-14") as seen:
        model.fit(np.column_stack([X, X]), y)
    assert seen[0].filename == __file__
    assert np.isfinite(model.predict(np.column_stack([X, X]))).all()
