"""A search of portfolios and kernel voters against GridSearchCV: each configuration is fitted alone."""

import re
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import sklearn
from helpers import Recorder, assert_passes_scikit_learns_checks
from scipy import stats
from sklearn.base import clone
from sklearn.datasets import load_wine
from sklearn.exceptions import FitFailedWarning
from sklearn.metrics import get_scorer
from sklearn.model_selection import GridSearchCV, GroupKFold, PredefinedSplit, RandomizedSearchCV

from edrvfl import (
    EDRVFLClassifier,
    EDRVFLPortfolioClassifier,
    EDRVFLSearchCV,
    LaplaceRidgeClassifier,
    TabularEncoder,
    to_numpy,
)

KERNEL = LaplaceRidgeClassifier(bandwidth=1.0, regularization=0.5, input_scaling=None, random_state=0)
MEMBERS = [
    ("kernel", clone(KERNEL).set_params(random_state=None)),
    ("wide", EDRVFLClassifier(n_hidden=12, n_layers=2, regularization=1.0)),
    ("narrow", EDRVFLClassifier(n_hidden=6, n_layers=2, regularization=1.0, activation="sin")),
]
PORTFOLIO = EDRVFLPortfolioClassifier(members=MEMBERS, finalists=1, random_state=0)
OF_KERNEL = {"bandwidth": [0.5, 2.0], "calibration": ["temperature", None]}
OF_PORTFOLIO = {"members": [MEMBERS, MEMBERS[:0:-1]], "weights": ["loo", "equal"]}
both = pytest.mark.parametrize(
    ("estimator", "space"), [(KERNEL, OF_KERNEL), (PORTFOLIO, OF_PORTFOLIO)], ids=["kernel", "portfolio"]
)


@pytest.fixture
def wine():
    X, y = load_wine(return_X_y=True)
    X = X + 2 * X.std(axis=0) * np.random.default_rng(0).standard_normal(X.shape)  # hard to tell apart
    return X[:, 4:10], y


def by_split(search):
    return np.stack([search.cv_results_[f"split{i}_test_score"] for i in range(search.n_splits_)], axis=1)


def grid_of(estimator, space, **params):
    return EDRVFLSearchCV(estimator, space, **{"n_iter": None, "cv": 3, **params})


def theirs(search, X, y, **metadata):
    """The same search by scikit-learn."""
    params = {"cv": search.cv, "scoring": search.scoring, "error_score": search.error_score}
    return GridSearchCV(search.estimator, search.param_distributions, **params).fit(X, y, **metadata)


def mixed_rows(m=90):
    rng = np.random.default_rng(4)
    X = pd.DataFrame(
        {
            "real": rng.standard_normal(m),
            "whole": rng.integers(0, 4, m),
            "text": rng.choice(["red", "blue", "green"], m).astype(object),
        }
    )
    score = X["real"] + (X["text"] == "red") + (X["whole"] == 2) + 0.5 * rng.standard_normal(m)
    X.loc[rng.random(m) < 0.1, "real"] = None
    return X, np.digitize(score, [0.3, 1.2])


# --- the same scores as GridSearchCV ----------------------------------------------------------------------


@both
@pytest.mark.parametrize("scoring", [None, "neg_log_loss", "roc_auc_ovr"])
def test_results_are_those_of_scikit_learns_search(wine, estimator, space, scoring):
    search = grid_of(estimator, space, scoring=scoring).fit(*wine)
    expected = theirs(search, *wine)
    np.testing.assert_allclose(by_split(search), by_split(expected), rtol=0, atol=1e-12)
    assert len(np.unique(by_split(search), axis=0)) > 1
    table, of_theirs = search.cv_results_, expected.cv_results_
    assert {name for name in of_theirs if not name.endswith("_time")} == set(table)
    for name in ("params", *(f"param_{name}" for name in space)):
        assert list(table[name]) == list(of_theirs[name])
    np.testing.assert_array_equal(table["rank_test_score"], of_theirs["rank_test_score"])
    assert search.best_params_ == expected.best_params_
    assert search.best_score_ == pytest.approx(expected.best_score_, abs=1e-12)
    X = wine[0]
    np.testing.assert_array_equal(search.predict_proba(X), expected.best_estimator_.predict_proba(X))
    np.testing.assert_array_equal(search.classes_, expected.classes_)


