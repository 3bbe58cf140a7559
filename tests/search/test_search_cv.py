"""EDRVFLSearchCV against GridSearchCV over the same networks, and what else it promises."""

import dataclasses
import inspect
import re

import numpy as np
import pandas as pd
import pytest
import sklearn
from helpers import PAPER
from searches import by_split, theirs
from sklearn.base import clone
from sklearn.datasets import load_iris, load_wine, make_classification
from sklearn.metrics import accuracy_score, get_scorer, make_scorer, recall_score
from sklearn.model_selection import GroupKFold, PredefinedSplit, StratifiedKFold, cross_val_score

from edrvfl import EDRVFLClassifier, EDRVFLSearchCV, to_numpy, variant
from edrvfl._doors import search as _search_cv
from edrvfl._doors.variants import VARIANTS

SPACE = {
    "n_hidden": [8, 16],
    "regularization": [0.1, 1.0, 10.0],
    "correct_weight": [0.5, 1.0],
    "prune_rate": [0.0, 0.3],
}
SMALL = EDRVFLClassifier(n_hidden=8, n_layers=2, random_state=0, **PAPER)


@pytest.fixture
def wine():
    return load_wine(return_X_y=True)


@pytest.fixture
def hard():
    """Three classes that no network gets right altogether."""
    return make_classification(240, 10, n_informative=6, n_classes=3, flip_y=0.15, random_state=1)


@pytest.fixture
def search():
    network = EDRVFLClassifier(n_layers=3, random_state=0, **PAPER)
    return EDRVFLSearchCV(network, SPACE, n_iter=6, cv=3, random_state=0)


def grid_of(space, **params):
    """A search of every combination, with networks of at most two layers."""
    return EDRVFLSearchCV(SMALL, space, **{"n_iter": None, "cv": 3, **params})


# --- the same scores as networks fitted alone -------------------------------------------------------------


@pytest.mark.parametrize("name", VARIANTS)
def test_every_variant_scores_as_in_scikit_learns_search(wine, name):
    network = variant(name, n_layers=1 if name == "RVFL" else 3, random_state=1)
    search = EDRVFLSearchCV(network, n_iter=6, cv=3, random_state=1).fit(*wine)
    assert len(search.cv_results_["params"]) == 6 * network.n_layers
    np.testing.assert_array_equal(by_split(search), theirs(search, *wine))


@pytest.mark.parametrize(
    "space",
    [
        {"class_weight": [None, "balanced", {0: 1, 1: 1, 2: 1000}, {0: 1, 1: 1, 2: 0}]},
        {"random_state": [1, 2]},
        {"n_layers": [1, 3], "n_hidden": [8, 9]},
        {"encoder": ["standard", "bins", None]},
        {"ensemble": ["softmax", "mean", "vote"]},
        {"activation": ["relu", "sin"], "renormalize": [True, False]},
        {"weight_from": ["train", "loo"], "regularization": [0.01, 1.0]},
        {"regularization": [0.0, 1.0, "loo"], "prune_rate": [0.0, 0.2]},
    ],
    ids=lambda space: ", ".join(space),
)
def test_every_parameter_can_be_searched(hard, space):
    search = grid_of(space).fit(*hard)
    np.testing.assert_array_equal(by_split(search), theirs(search, *hard))
    tried = search.cv_results_["params"]
    for name, values in space.items():
        assert {repr(row[name]) for row in tried} == {repr(value) for value in values}
    if "n_layers" in space:  # a depth that is named is the only one
        assert len(tried) == 4
    if "class_weight" in space or "random_state" in space:
        assert len(np.unique(by_split(search), axis=0)) > 2


