"""Which training rows are judged by leave-one-out, which are held back, and which have like targets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy

from .._seam.arrays import Array, array_namespace, from_numpy
from .rows import Rows, keep_marked, keep_weighted, to_host, weights_on_host
from .targets import Classes, Targets, Values, rows_worth

STRATA = 8  # ranges of values, each with as much weight


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


def strata(rows: Rows) -> numpy.ndarray:
    """Return the code of each row's class, or of the range that its value belongs to, small to large.

    Ranges have equal weight as far as equal values allow, which are in one range.
    """
    targets, counts = rows.targets, rows.weights.counts
    if isinstance(targets, Classes):
        return to_host(targets.codes)
    values, place = numpy.unique(ranking(targets, counts), return_inverse=True)
    weights = weights_on_host(counts, len(place))
    ends = numpy.cumsum(numpy.bincount(place, weights, minlength=len(values)))
    middles = ends - 0.5 * numpy.diff(ends, prepend=0.0)
    found = numpy.minimum(STRATA - 1, (STRATA * middles / ends[-1] + 1e-9).astype(int))
    codes: numpy.ndarray = numpy.unique(found, return_inverse=True)[1][place]
    return codes


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
    groups: numpy.ndarray | None = None  # (n,), the same number for rows of the same group


def n_held_back(m: int) -> int:
    """Return how many of m rows are held back: a fifth, at least 39 if half of them are as many."""
    return min(MOST, max(int(SHARE * m), min(ENOUGH, m // 2)))


def hold_back(
    X: Array, y: Array, sample_weight: Any, seed: int, classes: bool, groups: numpy.ndarray | None = None
) -> tuple[tuple[Any, Any, Any, numpy.ndarray | None], HeldBack]:
    """Draw rows to hold back, each with the same probability; return the others, and those.

    Of a class whose rows were all drawn one returns to the fit, which could not name the class otherwise. The
    labels of such rows are noted: counted as rows outside their set, they leave the sets' guarantee intact.
    With groups, whole groups are drawn and return, and the groups that are fitted come last.
    """
    counts, places = None, numpy.arange(X.shape[0])
    if sample_weight is not None:
        counts, X, y, groups, places = keep_weighted(sample_weight, X, y, groups, places)
    m = int(X.shape[0])
    of = numpy.arange(m) if groups is None else numpy.unique(groups, return_inverse=True)[1]
    n = int(of.max()) + 1
    order = numpy.argsort(numpy.random.PCG64([seed, 1]).random_raw(n), kind="stable")
    drawn = numpy.zeros(n, dtype=bool)
    drawn[order[: n_held_back(n)]] = True
    returned = numpy.empty(0)
    if classes:
        labels, as_drawn = to_host(y), numpy.argsort(numpy.argsort(order)[of], kind="stable")
        returned, first = numpy.unique(labels[as_drawn], return_index=True)
        missing = ~numpy.isin(returned, labels[~drawn[of]])
        back_again, one = numpy.unique(of[as_drawn[first[missing]]], return_index=True)
        drawn[back_again] = False
        returned = returned[missing][one]  # a label for each group, or row
    held = drawn[of]
    fitted, back = (keep_marked(rows, X, y, counts, groups) for rows in (~held, held))
    held_back = HeldBack(back[0], back[1], back[2], returned, places[~held], back[3])
    return (fitted[0], fitted[1], fitted[2], None if groups is None else groups[~held]), held_back


MOST_JUDGED = 10_000  # rows that choose a penalty and calibrate, or whose errors give intervals


@dataclass(frozen=True, slots=True, eq=False)
class Judged:
    """Some of the training rows, and how many each of them stands for."""

    rows: Array  # (n,), sorted indices
    stand_for: Array  # (n,), rows of the same class, or of any value
    class_weights: numpy.ndarray | None = None  # (k,), sample weights of all rows, if others are elsewhere
    last: bool = False  # whether all rows that follow the first of these are judged, which takes less work


def n_judged(m: int, k: int | None) -> int:
    """Return how many of m training rows with k classes, or None for values, get leave-one-out scores.

    The leverages of all rows would cost half of a fit, and what is learnt from the scores (a penalty, a
    calibration) is a few numbers, more of them with more classes. Calibration by 10,000 rows of letter,
    which has 26 classes, has a log-loss 2 % above that by all rows; on adult, which has two, it is the same
    by 2,000 (benchmarks/calibration.py, validation rows). With hundreds of classes fewer rows keep it fast.
    """
    most = min(m, MOST_JUDGED)
    return most if k is None else min(most, 1_500 * k, max(2_000, 500_000 // k))


def judge_some(targets: Targets, groups: numpy.ndarray | None = None) -> Judged | None:
    """Choose the rows that get leave-one-out scores: None for all, or a random part, always the same.

    Of rows in groups, which have the same number in `groups` (m,), whole groups are chosen if they are small.
    """
    codes = codes_of(targets)
    sizes = numpy.bincount(codes, minlength=1 if isinstance(targets, Values) else targets.width)
    if groups is not None:
        n = n_judged(len(codes), targets.width if isinstance(targets, Classes) else None)
        which = judged_groups(codes, groups, n) if n < len(codes) else numpy.arange(len(codes))
        if len(which) == len(codes):
            return None
        of_class = sizes / numpy.maximum(numpy.bincount(codes[which], minlength=len(sizes)), 1)
        return _judged(which, of_class[codes[which]], targets)
    places = judged_places(sizes, isinstance(targets, Classes))
    if places is None:
        return None
    by_class = numpy.split(numpy.argsort(codes, kind="stable"), numpy.cumsum(sizes)[:-1])
    rows = numpy.concatenate([of_class[at] for of_class, at in zip(by_class, places, strict=True)])
    stand_for = numpy.repeat(stands_for(sizes, places), [len(at) for at in places])
    order = numpy.argsort(rows)
    return _judged(rows[order], stand_for[order], targets)


def _judged(rows: numpy.ndarray, stand_for: numpy.ndarray, targets: Targets) -> Judged:
    like = targets.like
    return Judged(from_numpy(rows, like, array_namespace(like).int64), from_numpy(stand_for, like))


MOST_WHOLE = 40  # groups; if fewer have all judged rows, not every row of a group is judged


def judged_groups(codes: numpy.ndarray, groups: numpy.ndarray, n: int) -> numpy.ndarray:
    """Return about n rows, sorted, of groups drawn at random: those with rare classes first.

    A class gets groups up to its even share of n, but at least one. No group has more than a
    fortieth of n, or an even share where there are fewer groups: of large groups some rows are judged.
    """
    m, of = len(codes), numpy.unique(groups, return_inverse=True)[1]
    sizes = numpy.bincount(of)
    most = max(1, n // min(len(sizes), MOST_WHOLE))
    order = numpy.lexsort((codes, of))
    within = numpy.arange(m) - (numpy.cumsum(sizes) - sizes)[of[order]]  # the place of a row in its group
    share = numpy.minimum(1.0, most / sizes)[of[order]]
    may = numpy.zeros(m, dtype=bool)
    may[order] = numpy.floor((within + 1) * share + 1e-9) > numpy.floor(within * share + 1e-9)
    may |= ~numpy.isin(codes, codes[may])
    rank = numpy.argsort(numpy.argsort(numpy.random.PCG64(0).random_raw(len(sizes)), kind="stable"))
    drawn = numpy.zeros(len(sizes), dtype=bool)
    of_class = numpy.bincount(codes[may])
    by_class = numpy.split(
        numpy.flatnonzero(may)[numpy.argsort(codes[may], kind="stable")], numpy.cumsum(of_class)[:-1]
    )
    rows_of = numpy.bincount(of[may], minlength=len(sizes))
    for i, c in enumerate(numpy.argsort(of_class, kind="stable")):  # the smallest class first
        own, of_groups = numpy.unique(of[by_class[c]], return_counts=True)
        left = n - int(rows_of[drawn].sum())
        wanted = max(1, left // (len(of_class) - i)) - int(of_groups[drawn[own]].sum())
        new = numpy.flatnonzero(~drawn[own])
        new = new[numpy.argsort(rank[own[new]])]
        enough = int(numpy.searchsorted(numpy.cumsum(of_groups[new]), wanted, side="right"))
        drawn[own[new[: max(enough, wanted > 0)]]] = True
    return numpy.flatnonzero(may & drawn[of])


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
