"""From the layers' scores to one answer (the last line of Algorithm 1), and to what leave-one-out says of it.

Layer by layer the scores say how much the layer's vote counts, how the combined answer is calibrated, and how
good the network is so far.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy
from scipy.optimize import minimize_scalar
from scipy.special import softmax

from .._inputs.rows import to_host
from .._seam.arrays import Array, array_namespace, from_numpy
from .calibrate import SMALLEST, Calibration
from .jury import AnyJury


@dataclass(frozen=True, slots=True)
class Rule:
    """How layers become one answer: what each layer contributes, and how the mean is finished."""

    contribute: Callable[[Array], Array]
    finish: Callable[[Array], Array]


_softmax = partial(softmax, axis=-1)


def _ballot(scores: Array) -> Array:
    """Give 1 to the class with the largest score, the first of equal ones, and 0 to the others."""
    xp = array_namespace(scores)
    classes = from_numpy(range(scores.shape[-1]), scores, xp.int64)
    return xp.astype(xp.argmax(scores, axis=-1, keepdims=True) == classes, scores.dtype)


def _unchanged(values: Array) -> Array:
    return values


RULES: Mapping[str, Rule] = {
    "softmax": Rule(_softmax, _unchanged),
    "mean": Rule(_unchanged, _softmax),
    "vote": Rule(_ballot, _unchanged),
    "value": Rule(_unchanged, _unchanged),
}
CLASS_RULES = ("softmax", "mean", "vote")  # for a classifier to choose from


def combine_staged(scores: Iterator[Array], rule: str, votes: Sequence[float]) -> Iterator[Array]:
    """Yield the probabilities (rows, k), not yet calibrated, of the first one, two, ... layers together.

    The layers' scores come in batches of consecutive layers, (layers, rows, k). A layer counts as much as its
    number in `votes` says.
    """
    total: Array = 0.0
    depth = 0
    for batch in scores:
        contributions = RULES[rule].contribute(batch)
        for i in range(batch.shape[0]):
            total, depth = total + votes[depth] * contributions[i, ...], depth + 1
            yield RULES[rule].finish(total / sum(votes[:depth]))


def combine(scores: Iterator[Array], rule: str, votes: Sequence[float]) -> Array:
    """Return the probabilities (rows, k) of all layers together; the arguments are as in `combine_staged`."""
    total: Array = 0.0
    depth = 0
    for batch in scores:
        contributions = RULES[rule].contribute(batch)
        some = votes[depth : depth + batch.shape[0]]
        if any(vote != 1 for vote in some):
            contributions = from_numpy(some, batch)[:, None, None] * contributions
        total = total + array_namespace(batch).sum(contributions, axis=0)
        depth += batch.shape[0]
    return RULES[rule].finish(total / sum(votes))


def log_probabilities(P: Array) -> Array:
    """Return finite logarithms of the probabilities P (rows, k), whose largest is where P is largest.

    In low precision the logarithm merges neighbours: where another class reaches the winner's logarithm
    with a smaller probability, it is moved one step down.
    """
    xp = array_namespace(P)
    limits = xp.finfo(P.dtype)
    log_P = xp.log(xp.clip(P, float(limits.smallest_normal), 1.0))
    top = xp.max(log_P, axis=-1, keepdims=True)
    merged = (log_P == top) & (xp.max(P, axis=-1, keepdims=True) > P)
    return xp.where(merged, log_P * (1 + 2 * float(limits.eps)), log_P)


def log_odds(P: Array) -> Array:
    """Return `log_probabilities` (rows, k); for two classes the log-odds (rows,) of the second class."""
    log_P = log_probabilities(P)
    return log_P[..., 1] - log_P[..., 0] if P.shape[-1] == 2 else log_P


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


def answers_of(scores: Sequence[Array], rule: str, jury: AnyJury) -> numpy.ndarray:
    """Return what layers with equal votes answer rows without them, from their scores (rows, k) each."""
    by = RULES[rule]
    P = by.finish(sum(by.contribute(to_host(one).astype(float)) for one in scores) / len(scores))
    floor = 0.5 / len(scores) if rule == "vote" else SMALLEST
    found = jury.calibration(P, "temperature", None, floor)
    answers: numpy.ndarray = P if found is None else jury.calibrated(P, found, "temperature", floor)
    return answers


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
        found = self._last = self._found(P, self._calibration)
        calibrated = P if found is None else self._jury.calibrated(P, found, self._calibration, self._floor)
        figures = self._jury.score(calibrated), self._jury.loss(calibrated)
        if self._votes_by.calibration is None:
            return Stage(vote, None, *figures, P)
        return Stage(vote, self._last, *figures, calibrated)

    @property
    def _floor(self) -> float:
        """What is added to probabilities before the logarithm.

        With the rule "vote" a class without votes gets half a vote. The other rules give 0 only by underflow.
        """
        return 0.5 / max(1, len(self._votes)) if self._votes_by.rule == "vote" else SMALLEST

    def _found(self, P: numpy.ndarray, rule: str) -> Calibration | None:
        """Return the calibration of answers, if there is one."""
        return self._jury.calibration(P, rule, self._last, self._floor)

    def _vote(self, contribution: numpy.ndarray) -> float:
        """Weigh the next layer's vote: its share of the mean has the smallest loss (after a temperature).

        The share is pulled to that of an equal vote, as if 100 rows had voted for it: without the pull
        small data choose their layers by chance (benchmarks/calibration.py).
        """
        depth, so_far = len(self._votes) + 1, self._total / sum(self._votes)
        n = self._jury.weights.sum()

        def loss(share: float) -> float:
            P = self._rule.finish((1 - share) * so_far + share * contribution)
            found = self._found(P, "temperature")
            P = P if found is None else found(P)
            pull = (numpy.log(share) + (depth - 1) * numpy.log1p(-share)) / depth
            return self._jury.nats(P) - PULL / n * float(pull)

        found = minimize_scalar(loss, bounds=(0.001, 0.999), method="bounded", options={"xatol": 1e-3})
        return float(found.x / (1 - found.x)) * sum(self._votes)
