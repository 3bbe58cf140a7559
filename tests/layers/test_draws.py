"""What is drawn in a layer: the paper's numbers, and which inputs a neuron sees, its scale and its pair."""

import hashlib
import math

import numpy as np
import pytest
from helpers import to_host
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from edrvfl._layers.draws import DRAW_SCHEME, Draws, Recipe, draw, draw_layer, uniform
from edrvfl._layers.records import DrawSettings


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
    assert DRAW_SCHEME == 1
    checksum = hashlib.sha256()
    for seed, layer, d, n in ((0, 0, 3, 5), (1, 4, 11, 7), (2**31 - 2, 0, 2, 1000)):
        for values in draw(seed, layer, d, n):
            checksum.update(values.astype("<f8").tobytes())
    assert checksum.hexdigest() == "8b99a6efedaa45530e2670cc663360101312dd33952cc993e4d4632581d61eae"


@pytest.mark.parametrize("keep", [False, True])
def test_draws_come_in_any_order_and_as_often_as_asked(xp, keep):
    like = xp.zeros((1,), dtype=xp.float32)
    draws = Draws(Recipe(3, 6, (0, 1, 2, 3)), like, keep)
    draws.prepare(1)
    for layer, n_inputs in ((2, 10), (0, 4), (1, 10), (2, 10), (0, 4)):
        drawn = draws(layer)
        for ours, expected in zip((drawn.W, drawn.b), draw(3, layer, n_inputs, 6), strict=True):
            assert ours.dtype == xp.float32
            np.testing.assert_array_equal(to_host(ours), expected.astype(np.float32))


def test_draws_that_are_kept_are_the_same_arrays(xp):
    draws = Draws(Recipe(3, 6, (0, 1, 2, 3)), xp.zeros((1,), dtype=xp.float64), keep=True)
    drawn = draws(1)
    drawn.W[0, 0], drawn.b[0] = 99.0, 98.0  # the memory is the same, in some libraries under a new object
    assert (float(draws(1).W[0, 0]), float(draws(1).b[0])) == (99.0, 98.0)


# --- which inputs a neuron sees --------------------------------------------------------------------------

SOURCE = (0, 1, 2, 3, 1, 1, 3)  # seven encoded columns of four columns of X


@pytest.mark.parametrize("layer", [0, 2])
@pytest.mark.parametrize(("k", "h"), [(1, None), (2, 3), (9, 99), (None, 4)])
def test_a_neuron_sees_few_sources_and_few_neurons(layer, k, h):
    n, d = 30, len(SOURCE)
    W = draw_layer(Recipe(3, n, SOURCE, DrawSettings(k, h)), layer).W
    full, _ = draw(3, layer, len(W), n)
    assert len(W) == (d if layer == 0 else n + d)
    np.testing.assert_array_equal(W[W != 0], full[W != 0])  # what is seen has the paper's weights
    sees = W[-d:] != 0
    for column, neuron in np.ndindex(d, n):  # all columns of a source, or none
        assert sees[column, neuron] == sees[SOURCE.index(SOURCE[column]), neuron]
    counts = sees[:4].sum(axis=0)
    assert set(counts) == set(range(1, min(k, 4) + 1) if k else [4])
    if layer:
        assert set((W[:n] != 0).sum(axis=0)) == {min(h or n, n)}


def test_counts_and_sources_are_drawn_evenly():
    W = draw_layer(Recipe(0, 30_000, SOURCE, DrawSettings(inputs_per_neuron=3)), 0).W
    sees = W[:4] != 0
    np.testing.assert_allclose(np.bincount(sees.sum(axis=0))[1:] / 30_000, 1 / 3, atol=0.01)
    np.testing.assert_allclose(sees.mean(axis=1), 2 / 4, atol=0.01)
    for some in range(1, 4):  # of so many, each set of sources comes equally often
        sets = np.unique(sees[:, sees.sum(axis=0) == some], axis=1, return_counts=True)[1]
        np.testing.assert_allclose(sets / sets.sum(), 1 / math.comb(4, some), atol=0.02)


# --- scales and shifts of neurons ------------------------------------------------------------------------


def test_scales_are_even_on_the_logarithmic_scale_and_shifts_on_the_plain_one():
    drawn = draw_layer(Recipe(0, 20_000, (0,), DrawSettings(scales=(0.25, 4.0), shifts=(-1.0, 3.0))), 0)
    for values, low, high in ((np.log2(drawn.gamma), -2, 2), (drawn.alpha, -1, 3)):
        assert stats.kstest((values - low) / (high - low), "uniform").pvalue > 0.01
    assert abs(np.corrcoef(drawn.gamma, drawn.alpha)[0, 1]) < 0.03


def test_what_one_setting_draws_does_not_move_the_others():
    every = DrawSettings(2, 3, (0.5, 2.0), (-1.0, 1.0))
    whole = draw_layer(Recipe(3, 8, SOURCE, every), 1)
    parts = [DrawSettings(inputs_per_neuron=2, hidden_per_neuron=3), DrawSettings(scales=(0.5, 2.0))]
    sparse, scaled = (draw_layer(Recipe(3, 8, SOURCE, part), 1) for part in parts)
    np.testing.assert_array_equal(sparse.W, whole.W)
    np.testing.assert_array_equal(scaled.gamma, whole.gamma)
    assert sparse.gamma is sparse.alpha is scaled.alpha is None


# --- pairs -----------------------------------------------------------------------------------------------


def test_a_pair_is_one_apart_in_the_projection_and_a_pair_of_equals_is_none():
    pairs = np.array([[1.0, 2.0, 0, 0, 2.0, 0, 4.0], [0.0] * 7, [0, 0, 0, 0, 0, 1e-200, 0]])
    W = draw_layer(Recipe(3, 5, SOURCE, pairs=pairs), 0).W
    full, _ = draw(3, 0, 7, 5)
    np.testing.assert_allclose(pairs[0] @ W[:, 0], 1)
    np.testing.assert_allclose(W[:, 0], pairs[0] / 25)
    np.testing.assert_array_equal(W[:, 1:], full[:, 1:])
    masked = draw_layer(Recipe(3, 5, SOURCE, DrawSettings(inputs_per_neuron=2), pairs), 0).W
    sees = draw_layer(Recipe(3, 5, SOURCE, DrawSettings(inputs_per_neuron=2)), 0).W != 0
    assert not masked[~sees].any()
    np.testing.assert_allclose(pairs[0] @ masked[:, 0], 1)
