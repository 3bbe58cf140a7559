"""The usual metrics, for many networks at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy

from .._seam.arrays import Array, array_namespace, weighted_mean


def accuracy(P: Array, codes: Array, weights: Array | None) -> Array:
    """Return the share of rows, by weight, whose most probable class is theirs: (..., v, k) -> (...)."""
    return weighted_mean(array_namespace(P).argmax(P, axis=-1) == codes, weights)


def _log_loss(P: Array, codes: Array, weights: Array | None) -> Array:
    """Return the mean, by weight, of the log-probability of the true class."""
    xp = array_namespace(P)
    index = xp.broadcast_to(codes[:, None], (*P.shape[:-1], 1))
    of_truth = xp.take_along_axis(P, index, axis=-1)[..., 0]
    return weighted_mean(xp.log(xp.clip(of_truth, float(xp.finfo(P.dtype).eps), 1.0)), weights)


def _near_one(V: Array, Y: Array) -> tuple[Array, Array, Array]:
    """Divide values (..., v, k) by a power of two of each output, so that squares do not overflow.

    Return V, Y and the powers (k,). A power of two is an exact factor.
    """
    xp = array_namespace(V)
    largest = xp.max(xp.abs(Y), axis=0)
    unit = 2.0 ** xp.floor(xp.log2(xp.where(largest > 0, largest, xp.ones_like(largest))))
    return xp.astype(V, xp.float64) / unit, Y / unit, unit


def _squared_errors(V: Array, Y: Array, weights: Array | None) -> Array:
    """Return the mean squared error, by weight, of each output: (..., v, k) -> (..., k)."""
    xp = array_namespace(V)
    E = xp.astype(V, xp.float64) - Y
    return weighted_mean(xp.matrix_transpose(E * E), weights)


def _absolute_error(V: Array, Y: Array, weights: Array | None) -> Array:
    """Return minus the mean absolute error: (..., v, k) -> (...)."""
    xp = array_namespace(V)
    V, Y, unit = _near_one(V, Y)
    return -xp.mean(weighted_mean(xp.matrix_transpose(xp.abs(V - Y)), weights) * unit, axis=-1)


def _squared_error(V: Array, Y: Array, weights: Array | None) -> Array:
    """Return minus the mean squared error."""
    return -array_namespace(V).mean(_squared_errors(V, Y, weights), axis=-1)


def _root_squared_error(V: Array, Y: Array, weights: Array | None) -> Array:
    """Return minus the mean over the outputs of the root mean squared errors."""
    xp = array_namespace(V)
    V, Y, unit = _near_one(V, Y)
    return -xp.mean(xp.sqrt(_squared_errors(V, Y, weights)) * unit, axis=-1)


def _r2(V: Array, Y: Array, weights: Array | None) -> Array:
    """Return R^2, 1 - squared error / variance of y, as the mean over the outputs.

    An output that does not vary has the R^2 1 where every answer is right, and 0 elsewhere. One row has none.
    """
    xp = array_namespace(V)
    V, Y, _ = _near_one(V, Y)
    errors = _squared_errors(V, Y, weights)
    mean = weighted_mean(xp.matrix_transpose(Y), weights)
    variance = xp.broadcast_to(_squared_errors(mean[None, :], Y, weights), errors.shape)
    varies = variance != 0
    of_outputs = 1 - errors / xp.where(varies, variance, xp.ones_like(variance))
    of_outputs = xp.where(varies, of_outputs, xp.astype(errors == 0, errors.dtype))
    return xp.mean(of_outputs if Y.shape[0] > 1 else of_outputs * numpy.nan, axis=-1)


Metric = Callable[[Array, Array, Array | None], Array]  # answers, truth, weights -> scores

# The metrics that are computed for many networks at once. None is the estimator's own score.
METRICS: Mapping[str | None, Metric] = {None: accuracy, "accuracy": accuracy, "neg_log_loss": _log_loss}
VALUE_METRICS: Mapping[str | None, Metric] = {
    None: _r2,
    "r2": _r2,
    "neg_mean_squared_error": _squared_error,
    "neg_root_mean_squared_error": _root_squared_error,
    "neg_mean_absolute_error": _absolute_error,
}


def metric_of(scoring: Any, classifies: bool) -> Metric | None:
    """Return the metric that is computed for many networks at once; None if the scorer is called."""
    if not (scoring is None or isinstance(scoring, str)):  # a scorer need not be hashable
        return None
    return (METRICS if classifies else VALUE_METRICS).get(scoring)
