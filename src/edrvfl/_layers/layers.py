"""The steps of a layer: project, re-normalise, activate (Eq. 5-11), weigh the samples (12-14), prune (17)."""

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
    device,
    empty_rows,
    from_numpy,
    matmul_into,
    positive_part,
    rectified,
    row_blocks,
    scale_and_shift,
    take_columns,
)
from .draws import Drawn
from .records import Branch, HiddenLayer

# Klambauer et al. (2017): the fixed point of mean 0 and variance 1.
SELU_ALPHA = 1.6732632423543772
SELU_SCALE = 1.0507009873554805


def _sigmoid(Z: Array) -> Array:
    return 0.5 + 0.5 * array_namespace(Z).tanh(0.5 * Z)  # never overflows


def _selu(Z: Array) -> Array:
    xp = array_namespace(Z)
    negative = SELU_ALPHA * xp.expm1(-positive_part(-Z))
    return SELU_SCALE * xp.where(Z > 0, Z, negative)


ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "relu": positive_part,
    "selu": _selu,
    "sigmoid": _sigmoid,
    "tanh": lambda Z: array_namespace(Z).tanh(Z),
    "sin": lambda Z: array_namespace(Z).sin(Z),
    "radbas": lambda Z: array_namespace(Z).exp(-Z * Z),
    "swish": lambda Z: Z * _sigmoid(Z),
}


def next_weights(right: Array, counts: Array, omega_r: Any) -> Array:
    """omega_r for the right samples, omega_w = (m - n_r omega_r) / n_w for the wrong ones (Eq. 14).

    Parameters
    ----------
    right : bool array of shape (..., m), which samples this layer classified correctly
    counts : array of shape (m,), the user's sample weights; n_r, n_w and m count weight, not rows
    omega_r : float in (0, 1], or NumPy array of the shape (...)

    Returns
    -------
    omega : array of shape (..., m) with sum(counts * omega) = sum(counts). All are exactly 1
        where nothing is wrong, nothing is right, or omega_r is 1
    """
    xp = array_namespace(counts)
    omega_r = from_numpy(omega_r, counts)[..., None]
    zero, one = xp.zeros_like(counts), xp.ones_like(counts)
    n_r = xp.sum(xp.where(right, counts, zero), axis=-1, keepdims=True)
    n_w = xp.sum(xp.where(right, zero, counts), axis=-1, keepdims=True)
    # Eq. 14 divides by n_w and would be 0 / 0 when nothing is wrong
    neutral = (n_r == 0) | (n_w == 0) | (omega_r == 1)
    # m - n_r omega_r, written without the difference of two large numbers
    omega_w = (n_w + n_r * (1 - omega_r)) / xp.where(neutral, xp.ones_like(n_w), n_w)
    return xp.where(neutral, one, xp.where(right, omega_r, omega_w))


def importance(beta: Array) -> Array:
    """theta = sum over the classes of |beta| (Eq. 17), for the hidden rows of beta (..., n, k)."""
    xp = array_namespace(beta)
    return xp.sum(xp.abs(beta), axis=-1)


def n_pruned(n: int, p: Any) -> Any:
    """Return how many of n neurons a pruning rate p removes: int(p n), and never all of them.

    The small term keeps 0.29 * 100 from counting as 28.
    """
    return numpy.minimum(n - 1, numpy.floor(numpy.asarray(p) * n + 1e-9).astype(int))


def survivors(theta: Array, p: float) -> Array:
    """Return the indices of the neurons that stay. If neurons are equally important, the later ones stay."""
    return array_namespace(theta).nonzero(survivor_mask(theta, p))[0]


def surviving_columns(theta: Array, p: float, d: int) -> Array:
    """Return the columns of [H, X] that the next layer reads: neurons that stay, and all d inputs."""
    xp, n = array_namespace(theta), theta.shape[0]
    kept = survivors(theta, p)
    return xp.concat([kept, xp.arange(n, n + d, dtype=kept.dtype, device=device(kept))])


def survivor_mask(theta: Array, p: Any) -> Array:
    """Return factors (..., n), 1 for a survivor and 0 for others: members of a stack keep different ones."""
    xp = array_namespace(theta)
    # argsort of argsort is the rank
    rank = xp.argsort(xp.argsort(theta, axis=-1, stable=True), axis=-1)
    drop = from_numpy(n_pruned(theta.shape[-1], p), theta, xp.int64)
    return xp.astype(rank >= drop[..., None], theta.dtype)


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


def folded(layer: HiddenLayer, bias: int) -> HiddenLayer:
    """H = g([A, 1] W): put scale and shift into the weights, which saves two passes over H.

    `bias` is the place of the constant in [H, X, 1], right behind X.
    """
    xp, W = array_namespace(layer.W), layer.W
    W = W if layer.scale is None else W * layer.scale
    W = xp.concat([W, layer.shift[None, :]])
    if isinstance(layer.inputs, slice):
        return HiddenLayer(slice(layer.inputs.start, bias + 1), W, None, None)
    return HiddenLayer(xp.concat([layer.inputs, from_numpy([bias], layer.inputs)]), W, None, None)


def replay(layer: HiddenLayer, activation: str, D: Array) -> None:
    """Replace H in D = [H, X, 1] by the features of a known layer."""
    H = D[..., : layer.W.shape[-1]]
    project(D, layer.inputs, layer.W, H)
    activate(H, layer.scale, layer.shift, ACTIVATIONS[activation])
