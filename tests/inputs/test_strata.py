"""Which rows are alike: classes, groups of values, and the order by values."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edrvfl._inputs.chosen import STRATA, codes_of, ranking, strata
from edrvfl._inputs.rows import prepare_rows, prepare_values


def values_of(y, counts=None):
    return prepare_values(np.arange(1.0 * len(y))[:, None], y, counts)


def test_classes_are_their_own_groups(rng):
    y = rng.integers(0, 3, 20)
    rows = prepare_rows(np.arange(20.0)[:, None], y)
    for found in (strata(rows), ranking(rows.targets, None), codes_of(rows.targets)):
        np.testing.assert_array_equal(found, y)


def test_groups_of_values_are_octiles(rng):
    y = rng.standard_normal(800)
    rows = values_of(y)
    np.testing.assert_array_equal(strata(rows), np.argsort(np.argsort(y)) // 100)
    assert set(codes_of(rows.targets)) == {0}


@given(seed=st.integers(0, 2**31), k=st.sampled_from([1, 2, 3]), opposite=st.booleans())
def test_neither_order_nor_repetition_nor_units_change_the_groups(seed, k, opposite):
    rng = np.random.default_rng(seed)
    y = rng.integers(-4, 5, (40, k)).astype(float)
    if opposite:
        y[:, -1] = -3 * y[:, 0] + (k > 2) * y[:, -1]
    y += 1e-3 * rng.standard_normal((40, k)).round(1)
    counts = rng.integers(1, 4, 40)
    found = strata(values_of(y, counts.astype(float)))
    rows = rng.permutation(np.repeat(np.arange(40), counts))
    np.testing.assert_array_equal(strata(values_of(y[rows])), found[rows])
    np.testing.assert_array_equal(strata(values_of(7 * y - 5, counts.astype(float))), found)


@pytest.mark.parametrize("counts", [None, "some"])
def test_groups_are_in_the_order_of_values_and_equal_values_stay_together(rng, counts):
    y = rng.integers(0, 30, 500) / 3
    rows = values_of(y, None if counts is None else rng.choice([0.5, 1.0, 4.0], 500))
    found = strata(rows)
    assert found.max() == STRATA - 1
    order = np.argsort(y)
    assert (np.diff(found[order]) >= 0).all()
    for value in np.unique(y):
        assert len(set(found[y == value])) == 1
    weights = np.ones(500) if counts is None else np.asarray(rows.weights.counts)
    shares = np.bincount(found, weights) / weights.sum()
    largest = max(weights[y == value].sum() for value in np.unique(y)) / weights.sum()
    assert np.abs(shares - 1 / STRATA).max() < largest


@pytest.mark.parametrize("weight", [0.1, 0.7, 1 / 3, 1e-200])
@pytest.mark.parametrize("m", [12, 20, 36, 100])
def test_rounding_moves_nobody_to_another_group(weight, m):
    y = np.arange(float(m))
    np.testing.assert_array_equal(strata(values_of(y, np.full(m, weight))), strata(values_of(y)))


def test_few_values_make_few_groups():
    assert strata(values_of(np.array([1.0, 1.0, 1.0, 2.0]))).tolist() == [0, 0, 0, 1]
    assert strata(values_of(np.full(5, 0.1))).tolist() == [0] * 5
    mostly_zero = np.concatenate([np.zeros(90), np.arange(1, 11)])
    found = strata(values_of(mostly_zero))
    assert set(found[:90]) == {0}
    assert found[90:].min() == 1


def test_several_outputs_stand_along_what_varies_most(rng):
    common = rng.standard_normal(300)
    Y = np.column_stack([common, 2 * common, rng.standard_normal(300)]) + 0.1 * rng.standard_normal((300, 3))
    found = ranking(values_of(Y).targets, None)
    assert np.corrcoef(found, common)[0, 1] > 0.99
    both = ranking(values_of(np.column_stack([-common, common])).targets, None)
    np.testing.assert_allclose(both, -np.sqrt(2) * (common - common.mean()) / common.std(), atol=1e-8)
