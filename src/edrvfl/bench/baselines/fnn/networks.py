"""The four networks: which layers they draw, and how rows pass through them.

A builder makes a `Design`, which holds the shape and the variance of every layer and the pass through one
block of them. torch is imported inside the functions, because the study lists its methods without it.
"""

from __future__ import annotations

import itertools
import math
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch
    from torch import Tensor

Layer = tuple["Tensor", "Tensor"]  # W (inputs, outputs), b (outputs,)
Drop = Callable[["Tensor"], "Tensor"]

HE, LECUN = 2.0, 1.0  # variance of a weight times the number of inputs
GATE_BIAS = -2.0  # highway gates start nearly closed; their authors recommend -1 to -3, by depth
SELU_FLOOR = -1.7580993408473766  # selu(-infinity) = -lambda alpha
BLOCK_ROWS = 4096  # a forward pass without gradients takes this many rows at a time


@dataclass(frozen=True, slots=True)
class Sizes:
    """What a builder needs to know about the data and about the network."""

    n_features: int
    n_classes: int
    n_layers: int
    n_units: int
    form: str = "rectangular"
    bottleneck: float = 0.5
    block_layers: int = 2


@dataclass(frozen=True, slots=True)
class Plan:
    """One layer to draw: W is normal with variance gain / inputs, b is constant."""

    inputs: int
    outputs: int
    gain: float
    bias: float = 0.0


@dataclass(frozen=True, slots=True)
class Design:
    """A network: the layers to draw, the pass through a block of them, and its kind of dropout.

    The last layer of the plan is the linear read-out. The others are hidden, in blocks of `block_layers`;
    with `stem` there is one layer before the first block.
    """

    plan: tuple[Plan, ...]
    step: Callable[[Sequence[Layer], Tensor, Drop], Tensor]  # through one block, or through the stem
    dropout: Callable[[Tensor, Tensor, float], Tensor]  # of features, which of them are lost, and the rate
    block_layers: int = 1
    stem: bool = False

    def hidden(self, layers: Sequence[Layer], h: Tensor, drop: Drop) -> Iterator[Tensor]:
        """Yield the features after the stem and after each block."""
        ends = range(self.block_layers + self.stem, len(layers) + 1, self.block_layers)
        for begin, end in itertools.pairwise([0, *[1] * self.stem, *ends]):
            h = self.step(layers[begin:end], h, drop)
            yield h


# --- builders ----------------------------------------------------------------------------------------


def snn(sizes: Sizes) -> Design:
    """h <- selu(h W + b), LeCun-normal weights, alpha dropout (Klambauer et al., 2017)."""
    return Design(_plan_chain(sizes, LECUN), partial(plain_step, activation="selu"), alpha_dropout)


def msra(sizes: Sizes) -> Design:
    """h <- relu(h W + b), He weights (He et al., "Delving Deep into Rectifiers", 2015)."""
    return Design(_plan_chain(sizes, HE), partial(plain_step, activation="relu"), dropout)


def highway(sizes: Sizes) -> Design:
    """A projection to the width, then highway layers (Srivastava et al., "Highway Networks", 2015)."""
    n = sizes.n_units
    gated = (Plan(n, n, HE), Plan(n, n, LECUN, GATE_BIAS)) * sizes.n_layers
    plan = (Plan(sizes.n_features, n, HE), *gated, Plan(n, sizes.n_classes, LECUN))
    return Design(plan, highway_step, dropout, block_layers=2, stem=True)


def resnet(sizes: Sizes) -> Design:
    """A projection to the width, then h <- relu(h + F(h)) with F of two or three layers (He et al., 2016).

    There is no batch normalisation. Instead the last weights of each F have 1 / n_layers of He's variance,
    so that the second moment of h grows by (1 + 2 / n_layers)^n_layers < e^2 at most, at any depth.
    """
    n = sizes.n_units
    inner = max(1, round(sizes.bottleneck * n)) if sizes.form == "diavolo" else n
    ends = [n, *[inner] * (sizes.block_layers - 1), n]
    gains = [*[HE] * (sizes.block_layers - 1), HE / sizes.n_layers]
    block = [Plan(i, o, g) for (i, o), g in zip(itertools.pairwise(ends), gains, strict=True)]
    plan = (Plan(sizes.n_features, n, HE), *block * sizes.n_layers, Plan(n, sizes.n_classes, LECUN))
    return Design(plan, residual_step, dropout, block_layers=sizes.block_layers, stem=True)


