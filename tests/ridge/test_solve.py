"""Eq. 1-4, 15 and 16 against each other, against scikit-learn, and against repeated rows."""

import numpy as np
import pytest
from helpers import random_regression, regression, to_host
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import LinAlgWarning
from sklearn.linear_model import Ridge

from edrvfl import EDRVFLClassifier
from edrvfl._ridge.equations import dual_system, gram_of_rows, normal_equations
from edrvfl._ridge.solve import ridge
from edrvfl._seam.linalg import factorise

PRIMAL_AND_DUAL = pytest.mark.parametrize("turn", [False, True], ids=["primal", "dual"])


@pytest.mark.parametrize("shape", [(60, 12), (12, 60), (20, 20)], ids=["long", "wide", "square"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("lam", [2.0**-12, 1.0, 2.0**12])
def test_against_scikit_learn(xp, rng, shape, weighted, lam):
    D, Y, w = random_regression(rng, *shape)
    expected = Ridge(alpha=lam, fit_intercept=False, solver="svd").fit(D, Y, w if weighted else None)
    readout = ridge(regression(D, Y, w if weighted else None, xp=xp), lam)
    np.testing.assert_allclose(to_host(readout.beta), expected.coef_.T, atol=1e-8)
    assert not bool(readout.fell_back)


@given(m=st.integers(1, 30), c=st.integers(1, 30), seed=st.integers(0, 2**31), log_lam=st.floats(-12, 12))
def test_primal_is_dual(m, c, seed, log_lam):
    D, Y, w = random_regression(np.random.default_rng(seed), m, c)
    problem, lam = regression(D, Y, w), 2.0**log_lam
    primal = normal_equations(problem)
    dual = dual_system(problem, gram_of_rows(D))
    primal = np.linalg.solve(primal.G + lam * np.eye(c), primal.R)
    root = problem.root[:, None]
    dual = D.T @ (root * np.linalg.solve(dual.G + lam * np.eye(m), dual.R))
    np.testing.assert_allclose(primal, dual, atol=1e-8)


def test_the_weighted_forms_are_the_printed_ones(rng):
    D, Y, w = random_regression(rng, 15, 6)
    W = np.diag(w)
    printed_primal = np.linalg.solve(D.T @ W @ D + 0.5 * np.eye(6), D.T @ W @ Y)
    printed_dual = D.T @ np.linalg.solve(W @ D @ D.T + 0.5 * np.eye(15), W @ Y)
    np.testing.assert_allclose(ridge(regression(D, Y, w), 0.5).beta, printed_primal, atol=1e-12)
    np.testing.assert_allclose(ridge(regression(D, Y, w), 0.5).beta, printed_dual, atol=1e-12)


@pytest.mark.parametrize("shape", [(25, 6), (6, 40)], ids=["primal", "dual"])
@pytest.mark.parametrize("lam", [0.0, 0.3])
def test_weight_is_repetition(rng, shape, lam):
    D, Y, _ = random_regression(rng, *shape)
    counts = rng.integers(1, 4, shape[0])
    weighted = ridge(regression(D, Y, counts.astype(float)), lam).beta
    repeated = ridge(regression(np.repeat(D, counts, axis=0), np.repeat(Y, counts, axis=0)), lam).beta
    np.testing.assert_allclose(weighted, repeated, atol=1e-10)


@pytest.mark.parametrize("shape", [(40, 9), (9, 40)], ids=["primal", "dual"])
@pytest.mark.parametrize("weights", ["none", "shared", "own"])
def test_a_stack_is_its_members(xp, rng, shape, weights):
    D, Y = rng.standard_normal((3, *shape)), rng.standard_normal((shape[0], 2))
    lams, own = np.array([0.1, 5.0, 900.0]), rng.uniform(0.2, 2, (3, shape[0]))
    base, omega = {"none": (None, None), "shared": (own[0], None), "own": (None, own)}[weights]
    stacked = ridge(regression(D, Y, base, omega=omega, xp=xp), lams)
    for i in range(3):
        alone = ridge(regression(D[i], Y, base if omega is None else omega[i]), float(lams[i]))
        np.testing.assert_allclose(to_host(stacked.beta)[i], alone.beta, atol=1e-10)


def test_sums_that_are_known_are_used(rng):
    D, Y, w = random_regression(rng, 25, 6)
    problem = regression(D, Y, w)
    expected = ridge(problem, 0.3).beta
    np.testing.assert_array_equal(ridge(problem, 0.3, normal_equations(problem)).beta, expected)
    wide = regression(D.T, Y[:6], w[:6])
    np.testing.assert_array_equal(ridge(wide, 0.3, dual_system(wide, D.T @ D)).beta, ridge(wide, 0.3).beta)


@pytest.mark.parametrize("shape", [(200, 20), (20, 200)], ids=["primal", "dual"])
def test_float32_stays_float32(xp, rng, shape):
    D, Y, w = random_regression(rng, *shape)
    beta = ridge(regression(*(a.astype(np.float32) for a in (D, Y, w)), xp=xp), 1.0).beta
    assert beta.dtype == xp.float32
    np.testing.assert_allclose(to_host(beta), ridge(regression(D, Y, w), 1.0).beta, atol=1e-4)


def test_blocks_of_rows_change_nothing_but_rounding(rng, limit):
    problem = regression(*random_regression(rng, 700, 9))
    whole = ridge(problem, 0.5).beta
    limit(CPU_BLOCK_BYTES=1)
    np.testing.assert_allclose(ridge(problem, 0.5).beta, whole, atol=1e-12)


@pytest.mark.parametrize("shape", [(5, 2), (2, 5)], ids=["primal", "dual"])
@pytest.mark.parametrize("lam", [0.0, 1.0])
def test_overflow_is_an_error(shape, lam):
    D = np.full(shape, 1e200 if lam else np.inf)
    with np.errstate(over="ignore", invalid="ignore"), pytest.raises(FloatingPointError, match="overflow"):
        ridge(regression(D, np.ones((shape[0], 1))), lam)


# --- Moore-Penrose ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(30, 8), (8, 30)], ids=["long", "wide"])
def test_lambda_0_is_moore_penrose(xp, rng, shape):
    D, Y, _ = random_regression(rng, *shape)
    D[:, 0] = D[:, 1]  # rank deficient: the least-norm solution shares the weight
    beta = to_host(ridge(regression(D, Y, xp=xp), 0.0).beta)
    np.testing.assert_allclose(beta, np.linalg.pinv(D) @ Y, atol=1e-10)
    np.testing.assert_allclose(beta[0], beta[1], atol=1e-10)


def test_moore_penrose_does_not_square_the_condition_number(rng):
    U, _ = np.linalg.qr(rng.standard_normal((40, 6)))
    V, _ = np.linalg.qr(rng.standard_normal((6, 6)))
    D = U @ np.diag(np.logspace(0, -10, 6)) @ V.T
    beta = rng.standard_normal((6, 1))
    np.testing.assert_allclose(ridge(regression(D, D @ beta), 0.0).beta, beta, atol=1e-4)


# --- singular systems ------------------------------------------------------------------------------------


def test_a_singular_gram_falls_back_to_a_finite_least_norm_solution(xp, rng):
    D = rng.standard_normal((50, 5))
    D = np.column_stack([D, D]) * 1e12  # lambda is lost below rounding, columns come twice
    Y = rng.standard_normal((50, 2))
    readout = ridge(regression(D, Y, xp=xp), 1e-6)
    assert bool(readout.fell_back)
    residual = Y - D @ to_host(readout.beta)
    best = Y - D[:, :5] @ np.linalg.lstsq(D[:, :5], Y, rcond=None)[0]
    np.testing.assert_allclose(np.linalg.norm(residual), np.linalg.norm(best), rtol=1e-6)


def test_only_the_singular_member_of_a_stack_falls_back(xp, rng):
    good = rng.standard_normal((30, 4))
    bad = np.column_stack([good[:, :2], good[:, :2]]) * 1e10
    Y = rng.standard_normal((30, 2))
    readout = ridge(regression(np.stack([good, bad]), Y, xp=xp), np.array([1.0, 1e-8]))
    assert to_host(readout.fell_back).tolist() == [False, True]
    np.testing.assert_allclose(to_host(readout.beta)[0], ridge(regression(good, Y), 1.0).beta, atol=1e-12)
    assert np.isfinite(to_host(readout.beta)).all()


def collinear(rng, turn):
    """Draw relu features with collinear columns, singular to the digits of float32; `turn` gives the dual."""
    D = 30 * np.maximum(rng.standard_normal((4000, 40)) + 1, 0)
    D = np.column_stack([D, D[:, :2] @ [[1.0, 1.0], [1.0, -1.0]]]).astype(np.float32)
    D = D.T if turn else D
    return D, rng.standard_normal((D.shape[0], 2)).astype(np.float32)


@PRIMAL_AND_DUAL
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
def test_what_is_singular_in_float32_alone_is_solved_in_float64(xp, rng, turn, weighted):
    D, Y = collinear(rng, turn)
    omega = np.where(rng.random(len(D)) < 0.2, 1.6, 0.8).astype(np.float32) if weighted else None
    G = D @ D.T if turn else D.T @ D
    assert not factorise(G + np.eye(42, dtype=np.float32)).regular  # otherwise nothing is tested here
    readout = ridge(regression(D, Y, omega=omega, xp=xp), 1.0)
    assert not bool(readout.fell_back)
    assert readout.beta.dtype == readout.loo.dtype == xp.float32
    double = [None if a is None else a.astype(float) for a in (D, Y, omega)]
    expected = ridge(regression(*double), 1.0)
    assert not bool(expected.fell_back)
    np.testing.assert_allclose(to_host(readout.beta), expected.beta, atol=1e-5 * np.abs(expected.beta).max())
    np.testing.assert_allclose(to_host(readout.loo), expected.loo, atol=1e-4)


@PRIMAL_AND_DUAL
def test_one_member_of_a_stack_is_solved_in_float64(xp, rng, turn):
    D, Y = collinear(rng, turn)
    lams = np.array([1.0, 1e6])
    readout = ridge(regression(np.stack([D, D]), Y, xp=xp), lams)
    assert not to_host(readout.fell_back).any()
    for beta, lam in zip(to_host(readout.beta), lams, strict=True):
        expected = ridge(regression(D.astype(float), Y.astype(float)), float(lam)).beta
        np.testing.assert_allclose(beta, expected, atol=1e-4 * np.abs(expected).max())


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(20, 12), (12, 20)], ids=["primal", "dual"])
def test_what_is_singular_in_float64_too_gets_the_solution_of_least_norm(xp, rng, dtype, shape):
    D = rng.integers(-4, 5, shape).astype(dtype)  # small integers, so that both types hold the same numbers
    D[:, 6:12] = D[:, :6]
    D[7:12] = D[:5]
    D *= 2.0**20
    Y = rng.standard_normal((shape[0], 2)).astype(dtype)
    readout = ridge(regression(D, Y, xp=xp), 1e-9)
    assert bool(readout.fell_back)
    assert readout.beta.dtype == readout.loo.dtype == getattr(xp, dtype)
    expected = ridge(regression(D.astype(float), Y.astype(float)), 0.0)
    atol = 1e-5 if dtype == "float32" else 1e-9
    np.testing.assert_allclose(to_host(readout.beta) * 2.0**20, expected.beta * 2.0**20, atol=atol)
    np.testing.assert_allclose(to_host(readout.loo), expected.loo, atol=100 * atol)


def test_a_system_without_information_warns_of_the_fall_back_and_divides_by_nothing():
    model = EDRVFLClassifier(n_hidden=1, encoder=None, regularization=1e-300)
    with pytest.warns(LinAlgWarning, match="numerically singular"):  # any other warning is an error
        model.fit(np.zeros((4, 1)), [0, 1, 0, 1])
    np.testing.assert_allclose(model.predict_proba(np.zeros((1, 1))), 0.5, atol=0.01)
