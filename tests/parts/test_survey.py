"""The first look at all rows, and the rows that are brought to memory, against all rows at once."""

import operator
from functools import partial, reduce

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edrvfl import EDRVFLClassifier, EDRVFLRegressor, RowBlocks
from edrvfl._inputs.chosen import judge_some
from edrvfl._inputs.moments import ValueScale
from edrvfl._inputs.rows import prepare_rows, prepare_values
from edrvfl._inputs.targets import WeightSums
from edrvfl._parts.chosen import judged_rows
from edrvfl._parts.parts import Part
from edrvfl._parts.rows import deal, parted_rows
from edrvfl._parts.survey import look_at, take_survey
from edrvfl._parts.watched import WatchedParts

CUTS = st.lists(st.integers(0, 50), max_size=5).map(sorted)


def parts_of(array, cuts):
    return np.split(array, cuts)


@given(
    cuts=CUTS,
    scale=st.sampled_from([1.0, 1e-300, 1e200]),
    seed=st.integers(0, 1000),
    spread=st.sampled_from([1, 1e6]),
)
def test_sums_of_weights(cuts, scale, seed, spread):
    weights = np.random.default_rng(seed).uniform(0.1, 4, 50) ** np.log10(10 * spread) * scale
    sums = reduce(operator.add, (WeightSums.of(part) for part in parts_of(weights, cuts)))
    assert sums.n_rows == 50
    assert sums.largest == weights.max()
    shares = weights / weights.max()
    worth = max(weights.sum(), shares.sum() ** 2 / (shares @ shares))
    found = (sums.total, sums.worth, sums.of_one)
    np.testing.assert_allclose(found, (weights.sum(), worth, weights.sum() / worth), rtol=1e-12)
    plain = reduce(operator.add, (WeightSums.of(np.ones(len(p))) for p in parts_of(weights, cuts)))
    assert (plain.worth, plain.of_one) == (50.0, 1.0)


@given(
    cuts=CUTS,
    scale=st.sampled_from([1.0, 1e-300, 1e200]),
    offset=st.sampled_from([0.0, 1e6]),
    seed=st.integers(0, 1000),
)
def test_scale_of_values(cuts, scale, offset, seed):
    rng = np.random.default_rng(seed)
    Y = (rng.normal(size=(50, 2)) * [1, 1e-3] + offset) * scale
    Y[:20] *= 2.0**-10  # parts of other units
    Y[40:] = 0.0
    counts = rng.integers(1, 4, 50).astype(float)
    parts = zip(parts_of(Y, cuts), parts_of(counts, cuts), strict=True)
    found = reduce(operator.add, (ValueScale.of(y, w) for y, w in parts))
    V = (Y / scale).astype(np.longdouble)  # the extended range keeps the squares, but not on all machines
    mean = np.average(V, axis=0, weights=counts)
    sd = np.sqrt(counts @ (V - mean) ** 2 / counts.sum())
    assert found.moments.weight == counts.sum()
    np.testing.assert_allclose(found.mean * found.unit / scale, mean.astype(float), rtol=1e-12)
    np.testing.assert_allclose(found.sd * found.unit / scale, sd.astype(float), rtol=1e-9)


def test_values_of_nothing_but_zeros_have_a_scale():
    nothing = ValueScale.of(np.zeros((0, 1)), np.zeros(0))
    found = nothing + (ValueScale.of(np.zeros((3, 1)), np.ones(3)) + nothing)
    assert (found.mean[0], found.sd[0], found.moments.weight) == (0.0, 0.0, 3.0)


