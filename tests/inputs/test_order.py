"""Rows are ordered and drawn by what they hold, not by where they stand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edrvfl._inputs.chosen import draw_rows
from edrvfl._inputs.rows import row_hashes


def row_order(X):
    """The order in which rows are drawn."""
    return np.argsort(row_hashes(X), kind="stable")


def test_the_order_follows_the_rows(rng):
    X = rng.standard_normal((200, 3))
    X[::7, 1] = np.nan
    moved = rng.permutation(200)
    np.testing.assert_array_equal(X[row_order(X)], X[moved][row_order(X[moved])])


def test_equal_rows_have_equal_hashes_and_others_do_not(rng):
    X = rng.integers(-4, 5, (500, 4)).astype(float)
    X[::9, 2] = np.nan
    signed = np.where(X == 0, -0.0, X)
    np.testing.assert_array_equal(row_hashes(X), row_hashes(signed))
    np.testing.assert_array_equal(row_hashes(X), row_hashes(X.astype(np.float32)))
    assert len(np.unique(row_hashes(X))) == len(np.unique(np.nan_to_num(X, nan=9), axis=0))


def test_columns_are_told_apart():
    assert len(np.unique(row_hashes(np.array([[1.0, 2.0], [2.0, 1.0], [1.0, 1.0], [2.0, 2.0]])))) == 4


def test_huge_numbers_have_an_order():
    assert sorted(row_order(np.array([[1e300], [-1e300], [0.0]]))) == [0, 1, 2]


def test_the_order_looks_random():
    X = np.arange(20_000.0)[:, None]
    places = np.argsort(row_order(X)) / 20_000
    halves = places[:10_000].mean(), places[10_000:].mean()
    assert max(abs(half - 0.5) for half in halves) < 0.015  # five standard deviations
    assert abs(np.corrcoef(places[:-1], places[1:])[0, 1]) < 0.035


@given(st.integers(0, 2**32 - 1), st.floats(0, 0.999), st.integers(1, 60))
def test_weight_two_is_drawn_like_the_row_twice(seed, start, n):
    rng = np.random.default_rng(seed)
    codes, counts = rng.integers(0, 3, 30), rng.integers(1, 4, 30)
    codes[:3] = range(3)
    times = draw_rows(n, codes, counts.astype(float), np.arange(30), start)
    rows = np.repeat(np.arange(30), counts)
    twice = draw_rows(n, codes[rows], np.ones(len(rows)), np.arange(len(rows)), start)
    np.testing.assert_array_equal(times, np.bincount(rows, twice, minlength=30))


@pytest.mark.parametrize("n", [3, 10, 40, 70, 100, 500])
def test_classes_share_the_draws(n):
    codes = np.repeat([0, 1, 2], [5, 25, 70])
    times = draw_rows(n, codes, np.ones(100), np.arange(100), 0.5)
    assert times.max() <= 1  # without weights no row comes twice
    drawn = np.bincount(codes, times)
    assert drawn.sum() == min(n, 100)
    assert drawn.tolist() == {3: [1, 1, 1], 10: [3, 3, 4], 40: [5, 17, 18], 70: [5, 25, 40]}.get(
        n, [5, 25, 70]
    )


def test_the_scale_of_small_weights_does_not_matter():
    codes, counts = np.repeat([0, 1], 50), np.linspace(0.2, 1, 100)
    draws = [draw_rows(20, codes, scale * counts, np.arange(100), 0.3) for scale in (1.0, 1e-6)]
    np.testing.assert_array_equal(*draws)
