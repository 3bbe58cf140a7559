"""Metrics for many networks at once against scikit-learn's for one."""

import numpy as np
import pytest
from helpers import to_host
from sklearn import config_context
from sklearn.metrics import accuracy_score, log_loss

from edrvfl._search.metrics import KERNELS, Sample, Search, SplitScorer

METRICS = {None: accuracy_score, "accuracy": accuracy_score, "neg_log_loss": log_loss}


def scorer_of(scoring, X, labels, weights=None, classes=(0, 1, 2)):
    search = Search(Sample(X, labels, weights), None, np.asarray(classes), scoring, np.nan, False)
    every = np.arange(len(labels))
    with config_context(array_api_dispatch=True):  # as where arrays of other libraries come from
        return SplitScorer.of(search, (every, every))


@pytest.mark.parametrize("scoring", KERNELS)
@pytest.mark.parametrize("weighted", [False, True])
def test_kernels_agree_with_scikit_learn(xp, rng, scoring, weighted):
    P = rng.dirichlet(np.ones(3), (2, 40))
    y = rng.integers(0, 3, 40)
    weights = rng.uniform(size=40) if weighted else None
    on_xp = None if weights is None else xp.asarray(weights)
    found = scorer_of(scoring, xp.asarray(P[0]), y, on_xp)(xp.asarray(P), np.arange(3), [], 1)
    for i in range(2):
        answers = P[i] if scoring == "neg_log_loss" else P[i].argmax(axis=-1)
        expected = METRICS[scoring](y, answers, sample_weight=weights)
        expected = -expected if scoring == "neg_log_loss" else expected
        assert to_host(found)[i] == pytest.approx(expected, abs=1e-12)


def test_a_class_that_was_not_trained_has_probability_0():
    labels = np.array(["a", "b", "c"])
    P = np.array([[[0.3, 0.7], [0.6, 0.4], [0.2, 0.8]]])
    of_all = scorer_of(None, P[0], labels, classes=labels)
    np.testing.assert_array_equal(of_all.spread(P, labels[[0, 2]])[0, 0], [0.3, 0, 0.7])
    np.testing.assert_array_equal(of_all(P, labels[[0, 2]], [], 1), [1 / 3])


def test_float32_is_averaged_in_float64():
    P = np.eye(3, dtype=np.float32)[[0, 1, 2, 0, 0, 0, 0]][None]
    found = scorer_of(None, P[0], np.arange(7) % 3)(P, np.arange(3), [], 1)
    assert found.dtype == np.float64
    assert found[0] == 5 / 7
