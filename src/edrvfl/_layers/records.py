"""What a network is made of, before it is fitted."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Annotated, Any

import numpy

from .._ridge.equations import NormalEquations
from .._seam.arrays import Array
from .._seam.fields import Between


@dataclass(frozen=True, slots=True)
class Shape:
    """What "auto" stands for: how wide and deep a network is."""

    n_hidden: int
    n_layers: int


PAPER_SHAPE = Shape(512, 10)
# The most accurate that take at most six times as long as gradient boosting (benchmarks/rows.py), whose time
# grows more slowly than the rows.
WIDE_SHAPE = Shape(896, 2)
LESS_WIDE_SHAPE = Shape(768, 2)
MANY_ROWS = 10_000
VERY_MANY_ROWS = 300_000


def auto_shape(m: float) -> Shape:
    """Return the paper's shape for up to 10,000 training rows. More rows have use for more neurons.

    Neurons gain more than layers there.
    """
    if m <= MANY_ROWS:
        return PAPER_SHAPE
    return WIDE_SHAPE if m <= VERY_MANY_ROWS else LESS_WIDE_SHAPE


@dataclass(frozen=True, slots=True)
class DrawSettings:
    """How the layers are drawn, beside seed and width. The defaults are the paper's."""

    # how many columns of X a neuron sees at most, and how many neurons of the layer before; None for all
    inputs_per_neuron: Annotated[int, Between(1)] | None = None
    hidden_per_neuron: Annotated[int, Between(1)] | None = None
    scales: tuple[float, float] | None = None  # between which each neuron's gamma is drawn, if it is drawn
    shifts: tuple[float, float] | None = None  # between which each neuron's alpha is drawn, if it is drawn
    # of the first layer's neurons, whose weights are the difference of two rows
    pair_share: Annotated[float, Between(0, 1)] = 0.0


PAPER_DRAWS = DrawSettings()

# In which settings networks that share work may differ: where their features are the same, in those of the
# read-out; in one stack, in these of the features too; with the same rows, inputs and random layers, also in
# how they grow. In all others they must agree. Networks that differ in depth alone are one network, because
# the shallower one is its prefix.
OF_READ_OUT, OF_FEATURES, OF_DEPTH = {"differs": "read-out"}, {"differs": "features"}, {"differs": "depth"}
OF_GROWTH = {"differs": "growth"}


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of a network, or of many networks that are grown together, in the paper's symbols.

    Networks that are grown together have lam and omega_r of shape (..., r): r read-outs for each hidden
    setting. gamma, alpha and p, which decide the features, have shape (...). For a single network these
    are numbers. lam is None where leave-one-out chooses the penalty, layer by layer. The defaults are
    neutral.
    """

    n_layers: Any = field(metadata=OF_DEPTH)  # a number; "auto" until the training rows are known
    n_hidden: Any  # likewise
    activation: str = field(default="relu", metadata=OF_GROWTH)
    renormalize: bool = field(default=True, metadata=OF_GROWTH)
    lam: Any = field(default=None, metadata=OF_READ_OUT)
    gamma: Any = field(default=1.0, metadata=OF_FEATURES)
    alpha: Any = field(default=0.0, metadata=OF_FEATURES)
    omega_r: Any = field(default=1.0, metadata=OF_READ_OUT)
    p: Any = field(default=0.0, metadata=OF_FEATURES)
    # "train" or "loo": whose predictions decide which samples are right (Eq. 12)
    weight_from: str = field(default="train", metadata=OF_GROWTH)
    draws: DrawSettings = PAPER_DRAWS
    # whether one read-out is over all layers (dRVFL), instead of one for each layer
    joint: bool = field(default=False, metadata=OF_GROWTH)

    def for_rows(self, m: float) -> Settings:
        """Return these settings with the width and depth that they have for so many training rows."""
        shape = auto_shape(m)
        given = {name: getattr(self, name) for name in ("n_hidden", "n_layers")}
        return dataclasses.replace(
            self, **{name: getattr(shape, name) for name, value in given.items() if value == "auto"}
        )

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


@dataclass(frozen=True, slots=True, eq=False)
class HiddenLayer:
    """One random layer, without its read-out: H = g(scale * (A W) + shift)."""

    inputs: Array | slice  # which columns of the previous [H, X, 1] are A
    W: Array  # (inputs, n)
    scale: Array | None  # (n,); None without re-normalisation
    shift: Array  # (n,); None where scale and shift are folded into W


@dataclass(frozen=True, slots=True, eq=False)
class Solved:
    """What a layer's read-out was solved from, where a fit remembers it."""

    system: NormalEquations  # of all rows with their weights, without a penalty
    # a row was right if its loss by the layer before is not above this; None where nobody is weighed
    bound: float | None = None
    weights: tuple[float, float] = (1.0, 1.0)  # of rows that the layer before got right, and of the others
    right: numpy.ndarray | None = None  # (m,), which rows in memory it got right; None for all


@dataclass(frozen=True, slots=True, eq=False)
class Branch:
    """Networks that share their features so far, and what their next layer starts from."""

    settings: Settings
    members: slice  # the places of these networks among all that are grown
    layer: int  # the next layer's number, from 0
    D: Array  # [H, X, 1]; the next layer writes H
    source: Array  # where the next layer reads its input: D, or the features that several branches share
    inputs: Array | slice  # the columns of `source` that the next layer reads
    mask: Array | None = None  # in a stack, where networks prune different neurons: 0 drops a row of W
    omega: Array | None = None  # (..., r, m), the samples' weights in the next layer
    bound: Array | None = None  # (..., r, 1), the largest loss of a sample that is right
