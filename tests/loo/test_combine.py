"""How the layers' scores become one answer."""

import numpy as np
import pytest
from helpers import to_host
from hypothesis import given
from hypothesis import strategies as st

from edrvfl._loo.follow import CLASS_RULES, RULES, combine, combine_staged, log_odds, log_probabilities

SCORES = np.array([[[1.0, 0.0]], [[0.0, 3.0]], [[1.0, 0.0]]])  # three layers, one row, two classes


def layers(xp, scores):
    """Hand out the layers' scores in two batches, or in one if there is one layer."""
    return (xp.asarray(batch) for batch in (scores[:1], scores[1:]) if len(batch))


def test_huge_scores_give_finite_probabilities(xp):
    for rule in ("softmax", "mean"):
        P = to_host(combine(layers(xp, np.array([[[1e300, -1e300], [0.0, 0.0]]])), rule, [1.0]))
        assert P.tolist() == [[1.0, 0.0], [0.5, 0.5]]


def test_rules_by_hand(xp):
    a, b = np.exp(1) / (np.exp(1) + 1), 1 / (1 + np.exp(3))
    expected = {"softmax": (a + b + a) / 3, "mean": 1 / (1 + np.exp(1 - 2 / 3)), "vote": 2 / 3}
    assert expected.keys() == set(CLASS_RULES) == RULES.keys() - {"value"}
    for rule, first in expected.items():
        P = to_host(combine(layers(xp, SCORES), rule, [1.0] * 3))
        np.testing.assert_allclose(P, [[first, 1 - first]], rtol=1e-14)
    values = to_host(combine(layers(xp, SCORES), "value", [1.0, 0.5, 0.0]))
    np.testing.assert_allclose(values, [[1 / 1.5, 1.5 / 1.5]], rtol=1e-14)


@pytest.mark.parametrize("rule", RULES)
def test_each_stage_is_the_shallower_ensemble(xp, rng, rule):
    scores = rng.standard_normal((4, 6, 3))
    votes = [1.0, 0.5, 0.0, 2.0]
    staged = list(combine_staged(layers(xp, scores), rule, votes))
    assert len(staged) == 4
    for l in range(4):
        P = to_host(combine(layers(xp, scores[: l + 1]), rule, votes[: l + 1]))
        np.testing.assert_allclose(to_host(staged[l]), P, rtol=1e-13)
        if rule in CLASS_RULES:
            np.testing.assert_allclose(P.sum(axis=-1), 1, rtol=1e-13)


@pytest.mark.parametrize("rule", RULES)
def test_a_vote_of_two_is_the_layer_twice_and_one_of_zero_is_none(xp, rng, rule):
    scores = rng.standard_normal((3, 6, 4))
    weighted = combine(layers(xp, scores), rule, [1.0, 2.0, 0.0])
    repeated = combine(layers(xp, scores[[0, 1, 1]]), rule, [1.0, 1.0, 1.0])
    np.testing.assert_allclose(to_host(weighted), to_host(repeated), rtol=1e-13)


def test_equal_scores_vote_for_the_first_class(xp):
    assert to_host(combine(layers(xp, np.zeros((1, 1, 3))), "vote", [1.0])).tolist() == [[1.0, 0.0, 0.0]]


# Probabilities near 1/300 and a step of float32 apart have the same logarithm in float32.
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_largest_logarithm_is_that_of_the_largest_probability(xp, rng, dtype):
    P = np.full((500, 300), 1 / 300, dtype=dtype)
    top = rng.integers(300, size=500)
    P[np.arange(500), top] = np.nextafter(P[0, 0], np.array(1, dtype))
    if dtype == "float32":
        assert (np.log(P).argmax(axis=1) != top).any()  # the plain logarithm would not do
    log_P = to_host(log_probabilities(xp.asarray(P)))
    np.testing.assert_array_equal(log_P.argmax(axis=1), top)
    np.testing.assert_allclose(log_P, np.log(P.astype(float)), rtol=1e-6)
    assert log_P.dtype == dtype


@given(k=st.integers(2, 300), steps=st.integers(0, 6), seed=st.integers(0, 2**31))
def test_the_largest_logarithm_law(k, steps, seed):
    rng = np.random.default_rng(seed)
    P = np.full((20, k), 1 / k, dtype=np.float32)
    P *= 1 + np.finfo(np.float32).eps * rng.integers(-steps, steps + 1, P.shape).astype(np.float32)
    log_P = log_probabilities(P)
    np.testing.assert_array_equal(log_P.argmax(axis=1), P.argmax(axis=1))
    # the winner's ties stay ties, and nothing else reaches them
    reaches_the_top = [A.max(axis=1, keepdims=True) == A for A in (log_P, P)]
    np.testing.assert_array_equal(*reaches_the_top)


def test_ties_stay_ties(xp):
    P = xp.asarray([[0.25, 0.5, 0.25], [0.4, 0.4, 0.2], [0.0, 0.0, 1.0]], dtype=xp.float32)
    log_P = to_host(log_probabilities(P))
    assert log_P[0, 0] == log_P[0, 2]
    assert log_P[1, 0] == log_P[1, 1]
    assert log_P[2, 0] == log_P[2, 1] == np.log(np.finfo(np.float32).smallest_normal)  # finite


def test_two_classes_have_log_odds_whose_sign_is_the_answer(xp):
    below, above = np.nextafter(np.float32(0.5), np.float32([0, 1]))
    P = np.array([[0.2, 0.8], [0.5, 0.5], [below, above], [above, below]], dtype=np.float32)
    odds = to_host(log_odds(xp.asarray(P)))
    np.testing.assert_allclose(odds[0], np.log(4), rtol=1e-6)
    assert np.sign(odds).tolist() == [1, 0, 1, -1]
    assert log_odds(xp.ones((2, 3), dtype=xp.float64)).shape == (2, 3)