@pytest.mark.parametrize(
    ("weight_from", "width", "requested"),
    [("train", 20, True), ("loo", 200, False)],
    ids=["primal, train", "dual, loo"],
)
def test_weighted_rows_score_as_in_scikit_learns_search(hard, width, weight_from, requested):
    weights = np.random.default_rng(0).integers(0, 4, len(hard[1])).astype(float)
    network = clone(SMALL).set_params(n_hidden=width, weight_from=weight_from)
    space = {"regularization": [0.1, 10.0], "correct_weight": [0.5, 1.0], "prune_rate": [0.0, 0.3]}
    with sklearn.config_context(enable_metadata_routing=True):
        scorer = get_scorer("f1_macro").set_score_request(sample_weight=requested)
        search = EDRVFLSearchCV(network, space, n_iter=None, cv=3, scoring=scorer, refit=False)
        search.fit(*hard, sample_weight=weights)
        search.estimator.set_fit_request(sample_weight=True)
        expected = theirs(search, *hard, sample_weight=weights)
    np.testing.assert_allclose(by_split(search), expected, atol=1e-12)


def test_a_class_of_weight_0_is_left_out_as_in_the_network_alone(hard):
    weights = {0: 1, 1: 1, 2: 0}
    network = EDRVFLClassifier(**PAPER, n_hidden=20, n_layers=3, random_state=0, class_weight=weights)
    search = EDRVFLSearchCV(network, {"n_layers": [3]}, cv=3).fit(*hard)
    assert search.best_score_ == cross_val_score(network, *hard, cv=3).mean()
    assert search.classes_.tolist() == [0, 1]


@pytest.mark.parametrize("scoring", ["accuracy", "neg_log_loss", "balanced_accuracy", "roc_auc_ovr"])
def test_scores_are_those_of_the_scorer(hard, search, scoring):
    search.set_params(scoring=scoring, n_iter=2).fit(*hard)
    np.testing.assert_allclose(by_split(search), theirs(search, *hard), atol=1e-12)


def test_a_scorer_may_ask_about_other_rows_and_other_things(hard):
    asks = {
        "other rows": lambda model, X, y: (model.predict(-X) == y).mean(),
        "some rows": lambda model, X, y: model.predict_proba(X[:10])[:, 0].mean(),
        "the values of both": lambda model, X, y: model.decision_function(np.vstack([X, -X])).max(),
        "layers": lambda model, X, y: len(list(model.staged_predict(X))) + model.train_accuracies_[0],
        "parameters": lambda model, X, y: model.n_layers,
    }
    for scoring in asks.values():
        search = grid_of({"n_hidden": [8, 30]}, scoring=scoring).fit(*hard)
        np.testing.assert_allclose(by_split(search), theirs(search, *hard), atol=1e-12)


def test_splitters_and_scorers_see_the_rows_as_they_were_given(hard):
    X = pd.DataFrame(hard[0], columns=list("abcdefghij"))
    y = np.array(["no", "maybe", "yes"])[hard[1]]

    class ByColumn:
        def split(self, X, y, groups=None):
            yield np.flatnonzero(X["a"] > 0), np.flatnonzero((X["a"] <= 0) & (y != "yes"))

        def get_n_splits(self, X=None, y=None, groups=None):
            return 1

    def score(model, X, y):
        return (model.predict(X[X["b"] > 0]) == y[X["b"] > 0]).mean()

    search = grid_of({"n_hidden": [8]}, cv=ByColumn(), scoring=score).fit(X, y)
    np.testing.assert_array_equal(by_split(search), theirs(search, X, y))


def test_float32_scores_are_exact_ratios_and_equal_ones_rank_equal():
    X, y = make_classification(211, 10, n_informative=6, n_classes=3, flip_y=0.15, random_state=1)
    space = {"n_hidden": [5, 8], "regularization": (2.0 ** np.arange(-6, 7)).tolist()}
    search = grid_of(space).fit(X.astype(np.float32), y)
    scores, ranks = by_split(search), search.cv_results_["rank_test_score"]
    assert scores.dtype == np.float64
    sizes = np.array([71, 70, 70])
    right = np.round(scores * sizes)
    np.testing.assert_array_equal(scores, right / sizes)
    exact = {}
    for row, rank in zip(right, ranks, strict=True):
        exact.setdefault((row[0], row[1] + row[2]), set()).add(rank)
    assert len(exact) < len(ranks)
    assert all(len(same) == 1 for same in exact.values())


