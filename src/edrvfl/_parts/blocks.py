"""Blocks that a source gives become parts, after a look at their shape."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from itertools import count
from typing import Any

import numpy

from .parts import Part, about_block, block_name
from .watched import checksum


class Reading:
    """One pass over a source: an iterator over its parts that holds none of them."""

    def __init__(self, read: Callable[[], Iterable[Any]], watches: bool = False) -> None:
        self._number = count()
        self._watches, self._second = watches, list[Part]()
        try:
            self._blocks = iter(read())
        except Exception as error:
            raise _unreadable(0, error) from error

    def __iter__(self) -> Reading:
        return self

    def __next__(self) -> Part:
        if self._second:
            return self._second.pop()
        part = self._read_next()
        if self._watches:
            self._watches = False
            self._refuse_overwritten(part)
        return part

    def _refuse_overwritten(self, first: Part) -> None:
        """Read the second block, and see whether that changes the first one."""
        before = _print_of(first)
        with suppress(StopIteration):
            self._second.append(self._read_next())
        if _print_of(first) != before:
            with about_block(0):
                raise ValueError(
                    "its arrays were overwritten when block 1 was read. Blocks are read ahead, while those "
                    "before them are computed: give every block arrays of its own, for instance copies."
                )

    def _read_next(self) -> Part:
        number = next(self._number)
        try:
            block = next(self._blocks)
        except (StopIteration, MemoryError):
            raise
        except Exception as error:
            raise _unreadable(number, error) from error
        with about_block(number):
            return _as_part(number, block)

    def close(self) -> None:
        """Let the source close its files."""
        if hasattr(self._blocks, "close"):
            self._blocks.close()


def _print_of(part: Part) -> int:
    """Return a checksum of the arrays of numbers in a block, which nobody has checked yet."""
    numbers = (
        a if isinstance(a, numpy.ndarray) and a.dtype.kind in "biuf" else None
        for a in (part.X, part.y, part.weight)
    )
    return checksum(Part(part.number, *numbers))


def _unreadable(number: int, error: Exception) -> OSError:
    return OSError(f"{block_name(number)}: it cannot be read. {type(error).__name__}: {error}")


def _as_part(number: int, block: Any) -> Part:
    """Return a block as a part, after a look at its shape."""
    if not isinstance(block, (tuple, list)) or len(block) not in (2, 3):
        what = f"{len(block)} values" if isinstance(block, (tuple, list)) else f"a {type(block).__name__}"
        raise TypeError(f"A block must be (X, y) or (X, y, weight), but it is {what}.")
    X, y, weight = (*block, None)[:3]
    arrow = sys.modules.get("pyarrow")  # whoever made a batch has imported it
    if arrow is not None and isinstance(X, arrow.RecordBatch):
        X = arrow.Table.from_batches([X])
    if y is None or not hasattr(y, "__len__"):
        raise TypeError(f"y must be an array of labels or values, but it is {y!r}.")
    rows = X.shape[0] if getattr(X, "shape", ()) else len(X) if hasattr(X, "__len__") else None
    if rows is not None and rows != len(y):
        raise ValueError(f"X has {rows} rows, but y has {len(y)}.")
    return Part(number, X, y, weight)
