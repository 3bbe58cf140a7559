"""Importances are what all pairs of rows say, whatever table the rows are in."""

import numpy as np
import polars
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import config_context
from sklearn.linear_model import LinearRegression, RidgeClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from small_models import numbers, small_model

from edrvfl import (
    EDRVFLClassifier,
    EDRVFLRegressor,
    EDRVFLSearchCV,
    KernelRidgeRegressor,
    TabularEncoder,
    feature_importance,
)

MANY = 10**6  # repeats: all pairs
MODELS = ("classifier_joint", "classifier_frame", "regressor", "regressor_several", "kernel", "portfolio")


def over_all_pairs(model, X, column):
    """Half the mean squared change when a value comes from another row, over the variance; in plain loops."""
    ask = model.predict_proba if hasattr(model, "predict_proba") else model.predict
    frame, m = hasattr(X, "columns"), len(X)
    before = np.asarray(ask(X)).reshape(m, -1)
    change = np.zeros(before.shape[1])
    for i in range(m):
        row = X.iloc[[i] * m].reset_index(drop=True) if frame else np.repeat(X[[i]], m, axis=0)
        if frame:
            row[X.columns[column]] = X[X.columns[column]].to_numpy()
            row = row.astype(X.dtypes)
        else:
            row[:, column] = X[:, column]
        # the row that gives itself its own value changes nothing
        change += ((np.asarray(ask(row)).reshape(m, -1) - before[i]) ** 2).sum(axis=0)
    change /= 2 * m * (m - 1)
    variance = np.var(before, axis=0, ddof=1)
    if hasattr(model, "predict_proba"):
        return change.sum() / variance.sum()
    return np.mean(change / variance)


@pytest.mark.parametrize("name", MODELS)
def test_with_many_repeats_all_pairs_of_rows_are_used(name):
    model, X = small_model(name)
    X = X[:6]
    found = feature_importance(model, X, n_repeats=MANY, random_state=3)
    assert found.importances.shape == (X.shape[1], 5)
    expected = [over_all_pairs(model, X, j) for j in range(X.shape[1])]
    assert_allclose(found.importances_mean, expected, rtol=1e-9, atol=1e-12)
    assert max(expected) > 0.2


def test_few_repeats_estimate_what_all_pairs_say():
    model, X = small_model("regressor")
    exact = feature_importance(model, X, n_repeats=MANY).importances_mean
    few = [feature_importance(model, X, n_repeats=2, random_state=s).importances_mean for s in range(40)]
    assert_allclose(np.mean(few, axis=0), exact, rtol=0.1)
    found = feature_importance(model, X, random_state=0)
    assert found.importances.shape == (3, 5)
    assert_allclose(found.importances_std, found.importances.std(axis=1))
    assert_array_equal(found.importances, feature_importance(model, X, random_state=0).importances)


@settings(max_examples=15)
@given(
    slopes=st.lists(st.integers(-3, 3), min_size=2, max_size=4).filter(any),
    seed=st.integers(0, 9),
    power=st.integers(-3, 3),
)
def test_for_a_linear_model_it_is_the_squared_slope_in_standard_deviations(slopes, seed, power):
    X = np.random.default_rng(seed).standard_normal((9, len(slopes)))
    model = LinearRegression().fit(X, X @ slopes)
    model.coef_ = np.array(slopes, dtype=float)  # exact zeros
    found = feature_importance(model, X, n_repeats=MANY).importances_mean
    # the mean squared gradient, times the variance of the column
    expected = model.coef_**2 * X.var(axis=0, ddof=1) / model.predict(X).var(ddof=1)
    assert_allclose(found, expected, rtol=1e-9, atol=1e-12)
    assert all(found[j] == 0 for j, slope in enumerate(slopes) if slope == 0)
    # neither the unit of a column nor that of y matters
    model.coef_ = model.coef_ * 2.0**power
    scaled = feature_importance(model, X / 2.0**power, n_repeats=MANY).importances_mean
    assert_allclose(scaled, found, rtol=1e-7, atol=1e-12)


@settings(max_examples=8)
@given(seed=st.integers(0, 2**20))
def test_columns_in_another_order_have_the_same_importances(seed):
    rng = np.random.default_rng(seed)
    X, order = rng.standard_normal((12, 3)), rng.permutation(3)
    y = X[:, 0] + X[:, 1] * X[:, 2]
    made = {"bandwidth": 1.0, "regularization": 0.1, "encoder": "standard", "coverage_from": None}
    model = KernelRidgeRegressor(**made).fit(X, y)
    moved = KernelRidgeRegressor(**made).fit(X[:, order], y)
    found = feature_importance(model, X, random_state=0).importances
    assert_allclose(
        feature_importance(moved, X[:, order], random_state=0).importances, found[order], rtol=1e-6
    )