def test_weights_count_in_fits_and_in_scores(search):
    X, y = load_iris(return_X_y=True)
    rng = np.random.default_rng(0)
    order = rng.permutation(150)
    X, y, counts = X[order], y[order], rng.integers(0, 3, 150)
    fold = np.arange(150) % 3
    weighted = clone(search).set_params(cv=PredefinedSplit(fold)).fit(X, y, sample_weight=counts)
    repeated = clone(search).set_params(cv=PredefinedSplit(np.repeat(fold, counts)))
    repeated.fit(np.repeat(X, counts, axis=0), np.repeat(y, counts))
    np.testing.assert_allclose(by_split(weighted), by_split(repeated), atol=1e-12)


def test_a_class_absent_from_a_training_split_has_probability_0(search):
    X, y = load_iris(return_X_y=True)
    fold = np.where(y == 2, 0, np.arange(150) % 2)  # class 2 is only ever validated
    search.set_params(cv=PredefinedSplit(fold), scoring="neg_log_loss").fit(X, y)
    assert np.isfinite(search.cv_results_["split0_test_score"]).all()
    assert search.cv_results_["split0_test_score"].max() < -5
    assert search.classes_.tolist() == [0, 1, 2]
    by_call = clone(search).set_params(scoring=lambda model, X, y: model.predict_proba(-X)[:, 2].max())
    assert by_call.fit(X, y).cv_results_["split0_test_score"].max() == 0


def test_torch_rows(search):
    torch = pytest.importorskip("torch")
    X, y = load_iris(return_X_y=True)
    expected = search.set_params(n_iter=3).fit(X, y)
    with sklearn.config_context(array_api_dispatch=True):
        for scoring, n_jobs in ((None, 1), ("accuracy", 2), (lambda model, X, y: model.score(X, y), 1)):
            model = clone(search).set_params(scoring=scoring, n_jobs=n_jobs)
            model.fit(torch.asarray(X), torch.asarray(y))
            assert model.best_params_ == expected.best_params_
            np.testing.assert_allclose(by_split(model), by_split(expected))
        home = to_numpy(model)
    np.testing.assert_allclose(home.predict_proba(X), expected.predict_proba(X), atol=1e-10)


# --- the winner -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", VARIANTS)
def test_the_winner_can_be_built_from_its_parameters(wine, name):
    others = {"activation": "sigmoid", "ensemble": "mean", "class_weight": "balanced", "weight_from": "loo"}
    network = variant(name, n_layers=2, random_state=0, **others)
    search = EDRVFLSearchCV(network, n_iter=3, cv=2, random_state=0).fit(*wine)
    rebuilt = clone(network).set_params(**search.best_params_).fit(*wine)
    np.testing.assert_array_equal(rebuilt.predict_proba(wine[0]), search.predict_proba(wine[0]))
    assert search.best_score_ == search.cv_results_["mean_test_score"].max()
    assert set(search.best_params_) >= {"n_hidden", "regularization", "n_layers"}


@pytest.mark.parametrize("seed", [None, np.random.RandomState(3)], ids=["None", "RandomState"])
@pytest.mark.parametrize("named", [{}, {"random_state": [None]}], ids=str)
def test_one_seed_serves_the_search_and_the_refit(hard, seed, named):
    network = clone(SMALL).set_params(random_state=seed)
    search = EDRVFLSearchCV(network, {"n_hidden": [8, 9], **named}, cv=3).fit(*hard)
    winner = clone(search.best_estimator_)
    assert search.best_score_ == cross_val_score(winner, *hard, cv=3).mean()
    rebuilt = clone(network).set_params(**search.best_params_).fit(*hard)
    np.testing.assert_array_equal(rebuilt.predict_proba(hard[0]), search.predict_proba(hard[0]))
    assert search.cv_results_["params"][search.best_index_] == search.best_params_


