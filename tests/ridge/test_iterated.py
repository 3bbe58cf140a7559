"""Systems solved by iteration, against factors and against fits without the rows that are left out."""

import numpy as np
import pytest
from helpers import random_counts, to_host
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import cdist

from edrvfl._ridge.iterated import Gram, Large, Preconditioner, conjugate_gradients, gram, pivoted_cholesky
from edrvfl._ridge.kernels import KERNELS


def kernel_of(X, width=1.5):
    return np.exp(-cdist(X, X) / width)


def held(xp, K):
    """K as it stands, in the library xp."""
    K = xp.asarray(K)
    return Gram(lambda which: xp.take(K, which, axis=0), K, K)


def system_of(xp, K, base, lam, rank=20, seed=0):
    root, order = xp.asarray(np.sqrt(base)), np.arange(len(base))
    K = K if isinstance(K, Gram) else held(xp, K)
    F, left = pivoted_cholesky(K, root, rank, np.random.default_rng(seed), order)
    return Large(K, root, lam, Preconditioner.of(F, left, lam))


def solved_by_hand(K, base, lam, Y, kept=None):
    """alpha of a ridge over the rows that are kept; 0 for the others."""
    kept = np.ones(len(K), bool) if kept is None else kept
    alpha = np.zeros(Y.shape)
    alpha[kept] = np.linalg.solve(K[np.ix_(kept, kept)] + np.diag(lam / base[kept]), Y[kept])
    return alpha


@pytest.fixture
def problem(rng):
    X = rng.standard_normal((150, 3))
    return kernel_of(X), rng.standard_normal((150, 4)), rng.uniform(0.3, 3, 150)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("hold", [True, False])
def test_a_kernel_that_is_held_and_one_that_is_computed_are_the_same(xp, rng, kernel, hold):
    X, V = (
        np.hstack([rng.standard_normal((600, 3)), rng.choice([0.0, 1.0], (600, 2))]),
        rng.standard_normal((600, 5)),
    )

    def compared(Z):
        measure = KERNELS[kernel].measure(Z)
        return lambda rows: KERNELS[kernel].alike(measure(rows), 0.8)

    found = gram(xp.asarray(X), compared, hold)
    assert (found.whole is not None) == hold
    K = KERNELS[kernel].alike(KERNELS[kernel].measure(X).own(), 0.8)
    np.testing.assert_allclose(to_host(found.times(xp.asarray(V))), K @ V, atol=1e-6)
    which = np.array([3, 588, 41])
    np.testing.assert_allclose(to_host(found.rows(xp.asarray(which))), K[which], atol=1e-6)


def test_the_partial_factor_leaves_what_is_said_and_no_rank_leaves_more(xp, problem):
    K, _, base = problem
    S = np.sqrt(np.outer(base, base)) * K
    traces = []
    for rank in (10, 40, 150):
        order, generator = np.arange(150)[::-1], np.random.default_rng(1)
        F, left = pivoted_cholesky(held(xp, K), xp.asarray(np.sqrt(base)), rank, generator, order)
        rest = S - to_host(F) @ to_host(F).T
        np.testing.assert_allclose(np.diag(rest), to_host(left), atol=1e-10)
        assert np.linalg.eigvalsh(rest).min() > -1e-10
        traces.append(rest.trace() / S.trace())
    assert traces[0] > traces[1] > traces[2]
    eigenvalues = np.linalg.eigvalsh(S)  # no factor of so many columns leaves less
    assert traces[1] < 2 * eigenvalues[:-40].sum() / S.trace()


def test_what_is_enough_ends_the_factor(problem, rng):
    K, _, base = problem
    few, left = pivoted_cholesky(held(np, K), np.sqrt(base), 100, rng, np.arange(150), 0.2)
    assert left.mean() <= 0.2
    assert few.shape[1] < 100
    assert pivoted_cholesky(held(np, K), np.sqrt(base), 100, rng, np.arange(150))[1].mean() < left.mean()


def test_rows_that_agree_end_the_factor(xp, rng):
    K = kernel_of(np.repeat(rng.standard_normal((7, 3)), 20, axis=0))
    F, left = pivoted_cholesky(held(xp, K), xp.ones(140, dtype=xp.float64), 100, rng, np.arange(140))
    assert F.shape[1] < 40
    np.testing.assert_allclose(to_host(left), 0, atol=1e-12)


def test_the_preconditioner_is_the_inverse_that_it_says(xp, problem, rng):
    K, Y, base = problem
    root = xp.asarray(np.sqrt(base))
    F, left = pivoted_cholesky(held(xp, K), root, 30, rng, np.arange(150))
    M = to_host(F) @ to_host(F).T + np.diag(to_host(left) + 0.1)
    groups = [np.array([3, 8, 20]), np.arange(60, 90)]
    system = Large(held(xp, K), root, 0.1, Preconditioner.of(F, left, 0.1))
    found = to_host(system.precondition(xp.asarray(Y)))
    np.testing.assert_allclose(found, np.linalg.solve(M, Y), atol=1e-9)
    without = system.without(groups)
    found = to_host(without.precondition(without.repeated(xp.asarray(Y))))
    for i, rows in enumerate(groups):
        kept = np.setdiff1d(np.arange(150), rows)
        np.testing.assert_allclose(
            found[kept, 4 * i : 4 * i + 4], np.linalg.solve(M[np.ix_(kept, kept)], Y[kept]), atol=1e-9
        )
        assert (found[rows, 4 * i : 4 * i + 4] == 0).all()


