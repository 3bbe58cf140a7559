"""Rows that are held back from a fit: how many, which, and that every class stays in the fit."""

import numpy as np
import pytest
import sklearn
from helpers import to_host

from edrvfl._inputs.chosen import hold_back, n_held_back


def test_how_many():
    some = {1: 0, 2: 1, 3: 1, 60: 30, 78: 39, 100: 39, 195: 39, 200: 40, 1_000: 200, 100_000: 5_000}
    assert {m: n_held_back(m) for m in some} == some


def test_every_row_is_held_back_as_often_as_any_other():
    X, y = np.arange(20.0)[:, None], np.arange(20.0)
    times = np.zeros(20)
    for seed in range(2_000):
        (fitted, _, _, _), held = hold_back(X, y, None, seed, classes=False)
        assert sorted([*fitted[:, 0], *held.X[:, 0]]) == list(range(20))
        times[held.y.astype(int)] += 1
    assert times.sum() == 2_000 * 10
    assert abs(times - 1_000).max() < 5 * np.sqrt(2_000 / 4)


def test_rows_of_weight_0_are_no_rows(rng):
    X, y, weights = rng.standard_normal((50, 2)), rng.standard_normal((50, 3)), np.ones(50)
    weights[::5] = 0
    (fitted, Y, counts, _), held = hold_back(X, y, weights, 3, classes=False)
    assert fitted.shape[0] + held.X.shape[0] == len(Y) + len(held.y) == 40
    assert held.counts.min() == counts.min() == 1
    some = np.flatnonzero(weights)
    again, other = hold_back(X[some], y[some], None, 3, classes=False)
    np.testing.assert_array_equal(again[0], fitted)
    np.testing.assert_array_equal(other.y, held.y)


@pytest.mark.parametrize("labels", [np.arange(12), np.array(list("abcdefghijkl"), dtype=object)])
def test_every_class_stays_in_the_fit(labels):
    y = np.concatenate([np.repeat(labels[:2], 20), labels])
    X, returns = np.arange(52.0)[:, None], 0
    for seed in range(50):
        (_, fitted, _, _), held = hold_back(X, y, None, seed, classes=True)
        assert set(fitted) == set(labels)
        assert not set(held.returned) & set(labels[:2])
        assert len(fitted) + len(held.y) == 52
        assert len(held.y) + len(held.returned) == 26  # those that returned were drawn
        returns += len(held.returned)
    assert 0.3 < returns / (50 * 10) < 0.7  # half of the rows are drawn, so half of the single ones are


def test_libraries_hold_the_same_rows_back(xp, rng):
    X, y, weights = rng.standard_normal((30, 2)), rng.integers(0, 3, 30), rng.integers(0, 3, 30).astype(float)
    expected = hold_back(X, y, weights, 7, classes=True)
    # labels may come in NumPy beside rows of another library
    for labels in (xp.asarray(y), y):
        with sklearn.config_context(array_api_dispatch=True):
            (fitted, _, counts, _), held = hold_back(
                xp.asarray(X), labels, xp.asarray(weights), 7, classes=True
            )
        np.testing.assert_array_equal(to_host(fitted), expected[0][0])
        np.testing.assert_array_equal(to_host(counts), expected[0][2])
        np.testing.assert_array_equal(to_host(held.y), expected[1].y)
