"""Hidden layers: project, re-normalise, activate (Eq. 5-11)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy

from .._inputs.inputs import Inputs
from .._inputs.moments import moments
from .._seam.arrays import (
    Array,
    array_namespace,
    empty_rows,
    from_numpy,
    matmul_into,
    positive_part,
    rectified,
    row_blocks,
    scale_and_shift,
    take_columns,
)
from .activations import ACTIVATIONS
from .draws import Drawn
from .records import Branch, HiddenLayer

EPSILON = 1e-5  # of Eq. 10: a constant neuron stays constant instead of dividing by zero


def renormalisation(mean: Array, variance: Array, b: Array, gamma: Any, alpha: Any) -> tuple[Array, Array]:
    """Scale and shift of each neuron, so that gamma xhat + alpha + b = scale z + shift (Eq. 10, 11).

    gamma and alpha are numbers, or arrays of the shape of the mean or (..., 1).
    """
    gamma, alpha = (from_numpy(value, mean) for value in (gamma, alpha))
    scale = gamma / array_namespace(mean).sqrt(variance + EPSILON)
    # b is added after Eq. 11: added before, the re-normalisation would cancel it
    return scale, alpha + b - mean * scale


def activate(Z: Array, scale: Array | None, shift: Array | None, g: Callable[[Array], Array]) -> None:
    """H = g(scale z + shift), written over Z (Eq. 5, 6 after Eq. 11). None stands for 1 and 0."""
    if scale is not None and shift is not None:
        if g is positive_part and rectified(Z, scale, shift):
            return
        scale_and_shift(Z, scale, shift)
    elif shift is not None:
        Z += shift[..., None, :]
    H = g(Z)
    if H is not Z:
        Z[...] = H


def new_features(n_rows: int, X: Array, n: int, inputs: Inputs, stack: tuple[int, ...] = ()) -> Array:
    """Allocate D = [H, X, 1] for n_rows rows. A fit holds only one matrix of this size."""
    D = empty_rows((*stack, n_rows, n + inputs.width + 1), like=X)
    D[..., -1] = 1.0
    return D


def fill_inputs(D: Array, X: Array, inputs: Inputs) -> None:
    """Write the direct links X of D = [H, X, 1] as the network sees them."""
    inputs.write(X, D[..., -inputs.width - 1 : -1])


def project(D: Array, layer_inputs: Array | slice, W: Array, H: Array) -> None:
    """H = A W, the input of the activation functions (Eq. 7), with A the named columns of D."""
    matmul_into(take_columns(D, layer_inputs), W, H)


def next_layer(branch: Branch, drawn: Drawn, counts: Array | None, m: int) -> HiddenLayer:
    """Replace H in D = [H, X, 1] by the features of the next layer (Eq. 5-11), and return that layer.

    The statistics are those of the first m rows, the training rows, weighted by their counts.
    """
    D, settings = branch.D, branch.settings
    W, b = drawn.W, drawn.b
    *stack, n_rows, c = D.shape
    H = D[..., : settings.n_hidden]
    g = ACTIVATIONS[settings.activation]
    training = list(row_blocks(D, m, c * math.prod(stack)))
    others = [slice(m + r.start, m + r.stop) for r in row_blocks(D, n_rows - m, c * math.prod(stack))]

    def projected(rows: slice) -> Array:
        Z = H[..., rows, :]
        project(branch.source[..., rows, :], branch.inputs, W, Z)
        return Z

    scale, shift = None, b
    if settings.renormalize:
        gamma = numpy.asarray(settings.gamma)[..., None] if drawn.gamma is None else drawn.gamma
        alpha = numpy.asarray(settings.alpha)[..., None] if drawn.alpha is None else drawn.alpha
        blocks = ((projected(rows), None if counts is None else counts[rows]) for rows in training)
        scale, shift = renormalisation(*moments(blocks), b, gamma, alpha)
    # with re-normalisation the training rows were projected while their moments were summed
    for rows in others if settings.renormalize else training + others:
        projected(rows)
    for rows in training + others:
        activate(H[..., rows, :], scale, shift, g)
    return HiddenLayer(branch.inputs, W, scale, shift)


def replay(layer: HiddenLayer, activation: str, D: Array) -> None:
    """Replace H in D = [H, X, 1] by the features of a known layer."""
    H = D[..., : layer.W.shape[-1]]
    project(D, layer.inputs, layer.W, H)
    activate(H, layer.scale, layer.shift, ACTIVATIONS[activation])
