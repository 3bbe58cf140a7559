"""What one network has beyond the paper: sparse neurons, drawn scales, pairs, scaled inputs, its width."""

from dataclasses import replace

import numpy as np
import pytest
from helpers import PAPER, noisy_rows
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from edrvfl import EDRVFLClassifier, EDRVFLPortfolioClassifier, EDRVFLSearchCV, TabularEncoder
from edrvfl._layers.records import Shape, auto_shape

SMALL = EDRVFLClassifier(n_layers=3, n_hidden=16, regularization=1.0, random_state=0, **PAPER)
OPTIONS = {
    "few inputs": {"inputs_per_neuron": 2},
    "few neurons": {"hidden_per_neuron": 4},
    "scales": {"norm_scale": (0.5, 2.0)},
    "shifts": {"norm_shift": [-1.0, 1.0]},
    "width": {"n_hidden": "auto"},
    "pairs": {"pair_share": 0.5},
    "pairs without re-normalisation": {"pair_share": 1.0, "renormalize": False},
    "gradient": {"input_scaling": "gradient"},
    "all": {
        "inputs_per_neuron": 3,
        "hidden_per_neuron": 4,
        "norm_scale": (0.5, 2.0),
        "norm_shift": (-1.0, 1.0),
        "pair_share": 0.5,
        "input_scaling": "gradient",
        "encoder": "bins",
    },
}
EVERY_OPTION = pytest.mark.parametrize("name", OPTIONS)


def network_with(name, **params):
    return clone(SMALL).set_params(**OPTIONS[name], **params)


@EVERY_OPTION
def test_a_search_scores_as_networks_alone(noisy, name):
    X, y = noisy
    space = {"regularization": [0.1, 10.0], "correct_weight": [0.5, 1.0], "n_layers": [3]}
    search = EDRVFLSearchCV(network_with(name), space, n_iter=None, cv=3, scoring="neg_log_loss").fit(X, y)
    assert_scores_as_alone(search, X, y)


def test_options_can_be_searched(noisy):
    X, y = noisy
    options = [{key: [value] for key, value in params.items()} for params in OPTIONS.values()]
    space = [{**one, "n_layers": [2]} for one in options]
    search = EDRVFLSearchCV(SMALL, space, n_iter=None, cv=3, scoring="neg_log_loss").fit(X, y)
    scores = assert_scores_as_alone(search, X, y)
    assert len(np.unique(scores.round(9))) == len(OPTIONS)  # nobody shares what is not theirs


def assert_scores_as_alone(search, X, y):
    grid = [{key: [value] for key, value in row.items()} for row in search.cv_results_["params"]]
    alone = GridSearchCV(search.estimator, grid, cv=3, scoring=search.scoring, refit=False).fit(X, y)
    scores = search.cv_results_["mean_test_score"]
    np.testing.assert_allclose(scores, alone.cv_results_["mean_test_score"], atol=1e-9)
    return scores


# --- one by one ------------------------------------------------------------------------------------------


def test_a_neuron_sees_few_columns_whatever_the_encoder_makes_of_them(rng):
    X, y = noisy_rows(rng, 200, 6)
    X[:, 3] = rng.integers(0, 5, 200)
    encoder = TabularEncoder("bins", categorical_features=[3])
    model = clone(SMALL).set_params(inputs_per_neuron=2, encoder=encoder).fit(X, y)
    source = np.array(model.network_.inputs.source)
    assert len(source) > 30
    for layer in model.network_.layers:
        sees = layer.W[-len(source) :, :] != 0
        counts = [len(np.unique(source[sees[:, j]])) for j in range(16)]
        assert set(counts) == {1, 2}


def test_a_pair_of_the_same_numbers_is_the_number(noisy):
    X, y = noisy
    one = clone(SMALL).set_params(norm_scale=1.5, norm_shift=-0.5).fit(X, y)
    pair = clone(SMALL).set_params(norm_scale=(1.5, 1.5), norm_shift=(-0.5, -0.5)).fit(X, y)
    np.testing.assert_array_equal(pair.predict_proba(X), one.predict_proba(X))


def test_without_renormalisation_scales_and_shifts_do_nothing(noisy):
    X, y = noisy
    one = clone(SMALL).set_params(renormalize=False).fit(X, y)
    pair = clone(one).set_params(norm_scale=(0.5, 2), norm_shift=(-1, 1)).fit(X, y)
    np.testing.assert_array_equal(pair.predict_proba(X), one.predict_proba(X))


