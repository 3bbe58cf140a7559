"""Plan a search: put networks that share work into stacks that fit the memory."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, TypeVar

import numpy
from sklearn.base import clone

from .._fitting.gradient import GRADIENT_ROWS
from .._fitting.settings import NetworkSettings, input_settings, network_settings
from .._inputs.judged import n_judged
from .._layers.records import PAPER_SHAPE, Settings
from .._ridge.choose import LAMBDAS
from .._seam.arrays import MIN_BLOCK_ROWS, Array, aligned, block_bytes, free_bytes
from .candidates import Candidate, ResultRow, configured

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True, eq=False)
class NetworkCandidate(Candidate):
    """One network of a search."""

    plan: NetworkSettings
    seed: int  # of its random layers

    @property
    def settings(self) -> Settings:
        """The settings of the layers."""
        return self.plan.layers

    @property
    def problem(self) -> Hashable:
        """A key: networks that share it have the same training rows, inputs and random layers."""
        e = self.estimator
        drawn = (self.seed, self.settings.n_hidden, self.settings.draws)
        held_back = e.coverage_from == "split"
        return *drawn, self.plan.inputs, repr(getattr(e, "class_weight", None)), held_back

    @property
    def stack_key(self) -> Hashable:
        """A key: networks that share it can be grown in one stack."""
        s = self.settings
        chosen_by_loo = self.number if s.lam is None else None  # a network that chooses lambda grows alone
        shape = (s.n_layers, s.activation, s.renormalize, s.weight_from, s.prunes, chosen_by_loo)
        # with one read-out over all layers only networks with the same features are grown together
        joint = (s.joint, self.hidden) if s.joint else None
        return *shape, joint, self.plan.votes, self.problem

    @property
    def hidden(self) -> Hashable:
        """A key: networks of one stack that share it have the same features and differ in their read-outs."""
        s = self.settings
        return (s.gamma, s.alpha, s.p) if s.renormalize else s.p

    def at(self, depth: int) -> Any:
        """Return the network of this depth, not fitted."""
        return clone(self.estimator).set_params(n_layers=depth)


def result_rows(estimator: Any, configurations: Sequence[Mapping[str, Any]]) -> list[ResultRow]:
    """Return what is scored: every configuration at every depth, or at the depth that it names.

    Configurations that differ in `n_layers` alone are one network, because a shallower one is its prefix.
    """
    base = estimator.get_params(deep=False)
    networks: dict[str, Any] = {}
    rows: dict[tuple[str, int], dict[str, Any]] = {}  # each network at each depth once
    for configuration in configurations:
        model = configured(estimator, base, configuration)
        for name in ("n_hidden", "n_layers", "input_scaling"):
            if getattr(model, name) == "auto":  # one shape for all splits and the refit, whatever their rows
                setattr(model, name, getattr(PAPER_SHAPE, name))
        depths = [model.n_layers] if "n_layers" in configuration else range(1, model.n_layers + 1)
        own = {name: value for name, value in configuration.items() if name in base}
        identity = repr(base | own | {"n_layers": None, "encoder": input_settings(model)})
        network = networks.setdefault(identity, model)
        network.n_layers = max(network.n_layers, model.n_layers)
        for depth in depths:
            rows.setdefault((identity, depth), {**configuration, "n_layers": depth})
    scored: dict[str, set[int]] = {}
    for identity, depth in rows:
        scored.setdefault(identity, set()).add(depth)
    # a clone, so that a RandomState instance of the user's does not move on
    seed_of = cache(lambda state: clone(type(estimator)(random_state=state))._draw_seed())
    candidates = {
        identity: NetworkCandidate(
            i, model, scored[identity], network_settings(model), seed_of(model.random_state)
        )
        for i, (identity, model) in enumerate(networks.items())
    }
    return [ResultRow(candidates[identity], depth, params) for (identity, depth), params in rows.items()]


Stack = list[list[NetworkCandidate]]  # hidden settings, each with its read-outs


@dataclass(frozen=True, slots=True)
class Size:
    """What decides the memory that a stack needs, apart from its settings."""

    m: int  # training rows
    v: int  # rows that are scored
    d: int
    k: int  # classes or outputs
    itemsize: int
    stacked: bool  # whether hidden settings and read-outs are computed side by side
    values: bool = False  # whether the targets are values

    @property
    def judged(self) -> int:
        """How many training rows get leave-one-out scores."""
        return n_judged(self.m, None if self.values else self.k)


def groups(items: Sequence[Item], key: Callable[[Item], Hashable]) -> list[list[Item]]:
    """Put items with the same key together, in the order in which the keys first occur."""
    found: dict[Hashable, list[Item]] = {}
    for item in items:
        found.setdefault(key(item), []).append(item)
    return list(found.values())


def stacks(candidates: Sequence[NetworkCandidate], size: Size, memory: int) -> Iterator[Stack]:
    """Cut candidates of one problem into stacks that fit the memory.

    Side by side, a stack has several hidden settings with the same number of read-outs; otherwise it has
    one hidden setting.
    """
    for stackable in groups(candidates, lambda c: c.stack_key):
        pieces = [p for alike in groups(stackable, lambda c: c.hidden) for p in _fitting(alike, size, memory)]
        for alike in groups(pieces, len):
            stack: Stack = []
            for piece in alike:
                if stack and not (size.stacked and bytes_needed([*stack, piece], size) <= memory):
                    yield stack
                    stack = []
                stack.append(piece)
            yield stack


def _fitting(read_outs: list[NetworkCandidate], size: Size, memory: int) -> Iterator[list[NetworkCandidate]]:
    """Halve the read-outs of one hidden setting until a part of them fits."""
    n = len(read_outs)
    while (need := bytes_needed([read_outs[:n]], size)) > memory:
        if n == 1:
            raise MemoryError(
                f"One network of {read_outs[0].settings.n_hidden} neurons on {size.m} + {size.v} rows needs "
                f"about {math.ceil(need / 2**20)} MiB; the memory budget is {memory // 2**20} MiB. Give more "
                "memory or try fewer neurons."
            )
        n = (n + 1) // 2
    yield from (read_outs[i : i + n] for i in range(0, len(read_outs), n))


def stack_settings(stack: Stack, stacked: bool) -> Settings:
    """Return the settings of a stack, with the axes (hidden settings, read-outs) if it is side by side."""
    first = stack[0][0].settings
    if first.lam is None:
        return first
    of_hidden, of_read_out = ("gamma", "alpha", "p"), ("lam", "omega_r")
    values = {name: [getattr(row[0].settings, name) for row in stack] for name in of_hidden}
    values |= {name: [[getattr(c.settings, name) for c in row] for row in stack] for name in of_read_out}
    arrays = {name: numpy.array(value, dtype=float) for name, value in values.items()}
    return replace(first, **(arrays if stacked else {name: array[0] for name, array in arrays.items()}))


def memory_budget(memory: int | None, like: Array) -> int:
    """Return the bytes that a search may use: `memory` MiB, or half of what is free on the data's device."""
    return free_bytes(like) // 2 if memory is None else memory * 2**20


