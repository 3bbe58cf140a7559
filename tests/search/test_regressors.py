"""A search of regressors against GridSearchCV over the same estimators, each fitted alone."""

import numpy as np
import pandas as pd
import pytest
import sklearn
from searches import by_split, theirs
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.datasets import load_wine, make_friedman1
from sklearn.exceptions import FitFailedWarning
from sklearn.metrics import get_scorer, r2_score
from sklearn.model_selection import KFold, LeaveOneOut, PredefinedSplit, StratifiedKFold, cross_val_score

from edrvfl import EDRVFLClassifier, EDRVFLRegressor, EDRVFLSearchCV, to_numpy
from edrvfl._search.candidates import result_rows
from edrvfl._search.metrics import VALUE_METRICS, metric_of
from edrvfl._search.run import score_split
from edrvfl._search.scorer import Sample, Scoring, Search

NETWORK = EDRVFLRegressor(n_hidden=8, n_layers=2, regularization=1.0, random_state=0)
SPACE = {"n_hidden": [8, 16], "prune_rate": [0.0, 0.3]}


@pytest.fixture
def rows():
    """Values far from 0 that vary little: an answer in standardised units would be far off."""
    X, y = make_friedman1(90, 6, noise=1.0, random_state=1)
    return X, 1000 + 0.1 * y


@pytest.fixture
def two(rows):
    """Two outputs of very different units."""
    X, y = rows
    return X, np.stack([y, 1e6 * X[:, 0] ** 2], axis=1)


def grid_of(estimator, space, **params):
    return EDRVFLSearchCV(estimator, space, **{"n_iter": None, "cv": 3, **params})


# --- the same scores as estimators fitted alone -----------------------------------------------------------


@pytest.mark.parametrize(
    "space",
    [
        {"regularization": [0.0, 1.0, "loo"], "prune_rate": [0.0, 0.3]},
        {"correct_weight": [0.5, 1.0], "weight_from": ["train", "loo"], "regularization": [0.1, 1.0]},
        {"layer_votes": ["equal", "prefix", "weighted"], "coverage_from": ["loo", None]},
        {"regularization": [1.0, "loo"], "coverage_from": ["loo", "split", None]},
        {"layer_votes": ["prefix", "weighted"], "regularization": ["loo"], "prune_rate": [0.0, 0.3]},
        {"n_layers": [1, 3], "n_hidden": [8, "auto"], "random_state": [1, 2]},
        {"encoder": ["standard", "bins", None], "renormalize": [True, False]},
        {"inputs_per_neuron": [2], "pair_share": [0.0, 0.5], "input_scaling": [None, "gradient"]},
    ],
    ids=lambda space: ", ".join(space),
)
def test_every_parameter_can_be_searched_at_every_depth(rows, two, space):
    X, y = rows if "coverage_from" in space else two
    search = grid_of(NETWORK, space).fit(X, y)
    np.testing.assert_allclose(by_split(search), theirs(search, X, y), rtol=0, atol=1e-9)
    assert len(search.cv_results_["params"]) % (4 if "n_layers" in space else 2) == 0
    assert len(np.unique(by_split(search).round(6), axis=0)) > 2
    # the winner
    rebuilt = clone(NETWORK).set_params(**search.best_params_)
    assert search.best_score_ == pytest.approx(cross_val_score(rebuilt, X, y, cv=3).mean(), abs=1e-9)
    np.testing.assert_array_equal(search.predict(X), rebuilt.fit(X, y).predict(X))


