"""How far an answer may be off: prediction intervals of values and prediction sets of classes.

Both come from rows whose own targets the answer did not see. Two kinds of rows serve:

- Rows held back from the fit (split conformal prediction). Of rows like these at least the stated share is
  covered, over draws of the held-back rows and of a new one, whatever the network is worth. Where too few
  rows were held back the interval is infinite, or the set is full.
- The training rows, each answered without it (leave-one-out), and where rows are few by a model that its
  target did not shape. No row is lost, but nothing is guaranteed: the answers are those of many models. On
  fresh rows of synthetic problems such intervals and sets of 90 % covered about 90 % at every size
  (benchmarks/honesty.py).

Weights count rows. Those of training rows add up to the number of rows they are worth, as those of a jury do:
weight 2 is the row twice. A held-back row is one row, whatever its weight: there the weights add up to the
number of rows of equal weight that say as much, and their scale is no matter. Everything is found on the
host in float64, so every array library gets the same numbers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated

import numpy

from .._inputs.rows import to_host
from .._seam.arrays import Array, array_namespace, from_numpy
from .._seam.fields import floats

POWERS = (0.25, 0.5, 0.75, 1.0)  # of the spread, beside 0, with which all intervals are equally wide
JUDGED_BY = (0.8, 0.9, 0.95)  # the coverages at which the powers are compared
SMALL = 0.1  # of the mean absolute residual, added before the logarithm: hits by chance are no small spread


def conformal_quantile(values: numpy.ndarray, weights: numpy.ndarray, level: float) -> float:
    """min {v : the weights of the values up to v add up to (n + 1) level or more}, n being all weights.

    The values are sorted. A new value of the same kind is at most this with probability `level` or more:
    among n + 1 values, each is the new one as likely as any other. Infinite if even all values are too few.
    """
    reached = numpy.cumsum(weights)
    needed = (weights.sum() + 1) * level * (1 - 1e-9)  # rounding must not ask for one row more
    place = int(numpy.searchsorted(reached, needed))
    return float(values[place]) if place < len(values) else math.inf


@dataclass(frozen=True, slots=True, eq=False)
class OwnProbabilities:
    """What rows gave their own classes, smallest first: what prediction sets of classifiers need."""

    values: Annotated[Array, floats("rows", infinite=True, own=True)]  # sorted
    weights: Annotated[Array, floats("rows", low=0, own=True)]

    @classmethod
    def of(cls, own: numpy.ndarray, weights: numpy.ndarray) -> OwnProbabilities:
        """Sort the probabilities (n,) of the rows' own classes; -inf for a row that no set would cover.

        The weights say how often rows like these come. Class weights are no part of them: a set covers the
        stated share of the rows as they come. A row alone in its class is one that no set would cover:
        without it the fit would not know the class.
        """
        order = numpy.argsort(own, kind="stable")
        return cls(own.astype(numpy.float64)[order], weights.astype(numpy.float64)[order])

    def threshold(self, coverage: float) -> float:
        """Return the probability from which on a class is in the set; -inf if there are too few rows."""
        values, weights = to_host(self.values), to_host(self.weights)
        return -conformal_quantile(-values[::-1], weights[::-1], coverage)


def prediction_sets(P: Array, record: OwnProbabilities, coverage: float) -> Array:
    """P >= t: tell which classes are in the set of each row of P (rows, k), of the shape of P.

    One threshold serves all rows and classes (LAC, the least ambiguous classifier of Sadinle, Lei and
    Wasserman 2019): of all rules with this coverage it has the smallest sets on average. The share of rows
    whose class is in the set is `coverage` or more over all rows together. It may be far lower in a class
    that is rare or hard. The most probable class is always in the set, so no set is empty, and where the
    answers are right more often than `coverage`, so are the sets. With fewer rows than
    coverage / (1 - coverage) all classes are in every set.
    """
    xp = array_namespace(P)
    # the same probability may have come in another precision, or by another order of sums
    t = record.threshold(coverage) * (1 - 8 * float(xp.finfo(P.dtype).eps))
    return (xp.max(P, axis=-1, keepdims=True) == P) | (t <= P)


@dataclass(frozen=True, slots=True, eq=False)
class Widths:
    """How the widths of intervals follow the predicted spread s: they are in proportion to s^power.

    Beyond what was seen, the spread stays as it was.
    """

    powers: Annotated[Array, floats("k", low=0, high=1, own=True)]
    # the bounds of log s among the rows that chose the powers
    low: Annotated[Array, floats("k", own=True)]
    high: Annotated[Array, floats("k", own=True)]

    def __call__(self, log_spread: Array) -> Array:
        """(s / largest s)^power, for log s of the shape (rows, k), s being held between the bounds.

        Ratios of spreads are representable in float32 whatever the units of the residuals are.
        """
        xp = array_namespace(log_spread)
        powers, low, high = (
            from_numpy(to_host(part), log_spread) for part in (self.powers, self.low, self.high)
        )
        return xp.exp(powers * (xp.minimum(xp.maximum(log_spread, low), high) - high))


@dataclass(frozen=True, slots=True, eq=False)
class Margins:
    """Target less prediction of some rows, over the width there, sorted: what intervals need."""

    values: Annotated[Array, floats("k", "rows", own=True)]  # each output sorted
    weights: Annotated[Array, floats("k", "rows", low=0, own=True)]
    widths: Widths | None  # None where the width is the same everywhere
    guaranteed: bool  # the rows were held back from the fit

    @classmethod
    def of(
        cls,
        residuals: numpy.ndarray,
        weights: numpy.ndarray,
        widths: Widths | None = None,
        log_spread: numpy.ndarray | None = None,
        guaranteed: bool = False,
    ) -> Margins:
        """Sort residuals (n, k), divided by the widths at log_spread (n, k) if widths vary.

        With `guaranteed` the rows were held back. They must have chosen neither the widths nor the model of
        the spread.
        """
        values = residuals.astype(numpy.float64)
        if widths is not None and log_spread is not None:
            values = values / widths(log_spread.astype(numpy.float64))
        order = numpy.argsort(values, axis=0, kind="stable")
        ordered = numpy.take_along_axis(values, order, axis=0)
        return cls(ordered.T.copy(), weights.astype(numpy.float64)[order.T], widths, guaranteed)

    def ends(self, coverage: float) -> tuple[numpy.ndarray, numpy.ndarray]:
        """Return the lower and the upper end of each output's interval around 0, in units of the width."""
        pairs = zip(to_host(self.values), to_host(self.weights), strict=True)
        found = numpy.array([_ends(v, w, coverage) for v, w in pairs])
        return found[:, 0], found[:, 1]


