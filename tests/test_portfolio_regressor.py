"""EDRVFLPortfolioRegressor: scikit-learn's contract, what its answer is made of, units, bad input."""

import pickle
import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from helpers import (
    FixedSeed,
    Recorder,
    assert_passes_scikit_learns_checks,
    features_by_layer,
    noisy_values,
    to_host,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import scores_without_each_row
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge
from sklearn.metrics import r2_score
from sklearn.utils._array_api import move_estimator_to

from edrvfl import (
    EDRVFLClassifier,
    EDRVFLPortfolioRegressor,
    EDRVFLRegressor,
    LaplaceRidgeRegressor,
    to_numpy,
)
from edrvfl._fitting import race
from edrvfl._loo.jury import ValueJury
from edrvfl._loo.pool import equal_kinds, keep_heavy, pool_weights
from edrvfl._models.network import Network

KERNEL = ("kernel", LaplaceRidgeRegressor())
SHARED = {"n_layers": 2, "n_hidden": 12}
DENSE = ("dense", EDRVFLRegressor(**SHARED, encoder="bins", pair_share=0.5, input_scaling="gradient"))
SPARSE = ("sparse", EDRVFLRegressor(**SHARED, encoder="robust", inputs_per_neuron=2, hidden_per_neuron=4))
SIGMOID = (
    "sigmoid",
    EDRVFLRegressor(
        **SHARED, encoder="bins", activation="sigmoid", norm_scale=(1.0, 4.0), correct_weight=0.5
    ),
)
MEMBERS = [KERNEL, DENSE, SPARSE, SIGMOID]
# the default members, of 16 neurons a layer instead of hundreds
NARROW = [
    (name, member if name == "kernel" else member.set_params(n_hidden=16))
    for name, member in EDRVFLPortfolioRegressor.default_members()
]
GRID = [
    {"members": NARROW},
    {"members": MEMBERS, "finalists": 1},
    {"members": [KERNEL, SIGMOID], "weights": "equal"},
    {"members": [SPARSE], "finalists": None},
    {"members": [KERNEL], "categorical_features": [0], "max_seconds": 1e-9, "n_jobs": 2},
]


def portfolio(**params):
    return EDRVFLPortfolioRegressor(**{"members": MEMBERS, "finalists": 2, "random_state": 0, **params})


@pytest.mark.parametrize(
    "params", GRID, ids=["defaults", "one finalist", "equal", "no kernel", "kernel alone"]
)
def test_scikit_learns_checks_pass(params):
    assert_passes_scikit_learns_checks(EDRVFLPortfolioRegressor(**params))


# --- what the answer is made of --------------------------------------------------------------------------


def alone(model, i, X, y):
    """Fit the member of a voter as an estimator alone; return its values at the chosen depth."""
    voter, table = model.portfolio_.voters[i], model.members_
    place = np.flatnonzero(table["weight"])[i]
    estimator = clone(table["settings"][place])
    if not isinstance(voter, Network):
        estimator.fit(X, y)
        assert table["loo_r2_score"][place] == pytest.approx(estimator.loo_r2_score_)
        return estimator.predict(X)
    estimator.set_params(random_state=FixedSeed(voter.seed)).fit(X, y)
    assert table["n_layers"][place] == 1 + np.argmax(estimator.loo_r2_scores_)
    assert table["n_hidden"][place] == estimator.n_hidden_
    assert table["loo_r2_score"][place] == pytest.approx(max(estimator.loo_r2_scores_))
    return list(estimator.staged_predict(X))[table["n_layers"][place] - 1]


@pytest.mark.parametrize("weights", ["loo", "equal"])
@pytest.mark.parametrize("k", [None, 2])
def test_the_answer_is_the_mean_of_estimators_fitted_alone(rng, weights, k):
    X, y = noisy_values(rng, 90, 4, k)
    model = portfolio(weights=weights, finalists=None).fit(X, y)
    kept = model.portfolio_
    assert len(kept.voters) >= 2
    answers = [alone(model, i, X, y) for i in range(len(kept.voters))]
    if weights == "equal":
        np.testing.assert_allclose(kept.weights, equal_kinds([isinstance(v, Network) for v in kept.voters]))
    np.testing.assert_allclose(model.predict(X), np.average(answers, axis=0, weights=kept.weights), atol=1e-8)
    assert kept.calibration is None
    assert kept.classes is None


def left_out_by_kernel(Z, Y, voter):
    """Fit a kernel ridge again without each row."""
    K, scores = np.exp(-cdist(Z, Z) / (voter.bandwidth * np.sqrt(Z.shape[1]))), []
    for i in range(len(Z)):
        rest = np.arange(len(Z)) != i
        ridge = KernelRidge(alpha=voter.lam, kernel="precomputed").fit(K[np.ix_(rest, rest)], Y[rest])
        scores.append(np.atleast_1d(ridge.predict(K[[i]][:, rest])[0]))
    return np.array(scores)


@pytest.mark.parametrize("k", [1, 2])
def test_leave_one_out_figures_and_weights_by_brute_force(rng, k):
    X, y = noisy_values(rng, 60, 4, k)
    mean, sd, ones = y.mean(axis=0), y.std(axis=0), np.ones(60)
    Y, lam = (y - mean) / sd, 0.5
    members = [
        ("kernel", LaplaceRidgeRegressor(bandwidth=0.5, regularization=0.2, input_scaling=None)),
        ("wide", EDRVFLRegressor(n_layers=2, n_hidden=15, regularization=lam)),
        ("narrow", EDRVFLRegressor(n_layers=3, n_hidden=4, activation="sigmoid", regularization=lam)),
    ]
    model = portfolio(members=members, finalists=None, weights="equal").fit(X, y)
    answers = []
    for voter in model.portfolio_.voters:
        if isinstance(voter, Network):
            each = [scores_without_each_row(D, Y, lam, ones, ones) for D in features_by_layer(voter, X)]
            answers.append(np.mean(each, axis=0))
        else:
            answers.append(left_out_by_kernel(voter.voter.inputs.apply(X), Y, voter.voter))
    figures = [r2_score(y, P * sd + mean) for P in answers]
    np.testing.assert_allclose(model.members_["loo_r2_score"], figures, atol=1e-7)
    common = np.average(answers, axis=0, weights=model.members_["weight"])
    assert model.loo_r2_score_ == pytest.approx(r2_score(y, common * sd + mean), abs=1e-7)
    # the weights are those of the same answers
    by_loo = clone(model).set_params(weights="loo").fit(X, y)
    expected = keep_heavy(pool_weights(answers, ValueJury(Y, ones), np.array(model.members_["weight"])))
    np.testing.assert_allclose(by_loo.members_["weight"], expected, atol=1e-3)
    assert by_loo.loo_r2_score_ > model.loo_r2_score_


def test_leave_one_out_is_honest(rng):
    X, y = noisy_values(rng, 2300, 4)
    model = portfolio().fit(X[:300], y[:300])
    assert abs(model.loo_r2_score_ - model.score(X[300:], y[300:])) < 0.06


def test_of_many_rows_a_part_is_judged(rng):
    X, y = noisy_values(rng, 14_000, 3)
    networks = [("a", SPARSE[1]), ("b", clone(SIGMOID[1]).set_params(n_hidden=30))]
    model = portfolio(members=networks).fit(X[:12_000], y[:12_000])
    assert abs(model.loo_r2_score_ - model.score(X[12_000:], y[12_000:])) < 0.03


def test_the_table_of_members(rng):
    X, y = noisy_values(rng, 90, 4)
    model = portfolio().fit(X, y)
    frame = pd.DataFrame(model.members_)
    columns = ["member", "weight", "loo_r2_score", "n_layers", "n_hidden", "seconds", "settings"]
    assert list(frame) == columns
    assert frame["member"].tolist() == [name for name, _ in MEMBERS]
    assert frame["weight"].sum() == pytest.approx(1)
    assert tuple(frame["weight"][frame["weight"] > 0]) == model.portfolio_.weights
    assert frame["n_layers"].isna().tolist() == [True, False, False, False]
    for (_, member), noted in zip(MEMBERS, model.members_["settings"], strict=True):
        assert noted is not member
        assert noted.get_params() == member.get_params()


def test_those_of_the_smallest_error_grow_on(rng):
    X, y = noisy_values(rng, 200, 4)
    hopeless = ("hopeless", EDRVFLRegressor(n_layers=2, n_hidden=4, regularization=1e9))
    model = portfolio(members=[hopeless, DENSE, SPARSE], verbose=0).fit(X, y)
    table = pd.DataFrame(model.members_).set_index("member")
    assert table.loc["hopeless", "weight"] == 0
    assert table.loc["hopeless", "loo_r2_score"] == pytest.approx(0, abs=0.02)


def test_the_default_table_is_a_list_to_change(rng):
    X, y = noisy_values(rng, 60, 3)
    table = EDRVFLPortfolioRegressor.default_members()
    again = dict(EDRVFLPortfolioRegressor.default_members())
    assert all(estimator is not again[name] for name, estimator in table)
    default = EDRVFLPortfolioRegressor(random_state=0).fit(X, y)
    given = EDRVFLPortfolioRegressor(members=table, random_state=0).fit(X, y)
    np.testing.assert_array_equal(given.predict(X), default.predict(X))


# --- weights and units -----------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [None, 2])
def test_neither_order_nor_repetition_of_rows_matters(k):
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X, y = noisy_values(rng, 70, 4, k)
        if k:
            y[:, 1] -= 3 * y[:, 0]
        counts = rng.integers(0, 4, 70)
        rows = rng.permutation(np.repeat(np.arange(70), counts))
        weighted, repeated = portfolio().fit(X, y, counts), portfolio().fit(X[rows], y[rows])
        np.testing.assert_allclose(weighted.predict(X), repeated.predict(X), atol=1e-6)
        np.testing.assert_allclose(weighted.members_["weight"], repeated.members_["weight"], atol=1e-6)
        assert weighted.loo_r2_score_ == pytest.approx(repeated.loo_r2_score_, abs=1e-7)


def test_a_weight_of_zero_leaves_the_row_out(rng):
    X, y = noisy_values(rng, 80, 4)
    some = np.arange(80) < 60
    model = portfolio().fit(X, np.where(some, y, 1e9), some)
    np.testing.assert_allclose(model.predict(X), portfolio().fit(X[some], y[some]).predict(X), atol=1e-6)


@settings(max_examples=10)
@given(size=st.floats(-250, 250), offset=st.floats(-1e5, 1e5), seed=st.integers(0, 3))
def test_answers_have_the_units_of_y(size, offset, seed):
    X, y = noisy_values(np.random.default_rng(seed), 40, 3)
    scale = 10.0**size
    plain, other = portfolio().fit(X, y), portfolio().fit(X, scale * (y + offset))
    np.testing.assert_allclose(other.predict(X) / scale - offset, plain.predict(X), atol=1e-5)
    assert other.loo_r2_score_ == pytest.approx(plain.loo_r2_score_, abs=1e-6)


def test_constant_values(rng):
    X, y = noisy_values(rng, 50, 4)
    model = portfolio().fit(X, np.full(50, 0.1))
    np.testing.assert_allclose(model.predict(2 * X), 0.1, rtol=1e-15)
    assert model.loo_r2_score_ == 1
    beside = portfolio().fit(X, np.column_stack([np.full(50, -7.0), y]))
    np.testing.assert_allclose(beside.predict(X)[:, 0], -7.0, rtol=1e-15)
    assert beside.loo_r2_score_ == pytest.approx((1 + portfolio().fit(X, y).loo_r2_score_) / 2, abs=0.05)


def test_float32_in_float32_out_and_accurate(rng):
    X, y = noisy_values(rng, 200, 4)
    exact = portfolio().fit(X, y).predict(X)
    single = portfolio().fit(X.astype(np.float32), 1e3 + y).predict(X.astype(np.float32))
    assert single.dtype == np.float32
    np.testing.assert_allclose(single - 1e3, exact, atol=0.05)


# --- libraries, frames, copies ---------------------------------------------------------------------------


@pytest.mark.parametrize("k", [None, 2])
def test_every_library_makes_the_same_portfolio(xp, rng, k):
    X, y = noisy_values(rng, 70, 4, k)
    expected = portfolio().fit(X, y)
    with sklearn.config_context(array_api_dispatch=True):
        model = portfolio().fit(xp.asarray(X), xp.asarray(y))
        values, home = model.predict(xp.asarray(X)), to_numpy(model)
        if xp.__name__.endswith("torch"):
            moved = move_estimator_to(expected, xp, "cpu")
            np.testing.assert_allclose(to_host(moved.predict(xp.asarray(X))), expected.predict(X), atol=1e-9)
    np.testing.assert_allclose(to_host(values), expected.predict(X), atol=1e-6)
    np.testing.assert_allclose(home.predict(X), to_host(values), atol=1e-10)
    assert model.loo_r2_score_ == pytest.approx(expected.loo_r2_score_, abs=1e-7)


@pytest.mark.parametrize("library", [pd, pl], ids=["pandas", "polars"])
def test_frames_with_categories_and_gaps(rng, library):
    kind, size = rng.choice(["red", "green", "blue"], 300), rng.standard_normal(300)
    y = np.where(kind == "red", size, -size)
    size[::17] = np.nan
    words = [None if i % 23 == 0 else str(k) for i, k in enumerate(kind)]
    frame = library.DataFrame({"kind": words, "size": size, "noise": rng.standard_normal(300)})
    model = portfolio().fit(frame[:200], y[:200])
    assert list(model.feature_names_in_) == ["kind", "size", "noise"]
    assert model.score(frame[200:], y[200:]) > 0.7
    strange = library.DataFrame({"kind": ["violet", None], "size": [np.nan, 1e300], "noise": [0.0, np.nan]})
    assert np.isfinite(model.predict(strange)).all()
    copy = to_numpy(pickle.loads(pickle.dumps(model)))
    np.testing.assert_array_equal(copy.predict(frame), model.predict(frame))


def test_copies_and_seeds(rng):
    X, y = noisy_values(rng, 80, 4)
    members = [(name, clone(estimator)) for name, estimator in MEMBERS]
    model = portfolio(members=members).fit(X, y)
    values = model.predict(X)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X), values)
    np.testing.assert_array_equal(clone(model).fit(X, y).predict(X), values)
    np.testing.assert_allclose(model.predict(X[5:6]), values[5:6], atol=1e-12)
    assert np.abs(portfolio(random_state=1).fit(X, y).predict(X) - values).max() > 1e-3
    model.members[1][1].set_params(activation="sin", n_hidden=3)
    model.set_params(members=[KERNEL], weights="equal", random_state=5, finalists=None)
    np.testing.assert_array_equal(model.predict(X), values)