def test_the_unit_of_a_column_does_not_matter():
    X, codes, _ = numbers()
    model = EDRVFLClassifier(n_hidden=12, n_layers=2, random_state=0).fit(X, codes)
    large = EDRVFLClassifier(n_hidden=12, n_layers=2, random_state=0).fit(X * [1024, 1, 1], codes)
    found = [
        feature_importance(model, X, random_state=0),
        feature_importance(large, X * [1024, 1, 1], random_state=0),
    ]
    assert_allclose(found[1].importances, found[0].importances, rtol=1e-9)


def test_a_column_that_decides_alone_has_one_and_one_that_says_nothing_zero():
    X = np.random.default_rng(0).standard_normal((60, 2))
    X = np.column_stack([X, np.full(60, 7.0)])
    model = EDRVFLRegressor(n_hidden=30, inputs_per_neuron=1, random_state=0).fit(X, 3 * X[:, 0])
    found = feature_importance(model, X, n_repeats=MANY).importances_mean
    assert found[0] == pytest.approx(1, abs=0.02)
    assert found[1] < 1e-3
    assert found[2] == 0
    # answers that are all the same
    flat = LinearRegression().fit(X, np.full(60, 5.0))
    assert_array_equal(feature_importance(flat, X).importances_mean, 0)


def test_each_output_has_its_own_unit(rng):
    X = rng.standard_normal((10, 2))
    model = LinearRegression().fit(X, np.column_stack([X[:, 0], 1e6 * X[:, 1]]))
    assert_allclose(feature_importance(model, X, n_repeats=MANY).importances_mean, 0.5, rtol=1e-6)
    # one that never varies has no say: the first column decides all that is decided
    model = LinearRegression().fit(X, np.column_stack([X[:, 0], np.full(10, 3.0)]))
    found = feature_importance(model, X, n_repeats=MANY).importances_mean
    assert_allclose(found, [1, 0], atol=1e-6)


def test_every_table_of_the_same_rows_says_the_same():
    model, X = small_model("classifier_frame")
    before = X.copy()
    found = feature_importance(model, X, n_repeats=2, random_state=0)
    assert found.feature_names == ["a", "b", "ü", "d", "e"]
    assert before.equals(X)
    shuffled = X.set_axis(np.random.default_rng(0).permutation(len(X)), axis=0)  # an index in no order
    other = polars.from_pandas(X)
    for table in (shuffled, other, other.to_arrow()):
        again = feature_importance(model, table, n_repeats=2, random_state=0)
        assert_allclose(again.importances, found.importances)


def test_arrays_and_lists_say_the_same():
    model, X = small_model("classifier")
    given = X.copy()
    found = feature_importance(model, X, random_state=0)
    assert_array_equal(X, given)
    assert found.feature_names == ["x0", "x1", "x2"]
    assert_allclose(feature_importance(model, X.tolist(), random_state=0).importances, found.importances)
    with config_context(array_api_dispatch=True):
        T = torch.asarray(X)
        on_torch = EDRVFLClassifier(n_hidden=12, n_layers=3, random_state=0).fit(
            T, torch.asarray(numbers()[1])
        )
        again = feature_importance(on_torch, T, random_state=0)
    assert_allclose(again.importances, found.importances, rtol=1e-6)


def test_pipelines_and_searches_are_asked_as_they_are():
    X, codes, _ = numbers()
    network = EDRVFLClassifier(n_hidden=12, n_layers=2, random_state=0)
    found = feature_importance(network.fit(X, codes), X, random_state=0).importances
    pipeline = make_pipeline(StandardScaler(), network).fit(X, codes)
    assert_allclose(feature_importance(pipeline, X, random_state=0).importances, found, rtol=1e-6)
    search = EDRVFLSearchCV(network, {"n_layers": [2]}, n_iter=None, cv=2).fit(X, codes)
    assert_allclose(feature_importance(search, X, random_state=0).importances, found, rtol=1e-9)


def test_what_cannot_be_asked_is_refused():
    model, X = small_model("classifier")
    with pytest.raises(TypeError, match=r"classifier with predict_proba, but got RidgeClassifier"):
        feature_importance(RidgeClassifier().fit(X, X[:, 0] > 0), X)
    with pytest.raises(TypeError, match="but got TabularEncoder"):
        feature_importance(TabularEncoder().fit(X), X)
    with pytest.raises(ValueError, match=r"X has 1 row\(s\)"):
        feature_importance(model, X[:1])
    with pytest.raises(ValueError, match=r"n_repeats == 0, must be >= 1"):
        feature_importance(model, X, n_repeats=0)
    with pytest.raises(TypeError, match="n_repeats must be an instance of int"):
        feature_importance(model, X, n_repeats=2.5)
    with pytest.raises(ValueError, match="Expected 2D array, got 1D array"):
        feature_importance(model, X[0])
    several = KNeighborsClassifier().fit(X, X[:, :2] > 0)
    with pytest.raises(TypeError, match="classifier of one output, but this one has 2"):
        feature_importance(several, X)
