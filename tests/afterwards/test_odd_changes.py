"""Rows that come and go with odd names, or are far out, or are not remembered."""

import numpy as np
import pandas as pd
import pytest
from helpers import noisy_rows, noisy_values
from sklearn.base import clone

from edrvfl import EDRVFLClassifier, EDRVFLRegressor, KernelRidgeRegressor, RowBlocks

ROWS = {"n_layers": 2, "n_hidden": 12, "remember": "rows", "random_state": 0}


def test_a_number_that_is_a_name_already_is_given_to_no_other_row(rng):
    X, y = noisy_rows(rng, 60, 3)
    frame = pd.DataFrame(X, columns=list("abc"), index=rng.permutation(60))
    for index in (frame.index, frame.index.astype(str)):
        model = EDRVFLClassifier(**ROWS).fit(frame[:40].set_axis(index[:40]), y[:40])
        model.update(frame[40:50].reset_index(drop=True), y[40:50])
        model.update(frame[50:], y[50:], ids=np.arange(1000, 1010))
        model.forget(ids=[1009])
        model.update(frame[50:51].reset_index(drop=True), y[50:51])
        names = model.memory_.rows.ids.astype(str)
        assert len(set(names)) == len(names) == 60
        assert names[-1] == "1010"  # and not one that was forgotten


def test_moments_and_several_levels_are_names(rng):
    X, y = noisy_rows(rng, 40, 3)
    frame = pd.DataFrame(X, columns=list("abc"))
    days = pd.date_range("2024-02-01", periods=40)
    model = EDRVFLClassifier(**ROWS).fit(frame.set_axis(days.as_unit("ns")), y)
    model.forget(ids=[pd.Timestamp("2024-02-03")])
    model.forget(ids=days[3:5])
    model.forget(ids=days[5:7].to_numpy().astype("datetime64[D]"))
    assert model.memory_.rows.ids[2] == "2024-02-08 00:00:00"
    levels = pd.MultiIndex.from_product([["a", "b"], range(20)])
    model.fit(frame.set_axis(levels), y)
    model.forget(ids=[("a", 3), ("b", 4)])
    model.forget(ids=levels[:2])
    assert model.memory_.rows.n_rows == 36
    model.fit(frame.set_axis(np.arange(1.0, 41.0)), y).forget(ids=[7])  # whole, beside a gap elsewhere
    with pytest.raises(ValueError, match=r"one name for each row, got an array of shape \(2, 2\)"):
        model.update(frame[:2], y[:2], ids=[["a", "b"], ["c", "d"]])


def test_rows_that_were_held_back_are_said_to_be_so(rng):
    X, y = noisy_rows(rng, 80, 3)
    model = EDRVFLClassifier(**ROWS, coverage_from="split").fit(X, y)
    held = np.setdiff1d(np.arange(80), model.memory_.rows.ids)[:1]
    for names in ({"ids": held}, {"X": X[held], "y": y[held]}):
        with pytest.raises(ValueError, match=r'held back from the fit by coverage_from="split", or '):
            model.forget(**names)


def test_blocks_of_rows_are_taken_one_by_one(rng):
    X, y = noisy_rows(rng, 60, 3)
    model, blocks = EDRVFLClassifier(**ROWS).fit(X[:30], y[:30]), RowBlocks.from_arrays(X, y, rows=25)
    with pytest.raises(TypeError, match=r"\[model.update\(X, y, weight\) for X, y, weight in blocks\]"):
        model.update(blocks, None)
    with pytest.raises(TypeError, match=r"\[model.forget\(X, y\) for X, y, weight in blocks\]"):
        model.forget(blocks, y)
    [model.update(X, y, weight) for X, y, weight in blocks]
    [model.forget(X, y) for X, y, weight in blocks]
    assert model.frozen_since_ == (60, 60)


@pytest.mark.parametrize("what", ["row", "target"])
def test_a_row_that_is_far_out_takes_no_digits_with_it(rng, what):
    X, y = noisy_values(rng, 100, 3)
    model = EDRVFLRegressor(**ROWS, encoder="standard").fit(X, y)
    sums, before = clone(model).set_params(remember="sums").fit(X, y), model.predict(X)
    far = (X[:1] * 1e9, y[:1]) if what == "row" else (X[:1], [1e150])  # a slip of the pen, say
    model.update(*far).forget(*far)
    np.testing.assert_allclose(model.predict(X), before, atol=1e-11)
    sums.update(*far)
    known = sums.predict(X)
    with pytest.raises(ValueError, match=r"left without them would be rounding.*Nothing was forgotten"):
        sums.forget(*far)
    np.testing.assert_array_equal(sums.predict(X), known)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("model", [EDRVFLRegressor(**ROWS), KernelRidgeRegressor(remember="rows")])
def test_an_update_that_would_answer_nan_changes_nothing(rng, model):
    X, y = noisy_values(rng, 60, 3)
    before = model.fit(X, y).predict(X)
    for many in (np.ones(2), np.full(2, 1e308)):
        with pytest.raises(ValueError, match=r"would not be finite|weights differ too much"):
            model.update(X[:2], [1.7e308, -1.7e308], many)
    np.testing.assert_array_equal(model.predict(X), before)
    assert model.frozen_since_ == (0, 0)
    model.update(X[:2], [1e200, 1e200])
    assert model.drift_ == np.inf


def test_a_class_of_which_all_rows_went_comes_back(rng):
    X, y = noisy_rows(rng, 90, 3)
    model = EDRVFLClassifier(**ROWS).fit(X, y)
    P, own = model.predict_proba(X), y == 1
    model.forget(X[own], y[own])
    assert model.predict_proba(X[own])[:, 1].mean() < 0.8 * P[own, 1].mean()
    assert set(model.doubtful_rows(n=90).given) == {0, 2}
    model.update(X[own], y[own])
    np.testing.assert_allclose(model.predict_proba(X), P, atol=1e-12)


def test_what_is_frozen_is_named(rng):
    y = noisy_rows(rng, 60, 3)[1]
    frame = pd.DataFrame({"few": rng.integers(0, 4, 60), "day": pd.date_range("2024", periods=60)})
    model = EDRVFLClassifier(**ROWS, encoder="bins").fit(frame[["few"]], y)
    frozen = model.forget(ids=[0])
    assert {"edges of bins and ranks", "names of classes"} <= {*frozen}  # each value has a column
    assert "the first day of dates" not in frozen
    assert "the first day of dates" in model.fit(frame, y).forget(ids=[0])
