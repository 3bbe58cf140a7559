"""Lambda by leave-one-out, against leaving rows out for every candidate."""

import dataclasses

import numpy as np
import pytest
from helpers import random_counts, random_regression, regression, to_host
from reference import scores_without_each_row

from edrvfl._ridge.choose import LAMBDAS, ridge_by_loo
from edrvfl._ridge.equations import normal_equations
from edrvfl._ridge.solve import ridge


def classes_of(rng, D):
    """Draw three classes that the first column tells in part."""
    return np.digitize(D[:, 0] + rng.standard_normal(len(D)), [-0.5, 0.5])


def right_rows(problem, chosen):
    """Return which rows the leave-one-out scores get right."""
    return to_host(problem.targets.losses(chosen.loo, slice(0, problem.D.shape[0]))) == 0


def test_the_candidates_are_the_papers_range():
    assert LAMBDAS.tolist() == [2.0**x for x in range(-12, 13)]


@pytest.mark.parametrize("shape", [(60, 8), (20, 40)], ids=["primal", "dual"])
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
def test_the_best_of_all_wins_and_of_equals_the_larger(xp, rng, shape, weighted):
    D, _, omega = random_regression(rng, *shape)
    y = classes_of(rng, D)
    Y = np.eye(3)[y]
    counts, shares = random_counts(rng, shape[0], weighted)
    omega = omega if weighted else np.ones(shape[0])
    problem = regression(D, y, counts, omega=omega, shares=shares, xp=xp)
    chosen = ridge_by_loo(problem)
    right = {lam: scores_without_each_row(D, Y, lam, omega, counts).argmax(-1) == y for lam in LAMBDAS}
    accuracy = {lam: round(np.average(r, weights=omega * counts), 12) for lam, r in right.items()}
    assert chosen.lam == max(lam for lam in accuracy if accuracy[lam] == max(accuracy.values()))
    np.testing.assert_array_equal(right_rows(problem, chosen), right[chosen.lam])
    expected = ridge(regression(D, Y, omega * counts), chosen.lam).beta
    np.testing.assert_allclose(to_host(chosen.beta), expected, atol=1e-8)
    assert not bool(chosen.fell_back)


@pytest.mark.parametrize("shape", [(60, 8), (20, 40)], ids=["primal", "dual"])
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("noise", [0.1, 3.0])
def test_of_values_the_smallest_squared_error_wins(xp, rng, shape, weighted, noise):
    D, Y, omega = random_regression(rng, *shape, k=2)
    Y = D[:, :2] + noise * Y
    counts, shares = random_counts(rng, shape[0], weighted)
    omega = omega if weighted else np.ones(shape[0])
    chosen = ridge_by_loo(regression(D, Y, counts, omega=omega, shares=shares, xp=xp))
    scores = {lam: scores_without_each_row(D, Y, lam, omega, counts) for lam in LAMBDAS}
    errors = {
        lam: np.average(((s - Y) ** 2).mean(axis=1), weights=omega * counts) for lam, s in scores.items()
    }
    assert chosen.lam == min(errors, key=errors.get)
    np.testing.assert_allclose(to_host(chosen.loo), scores[chosen.lam], atol=1e-7)
    expected = ridge(regression(D, Y, omega * counts), chosen.lam).beta
    np.testing.assert_allclose(to_host(chosen.beta), expected, atol=1e-8)


