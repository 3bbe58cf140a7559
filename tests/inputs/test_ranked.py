"""Weighted quantiles and distinct values, against the repeated rows."""

import numpy as np
import pytest
from helpers import beside
from hypothesis import given
from hypothesis import strategies as st

from edrvfl._inputs.ranked import Ranked

SHARES = [0.0, 0.1, 0.25, 0.3, 0.5, 0.75, 0.9, 1.0]


@given(
    rows=st.lists(st.tuples(st.integers(-5, 5), st.integers(1, 4)), min_size=1, max_size=30),
    most=st.integers(1, 12),
)
def test_a_weight_counts_as_repetition(rows, most):
    values, counts = np.array(rows, float).T
    repeated = np.repeat(values, counts.astype(int))
    expected = np.quantile(repeated, SHARES, method="inverted_cdf")
    for ranked in (Ranked.of(values, counts), Ranked.of(repeated, None)):
        assert ranked.total == len(repeated)
        np.testing.assert_array_equal(ranked.quantiles(SHARES), expected)
        found, (different, weights) = ranked.distinct(most), np.unique(repeated, return_counts=True)
        if len(different) > most:
            assert found is None
        else:
            np.testing.assert_array_equal(found, (different, weights))


def test_rounded_sums_of_weights_move_no_quantile():
    part = np.array([0.1, 0.6, 0.6])
    assert np.cumsum(part)[-1] < 1.3  # one half of the weight, but for rounding
    ranked = Ranked.of(np.array([1.0, 1, 1, 2, 2, 2]), np.concatenate([part, part[::-1]]))
    assert ranked.quantiles([0.5]) == 1


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_every_library_finds_the_same_values(xp, rng, dtype, weighted):
    values, counts = rng.standard_normal(101).astype(dtype).round(1), rng.integers(1, 5, 101).astype(dtype)
    counts = counts if weighted else None
    ranked, expected = Ranked.of(xp.asarray(values), beside(xp, counts)), Ranked.of(values, counts)
    found = ranked.quantiles(SHARES)
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, expected.quantiles(SHARES))
    np.testing.assert_array_equal(ranked.distinct(100), expected.distinct(100))
