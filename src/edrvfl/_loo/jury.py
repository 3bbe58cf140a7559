"""The judged rows as evidence: what leave-one-out answers are measured and calibrated with.

`Jury` is for classes, `ValueJury` for values; a follower of answers need not know which it asks.

Where rows are in groups that are left out together, evidence is counted in groups: the weights add up to the
number of groups of equal weight that say as much, and not to that of rows.

All of it is NumPy and float64, whatever library a network is in: few rows are judged (`judge_some` chooses
them), and every library gets the same numbers.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy

from .._inputs.chosen import Judged
from .._inputs.rows import to_host, weights_on_host
from .._inputs.targets import Classes, RowWeights, Targets, Values, equal_rows, rows_worth
from .calibrate import SMALLEST, Calibration, calibrate, log_losses

TINY = 1e-30  # a loss that counts as none


@dataclass(frozen=True, slots=True, eq=False)
class Dealt:
    """How few judged rows are dealt, so that no row judges what its own label shaped."""

    folds: numpy.ndarray  # (n,), the number of each row's fold: the model that answers it learnt from others
    parts: numpy.ndarray  # (n,), the number of its part: its answer is calibrated by the other parts


def each(numbers: numpy.ndarray) -> Iterator[numpy.ndarray]:
    """Mark the rows of one number after another."""
    return (numbers == number for number in numpy.unique(numbers))


@dataclass(frozen=True, slots=True, eq=False)
class Jury:
    """The classes of the judged rows, how much each row counts, and which rows calibrate."""

    codes: numpy.ndarray  # (n,)
    weights: numpy.ndarray  # (n,); those of the honest rows add up to the number of rows they are worth
    honest: numpy.ndarray  # (n,) of bool; False for a row alone in its class
    counts: numpy.ndarray | None = None  # (n,), the weights without class weights: how often such rows come
    each: float = 1.0  # what a judged row counts on average if one of the class that is judged best counts 1
    dealt: Dealt | None = None  # where rows are few
    groups: numpy.ndarray | None = None  # (n,), the number of each row's group, if rows are in groups

    @classmethod
    def of(
        cls, targets: Classes, weights: RowWeights, judged: Judged | None, groups: numpy.ndarray | None = None
    ) -> Jury:
        """Take the judged rows' classes and weights from those of the training rows."""
        codes = to_host(targets.codes)
        counts, costs = (weights_on_host(part, len(codes)) for part in (weights.counts, weights.costs))
        # A row alone in its class was scored by a network that never saw the class, so it does not calibrate,
        # and so were the rows of a group that has all of its class.
        of_classes = numpy.bincount(codes, counts, minlength=targets.width)
        if judged is not None and judged.class_weights is not None:
            of_classes = judged.class_weights
        of_class = of_classes[codes]
        honest = of_class - _together(counts, codes, groups) > 1e-9 * of_class
        some: Any = slice(None)
        stand_for = numpy.ones(1)
        if judged is not None:
            some, stand_for = to_host(judged.rows), to_host(judged.stand_for).astype(float)
        codes, honest, counts = codes[some], honest[some], counts[some]
        groups = None if groups is None else groups[some]
        # Class weights, and the rows that a judged row stands for, shift the probabilities, but they are no
        # further evidence: n counts the judged rows.
        each = 1.0
        frequencies = counts / counts.max() * stand_for
        evidence = frequencies * costs[some]
        if honest.any():
            worth = rows_worth(counts[honest])
            said = worth if groups is None else groups_worth(frequencies[honest], groups[honest])
            evidence *= said / evidence[honest].sum()
            frequencies *= said / frequencies[honest].sum()
            if judged is not None:
                each = rows_worth(counts[honest], stand_for[honest] / stand_for[honest].min()) / worth
        return cls(codes, evidence, honest, frequencies, each, groups=groups)

    def calibration(
        self,
        P: numpy.ndarray,
        rule: str,
        start: Calibration | None = None,
        floor: float = SMALLEST,
        some: numpy.ndarray | bool = True,
    ) -> Calibration:
        """Calibrate the leave-one-out probabilities P (n, k); the arguments are those of `calibrate`.

        `some` marks rows that alone calibrate.

        All rows of a rare class are judged, and few of the others. A row of the rare class counts 1 and the
        others for the rows they stand for: if they added up to the judged rows, the rare class would be less
        than the uniform part of the answer.
        """
        rows = self.honest & some
        weights = self.weights[rows] * self.each
        return calibrate(P[rows], self.codes[rows], weights, rule, start, floor)

    def calibrated(self, P: numpy.ndarray, found: Calibration, rule: str, floor: float) -> numpy.ndarray:
        """Return P after a calibration that was found, as rows whose labels did not shape it would get it.

        Where rows are few, each part of them is calibrated by the other parts.
        """
        if self.dealt is None:
            return found(P)
        Q = numpy.empty_like(P)
        for inside in each(self.dealt.parts):
            Q[inside] = self.calibration(P, rule, found, floor, ~inside)(P[inside])
        return Q

    def some(self, which: numpy.ndarray) -> Jury:
        """Return the jury of the rows that are marked."""
        counts = None if self.counts is None else self.counts[which]
        return Jury(self.codes[which], self.weights[which], self.honest[which], counts, self.each)

    def score(self, P: numpy.ndarray) -> float:
        """Return the weighted share of rows whose largest probability is that of their class.

        A model that does not know a row's class cannot name it, though its prior may.
        """
        return float(numpy.average((P.argmax(axis=-1) == self.codes) & self.honest, weights=self.weights))

    def losses(self, P: numpy.ndarray) -> numpy.ndarray:
        """Return the weighted log-loss of each row."""
        return log_losses(P, self.codes) * self.weights

    def loss(self, P: numpy.ndarray) -> float:
        """Return the log-loss: the weighted mean of -log P of the rows' own classes."""
        return float(self.losses(P).sum() / self.weights.sum())

    nats = loss  # what a row says against the answers


