"""Plan a search: put networks that share work into stacks that fit the memory."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import TypeVar

import numpy

from .._fitting.folds import n_folds
from .._layers.records import Settings
from .._seam.arrays import Array, block_bytes, free_bytes
from .candidates import Candidate

Item = TypeVar("Item")
Stack = list[list[Candidate]]  # hidden settings, each with its read-outs


@dataclass(frozen=True, slots=True)
class Size:
    """What decides the memory that a stack needs, apart from its settings."""

    m: int  # training rows
    v: int  # rows that are scored
    d: int
    k: int  # classes or outputs
    itemsize: int
    stacked: bool  # whether hidden settings and read-outs are computed side by side
    n_groups: int | None = None  # of the training rows, if they are in groups


def groups(items: Sequence[Item], key: Callable[[Item], Hashable]) -> list[list[Item]]:
    """Put items with the same key together, in the order in which the keys first occur."""
    found: dict[Hashable, list[Item]] = {}
    for item in items:
        found.setdefault(key(item), []).append(item)
    return list(found.values())


def stacks(candidates: Sequence[Candidate], size: Size, memory: int) -> Iterator[Stack]:
    """Cut candidates that can be stacked into stacks that fit the memory.

    Side by side, a stack has several hidden settings with the same number of read-outs; otherwise it has
    one hidden setting.
    """

    def together(c: Candidate) -> Hashable:  # a network that chooses lambda grows alone
        return c.features, c.number if c.settings.lam is None else None, c.work.network.looks_at_labels

    pieces = [p for alike in groups(candidates, together) for p in _fitting(alike, size, memory)]

    def beside(p: list[Candidate]) -> Hashable:
        s = p[0].settings
        return len(p), s.prunes, s.lam is None, p[0].work.network.looks_at_labels

    for alike in groups(pieces, beside):
        stack: Stack = []
        for piece in alike:
            more = [*stack, piece]
            if stack and not (side_by_side(more, size.stacked) and bytes_needed(more, size) <= memory):
                yield stack
                more = [piece]
            stack = more
        yield stack


def _fitting(read_outs: list[Candidate], size: Size, memory: int) -> Iterator[list[Candidate]]:
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


def side_by_side(stack: Stack, stacked: bool) -> bool:
    """Tell whether the networks of a stack are computed side by side, as suits a GPU.

    Those that choose their penalty, or that have one read-out over all layers, are not.
    """
    first = stack[0][0].settings
    return stacked and first.lam is not None and not first.joint


def stack_settings(stack: Stack, stacked: bool) -> Settings:
    """Return the settings of a stack, with the axes (hidden settings, read-outs) if it is side by side."""
    first = stack[0][0].settings
    if first.lam is None:
        return first
    arrays = {}
    for field in fields(first):
        of_row = [[getattr(c.settings, field.name) for c in row] for row in stack]
        if field.metadata.get("differs") == "read-out":
            arrays[field.name] = numpy.array(of_row, dtype=float)
        elif field.metadata.get("differs") == "features":
            arrays[field.name] = numpy.array([values[0] for values in of_row], dtype=float)
    return replace(first, **(arrays if stacked else {name: array[0] for name, array in arrays.items()}))


def memory_budget(memory: int | None, like: Array) -> int:
    """Return the bytes that a search may use: `memory` MiB, or half of what is free on the data's device."""
    return free_bytes(like) // 2 if memory is None else memory * 2**20


def bytes_needed(stack: Stack, size: Size) -> int:
    """Estimate the peak memory of scoring a stack: the features and answers of its rows, and a few matrices.

    The factors are measured: on the CPU, peaks in benchmarks/search_memory.py are 0.5 to 0.92 of it.
    What `input_scaling="gradient"` holds for a while is not counted, up to 64 MiB for each process.
    """
    members = [candidate for read_outs in stack for candidate in read_outs]
    s, networks = members[0].settings, len(members)
    abreast = networks if side_by_side(stack, size.stacked) else 1  # systems that are solved at a time
    least_norm = any(c.settings.lam == 0 for c in members)  # by a decomposition of the features
    features = len(stack) + s.prunes * abreast  # pruning parts those of read-outs
    copies = features + 3 * least_norm
    c = size.d + 1 + s.n_hidden * (s.n_layers if s.joint else 1)
    rows = (size.m + size.v) * (copies * c + 2 * (networks + 3) * size.k)
    if members[0].work.network.looks_at_labels and n_folds(
        size.m, size.d, size.n_groups
    ):  # a fold is grown beside it
        rows += size.m * (features * c + 2 * size.d + networks * s.n_layers * size.k)
    block = block_bytes(size.stacked, size.itemsize) // size.itemsize
    draws = (s.n_layers + abreast) * s.n_hidden * (s.n_hidden + size.d)
    grams = 4 * abreast * min(c, size.m) ** 2
    return int(size.itemsize * (1.2 * rows + 3 * min(rows, block) + draws + grams))
