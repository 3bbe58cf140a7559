"""Eq. 12-14."""

import numpy as np
import pytest
from helpers import to_host
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from edrvfl._layers.layers import next_weights


def test_by_hand(xp):
    # m = 4, n_r = 3, n_w = 1, omega_r = 0.8: omega_w = (4 - 2.4) / 1 = 1.6
    right = xp.asarray([True, True, False, True])
    omega = next_weights(right, xp.ones(4, dtype=xp.float64), 0.8)
    np.testing.assert_allclose(to_host(omega), [0.8, 0.8, 1.6, 0.8], rtol=1e-15)


@given(right=hnp.arrays(bool, st.integers(1, 60)), omega_r=st.floats(1e-6, 1), data=st.data())
def test_the_weights_sum_to_m(right, omega_r, data):
    s = data.draw(hnp.arrays(float, right.shape, elements=st.floats(1e-3, 1e3)))
    omega = next_weights(right, s, omega_r)
    np.testing.assert_allclose(np.sum(s * omega), np.sum(s), rtol=1e-12)
    assert (omega > 0).all()
    if right.any() and not right.all():
        assert np.all(omega[right] == omega_r)
        assert np.all(omega[~right] >= 1)


@pytest.mark.parametrize(
    ("right", "omega_r"),
    [([True] * 3, 0.3), ([False] * 3, 0.3), ([True, False, True], 1.0)],
    ids=["nothing wrong", "nothing right", "omega_r 1"],
)
def test_exact_ones(xp, right, omega_r):
    s = xp.asarray([0.1, 0.2, 0.7], dtype=xp.float64)
    omega = next_weights(xp.asarray(right), s, omega_r)
    assert to_host(omega).tolist() == [1.0, 1.0, 1.0]


def test_a_stack_is_its_members(xp):
    right = np.array([[True, False, False], [True, True, False], [True, True, True]])
    s = np.array([1.0, 2.0, 3.0])
    omega_r = np.array([0.5, 0.25, 0.5])
    stacked = next_weights(xp.asarray(right), xp.asarray(s), omega_r)
    for row, r, w in zip(to_host(stacked), right, omega_r, strict=True):
        np.testing.assert_array_equal(row, next_weights(r, s, w))
