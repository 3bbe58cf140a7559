"""Eq. 1-4, 15 and 16 against each other, against scikit-learn, and against repeated rows."""

import numpy as np
import pytest
from conftest import to_host
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import Ridge

from edrvfl import _readout
from edrvfl._readout import ridge, ridge_by_loo, ridge_path


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


# --- leave-one-out, against leaving rows out -------------------------------------------------------------


def without_each_row(D, Y, lam, omega, s):
    """Scores of each row by the read-out fitted with one unit less of its weight, one fit a row."""
    scores = []
    for i in range(len(D)):
        rest = s.copy()
        rest[i] -= min(s[i], 1)
        root = np.sqrt(rest * omega)[rest > 0, None]
        S, T = D[rest > 0] * root, Y[rest > 0] * root
        beta = (
            np.linalg.pinv(S) @ T
            if lam == 0
            else Ridge(lam, fit_intercept=False, solver="svd").fit(S, T).coef_.T
        )
        scores.append(D[i] @ beta)
    return np.array(scores)


def units(rng, m, weighted):
    """Weights that count rows, below, at and above one, and the share of them that leaving out takes."""
    s = rng.choice([0.4, 1.0, 1.0, 3.0], m) if weighted else np.ones(m)
    return s, np.minimum(s, 1) / s


@pytest.mark.parametrize("shape", [(30, 8), (8, 30), (12, 12)], ids=["long", "wide", "square"])
@pytest.mark.parametrize("lam", [0.0, 2.0**-12, 1.0, 2.0**12])
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
def test_leave_one_out_is_leaving_each_row_out(xp, rng, shape, lam, weighted):
    D, Y, omega = problem(rng, *shape)
    s, left_out = units(rng, shape[0], weighted)
    omega = omega if weighted else np.ones(shape[0])
    weights = xp.asarray(omega * s) if weighted else None
    readout = ridge(xp.asarray(D), xp.asarray(Y), lam, weights, xp.asarray(left_out))
    np.testing.assert_allclose(to_host(readout.loo), without_each_row(D, Y, lam, omega, s), atol=1e-8)
    assert ridge(xp.asarray(D), xp.asarray(Y), lam, weights).loo is None


@given(m=st.integers(2, 25), c=st.integers(1, 25), seed=st.integers(0, 2**31), log_lam=st.floats(-12, 12))
def test_leave_one_out_law(m, c, seed, log_lam):
    rng = np.random.default_rng(seed)
    D, Y, omega = problem(rng, m, c)
    s, left_out = units(rng, m, True)
    loo = ridge(D, Y, 2.0**log_lam, omega * s, left_out).loo
    np.testing.assert_allclose(loo, without_each_row(D, Y, 2.0**log_lam, omega, s), atol=1e-7)


@pytest.mark.parametrize("shape", [(25, 6), (6, 25)], ids=["primal", "dual"])
def test_leave_one_out_of_a_weight_is_that_of_repeated_rows(rng, shape):
    D, Y, _ = problem(rng, *shape)
    counts = rng.integers(1, 4, shape[0])
    weighted = ridge(D, Y, 0.3, counts.astype(float), 1 / counts).loo
    D, Y = np.repeat(D, counts, axis=0), np.repeat(Y, counts, axis=0)
    repeated = ridge(D, Y, 0.3, None, np.ones(len(D))).loo
    np.testing.assert_allclose(np.repeat(weighted, counts, axis=0), repeated, atol=1e-10)


@pytest.mark.parametrize("shape", [(30, 8), (8, 30)], ids=["primal", "dual"])
@pytest.mark.parametrize("weights", ["none", "two levels", "two levels and base"])
def test_leave_one_out_of_a_path(xp, rng, shape, weights, monkeypatch):
    D, Y, _ = problem(rng, *shape)
    m, lam = shape[0], np.array([0.1, 1.0, 30.0])
    omega = np.where(rng.random((3, m)) < 0.3, 1.7, 0.6) if weights != "none" else None
    base, left_out = units(rng, m, "base" in weights)
    given = [None if omega is None else xp.asarray(omega), xp.asarray(base) if "base" in weights else None]
    for stacked in (False, True):
        monkeypatch.setattr(_readout, "on_accelerator", lambda _, stacked=stacked: stacked)
        path = ridge_path(xp.asarray(D), xp.asarray(Y), lam, *given, xp.asarray(left_out))
        for i in range(3):
            own = np.ones(m) if omega is None else omega[i]
            expected = without_each_row(D, Y, lam[i], own, base)
            np.testing.assert_allclose(to_host(path.loo)[i], expected, atol=1e-8)


