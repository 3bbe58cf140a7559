"""EDRVFLPortfolioClassifier: scikit-learn's contract, what its answer is made of, frames, bad input."""

import pickle
import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from helpers import FixedSeed, Recorder, assert_passes_scikit_learns_checks, noisy_rows, to_host
from scipy.special import softmax
from sklearn.base import clone
from sklearn.datasets import load_wine
from sklearn.exceptions import NotFittedError
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV
from sklearn.utils._array_api import move_estimator_to

from edrvfl import (
    EDRVFLClassifier,
    EDRVFLPortfolioClassifier,
    LaplaceRidgeClassifier,
    TabularEncoder,
    to_numpy,
)
from edrvfl._fitting import race
from edrvfl._layers.layers import fill_inputs, new_features, replay
from edrvfl._loo import pool
from edrvfl._loo.calibrate import calibrate
from edrvfl._loo.jury import Jury
from edrvfl._loo.pool import equal_kinds, keep_heavy, pool_weights
from edrvfl._models.network import Network

SHARED = {"n_layers": 2, "n_hidden": 12, "regularization": "loo", "weight_from": "loo", "ensemble": "mean"}
KERNEL = ("kernel", LaplaceRidgeClassifier(regularization=0.3, bandwidth=1.0))
DENSE = ("dense", EDRVFLClassifier(**SHARED, encoder="bins", pair_share=0.5, input_scaling="gradient"))
SPARSE = ("sparse", EDRVFLClassifier(**SHARED, encoder="robust", inputs_per_neuron=2, hidden_per_neuron=4))
# the same encoder as the dense network, but not its scaling
SIGMOID = ("sigmoid", EDRVFLClassifier(**SHARED, encoder="bins", activation="sigmoid", norm_scale=(1.0, 4.0)))
MEMBERS = [KERNEL, DENSE, SPARSE, SIGMOID]
ROUGH = {"members": [KERNEL, SIGMOID]}
# the default members, of 16 neurons a layer instead of hundreds
NARROW = [
    (name, member if name == "kernel" else member.set_params(n_hidden=16))
    for name, member in EDRVFLPortfolioClassifier.default_members()
]
GRID = [
    {"members": NARROW},
    {"members": MEMBERS, "finalists": 1},
    {**ROUGH, "weights": "equal", "calibration": None, "class_weight": "balanced"},
    {"members": [SPARSE], "finalists": None, "calibration": "temperature"},
    {"members": [KERNEL], "categorical_features": [0], "max_seconds": 1e-9, "n_jobs": 2},
]


def setting_name(params):
    return (
        "-".join(f"{k}={[n for n, _ in v] if k == 'members' else v}" for k, v in params.items()) or "defaults"
    )


def portfolio(**params):
    return EDRVFLPortfolioClassifier(**{"members": MEMBERS, "finalists": 2, "random_state": 0, **params})


@pytest.fixture
def wine():
    return load_wine(return_X_y=True, as_frame=True)


@pytest.mark.parametrize("params", GRID, ids=setting_name)
def test_scikit_learns_checks_pass(params):
    assert_passes_scikit_learns_checks(EDRVFLPortfolioClassifier(**params))


# --- what the answer is made of --------------------------------------------------------------------------


def alone(model, i, X, y):
    """Fit the member of a voter as an estimator alone; return its probabilities at the chosen depth."""
    voter, table = model.portfolio_.voters[i], model.members_
    place = np.flatnonzero(table["weight"])[i]
    estimator = clone(table["settings"][place]).set_params(calibration="temperature")
    if not isinstance(voter, Network):
        return estimator.fit(X, y).predict_proba(X)
    estimator.set_params(random_state=FixedSeed(voter.seed)).fit(X, y)
    assert table["n_layers"][place] == 1 + np.argmin(estimator.loo_log_losses_)
    assert table["n_hidden"][place] == estimator.n_hidden_
    assert table["loo_log_loss"][place] == pytest.approx(min(estimator.loo_log_losses_), rel=1e-6)
    return list(estimator.staged_predict_proba(X))[table["n_layers"][place] - 1]