def test_draws_are_those_of_scikit_learns_search(wine):
    space = {"bandwidth": stats.loguniform(0.1, 4), "regularization": stats.loguniform(0.1, 10)}
    params = {"n_iter": 4, "cv": 2, "random_state": 5, "refit": False}
    ours, expected = (
        kind(KERNEL, space, **params).fit(*wine) for kind in (EDRVFLSearchCV, RandomizedSearchCV)
    )
    assert ours.cv_results_["params"] == expected.cv_results_["params"]
    np.testing.assert_allclose(by_split(ours), by_split(expected), atol=1e-12)


@pytest.mark.parametrize(
    ("estimator", "space", "requested"), [(KERNEL, OF_KERNEL, False), (PORTFOLIO, {"finalists": [1]}, True)]
)
def test_weights_count_as_in_scikit_learns_search(wine, estimator, space, requested):
    weights = np.random.default_rng(0).integers(0, 4, len(wine[1])).astype(float)
    with sklearn.config_context(enable_metadata_routing=True):
        scorer = get_scorer("f1_macro").set_score_request(sample_weight=requested)
        search = grid_of(estimator, space, scoring=scorer, refit=False).fit(*wine, sample_weight=weights)
        search.estimator = clone(estimator).set_fit_request(sample_weight=True)
        expected = theirs(search, *wine, sample_weight=weights)
    np.testing.assert_allclose(by_split(search), by_split(expected), atol=1e-12)


def test_weights_count_in_kernels_and_groups_reach_the_splitter(wine):
    X, y = wine
    weights, groups = np.random.default_rng(0).integers(0, 4, len(y)), np.arange(len(y)) % 7
    search = grid_of(KERNEL, {"bandwidth": [0.3]}, cv=GroupKFold(3)).fit(X, y, weights, groups=groups)
    for i, (train, test) in enumerate(GroupKFold(3).split(X, y, groups)):
        model = clone(KERNEL).set_params(bandwidth=0.3).fit(X[train], y[train], weights[train])
        expected = model.score(X[test], y[test], weights[test])
        assert search.cv_results_[f"split{i}_test_score"][0] == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    "library", [pl.DataFrame, pa.table, lambda X: X.to_numpy(), lambda X: X.to_numpy().tolist()]
)
def test_frames_are_searched_as_they_come(library):
    X, y = mixed_rows()
    encoders = ["standard", TabularEncoder("bins"), TabularEncoder(categorical_features=[1])]
    for estimator, space in ((KERNEL, {"encoder": encoders}), (PORTFOLIO, {"categorical_features": [[1]]})):
        search = grid_of(estimator, space, scoring="neg_log_loss", refit=False).fit(library(X), y)
        np.testing.assert_allclose(by_split(search), by_split(theirs(search, X, y)), atol=1e-12)


def test_a_scorer_may_ask_about_other_rows_and_other_things(wine):
    asks = {
        "other rows": lambda model, X, y: (model.predict(-X) == y).mean(),
        "some rows": lambda model, X, y: model.predict_proba(X[:10])[:, 0].mean(),
        "what was learnt": lambda model, X, y: model.loo_log_loss_,
        "parameters": lambda model, X, y: model.finalists,
    }
    for scoring in asks.values():
        search = grid_of(PORTFOLIO, {"finalists": [1]}, scoring=scoring, refit=False).fit(*wine)
        np.testing.assert_allclose(by_split(search), by_split(theirs(search, *wine)), atol=1e-12)


def test_a_scorer_sees_a_frame_as_a_frame():
    X, y = mixed_rows()

    def score(model, X, y):
        return model.predict_proba(X[X["text"] == "red"])[:, 0].mean()

    search = grid_of(KERNEL, {"bandwidth": [0.5, 1.0]}, scoring=score).fit(X, y)
    np.testing.assert_allclose(by_split(search), by_split(theirs(search, X, y)), atol=1e-12)


def test_a_class_absent_from_a_training_split_has_probability_0(wine):
    X, y = wine
    fold = np.where(y == 2, 0, np.arange(len(y)) % 2)  # class 2 is only ever validated
    for scoring in ("neg_log_loss", lambda model, X, y: -model.predict_proba(-X)[:, 2].max()):
        search = grid_of(KERNEL, {"bandwidth": [1.0]}, cv=PredefinedSplit(fold), scoring=scoring).fit(X, y)
        found = search.cv_results_["split0_test_score"][0]
        assert found < -5 if scoring == "neg_log_loss" else found == 0


