"""dRVFL, readout="joint": one read-out over all layers, against one ridge over all columns by hand."""

import numpy as np
import pytest
from helpers import PAPER, noisy_rows, to_host
from reference import joint_features, scores_without_each_row
from scipy.linalg import LinAlgWarning
from scipy.special import softmax
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.metrics import log_loss

from edrvfl import EDRVFLClassifier, EDRVFLPortfolioClassifier, EDRVFLSearchCV, variant
from edrvfl._fitting.folds import deal_folds, dealt
from edrvfl._fitting.settings import network_settings
from edrvfl._inputs.encoding import EncoderSettings, learn_inputs
from edrvfl._inputs.rows import prepare_rows
from edrvfl._inputs.targets import Classes, RowWeights
from edrvfl._layers.draws import Draws, Recipe
from edrvfl._layers.grow import Problem, grow, start
from edrvfl._layers.layers import fill_inputs, new_features

DEPTH, N = 4, 15
NETWORK = variant("dRVFL", n_layers=DEPTH, n_hidden=N, regularization=0.5, random_state=3)
# 5 inputs, so [X, 1, H1, ..., H4] has 21, 36, 51, 66 columns: all primal; the last two dual; all dual
ROWS = pytest.mark.parametrize("m", [90, 40, 18], ids=["primal", "primal, then dual", "dual"])


def rows(m):
    return noisy_rows(np.random.default_rng(7), m, 5)


def scores_by_hand(model, X, y, X_new, counts=None, costs=None):
    """Scores of every depth, each by scikit-learn's ridge over [X, 1, H1, ..., Hl]."""
    counts, costs = (np.ones(len(y)) if w is None else w for w in (counts, costs))
    A, A_new = joint_features(X, X_new, model.network_.seed, DEPTH, N, counts)
    Y = np.eye(3)[y]
    for l in range(1, DEPTH + 1):
        c = X.shape[1] + 1 + l * N
        ridge = Ridge(model.regularization, fit_intercept=False, solver="svd").fit(
            A[:, :c], Y, counts * costs
        )
        yield A_new[:, :c] @ ridge.coef_.T


# ---- against one ridge by hand


@ROWS
@pytest.mark.parametrize("weights", ["none", "sample", "class", "both"])
def test_every_depth_is_one_ridge_over_all_columns(m, weights):
    X, y = rows(m)
    X_new, rng = rows(200)[0][-50:], np.random.default_rng(1)
    counts = rng.choice([0.5, 1.0, 2.0], m) if weights in ("sample", "both") else None
    class_weight = {0: 1.0, 1: 3.0, 2: 0.5} if weights in ("class", "both") else None
    model = clone(NETWORK).set_params(class_weight=class_weight).fit(X, y, counts)
    costs = None if class_weight is None else np.array([class_weight[label] for label in y])
    expected = [softmax(s, axis=1) for s in scores_by_hand(model, X, y, X_new, counts, costs)]
    for found, of_depth in zip(model.staged_predict_proba(X_new), expected, strict=True):
        np.testing.assert_allclose(found, of_depth, atol=1e-8)
    np.testing.assert_allclose(model.predict_proba(X_new), expected[-1], atol=1e-8)


@ROWS
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
def test_leave_one_out_of_every_depth_is_leaving_each_row_out(xp, m, weighted):
    X, y = rows(m)
    rng = np.random.default_rng(2)
    counts = rng.choice([0.4, 1.0, 3.0], m) if weighted else np.ones(m)
    costs = rng.uniform(0.5, 2, m) if weighted else np.ones(m)
    settings = network_settings(NETWORK).layers
    rows_in_xp, counts_in_xp = xp.asarray(X), xp.asarray(counts)
    inputs = learn_inputs(rows_in_xp, counts_in_xp, EncoderSettings())
    D = new_features(m, rows_in_xp, N, inputs)
    fill_inputs(D, rows_in_xp, inputs)
    draws = Draws(Recipe(5, N, inputs.source), rows_in_xp)
    targets = Classes(xp.asarray(y), 3, rows_in_xp[:0, 0])
    problem = Problem(targets, RowWeights(counts_in_xp, xp.asarray(costs)), draws, None, judges=True)
    A = joint_features(X, X, 5, DEPTH, N, counts)[0]
    for grown in grow(start(D, settings), problem):
        c = 6 + (grown.layer + 1) * N
        np.testing.assert_allclose(to_host(grown.D), A[:, :c], atol=1e-9)
        expected = scores_without_each_row(A[:, :c], np.eye(3)[y], 0.5, costs, counts)
        np.testing.assert_allclose(to_host(grown.loo)[0], expected, atol=1e-7)
    assert c == 66