@given(
    cuts=CUTS,
    labels=st.sampled_from([[0, 1, 2, 3], [-1.0, 0.0, 5.0, 7.0], ["b", "aa", "c", "dd"], [False, True]]),
    seed=st.integers(0, 1000),
)
def test_labels_and_weights_of_classes(cuts, labels, seed):
    rng = np.random.default_rng(seed)
    y = np.array(labels)[rng.integers(0, len(labels), 50)]
    weight = rng.integers(0, 3, 50).astype(float)
    X = rng.normal(size=(50, 2))
    look = partial(look_at, EDRVFLClassifier(), None)
    found = [
        look(Part(number, *part))
        for number, part in enumerate(zip(*(parts_of(a, cuts) for a in (X, y, weight)), strict=True))
    ]
    assert [survey is None for survey in found] == [len(part) == 0 for part in parts_of(y, cuts)]
    found = [survey for survey in found if survey is not None]
    survey = reduce(operator.add, found)
    np.testing.assert_array_equal(survey.labels, np.unique(y[weight > 0]))
    expected = [weight[y == label].sum() for label in survey.labels]
    np.testing.assert_array_equal(survey.class_weights, expected)
    of_parts = zip(parts_of(y, cuts), parts_of(weight, cuts), strict=True)
    for number, (labels_of, weights_of) in enumerate(of_parts):
        if len(labels_of):
            sizes = [((labels_of == c) & (weights_of > 0)).sum() for c in survey.labels]
            np.testing.assert_array_equal(survey.class_rows[number], sizes)


@given(st.lists(st.integers(0, 6), min_size=1, max_size=8), st.integers(0, 1000))
def test_rows_are_dealt_to_their_parts(sizes, seed):
    rng, m = np.random.default_rng(seed), sum(sizes)
    indices = rng.permutation(m)[: rng.integers(0, m + 1)]
    owners = np.repeat(np.arange(len(sizes)), sizes)
    places = np.concatenate([np.arange(size) for size in sizes])
    dealt = deal(indices, dict(zip(range(10, 10 + len(sizes)), sizes, strict=True)))
    expected = {10 + part: places[indices[owners[indices] == part]].tolist() for part in range(len(sizes))}
    assert {number: some.tolist() for number, some in dealt.items()} == expected


def parted(model, X, y, weight=None, class_weight=None, threads=1, rows=137):
    """Return the rows of a fit in parts."""
    blocks = WatchedParts(RowBlocks.from_arrays(X, y, weight, rows=rows, threads=threads))
    survey = take_survey(blocks, model, None)
    return parted_rows(blocks, survey, class_weight, np.empty((0, 1)))


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("m", [900, 3500])  # of two classes 3000 rows are judged
def test_the_judged_rows_are_those_in_memory(m, weighted, threads, rng):
    X, y = rng.normal(size=(m, 2)), (rng.random(m) < 0.02).astype(int)
    weight = rng.choice([0.0, 1.0, 1.0, 1.0, 2.5, 1.0, 1.0, 1.0, 3.0, 1.0], m) if weighted else None
    found, some = judged_rows(parted(EDRVFLClassifier(), X, y, weight, "balanced", threads))
    rows = prepare_rows(X, y, weight, "balanced")
    judged = judge_some(rows.targets)
    assert (judged is None) == (some is None) == (m == 900)
    which = slice(None) if judged is None else judged.rows
    np.testing.assert_array_equal(found.X, rows.X[which])
    np.testing.assert_array_equal(found.targets.codes, rows.targets.codes[which])
    np.testing.assert_allclose(found.weights.base, rows.weights.base[which], rtol=1e-14)
    if judged is not None:
        np.testing.assert_array_equal(some.stand_for, judged.stand_for)
        totals = np.bincount(rows.targets.codes, rows.weights.counts)
        np.testing.assert_allclose(some.class_weights, totals)


@pytest.mark.parametrize("threads", [1, 2])
def test_the_judged_values_are_those_in_memory(threads, rng):
    X = rng.normal(size=(10_400, 1))
    y = X[:, 0] * 3 + 7
    found, some = judged_rows(parted(EDRVFLRegressor(), X, y, threads=threads, rows=1111))
    rows = prepare_values(X, y)
    judged = judge_some(rows.targets)
    np.testing.assert_array_equal(found.X, X[judged.rows])
    np.testing.assert_allclose(found.targets.Y, rows.targets.Y[judged.rows], atol=1e-12)
    np.testing.assert_allclose(found.targets.sd, rows.targets.sd, rtol=1e-13)
    np.testing.assert_array_equal(some.stand_for, judged.stand_for)
