"""Metrics for many networks at once against scikit-learn's for one."""

import numpy as np
import pytest
from helpers import to_host
from sklearn import config_context
from sklearn.metrics import accuracy_score, get_scorer, log_loss, r2_score

from edrvfl._search.metrics import METRICS, VALUE_METRICS, metric_of
from edrvfl._search.scorer import Sample, Scoring, Search, SplitScorer

THEIRS = {None: accuracy_score, "accuracy": accuracy_score, "neg_log_loss": log_loss}


def scorer_of(scoring, X, labels, weights=None, classes=(0, 1, 2)):
    classes = None if classes is None else np.asarray(classes)
    metric = metric_of(scoring, classifies=classes is not None)
    search = Search(Sample(X, labels, weights), None, Scoring(classes, metric))
    every = np.arange(len(labels))
    with config_context(array_api_dispatch=True):  # as where arrays of other libraries come from
        return SplitScorer.of(search, (every, every))


@pytest.mark.parametrize("scoring", METRICS)
@pytest.mark.parametrize("weighted", [False, True])
def test_metrics_agree_with_scikit_learn(xp, rng, scoring, weighted):
    P = rng.dirichlet(np.ones(3), (2, 40))
    y = rng.integers(0, 3, 40)
    weights = rng.uniform(size=40) if weighted else None
    on_xp = None if weights is None else xp.asarray(weights)
    found = scorer_of(scoring, xp.asarray(P[0]), y, on_xp)(xp.asarray(P), np.arange(3), [], 1)
    for i in range(2):
        answers = P[i] if scoring == "neg_log_loss" else P[i].argmax(axis=-1)
        expected = THEIRS[scoring](y, answers, sample_weight=weights)
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


@pytest.mark.parametrize("scoring", VALUE_METRICS)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("k", [None, 1, 3])
def test_metrics_of_values_agree_with_scikit_learn(xp, rng, scoring, weighted, k):
    y = 100 + rng.standard_normal((40,) if k is None else (40, k))
    Y = y.reshape(40, -1)
    V = Y + rng.standard_normal((2, *Y.shape))
    weights = rng.uniform(size=40) if weighted else None
    on_xp = None if weights is None else xp.asarray(weights)
    found = scorer_of(scoring, xp.asarray(V[0]), y, on_xp, classes=None)(xp.asarray(V), None, [], 1)
    scorer = get_scorer(scoring or "r2")
    for i in range(2):
        expected = scorer._sign * scorer._score_func(Y, V[i], sample_weight=weights, **scorer._kwargs)
        assert to_host(found)[i] == pytest.approx(expected, rel=1e-12)


def test_r2_of_outputs_that_do_not_vary_and_of_one_row(xp):
    Y = np.array([[1.0, 2.0, 3.0], [1.0, 2.0, 4.0]])
    V = Y + np.array([[0, 0, 0], [0, 1, 0], [0, 1, 1]])[:, None, :]
    found = scorer_of("r2", xp.asarray(Y), Y, classes=None)(xp.asarray(V), None, [], 1)
    np.testing.assert_allclose(to_host(found), [r2_score(Y, answers) for answers in V])
    alone = scorer_of("r2", xp.asarray(Y[:1]), Y[:1], classes=None)(xp.asarray(V[:, :1]), None, [], 1)
    assert np.isnan(to_host(alone)).all()


def test_a_metric_is_for_classes_or_for_values():
    assert metric_of("r2", classifies=True) is None
    assert metric_of("accuracy", classifies=False) is None
    assert metric_of(None, classifies=True) is metric_of("accuracy", classifies=True)
    assert metric_of(None, classifies=False) is metric_of("r2", classifies=False)
    assert metric_of(accuracy_score, classifies=True) is None
