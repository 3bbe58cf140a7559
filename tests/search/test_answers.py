"""A search over encoders, calibrations and votes: every score is that of the network fitted alone."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import sklearn
from helpers import PAPER
from searches import by_split, mixed_rows
from sklearn.base import clone
from sklearn.exceptions import FitFailedWarning
from sklearn.metrics import check_scoring, log_loss
from sklearn.model_selection import ParameterGrid, check_cv
from sklearn.utils import _safe_indexing

from edrvfl import EDRVFLClassifier, EDRVFLSearchCV, TabularEncoder
from edrvfl._fitting.settings import encoder_settings
from edrvfl._inputs.encoding import largest_width
from edrvfl._inputs.table import learn_table, open_table
from edrvfl._search.candidates import result_rows
from edrvfl._search.metrics import metric_of
from edrvfl._search.run import score_split
from edrvfl._search.scorer import Sample, Scoring, Search

SMALL = EDRVFLClassifier(n_hidden=8, n_layers=2, regularization=1.0, random_state=0, **PAPER)
ANSWERS = {"calibration": [None, "temperature", "matrix"], "layer_votes": ["equal", "prefix", "weighted"]}
SPLIT = [(np.arange(60), np.arange(60, 90))]
SCORINGS = [None, "neg_log_loss", "roc_auc_ovr"]
every_scoring = pytest.mark.parametrize("scoring", SCORINGS, ids=["accuracy", "log-loss", "by call"])


def alone(search, X, y, weights=None):
    """Scores (row, split) of the rows of a search, every network fitted alone."""
    scores = []
    for row in search.cv_results_["params"]:
        for train, test in check_cv(search.cv).split(X, y):
            w = {} if weights is None else {"sample_weight": weights[train]}
            model = clone(search.estimator).set_params(**row).fit(_safe_indexing(X, train), y[train], **w)
            w = {} if weights is None else {"sample_weight": weights[test]}
            scorer = check_scoring(model, search.scoring)
            scores.append(scorer(model, _safe_indexing(X, test), y[test], **w))
    return np.reshape(scores, (len(search.cv_results_["params"]), -1))


# --- the same scores as networks fitted alone -------------------------------------------------------------


@every_scoring
def test_every_calibration_vote_and_encoder_scores_as_fitted_alone(scoring):
    X, y = mixed_rows()
    encoders = ["standard", "bins", TabularEncoder("robust", categorical_features=["whole"])]
    space = {**ANSWERS, "encoder": encoders}
    n_iter = None if scoring == "neg_log_loss" else 9  # of the 27
    search = EDRVFLSearchCV(SMALL, space, n_iter=n_iter, cv=SPLIT, scoring=scoring, random_state=0).fit(X, y)
    np.testing.assert_allclose(by_split(search), alone(search, X, y), atol=1e-12)
    rebuilt = clone(SMALL).set_params(**search.best_params_).fit(X, y)
    np.testing.assert_array_equal(search.predict_proba(X), rebuilt.predict_proba(X))
    if scoring == "neg_log_loss":  # three votes are one with a single layer, and at least two with two layers
        assert len(np.unique(by_split(search).round(9))) >= 3 * 3 * (1 + 2)


@pytest.mark.parametrize("ensemble", ["mean", "vote"])
@pytest.mark.parametrize("k", [2, 3])
def test_other_rules_and_penalties_by_leave_one_out(ensemble, k):
    X, y = mixed_rows(k=k)
    network = clone(SMALL).set_params(ensemble=ensemble, regularization="loo")
    params = {"n_iter": None, "cv": SPLIT, "scoring": "neg_log_loss", "refit": False}
    search = EDRVFLSearchCV(network, ANSWERS, **params).fit(X, y)
    np.testing.assert_allclose(by_split(search), alone(search, X, y), atol=1e-12)


@every_scoring
def test_weights_count_as_in_networks_fitted_alone(scoring):
    X, y = mixed_rows()
    weights = np.random.default_rng(0).integers(0, 3, len(y)).astype(float)
    scoring = "f1_macro" if scoring == "roc_auc_ovr" else scoring or "accuracy"
    network = clone(SMALL).set_params(encoder="bins", class_weight={0: 1, 1: 2, 2: 1})
    search = EDRVFLSearchCV(network, ANSWERS, n_iter=None, cv=SPLIT, scoring=scoring, refit=False)
    search.fit(X, y, weights)
    np.testing.assert_allclose(by_split(search), alone(search, X, y, weights), atol=1e-10)


@pytest.mark.parametrize(
    ("scoring", "weighted"), [("accuracy", False), ("neg_log_loss", True), ("f1_macro", True)]
)
def test_rows_that_a_network_alone_holds_back_are_not_fitted(scoring, weighted):
    X, y = mixed_rows()
    weights = np.random.default_rng(0).integers(0, 3, len(y)).astype(float) if weighted else None
    space = {"coverage_from": ["loo", "split"], "layer_votes": ["equal", "prefix"], "random_state": [0, 1]}
    search = EDRVFLSearchCV(SMALL, space, n_iter=None, cv=SPLIT, scoring=scoring, refit=False)
    search.fit(X, y, weights)
    np.testing.assert_allclose(by_split(search), alone(search, X, y, weights), atol=1e-10)


def test_a_part_of_the_rows_is_judged_as_in_the_network_alone(monkeypatch):
    monkeypatch.setattr("edrvfl._inputs.chosen.n_judged", lambda m, k: min(m, 25))
    X, y = mixed_rows()
    space = {
        "layer_votes": ["prefix", "weighted"],
        "weight_from": ["train", "loo"],
        "regularization": [1.0, "loo"],
    }
    params = {"n_iter": None, "cv": SPLIT, "scoring": "neg_log_loss", "refit": False}
    search = EDRVFLSearchCV(SMALL, space, **params).fit(X, y)
    np.testing.assert_allclose(by_split(search), alone(search, X, y), atol=1e-12)


@pytest.mark.parametrize(
    ("library", "layer_votes", "ensemble"),
    [
        *(("numpy", votes, "softmax") for votes in ANSWERS["layer_votes"]),
        ("numpy", "weighted", "vote"),
        ("torch", "prefix", "softmax"),
        ("torch", "equal", "vote"),
    ],
)
def test_stacks_side_by_side_score_as_fitted_alone(library, layer_votes, ensemble):
    xp = pytest.importorskip(library)
    X, y = mixed_rows()
    X = X[["real", "whole"]].to_numpy(dtype=float)
    space = {"regularization": [0.1, 10.0], "norm_scale": [1.0, 1.5], "prune_rate": [0.0, 0.3]}
    network = clone(SMALL).set_params(layer_votes=layer_votes, ensemble=ensemble, encoder="bins")
    tried = list(dict.fromkeys(row.candidate for row in result_rows(network, list(ParameterGrid(space)))))
    (train, test), found = SPLIT[0], []
    with sklearn.config_context(array_api_dispatch=True):
        table, columns = learn_table(open_table(xp.asarray(X)))
        for stacked in (False, True):
            scoring = Scoring(np.unique(y), metric_of("neg_log_loss", classifies=True))
            search = Search(Sample(table, y, None), columns, scoring, stacked)
            found.append(score_split(search, tried, SPLIT[0], memory=2**30)[0])
    np.testing.assert_allclose(*found, atol=1e-6)
    for one, scores in zip(tried, found[1], strict=True):
        model = clone(one.estimator).fit(X[train], y[train])
        assert scores[-1] == pytest.approx(-log_loss(y[test], model.predict_proba(X[test])), abs=1e-6)


# --- encoders ---------------------------------------------------------------------------------------------

READERS = [
    "standard",
    TabularEncoder(categorical_features=["whole"]),
    TabularEncoder(categorical_features=[1]),
    TabularEncoder("robust", categorical_features=[False, True, False], min_frequency=1),
    TabularEncoder("bins", max_categories=2),
]


@every_scoring
def test_encoders_that_read_columns_otherwise_are_searched_together(scoring):
    X, y = mixed_rows()
    search = EDRVFLSearchCV(SMALL, {"encoder": READERS}, n_iter=None, cv=SPLIT, scoring=scoring).fit(X, y)
    np.testing.assert_allclose(by_split(search), alone(search, X, y), atol=1e-12)
    assert len(search.cv_results_["params"]) == 2 * len(READERS)
    assert list(search.feature_names_in_) == list(X.columns)
    with pytest.raises(ValueError, match="yet now missing:\n- whole"):
        search.predict(X.drop(columns="whole"))


@pytest.mark.parametrize("scoring", SCORINGS[1:], ids=["log-loss", "by call"])
def test_frames_of_every_library_are_searched_alike(scoring):
    X, y = mixed_rows()
    params = {"n_iter": None, "cv": SPLIT, "scoring": scoring, "ensemble_size": 3}
    expected = None
    for library in (pd.DataFrame, pl.DataFrame, pa.table):
        search = EDRVFLSearchCV(SMALL, {"encoder": READERS}, **params).fit(library(X), y)
        expected = alone(search, X, y) if expected is None else expected
        np.testing.assert_allclose(by_split(search), expected, atol=1e-12)
        new = X.assign(text="never seen", real=np.nan)
        mean = np.mean([model.predict_proba(new) for model in search.estimators_], axis=0)
        np.testing.assert_allclose(search.predict_proba(library(new)), mean, atol=1e-12)
        assert len({repr(model.encoder) for model in search.estimators_}) == 3


@pytest.mark.parametrize("scoring", SCORINGS[1:], ids=["log-loss", "by call"])
def test_arrays_are_searched_alike(scoring):
    torch = pytest.importorskip("torch")
    X, y = mixed_rows()
    X = X[["real", "whole"]].to_numpy(dtype=float)
    readers = [
        TabularEncoder(categorical_features=[1]),
        "bins",
        None,
        TabularEncoder(categorical_features=None),
    ]
    if np.isnan(X).any():
        readers.remove(None)  # which takes no gaps
    search = EDRVFLSearchCV(SMALL, {"encoder": readers}, n_iter=None, cv=SPLIT, scoring=scoring)
    expected = alone(search.fit(X, y), X, y)
    for given in (X, torch.asarray(X), X.astype(object), X.tolist()):
        with sklearn.config_context(array_api_dispatch=torch.is_tensor(given)):
            search.fit(given, y)
        np.testing.assert_allclose(by_split(search), expected, atol=1e-9)


def test_a_scorer_sees_the_rows_as_they_came():
    X, y = mixed_rows()
    rows = X.to_numpy(dtype=object)

    def score(model, X, y):
        assert set(X[:, 2]) <= {"red", "blue", "green", None, np.nan}
        some = X[:, 2] == "red"
        return model.predict_proba(X[some])[:, 0].mean()

    for reader in READERS[::-1]:
        if isinstance(reader, TabularEncoder) and reader.categorical_features == ["whole"]:
            continue  # an array has no names
        network = clone(SMALL).set_params(encoder=reader)
        search = EDRVFLSearchCV(network, {"regularization": [1.0, 2.0]}, n_iter=None, cv=SPLIT, scoring=score)
        np.testing.assert_allclose(by_split(search.fit(rows, y)), alone(search, rows, y), atol=1e-12)


def test_an_encoder_is_learnt_from_the_training_rows_of_a_split():
    X, y = mixed_rows()
    X.loc[45:, "text"] = "only later"
    X.loc[45:, "real"] = 1e6
    cv = [(np.arange(45), np.arange(45, 90))]
    search = EDRVFLSearchCV(SMALL, {"encoder": READERS}, n_iter=None, cv=cv, scoring="neg_log_loss")
    np.testing.assert_allclose(by_split(search.fit(X, y)), alone(search, X, y), atol=1e-12)


def test_huge_numbers_are_searched_without_a_warning():
    X, y = mixed_rows()
    X["real"] *= 1e307
    search = EDRVFLSearchCV(SMALL, {"encoder": READERS}, n_iter=None, cv=SPLIT, scoring="neg_log_loss")
    np.testing.assert_allclose(by_split(search.fit(X, y)), alone(search, X, y), atol=1e-12)


@pytest.mark.parametrize("encoder", [*READERS, TabularEncoder("bins", max_columns=5)], ids=repr)
def test_the_width_that_memory_is_planned_for_is_enough(encoder):
    X, y = mixed_rows()
    X["text"] = [f"value {i % 40}" if i else None for i in range(len(y))]
    table, columns = learn_table(open_table(X), getattr(encoder, "categorical_features", "from_dtype"))
    planned = largest_width(table, encoder_settings(encoder), columns)
    found = TabularEncoder(encoder) if isinstance(encoder, str) else clone(encoder)
    width = found.set_params(min_frequency=1).fit_transform(X).shape[1]
    assert width <= planned <= 4 * width


def test_encoders_with_the_same_settings_are_one_configuration():
    X, y = mixed_rows()
    same = ["bins", TabularEncoder("bins"), TabularEncoder("bins", n_bins=16)]
    search = EDRVFLSearchCV(SMALL, {"encoder": same}, n_iter=None, cv=2).fit(X, y)
    assert len(search.cv_results_["params"]) == 2


def test_settings_of_the_encoder_are_searched_by_their_names():
    X, y = mixed_rows()
    encoder = TabularEncoder("bins")
    space = {"encoder__n_bins": [2, 8], "encoder__categorical_features": ["from_dtype", ["whole"]]}
    network = clone(SMALL).set_params(encoder=encoder)
    search = EDRVFLSearchCV(network, space, n_iter=None, cv=SPLIT, scoring="neg_log_loss").fit(X, y)
    assert len(search.cv_results_["params"]) == 4 * 2
    np.testing.assert_allclose(by_split(search), alone(search, X, y), atol=1e-12)
    assert len(np.unique(by_split(search), axis=0)) == 4 * 2
    rebuilt = clone(network).set_params(**search.best_params_).fit(X, y)
    np.testing.assert_array_equal(rebuilt.predict_proba(X), search.predict_proba(X))
    assert encoder.n_bins == 16  # that of the user stays as it was
    drawn = {"encoder": [encoder], "encoder__n_bins": [2, 4, 8], "regularization": [0.1, 1.0]}
    search = EDRVFLSearchCV(SMALL, drawn, n_iter=4, cv=SPLIT, random_state=0).fit(X, y)
    assert encoder.n_bins == 16
    np.testing.assert_allclose(by_split(search), alone(search, X, y), atol=1e-12)


@pytest.mark.parametrize(
    ("params", "error", "message"),
    [
        ({"encoder__n_bins": [4]}, ValueError, r"'encoder__n_bins'.*encoder='standard'.*TabularEncoder"),
        ({"encoder": ["bins"], "encoder__n_bins": [4]}, ValueError, r"encoder='bins'.*TabularEncoder"),
        ({"encoder": [TabularEncoder()], "encoder__bins": [4]}, ValueError, "Invalid parameter 'bins'"),
        (
            {"encoder": [TabularEncoder()], "encoder__n_bins": [1]},
            ValueError,
            "'n_bins' parameter of Tabular",
        ),
        ({"encoder": [TabularEncoder(n_bins=0)]}, ValueError, "'n_bins' parameter of TabularEncoder"),
        ({"encoder": ["tree"]}, ValueError, "'encoder' parameter of EDRVFLClassifier"),
        ({"network__n_hidden": [4]}, ValueError, "Invalid parameter 'network'"),
    ],
    ids=str,
)
def test_what_an_encoder_cannot_be_is_said(params, error, message):
    with pytest.raises(error, match=message):
        EDRVFLSearchCV(SMALL, params, n_iter=None, cv=2).fit(*mixed_rows())


@pytest.mark.parametrize("first", [None, "standard"])
def test_candidates_that_cannot_read_the_rows_fail_alone(first):
    X, y = mixed_rows()
    encoders = [first, "standard" if first is None else None]
    search = EDRVFLSearchCV(SMALL, {"encoder": encoders}, n_iter=None, cv=3, error_score=-1.0)
    with pytest.warns(FitFailedWarning, match=r"6 of 12 scores are error_score=-1.*these are not: text"):
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
