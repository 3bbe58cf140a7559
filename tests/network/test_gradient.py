"""Inputs scaled by gradients: against differences of the layer's scores, and what the factors promise."""

import numpy as np
import pytest
import sklearn
from helpers import noisy_rows, to_host

from edrvfl._inputs.encoding import EncoderSettings, learn_inputs
from edrvfl._inputs.rows import prepare_rows
from edrvfl._network.gradient import _throw_away_layer, mean_squared_gradients, with_gradient_factors


@pytest.mark.parametrize("weighted", [False, True])
def test_gradients_are_those_of_the_scores(rng, weighted):
    X, y = noisy_rows(rng, 120, 4)
    counts = rng.integers(1, 4, 120).astype(float) if weighted else None
    rows = prepare_rows(X, y, counts)
    inputs = learn_inputs(X, counts, EncoderSettings())
    grown = _throw_away_layer(inputs, rows, seed=3)
    A, hidden, beta = inputs.apply(X), grown.hidden, grown.readout.beta[0]

    def scores(A):
        H = np.maximum(hidden.scale * (A @ hidden.W) + hidden.shift, 0)
        return np.column_stack([H, A, np.ones(len(A))]) @ beta

    expected = []
    for j in range(4):
        step = 1e-7 * np.eye(4)[j]  # so small that hardly a neuron has its kink within it
        squares = (((scores(A + step) - scores(A - step)) / 2e-7) ** 2).sum(axis=1)
        expected.append(np.average(squares, weights=counts))
    np.testing.assert_allclose(mean_squared_gradients(grown, rows), expected, rtol=1e-4)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_factors_find_the_columns_that_matter(xp, rng, dtype):
    X = rng.standard_normal((400, 6)).astype(dtype)
    X[::7, 4] = np.nan
    y = (X[:, 0] + X[:, 1] * X[:, 2] > 0).astype(int)
    with sklearn.config_context(array_api_dispatch=True):
        rows = prepare_rows(xp.asarray(X), xp.asarray(y))
    plain = learn_inputs(rows.X, None, EncoderSettings())
    inputs = with_gradient_factors(plain, rows, seed=0)
    factors, source = to_host(inputs.factors), np.array(inputs.source)
    assert str(inputs.factors.dtype).endswith(dtype)
    np.testing.assert_allclose((factors.astype(float) ** 2).mean(), 1, rtol=1e-6)
    by_source = [np.unique(factors[source == j]) for j in range(6)]
    assert all(len(values) == 1 for values in by_source)  # columns of one source share their factor
    assert min(by_source[:3]) > max(by_source[3:])
    encoded = to_host(plain.apply(rows.X)) * factors
    np.testing.assert_array_equal(to_host(inputs.apply(rows.X)), encoded)
    written = xp.empty(encoded.shape, dtype=rows.X.dtype)
    inputs.write(rows.X, written)
    np.testing.assert_array_equal(to_host(written), encoded)


def test_where_no_input_matters_none_is_scaled(rng):
    X, y = noisy_rows(rng, 60, 3)
    rows = prepare_rows(X, y, np.full(60, 1e-200))  # so little weight that no penalty lets a score be seen
    inputs = learn_inputs(rows.X, None, EncoderSettings())
    assert with_gradient_factors(inputs, rows, seed=0).factors is None


def test_the_throw_away_layer_is_none_of_the_network(rng):
    X, y = noisy_rows(rng, 60, 3)
    rows, inputs = prepare_rows(X, y), learn_inputs(X, None, None)
    drawn = [_throw_away_layer(inputs, rows, seed).hidden.W for seed in (0, 0, 1)]
    np.testing.assert_array_equal(drawn[0], drawn[1])
    assert not np.array_equal(drawn[0], drawn[2])
    one, other = (with_gradient_factors(inputs, rows, seed) for seed in (0, 1))
    assert not np.array_equal(one.factors, other.factors)
