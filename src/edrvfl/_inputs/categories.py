"""Weigh the categories of a column, and decide which get a one-hot column of their own."""

from __future__ import annotations

from dataclasses import dataclass

import numpy

from .._seam.arrays import Array
from .rows import to_host

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

    @classmethod
    def of(cls, weights: numpy.ndarray, missing: bool, total: float, least: float) -> Tally:
        """Rank categories by the weights of their codes. Those of less weight than `least` are rare."""
        shares = numpy.round(weights / total, DIGITS)
        frequent = numpy.flatnonzero((weights > 0) & (shares >= round(least / total, DIGITS)))
        # among equals the smaller code goes first
        return cls(weights, missing, frequent[numpy.argsort(-shares[frequent], kind="stable")])

    def narrowed(self, most: int) -> Tally:
        """Keep the heaviest categories, so that with the rare ones they have at most `most` columns."""
        crowded = len(self.frequent) + self.has_rare > most
        return Tally(self.weights, self.missing, self.frequent[: most - 1] if crowded else self.frequent)

    @property
    def has_rare(self) -> bool:
        """Whether there are categories without a column of their own."""
        return bool(len(self.frequent) < numpy.count_nonzero(self.weights))

    @property
    def wanted(self) -> int:
        """How many columns the categories ask for beside the first."""
        return max(0, len(self.frequent) + self.has_rare - 1)

    def groups(self) -> tuple[list[str | int], numpy.ndarray]:
        """Return the label of each one-hot column, and the place among them of every code.

        The places are those of -1, of each code, of codes beyond, and of missing. What was not seen is at -1.
        """
        kept = numpy.sort(self.frequent)
        groups: list[str | int] = kept.tolist()
        places = numpy.full(len(self.weights) + 3, -1.0)
        if self.has_rare or not (groups or self.missing):  # a column of its own for each source column
            places[1:-2][self.weights > 0] = len(groups)
            groups.append("rare")
        places[1 + kept] = numpy.arange(len(kept))
        if self.missing:
            places[-1] = len(groups)
            groups.append("missing")
        return groups, places