def bounds(
    record: Margins, prediction: Array, log_spread: Array | None, coverage: float
) -> tuple[Array, Array]:
    """prediction + width (lower, upper): return the ends of intervals for predictions (rows, k).

    Each side misses (1 - coverage) / 2 of the rows at most, so intervals need not be symmetric. Each output
    has its own intervals and coverage. log_spread (rows, k) is asked for where the record has widths.

    An interval is infinite if there are fewer than (1 + coverage) / (1 - coverage) rows, 19 for 0.9: among
    so few errors that of a new row may well be the largest. With held-back rows the share of rows in their
    intervals is `coverage` or more; with leave-one-out that was measured (benchmarks/honesty.py).
    """
    lower, upper = (from_numpy(end, prediction) for end in record.ends(coverage))
    if record.widths is None:
        return prediction + lower, prediction + upper
    width = record.widths(log_spread)
    return prediction + width * lower, prediction + width * upper


def spread_targets(residuals: numpy.ndarray, weights: numpy.ndarray) -> numpy.ndarray:
    """log(|r| + a tenth of mean |r|), for residuals (n, k): the targets of a model of the spread.

    Where all residuals are 0 the targets are 0 too.
    """
    size = numpy.abs(residuals.astype(numpy.float64))
    mean = numpy.average(size, axis=0, weights=weights)
    scale = numpy.where(mean == 0, 1.0, mean)  # a tenth of the smallest number would be 0
    return numpy.where(mean == 0, 0.0, numpy.log(size / scale + SMALL) + numpy.log(scale))


