"""Fixtures: array libraries, random numbers, small problems."""

import importlib
import re
import unittest
import warnings

import numpy as np
import pytest
from hypothesis import settings
from sklearn.utils.estimator_checks import estimator_checks_generator

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


def assert_passes_scikit_learns_checks(model):
    """No failure, no expected failure; what is skipped asks for a device or library that is not here."""
    failures, skipped, passed = [], [], 0
    for estimator, check in estimator_checks_generator(model, mark=None):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                check(estimator)
            passed += 1
        except unittest.SkipTest as skip:
            skipped.append(str(skip))
        except Exception as error:
            failures.append(f"{check.func.__name__}({check.keywords}): {error!r}")
    assert not failures, "\n".join(failures)
    absent = re.compile("cuda|XPU|MPS|cupy is not installed|dpnp is not installed", re.IGNORECASE)
    assert all(absent.search(reason) for reason in skipped), skipped
    assert passed >= 60


class Recorder:
    """A scikit-learn callback that notes what it is told, and may say stop."""

    def __init__(self, stop_after=None):
        self.stop_after = stop_after
        self.told, self.estimators = [], []

    def setup(self, estimator, context):
        self.told.append("setup")

    def teardown(self, estimator, context):
        self.told.append("teardown")

    def on_fit_task_begin(self, estimator, context, *, X=None, metadata=None):
        self.told.append(f"begin {context.task_name}")

    def on_fit_task_end(self, estimator, context, *, X=None, fitted_estimator=None):
        self.told.append(f"end {context.task_name}")
        self.estimators.append(fitted_estimator)
        return self.told.count(f"end {context.task_name}") == self.stop_after
