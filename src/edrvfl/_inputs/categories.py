"""Weigh the categories of a column, and decide which get a one-hot column of their own."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, replace

import numpy

from .._seam.arrays import Array
from .rows import to_host
from .values import text_of

DIGITS = 10  # of a share of the weight: sums in another order must not change which categories are kept


def code_weights(codes: Array, counts: Array | None) -> numpy.ndarray:
    """Return the weights of the codes 0, 1, ... up to the largest. No code is missing; -1 weighs nothing."""
    codes, counts = to_host(codes), None if counts is None else to_host(counts)
    known = codes >= 0
    if not known.all():
        codes, counts = codes[known], None if counts is None else counts[known]
    weights: numpy.ndarray = numpy.bincount(codes.astype(numpy.intp), counts).astype(float)
    return weights


@dataclass(frozen=True, slots=True, eq=False)
class Tally:
    """How much weight the categories of a column have."""

    weights: numpy.ndarray  # of the codes 0, 1, ...
    missing: bool  # whether some are missing
    frequent: numpy.ndarray  # codes that may get a column of their own, the heaviest first
    values: numpy.ndarray | None = None  # the category of each code, whose text is hashed; None: the code
    shared: int = 1  # columns at most of the categories without one of their own

    @classmethod
    def of(
        cls,
        weights: numpy.ndarray,
        missing: bool,
        total: float,
        least: float,
        values: numpy.ndarray | None = None,
    ) -> Tally:
        """Rank categories by the weights of their codes. Those of less weight than `least` are rare."""
        shares = numpy.round(weights / total, DIGITS)
        frequent = numpy.flatnonzero((weights > 0) & (shares >= round(least / total, DIGITS)))
        # among equals the smaller code goes first
        return cls(weights, missing, frequent[numpy.argsort(-shares[frequent], kind="stable")], values)

    def narrowed(self, most: int) -> Tally:
        """Let all categories together have at most `most` columns.

        Where there are too many the heaviest keep half of the columns, and the others share the rest.
        """
        if self.wanted < most:
            return self
        own = min(len(self.frequent), most // 2)
        return replace(self, frequent=self.frequent[:own], shared=most - own)

    @property
    def has_rare(self) -> bool:
        """Whether there are categories without a column of their own."""
        return bool(len(self.frequent) < numpy.count_nonzero(self.weights))

    @property
    def wanted(self) -> int:
        """How many columns the categories ask for beside the first."""
        return max(0, len(self.frequent) + self.has_rare * self.shared - 1)

    def groups(self) -> tuple[list[str | int], numpy.ndarray]:
        """Return the label of each one-hot column, and the place among them of every code.

        The places are those of -1, of each code, of codes beyond, and of missing. What was not seen is at -1.
        """
        kept = numpy.sort(self.frequent)
        groups: list[str | int] = kept.tolist()
        places = numpy.full(len(self.weights) + 3, -1.0)
        if self.has_rare or not (groups or self.missing):  # a column of its own for each source column
            codes = numpy.setdiff1d(numpy.flatnonzero(self.weights > 0), kept)
            used, among = numpy.unique(self._hashes(codes), return_inverse=True)
            places[1 + codes] = len(groups) + among
            groups += ["rare"] if self.shared == 1 else [f"shared{i}" for i in used]
        places[1 + kept] = numpy.arange(len(kept))
        if self.missing:
            places[-1] = len(groups)
            groups.append("missing")
        return groups, places

    def _hashes(self, codes: numpy.ndarray) -> numpy.ndarray:
        """Return which of the shared columns each category has: its text decides, whatever the others are."""
        values = codes if self.values is None else self.values[codes]
        texts = (text_of(value).encode("utf-8", "surrogatepass") for value in values.tolist())
        return numpy.fromiter((zlib.crc32(text) % self.shared for text in texts), int, len(codes))
