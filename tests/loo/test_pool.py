"""Several voters become one: the geometric mean, and the weights that leave-one-out gives them."""

import numpy as np
import pytest
from helpers import to_host
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from edrvfl._loo import pool
from edrvfl._loo.jury import Jury, ValueJury
from edrvfl._loo.pool import averaged, equal_kinds, keep_heavy, pooled
from edrvfl._loo.pool import pool_weights as weights_pulled_to


def some_voters(rng, codes, k, skills):
    """Draw probabilities of voters that know the classes more or less well; skill 0 knows nothing."""
    logits = [skill * np.eye(k)[codes] + rng.standard_normal((len(codes), k)) for skill in skills]
    return [np.exp(z) / np.exp(z).sum(axis=1, keepdims=True) for z in logits]


def jury_of(codes, weights=None, honest=None):
    ones = np.ones(len(codes))
    return Jury(codes, ones if weights is None else weights, ones > 0 if honest is None else honest)


def pulled_loss(weights, answers, codes, row_weights):
    """Recompute what the weights minimise: the log-loss of the geometric mean, and the pull, for each row."""
    product = np.prod([P**w for P, w in zip(answers, weights, strict=True)], axis=0)
    own = (product / product.sum(axis=1, keepdims=True))[np.arange(len(codes)), codes]
    total = row_weights @ -np.log(own) - pool.PULL * np.mean(np.log(weights))
    return total / row_weights.sum()


# --- the common answer -----------------------------------------------------------------------------------


@pytest.mark.parametrize("weights", [(0.2, 0.5, 0.3), (0.0, 0.25, 0.75), (1.0, 0.0, 0.0)], ids=str)
def test_the_common_answer_is_the_geometric_mean(xp, rng, weights):
    answers = rng.dirichlet(np.ones(4), (3, 20))
    product = np.prod(answers ** np.array(weights)[:, None, None], axis=0)
    found = to_host(pooled([xp.asarray(P) for P in answers], weights))
    np.testing.assert_allclose(found, product / product.sum(axis=1, keepdims=True), atol=1e-12)


def test_equal_voters_change_nothing(rng):
    P = rng.dirichlet(np.ones(3), 15)
    np.testing.assert_allclose(pooled([P, P, P], [0.3, 0.3, 0.4]), P, atol=1e-14)


def test_a_veto_leaves_finite_numbers(xp):
    P = pooled([xp.asarray([[1.0, 0.0]]), xp.asarray([[0.0, 1.0]])], [0.5, 0.5])
    np.testing.assert_allclose(to_host(P), [[0.5, 0.5]])


def test_float32_stays(xp, rng):
    answers = [xp.asarray(P) for P in rng.dirichlet(np.ones(3), (2, 9)).astype(np.float32)]
    found = pooled(answers, [0.4, 0.6])
    assert found.dtype == xp.float32
    exact = pooled([to_host(P).astype(float) for P in answers], [0.4, 0.6])
    np.testing.assert_allclose(to_host(found), exact, atol=1e-6)


# --- weights ---------------------------------------------------------------------------------------------


def pool_weights(answers, jury):
    """Pull to equal weights."""
    return weights_pulled_to(answers, jury, np.full(len(answers), 1 / len(answers)))


def test_the_pull_is_to_the_prior(rng):
    codes = rng.integers(0, 3, 4)
    (P,) = some_voters(rng, codes, 3, (1.0,))
    prior = np.array([0.5, 0.2, 0.3])
    np.testing.assert_allclose(weights_pulled_to([P, P, P], jury_of(codes), prior), prior, atol=1e-6)
    useless = [P, *some_voters(rng, codes, 3, (0.0, 0.0))]  # four rows say less than the ten of the pull
    assert abs(weights_pulled_to(useless, jury_of(codes), prior) - prior).max() < 0.25


def test_kinds_count_the_same_before_leave_one_out_speaks():
    np.testing.assert_allclose(equal_kinds([False, True, True]), [0.5, 0.25, 0.25])
    np.testing.assert_allclose(
        equal_kinds([True, False, False, True, True]), [1 / 6, 0.25, 0.25, 1 / 6, 1 / 6]
    )
    np.testing.assert_allclose(equal_kinds([True, True]), [0.5, 0.5])
    np.testing.assert_allclose(equal_kinds([False]), [1])


@pytest.mark.parametrize("k", [2, 4])
def test_two_voters_against_every_weight(rng, k):
    codes = rng.integers(0, k, 200)
    answers, w = some_voters(rng, codes, k, (1.0, 1.6)), rng.choice([0.5, 1.0, 2.0], 200)
    found = pool_weights(answers, jury_of(codes, w))
    grid = np.linspace(0.001, 0.999, 999)
    losses = [pulled_loss((share, 1 - share), answers, codes, w) for share in grid]
    assert abs(found[0] - grid[np.argmin(losses)]) < 2e-3


