"""The activation table against the textbook formulas."""

import numpy as np
import pytest
from helpers import to_host
from reference import G

from edrvfl._layers.layers import ACTIVATIONS


def test_the_table_and_the_reference_have_the_same_names():
    assert set(ACTIVATIONS) == set(G)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_formula(xp, name):
    z = np.linspace(-6, 6, 41)
    H = ACTIVATIONS[name](xp.asarray(z.copy()))
    np.testing.assert_allclose(to_host(H), [G[name](v) for v in z], atol=1e-14)


@pytest.mark.parametrize("name", ACTIVATIONS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_large_arguments_stay_finite(name, dtype):
    z = np.array([-1e9, 1e9], dtype=dtype)
    with np.errstate(over="ignore", under="ignore"):
        H = ACTIVATIONS[name](z)
    assert np.isfinite(H).all()
    assert H.dtype == dtype