# --- following a fit -------------------------------------------------------------------------------------


@pytest.mark.parametrize("stop_after", [None, 1, 4, 5])
def test_callbacks_are_told_and_can_end_the_fit(rng, stop_after):
    X, y = noisy_values(rng, 80, 4)
    recorder = Recorder(stop_after)
    model = portfolio().set_callbacks(recorder).fit(X, y)
    pieces = ["begin member", "end member"] * (stop_after or 6)  # four members, and two that go on
    assert recorder.told == ["setup", "begin fit", *pieces, "end fit", "teardown"]
    assert len(model.members_["member"]) == min(stop_after or 6, 4)
    assert sum(model.members_["weight"]) == pytest.approx(1)
    assert np.isfinite(model.predict(X)).all()


def test_when_time_is_up_there_is_one_layer_of_one_network(rng):
    X, y = noisy_values(rng, 80, 4)
    model = portfolio(max_seconds=1e-9).fit(X, y)
    assert model.members_["member"] == ["dense"]
    assert model.members_["n_layers"] == [1]
    assert len(model.portfolio_.voters[0].layers) == 1
    assert portfolio(max_seconds=1e9).fit(X, y).members_["member"] == [name for name, _ in MEMBERS]


def test_two_processes_give_the_same(rng, monkeypatch):
    monkeypatch.setattr(race, "WORTH_PROCESSES", 0)
    X, y = noisy_values(rng, 80, 4, 2)
    one, two = (portfolio(n_jobs=n).fit(X, y) for n in (1, 2))
    np.testing.assert_allclose(two.predict(X), one.predict(X), atol=1e-12)
    assert two.members_["weight"] == pytest.approx(one.members_["weight"])


