"""Follow a network by its leave-one-out scores while it grows.

Layer by layer the scores say how much the layer's vote counts, how the combined answer is calibrated, and how
good the network is so far. All of it happens in NumPy and float64, whatever library the network is in: few
rows are followed (`judged_rows`), and every library gets the same numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy

from .._arrays import Array, take_entries
from .._inputs.rows import judged_rows, to_host
from .calibrate import Calibration, calibrate, log_loss
from .combine import RULES

LAYER_VOTES = ("equal", "prefix", "weighted")
CALIBRATIONS: Mapping[str, str] = {"loo": "matrix", "matrix": "matrix", "temperature": "temperature"}


@dataclass(frozen=True, slots=True, eq=False)
class Stage:
    """What leave-one-out says about a network of some depth."""

    vote: float  # the weight of the newest layer's vote; the first layer has 1
    calibration: Calibration | None
    accuracy: float
    log_loss: float  # after calibration


class Follower:
    """The leave-one-out answers of one growing network."""

    def __init__(self, codes: Array, weights: Array | None, estimator: Any) -> None:
        judged = judged_rows(codes.shape[0], codes)
        if judged is not None:
            codes = take_entries(codes, judged)
            weights = None if weights is None else take_entries(weights, judged)
        self._codes = to_host(codes)
        self._weights = None if weights is None else to_host(weights).astype(float)
        self._rule, self._layer_votes = RULES[estimator.ensemble], estimator.layer_votes
        self._calibrates = estimator.calibration is not None
        # Without calibration a temperature still makes the log-losses of depths comparable.
        self._calibration = CALIBRATIONS[estimator.calibration or "temperature"]
        self._total: Any = 0.0  # the votes so far
        self._weight = 0.0  # how much they count together
        self._last: Calibration | None = None

    def add(self, scores: Array) -> Stage:
        """Take the leave-one-out scores (rows, k) of the next layer."""
        contribution = self._rule.contribute(to_host(scores).astype(float))
        vote = self._vote(contribution)
        self._total, self._weight = self._total + vote * contribution, self._weight + vote
        P = self._rule.finish(self._total / self._weight)
        self._last = calibrate(P, self._codes, self._weights, self._calibration, self._last)
        P = self._last(P)
        right = numpy.average(P.argmax(axis=-1) == self._codes, weights=self._weights)
        loss = log_loss(P, self._codes, self._weights)
        return Stage(vote, self._last if self._calibrates else None, float(right), loss)

    def _vote(self, contribution: numpy.ndarray) -> float:
        return 1.0


def keeps_predictions(estimator: Any) -> bool:
    """Tell whether the predictions are those of the plain ensemble, whatever leave-one-out says."""
    rule = CALIBRATIONS.get(estimator.calibration, "temperature")
    return estimator.layer_votes == "equal" and rule == "temperature"


def needs_loo(estimator: Any) -> bool:
    """Tell whether an estimator's parameters ask for the leave-one-out scores of every layer."""
    return estimator.calibration is not None or estimator.layer_votes != "equal"