@pytest.mark.parametrize(
    ("estimator", "space", "scoring"),
    [(KERNEL, OF_KERNEL, None), (PORTFOLIO, {"weights": ["loo", "equal"]}, "balanced_accuracy")],
    ids=["kernel", "portfolio"],
)
def test_torch_rows(wine, estimator, space, scoring):
    torch = pytest.importorskip("torch")
    X, y = wine
    search = grid_of(estimator, space, scoring=scoring)
    expected = clone(search).fit(X, y)
    with sklearn.config_context(array_api_dispatch=True):
        search.fit(torch.asarray(X), torch.asarray(y), torch.ones(len(y), dtype=torch.float64))
        assert isinstance(search.predict_proba(torch.asarray(X)), torch.Tensor)
        home = to_numpy(search)
    np.testing.assert_allclose(by_split(search), by_split(expected), atol=1e-9)
    np.testing.assert_allclose(home.predict_proba(X), expected.predict_proba(X), atol=1e-9)


# --- the winner -------------------------------------------------------------------------------------------


def test_one_seed_serves_the_search_and_the_refit(wine):
    X, y = wine
    portfolio = clone(PORTFOLIO).set_params(random_state=None)
    search = grid_of(portfolio, {"finalists": [1, 2]}, scoring="neg_log_loss", random_state=0).fit(X, y)
    assert isinstance(search.best_estimator_.random_state, int)
    again = grid_of(clone(search.best_estimator_), {"finalists": [1, 2]}, scoring="neg_log_loss").fit(X, y)
    np.testing.assert_array_equal(by_split(search), by_split(again))


def test_an_ensemble_averages_different_configurations(wine):
    search = grid_of(KERNEL, OF_KERNEL, ensemble_size=3).fit(*wine)
    assert len({(model.bandwidth, model.calibration) for model in search.estimators_}) == 3
    mean = np.mean([model.predict_proba(wine[0]) for model in search.estimators_], axis=0)
    np.testing.assert_allclose(search.predict_proba(wine[0]), mean, atol=1e-12)


def test_no_configuration_is_tried_twice(wine):
    search = grid_of(KERNEL, {"bandwidth": [1.0, 2.0, 1.0]}, cv=2).fit(*wine)
    assert [row["bandwidth"] for row in search.cv_results_["params"]] == [1.0, 2.0]
    # members that differ where scikit-learn cuts the text of a long list of them
    many = [
        [(f"network {i}", EDRVFLClassifier(n_hidden=6 + (i == at))) for i in range(60)] for at in (29, 30)
    ]
    assert repr(many[0]) != repr(many[1])
    tried = EDRVFLSearchCV(PORTFOLIO, {"members": many}, n_iter=None)._rows()
    assert [row.candidate.number for row in tried] == [0, 1]


# --- what goes wrong --------------------------------------------------------------------------------------


def test_a_configuration_that_fails_gets_the_error_score(wine):
    space = {"class_weight": [None, {0: 1, 1: 0, 2: 0}]}
    for error_score in (np.nan, -1.0):
        search = grid_of(KERNEL, space, error_score=error_score)
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            search.fit(*wine)
            expected = theirs(search, *wine)
        assert re.search("3 of 6 scores .* needs at least two classes", str(told[0].message))
        assert told[0].category is FitFailedWarning
        np.testing.assert_allclose(by_split(search), by_split(expected), atol=1e-12)
        assert search.best_params_ == {"class_weight": None}
    with pytest.raises(ValueError, match="needs at least two classes"):
        search.set_params(error_score="raise").fit(*wine)
    with pytest.raises(ValueError, match=r"All 3 scores failed.*needs at least two classes"):
        grid_of(KERNEL, {"class_weight": [{0: 1, 1: 0, 2: 0}]}).fit(*wine)


def test_a_scorer_that_fails_is_excused_once(wine):
    def score(model, X, y):
        if model.bandwidth == 0.5:
            raise ZeroDivisionError("no such thing")
        return model.score(X, y)

    search = grid_of(KERNEL, {"bandwidth": [0.5, 1.0]}, scoring=score)
    with pytest.warns(), pytest.warns(FitFailedWarning, match=r"3 of 6 scores .* ZeroDivisionError: no such"):
        search.fit(*wine)
    with pytest.raises(ZeroDivisionError):
        search.set_params(error_score="raise").fit(*wine)


