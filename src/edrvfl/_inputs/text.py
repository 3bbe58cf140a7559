"""Short text: hashed pieces of words, which fixed random signs bring to a few columns.

No label and no other row has a say in what a text becomes, so that leave-one-out stays exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any

import numpy
from scipy.sparse import csr_array

from .._seam.fields import Between
from .rows import GOLDEN, MIX, PI
from .values import text_of

SHORTEST, LONGEST = 3, 5  # letters of a piece
N_PIECES = 2**16  # that are told apart
N_COLUMNS = 32
BLOCK = 2**20  # letters that are worked at a time
# What a column of text must have to be text and not categories.
MANY_TEXTS, LEAST_NEW, LEAST_WORDS = 100, 0.5, 2.0
# The variance of all columns of a text together: that of one column of numbers.
VARIANCE = 1.0


@dataclass(frozen=True, slots=True)
class Text:
    """What is known of a column of text: how many columns it becomes, by which rule."""

    n_columns: Annotated[int, Between(1, 64)] = N_COLUMNS
    scheme: Annotated[int, Between(1, 1)] = 1  # numbers the rule of this file

    @property
    def parts(self) -> tuple[str, ...]:
        """The columns that a column becomes."""
        return tuple(f"text{i}" for i in range(self.n_columns))

    def coded(self, values: Sequence[Any]) -> numpy.ndarray:
        """Return sum_g s(g) / sqrt(n) over the n pieces g of each text, s(g) signs; NaN where missing."""
        found = numpy.full((len(values), self.n_columns), numpy.nan)
        rows = [i for i, value in enumerate(values) if value is not None]
        texts = [f" {' '.join(text_of(values[i]).lower().split())} " for i in rows]
        ends = numpy.cumsum([len(text) for text in texts])
        start = 0
        while start < len(texts):
            before = ends[start - 1] if start else 0
            stop = max(start + 1, int(numpy.searchsorted(ends, before + BLOCK, side="right")))
            found[rows[start:stop]] = _projected(texts[start:stop], self.n_columns)
            start = stop
        return found


def holds_text(values: Sequence[str | None], n_present: int) -> bool:
    """Tell whether the different values of a column that has so many cells are text rather than categories.

    There are 100 or more, more than half as many as there are cells, of two words or more on average.
    """
    different = set(values) - {None}
    if len(different) < MANY_TEXTS or len(different) <= LEAST_NEW * n_present:
        return False
    return sum(len(text.split()) for text in different if text) >= LEAST_WORDS * len(different)


def _projected(texts: list[str], n_columns: int) -> numpy.ndarray:
    """Return the signed sums of some texts over the square roots of how many pieces they have."""
    letters = numpy.frombuffer("".join(texts).encode("utf-32-le", "surrogatepass"), "<u4")
    letters = numpy.concatenate([letters, numpy.zeros(LONGEST)]).astype(numpy.uint64)
    lengths = numpy.array([len(text) for text in texts])
    ends = numpy.repeat(numpy.cumsum(lengths), lengths)  # of the text that each letter is in
    hashes = numpy.full(len(ends), PI)
    total = numpy.zeros((len(texts), n_columns), dtype=numpy.float32)
    n_pieces = numpy.zeros(len(texts), dtype=numpy.int64)
    for n in range(1, LONGEST + 1):  # the hash of a piece goes on from that without its last letter
        hashes = _stirred(hashes, letters[n - 1 : n - 1 + len(hashes)])
        if n >= SHORTEST:
            whole = numpy.arange(n, len(ends) + n) <= ends
            counts = numpy.maximum(lengths - n + 1, 0)
            starts = numpy.concatenate([[0], numpy.cumsum(counts)])
            pieces = (_mixed(hashes[whole]) % numpy.uint64(N_PIECES)).astype(numpy.int64)
            ones = numpy.ones(len(pieces), dtype=numpy.float32)
            total += csr_array((ones, pieces, starts), shape=(len(texts), N_PIECES)) @ signs(n_columns)
            n_pieces += counts
    return total / numpy.sqrt(numpy.maximum(n_pieces, 1))[:, None]


def _stirred(hashes: numpy.ndarray, letters: numpy.ndarray) -> numpy.ndarray:
    with numpy.errstate(over="ignore"):  # integers wrap around
        hashes = (hashes ^ letters) * GOLDEN
    return hashes ^ (hashes >> numpy.uint64(29))


def _mixed(hashes: numpy.ndarray) -> numpy.ndarray:
    with numpy.errstate(over="ignore"):
        hashes = hashes * MIX
    return hashes ^ (hashes >> numpy.uint64(32))


@cache
def signs(n_columns: int) -> numpy.ndarray:
    """Return the sign, 1 or -1, that each piece has in each column: -1 where a bit of its hash is set."""
    every = numpy.arange(N_PIECES, dtype=numpy.uint64)
    hashes = _mixed(_stirred(numpy.full(N_PIECES, PI), every))
    bits = (hashes[:, None] >> numpy.arange(n_columns, dtype=numpy.uint64)) & numpy.uint64(1)
    return (1 - 2 * bits.astype(numpy.int64)).astype(numpy.float32)
