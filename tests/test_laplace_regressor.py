"""LaplaceRidgeRegressor: scikit-learn's contract, brute force, weights, units of y, frames, bad input."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from helpers import assert_passes_scikit_learns_checks, noisy_values, to_host
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import LinAlgWarning
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics import r2_score
from sklearn.model_selection import GridSearchCV

import edrvfl._fitting.kernel
import edrvfl._fitting.systems
from edrvfl import LaplaceRidgeRegressor, TabularEncoder, to_numpy
from edrvfl._fitting.systems import VALUE_BANDWIDTHS, VALUE_LAMBDAS

OPTIONS = {
    "defaults": {},
    "given": {"bandwidth": 0.5, "regularization": 0.1, "n_landmarks": None},
    "landmarks": {"n_landmarks": 25},
    "landmarks for most rows": {"n_landmarks": 60},  # more than the rows that weigh, less than their copies
    "numbers as they are": {"encoder": None, "input_scaling": None},
    "categories": {"encoder": TabularEncoder("robust", categorical_features=[0])},
}
EVERY_OPTION = pytest.mark.parametrize("name", OPTIONS)


def kernel(name="defaults", **params):
    return LaplaceRidgeRegressor(**{"random_state": 0, **OPTIONS[name], **params})


@pytest.fixture
def small_parts(monkeypatch):
    """Sizes at which small data are many rows."""
    monkeypatch.setattr(edrvfl._fitting.kernel, "VALUE_PART_ROWS", {False: 40, True: 40})
    monkeypatch.setattr(edrvfl._fitting.kernel, "LEAST_PART", 10)
    monkeypatch.setattr(edrvfl._fitting.kernel, "SEARCH_ROWS", (30, 50))


@pytest.mark.parametrize(
    "names",
    [
        ("defaults",),
        ("given", "numbers as they are"),
        ("landmarks", "categories"),
        ("landmarks for most rows",),
    ],
    ids=" and ".join,
)
def test_scikit_learns_checks_pass(names):
    assert_passes_scikit_learns_checks(kernel(names[0], **OPTIONS[names[-1]]))


# --- against brute force ---------------------------------------------------------------------------------


def ridge_by_hand(model, X, Y, counts, without=None):
    """Fit scikit-learn's kernel ridge to encoded rows, less one unit of a row's weight; answer all rows."""
    voter = model.model_.voter
    Z = voter.inputs.apply(X)
    K, w = np.exp(-cdist(Z, Z) / (voter.bandwidth * np.sqrt(Z.shape[1]))), counts.copy()
    if without is not None:
        w[without] -= min(1, w[without])
    kept = w > 1e-12
    ridge = KernelRidge(alpha=model.regularization_, kernel="precomputed")
    return ridge.fit(K[np.ix_(kept, kept)], Y[kept], w[kept]).predict(K[:, kept])


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("k", [1, 2])
def test_answers_and_leave_one_out_by_brute_force(rng, weighted, k):
    X, y = noisy_values(rng, 45, 4, k)
    counts = rng.choice([0.4, 1.0, 3.0], 45) if weighted else np.ones(45)
    model = kernel().fit(X, y, counts if weighted else None)
    mean = np.average(y, axis=0, weights=counts)
    answer = ridge_by_hand(model, X, y - mean, counts) + mean
    np.testing.assert_allclose(model.predict(X), answer if k > 1 else answer[:, 0], atol=1e-8)
    left_out = mean + [ridge_by_hand(model, X, y - mean, counts, i)[i] for i in range(45)]
    assert model.loo_r2_score_ == pytest.approx(r2_score(y, left_out, sample_weight=counts), abs=1e-8)


@pytest.mark.parametrize("noise", [0.05, 2.0])
def test_bandwidth_and_penalty_are_nearly_the_best_of_all_candidates(rng, noise):
    X = rng.standard_normal((90, 3))
    y = np.sin(2 * X[:, 0]) + X[:, 1] + noise * rng.standard_normal(90)
    plain = {"encoder": "standard", "input_scaling": None}
    each = [
        kernel(**plain, bandwidth=h, regularization=lam).fit(X, y).loo_r2_score_
        for h in VALUE_BANDWIDTHS
        for lam in VALUE_LAMBDAS
    ]
    model = kernel(**plain).fit(X, y)
    assert 1 - model.loo_r2_score_ < 1.01 * (1 - max(each))
    assert 1 - min(each) > 1.1 * (1 - max(each))


def test_landmarks_of_few_rows_choose_a_bandwidth_too(rng):
    X = rng.uniform(0, 1, (90, 1))
    y = np.sin(60 * X[:, 0])  # nothing but near rows helps
    plain = {"encoder": "standard", "input_scaling": None}
    exact, landmarks = kernel(**plain).fit(X, y), kernel(**plain, n_landmarks=80).fit(X, y)
    assert landmarks.bandwidth_ == exact.bandwidth_ < 1
    assert landmarks.loo_r2_score_ > kernel(**plain, n_landmarks=80, bandwidth=1.0).fit(X, y).loo_r2_score_


def test_parts_are_averaged_and_their_leave_one_out_is_honest(rng, small_parts):
    X, y = noisy_values(rng, 1150, 3)
    model = kernel(encoder="standard").fit(X[:150], y[:150])
    assert model.n_landmarks_ == 150
    voter = model.model_.voter
    far = model.predict(X[:1] + 1e9)
    np.testing.assert_allclose(far, y[:150].mean(), rtol=1e-9)
    assert abs(model.loo_r2_score_ - model.score(X[150:], y[150:])) < 0.1
    # values are dealt evenly: each of the four parts knows small and large ones
    parts = np.split(np.arange(150), np.cumsum([38, 38, 37]))
    own = cdist(voter.landmarks, voter.inputs.apply(X[:150])).argmin(axis=1)
    means = [y[own[part]].mean() for part in parts]
    assert np.ptp(means) < 0.1 * y[:150].std()


def test_leave_one_out_is_honest(rng):
    X, y = noisy_values(rng, 2400, 4)
    model = kernel().fit(X[:400], y[:400])
    assert abs(model.loo_r2_score_ - model.score(X[400:], y[400:])) < 0.05


def test_scaled_inputs_see_through_columns_of_noise(rng):
    X = rng.standard_normal((600, 12))
    y = X[:, 0] * X[:, 1]
    scaled, plain = (kernel(input_scaling=how).fit(X[:300], y[:300]) for how in ("gradient", None))
    assert scaled.score(X[300:], y[300:]) > plain.score(X[300:], y[300:]) + 0.2


# --- weights and units -----------------------------------------------------------------------------------


@EVERY_OPTION
@pytest.mark.parametrize("k", [None, 2])
def test_neither_order_nor_repetition_of_rows_matters(monkeypatch, name, k):
    monkeypatch.setattr(edrvfl._fitting.kernel, "SEARCH_ROWS", (30,))
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X, y = noisy_values(rng, 70, 3, k)
        X[:, 0] = rng.integers(0, 3, 70)
        if k:
            y[:, 1] -= 3 * y[:, 0]  # a sign that rounding could choose
        counts = rng.integers(0, 4, 70)
        rows = rng.permutation(np.repeat(np.arange(70), counts))
        weighted, repeated = kernel(name).fit(X, y, counts), kernel(name).fit(X[rows], y[rows])
        np.testing.assert_allclose(weighted.predict(X), repeated.predict(X), atol=1e-9)
        assert weighted.loo_r2_score_ == pytest.approx(repeated.loo_r2_score_, abs=1e-9)


def test_a_weight_of_zero_leaves_the_row_out(rng):
    X, y = noisy_values(rng, 80, 3)
    some = np.arange(80) < 60
    model = kernel().fit(X, np.where(some, y, 1e9), some)
    np.testing.assert_allclose(model.predict(X), kernel().fit(X[some], y[some]).predict(X), atol=1e-9)


@settings(max_examples=25)
@given(
    name=st.sampled_from(list(OPTIONS)),
    size=st.floats(-250, 250),
    sign=st.sampled_from([-1, 1]),
    offset=st.floats(-1e5, 1e5),
)
def test_answers_have_the_units_of_y(name, size, sign, offset):
    X, y = noisy_values(np.random.default_rng(0), 40, 3)
    scale = sign * 10.0**size
    plain, other = kernel(name).fit(X, y), kernel(name).fit(X, scale * (y + offset))
    np.testing.assert_allclose(other.predict(X) / scale - offset, plain.predict(X), atol=1e-7)
    assert other.loo_r2_score_ == pytest.approx(plain.loo_r2_score_, abs=1e-7)


@pytest.mark.parametrize("scale", [1e60, 1e-60])
def test_coefficients_in_float32_do_not_limit_the_units(rng, monkeypatch, scale):
    monkeypatch.setattr(edrvfl._fitting.systems, "DOUBLE_ROWS", 50)
    X, y = noisy_values(rng, 90, 3)
    model = kernel().fit(X, scale * y)
    assert model.model_.voter.alpha.dtype == np.float32
    np.testing.assert_allclose(model.predict(X) / scale, kernel().fit(X, y).predict(X), atol=1e-6)


def test_a_constant_value_is_the_answer(rng):
    X, y = noisy_values(rng, 50, 3)
    for value in (0.0, 0.1, -1e300):
        model = kernel().fit(X, np.full(50, value))
        np.testing.assert_allclose(model.predict(2 * X), value, rtol=1e-15)
        assert model.loo_r2_score_ == 1
    beside = kernel().fit(X, np.column_stack([np.full(50, 0.1), y])).predict(X)
    np.testing.assert_allclose(beside[:, 0], 0.1, rtol=1e-15)
    np.testing.assert_allclose(beside[:, 1], kernel().fit(X, y).predict(X), atol=1e-9)


@pytest.mark.parametrize("double_rows", [1000, 100])
def test_float32_in_float32_out_and_accurate(rng, monkeypatch, double_rows):
    monkeypatch.setattr(edrvfl._fitting.systems, "DOUBLE_ROWS", double_rows)
    X, y = noisy_values(rng, 300, 4)
    exact = kernel("given").fit(X, y).predict(X)
    single = kernel("given").fit(X.astype(np.float32), 1e3 + y).predict(X.astype(np.float32))
    assert single.dtype == np.float32
    np.testing.assert_allclose(single - 1e3, exact, atol=2e-3)


# --- libraries, frames, copies ---------------------------------------------------------------------------


@EVERY_OPTION
def test_array_libraries_agree(xp, rng, name):
    X, y = noisy_values(rng, 80, 4, 2)
    X[:, 0] = rng.integers(0, 3, 80)
    counts = rng.choice([1.0, 2.0], 80)
    expected = kernel(name).fit(X, y, counts)
    with sklearn.config_context(array_api_dispatch=True):
        model = kernel(name).fit(*(xp.asarray(part) for part in (X, y, counts)))
        values, here = model.predict(xp.asarray(X)), to_numpy(model)
    np.testing.assert_allclose(to_host(values), expected.predict(X), atol=1e-8)
    np.testing.assert_allclose(here.predict(X), to_host(values), atol=1e-10)
    assert (here.bandwidth_, here.regularization_) == (expected.bandwidth_, expected.regularization_)
    assert model.loo_r2_score_ == pytest.approx(expected.loo_r2_score_, abs=1e-8)


@pytest.mark.parametrize("library", [pd, pl], ids=["pandas", "polars"])
def test_frames_with_categories_and_gaps(rng, library):
    kind, size = rng.choice(["red", "green", "blue"], 400), rng.standard_normal(400)
    y = np.where(kind == "red", size, -size)
    size[::17] = np.nan
    words = [None if i % 23 == 0 else str(k) for i, k in enumerate(kind)]
    frame = library.DataFrame({"kind": words, "size": size})
    model = kernel().fit(frame[:300], y[:300])
    assert model.score(frame[300:], y[300:]) > 0.8
    strange = library.DataFrame({"kind": ["violet", None], "size": [np.nan, 1e300]})
    assert np.isfinite(model.predict(strange)).all()
    copy = to_numpy(pickle.loads(pickle.dumps(model)))
    np.testing.assert_array_equal(copy.predict(frame), model.predict(frame))


def test_figures_of_the_fit(rng, capsys):
    X, y = noisy_values(rng, 90, 4)
    model = kernel(verbose=1).fit(pd.DataFrame(X, columns=list("abcd")), y)
    assert model.n_landmarks_ == 90
    assert model.bandwidth_ in VALUE_BANDWIDTHS
    assert model.regularization_ in VALUE_LAMBDAS
    assert list(model.feature_names_in_) == list("abcd")
    assert capsys.readouterr().out == (
        f"[LaplaceRidgeRegressor] bandwidth {model.bandwidth_:g}, regularization {model.regularization_:g}, "
        f"90 landmarks: leave-one-out R^2 {model.loo_r2_score_:.4f}\n"
    )
    few = kernel(n_landmarks=np.int64(30), bandwidth=1, regularization=1).fit(X, y)
    assert (few.n_landmarks_, few.bandwidth_, few.regularization_) == (30, 1, 1)


def test_what_decides_an_answer_is_fitted_and_searched(rng):
    X, y = noisy_values(rng, 90, 4)
    search = GridSearchCV(kernel(), {"bandwidth": [0.5, 2.0]}, cv=3).fit(X, y)
    model = search.best_estimator_
    before = model.predict(X)
    np.testing.assert_array_equal(clone(model).fit(X, y).predict(X), before)
    model.set_params(bandwidth=9.0, encoder=None, n_landmarks=3)
    np.testing.assert_array_equal(model.predict(X), before)


# --- bad input -------------------------------------------------------------------------------------------


def test_a_fit_that_fails_changes_nothing(rng):
    X, y = noisy_values(rng, 60, 3)
    with pytest.raises(NotFittedError):
        kernel().predict(X)
    model = kernel().fit(X, y)
    before, attributes = model.predict(X), set(vars(model))
    for bad, message in [
        (np.full(60, np.nan), "NaN"),
        (np.full(60, "a"), "predicts numbers, but y holds 'a'"),
    ]:
        with pytest.raises(ValueError, match=message):
            model.fit(X[:, :2], bad)
    assert set(vars(model)) == attributes
    np.testing.assert_array_equal(model.predict(X), before)


def test_a_singular_kernel_warns_and_is_repaired(rng):
    X, y = noisy_values(rng, 60, 3)
    with pytest.warns(LinAlgWarning, match=r"singular with regularization=1e-18; .* was taken") as seen:
        model = kernel(regularization=1e-18).fit(np.concatenate([X, X]), np.concatenate([y, y]))
    assert seen[0].filename == __file__
    assert model.regularization_ > 1e-18
    assert model.score(X, y) > 0.99


@pytest.mark.parametrize("n", [1, 2, 3])
def test_few_rows_and_absurd_ones(rng, n):
    X, y = noisy_values(rng, 3, 3)
    model = kernel().fit(X[:n], y[:n])
    assert np.isfinite(model.predict(np.vstack([X, np.full((1, 3), np.finfo(float).max)]))).all()
    assert np.isfinite(model.loo_r2_score_)


@pytest.mark.parametrize(
    "params",
    [{"bandwidth": 0.0}, {"regularization": 0.0}, {"n_landmarks": "all"}, {"encoder": "trees"}],
    ids=str,
)
def test_parameters_that_cannot_be(rng, params):
    with pytest.raises(ValueError, match=next(iter(params))):
        kernel(**params).fit(*noisy_values(rng, 30, 3))
