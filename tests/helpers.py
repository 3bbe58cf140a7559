"""What tests of several files use: problems, one network grown alone, scikit-learn's checks, a callback."""

import re
import unittest
import warnings
from importlib.util import find_spec

import numpy as np
import pandas as pd
from array_api_compat import array_namespace
from sklearn.utils.estimator_checks import estimator_checks_generator

from edrvfl._inputs.chosen import Judged
from edrvfl._inputs.encoding import EncoderSettings, learn_inputs
from edrvfl._inputs.rows import Rows
from edrvfl._inputs.targets import Classes, RowWeights, Values
from edrvfl._layers.draws import Draws, Recipe
from edrvfl._layers.grow import Problem, grow, start
from edrvfl._layers.layers import fill_inputs, new_features, replay
from edrvfl._models.network import Network, layer_scores
from edrvfl._ridge.equations import Regression
from edrvfl._ridge.twins import Twins

TEXT = "str" if pd.__version__ >= "3" else "string"  # what pandas calls columns of text

# what a classifier proves by leave-one-out unless it is given, as in the paper
PAPER = {"input_scaling": None, "correct_weight": 0.8, "prune_rate": 0.2}


def to_host(array):
    """Bring an array of any library to NumPy."""
    return np.asarray(array.numpy() if hasattr(array, "numpy") else array)


def beside(xp, array):
    """Bring a NumPy array to the library xp. None stays None."""
    return None if array is None else xp.asarray(array)


def noisy_rows(rng, m, d):
    """Draw m rows of three classes that are not separable."""
    X = rng.standard_normal((m, d))
    return X, np.digitize(X[:, 0] + X[:, 1] * X[:, 2] + 0.8 * rng.standard_normal(m), [-0.6, 0.6])


def noisy_values(rng, m, d, k=None):
    """Draw m rows with a value that has noise, or with k of them."""
    X = rng.standard_normal((m, d))
    y = X[:, 0] + X[:, 1] * X[:, 2] + 0.5 * rng.standard_normal(m)
    if k is None:
        return X, y
    others = X[:, [j % d for j in range(k - 1)]] ** 2 + rng.standard_normal((m, k - 1))
    return X, np.column_stack([3.0 - 2.0 * y, *others.T])


def features_by_layer(network, X):
    """The features [H, X, 1] of every layer for rows of X."""
    D = new_features(len(X), X, network.n_hidden, network.inputs)
    fill_inputs(D, X, network.inputs)
    found = []
    for layer in network.layers:
        replay(layer, network.activation, D)
        found.append(D.copy())
    return found


def random_regression(rng, m, c, k=3):
    """Draw features (m, c), targets (m, k) and weights (m,)."""
    return rng.standard_normal((m, c)), rng.standard_normal((m, k)), rng.uniform(0.1, 4, m)


def random_counts(rng, m, weighted):
    """Draw weights that count rows, below, at and above one."""
    return rng.choice([0.4, 1.0, 1.0, 3.0], m) if weighted else np.ones(m)


def with_twins(rng, D, n):
    """Copy rows of D (..., m, c) over n others; return it, and for each row the first that equals it."""
    first = np.arange(D.shape[-2])
    first[-n:] = rng.integers(0, max(1, len(first) - n), n)
    return D[..., first, :], first


def regression(D, Y, base=None, *, omega=None, twins=None, want_loo=True, judged=None, xp=np):
    """Build a Regression in the library xp. Y is a matrix of values, or a vector of classes."""
    targets = Values(xp.asarray(Y)) if Y.ndim == 2 else Classes(xp.asarray(Y), Y.max() + 1, xp.asarray(D))
    if judged is not None:
        judged = Judged(xp.asarray(judged), xp.ones(len(judged), dtype=xp.float64))
    of_rows = {"base": beside(xp, base), "omega": beside(xp, omega), "twins": Twins.of(twins, xp.asarray(D))}
    return Regression(xp.asarray(D), targets, **of_rows, want_loo=want_loo, judged=judged)


def grow_alone(X, y, settings, seed=5, counts=None, costs=None, standardize=True):
    """Grow one network from rows and codes of any library; return it and its layers as they came."""
    inputs = learn_inputs(X, counts, EncoderSettings() if standardize else None)
    D = new_features(X.shape[0], X, settings.n_hidden, inputs)
    fill_inputs(D, X, inputs)
    classes = array_namespace(y).unique_values(y)
    targets = Classes(y, int(classes[-1]) + 1, X[:0, 0])
    rows = Rows(X, classes, targets, RowWeights(counts, costs))
    draws = Draws(Recipe.of(settings, seed, inputs, rows), X)
    network = Network(None, inputs, settings.activation, settings.n_hidden, "softmax", classes, seed, 1)
    layers = []
    for grown in grow(start(D, settings), Problem(targets, rows.weights, draws, None, twins=rows.twins)):
        assert grown.losses.shape == (1, X.shape[0])  # asked for now: the next layer overwrites D
        layers.append(grown)
        network = network.with_layer(grown.hidden, grown.readout.beta[0, ...])
    return network, layers


def scores_by_layer(network, X):
    """The scores of every layer, (layers, rows, classes), in NumPy."""
    return np.concatenate([to_host(batch) for batch in layer_scores(network, X)])


def assert_passes_scikit_learns_checks(model, expected_failures=(), at_least=60):
    """No failure but the expected ones; what is skipped asks for a device or library that is not here."""
    failures, skipped, passed = [], [], 0
    for estimator, check in estimator_checks_generator(model, mark=None):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                check(estimator)
            passed += 1
            if check.func.__name__ in expected_failures:
                failures.append(f"{check.func.__name__} was expected to fail and passed")
        except unittest.SkipTest as skip:
            skipped.append(str(skip))
        except Exception as error:
            if check.func.__name__ in expected_failures:
                continue
            failures.append(f"{check.func.__name__}({check.keywords}): {error!r}")
    assert not failures, "\n".join(failures)
    libraries = [name for name in ("cupy", "dpnp", "torch") if find_spec(name) is None]
    absent = re.compile("cuda|XPU|MPS|" + "|".join(f"{name} is not installed" for name in libraries), re.I)
    assert all(absent.search(reason) for reason in skipped), skipped
    assert passed >= at_least, passed


class FixedSeed(np.random.RandomState):
    """A random state from which an estimator draws a known seed."""

    def __init__(self, seed):
        super().__init__(0)
        self.value = seed

    def randint(self, *_):
        return self.value


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
