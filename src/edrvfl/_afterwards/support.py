"""How far a row is from those that a model was fitted to, as a rank among the training rows themselves."""

from __future__ import annotations

from dataclasses import dataclass

import numpy

from .._inputs.rows import row_hashes
from .._seam.arrays import row_blocks
from .explained import Explained
from .readouts import Spread

TINY = 1e-300  # a variance that counts as none
SEEN = 2_000  # training rows among which a row is ranked: a rank is known within half a thousandth


@dataclass(frozen=True, slots=True, eq=False)
class Ranking:
    """Values of rows, sorted, and the share of the rows up to each."""

    values: numpy.ndarray
    shares: numpy.ndarray  # 0 first

    @classmethod
    def of(cls, values: numpy.ndarray, weights: numpy.ndarray) -> Ranking:
        """Sort the values of rows with weights."""
        order = numpy.argsort(values, kind="stable")
        shares = numpy.concatenate([[0.0], numpy.cumsum(weights[order])])
        return cls(values[order], shares / shares[-1])

    def __call__(self, values: numpy.ndarray) -> numpy.ndarray:
        """Return the share of the rows whose values are below these, and half of that of equal ones.

        1 is beyond all of them, and infinity always is. With all of the equal ones, rows that nothing tells
        apart, as rows of common categories, would be beyond all.
        """
        below, up_to = (
            self.shares[numpy.searchsorted(self.values, values, side=side)] for side in ("left", "right")
        )
        return numpy.where(numpy.isinf(values), 1.0, (below + up_to) / 2)


def ranks(explained: Explained, X: numpy.ndarray) -> numpy.ndarray:
    """Return for each row of X the share (rows,) of the training rows that are less far out.

    How far out a row is, is asked in every layer and every kernel: by its leverage, or by the variance that
    the kernel leaves; and in the columns as they came, because encodings may clip. Each time it is ranked
    among the training rows, as they are seen by the others. The largest rank counts, and is ranked among
    those of the training rows.
    """
    known = explained.known
    some = _some_rows(known.X)
    weights = numpy.bincount(known.at, explained.rows.counts)[some]
    with explained.computing():
        spreads = [one.spread(some) for one in explained.read_outs]
        spreads.append(column_spread(known.X[some], explained.categorical))
        rankings = [[Ranking.of(own, weights) for own in levels] for levels, _ in spreads]
        whole = Ranking.of(_largest(rankings, [levels for levels, _ in spreads]), weights)
        found = numpy.empty(len(X))
        for rows in row_blocks(X, len(X), 3 * SEEN):
            largest = _largest(rankings, [measure(X[rows]) for _, measure in spreads])
            found[rows] = numpy.where(largest < 1, whole(largest), 1.0)
    return found


def _largest(rankings: list[list[Ranking]], values: list[numpy.ndarray]) -> numpy.ndarray:
    """Return the largest of the ranks (rows,) of values, (sources, rows) each."""
    pairs = zip(rankings, values, strict=True)
    return numpy.max([rank(own) for of, each in pairs for rank, own in zip(of, each, strict=True)], axis=0)


def column_spread(X: numpy.ndarray, categorical: numpy.ndarray) -> Spread:
    """Return how far out rows are in the column where they are farthest, and a function for new rows.

    A number is so many standard deviations from the mean of the others. Where the others have no such
    category, or no gap, it is infinite.
    """
    X = X.astype(float, copy=False)
    some = numpy.maximum((~numpy.isnan(X)).sum(axis=0), 2)
    mean = numpy.nansum(X, axis=0) / some
    squares = numpy.nansum((X - mean) ** 2, axis=0)
    known = [numpy.unique(X[:, j], return_counts=True) for j in range(X.shape[1])]

    def of(rows: numpy.ndarray, own: int) -> numpy.ndarray:
        """Measure rows; `own` is 1 if they are among those that are known, and 0 for new ones."""
        apart = numpy.abs(rows - mean)
        # without the row itself mean and squares are others
        left = numpy.maximum(squares - own * apart**2 * some / (some - 1), 0.0)
        apart = apart * (1 + own / (some - 1))
        far = numpy.where(apart > 0, apart / numpy.sqrt(left / (some - own) + TINY), 0.0)
        for j, (values, counts) in enumerate(known):
            named = categorical[j] | numpy.isnan(rows[:, j])
            place = numpy.minimum(numpy.searchsorted(values, rows[:, j]), len(values) - 1)
            same = (values[place] == rows[:, j]) | (numpy.isnan(values[place]) & numpy.isnan(rows[:, j]))
            times = numpy.where(same, counts[place], 0) - own
            far[named, j] = numpy.where(times > 0, 0.0, numpy.inf)[named]
        return far.max(axis=1)[None]

    return of(X, 1 if len(X) > 2 else 0), lambda rows: of(rows, 0)


def _some_rows(X: numpy.ndarray) -> numpy.ndarray:
    """Return the places of so many rows that their order does not decide about."""
    order = numpy.argsort(row_hashes(X), kind="stable")
    return order[numpy.linspace(0, len(X) - 1, min(SEEN, len(X))).astype(int)]
