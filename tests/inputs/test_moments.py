"""Weighted mean and variance by blocks of rows."""

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from edrvfl._inputs.moments import Moments, moments


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


@given(seed=st.integers(0, 2**31), cut=st.integers(1, 49), weighted=st.booleans())
def test_missing_numbers_have_no_part_in_the_moments(seed, cut, weighted):
    rng = np.random.default_rng(seed)
    Z, counts = rng.standard_normal((50, 4)) + 10, rng.uniform(0.1, 3, 50) if weighted else None
    Z[rng.random((50, 4)) < [0.0, 0.3, 0.95, 1.0]] = np.nan
    parts = [(Z[rows], None if counts is None else counts[rows]) for rows in np.s_[:cut, cut:]]
    found = Moments.of_observed(*parts[0]) + Moments.of_observed(*parts[1])
    for j, z in enumerate(Z.T):
        seen = ~np.isnan(z)
        if seen.any():
            mean, variance = moments([(z[seen, None], None if counts is None else counts[seen])])
            np.testing.assert_allclose(found.mean[j], mean[0], rtol=1e-13)
            np.testing.assert_allclose(
                found.scatter[j] / found.weight[j], variance[0], rtol=1e-11, atol=1e-25
            )
        else:
            assert found.mean[j] == found.scatter[j] == 0
