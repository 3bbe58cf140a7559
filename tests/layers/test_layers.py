"""Eq. 5-11: re-normalisation, features, and the scores of new rows."""

import dataclasses

import numpy as np
import pytest
from helpers import grow_alone, noisy_rows, scores_by_layer, to_host

from edrvfl._inputs.encoding import EncoderSettings, learn_inputs
from edrvfl._inputs.moments import moments
from edrvfl._layers import layers
from edrvfl._layers.records import Settings
from edrvfl._models.network import layer_scores

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
    assert [batch.shape for batch in layer_scores(network, X)] == [(b, 60, k) for b in batches]


def test_overflow_at_prediction_is_an_error(noisy):
    network, _ = grow_alone(*noisy, SETTINGS, standardize=False)
    with pytest.raises(ValueError, match="far larger than those seen in fit"):
        list(layer_scores(network, np.full((1, 5), 1e308)))
