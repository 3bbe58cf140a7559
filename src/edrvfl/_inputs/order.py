"""Order and draw rows by what they hold, so that neither depends on the order in which rows came."""

from __future__ import annotations

import numpy

from .weights import rows_worth

# Odd 64-bit constants without structure: the fractions of the golden ratio and of pi, and a mix of SplitMix64
GOLDEN, PI, MIX = (numpy.uint64(c) for c in (0x9E3779B97F4A7C15, 0x243F6A8885A308D3, 0xBF58476D1CE4E5B9))


def row_hashes(X: numpy.ndarray) -> numpy.ndarray:
    """Return one uint64 for each row of X (m, d), from its numbers in float32. Equal rows have equal ones."""
    with numpy.errstate(over="ignore"):  # integers wrap around, and large numbers become infinite
        # 0 is added because -0.0 has other bits than 0.0; gaps may have several
        bits = numpy.where(numpy.isnan(X), numpy.nan, X + 0.0).astype(numpy.float32).view(numpy.uint32)
        total = numpy.full(len(X), PI)
        for j in range(X.shape[1]):
            total = (total ^ bits[:, j]) * GOLDEN
            total ^= total >> numpy.uint64(29)
        total *= MIX
        return total ^ (total >> numpy.uint64(32))


def draw_rows(
    n: int, codes: numpy.ndarray, counts: numpy.ndarray, order: numpy.ndarray, start: float
) -> numpy.ndarray:
    """Draw n rows or a few less, and return how often each of the m rows was drawn.

    Classes share the draws evenly as far as they have rows. A class's rows stand in the given order on a
    line, each as long as its count, and points at equal steps hit the rows that are drawn: a row of count 2
    is drawn like the row twice. The first point is at `start`, in [0, 1), of the first step.
    """
    k = int(codes.max()) + 1
    by_class = [order[codes[order] == c] for c in range(k)]
    worth = [int(rows_worth(counts[rows]) + 1e-9) for rows in by_class]
    times = numpy.zeros(len(codes))
    left = n
    for i, c in enumerate(numpy.argsort(worth, kind="stable")):  # the smallest class first
        quota = min(worth[c], left // (k - i))
        left -= quota
        if quota:
            rows = by_class[c]
            line = numpy.cumsum(counts[rows])
            points = (numpy.arange(quota) + start) * (line[-1] / quota)
            drawn = numpy.minimum(numpy.searchsorted(line, points, side="right"), len(rows) - 1)
            times[rows] = numpy.bincount(drawn, minlength=len(rows))
    return times