def test_verbose_prints_a_line_for_each_piece_of_work(rng, capsys):
    model = portfolio(verbose=1).fit(*noisy_values(rng, 80, 4))
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 6
    for line in lines:
        assert re.fullmatch(
            r"\[EDRVFLPortfolioRegressor\] (kernel|\w+, [12] layer\(s\)): "
            r"leave-one-out R\^2 -?\d\.\d{4}, \d+\.\d s",
            line,
        ), line
    assert any(f"R^2 {model.members_['loo_r2_score'][0]:.4f}" in line for line in lines if "kernel" in line)


# --- bad input -------------------------------------------------------------------------------------------


def one(**params):
    return [("one", EDRVFLRegressor(n_layers=1, n_hidden=4, **params))]


@pytest.mark.parametrize(
    ("params", "error", "message"),
    [
        ({"members": []}, ValueError, "at least one .name, estimator.; None takes the default"),
        (
            {"members": [("a", Ridge())]},
            TypeError,
            "'a' must be an EDRVFLRegressor or a LaplaceRidgeRegressor",
        ),
        ({"members": [("a", EDRVFLClassifier())]}, TypeError, "'a' must be an EDRVFLRegressor or a Laplace"),
        ({"members": [DENSE, DENSE]}, ValueError, "must differ, got dense, dense"),
        ({"members": one(encoder=None)}, ValueError, "'one' has encoder=None"),
        ({"members": one(random_state=0)}, ValueError, "'one' sets random_state, which the portfolio"),
        ({"members": one(layer_votes="prefix")}, ValueError, "'one' sets layer_votes, which the portfolio"),
        ({"members": one(activation="gelu")}, ValueError, "Member 'one': The 'activation' parameter"),
        ({"finalists": 0}, ValueError, "'finalists' parameter"),
        ({"weights": "best"}, ValueError, "'weights' parameter"),
    ],
    ids=str,
)
def test_wrong_parameters(rng, params, error, message):
    with pytest.raises(error, match=message):
        portfolio(**params).fit(*noisy_values(rng, 30, 4))


