"""Eq. 17."""

import numpy as np
import pytest
from helpers import to_host
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from edrvfl._layers.layers import importance, n_pruned, survivor_mask, survivors


def test_importance_by_hand(xp):
    beta = xp.asarray([[1.0, -2.0], [0.5, 0.25], [0.0, 0.0]])
    assert to_host(importance(beta)).tolist() == [3.0, 0.75, 0.0]


def test_the_least_important_go(xp):
    theta = xp.asarray([3.0, 0.1, 2.0, 0.2, 1.0])
    assert to_host(survivors(theta, 0.4)).tolist() == [0, 2, 4]


@pytest.mark.parametrize(
    ("n", "p", "dropped"), [(10, 0.0, 0), (10, 0.3, 3), (10, 0.99, 9), (1, 0.9, 0), (100, 0.29, 29)]
)
def test_how_many_go(n, p, dropped):
    assert n_pruned(n, p) == dropped  # 0.29 * 100 is 28.999999999999996 in floating point


@given(
    theta=hnp.arrays(float, st.integers(1, 40), elements=st.sampled_from([0.0, 1.0, 2.0])),
    p=st.floats(0, 0.999),
)
def test_indices_and_mask_agree_even_with_ties(theta, p):
    kept = survivors(theta, p)
    assert len(kept) == len(theta) - n_pruned(len(theta), p) >= 1
    np.testing.assert_array_equal(np.flatnonzero(survivor_mask(theta, p)), kept)


def test_a_stack_has_a_rate_for_each_member(xp):
    theta = xp.asarray([[3.0, 1.0, 2.0, 4.0]] * 3)
    mask = survivor_mask(theta, np.array([0.0, 0.25, 0.5]))
    assert to_host(mask).tolist() == [[1, 1, 1, 1], [1, 0, 1, 1], [1, 0, 0, 1]]