# ---- depths


@pytest.mark.parametrize("calibration", ["loo", None])
def test_prefix_takes_the_depth_of_the_smallest_log_loss(calibration):
    X, y = rows(90)
    every = clone(NETWORK).set_params(calibration=calibration or "temperature").fit(X, y)
    best = 1 + int(np.argmin(every.loo_log_losses_))
    assert best < DEPTH, "otherwise nothing is cut"
    model = clone(NETWORK).set_params(layer_votes="prefix", calibration=calibration).fit(X, y)
    assert (model.n_layers_, len(model.loo_log_losses_)) == (best, DEPTH)
    shallow = clone(NETWORK).set_params(n_layers=best, calibration=calibration).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X), shallow.predict_proba(X), atol=1e-12)


def test_the_log_loss_of_a_depth_is_that_of_its_own_scores():
    """No layer before has a say: the best temperature for other parts, by scikit-learn's log-loss."""
    X, y = rows(90)
    model = clone(NETWORK).set_params(calibration="temperature").fit(X, y)
    A = joint_features(X, X, model.network_.seed, DEPTH, N, np.ones(90))[0]
    for l, found in enumerate(model.loo_log_losses_):
        loo = scores_without_each_row(A[:, : 21 + l * N], np.eye(3)[y], 0.5, np.ones(90), np.ones(90))
        P = np.empty(loo.shape)
        parts = dealt(deal_folds(prepare_rows(X, y), None)).parts
        for part in range(5):
            inside, outside = np.flatnonzero(parts == part), np.flatnonzero(parts != part)
            best = min(
                np.geomspace(1, 10, 40), key=lambda t: log_loss(y[outside], softmax(t * loo[outside], axis=1))
            )
            P[inside] = softmax(best * loo[inside], axis=1)
        assert found == pytest.approx(log_loss(y, P), abs=0.01)


def test_ensembles_act_on_one_score():
    X, y = rows(90)
    answers = {e: clone(NETWORK).set_params(ensemble=e).fit(X, y) for e in ("softmax", "mean", "vote")}
    P = {name: model.predict_proba(X) for name, model in answers.items()}
    np.testing.assert_allclose(P["softmax"], P["mean"], atol=1e-12)
    np.testing.assert_array_equal(P["vote"], np.eye(3)[P["mean"].argmax(axis=1)])


def test_it_has_the_features_of_edrvfl_n():
    X, y = rows(90)
    joint = clone(NETWORK).fit(X, y)
    layers = clone(joint).set_params(readout="layers").fit(X, y)
    for one, other in zip(joint.network_.layers, layers.network_.layers, strict=True):
        np.testing.assert_array_equal(one.W, other.W)
        np.testing.assert_array_equal(one.scale, other.scale)
    first = [next(model.staged_predict_proba(X)) for model in (joint, layers)]
    np.testing.assert_allclose(*first, atol=1e-10)  # with one layer there is no difference
    assert np.abs(joint.predict_proba(X) - layers.predict_proba(X)).max() > 0.01


# ---- arrays and precision