def test_a_fit_that_fails_changes_nothing(rng, monkeypatch):
    X, y = noisy_values(rng, 60, 4)
    with pytest.raises(NotFittedError):
        portfolio().predict(X)
    model = portfolio().fit(X, y)
    before, attributes = model.predict(X), set(vars(model))
    for bad, message in [
        (np.full(60, np.nan), "y has a missing value in row 0"),
        (np.full(60, "a"), "EDRVFLPortfolioRegressor predicts numbers, but y holds 'a'"),
        (np.zeros(5), "inconsistent numbers of samples"),
    ]:
        with pytest.raises(ValueError, match=message):
            model.fit(X[:, :2], bad)
    monkeypatch.setattr(race, "fit_voter", lambda *_: 1 / 0)  # a failure in the middle
    with pytest.raises(ZeroDivisionError):
        model.fit(X[:, :2], y)
    assert set(vars(model)) == attributes
    np.testing.assert_array_equal(model.predict(X), before)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_few_rows_and_absurd_ones(rng, n):
    X, y = noisy_values(rng, 3, 4)
    model = portfolio().fit(X[:n], y[:n])
    assert np.isfinite(model.predict(np.vstack([X, np.full((1, 4), np.finfo(float).max)]))).all()
    assert np.isfinite(model.loo_r2_score_)