@pytest.mark.parametrize("shape", [(60, 8), (20, 40)], ids=["primal", "dual"])
@pytest.mark.parametrize("accelerator", [False, True], ids=["eigenvalues", "side by side"])
def test_the_candidates_go_with_the_scale_of_small_weights(xp, rng, monkeypatch, shape, accelerator):
    monkeypatch.setattr("edrvfl._ridge.choose.on_accelerator", lambda _: accelerator)
    D, Y, omega = random_regression(rng, *shape, k=2)
    Y = D[:, :2] + 0.3 * Y
    base, ones = rng.uniform(0.3, 0.9, shape[0]) * 1e-7, np.ones(shape[0])
    inner = normal_equations(regression(D[:, 3:], Y, base, xp=xp))
    problem = regression(D, Y, base, omega=omega, shares=ones, xp=xp)
    problem = dataclasses.replace(problem, of_inputs=inner if problem.primal else None)
    unit = float((base @ base) / base.sum())  # the weight of one row
    chosen = ridge_by_loo(dataclasses.replace(problem, unit=unit))
    scores = {lam: scores_without_each_row(D, Y, lam, omega * base, ones) for lam in unit * LAMBDAS}
    errors = {lam: np.average(((s - Y) ** 2).mean(axis=1), weights=omega * base) for lam, s in scores.items()}
    best = min(errors, key=errors.get)
    assert chosen.lam == pytest.approx(best, rel=1e-12)
    np.testing.assert_allclose(to_host(chosen.loo), scores[best], atol=1e-7)
    expected = ridge(regression(D, Y, omega * base), chosen.lam).beta
    np.testing.assert_allclose(to_host(chosen.beta), expected, atol=1e-8)


def test_the_judged_rows_decide(xp, rng):
    D, _, base = random_regression(rng, 60, 8)
    y = classes_of(rng, D)
    some, stand_for = np.arange(0, 60, 4), rng.uniform(1, 5, 15)
    problem = regression(D, y, base, shares=np.ones(60), judged=some, xp=xp)
    judged = dataclasses.replace(problem.judged, stand_for=xp.asarray(stand_for))
    chosen = ridge_by_loo(dataclasses.replace(problem, judged=judged))
    scores = {lam: scores_without_each_row(D, np.eye(3)[y], lam, base, np.ones(60)) for lam in LAMBDAS}
    right = {lam: (scores[lam].argmax(-1) == y)[some] for lam in LAMBDAS}
    accuracy = {lam: round(np.average(r, weights=base[some] * stand_for), 12) for lam, r in right.items()}
    assert chosen.lam == max(lam for lam in accuracy if accuracy[lam] == max(accuracy.values()))


def test_inputs_that_were_summed_once_change_nothing(xp, rng):
    D, _, base = random_regression(rng, 60, 12)
    omega = np.where(rng.random(60) < 0.3, 1.7, 0.6)
    problem = regression(D, classes_of(rng, D), base, omega=omega, shares=np.ones(60), xp=xp)
    inner = normal_equations(dataclasses.replace(problem, D=problem.D[:, 3:], omega=None))
    chosen, known = ridge_by_loo(problem), ridge_by_loo(dataclasses.replace(problem, of_inputs=inner))
    assert chosen.lam == known.lam
    np.testing.assert_allclose(to_host(chosen.beta), to_host(known.beta), atol=1e-9)
    np.testing.assert_allclose(to_host(chosen.loo), to_host(known.loo), atol=1e-9)


def test_a_system_that_no_lambda_makes_regular(xp, rng):
    D = rng.standard_normal((40, 4))
    D = np.column_stack([D, D]) * 1e12
    problem = regression(D, (D[:, 0] > 0).astype(int), shares=np.ones(40), xp=xp)
    chosen = ridge_by_loo(problem)
    assert bool(chosen.fell_back)
    assert chosen.lam == 2.0**12
    assert right_rows(problem, chosen).mean() > 0.9


@pytest.mark.parametrize("shape", [(300, 5), (260, 400)], ids=["primal", "dual"])
def test_blocks_of_rows_change_nothing_but_rounding(rng, monkeypatch, shape):
    D = rng.standard_normal(shape)
    problem = regression(D, classes_of(rng, D), shares=np.ones(shape[0]))
    whole = ridge_by_loo(problem)
    monkeypatch.setattr("edrvfl._seam.arrays.CPU_BLOCK_BYTES", 1)
    blocks = ridge_by_loo(problem)
    assert blocks.lam == whole.lam
    np.testing.assert_allclose(blocks.loo, whole.loo, atol=1e-9)
