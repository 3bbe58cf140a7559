"""The parts of a fit, which must be the same in every pass: a checksum of each part tells."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import narwhals.stable.v2 as narwhals
import numpy

from .._inputs.values import distinct_values, is_number_type, read_numbers
from .parts import Part, Parts, Several, about_block

Mark = tuple[int, int]  # the number of a part's rows, and their checksum


@dataclass(eq=False)
class WatchedParts:
    """The parts of a fit: sums over them, which see that no part changes between two passes."""

    parts: Parts
    heard: Callable[[int], None] | None = None  # is told how many parts of a pass are done
    held: Mapping[int, Any] | None = None  # by part: rows that are held back, as `Part.without` names them
    marks: dict[int, Mark] | None = None  # of the pass before

    def total(self, function: Callable[[Part], Any]) -> Any:
        """Return the sum of function(part) over all parts, by one pass."""
        found: Several | None = self.parts.total(partial(_watch, function, self.held, self.marks), self.heard)
        value, marks = (None, []) if found is None else found.values
        now = dict(marks)
        for number, (n_rows, _) in ({} if self.marks is None else self.marks).items():
            if n_rows and number not in now:
                with about_block(number):
                    raise ValueError(changed_message(n_rows, 0))
        self.marks = now
        return value

    @property
    def n_parts(self) -> int:
        """How many parts the pass before had."""
        return len(self.marks or {})

    def without(self, held: Mapping[int, Any]) -> WatchedParts:
        """Return the same parts without the rows that are held back."""
        return replace(self, held=held)


def _watch(
    function: Callable[[Part], Any],
    held: Mapping[int, Any] | None,
    before: Mapping[int, Mark] | None,
    part: Part,
) -> Several:
    """Compare a part with the pass before, and hand it to a function without rows that are held back."""
    known = (0, 0) if before is None else before.get(part.number, (0, 0))
    with about_block(part.number):
        if before is not None and _mark(part) != known:
            raise ValueError(changed_message(known[0], part.n_rows))
        kept = part if held is None else part.without(held.get(part.number, []))
    value = function(kept)
    # in the first pass only now, because the function may refuse what has no checksum
    mark = _mark(part) if before is None else known
    return Several((value, [(part.number, mark)]))


def _mark(part: Part) -> Mark:
    return part.n_rows, checksum(part) if part.n_rows else 0


def changed_message(before: int, now: int) -> str:
    """Say that a part changed between two passes."""
    values = ", with other values or in another order" if before == now else ""
    return (
        f"it changed between two passes. It had {before} rows, and now has {now}{values}. A source must give "
        "the same blocks, in the same order, whenever it is read."
    )


def checksum(part: Part) -> int:
    """Return a checksum that sees changed, and swapped, values and rows.

    CRC-32 takes 4 GB/s. Sums of words times random numbers take 10 GB/s, but in columns of small whole
    numbers they miss one of 2000 swaps: only the few highest bits of these differ.
    """
    check = 0
    for values in (part.X, part.y, part.weight):
        for array in _arrays(values):
            # in the order of memory, for a copy in another order would take three times as long
            check = zlib.crc32(array.ravel(order="K").view(numpy.uint8).data, check)
    return check


def _arrays(values: Any) -> Iterator[numpy.ndarray]:
    """Yield what rows hold, as arrays of numbers and of fixed text."""
    frame = values if isinstance(values, numpy.ndarray) else narwhals.from_native(values, pass_through=True)
    if isinstance(frame, narwhals.DataFrame):
        yield _texts(map(str, frame.columns))
        for column in frame.iter_columns():
            yield from _of_column(column)
        return
    array = numpy.asarray(values, dtype=object if isinstance(values, list) else None)
    yield array if array.dtype.kind in "biufSU" else _texts(map(repr, array.ravel().tolist()))


def _of_column(column: Any) -> Iterator[numpy.ndarray]:
    if is_number_type(column):
        yield read_numbers(column)
        return
    values, places = distinct_values(column)
    texts = numpy.asarray([repr(value) for value in values])
    if places is not None:  # among values in any order
        texts, ranks = numpy.unique(texts, return_inverse=True)
        yield ranks[places]
    yield _texts(texts.tolist())


def _texts(texts: Any) -> numpy.ndarray:
    return numpy.frombuffer("\0".join(texts).encode("utf-8", "surrogatepass"), dtype=numpy.uint8)
