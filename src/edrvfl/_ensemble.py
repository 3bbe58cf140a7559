"""From the layers' scores to one decision (last line of Algorithm 1)."""

from __future__ import annotations

from collections.abc import Callable

from ._arrays import Array, array_namespace, from_numpy, index_dtype


def softmax(scores: Array) -> Array:
    """exp(scores) over its sum along the last axis, safe for scores of any size."""
    xp = array_namespace(scores)
    e = xp.exp(scores - xp.max(scores, axis=-1, keepdims=True))
    return e / xp.sum(e, axis=-1, keepdims=True)


def _ballot(scores: Array) -> Array:
    """1 for the class with the largest score (the first of equals), 0 elsewhere."""
    xp = array_namespace(scores)
    classes = from_numpy(range(scores.shape[-1]), scores, index_dtype(scores))
    return xp.astype(xp.argmax(scores, axis=-1, keepdims=True) == classes, scores.dtype)


def _same(values: Array) -> Array:
    return values


# rule -> what each layer contributes, and how the mean contribution becomes probabilities
RULES: dict[str, tuple[Callable[[Array], Array], Callable[[Array], Array]]] = {
    "softmax": (softmax, _same),
    "mean": (_same, softmax),
    "vote": (_ballot, _same),
}


def combine(scores: Array, rule: str) -> Array:
    """Class probabilities (..., m, k) of the whole ensemble from scores (layers, ..., m, k)."""
    contribute, finish = RULES[rule]
    return finish(array_namespace(scores).mean(contribute(scores), axis=0))


def combine_staged(scores: Array, rule: str) -> Array:
    """The same for every prefix: entry l of the first axis is the ensemble of layers 0 to l."""
    xp = array_namespace(scores)
    contribute, finish = RULES[rule]
    depth = from_numpy(range(1, scores.shape[0] + 1), scores)
    total = xp.cumulative_sum(contribute(scores), axis=0)
    return finish(total / xp.reshape(depth, (-1,) + (1,) * (scores.ndim - 1)))
