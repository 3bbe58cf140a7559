"""Prediction intervals and sets of the estimators: what they cover, against conformal prediction by hand."""

import pickle
import re

import numpy as np
import pytest
import sklearn
from helpers import PAPER, Recorder, to_host
from scipy.stats import norm
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from edrvfl import (
    EDRVFLClassifier,
    EDRVFLPortfolioClassifier,
    EDRVFLPortfolioRegressor,
    EDRVFLRegressor,
    EDRVFLSearchCV,
    KernelRidgeClassifier,
    KernelRidgeRegressor,
    to_numpy,
    variant,
)
from edrvfl._fitting.coverage import _weights_of
from edrvfl._inputs.chosen import hold_back

NETWORK = {"n_layers": 3, "n_hidden": 60, "random_state": 0}
FEW = [("net", EDRVFLRegressor(n_layers=2, n_hidden=40)), ("kernel", KernelRidgeRegressor())]
FEW_CLASSES = [("net", EDRVFLClassifier(n_layers=2, n_hidden=40)), ("kernel", KernelRidgeClassifier())]
REGRESSORS = [
    EDRVFLRegressor(**NETWORK),
    KernelRidgeRegressor(random_state=0),
    EDRVFLPortfolioRegressor(members=FEW, random_state=0),
]
CLASSIFIERS = [
    EDRVFLClassifier(**NETWORK),
    KernelRidgeClassifier(random_state=0),
    EDRVFLPortfolioClassifier(members=FEW_CLASSES, random_state=0),
]
COVERAGES = (0.8, 0.9, 0.95)
SOURCES = pytest.mark.parametrize("source", ["loo", "split"])


def kind(model):
    return type(model).__name__


def wave(rng, n, uneven=0.0):
    """Rows, their true means and standard deviations, and values."""
    X = rng.standard_normal((n, 4))
    mean, sd = 2 * np.sin(X[:, 0]) + X[:, 1], 0.5 * np.exp(uneven * X[:, 2])
    return X, mean, sd, mean + sd * rng.standard_normal(n)


def inside(model, rows, coverage):
    """The exact probability that a new value of these rows is in its interval."""
    X, mean, sd, _ = rows
    lower, upper = model.predict_interval(X, coverage)
    return np.mean(norm.cdf((upper - mean) / sd) - norm.cdf((lower - mean) / sd))


def classes(rng, n):
    """Rows and the true probabilities of three classes, and labels."""
    X = rng.standard_normal((n, 3))
    P = np.exp(1.5 * np.stack([X[:, 0], X[:, 1] * X[:, 2], -X[:, 2]], axis=1))
    P /= P.sum(axis=1, keepdims=True)
    return X, P, (rng.random((n, 1)) < P.cumsum(axis=1)).argmax(axis=1)


def standard_errors(coverage, n):
    """Three of them, of the share that quantiles of n rows cover."""
    return 3 * np.sqrt(coverage * (1 - coverage) / n)


@SOURCES
@pytest.mark.parametrize("model", REGRESSORS, ids=kind)
def test_intervals_cover_what_they_promise(rng, model, source):
    X, _, _, y = wave(rng, 700, uneven=0.8)
    model = clone(model).set_params(coverage_from=source).fit(X, y)
    assert model.coverage_.source == source
    assert model.coverage_.n_rows == (700 if source == "loo" else 140)
    new = wave(rng, 4_000, uneven=0.8)
    for coverage in COVERAGES:
        assert abs(inside(model, new, coverage) - coverage) < standard_errors(
            coverage, model.coverage_.n_rows
        )
    # the noise of these rows differs by a factor of ten, and intervals follow it
    lower, upper = model.predict_interval(new[0])
    assert np.corrcoef(upper - lower, new[2])[0, 1] > 0.7


