"""Many read-outs of the same features: each is the read-out fitted alone."""

import numpy as np
import pytest
from helpers import random_counts, random_regression, regression, to_host, with_twins
from reference import scores_without_each_row
from sklearn.linear_model import Ridge

from edrvfl._ridge.choose import read_outs, ridge_by_loo
from edrvfl._ridge.solve import ridge
from edrvfl._seam.arrays import ignore_overflow

PRIMAL_AND_DUAL = pytest.mark.parametrize("shape", [(30, 8), (8, 30)], ids=["primal", "dual"])
STACKED = pytest.mark.parametrize("stacked", [False, True], ids=["one by one", "stacked"])


def two_values(rng, *shape):
    """Draw weights of layers: one value for the rows that were right, a larger one for the wrong ones."""
    return np.where(rng.random(shape) < 0.3, 1.7, 0.6)


def layer_weights(rng, weights, m):
    """Draw the weights of three layers; riders, whose labels no layer saw, weigh 1."""
    if weights == "none":
        return None
    omega = two_values(rng, 3, m)
    if "riders" in weights:
        omega[:, -(m // 3) :] = 1.0
    return omega


@PRIMAL_AND_DUAL
@STACKED
@pytest.mark.parametrize("weights", ["none", "two values", "two values and base", "riders and base"])
def test_each_is_scikit_learns_ridge(xp, rng, shape, stacked, weights):
    D, Y, w = random_regression(rng, *shape)
    lam = np.array([0.1, 1.0, 30.0])
    omega = layer_weights(rng, weights, shape[0])
    base = w if "base" in weights else None
    many = read_outs(regression(D, Y, base, omega=omega, xp=xp), lam, stacked)
    assert many.beta.shape == (3, shape[1], 3)
    for i in range(3):
        own = np.ones(shape[0]) * (1 if omega is None else omega[i]) * (1 if base is None else base)
        expected = Ridge(alpha=lam[i], fit_intercept=False, solver="svd").fit(D, Y, own).coef_.T
        np.testing.assert_allclose(to_host(many.beta)[i], expected, atol=1e-8)


@PRIMAL_AND_DUAL
@STACKED
@pytest.mark.parametrize("weights", ["none", "two values", "two values and base", "riders and base"])
def test_each_has_its_leave_one_out_scores(xp, rng, shape, stacked, weights):
    D, Y, _ = random_regression(rng, *shape)
    D, twins = with_twins(rng, D, 3)
    m, lam = shape[0], np.array([0.1, 1.0, 30.0])
    omega = layer_weights(rng, weights, m)
    counts = random_counts(rng, m, "base" in weights)
    base = counts if "base" in weights else None
    many = read_outs(regression(D, Y, base, omega=omega, twins=twins, xp=xp), lam, stacked)
    for i in range(3):
        own = np.ones(m) if omega is None else omega[i]
        expected = scores_without_each_row(D, Y, lam[i], own, counts, twins)
        np.testing.assert_allclose(to_host(many.loo)[i], expected, atol=1e-8)


@PRIMAL_AND_DUAL
@STACKED
@pytest.mark.parametrize(
    "lams", [[[0.1, 5.0], [1.0, 900.0]], [[0.0, 1.0], [2.0, 0.0]]], ids=["ridge", "with zeros"]
)
@pytest.mark.parametrize("weighted", [False, True])
def test_a_stack_of_features_has_read_outs_for_each(xp, rng, shape, stacked, lams, weighted):
    D, Y = rng.standard_normal((2, *shape)), rng.standard_normal((shape[0], 2))
    omega = two_values(rng, 2, 2, shape[0]) if weighted else None
    many = read_outs(regression(D, Y, omega=omega, xp=xp), np.array(lams), stacked)
    assert many.beta.shape == (2, 2, shape[1], 2)
    for i, j in np.ndindex(2, 2):
        own = None if omega is None else omega[i, j]
        one = ridge(regression(D[i], Y, own), lams[i][j])
        np.testing.assert_allclose(to_host(many.beta)[i, j], one.beta, atol=1e-9)
        np.testing.assert_allclose(to_host(many.loo)[i, j], one.loo, atol=1e-9)


@STACKED
def test_only_the_singular_one_falls_back(xp, rng, stacked):
    # lambda is lost below rounding for the first read-out and not for the second
    D = rng.standard_normal((30, 4))
    D = np.column_stack([D, D]) * 1e4
    problem = regression(D, rng.standard_normal((30, 2)), omega=two_values(rng, 2, 30), xp=xp)
    many = read_outs(problem, np.array([1e-9, 100.0]), stacked)
    assert to_host(many.fell_back).tolist() == [True, False]
    assert np.isfinite(to_host(many.beta)).all()


@pytest.mark.parametrize("lams", [[[0.0, 1.0], [1.0, 1.0]], [[1.0, 1.0], [0.0, 1.0]]], ids=str)
def test_features_that_overflow_in_one_member_are_an_error(xp, rng, lams):
    D = rng.standard_normal((2, 20, 4))
    D[1] = np.inf
    problem = regression(D, rng.standard_normal((20, 2)), xp=xp)
    with ignore_overflow(), pytest.raises(FloatingPointError, match=r"The features overflow .*float64"):
        read_outs(problem, np.array(lams))


def test_one_read_out_may_have_its_lambda_chosen(xp, rng):
    D, y = rng.standard_normal((40, 6)), np.arange(40) % 3
    omega = two_values(rng, 1, 40)
    many = read_outs(regression(D, y, omega=omega, xp=xp), None)
    one = ridge_by_loo(regression(D, y, omega[0]))
    assert many.lam == one.lam
    np.testing.assert_allclose(to_host(many.beta)[0], one.beta, atol=1e-9)
    np.testing.assert_allclose(to_host(many.loo)[0], one.loo, atol=1e-9)
