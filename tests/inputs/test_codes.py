"""Categories without a cap: kernels compare codes, against explicit one-hot columns of all categories."""

import numpy as np
import pytest
from helpers import to_host
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from edrvfl._inputs.encoding import EncoderSettings, learn_inputs
from edrvfl._inputs.inputs import MISSING
from edrvfl._inputs.levels import compared
from edrvfl._ridge.kernels import KERNELS


def one_hot(codes, levels, contrast):
    """Return a column for each of these levels, and none for any other."""
    return contrast * (codes[:, None] == np.asarray(levels)).astype(float)


def coded_rows(rng, m, unseen=()):
    """Return two columns of numbers, one of two values, and two of codes; in the first code -1 is unseen."""
    plain = np.column_stack([rng.standard_normal((m, 2)), rng.choice([0.0, 1.7], m)])
    few, many = rng.integers(0, 2, m), rng.choice([*range(9), *unseen], m)
    return np.column_stack([plain, few, many])


def explicit(X, Z, contrasts):
    """Return the rows with a one-hot column for each level of X or Z, each unseen row having its own."""
    both = np.concatenate([X, Z])
    both[both == -1] = 1000 + np.arange((both == -1).sum())
    hot = [one_hot(both[:, 3 + j], np.unique(both[:, 3 + j]), c) for j, c in enumerate(contrasts)]
    both = np.column_stack([both[:, :3], *hot])
    return both[: len(X)], both[len(X) :]


# --- kernels ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", KERNELS)
def test_codes_are_as_far_apart_as_one_hot_columns(xp, rng, kernel):
    contrasts = np.array([0.7, 1.3])
    X, Z = coded_rows(rng, 23, unseen=(-1, 12)), coded_rows(rng, 17)
    measure = KERNELS[kernel].measure(xp.asarray(Z), xp.asarray(contrasts))
    found = to_host(KERNELS[kernel].alike(measure(xp.asarray(X)), 2.5))
    if kernel == "additive":  # the mean over three columns, and two for each code
        alike = np.exp(-np.abs(X[:, None, :3] - Z[:, :3]) / 2.5).sum(axis=2)
        for j, contrast in enumerate(contrasts):
            alike += np.where(X[:, None, 3 + j] == Z[:, 3 + j], 2, 2 * np.exp(-contrast / 2.5))
        expected = (alike / 7) ** 2
    else:
        A, B = explicit(X, Z, contrasts)
        plain = KERNELS[kernel].measure(B, None)
        expected = KERNELS[kernel].alike(plain(A), 2.5)
    assert_allclose(found, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("kernel", KERNELS)
def test_gradients_of_two_codes_are_those_of_a_pair_of_columns(xp, rng, kernel):
    X, alpha, counts = coded_rows(rng, 40)[:, :4], rng.standard_normal((40, 3)), rng.uniform(0.5, 2, 40)
    pair = np.column_stack([X[:, :3], one_hot(X[:, 3], [0, 1], 0.7)])
    given_arrays = [xp.asarray(array) for array in (X, alpha, counts)]
    found = to_host(KERNELS[kernel].squared_gradients(*given_arrays, 2.5, xp.asarray(np.array([0.7]))))
    expected = KERNELS[kernel].squared_gradients(pair, alpha, counts, 2.5)
    assert_allclose(found, [*expected[:3], expected[3:].mean()], rtol=1e-10)


# --- what a kernel sees ----------------------------------------------------------------------------------


def learnt(X, factors=False, **options):
    inputs = learn_inputs(X, None, EncoderSettings(**options), (False, True, True, False, True))
    if factors:
        by_column = np.random.default_rng(1).uniform(0.1, 2, X.shape[1])
        object.__setattr__(inputs, "factors", by_column[list(inputs.source)])
    return inputs


def table(rng, m=120):
    """Return numbers, few codes, many codes, numbers, many codes; with gaps in a column of each kind."""
    X = np.column_stack(
        [rng.standard_normal(m), rng.integers(0, 3, m), rng.integers(0, 20, m), rng.standard_normal(m)]
    )
    X = np.column_stack([X, rng.integers(0, 30, m)])
    X[::11, 0] = X[::13, 2] = np.nan
    return X


@pytest.mark.parametrize("numbers", ["standard", "robust", "bins", "ranks"])
@pytest.mark.parametrize("factors", [False, True])
def test_a_kernel_sees_codes_and_all_other_columns_as_a_network_does(rng, numbers, factors):
    X = table(rng)
    inputs = learnt(X, factors, numbers=numbers, max_categories=6)
    seen, new = compared(inputs), table(rng, 50)
    new[0, 2], new[1, 4] = -1, 77
    others = [i for i, j in enumerate(inputs.source) if j not in (2, 4)]
    encoded = seen.apply(new)
    assert_array_equal(encoded[:, :-2], inputs.apply(new)[:, others])
    assert_array_equal(encoded[:, -2:], np.where(np.isnan(new[:, [2, 4]]), MISSING, new[:, [2, 4]]))
    assert (*(inputs.source[i] for i in others), 2, 4) == seen.source
    contrasts = seen.contrasts(X)
    assert_array_equal(
        contrasts, [inputs.factors[inputs.source.index(j)] for j in (2, 4)] if factors else 1.0
    )
    written = np.empty_like(encoded)
    seen.write(new, written)
    assert_array_equal(written, encoded)


def test_columns_of_few_categories_stay_as_they_are(rng):
    inputs = learnt(table(rng), max_categories=31, min_frequency=1)
    assert inputs.many is None
    assert compared(inputs) is inputs


def test_a_table_of_codes_alone(rng):
    X = table(rng)[:, [2, 4]]
    inputs = compared(learn_inputs(X, None, EncoderSettings(max_categories=4), (True, True)))
    assert (inputs.width, inputs.n_compared, inputs.plain) == (2, 4, False)
    assert_array_equal(inputs.apply(X), np.where(np.isnan(X), MISSING, X))


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_the_order_of_rows_and_columns_does_not_matter(data):
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    X = table(rng, data.draw(st.integers(20, 80)))
    rows, columns = rng.permutation(len(X)), rng.permutation(X.shape[1])
    categorical = np.array((False, True, True, False, True))
    options = EncoderSettings(max_categories=data.draw(st.integers(2, 8)), min_frequency=1)
    first = learn_inputs(X, None, options, categorical)
    again = learn_inputs(X[rows][:, columns], None, options, categorical[columns])
    seen, other = compared(first), compared(again)
    for j in range(X.shape[1]):
        here = [i for i, source in enumerate(seen.source) if source == j]
        there = [i for i, source in enumerate(other.source) if columns[source] == j]
        assert_allclose(seen.apply(X)[rows][:, here], other.apply(X[rows][:, columns])[:, there], atol=1e-12)
