"""What is learnt about the columns of X."""

import itertools

import numpy as np
import pytest
from helpers import to_host
from hypothesis import given
from hypothesis import strategies as st

from edrvfl._inputs.encoding import EncoderSettings, learn_inputs
from edrvfl._inputs.moments import moments


@given(seed=st.integers(0, 2**31), cuts=st.lists(st.integers(1, 49), max_size=4))
def test_moments_do_not_depend_on_the_blocks(seed, cuts):
    rng = np.random.default_rng(seed)
    Z, counts = rng.standard_normal((50, 3)) + 1e6, rng.uniform(0.1, 3, 50)
    edges = [0, *sorted(set(cuts)), 50]
    mean, variance = moments(iter([(Z[a:b], counts[a:b]) for a, b in itertools.pairwise(edges)]))
    centred = Z - 1e6
    expected = np.average(centred, axis=0, weights=counts)
    np.testing.assert_allclose(mean - 1e6, expected, atol=1e-8)
    spread = np.average((centred - expected) ** 2, axis=0, weights=counts)
    np.testing.assert_allclose(variance, spread, rtol=1e-8)


@pytest.mark.parametrize("counted", [False, True])
def test_columns_get_mean_0_and_variance_1(xp, rng, counted):
    X = rng.standard_normal((200, 3)) * [1e-200, 3.0, 1e200] + [0, 50, 1e200]
    X = np.column_stack([X, np.full(200, 0.1), np.zeros(200)])
    counts = xp.ones(200, dtype=xp.float64) if counted else None
    inputs = learn_inputs(xp.asarray(X), counts, EncoderSettings())
    assert inputs.width == 5
    scaled = to_host(inputs.apply(xp.asarray(X)))
    np.testing.assert_allclose(scaled.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(scaled[:, :3].std(axis=0), 1, rtol=1e-12)
    assert (scaled[:, 3:] == 0).all()


def test_columns_may_stay_as_they_are(xp, rng):
    X = xp.asarray(rng.standard_normal((5, 2)))
    inputs = learn_inputs(X, None, None)
    assert inputs.width == 2
    assert inputs.apply(X) is X


def test_a_weight_counts_as_repetition(rng):
    X, counts = rng.standard_normal((20, 2)), rng.integers(1, 4, 20)
    weighted = learn_inputs(X, counts.astype(float), EncoderSettings()).apply(X)
    repeated = learn_inputs(np.repeat(X, counts, axis=0), None, EncoderSettings()).apply(X)
    np.testing.assert_allclose(weighted, repeated, atol=1e-13)


def test_blocks_of_rows_change_nothing_but_rounding(rng, monkeypatch):
    X = rng.standard_normal((500, 3)) * [1, 20, 1e6]
    whole = learn_inputs(X, None, EncoderSettings()).apply(X)
    monkeypatch.setattr("edrvfl._arrays.CPU_BLOCK_BYTES", 1)
    np.testing.assert_allclose(learn_inputs(X, None, EncoderSettings()).apply(X), whole, atol=1e-12)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_an_outlier_far_beyond_the_training_rows_stays_finite(rng, dtype):
    X = rng.standard_normal((30, 1)).astype(dtype)
    far = np.array([[np.finfo(dtype).max], [-np.finfo(dtype).max]], dtype)
    scaled = learn_inputs(X, None, EncoderSettings()).apply(far)
    assert np.isfinite(scaled).all()
    assert scaled[0] > 1e6
    assert scaled[1] < -1e6
