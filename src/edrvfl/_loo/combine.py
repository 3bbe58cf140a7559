"""From the layers' scores to one answer (the last line of Algorithm 1)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from scipy.special import softmax

from .._seam.arrays import Array, array_namespace, from_numpy


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
