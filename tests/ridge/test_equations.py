"""D'WD and D'WY: sums of parts, weights of two values, inputs that are summed once."""

import dataclasses

import numpy as np
import pytest
from helpers import random_regression, regression, to_host
from hypothesis import given
from hypothesis import strategies as st

from edrvfl._inputs.targets import Values
from edrvfl._ridge.equations import NormalEquations, Regression, layer_equations, normal_equations, reweighted


def plain_sums(D, Y, w):
    """Return D'WD and D'WY by the formula, for features, targets and weights in NumPy."""
    return NormalEquations(D.T @ np.diag(w) @ D, D.T @ np.diag(w) @ Y)


def assert_equal(equations, expected, atol=1e-10):
    np.testing.assert_allclose(to_host(equations.G), expected.G, atol=atol)
    np.testing.assert_allclose(to_host(equations.R), expected.R, atol=atol)


def two_values(rng, m):
    """Draw weights of a layer: one value for the rows that were right, a larger one for the wrong ones."""
    return np.where(rng.random(m) < 0.3, 1.7, 0.6)


@pytest.mark.parametrize("weighted", [False, True])
def test_sums_are_the_printed_ones(xp, rng, weighted):
    D, Y, w = random_regression(rng, 40, 6)
    omega = two_values(rng, 40)
    ours = normal_equations(regression(D, Y, *([w] if weighted else []), omega=omega, xp=xp))
    assert_equal(ours, plain_sums(D, Y, w * omega if weighted else omega))


def test_sums_of_classes_need_no_target_matrix(xp, rng):
    D, y = rng.standard_normal((40, 6)), rng.integers(0, 3, 40)
    y[0] = 2
    assert_equal(normal_equations(regression(D, y, xp=xp)), plain_sums(D, np.eye(3)[y], np.ones(40)))


@given(seed=st.integers(0, 2**31), m=st.integers(2, 60), c=st.integers(1, 8), data=st.data())
def test_the_sums_of_two_parts_add_up(seed, m, c, data):
    D, Y, w = random_regression(np.random.default_rng(seed), m, c)
    cut = data.draw(st.integers(1, m - 1))
    first, second = (normal_equations(regression(D[i], Y[i], w[i])) for i in (slice(0, cut), slice(cut, m)))
    whole = normal_equations(regression(D, Y, w))
    assert_equal(first + second, whole)
    named = data.draw(st.permutations(range(m)))
    some, others = (normal_equations(regression(D, Y, w), np.array(i)) for i in (named[:cut], named[cut:]))
    assert_equal(some + others, whole)


@given(seed=st.integers(0, 2**31), factor=st.floats(0.01, 100))
def test_a_factor_makes_every_row_weigh_more(seed, factor):
    D, Y, w = random_regression(np.random.default_rng(seed), 20, 4)
    assert_equal(normal_equations(regression(D, Y, w)) * factor, plain_sums(D, Y, w * factor), atol=1e-8)


@pytest.mark.parametrize("based", [False, True])
@pytest.mark.parametrize("case", ["two values", "all right", "none"])
def test_sums_that_get_the_weights_of_a_layer(xp, rng, based, case):
    D, Y, w = random_regression(rng, 40, 6)
    omega = {"two values": two_values(rng, 40), "all right": np.full(40, 0.6), "none": None}[case]
    base = w if based else None
    shared = normal_equations(regression(D, Y, base, xp=xp))
    before = to_host(shared.G).copy()
    ours = reweighted(shared, regression(D, Y, base, omega=omega, xp=xp))
    weights = (w if based else np.ones(40)) * (1 if omega is None else omega)
    assert_equal(ours, plain_sums(D, Y, weights))
    ours.G[...] = 0.0  # whoever solves overwrites the sums, and others share them
    np.testing.assert_array_equal(to_host(shared.G), before)


@given(seed=st.integers(0, 2**31), m=st.integers(2, 60), share=st.floats(0, 1), low=st.floats(0.01, 1))
def test_reweighting_law(seed, m, share, low):
    rng = np.random.default_rng(seed)
    D, Y, w = random_regression(rng, m, 5)
    omega = np.where(rng.random(m) < share, low, 1.0 + low)
    ours = reweighted(normal_equations(regression(D, Y, w)), regression(D, Y, w, omega=omega))
    assert_equal(ours, plain_sums(D, Y, w * omega))