@pytest.mark.parametrize("weights", ["loo", "equal"])
@pytest.mark.parametrize("calibration", ["loo", "temperature", None])
def test_the_answer_is_the_calibrated_mean_of_estimators_fitted_alone(noisy, weights, calibration):
    X, y = noisy
    model = portfolio(weights=weights, calibration=calibration, finalists=None).fit(X, y)
    kept = model.portfolio_
    assert len(kept.voters) >= 2
    answers = [alone(model, i, X, y) for i in range(len(kept.voters))]
    if weights == "equal":
        kinds = [hasattr(voter, "layers") for voter in kept.voters]
        np.testing.assert_allclose(kept.weights, equal_kinds(kinds))
    product = np.prod([P**w for P, w in zip(answers, kept.weights, strict=True)], axis=0)
    P = product / product.sum(axis=1, keepdims=True)
    expected = P if calibration is None else kept.calibration(P)
    assert (kept.calibration is None) == (calibration is None)
    np.testing.assert_allclose(model.predict_proba(X), expected, atol=1e-7)


def left_out_scores(D, Y, lam):
    """Fit a plain ridge again without each row."""
    scores = []
    for i in range(len(D)):
        A, B = np.delete(D, i, axis=0), np.delete(Y, i, axis=0)
        scores.append(D[i] @ np.linalg.solve(A.T @ A + lam * np.eye(D.shape[1]), A.T @ B))
    return np.array(scores)


def left_out_by_kernel(Z, Y, voter):
    """Fit a kernel ridge again without each row, with the same prior."""
    distance = np.sqrt(((Z[:, None, :] - Z[None, :, :]) ** 2).sum(axis=2))
    K, T, scores = np.exp(-distance / (voter.bandwidth * np.sqrt(Z.shape[1]))), Y - Y.mean(axis=0), []
    for i in range(len(Z)):
        rest = np.arange(len(Z)) != i
        ridge = KernelRidge(alpha=voter.lam, kernel="precomputed").fit(K[np.ix_(rest, rest)], T[rest])
        scores.append(ridge.predict(K[[i]][:, rest])[0] + Y.mean(axis=0))
    return np.array(scores)


def test_leave_one_out_figures_by_brute_force(rng):
    X, y = noisy_rows(rng, 60, 4)
    Y, ones = np.eye(3)[y], np.ones(60)
    plain = {"regularization": 0.5, "correct_weight": 1.0, "prune_rate": 0.0, "ensemble": "mean"}
    members = [
        ("kernel", LaplaceRidgeClassifier(bandwidth=0.5, regularization=0.2, input_scaling=None)),
        ("wide", EDRVFLClassifier(n_layers=2, n_hidden=15, **plain)),
        ("narrow", EDRVFLClassifier(n_layers=3, n_hidden=4, activation="sigmoid", **plain)),
    ]
    model = portfolio(members=members, finalists=None, weights="equal").fit(X, y)
    answers = []
    for voter in model.portfolio_.voters:
        if isinstance(voter, Network):
            D, layers = new_features(60, X, voter.n_hidden, voter.inputs), []
            fill_inputs(D, X, voter.inputs)
            for layer in voter.layers:
                replay(layer, voter.activation, D)
                layers.append(left_out_scores(D, Y, 0.5))
            P = softmax(np.mean(layers, axis=0), axis=1)
        else:
            P = softmax(left_out_by_kernel(voter.voter.inputs.apply(X), Y, voter.voter), axis=1)
        answers.append(calibrate(P, y, ones, "temperature")(P))
    losses = [log_loss(y, P) for P in answers]
    np.testing.assert_allclose(model.members_["loo_log_loss"], losses, rtol=1e-5)
    common = np.prod([P**w for P, w in zip(answers, model.members_["weight"], strict=True)], axis=0)
    common /= common.sum(axis=1, keepdims=True)
    common = calibrate(common, y, ones, "matrix")(common)
    assert model.loo_log_loss_ == pytest.approx(log_loss(y, common), rel=1e-4)
    assert model.loo_accuracy_ == pytest.approx(np.mean(common.argmax(axis=1) == y))
    # the weights are those of the same answers
    by_loo = clone(model).set_params(weights="loo").fit(X, y)
    expected = keep_heavy(pool_weights(answers, Jury(y, ones, ones > 0), np.array(model.members_["weight"])))
    np.testing.assert_allclose(by_loo.members_["weight"], expected, atol=1e-3)


