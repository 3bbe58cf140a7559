"""Which categories get a column of their own."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from edrvfl._inputs.categories import Tally, code_weights


def tally(codes, least=2, counts=None, missing=False):
    codes = np.asarray(codes, float)
    total = len(codes) if counts is None else np.sum(counts)
    weights = code_weights(codes, None if counts is None else np.asarray(counts, float))
    return Tally.of(weights, missing, total, least)


def test_the_heaviest_stay_apart_and_the_smaller_code_wins_a_tie():
    t = tally([0] * 3 + [1] * 5 + [2] * 3 + [3] + [7] * 4)
    assert t.frequent.tolist() == [1, 7, 0, 2]
    assert t.wanted == 4  # five columns with the rare one
    assert t.narrowed(5).frequent.tolist() == [1, 7, 0, 2]
    assert t.narrowed(4).frequent.tolist() == [1, 7, 0]
    labels, places = t.narrowed(4).groups()
    assert labels == [0, 1, 7, "rare"]
    # -1, the codes 0 to 7 of which three do not occur, codes beyond, missing
    assert places.tolist() == [-1, 0, 1, 3, 3, -1, -1, -1, 2, -1, -1]


def test_without_rare_ones_no_column_is_kept_for_them():
    labels, places = tally([0, 0, 2, 2], missing=True).narrowed(2).groups()
    assert labels == [0, 2, "missing"]
    assert places.tolist() == [-1, 0, -1, 1, -1, 2]


def test_unknown_codes_weigh_nothing():
    assert tally([-1, -1, 0, 0, 1]).weights.tolist() == [2, 1]
    assert tally([-1.0]).groups()[0] == ["rare"]  # a source column has at least one column


def test_rounded_sums_of_weights_decide_nothing():
    counts = np.array([0.1, 0.4, 0.2, 0.2, 0.4, 0.1])
    t = tally([0, 0, 0, 1, 1, 1], 0.7, counts)
    assert t.weights[0] < t.weights[1]  # equal, but for rounding
    assert t.frequent.tolist() == [0, 1]
    assert tally([0, 0, 0, 1], 0.9, [0.1, 0.1, 0.7, 0.1]).weights[0] < 0.9
    assert tally([0, 0, 0, 1], 0.9, [0.1, 0.1, 0.7, 0.1]).frequent.tolist() == [0]


@given(
    rows=st.lists(st.tuples(st.integers(0, 6), st.integers(1, 3)), min_size=1, max_size=30),
    least=st.integers(0, 6),
    unit=st.sampled_from([1.0, 0.1]),
)
def test_a_weight_counts_as_repetition_in_any_order(rows, least, unit):
    codes, counts = np.array(rows, float).T
    repeated = tally(np.repeat(codes, counts.astype(int)), least)
    for order in (slice(None), slice(None, None, -1)):
        weighted = tally(codes[order], least * unit, counts[order] * unit)
        np.testing.assert_array_equal(weighted.frequent, repeated.frequent)
        np.testing.assert_allclose(weighted.weights, repeated.weights * unit)
