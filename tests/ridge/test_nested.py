"""Read-outs over the first columns of a matrix: each is the ridge of these columns alone."""

import numpy as np
import pytest
from helpers import random_counts, random_regression, regression, to_host, with_twins
from hypothesis import given
from hypothesis import strategies as st
from reference import scores_without_each_row
from sklearn.linear_model import Ridge

from edrvfl._ridge.choose import ridge_by_loo
from edrvfl._ridge.nested import NestedReadOuts
from edrvfl._ridge.solve import ridge
from edrvfl._seam.arrays import ignore_overflow

WIDTHS = (7, 15, 20, 40, 55)  # of 40 rows: primal four times, the last of them square, then dual
LAMS = np.array([2.0**-12, 1.0, 30.0])


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
def test_each_is_scikit_learns_ridge_and_leaving_each_row_out(xp, rng, weighted):
    A, Y, omega = random_regression(rng, 40, 55)
    A, twins = with_twins(rng, A, 5)
    counts = random_counts(rng, 40, weighted)
    omega = omega if weighted else np.ones(40)
    base = omega * counts if weighted else None
    nested = NestedReadOuts(LAMS)
    for c in WIDTHS:
        found = nested.add(regression(A[:, :c], Y, base, twins=twins, xp=xp))
        assert found.beta.shape == (3, c, 3)
        assert not to_host(found.fell_back).any()
        for i, lam in enumerate(LAMS):
            own = Ridge(alpha=lam, fit_intercept=False, solver="svd").fit(A[:, :c], Y, omega * counts)
            np.testing.assert_allclose(to_host(found.beta)[i], own.coef_.T, atol=1e-7)
            expected = scores_without_each_row(A[:, :c], Y, lam, omega, counts, twins)
            np.testing.assert_allclose(to_host(found.loo)[i], expected, atol=1e-6)


@given(
    m=st.integers(2, 30),
    widths=st.lists(st.integers(1, 9), min_size=1, max_size=5),
    seed=st.integers(0, 2**31),
    log_lam=st.floats(-12, 12),
)
def test_the_law(m, widths, seed, log_lam):
    A, Y, base = random_regression(np.random.default_rng(seed), m, sum(widths))
    nested = NestedReadOuts(np.array([2.0**log_lam]))
    for c in np.cumsum(widths):
        problem = regression(A[:, :c], Y, base)
        found, alone = nested.add(problem), ridge(problem, 2.0**log_lam)
        np.testing.assert_allclose(found.beta[0], alone.beta, atol=1e-7)
        np.testing.assert_allclose(found.loo[0], alone.loo, atol=1e-6)


@pytest.mark.parametrize("lam", [0.5, 64.0])
def test_in_float32(xp, rng, lam):
    A, Y, base = (a.astype(np.float32) for a in random_regression(rng, 40, 55))
    nested = NestedReadOuts(np.array([lam]))
    for c in WIDTHS:
        found = nested.add(regression(A[:, :c], Y, base, xp=xp))
        exact = ridge(regression(*(a.astype(float) for a in (A[:, :c], Y, base))), lam)
        assert found.beta.dtype == found.loo.dtype == xp.float32
        np.testing.assert_allclose(to_host(found.beta)[0], exact.beta, atol=1e-3)
        np.testing.assert_allclose(to_host(found.loo)[0], exact.loo, atol=3e-3)


def test_the_rows_are_summed_once_and_no_factor_is_made_twice(rng, monkeypatch):
    """The last number of columns costs what it costs; the ones before come with it."""
    from edrvfl._ridge import nested as module

    sides, original = [], module.factorise
    monkeypatch.setattr(module, "factorise", lambda G: sides.append(G.shape[-1]) or original(G))
    monkeypatch.setattr(module, "read_outs", None)  # whoever works from the beginning fails
    A, Y, _ = random_regression(rng, 40, 36)
    nested = NestedReadOuts(np.array([1.0]))
    for c in (9, 18, 27, 36):
        nested.add(regression(A[:, :c], Y))
    assert sides == [9, 9, 9, 9]


