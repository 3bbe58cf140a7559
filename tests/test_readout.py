"""Eq. 1-4, 15 and 16 against each other, against scikit-learn, and against repeated rows."""

import numpy as np
import pytest
from conftest import to_host
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import Ridge

from edrvfl import _readout
from edrvfl._readout import ridge


def problem(rng, m, c, k=3):
    return rng.standard_normal((m, c)), rng.standard_normal((m, k)), rng.uniform(0.1, 4, m)


@pytest.mark.parametrize("shape", [(60, 12), (12, 60), (20, 20)], ids=["long", "wide", "square"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("lam", [2.0**-12, 1.0, 2.0**12])
def test_against_scikit_learn(xp, rng, shape, weighted, lam):
    D, Y, w = problem(rng, *shape)
    expected = Ridge(alpha=lam, fit_intercept=False, solver="svd").fit(D, Y, w if weighted else None)
    readout = ridge(xp.asarray(D), xp.asarray(Y), lam, xp.asarray(w) if weighted else None)
    np.testing.assert_allclose(to_host(readout.beta), expected.coef_.T, atol=1e-8)
    assert not bool(readout.fell_back)


@given(m=st.integers(1, 30), c=st.integers(1, 30), seed=st.integers(0, 2**31), log_lam=st.floats(-12, 12))
def test_primal_is_dual(m, c, seed, log_lam):
    D, Y, w = problem(np.random.default_rng(seed), m, c)
    lam = 2.0**log_lam
    primal = _readout._primal(D, Y, lam, w).beta
    dual = _readout._dual(D, Y, lam, w).beta
    np.testing.assert_allclose(primal, dual, atol=1e-8)


def test_the_weighted_forms_are_the_printed_ones(rng):
    D, Y, w = problem(rng, 15, 6)
    W = np.diag(w)
    printed_primal = np.linalg.solve(D.T @ W @ D + 0.5 * np.eye(6), D.T @ W @ Y)
    printed_dual = D.T @ np.linalg.solve(W @ D @ D.T + 0.5 * np.eye(15), W @ Y)
    np.testing.assert_allclose(ridge(D, Y, 0.5, w).beta, printed_primal, atol=1e-12)
    np.testing.assert_allclose(ridge(D, Y, 0.5, w).beta, printed_dual, atol=1e-12)


@pytest.mark.parametrize("shape", [(25, 6), (6, 40)], ids=["primal", "dual"])
@pytest.mark.parametrize("lam", [0.0, 0.3])
def test_weight_is_repetition(rng, shape, lam):
    D, Y, _ = problem(rng, *shape)
    counts = rng.integers(1, 4, shape[0])
    weighted = ridge(D, Y, lam, counts.astype(float)).beta
    repeated = ridge(np.repeat(D, counts, axis=0), np.repeat(Y, counts, axis=0), lam).beta
    np.testing.assert_allclose(weighted, repeated, atol=1e-10)


@pytest.mark.parametrize("shape", [(30, 8), (8, 30)], ids=["long", "wide"])
def test_lambda_0_is_moore_penrose(xp, rng, shape):
    D, Y, _ = problem(rng, *shape)
    D[:, 0] = D[:, 1]  # rank deficient: the least-norm solution shares the weight
    beta = to_host(ridge(xp.asarray(D), xp.asarray(Y), 0.0).beta)
    np.testing.assert_allclose(beta, np.linalg.pinv(D) @ Y, atol=1e-10)
    np.testing.assert_allclose(beta[0], beta[1], atol=1e-10)


def test_moore_penrose_does_not_square_the_condition_number(rng):
    U, _ = np.linalg.qr(rng.standard_normal((40, 6)))
    V, _ = np.linalg.qr(rng.standard_normal((6, 6)))
    D = U @ np.diag(np.logspace(0, -10, 6)) @ V.T
    beta = rng.standard_normal((6, 1))
    np.testing.assert_allclose(ridge(D, D @ beta, 0.0).beta, beta, atol=1e-4)


def test_a_singular_gram_falls_back_to_a_finite_least_norm_solution(xp, rng):
    D = rng.standard_normal((50, 5))
    D = np.column_stack([D, D]) * 1e12  # lambda is lost below rounding, columns come twice
    Y = rng.standard_normal((50, 2))
    readout = ridge(xp.asarray(D), xp.asarray(Y), 1e-6)
    assert bool(readout.fell_back)
    residual = Y - D @ to_host(readout.beta)
    best = Y - D[:, :5] @ np.linalg.lstsq(D[:, :5], Y, rcond=None)[0]
    np.testing.assert_allclose(np.linalg.norm(residual), np.linalg.norm(best), rtol=1e-6)


@pytest.mark.parametrize("lams", [[0.1, 5.0, 900.0], [0.0, 1.0, 0.0]], ids=["ridge", "with zeros"])
@pytest.mark.parametrize("shape", [(40, 9), (9, 40)], ids=["primal", "dual"])
@pytest.mark.parametrize("weights", ["none", "shared", "own"])
def test_a_stack_is_its_members(xp, rng, lams, shape, weights):
    D = rng.standard_normal((3, *shape))
    Y = rng.standard_normal((shape[0], 2))
    own = rng.uniform(0.2, 2, (3, shape[0]))
    omega = {"none": None, "shared": own[0], "own": own}[weights]
    stacked = ridge(
        xp.asarray(D), xp.asarray(Y), np.array(lams), None if omega is None else xp.asarray(omega)
    )
    for i in range(3):
        w = None if omega is None else (omega if omega.ndim == 1 else omega[i])
        np.testing.assert_allclose(to_host(stacked.beta)[i], ridge(D[i], Y, lams[i], w).beta, atol=1e-10)


def test_only_the_singular_member_of_a_stack_falls_back(xp, rng):
    good = rng.standard_normal((30, 4))
    bad = np.column_stack([good[:, :2], good[:, :2]]) * 1e10
    Y = rng.standard_normal((30, 2))
    readout = ridge(xp.asarray(np.stack([good, bad])), xp.asarray(Y), np.array([1.0, 1e-8]))
    assert to_host(readout.fell_back).tolist() == [False, True]
    np.testing.assert_allclose(to_host(readout.beta)[0], ridge(good, Y, 1.0).beta, atol=1e-12)
    assert np.isfinite(to_host(readout.beta)).all()


@pytest.mark.parametrize("shape", [(200, 20), (20, 200)], ids=["primal", "dual"])
def test_float32_stays_float32(xp, rng, shape):
    D, Y, w = problem(rng, *shape)
    single = [xp.asarray(a.astype(np.float32)) for a in (D, Y, w)]
    beta = ridge(single[0], single[1], 1.0, single[2]).beta
    assert beta.dtype == xp.float32
    np.testing.assert_allclose(to_host(beta), ridge(D, Y, 1.0, w).beta, atol=1e-4)


def test_blocks_of_rows_change_nothing_but_rounding(rng, monkeypatch):
    D, Y, w = problem(rng, 700, 9)
    whole = ridge(D, Y, 0.5, w).beta
    monkeypatch.setattr("edrvfl._arrays.CPU_BLOCK_BYTES", 1)
    np.testing.assert_allclose(ridge(D, Y, 0.5, w).beta, whole, atol=1e-12)


def test_overflow_is_reported_as_not_a_number():
    D = np.full((5, 2), 1e200)
    with np.errstate(over="ignore"):
        assert np.isnan(ridge(D, np.ones((5, 1)), 1.0).beta).all()