@pytest.mark.parametrize("based", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("targets", ["values", "classes"])
def test_inputs_that_were_summed_once_give_the_same_equations(xp, rng, based, weighted, targets):
    n, (D, Y, w) = 3, random_regression(rng, 40, 14)
    y = Y if targets == "values" else np.arange(40) % 3
    problem = regression(D, y, w if based else None, omega=two_values(rng, 40) if weighted else None, xp=xp)
    inner = normal_equations(dataclasses.replace(problem, D=problem.D[:, n:], omega=None))
    assert inner.G.shape == (11, 11)
    ours = layer_equations(dataclasses.replace(problem, of_inputs=inner))
    direct = normal_equations(problem)
    assert_equal(ours, NormalEquations(to_host(direct.G), to_host(direct.R)))


def test_blocks_of_rows_change_nothing_but_rounding(rng, limit):
    D, Y, w = random_regression(rng, 700, 9)
    problem = regression(D, Y, w, omega=two_values(rng, 700))
    inner = normal_equations(dataclasses.replace(problem, D=D[:, 2:], omega=None))
    limit(CPU_BLOCK_BYTES=1)
    expected = plain_sums(D, Y, w * problem.omega)
    assert_equal(normal_equations(problem), expected)
    assert_equal(layer_equations(dataclasses.replace(problem, of_inputs=inner)), expected)


def test_a_stack_shares_what_is_not_its_own(xp, rng):
    D, Y, w = random_regression(rng, 40, 6)
    omega = np.stack([two_values(rng, 40) for _ in range(3)])
    ours = normal_equations(regression(D[None], Y, w, omega=omega, xp=xp))
    assert ours.G.shape == (3, 6, 6)
    for i in range(3):
        assert_equal(NormalEquations(ours.G[i, ...], ours.R[i, ...]), plain_sums(D, Y, w * omega[i]))


def test_a_member_of_a_stack_takes_its_own_and_what_is_common(xp, rng):
    D, Y, w = random_regression(rng, 40, 6)
    problem = regression(D[None, None], Y, w, omega=rng.uniform(1, 2, (2, 1, 40)), xp=xp)
    member = problem.member((1, 2), (2, 3))
    np.testing.assert_array_equal(to_host(member.D), D)
    np.testing.assert_array_equal(to_host(member.omega), to_host(problem.omega)[1, 0])
    assert member.base is problem.base


def test_sums_in_float64_of_features_in_float32(xp, rng):
    D, Y, _ = (a.astype(np.float32) for a in random_regression(rng, 500, 4))
    D += 1000  # sums in float32 would keep two digits of what varies
    ours = normal_equations(regression(D, Y, xp=xp), dtype=xp.float64)
    assert ours.G.dtype == ours.R.dtype == xp.float64
    expected = plain_sums(D.astype(float), Y.astype(float), np.ones(500))
    np.testing.assert_allclose(to_host(ours.G), expected.G, rtol=1e-13)
    np.testing.assert_allclose(to_host(ours.R), expected.R, rtol=1e-11)


def test_sums_of_many_rows_in_float32_do_not_lose_digits(rng, limit):
    limit(CPU_BLOCK_BYTES=2**16)  # many blocks
    D = rng.uniform(0, 1, (60_000, 63)).astype(np.float32)
    Y = np.ones((60_000, 1), np.float32)
    ours = normal_equations(regression(D, Y))
    assert ours.G.dtype == ours.R.dtype == np.float64
    exact, simple = D.astype(float).T @ D.astype(float), np.zeros((63, 63), np.float32)
    for start in range(0, len(D), 256):
        simple += D[start : start + 256].T @ D[start : start + 256]
    assert 8 * np.abs(ours.G / exact - 1).max() < np.abs(simple / exact - 1).max()
    np.testing.assert_allclose(ours.R[:, 0], D.sum(axis=0, dtype=float), rtol=2e-7)


@pytest.mark.parametrize("based", [False, True])
@pytest.mark.parametrize("named", [False, True])
def test_where_widths_are_aligned_the_sums_have_the_width_of_the_features(based, named):
    # torch's "meta" device counts as an accelerator and computes shapes alone, so this runs without a GPU
    torch = pytest.importorskip("torch")
    D, Y, w = (torch.empty(shape, device="meta") for shape in ((40, 19), (40, 3), (40,)))
    only = torch.empty((10,), device="meta", dtype=torch.int64) if named else None
    ours = normal_equations(Regression(D, Values(Y), w if based else None), only)
    assert ours.G.shape == (19, 19)
    assert ours.R.shape == (19, 3)
