"""How much rows weigh."""

import numpy as np
import pytest
from helpers import beside, to_host

from edrvfl import EDRVFLRegressor, KernelRidgeClassifier, KernelRidgeRegressor
from edrvfl._inputs.targets import RowWeights


@pytest.mark.parametrize("counts", [None, [1.0, 3.0]])
@pytest.mark.parametrize("costs", [None, [0.5, 2.0]])
def test_counts_and_costs_multiply_and_only_counts_count(xp, counts, costs):
    weights = RowWeights(beside(xp, counts), beside(xp, costs))
    if counts is None and costs is None:
        assert weights.base is None
    else:
        np.testing.assert_array_equal(to_host(weights.base), np.multiply(counts or 1.0, costs or 1.0))
    like = xp.zeros((1,), dtype=xp.float32)
    np.testing.assert_array_equal(to_host(weights.counts_of(2, like)), counts or [1.0, 1.0])


@pytest.mark.parametrize("weight", [5e-324, 1e-309])
@pytest.mark.parametrize("kind", [KernelRidgeClassifier, KernelRidgeRegressor])
def test_weights_without_digits_answer_as_their_multiples(kind, weight, rng):
    X, y = rng.normal(size=(60, 3)), rng.integers(0, 2, 60)
    tiny, half = (kind(random_state=0).fit(X, y, np.full(60, w)) for w in (weight, 0.5))
    answer = "predict_proba" if kind is KernelRidgeClassifier else "predict"
    np.testing.assert_allclose(getattr(tiny, answer)(X), getattr(half, answer)(X), atol=1e-9)


@pytest.mark.parametrize("weight", [1e-309, 1e20, 1e50])
@pytest.mark.parametrize("kind", [EDRVFLRegressor, KernelRidgeClassifier, KernelRidgeRegressor])
@pytest.mark.filterwarnings("ignore:The Gram matrix is numerically singular")
def test_one_row_may_weigh_far_more_or_less_than_the_others(kind, weight, rng):
    X, y = rng.normal(size=(60, 3)), rng.integers(0, 2, 60)
    # beside the heavy row the others, which alone calibrate, are nothing
    plain = {"calibration": None} if kind is KernelRidgeClassifier else {}
    model = kind(random_state=0, **plain).fit(X, y, np.where(np.arange(60) == 3, weight, 1.0))
    answer = model.predict_proba(X) if kind is KernelRidgeClassifier else model.predict(X)
    assert np.isfinite(answer).all()
    if weight > 1:
        assert abs(model.predict(X[3:4])[0] - y[3]) < 1e-3
