"""Training: plain stochastic gradient descent with early stopping on rows that are held out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import TYPE_CHECKING

import numpy as np

from .networks import Design, Drop, Layer, forward, forward_by_blocks

if TYPE_CHECKING:
    import torch
    from torch import Tensor

SMOOTHING = 5  # early stopping watches the mean validation loss of this many epochs


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Inputs and class codes."""

    X: Tensor
    y: Tensor

    def to(self, device: torch.device) -> Rows:
        """Copy the rows to a device."""
        return Rows(self.X.to(device), self.y.to(device))


@dataclass(frozen=True, slots=True, eq=False)
class Job:
    """A network to train; see the parameters of FNNClassifier. Layers and rows are on the CPU."""

    design: Design
    layers: Sequence[Layer]
    rows: Rows
    held_out: Rows | None
    learning_rate: float
    dropout: float
    batch_size: int
    epochs: int
    patience: int
    batch_seed: int
    dropout_seed: int


@dataclass(slots=True, eq=False)
class Trained:
    """How a training goes: the layers that are kept, their epoch, the losses, and whether it diverged.

    With held-out rows, the layers of the epoch with the smallest smoothed validation loss are kept, and
    training ends after `patience` epochs without a smaller one. Without such rows, the layers of the last
    epoch are kept. An epoch after which a loss or a weight is not finite is discarded and ends the training.
    """

    layers: Sequence[Layer]
    epoch: int = 0
    losses: list[float] = field(default_factory=list)
    validation_losses: list[float] = field(default_factory=list)
    diverged: bool = False
    least: float = math.inf  # what early stopping watches, at the epoch whose layers are kept

    @property
    def smoothed(self) -> float:
        """What early stopping watches; without held-out rows every epoch is better than the one before."""
        return float(np.mean(self.validation_losses[-SMOOTHING:] or -len(self.losses)))


def train(job: Job, device: torch.device) -> Trained:
    """Train a network on a device."""
    import torch

    rows, held_out = job.rows.to(device), job.held_out.to(device) if job.held_out else None
    layers = [(W.to(device, copy=True), b.to(device, copy=True)) for W, b in job.layers]
    generator = torch.Generator().manual_seed(job.batch_seed)
    trained = Trained(_copy(layers))
    for epoch in range(1, job.epochs + 1):
        order = torch.randperm(len(rows.y), generator=generator).to(device)
        trained.losses.append(_pass_once(job, layers, rows, order, epoch))
        if held_out is not None:
            logits = forward_by_blocks(job.design, layers, held_out.X)
            trained.validation_losses.append(torch.nn.functional.cross_entropy(logits, held_out.y).item())
        figures = torch.stack([p.sum() for layer in layers for p in layer])  # finite only if all terms are
        if not (math.isfinite(trained.losses[-1] + trained.smoothed) and figures.isfinite().all()):
            trained.diverged = True
            break
        if trained.smoothed < trained.least:
            trained.layers, trained.epoch, trained.least = _copy(layers), epoch, trained.smoothed
        elif epoch - trained.epoch >= job.patience:
            break
    return trained


def train_again(job: Job, device: torch.device, restarts: int) -> tuple[Trained, float]:
    """Train a network, and return how it went and with which learning rate.

    A training that diverges starts again from the same weights with a tenth of the rate. Of several trainings
    the one with the smallest loss is kept: one that diverged late may have been better before.
    """
    found = [(train(job, device), job.learning_rate)]
    while found[-1][0].diverged and len(found) <= restarts:
        job = replace(job, learning_rate=job.learning_rate / 10)
        found.append((train(job, device), job.learning_rate))
    return min(found, key=lambda pair: pair[0].least)


def _copy(layers: Sequence[Layer]) -> list[Layer]:
    return [(W.detach().clone(), b.detach().clone()) for W, b in layers]


def _pass_once(job: Job, layers: Sequence[Layer], rows: Rows, order: Tensor, epoch: int) -> float:
    """Descend once over all rows, batch by batch, and return their mean loss."""
    import torch

    parameters = [p.requires_grad_() for layer in layers for p in layer]
    total = torch.zeros((), dtype=rows.X.dtype, device=order.device)
    for step, batch in enumerate(torch.split(order, job.batch_size)):
        logits = forward(job.design, layers, rows.X[batch], _make_drop(job, epoch, step))
        loss = torch.nn.functional.cross_entropy(logits, rows.y[batch])
        gradients = torch.autograd.grad(loss, parameters)
        with torch.no_grad():
            for p, gradient in zip(parameters, gradients, strict=True):
                p.sub_(gradient, alpha=job.learning_rate)
        total += loss.detach() * len(batch)
    return total.item() / len(order)


# --- which neurons are dropped -------------------------------------------------------------------------
# SplitMix64 (Steele, Lea and Flood, 2014) as a function of a key and a counter: the draw of a neuron depends
# on the seed, the epoch, the place of the dropout, the step, the row and the neuron, and on nothing else. So
# a network draws the same on every device.

GOLDEN, FIRST, SECOND = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
BITS = 24  # a draw is an integer below 2^24
ROWS, NEURONS = 1 << 20, 1 << 20  # a counter has room for so many rows in a step and neurons in a row


def _make_drop(job: Job, epoch: int, step: int) -> Drop | None:
    """Make the dropout of one step, which is called once for each place in the network."""
    if not job.dropout:
        return None
    of_epoch, places = splitmix64(job.dropout_seed, epoch), count(1)
    least = round(job.dropout * (1 << BITS))

    def drop(h: Tensor) -> Tensor:
        return job.design.dropout(h, draw(splitmix64(of_epoch, next(places)), step, h) < least, job.dropout)

    return drop


def splitmix64(key: int, i: int) -> int:
    """Return output number i, from 1, of the generator that starts at `key`."""
    z = (key + i * GOLDEN) % (1 << 64)
    for shift, factor in ((30, FIRST), (27, SECOND)):
        z = (z ^ (z >> shift)) * factor % (1 << 64)
    return z ^ (z >> 31)


def draw(key: int, step: int, h: Tensor) -> Tensor:
    """Return integers below 2^24, one for each neuron of each row of h: the highest bits of `splitmix64`."""
    import torch

    rows, neurons = (torch.arange(n, device=h.device) for n in h.shape)
    z = ((rows + step * ROWS)[:, None] * NEURONS + neurons + 1) * _signed(GOLDEN) + _signed(key)
    for shift, factor in ((30, FIRST), (27, SECOND)):
        z ^= (z >> shift) & ((1 << (64 - shift)) - 1)  # the mask makes it a shift of unsigned numbers
        z *= _signed(factor)
    return (z >> (64 - BITS)) & ((1 << BITS) - 1)  # the last step of SplitMix64 leaves these bits as they are


def _signed(number: int) -> int:
    """Return the int64 with the bits of a uint64: torch has no arithmetic of the latter."""
    return number - (1 << 64) if number >> 63 else number


# --- rows that are held out ----------------------------------------------------------------------------


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
