"""Follow a network by its leave-one-out scores while it grows.

Layer by layer the scores say how much the layer's vote counts, how the combined answer is calibrated, and how
good the network is so far.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy
from scipy.optimize import minimize_scalar

from .._inputs.judged import Judged
from .._inputs.rows import to_host
from .._inputs.targets import Targets
from .._inputs.weights import RowWeights
from .._seam.arrays import Array
from .calibrate import SMALLEST, Calibration
from .combine import RULES
from .jury import jury_of

LAYER_VOTES = ("equal", "prefix", "weighted")
PULL = 100  # rows that vote for equal votes
CALIBRATIONS: Mapping[str, str] = {"loo": "matrix", "matrix": "matrix", "temperature": "temperature"}


@dataclass(frozen=True, slots=True, eq=False)
class Stage:
    """What leave-one-out says about a network of some depth."""

    vote: float  # the weight of the newest layer's vote; the first layer has 1
    calibration: Calibration | None
    score: float  # the accuracy, or R^2
    loss: float  # the log-loss after calibration, or the mean squared error of standardised values
    P: numpy.ndarray  # (rows, k), what the network answers rows without them; values are standardised


class Follower:
    """The leave-one-out answers of one growing network."""

    def __init__(self, targets: Targets, weights: RowWeights, judged: Judged | None, estimator: Any) -> None:
        self._jury = jury_of(targets, weights, judged)
        self._ensemble = estimator.ensemble
        self._rule, self._weighted = RULES[estimator.ensemble], estimator.layer_votes == "weighted"
        self._calibrates = estimator.calibration is not None
        # Without calibration a temperature still makes the log-losses of depths comparable.
        self._calibration = CALIBRATIONS[estimator.calibration or "temperature"]
        self._joint = estimator.readout == "joint"
        self._total: Any = 0.0  # the votes so far
        self._votes: list[float] = []
        self._last: Calibration | None = None

    def add(self, scores: Array) -> Stage:
        """Take the leave-one-out scores (rows, k) of the next layer."""
        contribution = self._rule.contribute(to_host(scores).astype(float))
        if self._joint:  # the newest read-out is over all layers and answers alone
            self._total, self._votes = 0.0, []
        vote = self._vote(contribution) if self._weighted and self._votes else 1.0
        self._total = self._total + vote * contribution
        self._votes.append(vote)
        P = self._rule.finish(self._total / sum(self._votes))
        self._last, calibrated = self._calibrated(P, self._calibration)
        figures = self._jury.score(calibrated), self._jury.loss(calibrated)
        if not self._calibrates:
            return Stage(vote, None, *figures, P)
        return Stage(vote, self._last, *figures, calibrated)

    def _calibrated(self, P: numpy.ndarray, rule: str) -> tuple[Calibration | None, numpy.ndarray]:
        """Return the calibration of answers, if there is one, and the answers after it."""
        # of ten votes no vote counts as half a vote; other rules give no 0 but by underflow
        floor = 0.5 / max(1, len(self._votes)) if self._ensemble == "vote" else SMALLEST
        calibration = self._jury.calibration(P, rule, self._last, floor)
        return calibration, P if calibration is None else calibration(P)

    def _vote(self, contribution: numpy.ndarray) -> float:
        """Weigh the next layer's vote: its share of the mean has the smallest loss (after a temperature).

        The share is pulled to that of an equal vote, as if 100 rows had voted for it: without the pull
        small data choose their layers by chance (benchmarks/calibration.py).
        """
        depth, so_far = len(self._votes) + 1, self._total / sum(self._votes)
        n = self._jury.weights.sum()

        def loss(share: float) -> float:
            P = self._rule.finish((1 - share) * so_far + share * contribution)
            P = self._calibrated(P, "temperature")[1]
            pull = (numpy.log(share) + (depth - 1) * numpy.log1p(-share)) / depth
            return self._jury.nats(P) - PULL / n * float(pull)

        found = minimize_scalar(loss, bounds=(0.001, 0.999), method="bounded", options={"xatol": 1e-3})
        return float(found.x / (1 - found.x)) * sum(self._votes)


def keeps_predictions(estimator: Any) -> bool:
    """Tell whether the predictions are those of the plain ensemble, whatever leave-one-out says."""
    rule = CALIBRATIONS.get(estimator.calibration, "temperature")
    return estimator.layer_votes == "equal" and rule == "temperature"


def needs_loo(estimator: Any) -> bool:
    """Tell whether an estimator's parameters ask for the leave-one-out scores of every layer."""
    if estimator.ensemble == "value":
        return estimator.coverage_from is not None or estimator.layer_votes != "equal"
    return estimator.calibration is not None or estimator.layer_votes != "equal"