def test_few_rows_have_the_papers_shape():
    assert {auto_shape(m) for m in (2, 1000, 10_000)} == {Shape(512, 10)}
    many, most = auto_shape(10_001), auto_shape(1e9)
    assert many == auto_shape(300_000)
    assert replace(many, n_hidden=most.n_hidden) == most
    assert many.n_hidden > most.n_hidden > 512
    assert many.n_layers < 10


@pytest.fixture
def many_is_200(limit):
    """More than 200 rows are many, so that a test of their shape is fast."""
    limit(MANY_ROWS=200, WIDE_SHAPE=Shape(24, 2))


@pytest.mark.parametrize("rows", [200, 201])
def test_a_network_of_that_shape_is_the_one_that_names_it(rng, rows, many_is_200):
    X, y = noisy_rows(rng, rows, 4)
    shape = auto_shape(rows)
    model = EDRVFLClassifier(random_state=0).fit(X, y)
    assert (model.n_hidden_, model.n_layers_) == (shape.n_hidden, shape.n_layers)
    named = EDRVFLClassifier(n_hidden=shape.n_hidden, n_layers=shape.n_layers, random_state=0)
    np.testing.assert_array_equal(model.predict_proba(X), named.fit(X, y).predict_proba(X))


def test_rows_are_counted_by_their_weights(rng, many_is_200):
    X, y = noisy_rows(rng, 150, 4)
    model = EDRVFLClassifier(random_state=0)
    assert model.fit(X, y).n_layers_ == 10
    assert model.fit(X, y, np.full(150, 2)).n_layers_ == 2
    X, y = np.vstack([X, X]), np.concatenate([y, y])
    assert model.fit(X, y).n_layers_ == 2
    assert model.fit(X, y, np.arange(300) < 150).n_layers_ == 10  # rows without weight are none


def test_a_depth_that_follows_the_rows_is_printed(rng, capsys, many_is_200):
    X, y = noisy_rows(rng, 201, 4)
    EDRVFLClassifier(verbose=1).fit(X, y)
    assert [line.split(":")[0].split()[-1] for line in capsys.readouterr().out.splitlines()] == ["1/2", "2/2"]


def test_members_of_a_portfolio_have_the_shape_of_the_rows(rng, many_is_200):
    X, y = noisy_rows(rng, 201, 4)
    members = [("one", EDRVFLClassifier()), ("other", EDRVFLClassifier(activation="tanh"))]
    portfolio = EDRVFLPortfolioClassifier(members=members, finalists=1, random_state=0).fit(X, y)
    assert set(portfolio.members_["n_hidden"]) == {24}
    assert max(portfolio.members_["n_layers"]) <= 2


def test_a_search_tries_the_papers_depths_whatever_the_rows(rng, many_is_200):
    X, y = noisy_rows(rng, 300, 4)
    search = EDRVFLSearchCV(EDRVFLClassifier(random_state=0), {"regularization": [1.0]}, n_iter=None, cv=2)
    search.fit(X, y)
    assert [params["n_layers"] for params in search.cv_results_["params"]] == list(range(1, 11))
    assert search.best_estimator_.n_layers_ == search.best_params_["n_layers"]
    assert search.best_estimator_.n_hidden_ == 512


def test_the_width_is_a_fitted_attribute(rng, many_is_200):
    X, y = noisy_rows(rng, 400, 4)
    model = clone(SMALL).set_params(n_hidden="auto", n_layers=1, prune_rate=0.25).fit(X, y)
    assert model.n_hidden_ == model.network_.n_hidden == 24
    assert model.neurons_kept_ == (18,)
    assert clone(SMALL).fit(X, y).n_hidden_ == 16


def test_pairs_see_where_classes_differ(rng):
    X, y = noisy_rows(rng, 300, 40)
    X[:, 0] = 4 * y  # far apart in one of many columns
    model = clone(SMALL).set_params(pair_share=0.5, n_hidden=200).fit(X, y)
    W = np.abs(model.network_.layers[0].W)
    share = W[0] / W.sum(axis=0)
    assert share[:100].mean() > 1.3 * share[100:].mean()