def test_blocks_of_rows_change_nothing_but_rounding(limit):
    X, y = rows(600)
    whole = list(clone(NETWORK).fit(X, y).staged_predict_proba(X))
    limit(CPU_BLOCK_BYTES=1)
    for P, expected in zip(clone(NETWORK).fit(X, y).staged_predict_proba(X), whole, strict=True):
        np.testing.assert_allclose(P, expected, atol=1e-11)


# ---- what is refused, and what warns


@pytest.mark.parametrize(
    ("params", "message"),
    [
        (
            {"correct_weight": 0.8, "prune_rate": 0.2},
            "but correct_weight=0.8 and prune_rate=0.2. Set correct_weight=1.0 and prune_rate=0.0.",
        ),
        ({"correct_weight": 1, "prune_rate": 0.2}, "but prune_rate=0.2. Set prune_rate=0.0."),
        ({"prune_rate": 0.2}, "but prune_rate=0.2. Set prune_rate=0.0."),
        ({"prune_rate": 0, "correct_weight": 0.5}, "but correct_weight=0.5. Set correct_weight=1.0."),
        ({"prune_rate": 0, "correct_weight": 1, "layer_votes": "weighted"}, 'Set layer_votes="equal", or'),
    ],
    ids=str,
)
def test_what_takes_the_read_out_of_a_layer_is_refused(params, message):
    with pytest.raises(ValueError, match=f'readout="joint" has one read-out over all layers.*{message}'):
        EDRVFLClassifier(readout="joint", **params).fit(*rows(40))


def test_a_portfolio_decides_the_read_out():
    members = [("deep", variant("dRVFL", calibration="loo"))]
    with pytest.raises(ValueError, match="Member 'deep' sets readout, which the portfolio decides"):
        EDRVFLPortfolioClassifier(members=members).fit(*rows(40))


def test_singular_depths_are_named():
    X, y = rows(90)
    X = np.hstack([X, X[:, :1]])  # a column twice, and lambda below rounding
    model = clone(NETWORK).set_params(regularization=1e-14)
    with pytest.warns(LinAlgWarning, match=r"singular in layers 1, 2, 3, 4"):
        model.fit(X, y)
    assert model.fallback_layers_ == (1, 2, 3, 4)
    assert np.isfinite(model.predict_proba(X)).all()


# ---- searches


@pytest.mark.parametrize(
    "params", [{}, {"calibration": "loo"}, {"calibration": None, "layer_votes": "prefix"}], ids=str
)
@pytest.mark.parametrize("m", [90, 40], ids=["primal", "dual"])
def test_a_search_scores_each_depth_as_a_network_fitted_alone(params, m):
    X, y = rows(m + 30)
    split = (np.arange(m), np.arange(m, m + 30))
    neutral = {"correct_weight": [1.0], "prune_rate": [0.0]}
    space = [
        {"readout": ["joint"], **neutral, "norm_scale": [0.7, 1.5], "regularization": [0.1, 4.0, 0.0, "loo"]},
        {"readout": ["layers"], **neutral, "regularization": [0.1, 4.0]},
    ]
    network = EDRVFLClassifier(n_layers=3, n_hidden=12, random_state=0, **PAPER).set_params(**params)
    search = EDRVFLSearchCV(network, space, n_iter=None, cv=[split], scoring="neg_log_loss", refit=False)
    table = search.fit(X, y).cv_results_
    assert len(table["params"]) == 3 * 10
    for found, score in zip(table["params"], table["split0_test_score"], strict=True):
        alone = clone(network).set_params(**found).fit(X[:m], y[:m])
        assert -log_loss(y[m:], alone.predict_proba(X[m:])) == pytest.approx(score, abs=1e-7)


def test_the_paper_s_box_is_that_of_edrvfl_n():
    X, y = rows(60)
    found = [
        EDRVFLSearchCV(variant(name, n_layers=2, random_state=0), n_iter=3, cv=2, random_state=1, refit=False)
        .fit(X, y)
        .cv_results_["params"]
        for name in ("dRVFL", "edRVFL_N")
    ]
    assert found[0] == found[1]
