"""Which categories get a column of their own."""

import zlib
from dataclasses import replace

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
    labels, places = t.narrowed(5).groups()
    assert labels == [0, 1, 2, 7, "rare"]
    # -1, the codes 0 to 7 of which three do not occur, codes beyond, missing
    assert places.tolist() == [-1, 0, 1, 2, 4, -1, -1, -1, 3, -1, -1]


def test_of_too_many_categories_the_heaviest_keep_half_of_the_columns():
    t = tally([0] * 3 + [1] * 5 + [2] * 3 + [3] + [7] * 4).narrowed(4)
    labels, places = t.groups()
    assert labels[:2] == [1, 7]
    assert set(labels[2:]) <= {"shared0", "shared1"}
    assert places[[0, -1, -2]].tolist() == [-1, -1, -1]  # not seen, missing, a code beyond
    for code in (0, 2, 3):  # the others share the rest
        assert labels[int(places[1 + code])] == f"shared{zlib.crc32(str(code).encode()) % 2}"


@given(st.lists(st.text(max_size=3), min_size=1, max_size=40, unique=True), st.integers(2, 12), st.data())
def test_a_text_has_its_shared_column_whatever_other_texts_there_are(texts, most, data):
    """Of categories without a column of their own; which these are, weights decide."""
    some = data.draw(st.lists(st.sampled_from(texts), min_size=1, unique=True))
    columns = []
    for values in (sorted(texts), sorted(some)):
        t = Tally.of(np.ones(len(values)), False, len(values), 1, np.array(values, dtype=object))
        t = replace(t.narrowed(most), frequent=t.frequent[:0], shared=most)
        labels, places = t.groups()
        columns.append({text: labels[int(place)] for text, place in zip(values, places[1:-2], strict=True)})
    assert columns[0].items() >= columns[1].items()


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
