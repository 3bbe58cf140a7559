"""The four networks: which layers they draw, and how rows pass through them.

A builder makes a `Design`, which holds the shape and the variance of every layer and one forward pass.
torch is imported inside the functions, because the study lists its methods without it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
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
    """A network: the layers to draw, the pass through all but the last, and its kind of dropout.

    The last layer of the plan is the linear read-out.
    """

    plan: tuple[Plan, ...]
    hidden: Callable[[Sequence[Layer], Tensor, Drop], Iterator[Tensor]]  # yields the features of each layer
    dropout: Callable[[Tensor, float, torch.Generator], Tensor]


# --- builders ----------------------------------------------------------------------------------------


def snn(sizes: Sizes) -> Design:
    """h <- selu(h W + b), LeCun-normal weights, alpha dropout (Klambauer et al., 2017)."""
    return Design(_plan_chain(sizes, LECUN), partial(plain_hidden, activation="selu"), alpha_dropout)


def msra(sizes: Sizes) -> Design:
    """h <- relu(h W + b), He weights (He et al., "Delving Deep into Rectifiers", 2015)."""
    return Design(_plan_chain(sizes, HE), partial(plain_hidden, activation="relu"), dropout)


def highway(sizes: Sizes) -> Design:
    """A projection to the width, then highway layers (Srivastava et al., "Highway Networks", 2015)."""
    n = sizes.n_units
    gated = (Plan(n, n, HE), Plan(n, n, LECUN, GATE_BIAS)) * sizes.n_layers
    plan = (Plan(sizes.n_features, n, HE), *gated, Plan(n, sizes.n_classes, LECUN))
    return Design(plan, highway_hidden, dropout)


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
    return Design(plan, partial(residual_hidden, block_layers=sizes.block_layers), dropout)


BUILDERS: Mapping[str, Callable[[Sizes], Design]] = MappingProxyType(
    {"snn": snn, "msra": msra, "highway": highway, "resnet": resnet}
)
FORMS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "snn": ("rectangular", "conic"),
        "msra": ("rectangular", "conic"),
        "highway": ("rectangular",),
        "resnet": ("rectangular", "diavolo"),
    }
)


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


def plain_hidden(layers: Sequence[Layer], h: Tensor, drop: Drop, *, activation: str) -> Iterator[Tensor]:
    """h <- g(h W + b)."""
    import torch

    g = getattr(torch, activation)
    for layer in layers:
        h = drop(g(affine(h, layer)))
        yield h


def highway_layer(h: Tensor, transform: Layer, gate: Layer, drop: Drop) -> Tensor:
    """T relu(h W_H + b_H) + (1 - T) h, T = sigmoid(h W_T + b_T); dropout never touches the carried h."""
    return h.lerp(drop(affine(h, transform).relu()), affine(h, gate).sigmoid())


def highway_hidden(layers: Sequence[Layer], h: Tensor, drop: Drop) -> Iterator[Tensor]:
    """h <- relu(h W + b) once, then highway layers."""
    first, *gated = layers
    h = affine(h, first).relu()
    yield h
    for transform, gate in zip(gated[::2], gated[1::2], strict=True):
        h = highway_layer(h, transform, gate, drop)
        yield h


def residual_hidden(layers: Sequence[Layer], h: Tensor, drop: Drop, *, block_layers: int) -> Iterator[Tensor]:
    """h <- relu(h W + b) once, then h <- relu(h + F(h)); dropout is inside F and spares the shortcut."""
    first, *blocks = layers
    h = affine(h, first).relu()
    yield h
    for i in range(0, len(blocks), block_layers):
        *inner, last = blocks[i : i + block_layers]
        f = h
        for layer in inner:
            f = drop(affine(f, layer).relu())
        h = (h + affine(f, last)).relu()
        yield h


def forward(design: Design, layers: Sequence[Layer], X: Tensor, drop: Drop | None = None) -> Tensor:
    """Compute the logits of rows X. `drop` is given in training only."""
    h = X
    for h in design.hidden(layers[:-1], X, drop or _keep_all):  # noqa: B007  only the last h is read out
        pass
    return affine(h, layers[-1])


def forward_by_blocks(design: Design, layers: Sequence[Layer], X: Tensor) -> Tensor:
    """Compute the logits of any number of rows without gradients, a block of rows at a time."""
    import torch

    with torch.no_grad():
        return torch.cat([forward(design, layers, block) for block in torch.split(X, BLOCK_ROWS)])


def _keep_all(h: Tensor) -> Tensor:
    return h


def dropout(h: Tensor, rate: float, generator: torch.Generator) -> Tensor:
    """h / (1 - rate), or 0 with probability rate."""
    # torch's own dropout would draw from the global generator.
    keep = h.detach().new_empty(h.shape).bernoulli_(1 - rate, generator=generator)
    return h * keep / (1 - rate)


def alpha_dropout(h: Tensor, rate: float, generator: torch.Generator) -> Tensor:
    """a (h, or selu(-infinity) with probability rate) + b, which keeps mean 0 and variance 1."""
    keep = h.detach().new_empty(h.shape).bernoulli_(1 - rate, generator=generator)
    a = (1 - rate + SELU_FLOOR**2 * rate * (1 - rate)) ** -0.5
    return a * (h * keep + SELU_FLOOR * (1 - keep)) - a * rate * SELU_FLOOR
