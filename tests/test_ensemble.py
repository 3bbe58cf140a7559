"""How the layers' scores become one answer."""

import numpy as np
import pytest
from conftest import to_host

from edrvfl._ensemble import RULES, combine, combine_staged, softmax

SCORES = np.array([[[1.0, 0.0]], [[0.0, 3.0]], [[1.0, 0.0]]])  # three layers, one row, two classes


def test_softmax_of_huge_scores_is_finite(xp):
    P = to_host(softmax(xp.asarray([[1e300, -1e300], [0.0, 0.0]], dtype=xp.float64)))
    assert P.tolist() == [[1.0, 0.0], [0.5, 0.5]]


def test_rules_by_hand(xp):
    a, b = np.exp(1) / (np.exp(1) + 1), 1 / (1 + np.exp(3))
    expected = {
        "softmax": (a + b + a) / 3,
        "mean": 1 / (1 + np.exp(1 - 2 / 3)),
        "vote": 2 / 3,
    }
    for rule, first in expected.items():
        P = to_host(combine(xp.asarray(SCORES), rule))
        np.testing.assert_allclose(P, [[first, 1 - first]], rtol=1e-14)


@pytest.mark.parametrize("rule", RULES)
def test_each_stage_is_the_shallower_ensemble(xp, rng, rule):
    scores = xp.asarray(rng.standard_normal((4, 6, 3)))
    staged = combine_staged(scores, rule)
    for l in range(4):
        P = to_host(combine(scores[: l + 1, ...], rule))
        np.testing.assert_allclose(to_host(staged)[l], P, rtol=1e-13)
        np.testing.assert_allclose(P.sum(axis=-1), 1, rtol=1e-13)


def test_equal_scores_vote_for_the_first_class(xp):
    assert to_host(combine(xp.zeros((1, 1, 3), dtype=xp.float64), "vote")).tolist() == [[1.0, 0.0, 0.0]]
