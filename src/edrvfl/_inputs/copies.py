"""Whether rows that are equal are copies of a row, or agree by chance."""

from __future__ import annotations

import math
from collections.abc import Iterator

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
    return together > 0 and math.prod(map(agreeing, _independent(X))) >= 1e-3 * together


def _independent(X: numpy.ndarray) -> Iterator[numpy.ndarray]:
    """Yield codes of the columns of X, but of no sine and cosine of what the column before them tells.

    The parts of a date are such columns: a day that comes often would seem to agree seven times by chance.
    """
    j = 0
    while j < X.shape[1]:
        codes = numpy.unique(X[:, j], return_inverse=True)[1]
        yield codes
        j += 1
        while _is_circle(X[:, j : j + 2]) and _tells(codes, X[:, j : j + 2]):
            j += 2


def _is_circle(pair: numpy.ndarray) -> bool:
    """Tell whether two columns are sine and cosine, or missing."""
    if pair.shape[1] < 2:
        return False
    squares = numpy.square(pair).sum(axis=1)
    return bool((numpy.isnan(squares) | (numpy.abs(squares - 1) < 1e-5)).all())


def _tells(codes: numpy.ndarray, pair: numpy.ndarray) -> bool:
    """Tell whether rows of the same code have the same pair."""
    first = numpy.unique(codes, return_index=True)[1][codes]
    return bool(((pair == pair[first]) | numpy.isnan(pair)).all())
