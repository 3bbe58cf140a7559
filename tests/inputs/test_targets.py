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
def test_right_is_the_largest_score(xp, rng, stack, limit):
    limit(CPU_BLOCK_BYTES=1)  # three blocks
    D, beta = rng.standard_normal((*stack, 300, 6)), rng.standard_normal((*stack, 3, 6, 4))
    codes = rng.integers(0, 4, 300)
    targets = Classes(xp.asarray(codes), 4, xp.zeros((0,), dtype=xp.float64))
    losses = layer_losses(targets, xp.asarray(D), xp.asarray(beta))
    right = to_host(losses <= targets.largest_right(losses, None))
    np.testing.assert_array_equal(right, (D[..., None, :, :] @ beta).argmax(axis=-1) == codes)


# --- values ----------------------------------------------------------------------------------------------


def right_of(targets, losses, counts):
    return to_host(losses <= targets.largest_right(losses, counts))


def right_by_hand(losses, counts):
    """The smallest loss that, with all below it, has half of the weight; who is not above it is right."""
    for loss in sorted(losses):
        if counts[losses <= loss].sum() >= 0.5 * counts.sum() - 1e-9:
            return losses <= loss
    raise AssertionError


def test_right_values_have_half_of_the_weight(xp, rng):
    losses = rng.integers(0, 9, (3, 2, 31)) / 7
    counts = rng.choice([0.3, 1.0, 2.0], 31)
    found = right_of(Values(xp.zeros((31, 1))), xp.asarray(losses), xp.asarray(counts))
    for place in np.ndindex(3, 2):
        np.testing.assert_array_equal(found[place], right_by_hand(losses[place], counts))


@given(seed=st.integers(0, 2**31), dtype=st.sampled_from(["float32", "float64"]))
def test_rounding_does_not_part_copies_of_a_row(seed, dtype):
    rng = np.random.default_rng(seed)
    losses, counts = rng.exponential(1, 15), rng.integers(1, 5, 15)
    targets = Values(np.zeros((15, 1)))
    expected = right_of(targets, losses.astype(dtype), counts.astype(dtype))
    rows = rng.permutation(np.repeat(np.arange(15), counts))
    noise = 1 + 20 * np.finfo(dtype).eps * rng.uniform(-1, 1, len(rows))
    copies = right_of(
        Values(np.zeros((len(rows), 1))), (losses[rows] * noise).astype(dtype), np.ones(len(rows))
    )
    np.testing.assert_array_equal(copies, expected[rows])


def test_losses_of_values_are_mean_squared_errors(xp, rng, limit):
    limit(CPU_BLOCK_BYTES=1)
    D, beta, Y = rng.standard_normal((300, 6)), rng.standard_normal((3, 6, 2)), rng.standard_normal((300, 2))
    targets = Values(xp.asarray(Y))
    losses = to_host(layer_losses(targets, xp.asarray(D), xp.asarray(beta)))
    np.testing.assert_allclose(losses, ((D @ beta - Y) ** 2).mean(axis=-1), atol=1e-12)
    some = targets.some(xp.asarray([5, 2]))
    np.testing.assert_allclose(
        to_host(some.losses(xp.zeros((2, 2)), slice(0, 2))), (Y[[5, 2]] ** 2).mean(axis=1)
    )


@pytest.mark.parametrize("bias", [-1, 0])
def test_a_read_out_in_units_answers_in_units(xp, rng, bias):
    D, beta, mean, sd = rng.standard_normal((9, 4)), rng.standard_normal((4, 2)), [5.0, -1e3], [2.0, 1e-3]
    D[:, bias] = 1
    targets = Values(xp.zeros((9, 2), dtype=xp.float64), xp.asarray(mean), xp.asarray(sd))
    given_beta = xp.asarray(beta)
    found = to_host(targets.in_units(given_beta, bias))
    np.testing.assert_allclose(D @ found, D @ beta * sd + mean)
    np.testing.assert_array_equal(to_host(given_beta), beta)  # it is a copy
    assert Values(xp.zeros((9, 2))).in_units(given_beta) is given_beta


# --- classes once more -----------------------------------------------------------------------------------


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