@settings(max_examples=20)
@given(seed=st.integers(0, 2**31), k=st.integers(2, 4), n=st.integers(2, 5), m=st.sampled_from([6, 40, 200]))
def test_weights_against_an_optimiser_on_the_simplex(seed, k, n, m):
    rng = np.random.default_rng(seed)
    codes, w = rng.integers(0, k, m), rng.uniform(0.2, 2, m)
    answers = some_voters(rng, codes, k, rng.uniform(0, 3, n))
    found = pool_weights(answers, jury_of(codes, w))
    assert found.sum() == pytest.approx(1)
    assert (found > 0).all()
    best = minimize(
        pulled_loss,
        np.full(n, 1 / n),
        (answers, codes, w),
        method="SLSQP",
        bounds=[(1e-6, 1)] * n,
        constraints={"type": "eq", "fun": lambda v: v.sum() - 1},
        options={"ftol": 1e-12, "maxiter": 300},
    )
    assert pulled_loss(found, answers, codes, w) < best.fun + 1e-6


def test_few_rows_hardly_move_the_weights_and_many_do(rng):
    shares = []
    for m in (4, 4000):
        codes = np.arange(m) % 2
        shares.append(pool_weights(some_voters(rng, codes, 2, (3.0, 0.0)), jury_of(codes))[1])
    assert shares[0] > 0.25
    assert shares[1] < 0.02


def test_a_useless_voter_is_dropped_beside_a_perfect_one(rng):
    codes = rng.integers(0, 3, 5000)
    sure = 0.98 * np.eye(3)[codes] + 0.02 / 3
    loud = rng.dirichlet(np.full(3, 0.1), 5000)  # it says nothing, but it is often sure
    weights = keep_heavy(pool_weights([loud, sure], jury_of(codes)))
    np.testing.assert_allclose(weights, [0, 1])


def test_voters_that_are_the_same_count_the_same(rng):
    codes = rng.integers(0, 3, 100)
    (P,) = some_voters(rng, codes, 3, (1.0,))
    np.testing.assert_allclose(pool_weights([P] * 4, jury_of(codes)), 0.25, atol=1e-9)


def test_the_order_of_voters_does_not_matter(rng):
    codes = rng.integers(0, 3, 150)
    answers = some_voters(rng, codes, 3, (0.5, 1.0, 2.0, 1.5))
    weights = pool_weights(answers, jury_of(codes))
    moved = pool_weights([answers[i] for i in (2, 0, 3, 1)], jury_of(codes))
    np.testing.assert_allclose(moved, weights[[2, 0, 3, 1]], atol=1e-4)


def test_a_weight_of_two_is_the_row_twice(rng):
    codes, counts = rng.integers(0, 3, 60), rng.integers(1, 4, 60)
    rows = np.repeat(np.arange(60), counts)
    answers = some_voters(rng, codes, 3, (0.5, 1.0, 2.0))
    weighted = pool_weights(answers, jury_of(codes, counts.astype(float)))
    np.testing.assert_allclose(
        weighted, pool_weights([P[rows] for P in answers], jury_of(codes[rows])), atol=1e-6
    )


def test_rows_that_are_not_honest_do_not_choose(rng):
    codes = rng.integers(0, 3, 80)
    answers = some_voters(rng, codes, 3, (0.5, 2.0))
    expected = pool_weights(answers, jury_of(codes))
    wrong = [np.concatenate([P, np.full((40, 3), 1 / 3)]) for P in answers]
    wrong[1][80:] = [1.0, 0.0, 0.0]
    honest = np.arange(120) < 80
    found = pool_weights(wrong, jury_of(np.append(codes, np.full(40, 2)), honest=honest))
    np.testing.assert_allclose(found, expected, atol=1e-12)
    nobody = jury_of(codes, honest=np.zeros(80, dtype=bool))
    np.testing.assert_array_equal(pool_weights(answers, nobody), [0.5, 0.5])


def test_one_voter_has_all_the_weight(rng):
    codes = rng.integers(0, 3, 20)
    assert pool_weights(some_voters(rng, codes, 3, (1.0,)), jury_of(codes)).tolist() == [1]


def test_a_voter_that_is_surely_wrong_is_survived(rng):
    codes = rng.integers(0, 2, 100)
    wrong = np.eye(2)[1 - codes]
    weights = pool_weights([wrong, *some_voters(rng, codes, 2, (2.0,))], jury_of(codes))
    assert np.isfinite(weights).all()
    assert weights[0] < pool.NEGLIGIBLE


