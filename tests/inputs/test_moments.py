"""Weighted mean and variance by blocks of rows."""

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

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
