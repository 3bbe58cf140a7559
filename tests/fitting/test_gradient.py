"""Factors of inputs: large where the classes depend on a column, small where they do not."""

import dataclasses

import numpy as np
import pytest
import sklearn
from helpers import noisy_rows, to_host

from edrvfl._fitting.gradient import fit_ridge
from edrvfl._inputs.encoding import EncoderSettings, learn_inputs
from edrvfl._inputs.rows import prepare_rows
from edrvfl._seam.arrays import ignore_overflow


def factors_of(X, y, weights=None, numbers="standard", categorical=None, seed=0):
    """Return the factors, as NumPy or None, and the inputs."""
    with sklearn.config_context(array_api_dispatch=True):
        rows = prepare_rows(X, y, weights, None)
    inputs = learn_inputs(rows.X, rows.weights.counts, EncoderSettings(numbers), categorical)
    with ignore_overflow():  # as a fit does
        scaled = fit_ridge(inputs, rows, seed).scaled()
    return (None if scaled.factors is None else to_host(scaled.factors)), scaled


def one_of_many(rng, m, d=8):
    """Draw rows whose class is the sign of the third column."""
    X = rng.standard_normal((m, d))
    return X, (X[:, 2] > 0).astype(int)


def test_only_what_decides_stays(xp, rng):
    X, y = one_of_many(rng, 300)
    factors, _ = factors_of(xp.asarray(X), xp.asarray(y))
    assert np.argmax(factors) == 2
    assert np.delete(factors, 2).max() < 0.35 * factors[2]
    assert np.mean(factors**2) == pytest.approx(1)


def test_every_library_finds_the_same(xp, rng):
    X, y = noisy_rows(rng, 120, 5)
    expected, _ = factors_of(X, y)
    found, inputs = factors_of(xp.asarray(X), xp.asarray(y))
    np.testing.assert_allclose(found, expected, rtol=1e-8)
    plain = dataclasses.replace(inputs, factors=None).apply(xp.asarray(X))
    np.testing.assert_allclose(to_host(inputs.apply(xp.asarray(X))), to_host(plain) * expected, rtol=1e-7)


def test_float32_stays(xp, rng):
    X, y = noisy_rows(rng, 120, 5)
    found, inputs = factors_of(xp.asarray(X.astype(np.float32)), xp.asarray(y))
    assert inputs.factors.dtype == xp.float32
    np.testing.assert_allclose(found, factors_of(X, y)[0], rtol=1e-3)


@pytest.mark.parametrize("m", [150, 1300], ids=["all rows", "some rows"])
def test_the_order_of_rows_does_not_matter(rng, m):
    X, y = noisy_rows(rng, m, 5)
    moved = rng.permutation(m)
    np.testing.assert_allclose(factors_of(X[moved], y[moved])[0], factors_of(X, y)[0], rtol=1e-7)


@pytest.mark.parametrize("m", [100, 1300], ids=["all rows", "some rows"])
def test_a_weight_of_two_is_the_row_twice(rng, m):
    X, y = noisy_rows(rng, m, 4)
    counts = rng.integers(0, 3, m)
    rows = np.repeat(np.arange(m), counts)
    weighted, _ = factors_of(X, y, counts.astype(float))
    np.testing.assert_allclose(weighted, factors_of(X[rows], y[rows])[0], rtol=1e-6)


def test_of_many_rows_some_say_nearly_the_same(rng):
    X, y = one_of_many(rng, 2500, 4)
    exact, _ = factors_of(X[:1000], y[:1000])
    one, two = (factors_of(X, y, seed=seed)[0] for seed in (0, 3))
    assert np.abs(one - two).max() > 1e-6
    for found in (one, two):
        np.testing.assert_allclose(found, exact, atol=0.4)


def test_all_columns_of_a_source_share_a_factor(rng):
    X, y = noisy_rows(rng, 200, 4)
    X[:, 3] = rng.integers(0, 4, 200)
    X[::9, 1] = np.nan
    factors, inputs = factors_of(X, y, numbers="bins", categorical=[False, False, False, True])
    source = np.array(inputs.source)
    assert len(source) > 12
    shared = [np.unique(factors[source == j]) for j in range(4)]
    assert [len(values) for values in shared] == [1] * 4
    assert len(np.unique(factors)) == 4
    assert np.mean(factors**2) == pytest.approx(1)


def test_a_constant_column_has_no_factor(rng):
    X, y = noisy_rows(rng, 80, 4)
    X[:, 1] = 7.0
    factors, inputs = factors_of(X, y)
    assert inputs.source == (0, 2, 3)
    assert factors.min() > 0.05


def test_where_nothing_matters_nothing_is_scaled():
    X, y = np.ones((30, 3)), np.arange(30) % 2
    factors, inputs = factors_of(X, y)
    assert factors is None
    assert np.isfinite(inputs.apply(X)).all()


def test_only_the_most_frequent_classes_are_asked(rng, limit):
    X, y = noisy_rows(rng, 120, 4)
    two, three = (y > 0).astype(int), np.array([2, 0, 1])[y]
    everyone = [factors_of(X, classes)[0] for classes in (two, y)]
    limit(GRADIENT_CLASSES=1)
    # the scores of two classes are each other's mirror image, so one of them says everything
    np.testing.assert_allclose(factors_of(X, two)[0], everyone[0], rtol=1e-6)
    one = factors_of(X, y)[0]
    assert np.abs(one - everyone[1]).max() > 1e-3
    np.testing.assert_allclose(factors_of(X, three)[0], one, rtol=1e-6)  # whatever the class is called