def choose_widths(
    residuals: numpy.ndarray, log_spread: numpy.ndarray, weights: numpy.ndarray
) -> Widths | None:
    """Choose for each output how far widths follow the spread, by leave-one-out interval scores.

    Of each power the Winkler score (width plus 2 / (1 - coverage) times what a row is outside) is compared
    with that of the constant width, row by row, at three coverages. A power wins by its mean difference
    plus one standard error, so the width stays constant unless there is evidence. None if all do. On test
    rows of ten datasets this lowered the score at 90 % by 10 % (benchmarks/intervals.py).

    Parameters
    ----------
    residuals : array of shape (n, k), leave-one-out residuals
    log_spread : array of shape (n, k), what a model fitted to `spread_targets` without the row predicts
    weights : array of shape (n,)
    """
    r, w = residuals.astype(numpy.float64), weights.astype(numpy.float64)
    seen = spread_targets(r, w)
    # a row that a model without it knows nothing about may get any answer
    log_s = numpy.clip(log_spread.astype(numpy.float64), seen.min(axis=0), seen.max(axis=0))
    powers = numpy.array([_power(of_r, of_s, w) for of_r, of_s in zip(r.T, log_s.T, strict=True)])
    if not powers.any():
        return None
    return Widths(powers, log_s.min(axis=0), log_s.max(axis=0))


def interval_scores(
    residuals: numpy.ndarray, lower: numpy.ndarray, upper: numpy.ndarray, coverage: float
) -> numpy.ndarray:
    """u - l + 2/(1 - coverage) (max(l - r, 0) + max(r - u, 0)): return each row's Winkler score."""
    outside = numpy.maximum(lower - residuals, 0) + numpy.maximum(residuals - upper, 0)
    scores: numpy.ndarray = upper - lower + 2 / (1 - coverage) * outside
    return scores


def _power(r: numpy.ndarray, log_s: numpy.ndarray, w: numpy.ndarray) -> float:
    """Choose the power for one output."""
    n = w.sum()
    constant = [_scores(r, numpy.ones_like(r), w, coverage) for coverage in JUDGED_BY]
    means = [numpy.average(scores, weights=w) for scores in constant]
    if not (numpy.isfinite(means).all() and min(means) > 0):  # a single row, or residuals that are all 0
        return 0.0
    best = 0.0, 0.0
    for power in POWERS:
        width = numpy.exp(power * (log_s - log_s.mean()))
        gains = [
            (_scores(r, width, w, coverage) - before) / mean
            for coverage, before, mean in zip(JUDGED_BY, constant, means, strict=True)
        ]
        difference = numpy.mean(gains, axis=0)
        mean = float(numpy.average(difference, weights=w))
        error = math.sqrt(float(numpy.average((difference - mean) ** 2, weights=w)) / n)
        best = min(best, (mean + error, power))
    return best[1]


def _scores(r: numpy.ndarray, width: numpy.ndarray, w: numpy.ndarray, coverage: float) -> numpy.ndarray:
    """Return the Winkler scores of intervals whose quantiles come from the same rows."""
    order = numpy.argsort(r / width)
    lower, upper = _ends((r / width)[order], w[order], coverage)
    return interval_scores(r, lower * width, upper * width, coverage)


def _ends(values: numpy.ndarray, weights: numpy.ndarray, coverage: float) -> tuple[float, float]:
    """Return the two ends around 0 for sorted values."""
    level = (1 + coverage) / 2
    lower = -conformal_quantile(-values[::-1], weights[::-1], level)
    upper = conformal_quantile(values, weights, level)
    return lower, upper