BUILDERS: Mapping[str, Callable[[Sizes], Design]] = {
    "snn": snn,
    "msra": msra,
    "highway": highway,
    "resnet": resnet,
}
FORMS: Mapping[str, tuple[str, ...]] = {
    "snn": ("rectangular", "conic"),
    "msra": ("rectangular", "conic"),
    "highway": ("rectangular",),
    "resnet": ("rectangular", "diavolo"),
}


def _plan_chain(sizes: Sizes, gain: float) -> tuple[Plan, ...]:
    """Plan layer after layer; in the form "conic" widths shrink geometrically to the number of classes."""
    n, k, L = sizes.n_units, sizes.n_classes, sizes.n_layers
    ratio = k / n if sizes.form == "conic" else 1.0
    widths = [max(1, round(n * ratio ** (l / L))) for l in range(L)]
    hidden = tuple(Plan(i, o, gain) for i, o in itertools.pairwise([sizes.n_features, *widths]))
    return (*hidden, Plan(widths[-1], k, LECUN))


def draw_layers(plan: Sequence[Plan], generator: torch.Generator) -> list[Layer]:
    """Draw W and b of every layer, in float32 on the CPU: every device starts from the same network."""
    import torch

    layers = []
    for p in plan:
        W = torch.randn((p.inputs, p.outputs), generator=generator, dtype=torch.float32)
        b = torch.full((p.outputs,), p.bias, dtype=torch.float32)
        layers.append((W.mul_(math.sqrt(p.gain / p.inputs)), b))
    return layers


# --- kernels -----------------------------------------------------------------------------------------


def affine(h: Tensor, layer: Layer) -> Tensor:
    """h W + b."""
    W, b = layer
    return b.addmm(h, W)


def plain_step(block: Sequence[Layer], h: Tensor, drop: Drop, *, activation: str) -> Tensor:
    """g(h W + b)."""
    import torch

    return drop(getattr(torch, activation)(affine(h, block[0])))


def highway_step(block: Sequence[Layer], h: Tensor, drop: Drop) -> Tensor:
    """relu(h W + b) in the stem, else T relu(h W_H + b_H) + (1 - T) h with T = sigmoid(h W_T + b_T).

    Dropout never touches the carried h.
    """
    if len(block) == 1:
        return affine(h, block[0]).relu()
    transform, gate = block
    return h.lerp(drop(affine(h, transform).relu()), affine(h, gate).sigmoid())


def residual_step(block: Sequence[Layer], h: Tensor, drop: Drop) -> Tensor:
    """relu(h W + b) in the stem, else relu(h + F(h)); dropout is inside F and spares the shortcut."""
    *inner, last = block
    if not inner:
        return affine(h, last).relu()
    f = h
    for layer in inner:
        f = drop(affine(f, layer).relu())
    return (h + affine(f, last)).relu()


def forward(design: Design, layers: Sequence[Layer], h: Tensor, drop: Drop | None = None) -> Tensor:
    """Compute the logits of rows h. `drop` is given in training only."""
    (last,) = deque(design.hidden(layers[:-1], h, drop or _keep_all), maxlen=1)
    return affine(last, layers[-1])


def forward_by_blocks(design: Design, layers: Sequence[Layer], X: Tensor) -> Tensor:
    """Compute the logits of any number of rows without gradients, a block of rows at a time."""
    import torch

    with torch.no_grad():
        return torch.cat([forward(design, layers, block) for block in torch.split(X, BLOCK_ROWS)])


def _keep_all(h: Tensor) -> Tensor:
    return h


def dropout(h: Tensor, lost: Tensor, rate: float) -> Tensor:
    """h / (1 - rate), or 0 where a neuron is lost."""
    return h.masked_fill(lost, 0.0) / (1 - rate)


def alpha_dropout(h: Tensor, lost: Tensor, rate: float) -> Tensor:
    """a (h, or selu(-infinity) where a neuron is lost) + b, which keeps mean 0 and variance 1."""
    a = (1 - rate + SELU_FLOOR**2 * rate * (1 - rate)) ** -0.5
    return h.masked_fill(lost, SELU_FLOOR) * a - a * rate * SELU_FLOOR
