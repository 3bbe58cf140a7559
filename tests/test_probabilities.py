"""The classifier's calibrated answers, its leave-one-out figures, and the votes of its layers."""

import itertools

import numpy as np
import pytest
from helpers import PAPER, noisy_rows
from reference import scores_without_each_row
from scipy.special import softmax
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits, make_classification
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

from edrvfl import EDRVFLClassifier
from edrvfl._fitting.folds import deal_folds, dealt
from edrvfl._inputs.rows import prepare_rows
from edrvfl._loo.calibrate import calibrate

CALIBRATIONS = [None, "temperature", "matrix"]
LAYER_VOTES = ["equal", "prefix", "weighted"]
ENSEMBLES = ["softmax", "mean", "vote"]

every_ensemble = pytest.mark.parametrize("ensemble", ENSEMBLES)
every_calibration = pytest.mark.parametrize("calibration", CALIBRATIONS)
every_vote = pytest.mark.parametrize("layer_votes", LAYER_VOTES)
two_or_three = pytest.mark.parametrize("k", [2, 3])
two_or_three_in_both_precisions = pytest.mark.parametrize(("k", "dtype"), [(2, "float64"), (3, "float32")])


def network(**params):
    small = {**PAPER, "n_layers": 4, "n_hidden": 12, "regularization": 0.5, "random_state": 0}
    return EDRVFLClassifier(**{**small, **params})


def rows(k, m=120, seed=7):
    """Draw rows of two or three classes that are not separable."""
    X, y = noisy_rows(np.random.default_rng(seed), m, 5)
    return X, np.minimum(y, k - 1)


def sign_or_argmax(scores):
    return (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)


# --- predictions and probabilities agree -----------------------------------------------------------------


@every_ensemble
@two_or_three_in_both_precisions
def test_predictions_are_the_largest_probabilities_and_scores(ensemble, k, dtype):
    X, y = rows(k)
    X = X.astype(dtype)
    new = np.random.default_rng(1).standard_normal((300, 5)).astype(dtype)
    for calibration, layer_votes in itertools.product(CALIBRATIONS, LAYER_VOTES):
        model = network(ensemble=ensemble, calibration=calibration, layer_votes=layer_votes).fit(X, y)
        P = model.predict_proba(new)
        assert P.dtype == dtype
        np.testing.assert_allclose(P.sum(axis=1), 1, atol=1e-5)
        np.testing.assert_array_equal(model.predict(new), P.argmax(axis=1))
        np.testing.assert_array_equal(sign_or_argmax(model.decision_function(new)), P.argmax(axis=1))
        methods = (model.staged_predict, model.staged_predict_proba, model.staged_decision_function)
        for labels, P, scores in zip(*(method(new) for method in methods), strict=True):
            np.testing.assert_array_equal(labels, P.argmax(axis=1))
            np.testing.assert_array_equal(sign_or_argmax(scores), P.argmax(axis=1))


@every_ensemble
@two_or_three_in_both_precisions
@every_vote
def test_a_temperature_changes_no_prediction(ensemble, k, layer_votes, dtype):
    X, y = rows(k)
    X = X.astype(dtype)
    new = np.random.default_rng(1).standard_normal((300, 5)).astype(dtype)
    plain, tempered = (
        network(ensemble=ensemble, calibration=calibration, layer_votes=layer_votes).fit(X, y)
        for calibration in (None, "temperature")
    )
    np.testing.assert_array_equal(tempered.predict(new), plain.predict(new))
    for one, other in zip(tempered.staged_predict(new), plain.staged_predict(new), strict=True):
        np.testing.assert_array_equal(one, other)
    assert np.abs(tempered.predict_proba(new) - plain.predict_proba(new)).max() > 1e-3


def test_loo_is_the_matrix():
    X, y = rows(3)
    one, other = (network(calibration=name).fit(X, y).predict_proba(X) for name in ("loo", "matrix"))
    np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    "load",
    [
        load_breast_cancer,
        load_digits,
        lambda return_X_y: make_classification(
            700, 10, n_informative=5, n_classes=4, flip_y=0.2, random_state=0
        ),
    ],
    ids=["breast cancer", "digits", "noisy"],
)
def test_calibration_lowers_the_log_loss_of_new_rows(load):
    X, y = load(return_X_y=True)
    half, other = train_test_split(np.arange(len(y)), test_size=0.5, stratify=y, random_state=0)
    model, said, measured = network(n_hidden=60, regularization=1.0), [], []
    for fitted, new in ((half, other), (other, half)):
        plain, tempered, scaled = (
            log_loss(
                y[new], clone(model).set_params(calibration=c).fit(X[fitted], y[fitted]).predict_proba(X[new])
            )
            for c in CALIBRATIONS
        )
        assert tempered < 0.95 * plain
        assert scaled < 0.95 * plain
        model.fit(X[fitted], y[fitted])
        said.append((model.loo_log_losses_[-1], model.loo_accuracies_[-1]))
        measured.append((scaled, model.score(X[new], y[new])))
    # what the fits say of themselves is what new rows say of them
    (loss, accuracy), expected = np.mean(said, axis=0), np.mean(measured, axis=0)
    assert loss == pytest.approx(expected[0], rel=0.4)  # of 898 rows of digits few decide it
    assert accuracy == pytest.approx(expected[1], abs=0.04)