@pytest.mark.parametrize("estimator", [KERNEL, EDRVFLClassifier(n_hidden=8, n_layers=2, random_state=0)])
@pytest.mark.parametrize("first", [None, "standard"])
def test_candidates_that_cannot_read_the_rows_fail_alone(estimator, first):
    X, y = mixed_rows()
    encoders = [first, "standard" if first is None else None]
    search = grid_of(estimator, {"encoder": encoders}, error_score=-1.0)
    with pytest.warns(FitFailedWarning, match=r"of \d+ scores are error_score=-1.*these are not: text"):
        search.fit(X, y)
    fails = np.array([row["encoder"] is None for row in search.cv_results_["params"]])
    assert fails.sum() == len(fails) / 2
    assert (by_split(search)[fails] == -1).all()
    alone = clone(search).set_params(param_distributions={"encoder": ["standard"]}).fit(X, y)
    np.testing.assert_array_equal(by_split(search)[~fails], by_split(alone))
    np.testing.assert_array_equal(search.predict(X), alone.predict(X))
    for params in ({"error_score": "raise"}, {"param_distributions": {"encoder": [None]}}):
        with pytest.raises(ValueError, match=r"these are not: text\. "):
            clone(search).set_params(**params).fit(X, y)


@pytest.mark.parametrize(
    ("estimator", "space", "error", "message"),
    [
        (KERNEL, None, ValueError, "the paper's box, which is for networks.*LaplaceRidgeClassifier"),
        (PORTFOLIO, None, ValueError, "networks.*EDRVFLPortfolioClassifier. Say what to try"),
        (PORTFOLIO, {"n_layers": [1]}, ValueError, "Invalid parameter 'n_layers'"),
        (PORTFOLIO, {"encoder__n_bins": [4]}, ValueError, "Invalid parameter 'encoder'"),
        (PORTFOLIO, {"weights": ["best"]}, ValueError, "'weights' parameter of EDRVFLPortfolio"),
        (PORTFOLIO, {"members": [[("a", None)]]}, TypeError, "Member 'a' must be"),
        (KERNEL, {"encoder__n_bins": [4]}, ValueError, "encoder='bins'.*TabularEncoder"),
        (KERNEL, {"bandwidth": [0.0]}, ValueError, "'bandwidth' parameter"),
        (KERNEL, {"bandwidth": []}, ValueError, "'bandwidth'.*non-empty"),
        (sklearn.linear_model.LogisticRegression(), {"C": [1.0]}, ValueError, "'estimator' parameter"),
    ],
)
@pytest.mark.parametrize("n_iter", [None, 2])
def test_what_cannot_be_searched_is_said(wine, estimator, space, error, message, n_iter):
    with pytest.raises(error, match=message):
        EDRVFLSearchCV(estimator, space, n_iter=n_iter).fit(*wine)


# --- processes, following, as an estimator ----------------------------------------------------------------


def n_jobs_of(model, X, y):
    return model.n_jobs


def test_processes_change_nothing_and_start_no_others(wine):
    search = grid_of(KERNEL, OF_KERNEL, scoring="neg_log_loss")
    one, two = (clone(search).set_params(n_jobs=n_jobs).fit(*wine) for n_jobs in (1, 2))
    np.testing.assert_array_equal(by_split(one), by_split(two))
    portfolio = clone(PORTFOLIO).set_params(n_jobs=2, members=MEMBERS[:1])
    search = grid_of(portfolio, {"weights": ["equal"]}, scoring=n_jobs_of)
    for n_jobs, inside in ((1, 2), (2, 1)):
        search.set_params(n_jobs=n_jobs).fit(*wine)
        assert set(by_split(search).ravel()) == {inside}
        assert search.best_estimator_.n_jobs == 2


@both
def test_callbacks_and_lines_follow_the_search(wine, estimator, space, capsys):
    recorder = Recorder()
    search = grid_of(estimator, {name: values[:2] for name, values in space.items()}, cv=2, ensemble_size=2)
    search.set_params(verbose=1).set_callbacks(recorder).fit(*wine)
    assert recorder.told.count("begin part") == recorder.told.count("end part") == 4 * 2
    assert recorder.told.count("end model") == 2
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 8
    assert lines[-1].startswith("[EDRVFLSearchCV] 8/8: split 2/2, configuration 4, best 0.")


def test_scikit_learns_checks_pass():
    kernel = clone(KERNEL).set_params(random_state=None)
    assert_passes_scikit_learns_checks(EDRVFLSearchCV(kernel, {"bandwidth": [1.0]}, cv=2))
