"""Answers as a graph, in float64: the layers' scores become one answer, and that becomes a probability."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy

from ..._loo.calibrate import SMALLEST, Calibration
from .graph import Graph, Name


def combined(graph: Graph, scores: Name, rule: str, votes: Sequence[float], k: int) -> Name:
    """Return one answer (rows, k) of the scores (rows, layers k) of layers, as `combine` does."""
    n_layers = len(votes)
    if n_layers > 1:
        shape = graph.constant([0, n_layers, k], numpy.int64)  # 0: as many rows as there are
        scores = graph.add("Reshape", scores, shape)
    if rule == "softmax":
        scores = graph.add("Softmax", scores, axis=-1)
    elif rule == "vote":
        winner = graph.add("ArgMax", scores, axis=-1, keepdims=1)
        ballot = graph.add("Equal", winner, graph.constant(numpy.arange(k), numpy.int64))
        scores = graph.cast(ballot, numpy.float64)
    if n_layers > 1:
        shares = numpy.asarray(votes, dtype=numpy.float64)[:, None] / sum(votes)
        scores = graph.add("Mul", scores, shares)
        scores = graph.add("ReduceSum", scores, graph.constant([1], numpy.int64), keepdims=0)
    return graph.add("Softmax", scores, axis=-1) if rule == "mean" else scores


def calibrated(graph: Graph, P: Name, calibration: Calibration | None, k: int) -> Name:
    """Return calibrated probabilities (rows, k), as `Calibration` does.

    softmax does not see a common shift, so the largest logarithm is not made 0 first.
    """
    if calibration is None:
        return P
    logits = graph.add("Log", graph.add("Add", P, calibration.floor))
    logits = graph.add("Mul", logits, calibration.a)
    if k == 2:
        logits = _bent(graph, logits, calibration)
    Q = _mixed(graph, graph.add("Softmax", logits, axis=-1), calibration, k)
    if calibration.matrix is None:
        return Q
    Z, matrix = graph.add("Log", Q), numpy.asarray(calibration.matrix, dtype=numpy.float64)
    product = ("MatMul", matrix.T) if matrix.ndim == 2 else ("Mul", matrix)
    logits = graph.add("Add", graph.add(product[0], Z, product[1]), calibration.offset)
    return _mixed(graph, graph.add("Softmax", logits, axis=-1), calibration, k)


def _bent(graph: Graph, logits: Name, calibration: Calibration) -> Name:
    """Return logits of two classes whose difference is bent, as `Calibration.bend` does."""
    low, high = calibration.low, calibration.high
    # no product with a matrix here: onnxruntime would draw the factor before it into one, in float32
    first, second = (graph.columns(logits, numpy.array([j]), 2) for j in range(2))
    z = graph.add("Sub", second, first)
    width = max(high - low, SMALLEST)
    at_zero = (min(max(0.0, low), high) - low) ** 2 / (2 * width) + max(0.0, high) - high
    inside = graph.add("Clip", z, low, high)
    inside = graph.add("Sub", inside, low)
    bow = graph.add("Mul", graph.add("Mul", inside, inside), 1 / (2 * width))
    beyond = graph.add("Sub", graph.add("Max", z, high), high)
    bow = graph.add("Mul", graph.add("Add", bow, beyond), calibration.high_slope - calibration.low_slope)
    straight = graph.add("Mul", z, calibration.low_slope)
    shift = calibration.shift - (calibration.high_slope - calibration.low_slope) * at_zero
    z = graph.add("Add", graph.add("Add", straight, bow), shift)
    return graph.concat([graph.add("Sub", z, z), z])


def _mixed(graph: Graph, Q: Name, calibration: Calibration, k: int) -> Name:
    scaled = graph.add("Mul", Q, 1 - calibration.uniform)
    return graph.add("Add", scaled, calibration.uniform / k)


def pooled(graph: Graph, answers: Sequence[Name], weights: Sequence[float], classes: bool) -> Name:
    """Return one answer of several voters: a geometric mean of probabilities, a mean of values."""
    parts = []
    for P, weight in zip(answers, weights, strict=True):
        logs = graph.add("Log", graph.add("Add", P, SMALLEST)) if classes else P
        parts.append(graph.add("Mul", logs, weight))
    total = parts[0] if len(parts) == 1 else graph.add("Sum", *parts)
    return graph.add("Softmax", total, axis=-1) if classes else total


def log_odds(graph: Graph, P: Name, dtype: Any, k: int) -> Name:
    """Return the logarithms (rows, k) of probabilities, as `decision_function` does in a precision.

    Two classes have the log-odds of the first and of the second: skl2onnx wants as many columns as classes.
    """
    least = graph.constant(float(numpy.finfo(dtype).smallest_normal))
    logs = graph.add("Log", graph.add("Clip", P, least, 1.0))
    if k != 2:
        return logs
    first, second = (graph.columns(logs, numpy.array([j]), 2) for j in range(2))
    return graph.concat([graph.add("Sub", first, second), graph.add("Sub", second, first)])
