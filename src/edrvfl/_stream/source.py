"""RowBlocks: rows for a fit that are read block by block, again for every layer."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from .parts import Part


class RowBlocks:
    """Rows that are read block by block, as often as a fit needs them, and never held all at once.

    Parameters
    ----------
    read : callable
        Returns an iterable over blocks (X, y) or (X, y, weight), the same blocks whenever it is called.
    """

    def __init__(self, read: Callable[[], Iterable[Any]], spill: Any = "auto", device: Any = None) -> None:
        self._read = read
        self.spill = spill
        self.threads = 1
        self.device = device

    def total(self, function: Callable[[Part], Any], heard: Callable[[int], None] | None = None) -> Any:
        """Return the sum of function(part) over all blocks."""
        found = None
        for number, block in enumerate(self._read()):
            X, y, *weight = block
            value = function(Part(number, X, y, weight[0] if weight else None))
            found = value if found is None else found if value is None else found + value
            if heard is not None:
                heard(number + 1)
        return found