@pytest.mark.parametrize("tolerance", [1e-2, 1e-10])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_solution_is_that_of_a_factor_to_the_tolerance(xp, problem, tolerance, weighted):
    K, Y, base = problem
    base = base if weighted else np.ones(150)
    system, root = system_of(xp, K, base, 0.05), np.sqrt(base)[:, None]
    found = conjugate_gradients(system, xp.asarray(root * Y), tolerance, 100)
    assert found.reached(tolerance)
    U = to_host(found.U)
    S = root * K * root.T + 0.05 * np.eye(150)
    residuals = np.linalg.norm(root * Y - S @ U, axis=0) / np.linalg.norm(root * Y, axis=0)
    np.testing.assert_allclose(residuals.max(), found.residual, rtol=1e-6, atol=1e-12)
    assert residuals.max() <= tolerance + 1e-12
    if tolerance < 1e-6:
        np.testing.assert_allclose(root * U, solved_by_hand(K, base, 0.05, Y), atol=1e-7)


@pytest.mark.parametrize("weighted", [False, True])
def test_rows_that_are_left_out_are_answered_by_fits_without_them(xp, problem, rng, weighted):
    K, Y, _ = problem
    base = random_counts(rng, 150, weighted)
    system, root = system_of(xp, K, base, 0.1), xp.asarray(np.sqrt(base)[:, None])
    groups = [np.array([0, 5, 9]), np.arange(20, 60), np.array([140])]
    B = root * xp.asarray(Y)
    all_rows = conjugate_gradients(system, B, 1e-11, 200)
    systems = system.without(groups)
    targets = systems.repeated(B)
    starts = (None, systems.repeated(all_rows.U))
    cold, warm = (conjugate_gradients(systems, targets, 1e-11, 200, start) for start in starts)
    for found in (cold, warm):
        left_out = to_host(systems.left_out(found.U))
        for rows in groups:
            kept = np.ones(150, bool)
            kept[rows] = False
            expected = K[rows] @ solved_by_hand(K, base, 0.1, Y, kept)
            np.testing.assert_allclose(left_out[rows], expected, atol=1e-8)
        assert (left_out[np.setdiff1d(np.arange(150), np.concatenate(groups))] == 0).all()
    # the solution for all rows is near that without some
    first = [conjugate_gradients(systems, targets, 1e-3, 200, start).n_steps for start in starts]
    assert first[1] <= first[0]


@given(
    st.integers(0, 2**16),
    st.integers(2, 40),
    st.integers(1, 3),
    st.sampled_from([1e-3, 1e-1, 10.0]),
    st.data(),
)
def test_any_system_is_solved_or_says_that_it_is_not(seed, m, k, lam, data):
    rng = np.random.default_rng(seed)
    copies = rng.integers(0, data.draw(st.integers(1, m)), m)  # rows may agree
    K, Y = kernel_of(rng.standard_normal((m, 2))[copies], rng.uniform(0.1, 10)), rng.standard_normal((m, k))
    Y[:, 0] *= data.draw(st.sampled_from([0.0, 1e-8, 1.0]))
    base = rng.uniform(0.1, 5, m)
    root, most = np.sqrt(base)[:, None], data.draw(st.integers(0, 60))
    found = conjugate_gradients(system_of(np, K, base, lam, rank=5), root * Y, 1e-6, most)
    sizes = np.linalg.norm(root * Y, axis=0)
    residuals = np.linalg.norm(root * (Y - K @ (root * found.U)) - lam * found.U, axis=0)
    assert found.reached(1e-6) == (residuals <= 1e-6 * np.where(sizes > 0, sizes, 1)).all()
    assert found.n_steps <= most + 1
    if most >= 60:
        assert found.reached(1e-6)


def test_a_kernel_in_float32_is_solved_as_far_as_its_products_go(xp, problem):
    K, Y, base = problem
    system = system_of(xp, held(xp, K.astype(np.float32)), base, 1e-3)
    root = np.sqrt(base)[:, None]
    found = conjugate_gradients(system, xp.asarray(root * Y), 1e-4, 100)
    assert found.reached(1e-4)
    assert found.U.dtype == xp.float64
    np.testing.assert_allclose(K @ (root * to_host(found.U)), K @ solved_by_hand(K, base, 1e-3, Y), atol=5e-3)
    assert not conjugate_gradients(system, xp.asarray(root * Y), 1e-12, 40).reached(1e-12)


def test_what_is_not_finite_is_not_solved(problem):
    K, Y, base = problem
    K[3, 5] = np.nan
    with np.errstate(invalid="ignore"):
        assert not conjugate_gradients(system_of(np, K, base, 0.1), Y, 1e-2, 50).reached(1e-2)


def test_a_seed_is_a_solution(problem):
    K, Y, base = problem
    first, again, other = (
        conjugate_gradients(system_of(np, K, base, 0.1, seed=seed), Y, 1e-2, 50).U for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()