def test_leave_one_out_figures_are_honest(rng):
    X, y = noisy_rows(rng, 2300, 4)
    model = portfolio().fit(X[:300], y[:300])
    P = model.predict_proba(X[300:])
    assert abs(model.loo_accuracy_ - np.mean(P.argmax(axis=1) == y[300:])) < 0.06
    assert abs(model.loo_log_loss_ - log_loss(y[300:], P)) < 0.1


# --- the table of members, and what is kept --------------------------------------------------------------


def test_the_table_of_members(noisy):
    X, y = noisy
    model = portfolio().fit(X, y)
    table = model.members_
    columns = [
        "member",
        "weight",
        "loo_accuracy",
        "loo_log_loss",
        "n_layers",
        "n_hidden",
        "seconds",
        "settings",
    ]
    assert list(table) == columns
    frame = pd.DataFrame(table)
    assert frame["member"].tolist() == [name for name, _ in MEMBERS]
    assert frame["weight"].sum() == pytest.approx(1)
    assert tuple(frame["weight"][frame["weight"] > 0]) == model.portfolio_.weights
    assert len(model.portfolio_.voters) == len(model.portfolio_.weights)
    assert frame["n_layers"].isna().tolist() == [True, False, False, False]
    assert frame["loo_accuracy"].between(0, 1).all()
    assert (frame["seconds"] > 0).all()
    for (_, given), noted in zip(MEMBERS, table["settings"], strict=True):
        assert noted is not given
        fitted = {} if noted is table["settings"][0] else {"n_layers": 3, "input_scaling": None}
        assert noted.get_params() == given.get_params() | fitted
        assert not hasattr(noted, "classes_")


def test_layers_beyond_the_chosen_depth_are_not_kept(noisy):
    X, y = noisy
    # samples that a layer gets right count nearly nothing in the next
    extreme = EDRVFLClassifier(n_layers=6, n_hidden=60, regularization=0.1, correct_weight=0.01)
    model = portfolio(members=[("extreme", extreme.set_params(weight_from="loo"))]).fit(X, y)
    (network,) = model.portfolio_.voters
    assert len(network.layers) == len(network.readouts) == model.members_["n_layers"][0] < 6
    np.testing.assert_allclose(model.portfolio_.calibration(alone(model, 0, X, y)), model.predict_proba(X))


def test_members_of_negligible_weight_are_not_kept(rng, monkeypatch):
    monkeypatch.setattr(pool, "NEGLIGIBLE", 0.2)
    X, y = noisy_rows(rng, 400, 4)
    useless = ("useless", EDRVFLClassifier(n_layers=1, n_hidden=1, regularization=1e9))
    strong = ("strong", EDRVFLClassifier(n_layers=2, n_hidden=40, regularization=1.0))
    model = portfolio(members=[useless, strong], finalists=None).fit(X, y)
    assert model.members_["weight"] == [0, 1]
    (voter,) = model.portfolio_.voters
    assert voter.n_hidden == 40


def test_the_default_table_is_a_list_to_change(noisy):
    X, y = noisy
    table = EDRVFLPortfolioClassifier.default_members()
    assert len({name for name, _ in table}) == len(table) > 1
    again = dict(EDRVFLPortfolioClassifier.default_members())
    for name, estimator in table:
        assert estimator is not again[name]  # a change of one list leaves the other
        assert estimator.get_params() == again[name].get_params()
    default = EDRVFLPortfolioClassifier(random_state=0).fit(X, y)
    given = EDRVFLPortfolioClassifier(members=table, random_state=0).fit(X, y)
    np.testing.assert_array_equal(given.predict_proba(X), default.predict_proba(X))
    assert given.members_["member"] == [name for name, _ in table]


def test_fitting_leaves_the_members_as_they_were(noisy):
    before = [vars(estimator).copy() for _, estimator in MEMBERS]
    portfolio().fit(*noisy)
    assert [vars(estimator) for _, estimator in MEMBERS] == before


# --- answers ---------------------------------------------------------------------------------------------


def test_labels_are_where_the_probability_is_largest(noisy):
    X, y = noisy
    names = np.array(["no", "perhaps", "yes"])[y]
    model = portfolio().fit(X, names)
    P = model.predict_proba(X)
    np.testing.assert_array_equal(model.predict(X), model.classes_[P.argmax(axis=1)])
    np.testing.assert_allclose(model.predict_log_proba(X), np.log(P))
    np.testing.assert_array_equal(model.decision_function(X).argmax(axis=1), P.argmax(axis=1))
    assert model.classes_.tolist() == ["no", "perhaps", "yes"]
    np.testing.assert_array_equal(P, portfolio().fit(X, y).predict_proba(X))