@SOURCES
@pytest.mark.parametrize("model", CLASSIFIERS, ids=kind)
def test_sets_cover_what_they_promise(rng, model, source):
    X, _, y = classes(rng, 600)
    model = clone(model).set_params(coverage_from=source).fit(X, y)
    assert model.coverage_.n_rows == (600 if source == "loo" else 120)
    X, P, _ = classes(rng, 4_000)
    for coverage in COVERAGES:
        sets = model.predict_set(X, coverage)
        assert sets.shape == (4_000, 3)
        covered = np.mean((P * sets).sum(axis=1))
        assert abs(covered - coverage) < standard_errors(coverage, model.coverage_.n_rows) + 0.01
        assert sets[np.arange(4_000), model.predict_proba(X).argmax(axis=1)].all()


@pytest.mark.parametrize("model", [CLASSIFIERS[1], CLASSIFIERS[2], EDRVFLClassifier(layer_votes="prefix")])
def test_sets_are_of_the_probabilities_as_they_are(rng, model):
    X, _, y = classes(rng, 500)
    model = clone(model).set_params(calibration=None).fit(X, y)
    X, P, _ = classes(rng, 4_000)
    covered = np.mean((P * model.predict_set(X, 0.8)).sum(axis=1))
    assert covered == pytest.approx(0.8, abs=standard_errors(0.8, 500) + 0.01)


# --- by hand -----------------------------------------------------------------------------------------


def held_rows(m, n, random_state=0):
    """The rows that a fit holds back: those of the n smallest random numbers."""
    seed = int(np.random.RandomState(random_state).randint(2**31 - 1))
    return np.sort(np.argsort(np.random.PCG64([seed, 1]).random_raw(m))[:n])


@pytest.mark.parametrize("model", REGRESSORS, ids=kind)
@pytest.mark.parametrize("uneven", [0.0, 0.8])
def test_split_intervals_are_conformal_prediction_by_hand(rng, model, uneven):
    X, _, _, y = wave(rng, 200, uneven)
    held = held_rows(200, 40)
    others = np.setdiff1d(np.arange(200), held)
    model = clone(model).set_params(coverage_from="split").fit(X, y)
    alone = clone(model).set_params(coverage_from="loo").fit(X[others], y[others])
    np.testing.assert_array_equal(alone.predict(X), model.predict(X))
    # of 40 rows the second and the 39th are the ends for 90 %, whatever the widths are
    lower, upper = model.predict_interval(X[held])
    assert np.sum(y[held] < lower - 1e-9) == np.sum(y[held] > upper + 1e-9) == 1
    assert np.isclose(y[held], lower).sum() == np.isclose(y[held], upper).sum() == 1


@pytest.mark.parametrize("model", REGRESSORS, ids=kind)
def test_intervals_of_constant_width_by_hand(rng, constant_widths, model):
    X, _, _, y = wave(rng, 200)
    held = held_rows(200, 40)
    model = clone(model).set_params(coverage_from="split").fit(X, y)
    errors = np.sort(y[held] - model.predict(X[held]))
    for coverage, rank in ((0.9, 39), (0.8, 37)):
        lower, upper = model.predict_interval(X, coverage)
        np.testing.assert_allclose(lower - model.predict(X), errors[40 - rank])
        np.testing.assert_allclose(upper - model.predict(X), errors[rank - 1])


@pytest.mark.parametrize("model", CLASSIFIERS, ids=kind)
def test_split_sets_are_conformal_prediction_by_hand(rng, model):
    X, _, y = classes(rng, 200)
    held = held_rows(200, 40)
    others = np.setdiff1d(np.arange(200), held)
    model = clone(model).set_params(coverage_from="split").fit(X, y)
    alone = clone(model).set_params(coverage_from="loo").fit(X[others], y[others])
    P = alone.predict_proba(X)
    np.testing.assert_array_equal(P, model.predict_proba(X))
    threshold = np.sort(P[held, y[held]])[::-1][36]  # the 37th largest: 0.9 of 41 is 36.9
    expected = threshold <= P
    expected[np.arange(200), P.argmax(axis=1)] = True
    np.testing.assert_array_equal(model.predict_set(X), expected)


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"layer_votes": "prefix", "n_layers": 12, "activation": "sin"},
        {"layer_votes": "weighted"},
        {"readout": "joint"},
        {"prune_rate": 0.5},
    ],
    ids=str,
)
def test_the_errors_are_those_of_leave_one_out(rng, constant_widths, params):
    X, _, _, y = wave(rng, 120)
    Y = np.stack([y, 100 * X[:, 3] + 20 * y], axis=1)
    weights = rng.integers(1, 3, 120).astype(float)
    model = EDRVFLRegressor(**NETWORK | params).fit(X, Y, weights)
    r2 = max(model.loo_r2_scores_) if "prefix" in params.values() else model.loo_r2_scores_[-1]
    assert model.loo_r2_scores_.index(r2) + 1 == model.n_layers_
    assert mean_square_of_record(model, Y, weights) == pytest.approx(1 - r2)


