"""Whether rows that are equal are copies of a row, or agree by chance."""

from __future__ import annotations

import math

import numpy


def agree_by_chance(X: numpy.ndarray, twins: numpy.ndarray, times: numpy.ndarray) -> bool:
    """Tell whether rows of X (m, d) that agree in all columns do so by chance, and not as copies of a row.

    The rows differ in X or in their target, and come so many times. Copies have the same target, so only
    pairs of rows that differ count: some must agree in X, which have the same number in `twins`, and if
    columns were independent, at least a thousandth of as many would. The tables of the study are far from
    this line: it is a third or more where columns have few values, and about a millionth
    or less for measurements.
    """
    copies, n = numpy.square(times).sum(), times.sum()

    def agreeing(codes: numpy.ndarray) -> float:
        """Return the share of pairs of different rows that have the same code."""
        return float((numpy.square(numpy.bincount(codes, times)).sum() - copies) / max(n * n - copies, 1))

    together = agreeing(twins)
    alone = (agreeing(numpy.unique(column, return_inverse=True)[1]) for column in X.T)
    return together > 0 and math.prod(alone) >= 1e-3 * together