def test_two_classes_have_log_odds(noisy):
    X, y = noisy[0], noisy[1] > 0
    model = portfolio().fit(X, y)
    P = model.predict_proba(X)
    np.testing.assert_allclose(model.decision_function(X), np.log(P[:, 1] / P[:, 0]), atol=1e-10)
    assert model.predict(X).dtype == bool


def test_same_seed_same_bits_other_seed_other_networks(noisy):
    X, y = noisy
    one, two = (portfolio().fit(X, y).predict_proba(X) for _ in range(2))
    np.testing.assert_array_equal(one, two)
    assert np.abs(portfolio(random_state=1).fit(X, y).predict_proba(X) - one).max() > 1e-3
    seeds = [
        voter.seed for voter in portfolio(finalists=None, weights="equal").fit(X, y).portfolio_.voters[1:]
    ]
    assert len(set(seeds)) == 3


def test_copies_answer_alike(noisy):
    X, y = noisy
    model = portfolio().fit(X, y)
    P = model.predict_proba(X)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict_proba(X), P)
    np.testing.assert_array_equal(clone(model).fit(X, y).predict_proba(X), P)
    np.testing.assert_array_equal(model.fit(X[:, :3], y == 0).fit(X, y).predict_proba(X), P)


def test_what_decides_an_answer_is_fitted(noisy):
    X, y = noisy
    model = portfolio(members=[(name, clone(estimator)) for name, estimator in MEMBERS]).fit(X, y)
    before = model.predict_proba(X)
    model.members[1][1].set_params(activation="sin", n_hidden=3, ensemble="vote")
    model.set_params(members=[KERNEL], calibration=None, weights="equal", random_state=5, finalists=None)
    np.testing.assert_array_equal(model.predict_proba(X), before)


def test_in_a_search(noisy):
    X, y = noisy
    search = GridSearchCV(portfolio(members=[KERNEL, SIGMOID]), {"calibration": [None, "loo"]}, cv=2).fit(
        X, y
    )
    assert search.best_score_ > 0.5


# --- frames ----------------------------------------------------------------------------------------------


def mixed_frame(rng, library, m):
    """Draw a table with words, numbers and gaps, and labels that need both columns."""
    kind, size = rng.choice(["red", "green", "blue"], m), rng.standard_normal(m)
    y = np.where((kind == "red") ^ (size > 0), "yes", "no")
    size[::17] = np.nan
    words = [None if i % 23 == 0 else str(k) for i, k in enumerate(kind)]
    return library.DataFrame({"kind": words, "size": size, "noise": rng.standard_normal(m)}), y


@pytest.mark.parametrize("library", [pd, pl], ids=["pandas", "polars"])
def test_frames_with_categories_and_gaps(rng, library):
    frame, y = mixed_frame(rng, library, 300)
    model = portfolio().fit(frame[:200], y[:200])
    assert list(model.feature_names_in_) == ["kind", "size", "noise"]
    assert model.score(frame[200:], y[200:]) > 0.85
    strange = library.DataFrame({"kind": ["violet", None], "size": [np.nan, 1e300], "noise": [0.0, np.nan]})
    assert np.isfinite(model.predict_proba(strange)).all()
    copy = to_numpy(pickle.loads(pickle.dumps(model)))
    np.testing.assert_array_equal(copy.predict(frame), model.predict(frame))


def test_pandas_and_polars_are_the_same_table(rng):
    answers = []
    for library in (pd, pl):
        frame, y = mixed_frame(np.random.default_rng(0), library, 80)
        answers.append(portfolio().fit(frame, y).predict_proba(frame))
    np.testing.assert_allclose(*answers, atol=1e-12)


def test_columns_of_categories_can_be_named(rng):
    X = np.column_stack([rng.integers(0, 6, 240), rng.standard_normal(240)]).astype(float)
    y = np.isin(X[:, 0], [0, 2, 5]).astype(int)  # no order of the numbers helps
    for where in ([0], [True, False]):
        model = portfolio(members=[SPARSE], categorical_features=where).fit(X, y)
        assert len(model.portfolio_.voters[0].inputs.source) >= 7
    frame = pd.DataFrame(X, columns=["code", "size"])
    by_name = portfolio(members=[SPARSE], categorical_features=["code"]).fit(frame, y)
    np.testing.assert_array_equal(by_name.predict_proba(frame), model.predict_proba(X))