@pytest.mark.parametrize("model", REGRESSORS[1:], ids=kind)
def test_the_errors_are_those_of_leave_one_out_without_layers(rng, constant_widths, model):
    X, _, _, y = wave(rng, 120)
    model = clone(model).fit(X, y)
    assert mean_square_of_record(model, y[:, None], np.ones(120)) == pytest.approx(1 - model.loo_r2_score_)


@pytest.fixture
def constant_widths(monkeypatch):
    """Let all intervals be equally wide, so that the errors are kept as they are."""
    monkeypatch.setattr("edrvfl._fitting.coverage.choose_widths", lambda *_: None)


def mean_square_of_record(model, Y, weights):
    """The weighted mean square of standardised leave-one-out errors, from the sorted errors."""
    record = model.coverage_.record
    assert model.coverage_.spread is None
    assert record.weights.sum() == pytest.approx(weights.sum() * Y.shape[1])
    variance = np.average((Y - np.average(Y, axis=0, weights=weights)) ** 2, axis=0, weights=weights)
    return np.mean(np.average(record.values**2, axis=1, weights=record.weights) / variance)


@pytest.mark.parametrize("model", CLASSIFIERS, ids=kind)
def test_own_probabilities_are_those_of_leave_one_out(noisy, model):
    model = clone(model).fit(*noisy)
    own = model.coverage_.record
    loss = model.loo_log_losses_[-1] if hasattr(model, "loo_log_losses_") else model.loo_log_loss_
    assert -np.average(np.log(own.values), weights=own.weights) == pytest.approx(loss)


@pytest.mark.parametrize("model", CLASSIFIERS, ids=kind)
def test_rows_alone_in_their_class_count_as_rows_outside_their_set(noisy, model):
    X, y = noisy
    y = y.copy()
    y[:5] = [10, 11, 12, 13, 14]
    model = clone(model).fit(X, y)
    own = model.coverage_.record
    assert model.coverage_.n_rows == 90
    assert np.isneginf(own.values[:5]).all()
    assert (own.values[5:] > 0).all()
    np.testing.assert_allclose(own.weights, 1)
    # 95 % of 91 are more than the 85 others, so only full sets would do
    assert model.predict_set(X, 0.95).all()
    assert not model.predict_set(X, 0.8).all()


def test_class_weights_are_no_weights_of_rows(noisy):
    model = EDRVFLClassifier(**NETWORK, class_weight={0: 5.0, 1: 1.0, 2: 0.2}).fit(*noisy)
    np.testing.assert_allclose(model.coverage_.record.weights, 1)


# --- the guarantee -----------------------------------------------------------------------------------


def test_split_intervals_are_guaranteed(rng):
    covered = []
    for seed in range(150):  # a network of 20 rows, which is worth little
        X, _, _, y = wave(rng, 40)
        model = EDRVFLRegressor(n_layers=1, n_hidden=30, coverage_from="split", random_state=seed).fit(X, y)
        assert model.coverage_.n_rows == 20
        covered.append(inside(model, wave(rng, 200), 0.8))
    error = np.std(covered) / np.sqrt(150)
    exact = (2 * np.ceil(21 * 0.9) - 21) / 21
    assert exact >= 0.8
    assert abs(np.mean(covered) - exact) < 4 * error


