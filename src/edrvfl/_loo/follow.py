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

from .._inputs.rows import to_host
from .._seam.arrays import Array
from .calibrate import SMALLEST, Calibration
from .combine import RULES
from .jury import AnyJury

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


@dataclass(frozen=True, slots=True)
class Votes:
    """How the scores of a network's layers become its answer."""

    rule: str  # of `combine`: "softmax", "mean" or "vote" for classes, "value" for values
    layer_votes: str = "equal"  # or "prefix", or "weighted"
    calibration: str | None = "temperature"
    joint: bool = False  # whether the newest read-out is over all layers, and answers alone

    @property
    def keeps_predictions(self) -> bool:
        """Whether the predictions are those of the plain ensemble, whatever leave-one-out says."""
        rule = CALIBRATIONS.get(self.calibration or "", "temperature")
        return self.layer_votes == "equal" and rule == "temperature"


class Follower:
    """The leave-one-out answers of one growing network."""

    def __init__(self, jury: AnyJury, votes: Votes) -> None:
        self._jury, self._votes_by = jury, votes
        self._rule, self._weighted = RULES[votes.rule], votes.layer_votes == "weighted"
        # Without calibration a temperature still makes the log-losses of depths comparable.
        self._calibration = CALIBRATIONS[votes.calibration or "temperature"]
        self._total: Any = 0.0  # the votes so far
        self._votes: list[float] = []
        self._last: Calibration | None = None

    def add(self, scores: Array) -> Stage:
        """Take the leave-one-out scores (rows, k) of the next layer."""
        contribution = self._rule.contribute(to_host(scores).astype(float))
        if self._votes_by.joint:  # the newest read-out is over all layers and answers alone
            self._total, self._votes = 0.0, []
        vote = self._vote(contribution) if self._weighted and self._votes else 1.0
        self._total = self._total + vote * contribution
        self._votes.append(vote)
        P = self._rule.finish(self._total / sum(self._votes))
        self._last, calibrated = self._calibrated(P, self._calibration)
        figures = self._jury.score(calibrated), self._jury.loss(calibrated)
        if self._votes_by.calibration is None:
            return Stage(vote, None, *figures, P)
        return Stage(vote, self._last, *figures, calibrated)

    def _calibrated(self, P: numpy.ndarray, rule: str) -> tuple[Calibration | None, numpy.ndarray]:
        """Return the calibration of answers, if there is one, and the answers after it."""
        # With the rule "vote" a class without votes gets half a vote before the logarithm. The other rules
        # give 0 only by underflow.
        floor = 0.5 / max(1, len(self._votes)) if self._votes_by.rule == "vote" else SMALLEST
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
