"""Leave-one-out scores, against leaving rows out."""

from dataclasses import replace

import numpy as np
import pytest
from helpers import random_counts, random_regression, regression, to_host, with_twins
from hypothesis import given
from hypothesis import strategies as st
from reference import scores_without_each_row

from edrvfl._ridge.choose import ridge_by_loo
from edrvfl._ridge.equations import normal_equations
from edrvfl._ridge.solve import ridge


@pytest.mark.parametrize("shape", [(30, 8), (8, 30), (12, 12)], ids=["long", "wide", "square"])
@pytest.mark.parametrize("lam", [0.0, 2.0**-12, 1.0, 2.0**12])
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("n_twins", [0, 3])
def test_it_is_leaving_each_row_out_with_its_twins(xp, rng, shape, lam, weighted, n_twins):
    D, Y, omega = random_regression(rng, *shape)
    D, twins = with_twins(rng, D, n_twins) if n_twins else (D, None)
    counts = random_counts(rng, shape[0], weighted)
    omega = omega if weighted else np.ones(shape[0])
    base = omega * counts if weighted else None
    readout = ridge(regression(D, Y, base, twins=twins, xp=xp), lam)
    expected = scores_without_each_row(D, Y, lam, omega, counts, twins)
    np.testing.assert_allclose(to_host(readout.loo), expected, atol=1e-8)
    assert ridge(regression(D, Y, base, want_loo=False, xp=xp), lam).loo is None


@given(m=st.integers(2, 25), c=st.integers(1, 25), seed=st.integers(0, 2**31), log_lam=st.floats(-12, 12))
def test_the_law(m, c, seed, log_lam):
    rng = np.random.default_rng(seed)
    D, Y, omega = random_regression(rng, m, c)
    D, twins = with_twins(rng, D, int(rng.integers(1, m)))
    counts = random_counts(rng, m, True)
    loo = ridge(regression(D, Y, counts, omega=omega, twins=twins), 2.0**log_lam).loo
    expected = scores_without_each_row(D, Y, 2.0**log_lam, omega, counts, twins)
    np.testing.assert_allclose(loo, expected, atol=1e-7)


@pytest.mark.parametrize("shape", [(25, 6), (6, 25)], ids=["primal", "dual"])
def test_a_weight_is_repeated_rows(rng, shape):
    D, Y, _ = random_regression(rng, *shape)
    counts = rng.integers(1, 4, shape[0])
    weighted = ridge(regression(D, Y, counts.astype(float)), 0.3).loo
    D, Y, twins = (np.repeat(rows, counts, axis=0) for rows in (D, Y, np.arange(len(D))))
    repeated = ridge(regression(D, Y, twins=twins), 0.3).loo
    np.testing.assert_allclose(np.repeat(weighted, counts, axis=0), repeated, atol=1e-10)


@pytest.mark.parametrize("shape", [(20, 12), (12, 20)], ids=["primal", "dual"])
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
def test_of_a_singular_member_it_is_that_of_the_least_norm_solution(xp, rng, shape, weighted):
    good = rng.standard_normal(shape)
    bad = good.copy()
    bad[:, 6:12] = bad[:, :6]  # columns twice; of the wide one the rows too
    bad[7:12] = bad[:5]
    bad *= 1e10
    Y, ones = rng.standard_normal((shape[0], 2)), np.ones(shape[0])
    base = rng.uniform(0.5, 2, shape[0]) if weighted else None
    problem = regression(np.stack([good, bad]), Y, base, xp=xp)
    readout = ridge(problem, np.array([1.0, 1e-9]))
    assert to_host(readout.fell_back).tolist() == [False, True]
    omega = ones if base is None else base
    for loo, D, lam, atol in zip(to_host(readout.loo), (good, bad), (1.0, 0.0), (1e-8, 1e-6), strict=True):
        np.testing.assert_allclose(loo, scores_without_each_row(D, Y, lam, omega, ones), atol=atol)


@pytest.mark.parametrize("shape", [(200, 20), (20, 200)], ids=["primal", "dual"])
@pytest.mark.parametrize("lam", [2.0**-6, 1.0, 64.0])
def test_in_float32(xp, rng, shape, lam):
    D, Y, w = random_regression(rng, *shape)
    D, twins = with_twins(rng, D, 6)
    single = [a.astype(np.float32) for a in (D, Y, w)]
    loo = ridge(regression(*single, twins=twins, xp=xp), lam).loo
    assert loo.dtype == xp.float32
    off = np.abs(to_host(loo) - ridge(regression(D, Y, w, twins=twins), lam).loo).max(axis=1)
    alone = np.bincount(twins, minlength=len(D))[twins] == 1
    assert off[alone].max() < 1e-3
    assert off.max() < 3e-2  # the dual system of twins has an eigenvalue that is lambda


def test_twins_whose_weight_vanishes_beside_others_have_finite_scores(xp, rng):
    D, Y, _ = random_regression(rng, 20, 5)
    D, twins = with_twins(rng, D, 6)
    weights = np.where(np.arange(20) == twins[-1], 1e40, 1e-20)
    assert np.isfinite(to_host(ridge(regression(D, Y, weights, twins=twins, xp=xp), 1.0).loo)).all()


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
def test_some_rows_of_a_singular_system_that_is_summed_over_all(xp, rng, weighted):
    D = rng.standard_normal((30, 7))
    D[:, 3] = D[:, 0]
    D[:, 4:] = 0.0
    D[[2, 11, 20], [4, 5, 6]] = 1.0  # three rows that lie outside the span of the others
    Y, ones = rng.standard_normal((30, 2)), np.ones(30)
    base = rng.uniform(0.5, 2, 30) if weighted else None
    equations = normal_equations(regression(D, Y, base, xp=xp))
    some = np.arange(1, 30, 2)
    own = regression(D[some], Y[some], None if base is None else base[some], xp=xp)
    readout = ridge(replace(own, summed=equations), 0.0)
    assert bool(readout.fell_back)
    expected = scores_without_each_row(D, Y, 0.0, ones if base is None else base, ones)
    np.testing.assert_allclose(to_host(readout.loo), expected[some], atol=1e-8)


@pytest.mark.parametrize("shape", [(30, 8), (8, 30)], ids=["primal", "dual"])
@pytest.mark.parametrize("lam", [0.0, 1.0, "singular", "chosen"])
def test_only_some_rows_are_judged(xp, rng, shape, lam):
    D, _, base = random_regression(rng, *shape)
    y = np.arange(shape[0]) % 3
    if lam == "singular":
        D[:, 1] = D[:, 0]
        D[1] = D[0]
        D *= 1e10
    some = np.array([5, 1, 7])
    whole = regression(D, y, base, xp=xp)
    part = regression(D, y, base, judged=some, xp=xp)
    if lam == "chosen":  # all penalties are tried on the judged rows alone, so they choose for themselves
        judged = ridge_by_loo(part)
        expected = ridge(whole, judged.lam)
    else:
        lam = 1e-9 if lam == "singular" else lam
        judged, expected = ridge(part, lam), ridge(whole, lam)
    np.testing.assert_allclose(to_host(judged.beta), to_host(expected.beta), atol=1e-9)
    np.testing.assert_allclose(to_host(judged.loo), to_host(expected.loo)[some], atol=1e-8)


def test_blocks_of_rows_change_nothing_but_rounding(rng, limit):
    D, Y, w = random_regression(rng, 700, 9)
    problem = regression(D, Y, w)
    whole = ridge(problem, 0.5).loo
    limit(CPU_BLOCK_BYTES=1)
    np.testing.assert_allclose(ridge(problem, 0.5).loo, whole, atol=1e-12)