def test_split_sets_are_guaranteed_among_classes_that_come_once(rng):
    covered = []
    shares = 1 / np.arange(1, 41) ** 1.3  # forty classes, of which some are rare
    for seed in range(150):
        y = rng.choice(40, 500, p=shares / shares.sum())
        X = y[:, None] % 7 + 0.3 * rng.standard_normal((500, 1))
        train, test = slice(0, 100), slice(100, 500)
        model = EDRVFLClassifier(
            n_layers=1, n_hidden=10, calibration=None, coverage_from="split", random_state=seed, **PAPER
        ).fit(X[train], y[train])
        assert set(model.classes_) == set(y[train])
        sets = model.predict_set(X[test], 0.8)
        known = np.isin(y[test], model.classes_)
        codes = np.searchsorted(model.classes_, y[test][known])
        covered.append(sets[known][np.arange(known.sum()), codes].sum() / 400)  # an unknown class is in none
    assert np.mean(covered) > 0.8 - 3 * np.std(covered) / np.sqrt(150)


@pytest.mark.parametrize("weight", [1e-3, 3.0, 100.0])
def test_a_row_held_back_is_one_row_whatever_it_weighs(rng, weight):
    X, _, _, y = wave(rng, 20)
    model = EDRVFLRegressor(**NETWORK, coverage_from="split").fit(X, y, np.full(20, weight))
    np.testing.assert_allclose(model.coverage_.record.weights, 1)
    assert np.isinf(model.predict_interval(X)).all()  # ten rows do not know the ends of 90 %
    model = EDRVFLClassifier(**NETWORK, coverage_from="split").fit(X, y > 0, np.full(20, weight))
    np.testing.assert_allclose(model.coverage_.record.weights, 1)
    assert model.predict_set(X, 0.95).all()
    _, held = hold_back(X, y, weight * np.arange(1, 21), 0, classes=False)
    w = held.counts / weight
    np.testing.assert_allclose(_weights_of(held), w * w.sum() / (w @ w))


def test_few_rows_held_back_have_infinite_intervals_and_full_sets(rng):
    X, _, _, y = wave(rng, 24)
    for model in REGRESSORS:
        lower, upper = clone(model).set_params(coverage_from="split").fit(X, y).predict_interval(X, 0.9)
        assert np.isneginf(lower).all()
        assert np.isposinf(upper).all()
    sets = EDRVFLClassifier(**NETWORK, coverage_from="split").fit(X, y > 0).predict_set(X, 0.95)
    assert sets.all()


# --- all kinds of fits -------------------------------------------------------------------------------


@pytest.mark.parametrize("m", [1, 2, 3, 6])
@SOURCES
@pytest.mark.parametrize("model", REGRESSORS, ids=kind)
def test_a_few_rows(rng, model, source, m):
    X, _, _, y = wave(rng, m)
    model = clone(model).set_params(coverage_from=source).fit(X, y)
    lower, upper = model.predict_interval(X)
    assert (lower <= model.predict(X)).all()
    assert (upper >= model.predict(X)).all()


@SOURCES
@pytest.mark.parametrize("model", REGRESSORS, ids=kind)
def test_values_that_are_predicted_exactly(rng, model, source):
    X = rng.standard_normal((60, 2))
    Y = np.stack([np.full(60, 3.5), X[:, 0]], axis=1)  # a constant, and one that some predict exactly
    lower, upper = clone(model).set_params(coverage_from=source).fit(X, Y).predict_interval(X, 0.8)
    np.testing.assert_allclose(lower[:, 0], 3.5, rtol=1e-6)
    np.testing.assert_allclose(upper[:, 0], 3.5, rtol=1e-6)
    assert np.isfinite(lower).all()
    assert (lower <= upper).all()


