"""Which neurons are dropped: SplitMix64 (Steele, Lea and Flood, 2014), a function of a key and a counter.

The draw of a neuron depends on its network's seed, the epoch, the place of the dropout in the network, the
step, the row and the neuron, and on nothing else. So a network draws the same alone and in any stack,
whatever the depth, batch size or number of batches of its neighbours, and the same on every device; and a
generator without a state can be part of a CUDA graph.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

GOLDEN, FIRST, SECOND = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
BITS = 24  # a draw is an integer below 2^24
ROWS, NEURONS = 1 << 20, 1 << 20  # a counter has room for so many rows in a step and neurons in a row


def _signed(number: int) -> int:
    """Return the int64 with the bits of a uint64: torch has no arithmetic of the latter."""
    number &= (1 << 64) - 1
    return number - (1 << 64) if number >> 63 else number


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


class Draws:
    """The draws of all dropouts of a stack, made at once for a step.

    Parameters
    ----------
    widths : sequence of int
        How many neurons each dropout sees.

    rows : int
        Rows in a step.

    seeds : sequence of int
        The different seeds of the stack's networks. Networks of one seed share their draws.

    device : torch.device
        Where to draw.
    """

    def __init__(self, widths: Sequence[int], rows: int, seeds: Sequence[int], device: torch.device) -> None:
        self.seeds, self._rows, self._widths = tuple(seeds), rows, tuple(widths)
        self._sizes = torch.tensor([rows * n for n in widths], device=device)
        row = torch.arange(rows, device=device)[:, None] * NEURONS
        counters = [(row + torch.arange(1, n + 1, device=device)).flatten() for n in widths]
        self._base = torch.cat(counters) * _signed(GOLDEN)
        self._start = torch.empty((len(seeds), len(self._base)), dtype=torch.int64, device=device)

    def begin_epoch(self, epoch: int) -> None:
        """Put every stream to its start."""
        keys = np.stack([stream_keys(seed, epoch, len(self._widths)) for seed in self.seeds])
        on_device = torch.from_numpy(keys).to(self._base.device)
        spread = on_device.repeat_interleave(self._sizes, dim=1, output_size=len(self._base))
        torch.add(spread, self._base, out=self._start)

    def draw(self, step: Tensor) -> list[Tensor]:
        """Return integers below 2^24 (seed, row, neuron) for each dropout in step number `step`."""
        z = self._start + step * _signed(ROWS * NEURONS * GOLDEN)
        for shift, factor in ((30, FIRST), (27, SECOND)):
            z ^= (z >> shift) & ((1 << (64 - shift)) - 1)  # the mask makes it a shift of unsigned numbers
            z *= _signed(factor)
        # SplitMix64 ends with z ^ (z >> 31), which leaves the highest 31 bits as they are.
        z = ((z >> (64 - BITS)) & ((1 << BITS) - 1)).to(torch.int32)
        parts = torch.split(z, [self._rows * n for n in self._widths], dim=1)
        return [part.view(len(z), self._rows, n) for part, n in zip(parts, self._widths, strict=True)]


def thresholds(rates: Sequence[float], device: torch.device) -> Tensor:
    """Return the integers (S, 1, 1) from which on a draw keeps its neuron."""
    numbers = [round(rate * (1 << BITS)) for rate in rates]
    return torch.tensor(numbers, dtype=torch.int32, device=device)[:, None, None]
