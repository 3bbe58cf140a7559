"""What a fit is measured by on the test rows, by task, and its seconds."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.metrics import accuracy_score, log_loss, r2_score, recall_score, root_mean_squared_error

from .data import Dataset, Split, Task
from .device import to_host


@dataclass(frozen=True, slots=True)
class Metric:
    """A figure of a fit by its name in the records, and how it is shown."""

    key: str
    words: str  # as they stand inside a sentence
    digits: int
    scale: int = 1  # accuracies are shown in percent
    sign: int = -1  # 1 if more is better

    @property
    def title(self) -> str:
        return self.words[0].upper() + self.words[1:]

    @property
    def is_seconds(self) -> bool:
        return self.key in _SECONDS


ACCURACY = Metric("test_accuracy", "accuracy %", 2, scale=100, sign=1)
LOG_LOSS = Metric("log_loss", "log-loss", 4)
CALIBRATION = Metric("calibration_error", "calibration error", 4)
R2 = Metric("r2", "R²", 4, sign=1)
RMSE = Metric("rmse", "root mean squared error", 4)
FIT_SECONDS = Metric("fit_seconds", "fit s", 3)

_SECONDS = ("fit_seconds", "predict_seconds")
METRICS = ("test_accuracy", "balanced_accuracy", "log_loss", "calibration_error", *_SECONDS)
METRICS_OF: Mapping[Task, tuple[str, ...]] = {
    "classification": METRICS,
    "regression": ("r2", "rmse", *_SECONDS),
}
CALIBRATION_BINS = 15
# Metrics from elsewhere, by name: `edrvfl.bench.extend` adds them. Each takes what `score` compares.
MORE: Mapping[Task, dict[str, Callable[[np.ndarray, np.ndarray], float]]] = {
    "classification": {},
    "regression": {},
}


def fit_and_score(
    model: Any, X_train: Any, X_test: Any, d: Dataset, part: Split, **fit_params: Any
) -> dict[str, float]:
    """Fit on the training rows of a split, as inputs of the model's own kind, and score on its test rows."""
    start = time.perf_counter()
    model.fit(X_train, d.y[part.train], **fit_params)
    fitted = time.perf_counter()
    regression = d.task == "regression"
    answers = to_host(model.predict(X_test) if regression else model.predict_proba(X_test))
    predicted = time.perf_counter()
    if regression:
        scores = score_values(d.y[part.test], answers)
    else:
        scores = score(d, part, to_host(model.predict(X_test)), answers, to_host(model.classes_))
    return {**scores, "fit_seconds": fitted - start, "predict_seconds": predicted - fitted}


def score(
    d: Dataset, part: Split, labels: np.ndarray, P: np.ndarray, classes: np.ndarray
) -> Mapping[str, float]:
    """Compare answers with the test labels. Nothing else in the study reads them, but the sensitivity."""
    y = d.y[part.test]
    every = np.arange(int(d.y.max()) + 1)
    probabilities = np.zeros((len(y), len(every)))  # a class that the training rows lack gets zero
    probabilities[:, classes.astype(int)] = P
    recalls = recall_score(y, labels, labels=np.unique(y), average="macro", zero_division=0)
    return {
        "test_accuracy": float(accuracy_score(y, labels)),
        "balanced_accuracy": float(recalls),
        "log_loss": float(log_loss(y, probabilities, labels=every)),
        "calibration_error": calibration_error(y, probabilities),
        **{name: float(score(y, probabilities)) for name, score in MORE["classification"].items()},
    }


def score_values(y: np.ndarray, answers: np.ndarray) -> Mapping[str, float]:
    """Compare answers with the test values, by R^2 and, in the units of y, the root mean squared error."""
    more = {name: float(score(y, answers)) for name, score in MORE["regression"].items()}
    return {"r2": float(r2_score(y, answers)), "rmse": float(root_mean_squared_error(y, answers)), **more}


def calibration_error(y: np.ndarray, P: np.ndarray, bins: int = CALIBRATION_BINS) -> float:
    """sum_b |B_b| / m * |accuracy(B_b) - confidence(B_b)|, over bins of equal width.

    The confidence of a row is its largest probability; its bin is the one of (0, 1/15], (1/15, 2/15], ...

    >>> calibration_error(np.array([0, 1]), np.array([[0.75, 0.25], [0.75, 0.25]]))
    0.25
    """
    confidence = P.max(axis=1)
    gap = (P.argmax(axis=1) == y) - confidence
    places = np.clip(np.ceil(confidence * bins).astype(int) - 1, 0, bins - 1)
    return float(np.abs(np.bincount(places, weights=gap, minlength=bins)).sum() / len(y))
