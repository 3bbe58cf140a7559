"""Eq. 5-11 and the scaling of the inputs."""

import itertools

import numpy as np
import pytest
from conftest import to_host
from hypothesis import given
from hypothesis import strategies as st

from edrvfl import _layers


def test_same_seed_same_draw_other_seed_other_draw():
    W, b = _layers.draw(3, 1, 6, 4)
    again, b_again = _layers.draw(3, 1, 6, 4)
    np.testing.assert_array_equal(W, again)
    np.testing.assert_array_equal(b, b_again)
    assert not np.array_equal(W, _layers.draw(4, 1, 6, 4)[0])
    assert not np.array_equal(W, _layers.draw(3, 2, 6, 4)[0])


def test_weights_and_biases_have_their_ranges_and_are_independent():
    W, b = _layers.draw(0, 0, 1, 20_000)
    assert -1 <= W.min() < -0.999
    assert 0.999 < W.max() <= 1
    assert 0 <= b.min() < 0.001
    assert 0.999 < b.max() <= 1
    # one seed for both would make W = 2 b - 1
    assert abs(np.corrcoef(W[0], b)[0, 1]) < 0.03


@given(seed=st.integers(0, 2**31), cuts=st.lists(st.integers(1, 49), max_size=4))
def test_moments_do_not_depend_on_the_blocks(seed, cuts):
    rng = np.random.default_rng(seed)
    Z, s = rng.standard_normal((50, 3)) + 1e6, rng.uniform(0.1, 3, 50)
    edges = [0, *sorted(set(cuts)), 50]
    blocks = [(Z[a:b], s[a:b]) for a, b in itertools.pairwise(edges)]
    mean, variance = _layers.moments(iter(blocks))
    centred = Z - 1e6
    expected = np.average(centred, axis=0, weights=s)
    np.testing.assert_allclose(mean - 1e6, expected, atol=1e-8)
    np.testing.assert_allclose(variance, np.average((centred - expected) ** 2, axis=0, weights=s), rtol=1e-8)


def test_renormalisation_has_mean_alpha_plus_b_and_deviation_gamma(xp, rng):
    Z = rng.standard_normal((500, 4)) * [1, 5, 0.3, 20] + [0, 3, -8, 100]
    b = np.array([0.0, 0.25, 0.5, 1.0])
    mean, variance = _layers.moments([(xp.asarray(Z), xp.ones(500, dtype=xp.float64))])
    scale, shift = _layers.renormalisation(mean, variance, xp.asarray(b), 0.5, -2.0)
    H = xp.asarray(Z)
    _layers.activate(H, scale, shift, lambda z: z)
    np.testing.assert_allclose(to_host(H).mean(axis=0), b - 2, atol=1e-9)
    np.testing.assert_allclose(to_host(H).std(axis=0), 0.5, rtol=1e-3)


def test_a_constant_neuron_stays_constant(xp):
    Z = xp.full((6, 1), 7.0, dtype=xp.float64)
    mean, variance = _layers.moments([(Z, xp.ones(6, dtype=xp.float64))])
    scale, shift = _layers.renormalisation(mean, variance, xp.asarray([0.25]), 1.0, 0.5)
    _layers.activate(Z, scale, shift, lambda z: z)
    np.testing.assert_allclose(to_host(Z), 0.75, rtol=1e-12)


def test_inputs_have_mean_0_and_variance_1(xp, rng):
    X = rng.standard_normal((200, 3)) * [1e-200, 3.0, 1e200] + [0, 50, 1e200]
    X = np.column_stack([X, np.full(200, 0.1), np.zeros(200)])
    scaling = _layers.input_scaling(xp.asarray(X), xp.ones(200, dtype=xp.float64))
    scaled = to_host(_layers.scale_inputs(xp.asarray(X), scaling))
    np.testing.assert_allclose(scaled.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(scaled[:, :3].std(axis=0), 1, rtol=1e-12)
    assert (scaled[:, 3:] == 0).all()


def test_input_scaling_counts_weights_as_rows(rng):
    X, s = rng.standard_normal((20, 2)), rng.integers(1, 4, 20)
    weighted = _layers.input_scaling(X, s.astype(float))
    repeated = _layers.input_scaling(np.repeat(X, s, axis=0), np.ones(s.sum()))
    np.testing.assert_allclose(weighted.mean, repeated.mean, atol=1e-14)
    np.testing.assert_allclose(weighted.sd, repeated.sd, rtol=1e-13)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_an_outlier_far_beyond_the_training_rows_stays_finite(rng, dtype):
    X = rng.standard_normal((30, 1)).astype(dtype)
    scaling = _layers.input_scaling(X, np.ones(30, dtype))
    far = np.array([[np.finfo(dtype).max], [-np.finfo(dtype).max]], dtype)
    scaled = _layers.scale_inputs(far, scaling)
    assert np.isfinite(scaled).all()
    assert scaled[0] > 1e6
    assert scaled[1] < -1e6