@dataclass(frozen=True, slots=True, eq=False)
class ValueJury:
    """The values of the judged rows, and how much each row counts."""

    Y: numpy.ndarray  # (n, k), standardised
    weights: numpy.ndarray  # (n,); they add up to the number of rows that the judged rows are worth
    dealt: Dealt | None = None  # where rows are few
    groups: numpy.ndarray | None = None  # (n,), the number of each row's group, if rows are in groups

    @classmethod
    def of(
        cls, targets: Values, weights: RowWeights, judged: Judged | None, groups: numpy.ndarray | None = None
    ) -> ValueJury:
        """Take the judged rows' values and weights from those of the training rows."""
        counts = evidence = weights_on_host(weights.counts, targets.n_rows)
        Y = to_host(targets.Y).astype(float)
        if judged is not None:
            some, stand_for = to_host(judged.rows), to_host(judged.stand_for).astype(float)
            Y, counts, groups = Y[some], counts[some], None if groups is None else groups[some]
            evidence = counts * stand_for
        said = rows_worth(counts) if groups is None else groups_worth(evidence, groups)
        return cls(Y, evidence * (said / evidence.sum()), groups=groups)

    def calibration(self, P: numpy.ndarray, rule: str, *_: Any) -> None:
        """Values are not calibrated: a mean has no more to say than itself."""

    def calibrated(self, P: numpy.ndarray, *_: Any) -> numpy.ndarray:
        """Return the values as they are."""
        return P

    def some(self, which: numpy.ndarray) -> ValueJury:
        """Return the jury of the rows that are marked."""
        return ValueJury(self.Y[which], self.weights[which])

    def score(self, P: numpy.ndarray) -> float:
        """Return R^2, the mean over the outputs, whose variance is 1."""
        return 1.0 - self.loss(P)

    def losses(self, P: numpy.ndarray) -> numpy.ndarray:
        """Return the weighted squared error of each row."""
        errors: numpy.ndarray = numpy.square(P - self.Y).mean(axis=-1) * self.weights
        return errors

    def loss(self, P: numpy.ndarray) -> float:
        """Return the weighted mean of the squared errors."""
        return float(self.losses(P).sum() / self.weights.sum())

    def nats(self, P: numpy.ndarray) -> float:
        """Return minus the log-likelihood of a row for errors that are normal with the variance they have."""
        return 0.5 * math.log(max(self.loss(P), TINY))


AnyJury = Jury | ValueJury


def jury_of(
    targets: Targets,
    weights: RowWeights,
    judged: Judged | None,
    dealt: Dealt | None = None,
    groups: numpy.ndarray | None = None,
) -> AnyJury:
    """Return the jury for classes or for values. Rows of the same number in `groups` (m,) are one group."""
    kind = ValueJury if isinstance(targets, Values) else Jury
    jury: AnyJury = replace(kind.of(targets, weights, judged, groups), dealt=dealt)  # type: ignore[arg-type]
    return jury


def group_sums(values: numpy.ndarray, groups: numpy.ndarray) -> tuple[numpy.ndarray, numpy.ndarray]:
    """Return the sum of the values of each group, and the place of each row's group among these sums."""
    place = numpy.unique(groups, return_inverse=True)[1]
    return numpy.bincount(place, values), place


def groups_worth(weights: numpy.ndarray, groups: numpy.ndarray) -> float:
    """Return how many groups of equal weight say as much as groups of rows with these weights."""
    return equal_rows(group_sums(weights, groups)[0])


def counted_once(counts: numpy.ndarray, groups: numpy.ndarray | None) -> numpy.ndarray:
    """Return the weights of rows for quantiles about a row of a new group: those of each group add up to 1.

    A group is one draw, whatever its size and the weights of its rows; which of its rows comes is another.
    """
    if groups is None:
        return counts
    sums, place = group_sums(counts, groups)
    once: numpy.ndarray = counts / sums[place]
    return once


def _together(counts: numpy.ndarray, codes: numpy.ndarray, groups: numpy.ndarray | None) -> numpy.ndarray:
    """Return for each row how much weight leaves its class when it is left out."""
    if groups is None:
        return counts
    pairs = numpy.unique(groups, return_inverse=True)[1] * (int(codes.max()) + 1) + codes
    sums, place = group_sums(counts, pairs)
    together: numpy.ndarray = sums[place]
    return together


def best_of(jury: AnyJury, tried: Sequence[numpy.ndarray]) -> tuple[int, list[int]]:
    """Return which answers (n, k) are best, for all rows and for each fold by the others.

    Of equal ones it is the first. So a row has no say in what answers it.
    """
    assert jury.dealt is not None
    losses = numpy.array([numpy.bincount(jury.dealt.folds, jury.losses(P)) for P in tried])
    total = losses.sum(axis=1)
    return int(total.argmin()), (total[:, None] - losses).argmin(axis=0).tolist()
