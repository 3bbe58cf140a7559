"""Which training rows are judged by leave-one-out, which are held back, and which have like targets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy

from .._seam.arrays import Array, array_namespace, from_numpy
from .rows import Rows, keep_marked, keep_weighted, to_host, weights_on_host
from .targets import Classes, Targets, Values

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
    others: numpy.ndarray | None = None  # places of the rows that are fitted, among all rows that came


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
    counts, places = None, numpy.arange(X.shape[0])
    if sample_weight is not None:
        counts, X, y, places = keep_weighted(sample_weight, X, y, places)
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
    held_back = HeldBack(back[0], back[1], back[2], returned, places[~held])
    return (fitted[0], fitted[1], fitted[2]), held_back


MOST_JUDGED = 10_000  # rows that choose a penalty and calibrate, or whose errors give intervals


@dataclass(frozen=True, slots=True, eq=False)
class Judged:
    """Some of the training rows, and how many each of them stands for."""

    rows: Array  # (n,), sorted indices
    stand_for: Array  # (n,), rows of the same class, or of any value
    class_weights: numpy.ndarray | None = None  # (k,), sample weights of all rows, if others are elsewhere


def n_judged(m: int, k: int | None) -> int:
    """Return how many of m training rows with k classes, or None for values, get leave-one-out scores.

    The leverages of all rows would cost half of a fit, and what is learnt from the scores (a penalty, a
    calibration) is a few numbers, more of them with more classes. Calibration by 10,000 rows of letter,
    which has 26 classes, has a log-loss 2 % above that by all rows; on adult, which has two, it is the same
    by 2,000 (benchmarks/calibration.py, validation rows). With hundreds of classes fewer rows keep it fast.
    """
    most = min(m, MOST_JUDGED)
    return most if k is None else min(most, 1_500 * k, max(2_000, 500_000 // k))


def judge_some(targets: Targets) -> Judged | None:
    """Choose the rows that get leave-one-out scores: None for all, or a random part, always the same."""
    codes = codes_of(targets)
    sizes = numpy.bincount(codes, minlength=1 if isinstance(targets, Values) else targets.width)
    places = judged_places(sizes, isinstance(targets, Classes))
    if places is None:
        return None
    by_class = numpy.split(numpy.argsort(codes, kind="stable"), numpy.cumsum(sizes)[:-1])
    rows = numpy.concatenate([of_class[at] for of_class, at in zip(by_class, places, strict=True)])
    stand_for = numpy.repeat(stands_for(sizes, places), [len(at) for at in places])
    order = numpy.argsort(rows)
    xp = array_namespace(targets.like)
    return Judged(from_numpy(rows[order], targets.like, xp.int64), from_numpy(stand_for[order], targets.like))


def judged_places(sizes: numpy.ndarray, classes: bool) -> list[numpy.ndarray] | None:
    """Return the places of the judged rows among the rows of their class, for classes of these sizes.

    None stands for all rows. Classes share the places evenly as far as they have rows, so that all rows of a
    rare class are judged. Of the others one row is drawn from each stretch of neighbouring rows of the
    class, so that a file which is sorted by date is seen as a whole. Values are one class.
    """
    m, k = int(sizes.sum()), len(sizes)
    n = n_judged(m, k if classes else None)
    if n == m:
        return None
    bits = numpy.random.PCG64(0).random_raw(n)
    places, left = [numpy.empty(0, dtype=numpy.int64)] * k, n
    for i, c in enumerate(numpy.argsort(sizes, kind="stable")):  # the smallest class first
        quota = min(int(sizes[c]), left // (k - i))
        left -= quota
        starts = numpy.arange(quota + 1) * sizes[c] // max(quota, 1)
        within = bits[left : left + quota] % numpy.diff(starts).astype(numpy.uint64)
        places[c] = starts[:-1] + within.astype(numpy.int64)
    return places


def stands_for(sizes: numpy.ndarray, places: list[numpy.ndarray]) -> numpy.ndarray:
    """Return how many rows of its class a judged row stands for, by class."""
    return numpy.asarray([size / max(len(at), 1) for size, at in zip(sizes, places, strict=True)])