# --- who is kept -----------------------------------------------------------------------------------------


def test_light_voters_go_and_the_others_keep_their_proportions():
    weights = np.array([0.6, 0.3, pool.NEGLIGIBLE * 0.9, 0.1 - pool.NEGLIGIBLE * 0.9])
    kept = keep_heavy(weights)
    assert kept[2] == 0
    assert kept.sum() == pytest.approx(1)
    np.testing.assert_allclose(kept[[0, 1, 3]] / kept[0], weights[[0, 1, 3]] / 0.6)


@given(st.integers(1, 500), st.integers(0, 2**31))
def test_however_many_voters_there_are_those_of_about_equal_weight_stay(n, seed):
    weights = np.random.default_rng(seed).uniform(0.9, 1.1, n)
    weights /= weights.sum()
    np.testing.assert_allclose(keep_heavy(weights), weights)


# --- values ----------------------------------------------------------------------------------------------


def value_voters(rng, Y, noises):
    """Draw answers with errors of some sizes, which voters share in part."""
    shared = rng.standard_normal(Y.shape)
    return [Y + noise * (rng.standard_normal(Y.shape) + 0.5 * shared) for noise in noises]


def pulled_error(weights, answers, Y, row_weights, prior):
    """Recompute what the weights minimise: half the log of the mean squared error, and the pull."""
    common = sum(w * P for w, P in zip(weights, answers, strict=True))
    error = np.average(((common - Y) ** 2).mean(axis=1), weights=row_weights)
    n = row_weights.sum()
    return 0.5 * np.log(error) - pool.PULL / n * np.sum(prior * np.log(weights))


def test_the_common_value_is_the_mean(xp, rng):
    answers = rng.standard_normal((3, 20, 2)).astype(np.float32)
    found = averaged([xp.asarray(P) for P in answers], [0.2, 0.5, 0.3])
    assert found.dtype == xp.float32
    np.testing.assert_allclose(
        to_host(found), np.average(answers, axis=0, weights=[0.2, 0.5, 0.3]), atol=1e-6
    )


@settings(max_examples=25)
@given(seed=st.integers(0, 2**31), k=st.integers(1, 3), n=st.integers(2, 5), m=st.sampled_from([6, 40, 200]))
def test_weights_of_values_against_an_optimiser_on_the_simplex(seed, k, n, m):
    rng = np.random.default_rng(seed)
    Y, w, prior = rng.standard_normal((m, k)), rng.uniform(0.2, 2, m), rng.dirichlet(np.ones(n))
    answers = value_voters(rng, Y, rng.uniform(0.1, 2, n))
    found = weights_pulled_to(answers, ValueJury(Y, w), prior)
    assert found.sum() == pytest.approx(1)
    assert (found > 0).all()
    best = min(
        minimize(
            pulled_error,
            start,
            (answers, Y, w, prior),
            method="SLSQP",
            bounds=[(1e-9, 1)] * n,
            constraints={"type": "eq", "fun": lambda v: v.sum() - 1},
            options={"ftol": 1e-12, "maxiter": 300},
        ).fun
        for start in (prior, np.full(n, 1 / n))
    )
    assert pulled_error(found, answers, Y, w, prior) < best + 1e-5


def test_values_without_a_pull_are_least_squares_on_the_simplex(rng):
    Y = rng.standard_normal((200_000, 1))
    answers = [Y + 1.0 * rng.standard_normal(Y.shape), Y + 2.0 * rng.standard_normal(Y.shape)]
    found = weights_pulled_to(answers, ValueJury(Y, np.ones(len(Y))), np.array([0.5, 0.5]))
    np.testing.assert_allclose(found, [0.8, 0.2], atol=0.01)  # 1 / variance


def test_a_weight_of_two_is_the_value_twice(rng):
    Y, counts = rng.standard_normal((60, 2)), rng.integers(1, 4, 60)
    answers, rows = value_voters(rng, Y, (0.5, 1.0, 0.7)), np.repeat(np.arange(60), counts)
    prior = np.array([0.5, 0.25, 0.25])
    weighted = weights_pulled_to(answers, ValueJury(Y, counts.astype(float)), prior)
    repeated = weights_pulled_to([P[rows] for P in answers], ValueJury(Y[rows], np.ones(len(rows))), prior)
    np.testing.assert_allclose(weighted, repeated, atol=1e-6)


def test_voters_without_an_error_keep_the_prior():
    Y, prior = np.zeros((20, 1)), np.array([0.5, 0.3, 0.2])
    np.testing.assert_allclose(
        weights_pulled_to([Y, Y, Y], ValueJury(Y, np.ones(20)), prior), prior, atol=1e-6
    )
