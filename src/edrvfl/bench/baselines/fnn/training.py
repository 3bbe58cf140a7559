"""Training: plain stochastic gradient descent with early stopping on rows that are held out.

This file says what is to be trained and which networks share a stack; stack.py trains a stack.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from .networks import Design, Layer

if TYPE_CHECKING:
    import torch
    from torch import Tensor

SMOOTHING = 5  # early stopping watches the mean validation loss of this many epochs
MEMORY = {"cpu": 1 << 30, "cuda": 20 << 30}  # bytes of a stack
MEASURED_ROWS = 1024  # the held-out rows pass through a stack so many at a time
KEPT_ARRAYS = 8  # arrays of the size of its output that autograd and dropout keep of a layer, at most


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Inputs and class codes, on the CPU."""

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


@dataclass(frozen=True, slots=True, eq=False)
class Job:
    """A network to train."""

    kind: Any  # architecture and sizes; networks of one kind can share a stack
    design: Design
    layers: Sequence[Layer]  # drawn, on the CPU
    rows: Rows
    held_out: Rows | None
    recipe: Recipe
    batch_seed: int
    dropout_seed: int

    @property
    def n_weights(self) -> int:
        return sum(W.numel() + b.numel() for W, b in self.layers)

    @property
    def bytes(self) -> int:
        """Estimate what the network takes in a stack: weights and a copy of the best, features, its rows."""
        width = sum(len(b) for _, b in self.layers)
        features = (KEPT_ARRAYS * self.recipe.batch_size + MEASURED_ROWS) * width
        return self.rows.X.element_size() * (2 * self.n_weights + features + 2 * self.rows.X.numel())


@dataclass(frozen=True, slots=True)
class Trained:
    """The layers that were kept, their epoch, the losses of each epoch, and whether the training diverged.

    `seconds` is the network's share of the time of all that were trained with it, in proportion to the
    product of its weights and epochs.
    """

    layers: Sequence[Layer]
    epoch: int
    losses: tuple[float, ...]
    validation_losses: tuple[float, ...]
    diverged: bool
    seconds: float = math.nan


@dataclass(slots=True, eq=False)
class Course:
    """How the training of a network goes.

    With held-out rows, the layers of the epoch with the smallest smoothed validation loss are kept, and
    training ends after `patience` epochs without a smaller one. Without such rows, the layers of the last
    epoch are kept. An epoch after which a loss or a weight is not finite is discarded and ends the training.
    """

    job: Job
    losses: list[float] = field(default_factory=list)
    validation: list[float] = field(default_factory=list)
    kept_epoch: int = 0
    least: float = math.inf
    diverged: bool = False
    live: bool = True

    def note(self, loss: float, validation: float | None, *, finite: bool) -> bool:
        """Note what an epoch brought, and return whether its layers are the best so far."""
        self.losses.append(loss)
        if validation is not None:
            self.validation.append(validation)
        epoch, recipe = len(self.losses), self.job.recipe
        if not (finite and math.isfinite(loss) and (validation is None or math.isfinite(validation))):
            self.diverged, self.live = True, False
            return False
        # Without held-out rows every epoch counts as better than the one before.
        smoothed = -float(epoch) if validation is None else float(np.mean(self.validation[-SMOOTHING:]))
        better = smoothed < self.least
        if better:
            self.kept_epoch, self.least = epoch, smoothed
        self.live = epoch < recipe.epochs and (better or epoch - self.kept_epoch < recipe.patience)
        return better

    def end(self, layers: Sequence[Layer]) -> Trained:
        """Say how it ended."""
        return Trained(layers, self.kept_epoch, tuple(self.losses), tuple(self.validation), self.diverged)


def group_jobs(jobs: Sequence[Job], memory: int) -> list[list[int]]:
    """Put jobs into stacks: of one kind, and not more of them than fit into the memory.

    A stack has one network at least, however large. Either all networks of a stack hold out rows, or none.
    """
    found: dict[Any, list[int]] = {}
    for i, job in enumerate(jobs):
        found.setdefault((job.kind, job.held_out is None, job.rows.X.dtype), []).append(i)
    stacks: list[list[int]] = []
    for group in found.values():
        free = 0  # so that a group begins a stack of its own
        for i in group:
            if jobs[i].bytes > free:
                stacks.append([])
                free = memory
            stacks[-1].append(i)
            free -= jobs[i].bytes
    return stacks


def train_jobs(jobs: Sequence[Job], device: torch.device, memory: int | None = None) -> list[Trained]:
    """Train networks in stacks. Each is what it would be alone, up to the order of sums."""
    from .stack import train_stack

    start = time.perf_counter()
    found: dict[int, Trained] = {}
    for places in group_jobs(jobs, memory or MEMORY.get(device.type, MEMORY["cpu"])):
        found |= zip(places, train_stack([jobs[i] for i in places], device), strict=True)
    seconds = time.perf_counter() - start
    work = [job.n_weights * (1 + len(found[i].losses)) for i, job in enumerate(jobs)]
    return [replace(found[i], seconds=seconds * own / sum(work)) for i, own in enumerate(work)]


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