# --- depths ----------------------------------------------------------------------------------------------


@every_calibration
@two_or_three
def test_a_prefix_is_that_of_the_smallest_loss(calibration, k):
    seen = set()
    for seed in range(4):
        X, y = rows(k, 60, seed)
        every = network(calibration=calibration or "temperature", n_hidden=25).fit(X, y)
        plain = network(calibration=calibration, n_hidden=25).fit(X, y)
        stages = list(plain.staged_predict_proba(X))
        for depth in range(1, 5):
            model = clone(plain).set_params(layer_votes="prefix", n_layers=depth).fit(X, y)
            best = int(np.argmin(every.loo_log_losses_[:depth]))
            assert model.n_layers_ == len(model.network_.layers) == best + 1
            np.testing.assert_allclose(model.predict_proba(X), stages[best], atol=1e-12)
            assert len(list(model.staged_predict(X))) == best + 1
            np.testing.assert_allclose(model.loo_log_losses_, every.loo_log_losses_[:depth], atol=1e-12)
            seen.add((depth, best + 1))
    assert len([1 for depth, best in seen if best < depth]) > 1  # the law was put to the test


# --- what leave-one-out says -----------------------------------------------------------------------------


def features_by_layer(model, X):
    """Yield [H, X, 1] of every layer, from the numbers of the fitted network, with relu."""
    A = np.column_stack([np.zeros((len(X), model.n_hidden)), X, np.ones(len(X))])
    for layer in model.network_.layers:
        inputs = layer.inputs if isinstance(layer.inputs, slice) else list(layer.inputs)
        H = np.maximum(layer.scale * (A[:, inputs] @ layer.W) + layer.shift, 0)
        A = np.column_stack([H, X, np.ones(len(X))])
        yield A


@every_ensemble
@two_or_three
def test_the_figures_are_those_of_leaving_each_row_out(ensemble, k):
    X, y = rows(k, 60)
    neutral = {"correct_weight": 1.0, "prune_rate": 0.0}  # so that one fit judges
    model = network(**neutral, encoder=None, ensemble=ensemble, n_layers=3, calibration="matrix").fit(X, y)
    ones, parts = np.ones(60), dealt(deal_folds(prepare_rows(X, y), None)).parts
    scores = [scores_without_each_row(D, np.eye(k)[y], 0.5, ones, ones) for D in features_by_layer(model, X)]
    for depth in range(1, 4):
        layers = np.array(scores[:depth])
        P = {
            "softmax": softmax(layers, axis=-1).mean(axis=0),
            "mean": softmax(layers.mean(axis=0), axis=-1),
            "vote": np.eye(k)[layers.argmax(axis=-1)].mean(axis=0),
        }[ensemble]
        floor = 0.5 / depth if ensemble == "vote" else 1e-30  # no vote counts as half a vote
        Q = np.empty_like(P)
        for part in range(5):  # each is calibrated by the others
            inside = parts == part
            Q[inside] = calibrate(P[~inside], y[~inside], None, "matrix", floor=floor)(P[inside])
        assert model.loo_accuracies_[depth - 1] == pytest.approx(np.mean(Q.argmax(axis=1) == y))
        assert model.loo_log_losses_[depth - 1] == pytest.approx(log_loss(y, Q), abs=1e-5)


def test_without_calibration_and_votes_there_are_no_figures():
    X, y = rows(3)
    model = network(calibration=None).fit(X, y)
    assert model.loo_accuracies_ == model.loo_log_losses_ == ()
    assert len(network(calibration=None, layer_votes="prefix").fit(X, y).loo_accuracies_) == 4


@pytest.mark.parametrize("regularization", [0.5, "loo"])
def test_a_part_of_the_rows_calibrates_nearly_as_well(regularization):
    X, y = rows(2, 9000)  # of two classes 3,000 rows are judged
    model = network(regularization=regularization, n_hidden=30).fit(X[:6000], y[:6000])
    plain = network(regularization=regularization, n_hidden=30, calibration=None).fit(X[:6000], y[:6000])
    P, new = plain.predict_proba(X[6000:]), y[6000:]
    loss = log_loss(new, model.predict_proba(X[6000:]))
    # the new rows themselves would calibrate the same answers hardly better
    assert loss < 1.01 * log_loss(new, calibrate(P, new, None, "matrix")(P))
    assert loss < 0.99 * log_loss(new, P)
    assert model.loo_log_losses_[-1] == pytest.approx(loss, rel=0.08)