@pytest.mark.parametrize("scoring", [*VALUE_METRICS, "explained_variance"])
def test_scores_are_those_of_the_scorer(two, scoring):
    search = grid_of(NETWORK, SPACE, scoring=scoring, refit=False).fit(*two)
    np.testing.assert_allclose(by_split(search), theirs(search, *two), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("scoring", sorted({"r2", *VALUE_METRICS} - {None, "neg_mean_squared_error"}))
@pytest.mark.parametrize("power", [600, -600])
def test_units_do_not_matter(two, scoring, power):
    X, Y = two
    search = grid_of(NETWORK, {"regularization": [1.0, "loo"]}, scoring=scoring, refit=False)
    expected = by_split(search.fit(X, Y))
    expected = expected if scoring == "r2" else expected * 2.0**power
    np.testing.assert_allclose(by_split(search.fit(X, Y * 2.0**power)), expected, rtol=1e-9)


@pytest.mark.parametrize("requested", [True, False])
def test_weighted_rows_score_as_in_scikit_learns_search(rows, requested):
    weights = np.random.default_rng(0).integers(0, 4, len(rows[1])).astype(float)
    with sklearn.config_context(enable_metadata_routing=True):
        scorer = get_scorer("r2").set_score_request(sample_weight=requested)
        search = grid_of(NETWORK, SPACE, scoring=scorer, refit=False).fit(*rows, sample_weight=weights)
        search.estimator = clone(NETWORK).set_fit_request(sample_weight=True)
        expected = theirs(search, *rows, sample_weight=weights)
    np.testing.assert_allclose(by_split(search), expected, atol=1e-9)


@pytest.mark.parametrize("scoring", VALUE_METRICS)
def test_weights_are_repeated_rows(two, scoring):
    X, Y = two
    counts = np.random.default_rng(0).integers(0, 3, len(Y))
    fold = np.arange(len(Y)) % 3
    space = {"regularization": [1.0, "loo"], "correct_weight": [0.5, 1.0], "layer_votes": ["weighted"]}
    weighted = grid_of(NETWORK, space, scoring=scoring, cv=PredefinedSplit(fold))
    repeated = clone(weighted).set_params(cv=PredefinedSplit(np.repeat(fold, counts)))
    weighted.fit(X, Y, sample_weight=counts)
    repeated.fit(np.repeat(X, counts, axis=0), np.repeat(Y, counts, axis=0))
    np.testing.assert_allclose(by_split(weighted), by_split(repeated), rtol=1e-8, atol=1e-8)


def test_a_part_of_the_rows_is_judged_as_in_the_network_alone(rows, monkeypatch):
    monkeypatch.setattr("edrvfl._inputs.chosen.MOST_JUDGED", 25)
    space = {"layer_votes": ["prefix", "weighted"], "regularization": [1.0, "loo"]}
    search = grid_of(NETWORK, space, refit=False).fit(*rows)
    np.testing.assert_allclose(by_split(search), theirs(search, *rows), atol=1e-9)


def test_a_scorer_may_ask_about_other_rows_and_other_things(rows):
    asks = [
        lambda model, X, y: r2_score(y, model.predict(-X)),
        lambda model, X, y: model.predict(X[:10]).mean(),
        lambda model, X, y: model.n_features_in_ + is_regressor(model) - 2 * is_classifier(model),
    ]
    for scoring in asks:
        search = grid_of(NETWORK, {"n_hidden": [8]}, scoring=scoring, refit=False).fit(*rows)
        np.testing.assert_allclose(by_split(search), theirs(search, *rows), atol=1e-9)


@pytest.mark.parametrize(
    ("library", "layer_votes"),
    [("numpy", "equal"), ("numpy", "prefix"), ("numpy", "weighted"), ("torch", "weighted")],
)
def test_stacks_side_by_side_score_as_fitted_alone(two, library, layer_votes):
    xp = pytest.importorskip(library)
    X, Y = two
    network = clone(NETWORK).set_params(layer_votes=layer_votes, encoder=None, n_layers=3)
    space = {"regularization": [0.1, 10.0, "loo"], "correct_weight": [0.5, 1.0], "prune_rate": [0.0, 0.3]}
    grid = [dict(zip(space, values, strict=True)) for values in np.ndindex(3, 2, 2)]
    tried = [{name: space[name][i] for name, i in row.items()} for row in grid]
    candidates = list(dict.fromkeys(row.candidate for row in result_rows(network, tried)))
    split, found = (np.arange(60), np.arange(60, 90)), []
    for stacked in (False, True):
        scoring = Scoring(None, metric_of(None, classifies=False))
        search = Search(Sample(xp.asarray(X), Y, None), None, scoring, stacked)
        with sklearn.config_context(array_api_dispatch=True):
            scores, failures = score_split(search, candidates, split, memory=2**30)
        assert not failures
        found.append(scores)
    np.testing.assert_allclose(*found, atol=1e-8)
    for one, scores in zip(candidates, found[1], strict=True):
        for depth in (1, 3):
            model = one.at(depth).fit(X[:60], Y[:60])
            assert scores[depth - 1] == pytest.approx(model.score(X[60:], Y[60:]), abs=1e-8)


def test_torch_rows(two):
    torch = pytest.importorskip("torch")
    X, Y = two
    search = grid_of(NETWORK, SPACE)
    expected = clone(search).fit(X, Y)
    with sklearn.config_context(array_api_dispatch=True):
        search.fit(torch.asarray(X), torch.asarray(Y), torch.ones(len(Y), dtype=torch.float64))
        assert isinstance(search.predict(torch.asarray(X)), torch.Tensor)
        assert search.score(torch.asarray(X), torch.asarray(Y)) == pytest.approx(expected.score(X, Y))
        home = to_numpy(search)
    np.testing.assert_allclose(by_split(search), by_split(expected), atol=1e-9)
    np.testing.assert_allclose(home.predict(X), expected.predict(X), rtol=1e-6)


def test_float32_rows_are_scored_in_float64(rows):
    X, y = rows
    search = grid_of(NETWORK, {"n_hidden": [8, 30]}).fit(X.astype(np.float32), y.astype(np.float32))
    assert search.predict(X.astype(np.float32)).dtype == np.float32
    np.testing.assert_allclose(by_split(search), by_split(clone(search).fit(X, y)), atol=1e-3)
    assert by_split(search).dtype == np.float64


def test_frames_are_searched_as_they_come(rows):
    X, y = rows
    frame = pd.DataFrame(X[:, :3], columns=list("abc")).assign(d=np.where(X[:, 3] > 0.5, "high", "low"))
    frame.loc[::9, "a"] = None
    search = grid_of(NETWORK, SPACE).fit(frame, pd.Series(y))
    np.testing.assert_allclose(by_split(search), theirs(search, frame, y), atol=1e-9)
    assert list(search.feature_names_in_) == list("abcd")


# --- a regressor or a classifier --------------------------------------------------------------------------


def test_the_search_is_what_its_estimator_is(rows):
    search = grid_of(NETWORK, SPACE)
    for fitted in (False, True):
        if fitted:
            search.fit(*rows)
        assert is_regressor(search)
        assert not is_classifier(search)
        assert hasattr(search, "predict")
        for name in ("predict_proba", "predict_log_proba", "decision_function", "classes_"):
            assert not hasattr(search, name)
        with pytest.raises(AttributeError, match="predict_proba"):
            search.predict_proba(rows[0])
    assert sklearn.utils.get_tags(search).target_tags.multi_output
    for classifier in (EDRVFLClassifier(), None):
        assert is_classifier(EDRVFLSearchCV(classifier))
        assert not is_regressor(EDRVFLSearchCV(classifier))
        assert hasattr(EDRVFLSearchCV(classifier), "predict_proba")


def test_score_is_that_of_the_estimator_whatever_scoring_is(rows, two):
    weights = np.random.default_rng(0).uniform(size=len(rows[1]))
    for X, y in (rows, two):
        search = grid_of(NETWORK, {"n_hidden": [8]}, scoring="neg_mean_absolute_error").fit(X, y)
        assert search.score(X, y, weights) == search.best_estimator_.score(X, y, weights)
        assert search.predict(X).shape == y.shape
        assert search.best_score_ < 0
    classes = EDRVFLSearchCV(EDRVFLClassifier(n_hidden=8), {"n_layers": [1]}, scoring="neg_log_loss", cv=2)
    X, y = load_wine(return_X_y=True)
    assert classes.fit(X, y).score(X, y) == (classes.predict(X) == y).mean()


def test_splits_are_stratified_for_classes_only(rows):
    X, y = rows
    labels = (y > np.median(y)).astype(int)
    order = np.argsort(labels, kind="stable")  # folds that are not stratified hold one class each
    X, labels = X[order], labels[order]
    regressor = grid_of(NETWORK, {"n_layers": [1]}).fit(X, labels)
    classifier = grid_of(EDRVFLClassifier(n_hidden=8, random_state=0), {"n_layers": [1]}).fit(X, labels)
    for search, splitter in ((regressor, KFold(3)), (classifier, StratifiedKFold(3))):
        again = clone(search).set_params(cv=splitter).fit(X, labels)
        np.testing.assert_array_equal(by_split(search), by_split(again))
        other = StratifiedKFold(3) if search is regressor else KFold(3)
        assert not np.array_equal(
            by_split(search), by_split(clone(search).set_params(cv=other).fit(X, labels))
        )


def test_an_ensemble_averages_different_configurations(two):
    search = grid_of(NETWORK, SPACE, ensemble_size=3).fit(*two)
    assert len({tuple(str(getattr(model, name)) for name in SPACE) for model in search.estimators_}) == 3
    mean = np.mean([model.predict(two[0]) for model in search.estimators_], axis=0)
    np.testing.assert_allclose(search.predict(two[0]), mean, rtol=1e-12)


# --- the default space ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        ({}, "n_hidden norm_scale norm_shift"),
        ({"prune_rate": 0.2}, "n_hidden norm_scale norm_shift prune_rate"),
        ({"regularization": 1.0}, "n_hidden norm_scale norm_shift regularization"),
        ({"renormalize": False, "prune_rate": 0.0, "correct_weight": 0.5}, "correct_weight n_hidden"),
        ({"renormalize": False, "prune_rate": 0.0}, "n_hidden"),
    ],
    ids=repr,
)
def test_the_default_space_is_the_papers_box_without_what_is_switched_off(rows, params, expected):
    network = EDRVFLRegressor(n_layers=2, random_state=0, **params)
    search = EDRVFLSearchCV(network, n_iter=4, cv=2, random_state=0).fit(*rows)
    assert set(search.best_params_) == {*expected.split(), "n_layers"}
    assert search.best_estimator_.regularization == (search.best_params_.get("regularization", "loo"))


