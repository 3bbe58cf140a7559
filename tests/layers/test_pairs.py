"""Pairs of rows of different classes: who is drawn, and that neither order nor repetition matters."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edrvfl._inputs.encoding import EncoderSettings, learn_inputs
from edrvfl._inputs.rows import prepare_rows, prepare_values, row_hashes
from edrvfl._layers.draws import draw_pairs, pair_differences


def test_pairs_are_any_row_and_any_row_of_another_class_by_their_weights(rng):
    counts = np.array([1.0, 2.0, 0.5, 3.0, 1.0, 0.5])
    y = np.array([2, 0, 1, 0, 2, 1])
    rows = prepare_rows(rng.standard_normal((6, 3)), y, counts)
    first, second = draw_pairs(rows, rng.random((2, 400_000)))
    found = np.zeros((6, 6))
    np.add.at(found, (first, second), 1 / 400_000)
    expected = np.zeros((6, 6))
    for i, j in np.ndindex(6, 6):
        if y[i] != y[j]:
            expected[i, j] = counts[i] / 8 * counts[j] / counts[y != y[i]].sum()
    np.testing.assert_allclose(found, expected, atol=0.003)


@given(seed=st.integers(0, 2**31), gaps=st.booleans())
def test_neither_the_order_of_rows_nor_repeating_one_changes_the_pairs(seed, gaps):
    rng = np.random.default_rng(seed)
    X, y = rng.integers(0, 4, (30, 2)) / 3, np.arange(30) % 3  # rows that occur twice, in two classes
    if gaps:
        X[rng.random(X.shape) < 0.2] = np.nan
    counts, u = rng.integers(1, 4, 30), rng.random((2, 50))
    again = rng.permutation(np.repeat(np.arange(30), counts))
    rows, others = prepare_rows(X, y, counts.astype(float)), prepare_rows(X[again], y[again], merge=False)
    for ours, theirs in zip(draw_pairs(rows, u), draw_pairs(others, u), strict=True):
        np.testing.assert_array_equal(others.X[theirs], rows.X[ours])
        np.testing.assert_array_equal(others.targets.codes[theirs], rows.targets.codes[ours])


def test_rows_with_values_are_paired_across_groups(rng):
    y = rng.standard_normal(160)
    rows = prepare_values(rng.standard_normal((160, 3)), y)
    first, second = draw_pairs(rows, rng.random((2, 20_000)))
    octile = np.argsort(np.argsort(y)) // 20
    assert (octile[first] != octile[second]).all()
    np.testing.assert_allclose(np.bincount(first, minlength=160) / 20_000, 1 / 160, atol=0.003)
    first, second = draw_pairs(prepare_values(np.zeros((5, 1)), np.full(5, 0.1)), rng.random((2, 50)))
    assert max(first.max(), second.max()) < 5  # all rows are alike, and a pair is any two


@given(seed=st.integers(0, 2**31), k=st.sampled_from([1, 2]))
def test_neither_order_nor_repetition_changes_the_pairs_of_values(seed, k):
    rng = np.random.default_rng(seed)
    X, y = rng.integers(0, 4, (30, 2)) / 3, rng.integers(0, 5, (30, k)) / 3
    counts, u = rng.integers(1, 4, 30), rng.random((2, 50))
    again = rng.permutation(np.repeat(np.arange(30), counts))
    rows, others = prepare_values(X, y, counts.astype(float)), prepare_values(X[again], y[again], merge=False)
    for ours, theirs in zip(draw_pairs(rows, u), draw_pairs(others, u), strict=True):
        np.testing.assert_array_equal(others.X[theirs], rows.X[ours])


def test_the_difference_is_that_of_the_encoded_rows(xp, rng):
    X, y = rng.standard_normal((20, 3)), np.arange(20) % 2
    X[3, 1] = np.nan
    rows, u = prepare_rows(xp.asarray(X), y), rng.random((2, 9))
    inputs = learn_inputs(rows.X, None, EncoderSettings("bins"))
    encoded = np.asarray(inputs.apply(rows.X))
    first, second = draw_pairs(rows, u)
    np.testing.assert_array_equal(pair_differences(inputs, rows, u), encoded[first] - encoded[second])
    np.testing.assert_array_equal(draw_pairs(prepare_rows(X, y), u)[0], first)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_hashes_tell_rows_apart_by_their_values_alone(rng, dtype):
    X = rng.integers(0, 100, (20_000, 6)).astype(np.float32).astype(dtype)
    hashes = row_hashes(X)
    assert len(np.unique(hashes)) == len(np.unique(X, axis=0))
    np.testing.assert_array_equal(row_hashes(np.asfortranarray(X)), hashes)
    np.testing.assert_array_equal(row_hashes(X.astype(np.float64)), hashes)
    np.testing.assert_array_equal(row_hashes(np.where(X == 0, -X, X)), hashes)  # -0.0 is 0.0
    assert (row_hashes(X[:, ::-1]) != hashes).mean() > 0.99  # the column matters
    huge = np.array([[np.nan, 1e300 if dtype is np.float64 else np.inf]], dtype)
    assert row_hashes(huge) == row_hashes(np.array([[-np.nan, np.inf]], dtype))


@pytest.mark.parametrize("absent", [0, 1, 2])
def test_a_class_without_rows_is_in_no_pair(rng, absent):
    rows = prepare_rows(rng.standard_normal((30, 2)), np.arange(30) % 3)
    some = rows.some(np.flatnonzero(np.arange(30) % 3 != absent))  # as where a fold has all rows of a class
    first, second = draw_pairs(some, rng.random((2, 500)))
    assert (some.targets.codes[first] != some.targets.codes[second]).all()
    assert len(np.unique(first)) == len(np.unique(second)) == 20
