"""Lambda by leave-one-out, against leaving rows out for every candidate."""

import dataclasses
from functools import cache

import numpy as np
import pytest
from helpers import random_counts, random_regression, regression, to_host, with_twins
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


@cache
def left_out(shape, weighted, noise=None):
    """Draw a problem, of classes if there is no noise, and leave each row out of it for every candidate."""
    rng = np.random.default_rng(20220712)
    D, Y, omega = random_regression(rng, *shape, k=2)
    D, twins = with_twins(rng, D, 5)
    y = classes_of(rng, D) if noise is None else D[:, :2] + noise * Y
    counts = random_counts(rng, shape[0], weighted)
    omega = omega if weighted else np.ones(shape[0])
    Y = np.eye(3)[y] if noise is None else y
    scores = {lam: scores_without_each_row(D, Y, lam, omega, counts, twins) for lam in LAMBDAS}
    return (D, y, counts), {"omega": omega, "twins": twins}, Y, scores


shapes = pytest.mark.parametrize("shape", [(60, 8), (20, 40)], ids=["primal", "dual"])
side_by_side = pytest.mark.parametrize("side_by_side", [False, True], ids=["eigenvalues", "side by side"])


@shapes
@side_by_side
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
def test_the_best_of_all_wins_and_of_equals_the_larger(xp, shape, weighted, side_by_side):
    (D, y, counts), of_rows, Y, scores = left_out(shape, weighted)
    problem = regression(D, y, counts, **of_rows, xp=xp)
    chosen = ridge_by_loo(problem, side_by_side=side_by_side)
    weights = of_rows["omega"] * counts
    right = {lam: s.argmax(-1) == y for lam, s in scores.items()}
    accuracy = {lam: round(np.average(r, weights=weights), 12) for lam, r in right.items()}
    assert chosen.lam == max(lam for lam in accuracy if accuracy[lam] == max(accuracy.values()))
    np.testing.assert_array_equal(right_rows(problem, chosen), right[chosen.lam])
    expected = ridge(regression(D, Y, weights), chosen.lam).beta
    np.testing.assert_allclose(to_host(chosen.beta), expected, atol=1e-8)
    assert not bool(chosen.fell_back)


@shapes
@side_by_side
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("noise", [0.1, 3.0])
def test_of_values_the_smallest_squared_error_wins(xp, shape, weighted, noise, side_by_side):
    (D, _, counts), of_rows, Y, scores = left_out(shape, weighted, noise)
    chosen = ridge_by_loo(regression(D, Y, counts, **of_rows, xp=xp), side_by_side=side_by_side)
    weights = of_rows["omega"] * counts
    errors = {lam: np.average(((s - Y) ** 2).mean(axis=1), weights=weights) for lam, s in scores.items()}
    assert chosen.lam == min(errors, key=errors.get)
    np.testing.assert_allclose(to_host(chosen.loo), scores[chosen.lam], atol=1e-7)
    expected = ridge(regression(D, Y, weights), chosen.lam).beta
    np.testing.assert_allclose(to_host(chosen.beta), expected, atol=1e-8)


@shapes
@side_by_side
def test_the_candidates_go_with_the_scale_of_small_weights(xp, shape, side_by_side):
    """Weights and penalties times a power of two are the same problem."""
    (D, _, counts), of_rows, Y, scores = left_out(shape, True, 0.1)
    unit = 2.0**-24
    inner = normal_equations(regression(D[:, 3:], Y, unit * counts, xp=xp))
    problem = regression(D, Y, unit * counts, **of_rows, xp=xp)
    problem = dataclasses.replace(problem, of_inputs=inner if problem.primal else None, unit=unit)
    chosen = ridge_by_loo(problem, side_by_side=side_by_side)
    whole = ridge_by_loo(regression(D, Y, counts, **of_rows, xp=xp), side_by_side=side_by_side)
    assert chosen.lam == unit * whole.lam
    np.testing.assert_allclose(to_host(chosen.loo), scores[whole.lam], atol=1e-7)
    expected = ridge(regression(D, Y, of_rows["omega"] * unit * counts), chosen.lam).beta
    np.testing.assert_allclose(to_host(chosen.beta), expected, atol=1e-8)


def test_the_judged_rows_decide(xp, rng):
    D, _, base = random_regression(rng, 60, 8)
    y = classes_of(rng, D)
    some, stand_for = np.arange(0, 60, 4), rng.uniform(1, 5, 15)
    problem = regression(D, y, base, judged=some, xp=xp)
    judged = dataclasses.replace(problem.judged, stand_for=xp.asarray(stand_for))
    chosen = ridge_by_loo(dataclasses.replace(problem, judged=judged))
    scores = {lam: scores_without_each_row(D, np.eye(3)[y], lam, base, np.ones(60)) for lam in LAMBDAS}
    right = {lam: (scores[lam].argmax(-1) == y)[some] for lam in LAMBDAS}
    accuracy = {lam: round(np.average(r, weights=base[some] * stand_for), 12) for lam, r in right.items()}
    assert chosen.lam == max(lam for lam in accuracy if accuracy[lam] == max(accuracy.values()))


def test_inputs_that_were_summed_once_change_nothing(xp, rng):
    D, _, base = random_regression(rng, 60, 12)
    omega = np.where(rng.random(60) < 0.3, 1.7, 0.6)
    problem = regression(D, classes_of(rng, D), base, omega=omega, xp=xp)
    inner = normal_equations(dataclasses.replace(problem, D=problem.D[:, 3:], omega=None))
    chosen, known = ridge_by_loo(problem), ridge_by_loo(dataclasses.replace(problem, of_inputs=inner))
    assert chosen.lam == known.lam
    np.testing.assert_allclose(to_host(chosen.beta), to_host(known.beta), atol=1e-9)
    np.testing.assert_allclose(to_host(chosen.loo), to_host(known.loo), atol=1e-9)


def test_a_system_that_no_lambda_makes_regular(xp, rng):
    D = rng.standard_normal((40, 4))
    D = np.column_stack([D, D]) * 1e12
    problem = regression(D, (D[:, 0] > 0).astype(int), xp=xp)
    chosen = ridge_by_loo(problem)
    assert bool(chosen.fell_back)
    assert chosen.lam == 2.0**12
    assert right_rows(problem, chosen).mean() > 0.9


@pytest.mark.parametrize("shape", [(300, 5), (260, 400)], ids=["primal", "dual"])
def test_blocks_of_rows_change_nothing_but_rounding(rng, monkeypatch, shape):
    D = rng.standard_normal(shape)
    problem = regression(D, classes_of(rng, D))
    whole = ridge_by_loo(problem)
    monkeypatch.setattr("edrvfl._seam.arrays.CPU_BLOCK_BYTES", 1)
    blocks = ridge_by_loo(problem)
    assert blocks.lam == whole.lam
    np.testing.assert_allclose(blocks.loo, whole.loo, atol=1e-9)
