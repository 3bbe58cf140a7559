"""`groups` in the fit of every estimator: what leave-one-out says is then about rows of new groups."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import reference
import sklearn
from helpers import features_by_layer, noisy_values
from sklearn.ensemble import RandomForestRegressor
from sklearn.model_selection import GroupKFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from edrvfl import (
    EDRVFLClassifier,
    EDRVFLPortfolioClassifier,
    EDRVFLPortfolioRegressor,
    EDRVFLRegressor,
    EDRVFLSearchCV,
    KernelRidgeClassifier,
    KernelRidgeRegressor,
    RowBlocks,
)

NETWORK = {"n_hidden": 20, "n_layers": 2, "random_state": 0}
MEMBERS = [("network", EDRVFLRegressor(n_hidden=20, n_layers=2)), ("kernel", KernelRidgeRegressor())]
OF_CLASSES = [("network", EDRVFLClassifier(n_hidden=20, n_layers=2)), ("kernel", KernelRidgeClassifier())]
ESTIMATORS = {
    "classifier": EDRVFLClassifier(**NETWORK),
    "joint": EDRVFLClassifier(**NETWORK, readout="joint", calibration="matrix"),
    "regressor": EDRVFLRegressor(**NETWORK, correct_weight=0.8, layer_votes="weighted"),
    "kernel classifier": KernelRidgeClassifier(random_state=0),
    "kernel regressor": KernelRidgeRegressor(random_state=0),
    "portfolio classifier": EDRVFLPortfolioClassifier(members=OF_CLASSES, random_state=0),
    "portfolio regressor": EDRVFLPortfolioRegressor(members=MEMBERS, random_state=0),
}


def visits(rng, n_groups=24, n=5):
    """Rows of groups that each have a level of their own, and two columns by which they are known."""
    groups, level = np.repeat(np.arange(n_groups), n), rng.standard_normal(n_groups)
    X = np.column_stack([rng.standard_normal((n_groups, 2))[groups], rng.standard_normal(len(groups))])
    return X, X[:, 2] + 2 * level[groups] + 0.1 * rng.standard_normal(len(groups)), groups


def table(rng, estimator, **sizes):
    X, y, groups = visits(rng, **sizes)
    return X, (y > 0).astype(int) if estimator._classifies else y, groups


def answers(model, X):
    return model.predict_proba(X) if model._classifies else model.predict(X)


def loo_of(model):
    names = ("loo_accuracy_", "loo_accuracies_", "loo_r2_score_", "loo_r2_scores_")
    return np.ravel(next(getattr(model, name) for name in names if hasattr(model, name)))[-1]


@pytest.mark.parametrize("name", ESTIMATORS)
def test_groups_of_one_row_are_none_and_names_do_not_matter(rng, name):
    X, y, groups = table(rng, ESTIMATORS[name])
    model = sklearn.base.clone(ESTIMATORS[name])
    plain, loo = answers(model.fit(X, y), X), loo_of(model)
    np.testing.assert_array_equal(answers(model.fit(X, y, groups=rng.permutation(len(y))), X), plain)
    assert loo_of(model) == loo
    left_out, honest = answers(model.fit(X, y, groups=groups), X), loo_of(model)
    assert honest < loo - 0.05
    for names in (
        [f"patient {number}" for number in rng.permutation(24)[groups]],
        pd.Series(groups, dtype="category", index=groups[::-1]),
        pl.Series(groups * 0.5),
    ):
        np.testing.assert_array_equal(answers(model.fit(X, y, groups=names), X), left_out)


@pytest.mark.parametrize("n_hidden", [12, 80], ids=["primal", "dual"])
@pytest.mark.parametrize("regularization", [0.5, "loo"])
@pytest.mark.parametrize("readout", ["layers", "joint"])
@pytest.mark.parametrize("weighted", [False, True])
def test_errors_are_those_of_networks_fitted_without_each_group(
    rng, n_hidden, regularization, readout, weighted
):
    X, y = noisy_values(rng, 40, 3)
    groups = np.concatenate([np.zeros(14, int), rng.integers(1, 6, 26)])
    counts = rng.choice([0.4, 1.0, 3.0], 40) if weighted else np.ones(40)
    params = {"n_hidden": n_hidden, "regularization": regularization, "readout": readout}
    model = EDRVFLRegressor(n_layers=2, **params, random_state=0)
    model.fit(X, y, counts if weighted else None, groups=groups)
    mean = np.average(y, weights=counts)
    sd = np.sqrt(np.average((y - mean) ** 2, weights=counts))
    Y, left_out, joint = (y[:, None] - mean) / sd, [], []
    for l, D in enumerate(features_by_layer(model.network_, X)):
        joint = [D[:, n_hidden:].copy(), *joint[1:], D[:, :n_hidden].copy()]
        D = np.concatenate(joint, axis=1) if readout == "joint" else D
        lam = model.regularization_[l]
        left_out.append(reference.scores_without_each_row(D, Y, lam, np.ones(40), counts, groups))
    scores = left_out[-1] if readout == "joint" else np.mean(left_out, axis=0)
    errors, widths = (Y - scores)[:, 0] * sd, model.coverage_.record.widths
    if regularization == "loo":  # the folds of few rows choose other penalties
        assert np.isfinite(model.coverage_.record.values).all()
        return
    assert widths is None
    np.testing.assert_allclose(model.coverage_.record.values[0], np.sort(errors), rtol=1e-9, atol=1e-9)
    order = np.argsort(errors)
    expected = counts / np.bincount(groups, counts)[groups]  # every group counts 1
    np.testing.assert_allclose(model.coverage_.record.weights[0], expected[order], rtol=1e-9)


def test_leave_one_out_flatters_and_leave_one_group_out_does_not(rng):
    X, y, groups = visits(rng, 50, 6)
    new, truth, _ = visits(rng, 300, 2)
    model = KernelRidgeRegressor(random_state=0).fit(X, y, groups=groups)
    flattering = KernelRidgeRegressor(random_state=0).fit(X, y)
    lower, upper = model.predict_interval(new)
    assert flattering.loo_r2_score_ > flattering.score(new, truth) + 0.3
    assert abs(model.loo_r2_score_ - model.score(new, truth)) < 0.15
    assert model.score(new, truth) > flattering.score(new, truth)
    assert np.mean((lower <= truth) & (truth <= upper)) > 0.85
    narrow = flattering.predict_interval(new)
    assert np.mean((narrow[0] <= truth) & (truth <= narrow[1])) < 0.8


@pytest.mark.parametrize("name", ["classifier", "kernel regressor", "portfolio classifier"])
def test_split_holds_whole_groups_back(rng, name):
    model = sklearn.base.clone(ESTIMATORS[name]).set_params(coverage_from="split")
    X, y, groups = table(rng, model, n_groups=80, n=3)
    model.fit(X, y, groups=groups)
    weights = model.coverage_.record.weights
    assert weights.sum() == pytest.approx(39)  # groups
    assert len(np.ravel(weights)) == 39 * 3


def test_guests_of_a_portfolio_never_answer_out_of_bag(rng):
    X, y, groups = visits(rng, 30, 6)
    guests = [("forest", RandomForestRegressor(40, oob_score=True))]
    model = EDRVFLPortfolioRegressor(members=guests, random_state=0)
    flattering = model.fit(X, y).loo_r2_score_
    assert model.fit(X, y, groups=groups).loo_r2_score_ < flattering - 0.3


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        (np.zeros(10), "at least two different values"),
        (np.arange(9), "it has 9 values and X has 10 rows"),
        (np.zeros((10, 1)), "in one dimension"),
        ([*range(9), None], "missing value in row 9"),
        (np.array([np.nan, *range(9)]), "missing value in row 0"),
        (pd.Series(["a", None] * 5), "missing value in row 1"),
        (pl.Series([1, None] * 5), "missing value in row 1"),
        (np.ma.array(range(10), mask=[False] * 4 + [True] * 6), "missing value in row 4"),
        (pd.Series([[1], [2]] * 5), "groups must hold numbers, text .* unhashable type: 'list'"),
    ],
)
def test_groups_that_are_none_say_so(rng, groups, message):
    X, y = rng.standard_normal((10, 2)), np.arange(10) % 2
    with pytest.raises((ValueError, TypeError), match=message):
        EDRVFLClassifier(**NETWORK).fit(X, y, groups=groups)


def test_groups_of_positive_weight_must_be_two(rng):
    X, y, weights = rng.standard_normal((10, 2)), np.arange(10.0), np.ones(10)
    weights[5:] = 0
    with pytest.raises(ValueError, match="at least two different values"):
        KernelRidgeRegressor().fit(X, y, weights, np.arange(10) // 5)
    with pytest.raises(ValueError, match="groups are for rows in memory"):
        KernelRidgeRegressor().fit(RowBlocks([(X, y)]), groups=np.arange(10))


def test_a_class_of_one_group_is_warned_of(rng):
    X, y, groups = table(rng, ESTIMATORS["classifier"])
    y[groups == 3] = 2
    with pytest.warns(UserWarning, match="1 of 3 classes are in one group only"):
        model = EDRVFLClassifier(**NETWORK).fit(X, y, groups=groups)
    assert (np.asarray(model.coverage_.record.values) == -np.inf).sum() == 5


def test_where_each_class_is_a_group_nothing_is_foretold(rng):
    X, groups = rng.standard_normal((60, 2)), np.r_[np.zeros(5, int), np.ones(55, int)]
    with pytest.warns(UserWarning, match="2 of 2 classes are in one group only"):
        model = KernelRidgeClassifier(random_state=0).fit(X, groups, groups=groups)
    assert model.loo_accuracy_ == 0  # its prior, the share of the class in all rows, would name most of them


def test_two_groups_and_large_ones(rng):
    X, y, _ = visits(rng, 20, 10)
    for groups in (np.arange(200) % 2, np.r_[np.zeros(190), np.arange(1, 11)]):
        for model in (EDRVFLRegressor(**NETWORK), KernelRidgeRegressor(random_state=0)):
            assert np.isfinite(loo_of(model.fit(X, y, groups=groups)))


def test_scikit_learns_metadata_routing_brings_groups_to_fit_in_a_pipeline(rng):
    X, y, groups = visits(rng)
    with sklearn.config_context(enable_metadata_routing=True):
        model = EDRVFLRegressor(**NETWORK).set_fit_request(groups=True)
        pipeline = make_pipeline(StandardScaler(), model)
        found = cross_validate(
            pipeline, X, y, cv=GroupKFold(3), params={"groups": groups}, return_estimator=True
        )
    for (train, _), fitted in zip(GroupKFold(3).split(X, y, groups), found["estimator"], strict=True):
        Z = StandardScaler().fit_transform(X[train])
        alone = EDRVFLRegressor(**NETWORK).fit(Z, y[train], groups=groups[train])
        assert fitted[-1].loo_r2_scores_ == pytest.approx(alone.loo_r2_scores_)


@pytest.mark.parametrize("routing", [False, True])
@pytest.mark.parametrize("scoring", [None, "r2", "neg_median_absolute_error"])
def test_a_search_gives_groups_to_its_splitter_and_to_every_fit(rng, routing, scoring):
    X, y, groups = visits(rng)
    space, network = (
        {"n_hidden": [10, 20]},
        EDRVFLRegressor(n_layers=2, layer_votes="weighted", random_state=0),
    )
    search = EDRVFLSearchCV(network, space, n_iter=None, cv=GroupKFold(3), scoring=scoring)
    with sklearn.config_context(enable_metadata_routing=routing):
        if routing:
            search.set_fit_request(groups=True)
        search.fit(X, y, groups=groups)
    scorer = sklearn.metrics.check_scoring(network, scoring)
    for i, (train, test) in enumerate(GroupKFold(3).split(X, y, groups)):
        alone = (
            sklearn.base.clone(network).set_params(n_hidden=10).fit(X[train], y[train], groups=groups[train])
        )
        scores = search.cv_results_[f"split{i}_test_score"]
        row = search.cv_results_["params"].index({"n_hidden": 10, "n_layers": 2})
        assert scores[row] == pytest.approx(scorer(alone, X[test], y[test]), abs=1e-9)
    again = sklearn.base.clone(network).set_params(**search.best_params_).fit(X, y, groups=groups)
    np.testing.assert_allclose(search.predict(X), again.predict(X))


def test_no_warning_without_a_reason(rng):
    X, y, groups = visits(rng)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        EDRVFLRegressor(**NETWORK).fit(X, y, groups=groups)
