"""Follow a network by its leave-one-out scores while it grows.

Layer by layer the scores say how much the layer's vote counts, how the combined answer is calibrated, and how
good the network is so far. All of it happens in NumPy and float64, whatever library the network is in: few
rows are followed (`judge_some` chooses them), and every library gets the same numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy
from scipy.optimize import minimize_scalar

from .._arrays import Array
from .._inputs.judged import Judged
from .._inputs.rows import to_host
from .._inputs.targets import Classes
from .._inputs.weights import RowWeights, rows_worth
from .calibrate import SMALLEST, Calibration, calibrate, log_loss
from .combine import RULES

LAYER_VOTES = ("equal", "prefix", "weighted")
PULL = 100  # rows that vote for equal votes
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

    def __init__(self, targets: Classes, weights: RowWeights, judged: Judged | None, estimator: Any) -> None:
        codes = to_host(targets.codes)
        counts, costs = (_host(part, len(codes)) for part in (weights.counts, weights.costs))
        # A row alone in its class was scored by a network that never saw the class, so it does not count.
        of_class = numpy.bincount(codes, counts, minlength=targets.width)[codes]
        honest = of_class - numpy.minimum(counts, 1) > 1e-9 * of_class
        some: Any = slice(None)
        stand_for = numpy.ones(1)
        if judged is not None:
            some, stand_for = to_host(judged.rows), to_host(judged.stand_for).astype(float)
        self._codes, self._honest, counts = codes[some], honest[some], counts[some]
        # Class weights, and the rows that a judged row stands for, shift the probabilities, but they are no
        # further evidence: n counts the judged rows.
        self._weights = counts / counts.max() * costs[some] * stand_for
        if self._honest.any():
            self._weights *= rows_worth(counts[self._honest]) / self._weights[self._honest].sum()
        self._ensemble = estimator.ensemble
        self._rule, self._weighted = RULES[estimator.ensemble], estimator.layer_votes == "weighted"
        self._calibrates = estimator.calibration is not None
        # Without calibration a temperature still makes the log-losses of depths comparable.
        self._calibration = CALIBRATIONS[estimator.calibration or "temperature"]
        self._total: Any = 0.0  # the votes so far
        self._votes: list[float] = []
        self._last: Calibration | None = None

    def add(self, scores: Array) -> Stage:
        """Take the leave-one-out scores (rows, k) of the next layer."""
        contribution = self._rule.contribute(to_host(scores).astype(float))
        vote = self._vote(contribution) if self._weighted and self._votes else 1.0
        self._total = self._total + vote * contribution
        self._votes.append(vote)
        P = self._rule.finish(self._total / sum(self._votes))
        self._last = self._calibrated(P, self._calibration)
        P = self._last(P)
        right = numpy.average(P.argmax(axis=-1) == self._codes, weights=self._weights)
        calibration = self._last if self._calibrates else None
        return Stage(vote, calibration, float(right), log_loss(P, self._codes, self._weights))

    def _calibrated(self, P: numpy.ndarray, rule: str) -> Calibration:
        rows = self._honest
        # of ten votes no vote counts as half a vote; other rules give no 0 but by underflow
        floor = 0.5 / max(1, len(self._votes)) if self._ensemble == "vote" else SMALLEST
        return calibrate(P[rows], self._codes[rows], self._weights[rows], rule, self._last, floor)

    def _vote(self, contribution: numpy.ndarray) -> float:
        """Weigh the next layer's vote: its share of the mean has the smallest log-loss after a temperature.

        The share is pulled to that of an equal vote, as if 100 rows had voted for it: without the pull
        small data choose their layers by chance (benchmarks/calibration.py).
        """
        depth, so_far = len(self._votes) + 1, self._total / sum(self._votes)
        n = self._weights.sum()

        def loss(share: float) -> float:
            P = self._rule.finish((1 - share) * so_far + share * contribution)
            P = self._calibrated(P, "temperature")(P)
            pull = (numpy.log(share) + (depth - 1) * numpy.log1p(-share)) / depth
            return log_loss(P, self._codes, self._weights) - PULL / n * float(pull)

        found = minimize_scalar(loss, bounds=(0.001, 0.999), method="bounded", options={"xatol": 1e-3})
        return float(found.x / (1 - found.x)) * sum(self._votes)


def _host(weights: Array | None, m: int) -> numpy.ndarray:
    """Return weights of m rows in NumPy and float64; None stands for ones."""
    return numpy.ones(m) if weights is None else to_host(weights).astype(float)


def keeps_predictions(estimator: Any) -> bool:
    """Tell whether the predictions are those of the plain ensemble, whatever leave-one-out says."""
    rule = CALIBRATIONS.get(estimator.calibration, "temperature")
    return estimator.layer_votes == "equal" and rule == "temperature"


def needs_loo(estimator: Any) -> bool:
    """Tell whether an estimator's parameters ask for the leave-one-out scores of every layer."""
    return estimator.calibration is not None or estimator.layer_votes != "equal"