def bytes_needed(stack: Stack, size: Size) -> int:
    """Estimate the peak memory of scoring a stack, from shapes; benchmarks/search_memory.py checks it."""
    stacked = size.stacked and not stack[0][0].settings.joint
    s = stack_settings(stack, stacked)
    f, r, m, v, k = len(stack), len(stack[0]), size.m, size.v, size.k
    n, rows = stack[0][0].settings.n_hidden, m + v
    c = n + size.d + 1
    abreast = f * r if stacked else 1  # systems that are solved at a time
    parted = s.prunes and s.n_layers > 1 and r > 1  # then every network gets features of its own
    features = (f + (abreast if parted else 0)) * rows * aligned(c)
    draws = (s.n_layers + (3 * abreast if stacked and s.prunes else 1)) * (c + 1) * n
    if s.joint:  # the features of all layers beside those of one, and the read-outs are of all of them
        c += (s.n_layers - 1) * n
        features += rows * aligned(c)
    side = min(c, m)
    systems = (4 * abreast + 2) * side * side * (2 if s.weighs_by_loo and c > m else 1)
    if s.joint:  # each lambda keeps half a factor
        systems += r * side * (side + n) // 2
    answers = f * r * (4 * v * k + 6 * m) + (2 * f * r * m * k if s.weighs_by_loo else 0)
    plan = stack[0][0].plan
    if size.values:  # y and what it is standardised by; the errors of the rows that are scored
        answers += (6 * m + (2 + 3 * f * r) * v) * k * 8 // size.itemsize
    if plan.judges and not (size.values and plan.votes.keeps_predictions):  # values need no calibration
        # the judged rows' scores, in float64 their combination, and what one calibration needs for a while
        answers += (f * r + 12) * size.judged * k * (1 + 8 // size.itemsize)
    # Leave-one-out tries all penalties, on a block of rows that has the scores of all of them.
    chosen = m * k + len(LAMBDAS) * (2 * m + 4 * k * min(m, MIN_BLOCK_ROWS)) if s.lam is None else 0
    # Moore-Penrose: the weighted rows, both sides of their decomposition, and its work space
    decomposed = 4 * m * c if s.lam is not None and numpy.any(s.lam == 0) else 0
    block = min(block_bytes(size.stacked, abreast * c * size.itemsize), abreast * rows * c * size.itemsize)
    numbers = features + systems + draws + answers + chosen + decomposed
    if plan.inputs.scaling is not None:  # a kernel ridge is fitted and thrown away before
        numbers = max(numbers, m * size.d + 8 * min(GRADIENT_ROWS, m) ** 2)
    numbers += rows * size.d
    return size.itemsize * numbers + 3 * block