def test_a_rare_class_is_calibrated_by_all_its_rows(rng):
    m = 12_000
    X = rng.standard_normal((2 * m, 4))
    y = (X[:, 0] + 0.3 * rng.standard_normal(2 * m) > 2.9).astype(int)  # one row in 500
    model = EDRVFLClassifier(n_hidden=10, n_layers=2, random_state=0).fit(X[:m], y[:m])
    P = model.predict_proba(X[m:])[:, 1]
    assert P.sum() == pytest.approx(y[m:].sum(), rel=0.4)
    assert log_loss(y[m:], P) < 0.6 * log_loss(y[m:], np.full(m, y[:m].mean()))


# --- laws ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("calibration", ["temperature", "matrix"])
def test_class_weights_move_the_probabilities_and_not_only_the_labels(calibration):
    X, y = rows(2, 600)
    y = np.where(np.arange(600) % 3, 0, y)
    shares = np.mean(y)
    model = network(calibration=calibration).fit(X, y)
    # a temperature shifts no log-odds, so that answers which are less sure are further from rare classes
    near = 0.05 if calibration == "temperature" else 0.03
    assert model.predict_proba(X)[:, 1].mean() == pytest.approx(shares, abs=near)
    P = model.set_params(class_weight="balanced").fit(X, y).predict_proba(X)[:, 1]
    weighted = np.average(P, weights=np.where(y == 1, 0.5 / shares, 0.5 / (1 - shares)))
    assert weighted == pytest.approx(0.5, abs=0.03)


@every_calibration
@every_ensemble
@two_or_three
def test_float32_is_close_to_float64(calibration, ensemble, k):
    X, y = rows(k, 300)
    single, double = (
        network(calibration=calibration, ensemble=ensemble, layer_votes="weighted").fit(X.astype(dtype), y)
        for dtype in (np.float32, np.float64)
    )
    P = single.predict_proba(X.astype(np.float32))
    assert P.dtype == np.float32
    off = np.abs(P - double.predict_proba(X)).max(axis=1)
    assert np.quantile(off, 0.97) < 5e-3  # one row of a hundred may vote otherwise
    np.testing.assert_allclose(single.loo_log_losses_, double.loo_log_losses_, rtol=0.02)


# --- little and odd data ---------------------------------------------------------------------------------


def odd_data():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 3))
    yield "two rows", X[:2], [0, 1]
    yield "one row a class", X[:5], [0, 1, 2, 3, 4]
    yield "one class of one row", X, [2] + [0, 1] * 19 + [0]
    yield "a constant column", np.ones((20, 1)), [0, 1] * 10
    yield "separable", np.repeat([[-1.0], [1.0]], 20, axis=0), np.repeat([0, 1], 20)
    yield "separable, three classes", 9.0 * np.eye(3)[np.arange(30) % 3], np.arange(30) % 3
    yield "the same row in two classes", np.repeat(X[:4], 2, axis=0), [0, 1] * 4


@pytest.mark.filterwarnings("ignore:The number of unique classes is greater than 50%:UserWarning")
@pytest.mark.parametrize(("X", "y"), [case[1:] for case in odd_data()], ids=[case[0] for case in odd_data()])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_little_and_odd_data_give_finite_answers(X, y, dtype):
    X = X.astype(dtype)
    ensembles = ENSEMBLES if dtype == "float32" else ["softmax"]
    for params in itertools.product(CALIBRATIONS, LAYER_VOTES, ensembles):
        names = ("calibration", "layer_votes", "ensemble")
        model = network(**dict(zip(names, params, strict=True)), n_layers=3, n_hidden=6).fit(X, y)
        P = model.predict_proba(np.vstack([X, -X, 1e6 * X]))
        assert np.isfinite(P).all(), params
        np.testing.assert_allclose(P.sum(axis=1), 1, atol=1e-5)
        assert np.isfinite(model.loo_log_losses_).all(), params


@pytest.mark.parametrize("scale", [1e-3, 1e-8])
def test_tiny_weights_calibrate_as_rows_do(scale):
    X, y = rows(3)
    model = network(regularization=64.0 * scale)  # the penalty has the scale of the weights
    expected = network(regularization=64.0).fit(X, y).predict_proba(X)
    found = model.fit(X, y, sample_weight=np.full(len(y), scale)).predict_proba(X)
    np.testing.assert_allclose(found, expected, atol=1e-5)


@pytest.mark.parametrize("scale", [1e-30, 1e-200, 1e-300])
def test_weights_that_vanish_give_finite_answers(scale):
    X, y = rows(3)
    with pytest.warns(UserWarning, match="all classes get nearly the same probability"):
        model = network().fit(X, y, sample_weight=np.full(len(y), scale))
    assert np.isfinite(model.predict_proba(X)).all()
    assert np.isfinite(model.loo_log_losses_).all()
