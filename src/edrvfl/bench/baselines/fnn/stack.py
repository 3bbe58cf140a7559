"""A stack: networks of one kind that are trained at once, each as if it were alone.

Weights of a layer are (S_l, inputs, outputs), rows of a step (S, B, d). The networks are sorted by depth, the
deepest first, so that layer l holds the first S_l of them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from .draws import Draws, thresholds
from .networks import Layer, drop_neurons, forward
from .training import MEASURED_ROWS, Course, Job, Trained

PRECISION = "high"  # of products of float32 on a GPU: TF32; benchmarks/stacks.py compares with "highest"
GRAPHS = True  # whether a step on a GPU is a CUDA graph
# Weights times rows. Ten epochs of so much take a GPU longer than to make a stack anew, by an estimate.
IDLE_WORK = 10**11


def train_stacks(stacks: Sequence[Sequence[Job]], device: torch.device, memory: int) -> list[list[Trained]]:
    """Train stacks, each of networks of one kind, and return what became of every network.

    On a GPU as many stacks as fit into the memory are trained side by side, each on a stream of its own: the
    kernels of one stack are too small to fill the device. No stack's figures depend on that.
    """
    waiting = deque(enumerate(stacks))
    running: list[_Running] = []
    found: dict[int, list[Trained]] = {}
    with _precision(device):
        while waiting or running:
            free = memory - sum(one.bytes for one in running)
            while waiting and (not running or (device.type == "cuda" and _bytes(waiting[0][1]) <= free)):
                running.append(_Running(*waiting.popleft(), device))
                free -= running[-1].bytes
            for one in list(running):
                if (ended := one.go_on()) is not None:
                    found[one.place] = ended
                    running.remove(one)
    return [found[place] for place in range(len(stacks))]


def _bytes(jobs: Sequence[Job]) -> int:
    return sum(job.bytes for job in jobs)


class _Running:
    """A stack in training, on a stream of its own."""

    def __init__(self, place: int, jobs: Sequence[Job], device: torch.device) -> None:
        self.place, self.bytes = place, _bytes(jobs)
        self._training = train_stack(jobs, device)
        self._stream: torch.cuda.Stream | None = None
        if device.type == "cuda":
            cuda: Any = torch.cuda  # whose types are not whole
            self._stream = cuda.Stream(device)
            self._stream.wait_stream(torch.cuda.current_stream(device))

    def go_on(self) -> list[Trained] | None:
        """Begin the next epoch; return what became of the networks if there is none."""
        try:
            with nullcontext() if self._stream is None else torch.cuda.stream(self._stream):
                next(self._training)
        except StopIteration as end:
            if self._stream is not None:
                self._stream.synchronize()
            ended: list[Trained] = end.value
            return ended
        return None


def train_stack(jobs: Sequence[Job], device: torch.device) -> Generator[None, None, list[Trained]]:
    """Train networks of one kind; yield when an epoch has begun, and return what became of each network."""
    courses = [Course(job) for job in jobs]
    places = sorted(range(len(jobs)), key=lambda i: -len(jobs[i].layers))
    found: dict[int, Trained] = {}
    here = [jobs[i] for i in places]
    stack: Stack | None = Stack(here, Batches(here, device), _stack_layers(here, device))
    epoch = 0
    while stack is not None:
        epoch += 1
        begun = stack.train_one_epoch(epoch)
        yield
        figures = begun.double().cpu().numpy()  # the only time in an epoch that somebody waits for the device
        stack.keep([s for s, i in enumerate(places) if courses[i].live and _note(courses[i], figures, s)])
        live = [s for s, i in enumerate(places) if courses[i].live]
        ended = [s for s, i in enumerate(places) if not courses[i].live]
        if _pays(stack.jobs, ended):  # until then, those that have ended train on, without effect
            for s in ended:
                found[places[s]] = courses[places[s]].end(stack.kept_layers(s))
            places = [places[s] for s in live]
            stack = stack.narrow(live) if live else None
    return [found[i] for i in range(len(jobs))]


def _pays(jobs: Sequence[Job], ended: Sequence[int]) -> bool:
    """Say whether to make a stack anew: if half of its networks have ended, or if these are much work."""
    work = sum(jobs[s].n_weights * len(jobs[s].rows.y) for s in ended)
    return 2 * len(ended) >= len(jobs) or work > IDLE_WORK


def _note(course: Course, figures: np.ndarray, s: int) -> bool:
    loss, validation, sums = figures[:, s].tolist()
    held_out = course.job.held_out is not None
    return course.note(loss, validation if held_out else None, finite=bool(np.isfinite(sums)))


def _stack_layers(jobs: Sequence[Job], device: torch.device) -> list[Layer]:
    """Put the drawn layers of all networks side by side: the hidden ones by their number, then read-outs."""
    depth = len(jobs[0].layers) - 1
    rows = [[job.layers[l] for job in jobs if l < len(job.layers) - 1] for l in range(depth)]
    rows.append([job.layers[-1] for job in jobs])
    return [(_gather([W for W, _ in row], device), _gather([b for _, b in row], device)) for row in rows]


def _gather(parts: Sequence[Tensor], device: torch.device) -> Tensor:
    """Stack arrays on a device. One that several networks start from travels there once."""
    different = {id(part): part for part in parts}
    there = {key: part.to(device) for key, part in different.items()}
    return torch.stack([there[id(part)] for part in parts])


# --- the batches ---------------------------------------------------------------------------------------


class Batches:
    """The rows of a stack, and the order in which its networks see them.

    Networks with the same rows, in training and held out, and the same seed share a lane. Lanes may have
    different numbers of rows and batch sizes: a step has as many rows as the largest batch, and -1 stands for
    no row. Validation rows are filled up in the same way.
    """

    def __init__(self, jobs: Sequence[Job], device: torch.device) -> None:
        lanes = {_lane(job): job for job in jobs}
        first = list(lanes.values())
        self._numbers = {key: i for i, key in enumerate(lanes)}
        self._generators = [torch.Generator().manual_seed(job.batch_seed) for job in first]
        self.sizes = [len(job.rows.y) for job in first]
        self._batch_sizes = [min(job.recipe.batch_size, len(job.rows.y)) for job in first]
        self.rows = max(self._batch_sizes)
        self.steps = max(-(-m // b) for m, b in zip(self.sizes, self._batch_sizes, strict=True))
        self.X = _pad([job.rows.X for job in first]).to(device)
        self.y = _pad([job.rows.y for job in first]).to(device)
        self.order = torch.full((len(first), self.steps, self.rows), -1, device=device)
        self.lanes = torch.arange(len(first), device=device)[:, None]
        held = [job.held_out for job in first if job.held_out is not None]
        self.held_sizes = torch.tensor([len(part.y) for part in held], device=device)
        self.held = (
            (_pad([part.X for part in held]).to(device), _pad([part.y for part in held]).to(device))
            if held
            else None
        )

    def lane_of(self, job: Job) -> int:
        return self._numbers[_lane(job)]

    def shuffle(self) -> None:
        """Draw the next epoch's order of each lane, on the CPU, so that it is the same on every device."""
        order = torch.full(self.order.shape, -1)
        for lane, generator in enumerate(self._generators):
            m, rows = self.sizes[lane], self._batch_sizes[lane]
            steps = -(-m // rows)
            drawn = torch.full((steps * rows,), -1)
            drawn[:m] = torch.randperm(m, generator=generator)
            order[lane, :steps, :rows] = drawn.view(steps, rows)
        self.order.copy_(order)

    def take(self, step: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return inputs (lane, row, column), codes and whether there is a row, of step number `step` (1,)."""
        chosen = self.order.index_select(1, step).squeeze(1)
        rows = chosen.clamp(min=0)
        return self.X[self.lanes, rows], self.y[self.lanes, rows], chosen >= 0


def _lane(job: Job) -> Any:
    return id(job.rows), id(job.held_out), job.batch_seed, job.recipe.batch_size


def _pad(parts: Sequence[Tensor]) -> Tensor:
    """Stack arrays of different lengths, with zeros after the end of the shorter ones."""
    return torch.nn.utils.rnn.pad_sequence(list(parts), batch_first=True)


# --- the stack -----------------------------------------------------------------------------------------


class Stack:
    """Networks in training. `jobs` are sorted by depth, the deepest first; `kept` are their best layers."""

    def __init__(
        self,
        jobs: Sequence[Job],
        batches: Batches,
        layers: Sequence[Layer],
        kept: Sequence[Layer] | None = None,
    ) -> None:
        device, dtype = batches.X.device, batches.X.dtype
        self.jobs, self.batches, self.design = jobs, batches, jobs[0].design
        self.layers = [(W.requires_grad_(), b.requires_grad_()) for W, b in layers]
        self.kept = kept or [(W.detach().clone(), b.detach().clone()) for W, b in layers]
        lanes = [batches.lane_of(job) for job in jobs]
        self._lane_of = torch.tensor(lanes, device=device)
        self._sizes = torch.tensor([batches.sizes[lane] for lane in lanes], device=device)
        self._rates = torch.tensor([job.recipe.learning_rate for job in jobs], dtype=dtype, device=device)
        self._step = torch.zeros(1, dtype=torch.int64, device=device)
        self._total = torch.zeros(len(jobs), dtype=dtype, device=device)
        self._prepare_dropout(device, dtype)
        self._graph = None
        if device.type == "cuda" and GRAPHS:
            self._graph = _capture(self._descend, batches.order)

    def _prepare_dropout(self, device: torch.device, dtype: torch.dtype) -> None:
        rates = [job.recipe.dropout for job in self.jobs]
        self._draws = None
        if any(rates):
            seeds = list(dict.fromkeys(job.dropout_seed for job in self.jobs))
            self._draws = Draws(self.design.drops, self.batches.rows, seeds, device)
            self._seed_of = torch.tensor([seeds.index(job.dropout_seed) for job in self.jobs], device=device)
            self._thresholds = thresholds(rates, device)
            self._dropout = self.design.dropout(
                torch.tensor(rates, dtype=dtype, device=device)[:, None, None]
            )

    def train_one_epoch(self, epoch: int) -> Tensor:
        """Pass once over all rows; return the mean training loss, the validation loss and a sum of weights.

        Nothing waits for the device, where these figures (3, S) will be.
        """
        self.batches.shuffle()
        if self._draws is not None:
            self._draws.begin_epoch(epoch)
        self._step.zero_()
        self._total.zero_()
        take_step = self._descend if self._graph is None else self._graph.replay
        for _ in range(self.batches.steps):
            take_step()
        with torch.no_grad():
            sums = torch.zeros_like(self._total)
            for W, b in self.layers:  # a sum is finite only if all its terms are
                sums[: len(W)] += W.sum((1, 2)) + b.sum(1)
            return torch.stack([self._total / self._sizes, self._measure(), sums])

    def _descend(self) -> None:
        """Take one step of gradient descent with every network that has a batch left."""
        x, y, real = self.batches.take(self._step)
        counts = real.sum(1, keepdim=True)
        shares = real / counts.clamp(min=1).to(x.dtype)
        drop = None if self._draws is None else self._drop(self._draws.draw(self._step))
        logits = forward(self.design, self.layers, x[self._lane_of], drop, _Affine.apply_to)
        loss = (_losses(logits, y[self._lane_of]) * shares[self._lane_of]).sum(1)
        # The learning rate joins here, where it costs least: all gradients are linear in this one.
        torch.autograd.backward((loss * self._rates).sum())
        self._total += loss.detach() * counts[self._lane_of, 0]
        self._step += 1

    def _drop(self, drawn: Sequence[Tensor]) -> Callable[[Tensor], Tensor]:
        """Make the dropout of one step, which is called once for each place in the network."""
        places = iter(drawn)

        def drop(h: Tensor) -> Tensor:
            S, draws = len(h), next(places)
            if len(draws) > 1:
                draws = draws[self._seed_of[:S]]
            scale, shift, floor = self._dropout
            kind = type(self._dropout)(scale[:S], shift[:S], floor)
            return drop_neurons(h, draws < self._thresholds[:S], kind)

        return drop

    def _measure(self) -> Tensor:
        """Compute the mean loss of the held-out rows of every network; NaN where none are held out."""
        if self.batches.held is None:
            return torch.full_like(self._total, torch.nan)
        X, y = self.batches.held
        sizes = self.batches.held_sizes[self._lane_of, None]
        total = torch.zeros_like(self._total)
        for start in range(0, X.shape[1], MEASURED_ROWS):
            part = slice(start, start + MEASURED_ROWS)
            logits = forward(self.design, self.layers, X[self._lane_of, part])
            rows = torch.arange(start, start + logits.shape[1], device=X.device)
            # A row that only fills up may overflow, so its loss is replaced, not multiplied by 0.
            total += _losses(logits, y[self._lane_of, part]).where(rows < sizes, 0).sum(1)
        return total / sizes[:, 0]

    def keep(self, places: Sequence[int]) -> None:
        """Copy the layers of some networks, in ascending order: they are the best so far."""
        if not places:
            return
        chosen = torch.tensor(places, dtype=torch.int64, device=self._total.device)
        for layer, kept in zip(self.layers, self.kept, strict=True):
            some = chosen[: bisect_left(places, len(layer[0]))]
            for old, new in zip(kept, layer, strict=True):
                old[some] = new.detach()[some]

    def kept_layers(self, s: int) -> list[Layer]:
        """Return copies of the best layers of a network."""
        hidden = len(self.jobs[s].layers) - 1
        return [(W[s].clone(), b[s].clone()) for W, b in (*self.kept[:hidden], self.kept[-1])]

    def narrow(self, places: Sequence[int]) -> Stack:
        """Make a stack of some of the networks, in the same order."""
        jobs = [self.jobs[s] for s in places]
        hidden = len(jobs[0].layers) - 1
        layers, kept = (self._select([*some[:hidden], some[-1]], places) for some in (self.layers, self.kept))
        return Stack(jobs, self.batches, layers, kept)

    @staticmethod
    def _select(layers: Sequence[Layer], places: Sequence[int]) -> list[Layer]:
        some = [[s for s in places if s < len(W)] for W, _ in layers]
        return [(W.detach()[s], b.detach()[s]) for s, (W, b) in zip(some, layers, strict=True)]


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


# --- the GPU -------------------------------------------------------------------------------------------


def _capture(work: Callable[[], None], order: Tensor) -> torch.cuda.CUDAGraph:
    """Record `work` as a CUDA graph, whose replay starts hundreds of kernels at once.

    The work has to run once before it is recorded. It then finds no rows, so its step changes no weight. Both
    happen on the current stream, which is not the default one: autograd remembers on which stream it met a
    weight first, and a recording fails if that is another one.
    """
    order.fill_(-1)
    work()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=torch.cuda.current_stream(order.device)):
        work()
    return graph


@contextmanager
def _precision(device: torch.device) -> Iterator[None]:
    """Let float32 products on a GPU have the precision PRECISION, and restore the one before."""
    before = torch.get_float32_matmul_precision()
    if device.type == "cuda":
        torch.set_float32_matmul_precision(PRECISION)
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)
