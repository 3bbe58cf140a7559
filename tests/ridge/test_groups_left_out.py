"""Leave-one-group-out scores, against leaving each group out."""

from dataclasses import replace

import numpy as np
import pytest
from helpers import random_counts, random_regression, regression, to_host
from hypothesis import given
from hypothesis import strategies as st
from reference import scores_without_each_row
from sklearn.kernel_ridge import KernelRidge

from edrvfl._ridge import groups as groups_file
from edrvfl._ridge.choose import LAMBDAS, read_outs, ridge_by_loo
from edrvfl._ridge.kernel import kernel_ridge, landmark_features
from edrvfl._ridge.nested import NestedReadOuts
from edrvfl._ridge.solve import ridge


def in_groups(problem, numbers):
    return replace(problem, groups=numbers)


def some_groups(rng, m, n):
    """Draw groups of different sizes, of which the first is large."""
    numbers = rng.integers(0, n, m)
    numbers[rng.permutation(m)[: m // 3]] = 0
    return numbers


@pytest.fixture(params=["blocks", "sums"])
def way(request, monkeypatch):
    """How the errors of a group are computed, whatever it costs."""
    monkeypatch.setattr(groups_file, "subtracts", lambda *_: request.param == "sums")


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("shape", [(40, 8), (8, 40), (60, 3)], ids=["long", "wide", "narrow"])
@pytest.mark.parametrize("lam", [0.0, 2.0**-12, 64.0])
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
def test_it_is_leaving_each_group_out(xp, rng, shape, lam, weighted):
    D, Y, omega = random_regression(rng, *shape)
    numbers, counts = some_groups(rng, shape[0], 5), random_counts(rng, shape[0], weighted)
    omega = omega if weighted else np.ones(shape[0])
    base = omega * counts if weighted else None
    problem = in_groups(regression(D, Y, base, xp=xp), numbers)
    expected = scores_without_each_row(D, Y, lam, omega, counts, numbers)
    np.testing.assert_allclose(to_host(ridge(problem, lam).loo), expected, rtol=1e-9, atol=1e-9)
    judged = rng.permutation(shape[0])[: shape[0] // 2]
    some = in_groups(regression(D, Y, base, xp=xp, judged=np.sort(judged)), numbers)
    np.testing.assert_allclose(to_host(ridge(some, lam).loo), expected[np.sort(judged)], rtol=1e-9, atol=1e-9)


@given(
    m=st.integers(2, 25),
    c=st.integers(1, 25),
    n=st.integers(1, 25),
    seed=st.integers(0, 2**31),
    log_lam=st.floats(-12, 12),
)
def test_the_law(m, c, n, seed, log_lam):
    rng = np.random.default_rng(seed)
    D, Y, omega = random_regression(rng, m, c)
    numbers, counts = rng.integers(0, n, m), random_counts(rng, m, True)
    D = D[rng.integers(0, m, m)]  # some rows are equal, within groups and across
    loo = ridge(in_groups(regression(D, Y, counts, omega=omega), numbers), 2.0**log_lam).loo
    expected = scores_without_each_row(D, Y, 2.0**log_lam, omega, counts, numbers)
    np.testing.assert_allclose(loo, expected, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("shape", [(30, 8), (8, 30)], ids=["primal", "dual"])
@pytest.mark.parametrize("lam", [0.0, 0.3])
def test_groups_of_one_row_are_rows(rng, shape, lam):
    D, Y, w = random_regression(rng, *shape)
    problem = regression(D, Y, w)
    alone = in_groups(problem, rng.permutation(shape[0]))
    np.testing.assert_allclose(ridge(alone, lam).loo, ridge(problem, lam).loo, rtol=1e-9, atol=1e-11)


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("shape", [(40, 8), (20, 40)], ids=["primal", "dual"])
@pytest.mark.parametrize("classes", [False, True], ids=["values", "classes"])
@pytest.mark.parametrize("side_by_side", [False, True])
def test_the_chosen_penalty_has_the_smallest_loss_of_left_out_groups(xp, rng, shape, classes, side_by_side):
    D, Y, omega = random_regression(rng, *shape)
    numbers, counts = some_groups(rng, shape[0], 6), random_counts(rng, shape[0], True)
    y = np.arange(shape[0]) % 3
    T = np.eye(3)[y] if classes else Y
    problem = in_groups(regression(D, y if classes else Y, counts * omega, xp=xp), numbers)
    found = ridge_by_loo(problem, side_by_side)
    scores = {lam: scores_without_each_row(D, T, lam, omega, counts, numbers) for lam in LAMBDAS}

    def loss(lam):
        error = scores[lam].argmax(1) != y if classes else ((scores[lam] - T) ** 2).mean(1)
        return round(np.average(error, weights=counts * omega), 9)

    assert loss(found.lam) == min(loss(lam) for lam in LAMBDAS)
    np.testing.assert_allclose(to_host(found.loo), scores[found.lam], rtol=1e-8, atol=1e-8)


def test_few_groups_choose_where_all_would_take_too_long(rng, monkeypatch):
    D, Y, _ = random_regression(rng, 60, 8)
    problem = in_groups(regression(D, Y), np.arange(60) // 4)
    monkeypatch.setattr(groups_file, "CHOOSING_FLOPS", 1.0)
    few = ridge_by_loo(problem)
    np.testing.assert_allclose(few.loo, ridge(problem, few.lam).loo, atol=1e-10)


def test_many_read_outs_side_by_side_and_one_after_another(xp, rng):
    D, Y, _ = random_regression(rng, 30, 7)
    numbers, lam = some_groups(rng, 30, 5), np.array([0.1, 10.0])
    omega = rng.uniform(0.5, 2, (2, 30))
    problem = in_groups(regression(D, Y, omega=omega, xp=xp), numbers)
    for stacked in (False, True):
        loo = to_host(read_outs(problem, lam, stacked).loo)
        for i in range(2):
            expected = scores_without_each_row(D, Y, lam[i], omega[i], np.ones(30), numbers)
            np.testing.assert_allclose(loo[i], expected, atol=1e-9)


def test_nested_read_outs(rng):
    A, Y, _ = random_regression(rng, 25, 40)
    numbers, nested = some_groups(rng, 25, 5), NestedReadOuts(np.array([0.5]))
    for c in (6, 12, 20, 40):
        found = nested.add(in_groups(regression(A[:, :c], Y), numbers))
        expected = scores_without_each_row(A[:, :c], Y, 0.5, np.ones(25), np.ones(25), numbers)
        np.testing.assert_allclose(found.loo[0], expected, atol=1e-9)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("exact", [True, False])
def test_kernels(xp, rng, weighted, exact):
    X, Y, base = random_regression(rng, 40, 3)
    base = base if weighted else np.ones(40)
    numbers = some_groups(rng, 40, 6)
    K = np.exp(-np.linalg.norm(X[:, None] - X, axis=2))
    problem = in_groups(regression(X, Y, base, xp=xp), numbers)
    if exact:
        found = kernel_ridge(xp.asarray(K.copy()), problem, 0.1)
    else:
        found = landmark_features(xp.asarray(K.copy()), xp.asarray(K), problem).ridge(0.1)
    for number in range(6):
        kept = numbers != number
        model = KernelRidge(alpha=0.1, kernel="precomputed").fit(K[np.ix_(kept, kept)], Y[kept], base[kept])
        expected = model.predict(K[np.ix_(~kept, kept)])
        np.testing.assert_allclose(to_host(found.loo)[~kept], expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("shape", [(300, 20), (20, 300)], ids=["primal", "dual"])
def test_in_float32(xp, rng, shape):
    D, Y, w = random_regression(rng, *shape)
    single, numbers = [a.astype(np.float32) for a in (D, Y, w)], some_groups(rng, shape[0], 9)
    loo = ridge(in_groups(regression(*single, xp=xp), numbers), 1.0).loo
    assert loo.dtype == xp.float32
    np.testing.assert_allclose(
        to_host(loo), ridge(in_groups(regression(D, Y, w), numbers), 1.0).loo, atol=2e-3
    )


def test_a_group_that_alone_fixes_its_scores_has_finite_ones(xp, rng):
    D, Y, _ = random_regression(rng, 20, 5)
    weights = np.where(np.arange(20) < 7, 1e40, 1e-20)
    for numbers in (np.arange(20) // 7, np.zeros(20, dtype=int)):
        problem = in_groups(regression(D, Y, weights, xp=xp), numbers)
        assert np.isfinite(to_host(ridge(problem, 1.0).loo)).all()