# --- weights ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("class_weight", [None, "balanced"])
def test_weights_count_rows(rng, class_weight):
    X, y = noisy_rows(rng, 80, 4)
    counts = rng.integers(0, 3, 80)
    rows = rng.permutation(np.repeat(np.arange(80), counts))
    # Leave-one-out chooses among penalties by accuracy, where rounding may decide; these are given.
    networks = [(name, clone(e).set_params(regularization=0.5)) for name, e in (DENSE, SPARSE, SIGMOID)]
    model = portfolio(members=[KERNEL, *networks], class_weight=class_weight)
    weighted = clone(model).fit(X, y, sample_weight=counts)
    repeated = clone(model).fit(X[rows], y[rows])
    np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), atol=1e-4)
    np.testing.assert_allclose(weighted.members_["weight"], repeated.members_["weight"], atol=1e-3)
    assert weighted.loo_log_loss_ == pytest.approx(repeated.loo_log_loss_, abs=1e-4)
    assert weighted.loo_accuracy_ == pytest.approx(repeated.loo_accuracy_)


def test_a_weight_of_zero_leaves_the_row_out(noisy):
    X, y = noisy
    weights = (np.arange(len(y)) < 60).astype(float)
    model = portfolio().fit(X, y, sample_weight=weights)
    np.testing.assert_allclose(
        model.predict_proba(X), portfolio().fit(X[:60], y[:60]).predict_proba(X), atol=1e-6
    )


def test_class_weights_move_the_boundary(rng):
    X = rng.standard_normal((500, 3))
    y = (X[:, 0] + rng.standard_normal(500) > 1.8).astype(int)
    plain = portfolio().fit(X, y).predict(X).mean()
    balanced = portfolio(class_weight="balanced").fit(X, y)
    assert balanced.predict(X).mean() > 1.5 * plain
    by_hand = dict(enumerate(len(y) / (2 * np.bincount(y))))
    np.testing.assert_allclose(
        portfolio(class_weight=by_hand).fit(X, y).predict_proba(X), balanced.predict_proba(X), atol=1e-6
    )
    three = noisy_rows(rng, 90, 3)
    assert portfolio(class_weight={0: 0}).fit(*three).classes_.tolist() == [1, 2]


# --- array libraries -------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_every_library_makes_the_same_portfolio(xp, noisy, dtype):
    X, y = noisy[0].astype(dtype), noisy[1]
    expected = portfolio().fit(X, y)
    with sklearn.config_context(array_api_dispatch=True):
        model = portfolio().fit(xp.asarray(X), xp.asarray(y))
        P = model.predict_proba(xp.asarray(X))
        home = to_numpy(model)
    assert str(P.dtype).endswith(dtype)
    np.testing.assert_allclose(
        to_host(P), expected.predict_proba(X), atol=1e-5 if dtype == "float64" else 0.02
    )
    # in float32 a row is not quite at distance 0 from itself, in each library by another rounding
    rounding = 1e-10 if dtype == "float64" else 2e-3
    np.testing.assert_allclose(home.predict_proba(X), to_host(P), atol=rounding)
    assert isinstance(home.classes_, np.ndarray)
    assert home.members_["member"] == expected.members_["member"]


def test_float32_stays_float32(noisy):
    X, y = noisy
    model = portfolio().fit(X.astype(np.float32), y)
    assert model.predict_proba(X).dtype == np.float32
    for voter in model.portfolio_.voters:
        array = voter.readouts[0] if isinstance(voter, Network) else voter.voter.alpha
        assert array.dtype == np.float32
    np.testing.assert_allclose(model.predict_proba(X), portfolio().fit(X, y).predict_proba(X), atol=0.05)


