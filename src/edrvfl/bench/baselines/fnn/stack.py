"""A stack: networks of one kind that are trained at once, each as if it were alone.

The weights of a layer are (S, inputs, outputs), the rows of a step (S, B, d). A network alone is a stack of
one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from .networks import Layer, drop_neurons, forward
from .training import MEASURED_ROWS, Course, Job, Trained


def train_stack(jobs: Sequence[Job], device: torch.device) -> list[Trained]:
    """Train networks of one kind, and return what became of each."""
    courses = [Course(job) for job in jobs]
    generators = [torch.Generator().manual_seed(job.batch_seed) for job in jobs]
    kept = [[(W.to(device), b.to(device)) for W, b in job.layers] for job in jobs]
    live = list(range(len(jobs)))
    stack, epoch = Stack(jobs, kept, device), 0
    while live:
        epoch += 1
        orders = [torch.randperm(len(jobs[i].rows.y), generator=generators[i]) for i in live]
        figures = stack.train_one_epoch(epoch, orders).double().cpu().numpy()
        for s, i in enumerate(live):
            if _note(courses[i], figures[:, s]):
                kept[i] = stack.network(s)
        still = [s for s, i in enumerate(live) if courses[i].live]
        if len(still) < len(live):
            live = [live[s] for s in still]
            if live:
                stack = Stack([jobs[i] for i in live], [stack.network(s) for s in still], device)
    return [course.end(layers) for course, layers in zip(courses, kept, strict=True)]


def _note(course: Course, figures: np.ndarray) -> bool:
    loss, validation, sums = figures.tolist()
    held_out = course.job.held_out is not None
    return course.note(loss, validation if held_out else None, finite=bool(np.isfinite(sums)))


class Stack:
    """Networks in training, with their rows on a device."""

    def __init__(
        self, jobs: Sequence[Job], networks: Sequence[Sequence[Layer]], device: torch.device
    ) -> None:
        self.design, self.device = jobs[0].design, device
        self.layers = [_side_by_side(layers) for layers in zip(*networks, strict=True)]
        self._X, self._y = self._put([job.rows.X for job in jobs]), self._put([job.rows.y for job in jobs])
        self._sizes = self._put([len(job.rows.y) for job in jobs])
        self._batch_sizes = [min(job.recipe.batch_size, len(job.rows.y)) for job in jobs]
        rates = [job.recipe.learning_rate for job in jobs]
        self._rates = torch.tensor(rates, dtype=self._X.dtype, device=device)
        self._seeds = [job.dropout_seed for job in jobs]
        lost = [job.recipe.dropout for job in jobs]
        self._drops = any(lost)
        self._thresholds = self._put([round(rate * (1 << BITS)) for rate in lost])[:, None, None]
        lost_of = torch.tensor(lost, dtype=self._X.dtype, device=device)[:, None, None]
        self._dropout = self.design.dropout(lost_of)
        self._held = None
        if held := [job.held_out for job in jobs if job.held_out is not None]:
            sizes = self._put([len(part.y) for part in held])[:, None]
            self._held = self._put([part.X for part in held]), self._put([part.y for part in held]), sizes

    def _put(self, values: Sequence[Any]) -> Tensor:
        """Put numbers, or arrays of different lengths with zeros after their ends, on the device."""
        if not isinstance(values[0], Tensor):
            return torch.tensor(values, device=self.device)
        return torch.nn.utils.rnn.pad_sequence(list(values), batch_first=True).to(self.device)

    def network(self, s: int) -> list[Layer]:
        """Return copies of the layers of a network."""
        return [(W.detach()[s].clone(), b.detach()[s].clone()) for W, b in self.layers]

    def train_one_epoch(self, epoch: int, orders: Sequence[Tensor]) -> Tensor:
        """Pass once over all rows, each network's in its order.

        Returned are (3, S) the mean training loss, the validation loss and a sum of weights.
        """
        batches = self._batches(orders)
        keys = [stream_keys(seed, epoch, len(self.design.drops)) for seed in self._seeds]
        on_device = torch.from_numpy(np.stack(keys)).to(self.device)
        total = torch.zeros(len(orders), dtype=self._X.dtype, device=self.device)
        for step in range(batches.shape[1]):
            drop = self._drop(on_device, step) if self._drops else None
            total += self._descend(batches[:, step], drop)
        with torch.no_grad():
            sums = sum(W.sum((1, 2)) + b.sum(1) for W, b in self.layers)  # finite only if all terms are
            return torch.stack([total / self._sizes, self._measure(), torch.as_tensor(sums)])

    def _batches(self, orders: Sequence[Tensor]) -> Tensor:
        """Cut the orders into (S, steps, B) numbers of rows; -1 stands for no row."""
        cut = []
        for order, size in zip(orders, self._batch_sizes, strict=True):
            steps = -(-len(order) // size)
            filled = torch.full((steps * size,), -1)
            filled[: len(order)] = order
            cut.append(filled.view(steps, size))
        steps, rows = (max(part.shape[axis] for part in cut) for axis in (0, 1))
        batches = torch.full((len(cut), steps, rows), -1)
        for s, part in enumerate(cut):
            batches[s, : len(part), : part.shape[1]] = part
        return batches.to(self.device)

    def _descend(self, rows: Tensor, drop: Callable[[Tensor], Tensor] | None) -> Tensor:
        """Take one step of gradient descent with every network that has a batch; return its summed loss."""
        networks, real = torch.arange(len(rows), device=self.device)[:, None], rows >= 0
        counts, chosen = real.sum(1, keepdim=True), rows.clamp(min=0)
        x, y = self._X[networks, chosen], self._y[networks, chosen]
        shares = real / counts.clamp(min=1).to(x.dtype)
        loss = (_losses(forward(self.design, self.layers, x, drop, _Affine.apply_to), y) * shares).sum(1)
        # The learning rate joins here, where it costs least: all gradients are linear in this one.
        torch.autograd.backward((loss * self._rates).sum())
        return loss.detach() * counts[:, 0]

    def _drop(self, keys: Tensor, step: int) -> Callable[[Tensor], Tensor]:
        """Make the dropout of one step, which is called once for each place in the network."""
        places = count()

        def drop(h: Tensor) -> Tensor:
            drawn = draw(keys[:, next(places)], step, h.shape[1], h.shape[2])
            return drop_neurons(h, drawn < self._thresholds, self._dropout)

        return drop

    def _measure(self) -> Tensor:
        """Compute the mean loss of the held-out rows of every network; NaN where none are held out."""
        if self._held is None:
            return torch.full_like(self._rates, torch.nan)
        X, y, sizes = self._held
        total = torch.zeros_like(self._rates)
        for start in range(0, X.shape[1], MEASURED_ROWS):
            part = slice(start, start + MEASURED_ROWS)
            logits = forward(self.design, self.layers, X[:, part])
            rows = torch.arange(start, start + logits.shape[1], device=self.device)
            # A row that only fills up may overflow, so its loss is replaced, not multiplied by 0.
            total += _losses(logits, y[:, part]).where(rows < sizes, 0).sum(1)
        return total / sizes[:, 0]


def _side_by_side(layers: Sequence[Layer]) -> Layer:
    return (
        torch.stack([W for W, _ in layers]).requires_grad_(),
        torch.stack([b for _, b in layers]).requires_grad_(),
    )


def _losses(logits: Tensor, y: Tensor) -> Tensor:
    """Cross-entropy (S, B) of logits (S, B, k)."""
    return cross_entropy(logits.flatten(0, 1), y.flatten(), reduction="none").view(y.shape)


class _Affine(torch.autograd.Function):
    """h W + b, whose backward pass is the step of gradient descent: W <- W - h' g, b <- b - sum g.

    The gradient of a layer is needed nowhere else, so it is subtracted as part of its product and never held.
    """

    @staticmethod
    def forward(ctx: Any, h: Tensor, W: Tensor, b: Tensor) -> Tensor:
        ctx.save_for_backward(h, W, b)
        return b.unsqueeze(1).baddbmm(h, W)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor | None, None, None]:
        h, W, b = ctx.saved_tensors
        back = g.bmm(W.mT) if ctx.needs_input_grad[0] else None  # by the weights before the step
        W.baddbmm_(h.mT, g, alpha=-1)
        b.sub_(g.sum(1))
        return back, None, None

    @classmethod
    def apply_to(cls, h: Tensor, layer: Layer) -> Tensor:
        apply: Callable[..., Tensor] = cls.apply
        return apply(h, *layer)


# --- which neurons are dropped -------------------------------------------------------------------------
# SplitMix64 (Steele, Lea and Flood, 2014) as a function of a key and a counter: the draw of a neuron depends
# on its network's seed, the epoch, the place of the dropout, the step, the row and the neuron, and on nothing
# else. So a network draws the same alone, in any stack, and on every device.

GOLDEN, FIRST, SECOND = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
BITS = 24  # a draw is an integer below 2^24
ROWS, NEURONS = 1 << 20, 1 << 20  # a counter has room for so many rows in a step and neurons in a row


def stream_keys(seed: int, epoch: int, places: int) -> np.ndarray:
    """Make the keys, as int64, of the dropouts of a network in an epoch."""

    def mix(z: Any) -> Any:
        z = (z ^ (z >> np.uint64(30))) * np.uint64(FIRST)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(SECOND)
        return z ^ (z >> np.uint64(31))

    with np.errstate(over="ignore"):  # arithmetic modulo 2^64 is meant
        of_epoch = mix(np.uint64(seed) + np.uint64(epoch) * np.uint64(GOLDEN))
        keys: np.ndarray = mix(of_epoch + np.arange(1, places + 1, dtype=np.uint64) * np.uint64(GOLDEN))
    return keys.view(np.int64)


def draw(keys: Tensor, step: int, rows: int, neurons: int) -> Tensor:
    """Return integers below 2^24 (S, row, neuron) of the streams with these keys (S,)."""
    row = (torch.arange(rows, device=keys.device) + step * ROWS)[:, None] * NEURONS
    counters = row + torch.arange(1, neurons + 1, device=keys.device)
    z = keys[:, None, None] + counters * _signed(GOLDEN)
    for shift, factor in ((30, FIRST), (27, SECOND)):
        z ^= (z >> shift) & ((1 << (64 - shift)) - 1)  # the mask makes it a shift of unsigned numbers
        z *= _signed(factor)
    # SplitMix64 ends with z ^ (z >> 31), which leaves the highest 31 bits as they are.
    return (z >> (64 - BITS)) & ((1 << BITS) - 1)


def _signed(number: int) -> int:
    """Return the int64 with the bits of a uint64: torch has no arithmetic of the latter."""
    return number - (1 << 64) if number >> 63 else number
