"""From the answers of several voters to one answer: softmax(sum_i w_i log P_i), a geometric mean."""

from __future__ import annotations

from collections.abc import Sequence

import numpy
from scipy.optimize import minimize
from scipy.special import softmax

from .._arrays import Array, array_namespace
from .calibrate import SMALLEST
from .jury import Jury

PULL = 10  # rows that vote for the weights that members have before leave-one-out speaks
NEGLIGIBLE = 0.02  # a voter of less weight is not kept


def pooled(answers: Sequence[Array], weights: Sequence[float]) -> Array:
    """Return softmax(sum_i w_i log P_i) of probabilities P_i (..., k)."""
    xp = array_namespace(answers[0])
    total = sum(w * xp.log(P + SMALLEST) for P, w in zip(answers, weights, strict=True))
    return softmax(total, axis=-1)


def pool_weights(answers: Sequence[numpy.ndarray], jury: Jury, prior: numpy.ndarray) -> numpy.ndarray:
    """Choose the weights of voters by the log-loss of their pooled leave-one-out answers.

    The weights are positive and add up to 1. They are pulled to those of the prior, which add up to 1 too, as
    if ten rows had voted for them: leave-one-out is a little too good for voters that used the labels more,
    and on few rows sharp weights follow chance.
    """
    if len(answers) == 1 or not jury.honest.any():
        return prior
    honest = jury.honest
    L = numpy.log(numpy.stack([P[honest] for P in answers]) + SMALLEST)
    codes, w = jury.codes[honest], jury.weights[honest]
    n, places = w.sum(), numpy.arange(honest.sum())

    def loss(z: numpy.ndarray) -> tuple[float, numpy.ndarray]:
        """Return the loss and its gradient in z, of which the weights are the softmax."""
        weights = softmax(z)
        logits = numpy.tensordot(weights, L, axes=1)
        logits -= logits.max(axis=1, keepdims=True)
        P = numpy.exp(logits)
        total = P.sum(axis=1)
        value = w @ (numpy.log(total) - logits[places, codes]) - PULL * (prior @ numpy.log(weights))
        P *= (w / total)[:, None]
        P[places, codes] -= w
        gradient = numpy.tensordot(L, P, axes=2) - PULL * prior / weights
        return float(value / n), weights * (gradient - weights @ gradient) / n

    found: numpy.ndarray = softmax(minimize(loss, numpy.log(prior), jac=True, method="L-BFGS-B").x)
    return found


def equal_kinds(is_network: Sequence[bool]) -> numpy.ndarray:
    """Return weights with which kernel voters together count as much as networks together."""
    networks = numpy.asarray(is_network)
    n_kinds = len(set(is_network))
    of_kind = numpy.where(networks, networks.sum(), (~networks).sum())
    weights: numpy.ndarray = 1 / (n_kinds * of_kind)
    return weights


def keep_heavy(weights: numpy.ndarray) -> numpy.ndarray:
    """Set negligible weights to 0, and let the others add up to 1."""
    # of many equal voters each has little weight, and none is negligible
    kept = numpy.where(weights < min(NEGLIGIBLE, 0.5 / len(weights)), 0.0, weights)
    heavy: numpy.ndarray = kept / kept.sum()
    return heavy