def test_string_labels_beside_torch_rows_and_the_way_there(noisy):
    torch = pytest.importorskip("array_api_compat.torch")
    X, names = noisy[0], np.array(["a", "b", "c"])[noisy[1]]
    here = portfolio().fit(X, names)
    with sklearn.config_context(array_api_dispatch=True):
        model = portfolio().fit(torch.asarray(X), names)
        np.testing.assert_array_equal(model.predict(torch.asarray(X)), here.predict(X))
        with pytest.raises(ValueError, match="must use the same namespace and the same device"):
            model.predict(X)
        moved = move_estimator_to(here, torch, "cpu")
        np.testing.assert_array_equal(moved.predict(torch.asarray(X)), here.predict(X))


def test_a_portfolio_that_knows_words_moves_to_another_library(rng):
    torch = pytest.importorskip("array_api_compat.torch")
    frame, y = mixed_frame(rng, pd, 80)
    model = portfolio().fit(frame, y)
    P = model.predict_proba(frame)
    moved = model.portfolio_.__sklearn_array_api_convert__(torch.asarray)
    for part in (moved, *moved.voters):
        assert part.columns is model.portfolio_.columns  # frames are read in NumPy
    assert isinstance(moved.like, torch.Tensor)
    model.portfolio_ = moved.__sklearn_array_api_convert__(to_host)
    np.testing.assert_array_equal(model.predict_proba(frame), P)


# --- following a fit -------------------------------------------------------------------------------------


def test_callbacks_are_told(noisy):
    recorder = Recorder()
    portfolio().set_callbacks(recorder).fit(*noisy)
    # four members, and two that go on
    pieces = ["begin member", "end member"] * 6
    assert recorder.told == ["setup", "begin fit", *pieces, "end fit", "teardown"]


@pytest.mark.parametrize("stop_after", [1, 2, 4, 5])
def test_a_callback_can_end_the_fit(noisy, stop_after):
    X, y = noisy
    model = portfolio().set_callbacks(Recorder(stop_after)).fit(X, y)
    assert len(model.members_["member"]) == min(stop_after, 4)
    assert sum(model.members_["weight"]) == pytest.approx(1)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)


def test_verbose_prints_a_line_for_each_piece_of_work(noisy, capsys):
    model = portfolio(verbose=1).fit(*noisy)
    lines = capsys.readouterr().out.splitlines()
    figures = r"leave-one-out accuracy [01]\.\d{4}, log-loss \d\.\d{4}, \d+\.\d s"
    assert len(lines) == 6
    for line in lines:
        assert re.fullmatch(rf"\[EDRVFLPortfolioClassifier\] (kernel|\w+, [12] layers?): {figures}", line), (
            line
        )
    assert sum("2 layers" in line for line in lines) == 2
    figure = f"accuracy {model.members_['loo_accuracy'][0]:.4f}"
    assert any("kernel" in line and figure in line for line in lines)
    portfolio().fit(*noisy)
    assert capsys.readouterr().out == ""


# --- bad input -------------------------------------------------------------------------------------------


def one(**params):
    return [("one", EDRVFLClassifier(n_layers=1, n_hidden=4, **params))]


@pytest.mark.parametrize(
    ("params", "error", "message"),
    [
        ({"members": []}, ValueError, "at least one .name, estimator.; None takes the default"),
        ({"members": "paper"}, ValueError, "'members' parameter"),
        ({"members": [DENSE[1]]}, ValueError, "must be a list of .name, estimator., but one of them is"),
        ({"members": [("a", "b", "c")]}, ValueError, "must be a list of .name, estimator."),
        ({"members": [(3, DENSE[1])]}, ValueError, "must be a list of .name, estimator."),
        (
            {"members": [("a", LogisticRegression())]},
            TypeError,
            "'a' must be an EDRVFLClassifier or a Laplace",
        ),
        ({"members": [("a", EDRVFLClassifier)]}, TypeError, "'a' must be an EDRVFLClassifier or a Laplace"),
        ({"members": [DENSE, KERNEL, DENSE]}, ValueError, "must differ, got dense, kernel, dense"),
        ({"members": one(encoder=None)}, ValueError, "'one' has encoder=None"),
        (
            {"members": one(class_weight="balanced")},
            ValueError,
            "'one' sets class_weight, which the portfolio",
        ),
        ({"members": one(random_state=0)}, ValueError, "'one' sets random_state, which the portfolio"),
        ({"members": one(calibration=None)}, ValueError, "'one' sets calibration, which the portfolio"),
        ({"members": one(layer_votes="weighted")}, ValueError, "'one' sets layer_votes, which the portfolio"),
        (
            {"members": one(encoder=TabularEncoder(categorical_features=[0]))},
            ValueError,
            "'one' sets categorical_features, which the portfolio",
        ),
        ({"members": one(activation="gelu")}, ValueError, "'activation' parameter of EDRVFLClassifier"),
        ({"members": one(encoder=TabularEncoder("bins", n_bins=1))}, ValueError, "n_bins"),
        ({"finalists": 0}, ValueError, "'finalists' parameter"),
        ({"finalists": True}, ValueError, "'finalists' parameter"),
        ({"weights": "best"}, ValueError, "'weights' parameter"),
        ({"calibration": "isotonic"}, ValueError, "'calibration' parameter"),
        ({"max_seconds": 0}, ValueError, "'max_seconds' parameter"),
        ({"class_weight": "even"}, ValueError, "'class_weight' parameter"),
    ],
    ids=str,
)
def test_wrong_parameters(noisy, params, error, message):
    with pytest.raises(error, match=message):
        portfolio(**params).fit(*noisy)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (np.zeros(90), "EDRVFLPortfolioClassifier needs at least two classes, but y holds only one class"),
        (np.linspace(0, 1, 90), "Unknown label type: continuous"),
        (None, "requires y to be passed"),
        (np.zeros(5), "inconsistent numbers of samples"),
    ],
)
def test_targets_that_are_not_classes(noisy, y, message):
    with pytest.raises(ValueError, match=message):
        portfolio().fit(noisy[0], y)


