"""The target matrix by blocks of rows, and what counts as right."""

import tracemalloc

import numpy as np
import pytest
from helpers import to_host
from hypothesis import given
from hypothesis import strategies as st

from edrvfl import EDRVFLClassifier
from edrvfl._inputs.targets import Classes, Values, layer_losses, side_by_side


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_blocks_of_classes_are_blocks_of_the_one_hot_matrix(xp, rng, dtype):
    codes = rng.integers(0, 7, 40)
    Y = np.eye(7)[codes]
    targets = Classes(xp.asarray(codes), 7, xp.zeros((0,), dtype=getattr(xp, dtype)))
    blocks = [to_host(targets.rows(slice(a, b))) for a, b in ((0, 16), (16, 32), (32, 40))]
    np.testing.assert_array_equal(np.concatenate(blocks), Y)
    named = targets.rows(xp.asarray([3, 39, 3]))
    np.testing.assert_array_equal(to_host(named), Y[[3, 39, 3]])
    assert named.dtype == getattr(xp, dtype)


def test_rows_of_values(xp, rng):
    Y = rng.standard_normal((9, 2))
    targets = Values(xp.asarray(Y))
    assert targets.width == 2
    np.testing.assert_array_equal(to_host(targets.rows(slice(2, 5))), Y[2:5])
    np.testing.assert_array_equal(to_host(targets.rows(xp.asarray([8, 0]))), Y[[8, 0]])


@pytest.mark.parametrize("r", [1, 3])
@pytest.mark.parametrize("stack", [(), (2,)], ids=["alone", "stack"])
def test_read_outs_side_by_side_are_one_product_each(xp, rng, r, stack):
    D, beta = rng.standard_normal((*stack, 20, 6)), rng.standard_normal((*stack, r, 6, 4))
    scores = to_host(side_by_side(xp.asarray(D), xp.asarray(beta)))
    np.testing.assert_allclose(scores, D[..., None, :, :] @ beta, atol=1e-12)


@pytest.mark.parametrize("stack", [(), (2,)], ids=["alone", "stack"])
def test_right_is_the_largest_score(xp, rng, stack, monkeypatch):
    monkeypatch.setattr("edrvfl._arrays.CPU_BLOCK_BYTES", 1)  # three blocks
    D, beta = rng.standard_normal((*stack, 300, 6)), rng.standard_normal((*stack, 3, 6, 4))
    codes = rng.integers(0, 4, 300)
    targets = Classes(xp.asarray(codes), 4, xp.zeros((0,), dtype=xp.float64))
    losses = layer_losses(targets, xp.asarray(D), xp.asarray(beta))
    right = to_host(targets.right(losses, None))
    np.testing.assert_array_equal(right, (D[..., None, :, :] @ beta).argmax(axis=-1) == codes)


@given(codes=st.lists(st.integers(0, 3), min_size=1, max_size=20))
def test_of_equal_scores_the_first_class_wins(codes):
    targets = Classes(np.array(codes), 4, np.zeros(0))
    losses = targets.losses(np.zeros((len(codes), 4)), slice(0, len(codes)))
    np.testing.assert_array_equal(losses, np.array(codes) != 0)


@pytest.mark.parametrize("params", [{}, {"prune_rate": 0.0, "correct_weight": 1.0}], ids=str)
def test_many_classes_are_never_one_dense_matrix(params):
    m, k = 100_000, 300  # calibration holds a number of megabytes that does not grow with m
    X = np.random.default_rng(0).standard_normal((m, 5))
    y = np.arange(m) % k
    tracemalloc.start()
    try:
        EDRVFLClassifier(n_hidden=16, n_layers=2, random_state=0, **params).fit(X, y)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 0.5 * m * k * 8
