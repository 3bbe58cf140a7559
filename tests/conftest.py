"""Fixtures: array libraries, random numbers, small problems."""

import importlib

import numpy as np
import pytest
from hypothesis import settings

settings.register_profile("edrvfl", deadline=None, max_examples=50, derandomize=True)
settings.load_profile("edrvfl")


@pytest.fixture(params=["numpy", "torch", "array_api_strict"])
def xp(request):
    """An array library; every kernel test that asks for it runs on all of them."""
    pytest.importorskip(request.param)
    if request.param == "array_api_strict":
        return importlib.import_module("array_api_strict")
    return importlib.import_module(f"array_api_compat.{request.param}")


@pytest.fixture
def rng():
    return np.random.default_rng(20220712)


@pytest.fixture
def noisy():
    """Three classes in five columns, 90 rows, not separable: every layer gets some rows wrong."""
    rng = np.random.default_rng(7)
    X = rng.standard_normal((90, 5))
    y = np.digitize(X[:, 0] + X[:, 1] * X[:, 2] + 0.8 * rng.standard_normal(90), [-0.6, 0.6])
    return X, y


def to_host(array):
    """Any library's array as NumPy."""
    return np.asarray(array.numpy() if hasattr(array, "numpy") else array)