# --- what goes wrong --------------------------------------------------------------------------------------


def test_a_scorer_that_is_not_for_values_fails(rows):
    search = grid_of(NETWORK, {"n_hidden": [8]}, scoring="accuracy")
    with pytest.raises(ValueError, match=r"All \d+ scores failed.*continuous"):
        search.fit(*rows)
    with pytest.raises(ValueError, match=r"All \d+ scores failed.*no attribute 'predict_proba'"):
        search.set_params(scoring=lambda model, X, y: model.predict_proba(X).max()).fit(*rows)
    for scoring in ("neg_log_loss", "roc_auc"):  # said before anything is fitted
        message = rf"scoring='{scoring}' needs .*predict_proba, which {type(NETWORK).__name__} .*\"r2\""
        with pytest.raises(ValueError, match=message):
            search.set_params(scoring=scoring).fit(*rows)


def test_one_test_row_has_no_r2_but_an_error(rows):
    X, y = rows[0][:12], rows[1][:12]
    search = grid_of(NETWORK, {"n_hidden": [4, 8]}, cv=LeaveOneOut())
    with pytest.warns(UserWarning, match="4 of 4 mean scores are not finite"):
        search.fit(X, y)
    search.set_params(scoring="neg_mean_squared_error").fit(X, y)
    np.testing.assert_allclose(by_split(search), theirs(search, X, y), atol=1e-9)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"param_distributions": {"calibration": ["loo"]}}, "Invalid parameter 'calibration'"),
        ({"param_distributions": {"class_weight": [None]}}, "Invalid parameter 'class_weight'"),
        ({"param_distributions": {"correct_weight": [0.0]}}, "'correct_weight' parameter of EDRVFLRegressor"),
    ],
    ids=str,
)
def test_what_cannot_be_searched_is_said(rows, params, message):
    with pytest.raises(ValueError, match=message):
        grid_of(NETWORK, {"n_hidden": [8]}).set_params(**params).fit(*rows)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [("text", "numeric|numbers"), (np.nan, "y has a missing value"), (1j, "Complex data")],
)
def test_what_is_no_number_is_refused(rows, wrong, message):
    X, y = rows
    with pytest.raises(ValueError, match=message):
        grid_of(NETWORK, {"n_hidden": [8]}).fit(X, [wrong, *y[1:].tolist()])


def test_values_that_overflow_fail_in_their_split(rows):
    X, y = rows[0].astype(np.float32), np.where(np.arange(90) < 60, 1.0, 1e300) * rows[1]
    every, first = np.arange(90), np.arange(60)
    search = grid_of(NETWORK, {"n_hidden": [8]}, refit=False, cv=[(first, first), (every, first)])
    with pytest.warns(), pytest.warns(FitFailedWarning, match=r"2 of 4 scores.*Divide y by a num"):
        search.fit(X, y)
    assert np.isfinite(by_split(search)[:, 0]).all()
    assert np.isnan(by_split(search)[:, 1]).all()


# --- memory, processes, as an estimator -------------------------------------------------------------------


def test_processes_and_little_memory_change_nothing(two):
    search = grid_of(NETWORK, {"n_hidden": [8, 30], "regularization": [0.1, 1.0], "correct_weight": [0.5]})
    one = clone(search).fit(*two)
    for params in ({"n_jobs": 2}, {"memory": 1}):
        np.testing.assert_array_equal(by_split(clone(search).set_params(**params).fit(*two)), by_split(one))
