"""How much rows weigh."""

import numpy as np
import pytest
from helpers import beside, to_host
from hypothesis import given
from hypothesis import strategies as st

from edrvfl._inputs.weights import RowWeights


@pytest.mark.parametrize("counts", [None, [1.0, 3.0]])
@pytest.mark.parametrize("costs", [None, [0.5, 2.0]])
def test_counts_and_costs_multiply_and_only_counts_count(xp, counts, costs):
    weights = RowWeights(beside(xp, counts), beside(xp, costs))
    if counts is None and costs is None:
        assert weights.base is None
    else:
        np.testing.assert_array_equal(to_host(weights.base), np.multiply(counts or 1.0, costs or 1.0))
    like = xp.zeros((1,), dtype=xp.float32)
    np.testing.assert_array_equal(to_host(weights.counts_of(2, like)), counts or [1.0, 1.0])


@given(count=st.integers(1, 1000))
def test_leaving_one_of_several_out_takes_its_share(count):
    assert RowWeights(np.array([float(count)])).left_out_shares(1, np.zeros(1))[0] == 1 / count


def test_a_row_of_weight_one_or_less_is_left_out_completely(xp):
    counts = xp.asarray([1.0, 0.3, 1e-310], dtype=xp.float64)  # the inverse of the last is infinite
    shares = RowWeights(counts).left_out_shares(3, counts)
    assert to_host(shares).tolist() == [1.0, 1.0, 1.0]
    assert to_host(RowWeights().left_out_shares(2, counts)).tolist() == [1.0, 1.0]
