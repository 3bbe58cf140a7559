"""Which training rows get leave-one-out scores."""

from __future__ import annotations

from dataclasses import dataclass

import numpy

from .._seam.arrays import Array, array_namespace, from_numpy
from .strata import codes_of
from .targets import Classes, Targets, Values

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
