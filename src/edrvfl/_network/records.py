"""What a network is made of, before and after it is fitted."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy

from .._arrays import Array
from .._inputs.columns import Inputs

# The estimator's parameters that have a symbol in the paper. Other settings keep their name.
SYMBOLS: Mapping[str, str] = MappingProxyType(
    {
        "regularization": "lam",
        "norm_scale": "gamma",
        "norm_shift": "alpha",
        "correct_weight": "omega_r",
        "prune_rate": "p",
    }
)


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of a network, or of many networks that are grown together, in the paper's symbols.

    Networks that are grown together have lam and omega_r of shape (..., r): r read-outs for each hidden
    setting. gamma, alpha and p, which decide the features, have shape (...). For a single network these
    are numbers. lam is None where leave-one-out chooses the penalty, layer by layer.
    """

    n_layers: int
    n_hidden: int
    activation: str
    renormalize: bool
    lam: Any
    gamma: Any
    alpha: Any
    omega_r: Any
    p: Any
    weight_from: str = "train"  # or "loo": whose predictions decide which samples are right (Eq. 12)

    @classmethod
    def of(cls, params: Mapping[str, Any]) -> Settings:
        """Take the settings of one network from an estimator's parameters."""
        named = {SYMBOLS.get(name, name): value for name, value in params.items()}
        chosen = {field.name: named[field.name] for field in dataclasses.fields(cls)}
        return cls(**chosen | {"lam": None if named["lam"] == "loo" else float(named["lam"])})

    @property
    def weighs(self) -> bool:
        """Whether the next layer's samples are weighted (Eq. 12-14)."""
        return bool(numpy.any(numpy.asarray(self.omega_r) != 1))

    @property
    def weighs_by_loo(self) -> bool:
        """Whether a layer's leave-one-out scores are needed for the next layer's weights."""
        return self.weight_from == "loo" and self.weighs

    @property
    def prunes(self) -> bool:
        """Whether neurons are kept out of the next layer (Eq. 17)."""
        return bool(numpy.any(numpy.asarray(self.p) > 0))


class MovesBetweenLibraries:
    """A record whose arrays scikit-learn's mover can bring to another array library or device."""

    __slots__ = ()

    def __sklearn_array_api_convert__(self, converter: Callable[[Array], Array]) -> Any:
        return _converted(self, converter)


def _converted(value: Any, converter: Callable[[Array], Array]) -> Any:
    if isinstance(value, tuple):
        return tuple(_converted(v, converter) for v in value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = [field.name for field in dataclasses.fields(value)]
        return type(value)(**{name: _converted(getattr(value, name), converter) for name in fields})
    if isinstance(value, numpy.ndarray) and value.dtype.kind in "OUS":
        return value  # labels that are strings stay in NumPy
    return converter(value) if hasattr(value, "__dlpack__") else value


@dataclass(frozen=True, slots=True, eq=False)
class HiddenLayer(MovesBetweenLibraries):
    """One random layer, without its read-out: H = g(scale * (A W) + shift)."""

    inputs: Array | slice  # which columns of the previous [H, X, 1] are A
    W: Array  # (inputs, n)
    scale: Array | None  # (n,); None without re-normalisation
    shift: Array  # (n,)


@dataclass(frozen=True, slots=True, eq=False)
class Network(MovesBetweenLibraries):
    """A fitted network: everything that decides an answer."""

    inputs: Inputs
    layers: tuple[HiddenLayer, ...]
    readouts: tuple[Array, ...]  # beta (n + d + 1, k) of each layer
    activation: str
    n_hidden: int
    rule: str  # how the layers' scores become one answer
    classes: Array  # (k,), labels as they came
    seed: int  # of the random layers

    def with_layer(self, layer: HiddenLayer, beta: Array) -> Network:
        """Return this network with one layer more and its read-out."""
        return dataclasses.replace(self, layers=(*self.layers, layer), readouts=(*self.readouts, beta))

    @property
    def row_numbers(self) -> int:
        """How many numbers are held for a row that is scored: its features and the scores of some layers."""
        c, k = self.readouts[0].shape
        return int(c + 3 * min(c, len(self.layers) * k) + 4 * k)


@dataclass(frozen=True, slots=True, eq=False)
class Branch:
    """Networks that share their features so far, and what their next layer starts from."""

    settings: Settings
    members: slice  # the places of these networks among all that are grown
    layer: int  # the next layer's number, from 0
    D: Array  # [H, X, 1]; the next layer writes H
    source: Array  # where the next layer reads its input: D, or the features that several branches share
    inputs: Array | slice  # the columns of `source` that are its input
    mask: Array | None = None  # in a stack, where networks prune different neurons: 0 drops a row of W
    omega: Array | None = None  # (..., r, m), the samples' weights in the next layer
