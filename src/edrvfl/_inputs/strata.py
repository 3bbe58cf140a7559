"""What targets say about which rows are alike: codes of classes, or groups of values."""

from __future__ import annotations

import numpy

from .._seam.arrays import Array
from .rows import Rows, to_host, weights_on_host
from .targets import Classes, Targets

GROUPS = 8  # of values, each with as much weight


def codes_of(targets: Targets) -> numpy.ndarray:
    """Return the code of each row's class; values are one class."""
    return to_host(targets.codes) if isinstance(targets, Classes) else numpy.zeros(targets.n_rows, dtype=int)


def ranking(targets: Targets, counts: Array | None) -> numpy.ndarray:
    """Return a number for each row by which rows with like targets stand together.

    It is the code of the class; of several outputs it is the combination that varies most.
    """
    if isinstance(targets, Classes):
        return to_host(targets.codes)
    Y = to_host(targets.Y).astype(float)
    if Y.shape[1] == 1:
        return Y[:, 0]
    weights = weights_on_host(counts, len(Y))
    direction = numpy.linalg.eigh((Y * weights[:, None]).T @ Y)[1][:, -1]
    # Rounding decides neither the sign nor which of two equal rows is first. Two outputs have equal parts in
    # the direction, so the sign is that of the first large part, not of the largest.
    size = numpy.abs(direction)
    direction *= numpy.sign(direction[(size > 0.5 * size.max()).argmax()])
    along: numpy.ndarray = numpy.round(Y @ direction, 9)
    return along


def groups(rows: Rows) -> numpy.ndarray:
    """Return the code of each row's class, or of the group that its value belongs to, small to large.

    Groups have equal weight as far as equal values allow, which are in one group.
    """
    targets, counts = rows.targets, rows.weights.counts
    if isinstance(targets, Classes):
        return to_host(targets.codes)
    values, place = numpy.unique(ranking(targets, counts), return_inverse=True)
    weights = weights_on_host(counts, len(place))
    ends = numpy.cumsum(numpy.bincount(place, weights, minlength=len(values)))
    middles = ends - 0.5 * numpy.diff(ends, prepend=0.0)
    found = numpy.minimum(GROUPS - 1, (GROUPS * middles / ends[-1] + 1e-9).astype(int))
    codes: numpy.ndarray = numpy.unique(found, return_inverse=True)[1][place]
    return codes
