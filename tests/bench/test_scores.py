import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import log_loss

from edrvfl.bench.data import load_dataset
from edrvfl.bench.scores import METRICS, METRICS_OF, calibration_error, score, score_values


def calibration_error_in_a_loop(y, P, bins):
    """The definition, bin by bin, in plain Python."""
    total = 0.0
    for b in range(bins):
        rows = [i for i, p in enumerate(P) if b / bins < max(p) <= (b + 1) / bins]
        if rows:
            accuracy = sum(int(np.argmax(P[i])) == y[i] for i in rows) / len(rows)
            confidence = sum(max(P[i]) for i in rows) / len(rows)
            total += len(rows) / len(y) * abs(accuracy - confidence)
    return total


@given(st.integers(0, 2**32 - 1), st.integers(1, 60), st.integers(2, 5))
def test_calibration_error_is_its_definition(seed, m, k):
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.full(k, 0.5), m)
    y = rng.integers(k, size=m)
    assert calibration_error(y, P) == pytest.approx(calibration_error_in_a_loop(y, P, 15), abs=1e-12)


def test_calibration_error_of_the_sure_and_right_the_sure_and_wrong_and_the_honest():
    y, sure = np.array([0, 1, 1]), np.eye(2)[[0, 1, 1]]
    assert calibration_error(y, sure) == 0
    assert calibration_error(1 - y, sure) == 1
    assert calibration_error(np.arange(4) % 2, np.full((4, 2), 0.5)) == 0
    assert calibration_error(np.zeros(4, dtype=int), np.full((4, 2), 0.5)) == 0.5


def test_a_class_that_the_training_rows_lack_has_no_probability():
    iris = load_dataset("iris")
    part = iris.splits[0]
    y = iris.y[part.test]
    P = np.tile([0.75, 0.25], (len(y), 1))  # of classes 2 and 0
    found = score(iris, part, np.full(len(y), 2), P, np.array([2, 0]))
    whole = np.tile([0.25, 0.0, 0.75], (len(y), 1))
    assert found["log_loss"] == pytest.approx(log_loss(y, whole, labels=[0, 1, 2]))
    assert found["calibration_error"] == pytest.approx(0.75 - np.mean(y == 2))
    assert found["balanced_accuracy"] == pytest.approx(1 / 3)
    assert set(found) == set(METRICS) - {"fit_seconds", "predict_seconds"}


@given(st.integers(0, 2**32 - 1), st.integers(2, 30))
def test_values_are_scored_by_their_definitions(seed, m):
    rng = np.random.default_rng(seed)
    y, answers = rng.normal(5, 3, m), rng.normal(5, 3, m)
    found = score_values(y, answers)
    squares = sum((a - b) ** 2 for a, b in zip(y, answers, strict=True))
    assert found["rmse"] == pytest.approx((squares / m) ** 0.5)
    assert found["r2"] == pytest.approx(1 - squares / sum((a - y.mean()) ** 2 for a in y))
    assert set(found) == set(METRICS_OF["regression"]) - {"fit_seconds", "predict_seconds"}
