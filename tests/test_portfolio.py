"""EDRVFLPortfolioClassifier: what its answer is made of, its table of members, and members it refuses."""

import re

import numpy as np
import pandas as pd
import pytest
from cases import CLASS_MEMBERS as MEMBERS
from helpers import PAPER, FixedSeed, features_by_layer, noisy_rows, to_host
from reference import kernel_scores_without_each_row, scores_without_each_row
from scipy.special import softmax
from sklearn.base import clone
from sklearn.linear_model import LinearRegression
from sklearn.metrics import log_loss

from edrvfl import EDRVFLClassifier, EDRVFLPortfolioClassifier, KernelRidgeClassifier, TabularEncoder
from edrvfl._fitting.folds import deal_folds, dealt
from edrvfl._inputs.rows import prepare_rows
from edrvfl._loo.calibrate import calibrate
from edrvfl._loo.jury import Jury
from edrvfl._loo.pool import equal_kinds, keep_heavy, pool_weights
from edrvfl._models.network import Network

KERNEL, DENSE, SPARSE, SIGMOID = MEMBERS


def portfolio(**params):
    return EDRVFLPortfolioClassifier(**{"members": MEMBERS, "finalists": 2, "random_state": 0, **params})


# --- what the answer is made of --------------------------------------------------------------------------


def alone(model, i, X, y):
    """Fit the member of a voter as an estimator alone; return its probabilities at the chosen depth."""
    voter, table = model.portfolio_.voters[i], model.members_
    place = np.flatnonzero(table["weight"])[i]
    noted, given = table["settings"][place], dict(model.members)[table["member"][place]].get_params()
    proves = [name for name in PAPER if given.get(name) == "loo"]
    estimator = clone(noted).set_params(calibration="temperature", **dict.fromkeys(proves, "loo"))
    if isinstance(voter, Network):
        estimator.set_params(random_state=FixedSeed(voter.seed))
    estimator.fit(X, y)
    assert estimator.proven_ == {name: getattr(noted, name) for name in proves}
    if not isinstance(voter, Network):
        assert table["loo_log_loss"][place] == pytest.approx(estimator.loo_log_loss_, rel=1e-6)
        return estimator.predict_proba(X)
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


def test_leave_one_out_figures_by_brute_force(rng):
    X, y = noisy_rows(rng, 60, 4)
    Y, ones = np.eye(3)[y], np.ones(60)
    neutral = {"correct_weight": 1.0, "prune_rate": 0.0, "input_scaling": None}
    plain = {"regularization": 0.5, "ensemble": "mean", **neutral}
    members = [
        ("kernel", KernelRidgeClassifier(bandwidth=0.5, regularization=0.2, input_scaling=None)),
        ("wide", EDRVFLClassifier(n_layers=2, n_hidden=15, **plain)),
        ("narrow", EDRVFLClassifier(n_layers=3, n_hidden=4, activation="sigmoid", **plain)),
    ]
    model = portfolio(members=members, finalists=None, weights="equal").fit(X, y)
    found = deal_folds(prepare_rows(X, y), None)
    folds, parts = [fold.order[-len(fold.places) :] for fold in found], dealt(found).parts
    others = [np.setdiff1d(np.arange(60), inside) for inside in folds]
    assert len(folds) == 3

    def calibrated(P, rule):
        """Calibrate each part as the other parts say."""
        Q = np.empty_like(P)
        for inside in (parts == part for part in range(5)):
            Q[inside] = calibrate(P[~inside], y[~inside], ones[~inside], rule)(P[inside])
        return Q

    answers = []
    for voter in model.portfolio_.voters:
        if isinstance(voter, Network):
            layers = [scores_without_each_row(D, Y, 0.5, ones, ones) for D in features_by_layer(voter, X)]
            scores = np.mean(layers, axis=0)
        else:
            Z, voter, scores = voter.voter.inputs.apply(X), voter.voter, np.empty(Y.shape)
            for inside, outside in zip(folds, others, strict=True):
                prior = Y[outside].mean(axis=0)
                of_fold = kernel_scores_without_each_row(Z, Y, voter.bandwidth, voter.lam, prior)
                scores[inside] = of_fold[inside]
        answers.append(calibrated(softmax(scores, axis=1), "temperature"))
    losses = [log_loss(y, P) for P in answers]
    np.testing.assert_allclose(model.members_["loo_log_loss"], losses, rtol=1e-5)

    def together(rows, weights):
        """Return the common answer to some rows."""
        product = np.prod([P[rows] ** w for P, w in zip(answers, weights, strict=True)], axis=0)
        return product / product.sum(axis=1, keepdims=True)

    def weights_by(rows):
        """Return the weights that some rows give."""
        jury = Jury(y[rows], ones[rows], ones[rows] > 0)
        return keep_heavy(pool_weights([P[rows] for P in answers], jury, equal))

    equal = np.array(model.members_["weight"])
    common = calibrated(together(slice(None), equal), "matrix")
    assert model.loo_log_loss_ == pytest.approx(log_loss(y, common), rel=1e-4)
    assert model.loo_accuracy_ == pytest.approx(np.mean(common.argmax(axis=1) == y))
    # the weights are those of the same answers, and a fold is answered with the weights of the others
    by_loo = clone(model).set_params(weights="loo").fit(X, y)
    np.testing.assert_allclose(by_loo.members_["weight"], weights_by(slice(None)), atol=1e-3)
    for inside, outside in zip(folds, others, strict=True):
        common[inside] = together(inside, weights_by(outside))
    assert by_loo.loo_log_loss_ == pytest.approx(log_loss(y, calibrated(common, "matrix")), rel=1e-3)


