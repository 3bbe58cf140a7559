"""What a search says and does where something fails."""

import warnings

import numpy as np
import pytest
from helpers import PAPER
from scipy import stats
from searches import by_split, theirs
from sklearn.base import clone
from sklearn.datasets import load_wine, make_classification
from sklearn.exceptions import FitFailedWarning

from edrvfl import EDRVFLClassifier, EDRVFLPortfolioRegressor, EDRVFLSearchCV, KernelRidgeClassifier, variant

SMALL = EDRVFLClassifier(n_hidden=8, n_layers=2, random_state=0, **PAPER)


@pytest.fixture
def wine():
    return load_wine(return_X_y=True)


@pytest.fixture
def hard():
    """Three classes that no network gets right altogether."""
    return make_classification(240, 10, n_informative=6, n_classes=3, flip_y=0.15, random_state=1)


def grid_of(space, **params):
    """A search of every combination, with networks of at most two layers."""
    return EDRVFLSearchCV(SMALL, space, **{"n_iter": None, "cv": 3, **params})


def test_a_score_that_is_not_a_number_ranks_last(hard):
    calls = iter(range(10**6))

    def score(model, X, y):
        return float("nan") if next(calls) == 7 else model.score(X, y)

    search = EDRVFLSearchCV(SMALL, n_iter=5, cv=3, scoring=score, random_state=0)
    with pytest.warns(UserWarning, match="1 of 10 mean scores are not finite"):
        search.fit(*hard)
    means, ranks = search.cv_results_["mean_test_score"], search.cv_results_["rank_test_score"]
    assert ranks[np.isnan(means)].tolist() == [10]
    assert search.best_score_ == np.nanmax(means)


def test_a_search_without_any_number_warns_and_takes_the_first(hard):
    X, y = hard
    weights = np.where(np.arange(240) < 80, 0.0, 1.0)  # nothing to score by in the first fold
    search = EDRVFLSearchCV(SMALL, n_iter=3, cv=[(np.arange(80, 240), np.arange(80))], random_state=0)
    with pytest.warns(UserWarning, match="6 of 6 mean scores are not finite"):
        search.fit(X, y, weights)
    assert search.best_index_ == 0
    assert np.isnan(search.best_score_)


def test_a_network_that_fails_gets_the_error_score(hard):
    X, y = hard[0] * 1e100, hard[1]  # a wide layer multiplies them by ten, a narrow one does not
    network = variant("edRVFL_O", n_layers=80, encoder=None, random_state=0)
    search = EDRVFLSearchCV(network, {"n_hidden": [500, 5]}, cv=2, refit=False)
    with pytest.warns(FitFailedWarning, match=r"(\d+) of 320 scores are error_score=-1.*features overflow"):
        search.set_params(error_score=-1).fit(X, y)
    wide = np.array([row["n_hidden"] == 500 for row in search.cv_results_["params"]])
    scores = by_split(search)
    assert (scores[~wide] > 0).all()
    for of_split in scores[wide].T:  # the shallower networks do not fail
        deepest = np.flatnonzero(of_split > 0).max()
        assert (of_split[: deepest + 1] > 0).all()
        assert (of_split[deepest + 1 :] == -1).all()
    with pytest.raises(ValueError, match="features overflow"):
        search.set_params(error_score="raise").fit(X, y)


def test_test_rows_that_overflow_are_a_failure(hard):
    X, y = hard
    X = np.where(np.arange(240)[:, None] < 40, 1e307 * X.clip(-9, 9), X)
    network = clone(SMALL).set_params(encoder=None, renormalize=False, n_layers=3)
    split = [(np.arange(40, 240), np.arange(40)), (np.arange(40, 140), np.arange(140, 240))]
    search = EDRVFLSearchCV(network, {"n_hidden": [8, 9]}, cv=split, refit=False)
    with pytest.warns(), pytest.warns(FitFailedWarning, match="features of test rows overflow"):
        search.fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = theirs(search, X, y)
    np.testing.assert_array_equal(by_split(search), expected)
    assert np.isnan(expected[:, 0]).any()


def test_a_scorer_that_fails_fails_for_its_own_depth(hard):
    def score(model, X, y):
        if model.n_layers == 1 and X[0, 0] == hard[0][0, 0]:
            raise ZeroDivisionError("no such thing")
        return model.score(X, y)

    search = grid_of({"n_hidden": [8, 9]}, scoring=score, refit=False)
    with pytest.warns(), pytest.warns(FitFailedWarning, match="2 of 12 scores .* ZeroDivisionError: no such"):
        search.fit(*hard)
    with pytest.warns():
        np.testing.assert_array_equal(by_split(search), theirs(search, *hard))
    with pytest.raises(ZeroDivisionError):
        search.set_params(error_score="raise").fit(*hard)
    with pytest.raises(ValueError, match=r"All 12 scores failed\. The first error was: TypeError"):
        search.set_params(error_score=0.0, scoring=lambda model: 1).fit(*hard)


