"""Eq. 5-11: random layers, re-normalisation, features, and the scores of new rows."""

import dataclasses
import hashlib

import numpy as np
import pytest
from helpers import grow_alone, noisy_rows, scores_by_layer, to_host
from hypothesis import given
from hypothesis import strategies as st

from edrvfl._inputs.encoding import EncoderSettings, learn_inputs
from edrvfl._inputs.moments import moments
from edrvfl._network import layers
from edrvfl._network.layers import Draws, draw, uniform
from edrvfl._network.records import Settings

# --- draws -----------------------------------------------------------------------------------------------


def test_same_seed_same_draw_other_seed_other_draw():
    W, b = draw(3, 1, 6, 4)
    again, b_again = draw(3, 1, 6, 4)
    np.testing.assert_array_equal(W, again)
    np.testing.assert_array_equal(b, b_again)
    assert not np.array_equal(W, draw(4, 1, 6, 4)[0])
    assert not np.array_equal(W, draw(3, 2, 6, 4)[0])


def test_weights_and_biases_have_their_ranges_and_are_independent():
    W, b = draw(0, 0, 1, 20_000)
    assert -1 <= W.min() < -0.999
    assert 0.999 < W.max() <= 1
    assert 0 <= b.min() < 0.001
    assert 0.999 < b.max() <= 1
    # one seed for both would make W = 2 b - 1
    assert abs(np.corrcoef(W[0], b)[0, 1]) < 0.03


@given(
    seed=st.integers(0, 2**64),
    child=st.lists(st.integers(0, 2**32 - 1), max_size=3).map(tuple),
    size=st.integers(0, 40),
)
def test_uniform_numbers_are_those_of_numpys_generator_today(seed, child, size):
    generator = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=child))
    np.testing.assert_array_equal(uniform(seed, child, size), generator.random(size))


def test_the_first_scheme_of_draws_never_changes():
    # A model that stores its seed and the number of the scheme must find the same numbers for ever. A new
    # rule gets a new number and a new checksum beside this one.
    assert layers.DRAW_SCHEME == 1
    checksum = hashlib.sha256()
    for seed, layer, d, n in ((0, 0, 3, 5), (1, 4, 11, 7), (2**31 - 2, 0, 2, 1000)):
        for values in draw(seed, layer, d, n):
            checksum.update(values.astype("<f8").tobytes())
    assert checksum.hexdigest() == "8b99a6efedaa45530e2670cc663360101312dd33952cc993e4d4632581d61eae"


@pytest.mark.parametrize("keep", [False, True])
def test_draws_come_in_any_order_and_as_often_as_asked(xp, keep):
    like = xp.zeros((1,), dtype=xp.float32)
    draws = Draws(3, 4, 6, like, keep)
    draws.prepare(1)
    for layer, n_inputs in ((2, 10), (0, 4), (1, 10), (2, 10), (0, 4)):
        for ours, expected in zip(draws(layer), draw(3, layer, n_inputs, 6), strict=True):
            assert ours.dtype == xp.float32
            np.testing.assert_array_equal(to_host(ours), expected.astype(np.float32))


def test_draws_that_are_kept_are_the_same_arrays(xp):
    draws = Draws(3, 4, 6, xp.zeros((1,), dtype=xp.float64), keep=True)
    W, b = draws(1)
    W[0, 0], b[0] = 99.0, 98.0  # the memory is the same, in some libraries under a new object
    assert (float(draws(1)[0][0, 0]), float(draws(1)[1][0])) == (99.0, 98.0)


# --- re-normalisation and activation ---------------------------------------------------------------------


def test_renormalisation_has_mean_alpha_plus_b_and_deviation_gamma(xp, rng):
    Z = rng.standard_normal((500, 4)) * [1, 5, 0.3, 20] + [0, 3, -8, 100]
    b = np.array([0.0, 0.25, 0.5, 1.0])
    mean, variance = moments([(xp.asarray(Z), xp.ones(500, dtype=xp.float64))])
    scale, shift = layers.renormalisation(mean, variance, xp.asarray(b), 0.5, -2.0)
    H = xp.asarray(Z)
    layers.activate(H, scale, shift, lambda z: z)
    np.testing.assert_allclose(to_host(H).mean(axis=0), b - 2, atol=1e-9)
    np.testing.assert_allclose(to_host(H).std(axis=0), 0.5, rtol=1e-3)


def test_a_constant_neuron_stays_constant(xp):
    Z = xp.full((6, 1), 7.0, dtype=xp.float64)
    mean, variance = moments([(Z, xp.ones(6, dtype=xp.float64))])
    scale, shift = layers.renormalisation(mean, variance, xp.asarray([0.25], dtype=xp.float64), 1.0, 0.5)
    layers.activate(Z, scale, shift, lambda z: z)
    np.testing.assert_allclose(to_host(Z), 0.75, rtol=1e-12)


# --- features and scores ---------------------------------------------------------------------------------


@pytest.mark.parametrize("stack", [(), (2,)], ids=["alone", "stack"])
def test_features_end_in_the_inputs_and_a_one(xp, rng, stack):
    X = xp.asarray(rng.standard_normal((7, 3)))
    inputs = learn_inputs(X, None, EncoderSettings())
    D = layers.new_features(7, X, 4, inputs, stack)
    layers.fill_inputs(D, X, inputs)
    assert D.shape == (*stack, 7, 8)
    expected = np.column_stack([to_host(inputs.apply(X)), np.ones(7)])
    np.testing.assert_array_equal(to_host(D)[..., 4:], np.broadcast_to(expected, (*stack, 7, 4)))


SETTINGS = Settings(3, 12, "relu", True, 0.5, 1.0, 0.0, 0.6, 0.3)


def test_scores_of_new_rows_do_not_depend_on_the_other_rows(xp, rng):
    X, y = (xp.asarray(a) for a in noisy_rows(rng, 60, 4))
    network, _ = grow_alone(X, y, SETTINGS)
    one_by_one = [scores_by_layer(network, X[i : i + 1, :]) for i in range(60)]
    together = scores_by_layer(network, X)
    assert together.shape == (3, 60, 3)
    np.testing.assert_allclose(np.concatenate(one_by_one, axis=1), together, atol=1e-10)


@pytest.mark.parametrize(("n", "k", "batches"), [(12, 3, [3]), (2, 5, [1, 1, 1]), (6, 5, [2, 1])])
def test_layers_come_together_while_their_scores_are_small(rng, n, k, batches):
    X, y = rng.standard_normal((60, 4)), np.arange(60) % k
    network, _ = grow_alone(X, y, dataclasses.replace(SETTINGS, n_hidden=n))
    assert [batch.shape for batch in layers.layer_scores(network, X)] == [(b, 60, k) for b in batches]


def test_overflow_at_prediction_is_an_error(noisy):
    network, _ = grow_alone(*noisy, SETTINGS, standardize=False)
    with pytest.raises(ValueError, match="far larger than those seen in fit"):
        list(layers.layer_scores(network, np.full((1, 5), 1e308)))
