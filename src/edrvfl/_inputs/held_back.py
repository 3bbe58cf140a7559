"""Which training rows are held back from a fit, to say how far its answers are off."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy

from .._seam.arrays import Array
from .rows import keep_marked, keep_weighted, to_host

SHARE = 0.2
ENOUGH = 39  # rows with which intervals that cover 95 % are finite
MOST = 5_000  # of so many rows the share that an interval covers is known within half a point


@dataclass(frozen=True, slots=True, eq=False)
class HeldBack:
    """Rows that a fit does not see."""

    X: Array  # (n, d)
    y: Array  # (n,) or (n, k), as it came
    counts: Array | None  # (n,), sample weights
    returned: numpy.ndarray  # labels of rows that were drawn, but that a class needs in the fit


def n_held_back(m: int) -> int:
    """Return how many of m rows are held back: a fifth, at least 39 if half of them are as many."""
    return min(MOST, max(int(SHARE * m), min(ENOUGH, m // 2)))


def hold_back(
    X: Array, y: Array, sample_weight: Any, seed: int, classes: bool
) -> tuple[tuple[Array, Array, Array | None], HeldBack]:
    """Draw rows to hold back, each with the same probability; return the others, and those.

    Of a class whose rows were all drawn one returns to the fit, which could not name the class otherwise. The
    labels of such rows are noted: counted as rows outside their set, they leave the sets' guarantee intact.
    """
    counts = None
    if sample_weight is not None:
        counts, X, y = keep_weighted(sample_weight, X, y)
    m = int(X.shape[0])
    order = numpy.argsort(numpy.random.PCG64([seed, 1]).random_raw(m), kind="stable")
    drawn, others = numpy.split(order, [n_held_back(m)])
    held = numpy.zeros(m, dtype=bool)
    held[drawn] = True
    returned = numpy.empty(0)
    if classes:
        labels = to_host(y)
        found, first = numpy.unique(labels[drawn], return_index=True)
        missing = ~numpy.isin(found, labels[others])
        held[drawn[first[missing]]] = False
        returned = found[missing]
    fitted, back = (keep_marked(rows, X, y, counts) for rows in (~held, held))
    return (fitted[0], fitted[1], fitted[2]), HeldBack(back[0], back[1], back[2], returned)