def test_ties_go_to_the_shallower_then_the_first_drawn(wine, search):
    search.fit(*wine)
    means = np.round(search.cv_results_["mean_test_score"], 12)
    depths = np.asarray(search.cv_results_["param_n_layers"])
    best = np.flatnonzero(means == means.max())
    assert search.best_index_ == min(best, key=lambda row: (depths[row], row))


def test_an_ensemble_averages_different_configurations(hard, search):
    search.set_params(ensemble_size=4).fit(*hard)
    settings = {tuple(getattr(model, name) for name in SPACE) for model in search.estimators_}
    assert len(settings) == 4
    mean = np.mean([model.predict_proba(hard[0]) for model in search.estimators_], axis=0)
    np.testing.assert_allclose(search.predict_proba(hard[0]), mean, atol=1e-12)


def test_no_configuration_is_tried_twice(hard):
    search = grid_of({"regularization": [1.0, 2.0, 1.0]}, n_iter=20, ensemble_size=2).fit(*hard)
    assert len(search.cv_results_["params"]) == 2 * SMALL.n_layers
    assert sorted(model.regularization for model in search.estimators_) == [1.0, 2.0]
    with pytest.raises(ValueError, match=r"gives 2 different configurations .* at least 5 are needed"):
        search.set_params(ensemble_size=5).fit(*hard)


def test_without_refit_there_is_nothing_to_predict_with(wine, search):
    search.set_params(refit=False).fit(*wine)
    assert not hasattr(search, "predict")
    assert not hasattr(search, "best_estimator_")
    with pytest.raises(AttributeError, match="predict"):
        search.predict(wine[0])


# --- groups, weights and other metadata -------------------------------------------------------------------


def test_groups_reach_the_splitter(wine, search):
    X, y = wine
    groups = np.arange(len(y)) % 7
    search.set_params(cv=GroupKFold(3)).fit(X, y, groups=groups)
    assert search.n_splits_ == 3
    with pytest.raises(TypeError, match="fit got colour; only sample_weight and groups"):
        search.fit(X, y, colour=groups)


def test_metadata_routing(hard, search):
    X, y = hard
    groups = np.arange(len(y)) % 7
    seen = []

    def recall(y, y_pred, sample_weight=None, price=None, currency=None):
        seen.append((len(price), currency))
        return recall_score(y, y_pred, sample_weight=sample_weight, average="macro")

    with sklearn.config_context(enable_metadata_routing=True):
        splitter = GroupKFold(3).set_split_request(groups=True)
        scorer = make_scorer(recall).set_score_request(sample_weight=True, price=True, currency=True)
        search.set_params(cv=splitter, scoring=scorer, n_iter=2).set_fit_request(sample_weight=True)
        metadata = {"groups": groups, "price": np.arange(len(y)), "currency": "EUR"}
        search.fit(X, y, sample_weight=np.ones(len(y)), **metadata)
    assert np.isfinite(search.best_score_)
    tests = {len(test) for _, test in GroupKFold(3).split(X, y, groups)}
    assert set(seen) == {(rows, "EUR") for rows in tests}


def test_weights_reach_only_scorers_that_take_them(hard):
    X, y = hard
    weights = np.random.default_rng(0).uniform(size=len(y))
    scorers = {
        "a function": (lambda model, X, y: (model.predict(X) == y).mean(), False),
        "a metric without": (make_scorer(lambda y, y_pred: (y == y_pred).mean()), False),
        "a compiled metric": (make_scorer(np.dot), False),
        "a metric with": (make_scorer(accuracy_score), True),
        "a kernel": ("accuracy", True),
    }
    for scorer, weighted in scorers.values():
        search = grid_of({"n_layers": [1]}, scoring=scorer).fit(X, y, weights)
        for i, (train, test) in enumerate(StratifiedKFold(3).split(X, y)):
            model = clone(SMALL).set_params(n_layers=1).fit(X[train], y[train], weights[train])
            given = {"sample_weight": weights[test]} if weighted else {}
            expected = sklearn.metrics.check_scoring(model, scorer)(model, X[test], y[test], **given)
            assert by_split(search)[0, i] == pytest.approx(expected, abs=1e-12)