def test_a_fit_that_fails_changes_nothing(noisy, monkeypatch):
    X, y = noisy
    model = portfolio().fit(X, y)
    before, attributes = model.predict_proba(X), set(vars(model))
    with pytest.raises(ValueError, match="one class"):
        model.fit(X[:, :3], np.zeros(90))
    monkeypatch.setattr(race, "fit_kernel_model", lambda *_: 1 / 0)  # a failure in the middle
    with pytest.raises(ZeroDivisionError):
        model.fit(X[:, :3], y)
    assert set(vars(model)) == attributes
    np.testing.assert_array_equal(model.predict_proba(X), before)


def test_predict_before_fit_and_of_other_columns(wine):
    X, y = wine
    with pytest.raises(NotFittedError):
        portfolio().predict(X)
    model = portfolio(members=[KERNEL, SIGMOID]).fit(X, y)
    with pytest.raises(ValueError, match="feature names should match those that were passed during fit"):
        model.predict(X.rename(columns={"alcohol": "spirit"}))
    with pytest.raises(ValueError, match="infinity"):
        model.predict(X.replace(X.iloc[3, 2], np.inf))


# --- unusual input that must work ------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:The number of unique classes is greater than 50%:UserWarning")
def test_as_many_classes_as_rows(rng):
    X, y = rng.standard_normal((12, 3)), np.arange(12)
    model = portfolio().fit(X, y)
    assert np.isfinite(model.predict_proba(X)).all()
    assert np.isfinite(model.loo_log_loss_)


def test_two_rows(rng):
    model = portfolio().fit([[0.0], [1.0]], [0, 1])
    assert np.isfinite(model.predict_proba([[0.0], [1.0], [np.nan]])).all()


def test_absurd_rows_and_constant_columns(noisy):
    X, y = noisy
    X = np.column_stack([X, np.full(90, 3.0)])
    model = portfolio().fit(X, y)
    assert np.isfinite(model.predict_proba(np.full((1, 6), np.finfo(float).max))).all()
    assert np.isfinite(
        portfolio().fit(np.ones((20, 2)), np.arange(20) % 2).predict_proba(np.ones((1, 2)))
    ).all()


def test_one_row_at_predict_is_the_same_row_among_many(noisy):
    X, y = noisy
    model = portfolio().fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X[5:6])[0], model.predict_proba(X)[5], atol=1e-12)


def test_a_fitted_portfolio_does_not_hold_its_training_rows(noisy):
    X, y = noisy
    like = portfolio().fit(X, y).portfolio_.like
    assert like.base is None
    assert like.size == 0


def test_a_bad_parameter_of_a_member_is_named(noisy):
    members = [("odd one", EDRVFLClassifier(n_hidden=-1))]
    with pytest.raises(ValueError, match="Member 'odd one': The 'n_hidden' parameter"):
        EDRVFLPortfolioClassifier(members=members).fit(*noisy)
