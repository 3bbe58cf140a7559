"""Training: plain stochastic gradient descent with early stopping on rows that are held out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .networks import Design, Layer, forward, forward_by_blocks

if TYPE_CHECKING:
    import torch
    from torch import Tensor

SMOOTHING = 5  # early stopping watches the mean validation loss of this many epochs


@dataclass(frozen=True, slots=True)
class Rows:
    """Inputs and class codes on the device."""

    X: Tensor
    y: Tensor


@dataclass(frozen=True, slots=True)
class Recipe:
    """How to train; see the parameters of FNNClassifier."""

    learning_rate: float
    dropout: float
    batch_size: int
    epochs: int
    patience: int


@dataclass(frozen=True, slots=True)
class Streams:
    """The random numbers of a training: the order of the rows, drawn on the CPU, and the dropped neurons."""

    batches: torch.Generator
    dropout: torch.Generator  # on the device


@dataclass(frozen=True, slots=True)
class Trained:
    """The layers that were kept, their epoch, the losses of each epoch, and whether the training diverged."""

    layers: list[Layer]
    epoch: int
    losses: tuple[float, ...]
    validation_losses: tuple[float, ...]
    diverged: bool


def train(
    design: Design,
    layers: Sequence[Layer],
    rows: Rows,
    held_out: Rows | None,
    recipe: Recipe,
    streams: Streams,
) -> Trained:
    """Minimise the cross-entropy by gradient descent, without momentum.

    With held-out rows, the layers of the epoch with the smallest smoothed validation loss are kept, and
    training ends after `patience` epochs without a smaller one. Without such rows, the layers of the last
    epoch are kept. An epoch after which a loss or a weight is not finite is discarded and ends the training.
    """
    layers = [(W.clone().requires_grad_(), b.clone().requires_grad_()) for W, b in layers]
    kept, kept_epoch, least, diverged = _copy(layers), 0, math.inf, False
    losses: list[float] = []
    validation: list[float] = []
    for epoch in range(1, recipe.epochs + 1):
        losses.append(train_one_epoch(design, layers, rows, recipe, streams))
        if held_out is not None:
            validation.append(loss_of_rows(design, layers, held_out))
        if diverged := not _all_finite(layers, [*losses[-1:], *validation[-1:]]):
            break
        # Without held-out rows every epoch counts as better than the one before.
        smoothed = float(np.mean(validation[-SMOOTHING:])) if held_out is not None else -float(epoch)
        if smoothed < least:
            kept, kept_epoch, least = _copy(layers), epoch, smoothed
        elif epoch - kept_epoch >= recipe.patience:
            break
    return Trained(kept, kept_epoch, tuple(losses), tuple(validation), diverged)


def train_one_epoch(
    design: Design, layers: Sequence[Layer], rows: Rows, recipe: Recipe, streams: Streams
) -> float:
    """Pass once over all rows, change the layers in place, and return the mean loss of the rows."""
    import torch
    from torch.nn.functional import cross_entropy

    def drop(h: Tensor) -> Tensor:
        return design.dropout(h, recipe.dropout, streams.dropout) if recipe.dropout else h

    parameters = [p for layer in layers for p in layer]
    total = torch.zeros((), device=rows.X.device)  # stays on the device: no step waits for the CPU
    order = torch.randperm(len(rows.y), generator=streams.batches).to(rows.X.device)
    for batch in torch.split(order, recipe.batch_size):
        loss = cross_entropy(forward(design, layers, rows.X[batch], drop), rows.y[batch])
        gradients = torch.autograd.grad(loss, parameters)
        with torch.no_grad():  # one line instead of torch.optim, whose import takes longer than a small fit
            for p, g in zip(parameters, gradients, strict=True):
                p.sub_(g, alpha=recipe.learning_rate)
        total += loss.detach() * len(batch)
    return float(total) / len(rows.y)


def loss_of_rows(design: Design, layers: Sequence[Layer], rows: Rows) -> float:
    """Compute the mean cross-entropy of rows that do not train."""
    from torch.nn.functional import cross_entropy

    return float(cross_entropy(forward_by_blocks(design, layers, rows.X), rows.y))


def _all_finite(layers: Sequence[Layer], losses: Sequence[float]) -> bool:
    finite_layers = (bool(p.isfinite().all()) for layer in layers for p in layer)
    return all(map(math.isfinite, losses)) and all(finite_layers)


def _copy(layers: Sequence[Layer]) -> list[Layer]:
    return [(W.detach().clone(), b.detach().clone()) for W, b in layers]


def hold_out(codes: np.ndarray, fraction: float, rng: np.random.Generator) -> np.ndarray:
    """Choose rows to hold out, as a mask: a share of every class, but never a whole class.

    scikit-learn's splitters refuse classes of one row; here such a row stays in training. If every share
    rounds to nothing, the largest class gives one row, provided that it has two.
    """
    counts = np.bincount(codes)
    take = np.minimum(np.floor(fraction * counts + 0.5).astype(int), counts - 1)
    if not take.any():
        take[counts.argmax()] = min(1, counts.max() - 1)
    mask = np.zeros(len(codes), dtype=bool)
    for code, n in enumerate(take):
        mask[rng.permutation(np.flatnonzero(codes == code))[:n]] = True
    return mask