def test_lambda_0_is_the_least_norm_solution_beside_the_others(xp, rng):
    A, Y, base = random_regression(rng, 40, 55)
    A[:, 10] = A[:, 3]
    nested = NestedReadOuts(np.array([0.0, 2.0]))
    for c in WIDTHS:
        found = nested.add(regression(A[:, :c], Y, base, xp=xp))
        root = np.sqrt(base)[:, None]
        expected = np.linalg.pinv(A[:, :c] * root) @ (Y * root)
        np.testing.assert_allclose(to_host(found.beta)[0], expected, atol=1e-7)
        alone = ridge(regression(A[:, :c], Y, base), 2.0)
        np.testing.assert_allclose(to_host(found.beta)[1], alone.beta, atol=1e-9)
        np.testing.assert_allclose(to_host(found.loo)[1], alone.loo, atol=1e-8)


def test_only_the_lambda_whose_system_is_singular_falls_back(xp, rng):
    A, Y, _ = random_regression(rng, 60, 50)
    A[:, 20] = A[:, 3]  # from the second number of columns on
    A *= 1e4
    nested = NestedReadOuts(np.array([1e-9, 100.0]))
    for c, singular in ((12, False), (25, True), (50, True), (60, True)):
        problem = regression(np.hstack([A, A[:, 30:40]])[:, :c], Y, xp=xp)
        found = nested.add(problem)
        assert to_host(found.fell_back).tolist() == [singular, False]
        for i, lam in enumerate((1e-9, 100.0)):
            alone = ridge(problem, lam)
            np.testing.assert_allclose(to_host(found.beta)[i], to_host(alone.beta), atol=1e-9)
            np.testing.assert_allclose(to_host(found.loo)[i], to_host(alone.loo), atol=1e-6)


def test_leave_one_out_may_choose_lambda(xp, rng):
    A, y = rng.standard_normal((40, 55)), np.arange(40) % 3
    A[:, 0] += y
    nested = NestedReadOuts(None)
    for c in WIDTHS:
        found = nested.add(regression(A[:, :c], y, xp=xp))
        alone = ridge_by_loo(regression(A[:, :c], y))
        assert found.lam == alone.lam
        np.testing.assert_allclose(to_host(found.beta)[0], alone.beta, atol=1e-9)
        np.testing.assert_allclose(to_host(found.loo)[0], alone.loo, atol=1e-8)


def test_only_some_rows_are_judged(xp, rng):
    A, Y, base = random_regression(rng, 40, 55)
    some = np.array([5, 1, 33])
    whole, part = NestedReadOuts(LAMS), NestedReadOuts(LAMS)
    for c in WIDTHS:
        of_all = whole.add(regression(A[:, :c], Y, base, xp=xp)).loo
        of_some = part.add(regression(A[:, :c], Y, base, judged=some, xp=xp)).loo
        np.testing.assert_allclose(to_host(of_some), to_host(of_all)[:, some], atol=1e-8)


def test_without_leave_one_out_there_are_no_scores_and_the_same_weights(rng):
    A, Y, _ = random_regression(rng, 40, 55)
    with_loo, without = NestedReadOuts(LAMS), NestedReadOuts(LAMS)
    for c in WIDTHS:
        one = with_loo.add(regression(A[:, :c], Y))
        other = without.add(regression(A[:, :c], Y, want_loo=False))
        assert other.loo is None
        np.testing.assert_array_equal(one.beta, other.beta)


def test_blocks_of_rows_change_nothing_but_rounding(rng, limit):
    A, Y, base = random_regression(rng, 700, 30)

    def last():
        nested = NestedReadOuts(np.array([0.5]))
        for c in (10, 20, 30):
            found = nested.add(regression(A[:, :c], Y, base))
        return found

    whole = last()
    limit(CPU_BLOCK_BYTES=1)
    np.testing.assert_allclose(last().beta, whole.beta, atol=1e-12)
    np.testing.assert_allclose(last().loo, whole.loo, atol=1e-12)


@pytest.mark.parametrize("m", [40, 15], ids=["primal", "dual"])
def test_columns_that_overflow_are_an_error(xp, rng, m):
    A, Y, _ = random_regression(rng, m, 20)
    A[:, 15] = np.inf
    nested = NestedReadOuts(np.array([1.0]))
    nested.add(regression(A[:, :10], Y, xp=xp))
    with ignore_overflow(), pytest.raises(FloatingPointError, match=r"The features overflow .*float64"):
        nested.add(regression(A, Y, xp=xp))
