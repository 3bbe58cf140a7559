"""What is drawn in a layer: the paper's numbers, and which inputs a neuron sees, its scale and its pair."""

import hashlib

import numpy as np
import pytest
from helpers import to_host
from hypothesis import given
from hypothesis import strategies as st

from edrvfl._network.draws import DRAW_SCHEME, Draws, Recipe, draw, uniform


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