# --- memory and processes ---------------------------------------------------------------------------------


def test_processes_change_nothing(wine, search):
    one = clone(search).fit(*wine)
    two = clone(search).set_params(n_jobs=2).fit(*wine)
    np.testing.assert_array_equal(by_split(one), by_split(two))


def test_processes_share_the_budget(wine, search, monkeypatch):
    asked = []
    parallel = _search_cv.Parallel
    monkeypatch.setattr(
        _search_cv, "Parallel", lambda n_jobs, **kwargs: asked.append(n_jobs) or parallel(n_jobs, **kwargs)
    )
    search.set_params(param_distributions={"n_hidden": [300]})
    full = clone(search).fit(*wine)
    for memory, n_jobs in ((None, 4), (12, 1), (400, 4)):
        found = clone(search).set_params(memory=memory, n_jobs=4).fit(*wine)
        np.testing.assert_array_equal(by_split(found), by_split(full))
        assert asked[-1] == n_jobs


def test_memory_is_a_budget(wine, search):
    full = clone(search).fit(*wine)
    tight = clone(search).set_params(memory=1).fit(*wine)
    np.testing.assert_array_equal(by_split(full), by_split(tight))
    wide = clone(search).set_params(memory=1, param_distributions={"n_hidden": [5000]})
    with pytest.raises(MemoryError, match=r"needs about \d+ MiB; the memory budget is 1 MiB"):
        wide.fit(*wine)


# --- as an estimator --------------------------------------------------------------------------------------


def test_documented_defaults_are_the_real_ones():
    for name, parameter in inspect.signature(EDRVFLSearchCV).parameters.items():
        documented = re.search(rf"^    {name} : .*default=(\S+)$", EDRVFLSearchCV.__doc__, re.MULTILINE)
        assert documented, name
        assert documented[1] == repr(parameter.default).replace("'", '"'), name


def test_the_seed_of_the_search_draws_configurations_and_nothing_else(hard):
    one, two = (grid_of({"n_hidden": [8, 9]}, random_state=seed).fit(*hard) for seed in (0, 1))
    np.testing.assert_array_equal(by_split(one), by_split(two))
    one, two = (EDRVFLSearchCV(SMALL, n_iter=2, cv=3, random_state=seed).fit(*hard) for seed in (0, 1))
    assert one.cv_results_["params"] != two.cv_results_["params"]


def test_a_scorer_is_called_only_at_the_depths_that_are_results(wine):
    depths = []

    def scorer(estimator, X, y):
        depths.append(estimator.n_layers)
        return estimator.score(X, y)

    model = EDRVFLClassifier(n_hidden=8, random_state=0)
    EDRVFLSearchCV(model, {"n_layers": [3]}, n_iter=None, cv=2, scoring=scorer, refit=False).fit(*wine)
    assert depths == [3, 3]


@dataclasses.dataclass
class Share:
    """A scorer that cannot be hashed."""

    factor: float = 1.0

    def __call__(self, estimator, X, y):
        return self.factor * estimator.score(X, y)


def test_a_scorer_need_not_be_hashable(wine):
    model = EDRVFLClassifier(n_hidden=8, n_layers=2, random_state=0)
    space = {"regularization": [0.1, 10.0]}
    plain, called = (
        EDRVFLSearchCV(model, space, n_iter=None, cv=2, scoring=scoring, refit=False).fit(*wine)
        for scoring in (None, Share())
    )
    np.testing.assert_array_equal(plain.cv_results_["mean_test_score"], called.cv_results_["mean_test_score"])