@pytest.mark.parametrize("shape", [(20, 12), (12, 20)], ids=["primal", "dual"])
def test_leave_one_out_of_a_singular_member_is_that_of_the_least_norm_solution(xp, rng, shape):
    good = rng.standard_normal(shape)
    bad = good.copy()
    bad[:, 6:12] = bad[:, :6]  # columns twice; of the wide one the rows too
    bad[7:12] = bad[:5]
    bad *= 1e10
    Y = rng.standard_normal((shape[0], 2))
    readout = ridge(
        xp.asarray(np.stack([good, bad])),
        xp.asarray(Y),
        np.array([1.0, 1e-9]),
        None,
        xp.ones(shape[0], dtype=xp.float64),
    )
    assert to_host(readout.fell_back).tolist() == [False, True]
    ones = np.ones(shape[0])
    np.testing.assert_allclose(to_host(readout.loo)[0], without_each_row(good, Y, 1.0, ones, ones), atol=1e-8)
    np.testing.assert_allclose(to_host(readout.loo)[1], without_each_row(bad, Y, 0.0, ones, ones), atol=1e-6)


@pytest.mark.parametrize("shape", [(60, 8), (20, 40)], ids=["primal", "dual"])
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
def test_lambda_by_leave_one_out_is_the_best_of_the_path_and_of_equals_the_larger(xp, rng, shape, weighted):
    D, _, omega = problem(rng, *shape)
    m = shape[0]
    y = np.digitize(D[:, 0] + rng.standard_normal(m), [-0.5, 0.5])
    Y = np.eye(3)[y]
    s, left_out = units(rng, m, weighted)
    omega = omega if weighted else np.ones(m)
    chosen = ridge_by_loo(*map(xp.asarray, (D, Y, y, omega * s, left_out)))
    right = {lam: without_each_row(D, Y, lam, omega, s).argmax(-1) == y for lam in 2.0 ** np.arange(-12, 13)}
    accuracy = {lam: round(np.average(r, weights=omega * s), 12) for lam, r in right.items()}
    assert chosen.lam == max(lam for lam in accuracy if accuracy[lam] == max(accuracy.values()))
    np.testing.assert_array_equal(to_host(chosen.right), right[chosen.lam])
    expected = ridge(D, Y, chosen.lam, omega * s).beta
    np.testing.assert_allclose(to_host(chosen.beta), expected, atol=1e-8)


def test_lambda_by_leave_one_out_of_a_system_that_none_makes_regular(xp, rng):
    D = rng.standard_normal((40, 4))
    D = np.column_stack([D, D]) * 1e12
    y = (D[:, 0] > 0).astype(int)
    arrays = map(xp.asarray, (D, np.eye(2)[y], y))
    chosen = ridge_by_loo(*arrays, None, xp.ones(40, dtype=xp.float64))
    assert bool(chosen.fell_back)
    assert chosen.lam == 2.0**12
    assert to_host(chosen.right).mean() > 0.9


@pytest.mark.parametrize("shape", [(200, 20), (20, 200)], ids=["primal", "dual"])
@pytest.mark.parametrize("lam", [2.0**-6, 1.0, 64.0])
def test_leave_one_out_in_float32(xp, rng, shape, lam):
    D, Y, w = problem(rng, *shape)
    single = [xp.asarray(a.astype(np.float32)) for a in (D, Y, w, np.ones(shape[0]))]
    loo = ridge(single[0], single[1], lam, *single[2:]).loo
    assert loo.dtype == xp.float32
    np.testing.assert_allclose(to_host(loo), ridge(D, Y, lam, w, np.ones(shape[0])).loo, atol=1e-3)