@pytest.mark.parametrize("wrong", ["good", [0.5, 0.6], np.arange(3.0), {"a": 1.0}, None, 1j], ids=repr)
def test_a_scorer_that_returns_no_number_is_told_so(hard, wrong):
    search = grid_of({"n_hidden": [8]}, scoring=lambda model, X, y: wrong)
    with pytest.raises(ValueError, match=r"All 6 scores failed.*A scorer must return one number.*returned"):
        search.fit(*hard)
    search.set_params(scoring=lambda model, X, y: np.array(0.5))  # an array of one number is one
    assert search.fit(*hard).best_score_ == 0.5


def test_a_training_split_of_one_class_is_a_failure_of_that_split(hard):
    X, y = hard
    one = np.flatnonzero(y == 0)
    search = grid_of({"n_hidden": [8]}, cv=[(one[:9], one[9:]), (np.arange(200), np.arange(200, 240))])
    with pytest.warns(), pytest.warns(FitFailedWarning, match="only one class. Use stratified splits"):
        search.fit(X, y)
    assert np.isnan(by_split(search)[:, 0]).all()
    assert np.isfinite(by_split(search)[:, 1]).all()


@pytest.mark.parametrize(
    ("params", "error", "message"),
    [
        ({"cv": []}, ValueError, "gives no split. An iterator is used up"),
        ({"cv": iter([])}, ValueError, "gives no split"),
        ({"cv": [(np.arange(200), np.array([], dtype=int))]}, ValueError, "and 0 test rows"),
        ({"param_distributions": []}, ValueError, "gives 0 different configurations"),
        ({"param_distributions": None, "n_iter": None}, ValueError, "the paper's box has distributions"),
        ({"param_distributions": {"n_hidden": []}}, ValueError, "'n_hidden'.*non-empty"),
        ({"param_distributions": {"n_hidden": 16}}, TypeError, "'n_hidden'"),
        ({"param_distributions": {"n_hidden": iter([16])}}, TypeError, "'n_hidden'"),
        ({"param_distributions": {"activation": "relu"}}, TypeError, "'activation'.*a list"),
        ({"param_distributions": {"depth": [1]}}, ValueError, "Invalid parameter 'depth'"),
        ({"param_distributions": [{"n_hidden": [0]}]}, ValueError, "'n_hidden' parameter"),
        (
            {"param_distributions": {"prune_rate": stats.uniform(0, 1)}, "n_iter": None},
            TypeError,
            "'prune_rate'.*a list",
        ),
        ({"estimator": "network"}, TypeError, "tunes an EDRVFLClassifier .* of type str"),
        ({"estimator": KernelRidgeClassifier()}, TypeError, "KernelRidgeClassifier.*RandomizedSearchCV"),
        ({"estimator": EDRVFLPortfolioRegressor()}, TypeError, "PortfolioRegressor.*RandomizedSearchCV"),
    ],
)
def test_what_cannot_be_searched_is_said(hard, params, error, message):
    for n_iter in {None, params.get("n_iter", 2)}:
        with pytest.raises(error, match=message):
            grid_of({"n_hidden": [8]}).set_params(**{**params, "n_iter": n_iter}).fit(*hard)


def test_a_fit_that_fails_changes_nothing(wine):
    (X, y), search = wine, grid_of({"n_hidden": [8, 9]})
    before = search.fit(X, y).best_params_
    with pytest.raises(ValueError, match="one class"):
        search.fit(X[:, :2], np.zeros(len(y)))
    assert search.best_params_ == before
    assert search.n_features_in_ == 13


def overflowing_rows():
    """Rows of which one test row overflows every layer."""
    X, y = make_classification(60, 5, n_informative=4, n_redundant=0, n_classes=2, random_state=0)
    X[0] = 1.7e308
    return X, y, [(np.arange(20, 60), np.arange(20))]


def test_test_rows_that_overflow_are_named_to_whoever_scores_them():
    X, y, cv = overflowing_rows()
    model = EDRVFLClassifier(n_layers=2, n_hidden=8, encoder=None, renormalize=False, random_state=0)
    for scoring in (None, "roc_auc"):
        search = EDRVFLSearchCV(model, {"regularization": [1.0, 2.0]}, n_iter=None, cv=cv, scoring=scoring)
        with pytest.raises(ValueError, match=r"All 4 scores failed.*test rows overflow float64 in layer 1"):
            search.fit(X, y)


def test_failures_are_counted_by_result(wine):
    def scorer(estimator, X, y):
        raise RuntimeError("no score")

    model = EDRVFLClassifier(n_hidden=8, random_state=0)
    search = EDRVFLSearchCV(model, {"n_layers": [3]}, n_iter=None, cv=2, scoring=scorer)
    with pytest.raises(ValueError, match=r"All 2 scores failed.*no score"):
        search.fit(*wine)