@pytest.mark.parametrize("unit", [1e-30, 1e30])
def test_units_do_not_matter(rng, unit):
    X, _, _, y = wave(rng, 300, uneven=0.8)
    X, y = X.astype(np.float32), y.astype(np.float32)
    model = EDRVFLRegressor(**NETWORK).fit(X, y)
    assert model.coverage_.spread is not None
    other = clone(model).fit(X, y.astype(float) * unit)
    for one, two in zip(model.predict_interval(X), other.predict_interval(X), strict=True):
        assert one.dtype == two.dtype == np.float32
        np.testing.assert_allclose(two / np.float32(unit), one, rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize("model", [*REGRESSORS, *CLASSIFIERS], ids=kind)
def test_weights_count_rows(rng, model):
    X, _, _, y = wave(rng, 80, uneven=1.0)
    weights = rng.integers(0, 4, 80)
    again = np.repeat(np.arange(80), weights)
    y = y if model._classifies is False else np.digitize(y, [-1, 1])
    weighted = clone(model).fit(X, y, weights)
    repeated = clone(model).fit(X[again], y[again])
    np.testing.assert_allclose(to_host(ask(weighted, X)), to_host(ask(repeated, X)), rtol=1e-6, atol=1e-6)
    assert weighted.coverage_.n_rows == (weights > 0).sum()


def ask(model, X, coverage=0.9):
    """Intervals (2, rows), or sets as numbers."""
    if model._classifies:
        return to_host(model.predict_set(X, coverage)).astype(float)
    return np.stack([to_host(end) for end in model.predict_interval(X, coverage)])


@pytest.mark.parametrize(
    ("library", "source"),
    [("array_api_strict", "loo"), ("array_api_strict", "split"), ("array_api_compat.torch", "split")],
)
@pytest.mark.parametrize("model", [*REGRESSORS, *CLASSIFIERS], ids=kind)
def test_every_library_answers_alike(rng, model, library, source):
    xp = pytest.importorskip(library)
    X, _, _, y = wave(rng, 90, uneven=1.0)
    y = np.digitize(y, [-1, 1]) if model._classifies else np.stack([y, X[:, 0] * y], axis=1)
    model = clone(model).set_params(coverage_from=source)
    with sklearn.config_context(array_api_dispatch=True):
        fitted = clone(model).fit(xp.asarray(X), xp.asarray(y))
        found = (
            fitted.predict_set(xp.asarray(X)) if model._classifies else fitted.predict_interval(xp.asarray(X))
        )
        moved = to_numpy(fitted)
    expected = ask(clone(model).fit(X, y), X)
    if model._classifies:
        assert found.dtype == xp.bool
        np.testing.assert_array_equal(to_host(found), expected.astype(bool))
    else:
        np.testing.assert_allclose(np.stack([to_host(end) for end in found]), expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(ask(moved, X), expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(ask(pickle.loads(pickle.dumps(moved)), X), ask(moved, X))


def test_a_fit_that_a_callback_ends_has_the_intervals_of_its_layers(rng):
    X, _, _, y = wave(rng, 120)
    model = EDRVFLRegressor(**NETWORK).set_callbacks(Recorder(stop_after=2)).fit(X, y)
    assert model.n_layers_ == 2
    shallow = EDRVFLRegressor(**{**NETWORK, "n_layers": 2}).fit(X, y)
    np.testing.assert_array_equal(ask(model, X), ask(shallow, X))


def test_a_portfolio_without_time_has_intervals(rng):
    X, _, _, y = wave(rng, 300)
    model = EDRVFLPortfolioRegressor(max_seconds=1e-6, random_state=0).fit(X, y)
    assert len(model.members_["member"]) == 1
    assert inside(model, wave(rng, 2_000), 0.9) == pytest.approx(0.9, abs=standard_errors(0.9, 300))


def test_many_rows_are_judged_in_part(rng):
    X, _, _, y = wave(rng, 10_500)
    weights = rng.integers(1, 3, 10_500).astype(float)
    model = EDRVFLRegressor(n_layers=1, n_hidden=40, random_state=0).fit(X, y, weights)
    assert model.coverage_.n_rows == 10_000
    assert inside(model, wave(rng, 4_000), 0.9) == pytest.approx(0.9, abs=0.012)
    y = np.digitize(y, [0, 4])  # the last class is rare, and judged rows stand for different numbers of rows
    model = EDRVFLClassifier(n_layers=1, n_hidden=40, random_state=0).fit(X, y)
    assert model.coverage_.n_rows < 10_500
    X, _, _, new = wave(rng, 8_000)
    covered = model.predict_set(X, 0.95)[np.arange(8_000), np.digitize(new, [0, 4])].mean()
    assert covered == pytest.approx(0.95, abs=0.012)


def test_a_class_of_weight_0_is_no_class_with_split(rng):
    X, _, y = classes(rng, 120)
    y[:3] = [7, 8, 9]  # single rows, some of them held back
    left_out = {0: 1.0, 1: 1.0, 2: 1.0, 7: 0.0, 8: 0.0, 9: 0.0}
    model = EDRVFLClassifier(**NETWORK, class_weight=left_out, coverage_from="split").fit(X, y)
    assert model.classes_.tolist() == [0, 1, 2]
    assert np.isfinite(model.coverage_.record.values).all()
    assert model.predict_set(X).shape == (120, 3)


def test_a_search_answers_as_its_best(rng):
    X, _, _, y = wave(rng, 120)
    space = {"regularization": [1.0, 4.0]}
    options = {"n_iter": None, "random_state": 0, "cv": 2}
    search = EDRVFLSearchCV(EDRVFLRegressor(n_layers=1, n_hidden=20), space, **options).fit(X, y)
    np.testing.assert_array_equal(
        search.predict_interval(X, 0.8), search.best_estimator_.predict_interval(X, 0.8)
    )
    assert not hasattr(search, "predict_set")
    assert not hasattr(clone(search).set_params(ensemble_size=2), "predict_interval")
    assert not hasattr(clone(search).set_params(refit=False), "predict_interval")
    search = EDRVFLSearchCV(EDRVFLClassifier(n_layers=1, n_hidden=20), space, **options).fit(X, y > 0)
    np.testing.assert_array_equal(search.predict_set(X), search.best_estimator_.predict_set(X))
    assert not hasattr(search, "predict_interval")


# --- errors ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("coverage", [0, 1, 1.5, -0.1, 90, float("nan"), "0.9", None, True])
def test_a_bad_coverage_is_refused(rng, coverage):
    X, _, _, y = wave(rng, 40)
    for model, target in ((REGRESSORS[1], y), (CLASSIFIERS[1], y > 0)):
        model = clone(model).fit(X, target)
        with pytest.raises(ValueError, match=re.escape(f"above 0 and below 1, got {coverage!r}. For 90 %")):
            ask(model, X, coverage)


def test_a_fit_without_evidence_says_what_to_set(noisy):
    X, y = noisy
    model = variant("WPedRVFL", **NETWORK).fit(X, y)
    assert model.coverage_ is None
    assert model.loo_accuracies_ == ()
    with pytest.raises(ValueError, match=r'Fit again with calibration="loo", or with coverage_from="split"'):
        model.predict_set(X)
    assert model.set_params(coverage_from="split").fit(X, y).predict_set(X).shape == (90, 3)
    for model in [*CLASSIFIERS, *REGRESSORS]:
        model = clone(model).set_params(coverage_from=None).fit(X, y)
        assert model.coverage_ is None
        with pytest.raises(ValueError, match=r'fitted with coverage_from=None. Fit it again with .*"split"'):
            ask(model, X)
    with pytest.raises(NotFittedError):
        clone(model).predict_interval(X)


def test_a_failed_fit_keeps_the_intervals(rng):
    X, _, _, y = wave(rng, 60)
    model = EDRVFLRegressor(**NETWORK).fit(X, y)
    before = ask(model, X)
    with pytest.raises(ValueError, match="missing value"):
        model.set_params(coverage_from="split").fit(X, np.where(y > 0, np.nan, y))
    np.testing.assert_array_equal(ask(model, X), before)
    assert model.coverage_.source == "loo"


def test_frames_with_text_and_gaps(rng):
    pd = pytest.importorskip("pandas")
    X, _, _, y = wave(rng, 200)
    frame = pd.DataFrame({"a": X[:, 0], "b": np.where(X[:, 1] > 0, "high", "low"), "c": X[:, 2]})
    frame.loc[::7, "a"] = np.nan
    for source in ("loo", "split"):
        for model, target in ((REGRESSORS[2], y), (CLASSIFIERS[2], np.where(y > 0, "yes", "no"))):
            model = clone(model).set_params(coverage_from=source).fit(frame, target)
            assert np.isfinite(ask(model, frame)).all()
