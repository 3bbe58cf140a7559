"""Activation functions g, by name. Each may overwrite its argument."""

from __future__ import annotations

from collections.abc import Callable

from .._seam.arrays import Array, array_namespace, positive_part

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
