"""From the answers of several voters to one answer: a geometric mean of probabilities, a mean of values."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy
from scipy.optimize import minimize
from scipy.special import softmax

from .._seam.arrays import Array, array_namespace
from .calibrate import SMALLEST
from .jury import TINY, AnyJury, Jury, ValueJury, each

PULL = 10  # rows that vote for the weights that members have before leave-one-out speaks
NEGLIGIBLE = 0.02  # a voter of less weight is not kept

Loss = Callable[[numpy.ndarray], tuple[float, numpy.ndarray]]  # of weights: the value and its gradient


def pooled(answers: Sequence[Array], weights: Sequence[float]) -> Array:
    """Return softmax(sum_i w_i log P_i) of probabilities P_i (..., k)."""
    xp = array_namespace(answers[0])
    total = sum(w * xp.log(P + SMALLEST) for P, w in zip(answers, weights, strict=True))
    return softmax(total, axis=-1)


def averaged(answers: Sequence[Array], weights: Sequence[float]) -> Array:
    """Return sum_i w_i P_i of values P_i (..., k)."""
    return sum(w * P for P, w in zip(answers, weights, strict=True))


def pool_weights(answers: Sequence[numpy.ndarray], jury: AnyJury, prior: numpy.ndarray) -> numpy.ndarray:
    """Choose the weights of voters by what their pooled leave-one-out answers lose.

    The weights are positive and add up to 1. They are pulled to those of the prior, which add up to 1 too, as
    if ten rows had voted for them: leave-one-out is a little too good for voters that used the labels more,
    and on few rows sharp weights follow chance.
    """
    if len(answers) == 1 or (isinstance(jury, Jury) and not jury.honest.any()):
        return prior
    loss = _log_loss(answers, jury) if isinstance(jury, Jury) else _log_error(answers, jury)
    n = jury.weights[jury.honest].sum() if isinstance(jury, Jury) else jury.weights.sum()

    def objective(z: numpy.ndarray) -> tuple[float, numpy.ndarray]:
        """Return the loss and its gradient in z, of which the weights are the softmax."""
        weights = softmax(z)
        value, gradient = loss(weights)
        value -= PULL * (prior @ numpy.log(weights))
        gradient = gradient - PULL * prior / weights
        return float(value / n), weights * (gradient - weights @ gradient) / n

    found: numpy.ndarray = softmax(minimize(objective, numpy.log(prior), jac=True, method="L-BFGS-B").x)
    return found


def _log_loss(answers: Sequence[numpy.ndarray], jury: Jury) -> Loss:
    """Return the sum of the honest rows' log-losses, with its gradient, as a function of the weights."""
    honest = jury.honest
    L = numpy.log(numpy.stack([P[honest] for P in answers]) + SMALLEST)
    codes, w = jury.codes[honest], jury.weights[honest]
    places = numpy.arange(honest.sum())

    def loss(weights: numpy.ndarray) -> tuple[float, numpy.ndarray]:
        logits = numpy.tensordot(weights, L, axes=1)
        logits -= logits.max(axis=1, keepdims=True)
        P = numpy.exp(logits)
        total = P.sum(axis=1)
        value = float(w @ (numpy.log(total) - logits[places, codes]))
        P *= (w / total)[:, None]
        P[places, codes] -= w
        return value, numpy.tensordot(L, P, axes=2)

    return loss


def _log_error(answers: Sequence[numpy.ndarray], jury: ValueJury) -> Loss:
    """Return n/2 times the logarithm of the mean squared error, with its gradient."""
    w, k = jury.weights, jury.Y.shape[1]
    E = numpy.stack([P - jury.Y for P in answers])
    # the mean squared error is a quadratic form of weights that add up to 1
    Q = numpy.tensordot(E * w[:, None], E, axes=([1, 2], [1, 2])) / (w.sum() * k)
    half = 0.5 * w.sum()

    def loss(weights: numpy.ndarray) -> tuple[float, numpy.ndarray]:
        error = max(float(weights @ Q @ weights), TINY)
        return half * math.log(error), half * 2 * (Q @ weights) / error

    return loss


def weigh(
    answers: Sequence[numpy.ndarray], jury: AnyJury, prior: numpy.ndarray, combine: Callable[..., Array]
) -> tuple[numpy.ndarray, numpy.ndarray]:
    """Return the weights of voters, and their common leave-one-out answers.

    Where rows are in folds, a fold is answered with the weights that the other folds give.
    """
    weights = keep_heavy(pool_weights(answers, jury, prior))
    P: numpy.ndarray = combine(answers, weights.tolist())
    for inside in () if jury.dealt is None else each(jury.dealt.folds):
        others = [P_i[~inside] for P_i in answers]
        of_fold = keep_heavy(pool_weights(others, jury.some(~inside), prior))
        P[inside] = combine([P_i[inside] for P_i in answers], of_fold.tolist())
    return weights, P


def equal_kinds(kinds: Sequence[Any]) -> numpy.ndarray:
    """Return weights with which the voters of one kind together count as much as those of another."""
    sizes = Counter(kinds)
    return numpy.array([1 / (len(sizes) * sizes[kind]) for kind in kinds])


def keep_heavy(weights: numpy.ndarray) -> numpy.ndarray:
    """Set negligible weights to 0, and let the others add up to 1."""
    # of many equal voters each has little weight, and none is negligible
    kept = numpy.where(weights < min(NEGLIGIBLE, 0.5 / len(weights)), 0.0, weights)
    heavy: numpy.ndarray = kept / kept.sum()
    return heavy
