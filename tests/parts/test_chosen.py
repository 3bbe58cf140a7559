"""All rows without their columns, and the rows that are held back, against rows in memory."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from edrvfl import EDRVFLClassifier, EDRVFLRegressor, RowBlocks
from edrvfl._inputs.chosen import hold_back
from edrvfl._inputs.rows import prepare_rows, prepare_values
from edrvfl._parts.chosen import hold_back_parted, ledger
from edrvfl._parts.rows import parted_rows
from edrvfl._parts.survey import take_survey
from edrvfl._parts.watched import WatchedParts

M = 60


@st.composite
def problems(draw):
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    X = rng.normal(size=(M, 2))
    y = np.array(["a", "b", "c"])[rng.integers(0, 3, M)]
    y[y == "c"] = "a"
    y[draw(st.integers(0, M - 1))] = "c"  # a class of one row: it returns to the fit
    if draw(st.booleans()):
        y = X[:, 0] * 3 + 5
    weight = rng.integers(0, 3, M).astype(float) if draw(st.booleans()) else None
    if weight is not None:
        weight[y == "c"] = 1.0
    cuts = sorted(draw(st.lists(st.integers(0, M), max_size=5)))
    return X, y, weight, cuts, draw(st.integers(1, 3))


def parted(X, y, weight, cuts, threads):
    arrays = [X, y] if weight is None else [X, y, weight]
    parts = list(zip(*(np.split(a, cuts) for a in arrays), strict=True))
    blocks = WatchedParts(RowBlocks(parts, threads=threads))
    model = EDRVFLClassifier() if y.dtype.kind == "U" else EDRVFLRegressor()
    return parted_rows(blocks, take_survey(blocks, model, None), None, np.empty((0, 1)))


def in_memory(X, y, weight):
    return prepare_rows(X, y, weight) if y.dtype.kind == "U" else prepare_values(X, y, weight)


@given(problem=problems(), which=st.lists(st.integers(0, 10**6), min_size=1, max_size=20))
def test_single_rows_are_fetched_in_the_order_asked_for(problem, which):
    X, y, weight, _, _ = problem
    kept = X if weight is None else X[weight > 0]
    of_parts, expected = parted(*problem), in_memory(X, y, weight)
    book = ledger(of_parts)
    assert book.X.shape == kept.shape
    rows = np.array(which) % len(kept)  # some twice, in any order
    taken, some = of_parts.take(rows), expected.some(rows)
    np.testing.assert_array_equal(taken.X, kept[rows])
    np.testing.assert_allclose(taken.targets.rows(slice(None)), some.targets.rows(slice(None)), atol=1e-13)
    np.testing.assert_array_equal(taken.weights.counts, some.weights.counts)
    np.testing.assert_array_equal(book.X.take_rows(rows), kept[rows])
    np.testing.assert_array_equal(book.hashes, expected.hashes)
    if y.dtype.kind == "U":
        np.testing.assert_array_equal(book.targets.codes, expected.targets.codes)
    else:
        np.testing.assert_allclose(book.targets.Y, expected.targets.Y, atol=1e-13)
    assert (book.weights.counts is None) == (weight is None)
    if weight is not None:
        np.testing.assert_array_equal(book.weights.counts, weight[weight > 0])


@given(problem=problems(), seed=st.integers(0, 1000))
def test_the_rows_that_are_held_back_are_those_in_memory(problem, seed):
    X, y, weight, _, _ = problem
    classes = y.dtype.kind == "U"
    rows = parted(*problem)
    fitted, held = hold_back_parted(rows, seed)
    (kept_X, kept_y, kept_weight, _), expected = hold_back(X, y, weight, seed, classes)
    np.testing.assert_array_equal(held.X, expected.X)
    if classes:
        np.testing.assert_array_equal(held.y, expected.y)
    else:
        np.testing.assert_allclose(held.y.reshape(-1), expected.y, rtol=1e-13)
    np.testing.assert_array_equal(held.returned, expected.returned)
    assert (held.counts is None) == (expected.counts is None)
    model = EDRVFLClassifier() if classes else EDRVFLRegressor()
    again = ledger(parted_rows(fitted, take_survey(fitted, model, None), None, np.empty((0, 1))))
    every = np.arange(len(kept_X))
    np.testing.assert_array_equal(again.X.take_rows(every), kept_X)
    expected_rows = in_memory(kept_X, kept_y, kept_weight)
    if classes:
        np.testing.assert_array_equal(again.classes, expected_rows.classes)
        np.testing.assert_array_equal(again.targets.codes, expected_rows.targets.codes)
    else:
        np.testing.assert_allclose(again.targets.Y, expected_rows.targets.Y, atol=1e-12)