def test_leave_one_out_figures_are_honest():
    off = []
    for draw in range(4):
        X, y = noisy_rows(np.random.default_rng(draw), 2300, 4)
        model = portfolio().fit(X[:300], y[:300])
        P = model.predict_proba(X[300:])
        accuracy, loss = np.mean(P.argmax(axis=1) == y[300:]), log_loss(y[300:], P)
        off.append((model.loo_accuracy_ - accuracy, model.loo_log_loss_ - loss))
    assert (np.abs(np.mean(off, axis=0)) < [0.04, 0.08]).all()


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
        assert not hasattr(noted, "classes_")
        fitted = {name: getattr(noted, name) for name in PAPER if getattr(given, name, None) == "loo"}
        assert "loo" not in fitted.values()  # it has become a value
        if hasattr(given, "n_layers"):  # who left the race has one layer
            fitted["n_layers"] = noted.n_layers
            assert noted.n_layers in (1, given.n_layers)
        assert noted.get_params() == given.get_params() | fitted


def test_layers_beyond_the_chosen_depth_are_not_kept(noisy):
    X, y = noisy
    # samples that a layer gets right count nearly nothing in the next
    extreme = EDRVFLClassifier(n_layers=6, n_hidden=60, regularization=0.1, correct_weight=0.01)
    model = portfolio(members=[("extreme", extreme.set_params(weight_from="loo"))]).fit(X, y)
    (network,) = model.portfolio_.voters
    assert len(network.layers) == len(network.readouts) == model.members_["n_layers"][0] < 6
    np.testing.assert_allclose(model.portfolio_.calibration(alone(model, 0, X, y)), model.predict_proba(X))


def test_members_of_negligible_weight_are_not_kept(rng, limit):
    limit(NEGLIGIBLE=0.2)
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
    kernels = [name for name, _ in table if name.endswith("kernel")]
    fitted = given.members_["member"]
    assert fitted == [name for name, _ in table if name in fitted]
    assert set(kernels) - set(fitted)
    assert len(set(kernels) & set(fitted)) == 2
    assert len(fitted) == len(table) - len(kernels) + 2


def test_fitting_leaves_the_members_as_they_were(noisy):
    before = [vars(estimator).copy() for _, estimator in MEMBERS]
    portfolio().fit(*noisy)
    assert [vars(estimator) for _, estimator in MEMBERS] == before


# --- answers ---------------------------------------------------------------------------------------------


def test_same_seed_same_bits_other_seed_other_networks(noisy):
    X, y = noisy
    one, two = (portfolio().fit(X, y).predict_proba(X) for _ in range(2))
    np.testing.assert_array_equal(one, two)
    assert np.abs(portfolio(random_state=1).fit(X, y).predict_proba(X) - one).max() > 1e-3
    seeds = [
        voter.seed for voter in portfolio(finalists=None, weights="equal").fit(X, y).portfolio_.voters[1:]
    ]
    assert len(set(seeds)) == 3


# --- frames ----------------------------------------------------------------------------------------------


def mixed_frame(rng, library, m):
    """Draw a table with words, numbers and gaps, and labels that need both columns."""
    kind, size = rng.choice(["red", "green", "blue"], m), rng.standard_normal(m)
    y = np.where((kind == "red") ^ (size > 0), "yes", "no")
    size[::17] = np.nan
    words = [None if i % 23 == 0 else str(k) for i, k in enumerate(kind)]
    return library.DataFrame({"kind": words, "size": size, "noise": rng.standard_normal(m)}), y


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
    ("members", "error", "message"),
    [
        ([], ValueError, "at least one .name, estimator.; None takes the default"),
        ([DENSE[1]], ValueError, "must be a list of .name, estimator., but one of them is"),
        ([("a", "b", "c")], ValueError, "must be a list of .name, estimator."),
        ([(3, DENSE[1])], ValueError, "must be a list of .name, estimator."),
        ([("a", LinearRegression())], TypeError, "'a' must be an EDRVFLClassifier or a KernelRidge"),
        ([("a", EDRVFLClassifier)], TypeError, "'a' must be an EDRVFLClassifier or a KernelRidge"),
        ([DENSE, KERNEL, DENSE], ValueError, "must differ, got dense, kernel, dense"),
        (one(encoder=None), ValueError, "'one' has encoder=None"),
        (one(activation="gelu"), ValueError, "Member 'one': The 'activation' parameter of EDRVFLClassifier"),
        (one(encoder=TabularEncoder("bins", n_bins=1)), ValueError, "n_bins"),
    ],
    ids=str,
)
def test_members_that_cannot_be(noisy, members, error, message):
    with pytest.raises(error, match=message):
        portfolio(members=members).fit(*noisy)


@pytest.mark.parametrize(
    "params",
    [
        {"class_weight": "balanced"},
        {"random_state": 0},
        {"calibration": None},
        {"layer_votes": "weighted"},
        {"coverage_from": "split"},
        {"encoder": TabularEncoder(categorical_features=[0])},
    ],
    ids=str,
)
def test_what_the_portfolio_decides_no_member_sets(noisy, params):
    name = "categorical_features" if "encoder" in params else next(iter(params))
    with pytest.raises(ValueError, match=f"'one' sets {name}, which the portfolio decides"):
        portfolio(members=one(**params)).fit(*noisy)


# --- unusual input that must work ------------------------------------------------------------------------


def test_a_fitted_portfolio_does_not_hold_its_training_rows(noisy):
    X, y = noisy
    like = portfolio().fit(X, y).portfolio_.like
    assert like.base is None
    assert like.size == 0
