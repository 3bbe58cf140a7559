"""Which training rows get leave-one-out scores."""

from __future__ import annotations

from dataclasses import dataclass

import numpy

from .._arrays import Array, array_namespace, from_numpy
from .strata import codes_of
from .targets import Targets, Values

MOST_VALUES = 10_000  # rows whose errors choose a penalty and give intervals, if the targets are values


@dataclass(frozen=True, slots=True, eq=False)
class Judged:
    """Some of the training rows, and how many each of them stands for."""

    rows: Array  # (n,), sorted indices
    stand_for: Array  # (n,), rows of the same class, or of any value


def n_judged(m: int, k: int) -> int:
    """Return how many of m training rows with k classes get leave-one-out scores.

    The leverages of all rows would cost half of a fit, and what is learnt from the scores (a penalty, a
    calibration) is a few numbers, more of them with more classes. Calibration by 10,000 rows of letter,
    which has 26 classes, has a log-loss 2 % above that by all rows; on adult, which has two, it is the same
    by 2,000 (benchmarks/calibration.py, validation rows). With hundreds of classes fewer rows keep it fast.
    """
    return min(m, 1_500 * k, 10_000, max(2_000, 500_000 // k))


def judge_some(targets: Targets) -> Judged | None:
    """Choose the rows that get leave-one-out scores: None for all, or a random part, always the same.

    Classes share the places evenly as far as they have rows, so that all rows of a rare class are judged.
    Of the others one row is drawn from each stretch of neighbouring rows of the class, so that a file
    which is sorted by date is seen as a whole.
    """
    m = targets.n_rows
    if isinstance(targets, Values):
        k, n = 1, min(m, MOST_VALUES)
    else:
        k, n = targets.width, n_judged(m, targets.width)
    if n == m:
        return None
    codes = codes_of(targets)
    sizes = numpy.bincount(codes, minlength=k)
    by_class = numpy.split(numpy.argsort(codes, kind="stable"), numpy.cumsum(sizes)[:-1])
    bits = numpy.random.PCG64(0).random_raw(n)
    rows, stand_for, left = [], [], n
    for i, c in enumerate(numpy.argsort(sizes, kind="stable")):  # the smallest class first
        quota = min(int(sizes[c]), left // (k - i))
        left -= quota
        starts = numpy.arange(quota + 1) * sizes[c] // max(quota, 1)
        within = bits[left : left + quota] % numpy.diff(starts).astype(numpy.uint64)
        rows.append(by_class[c][starts[:-1] + within.astype(numpy.int64)])
        stand_for.append(numpy.full(quota, sizes[c] / max(quota, 1)))
    chosen = numpy.concatenate(rows)
    order = numpy.argsort(chosen)
    xp = array_namespace(targets.like)
    return Judged(
        from_numpy(chosen[order], targets.like, xp.int64),
        from_numpy(numpy.concatenate(stand_for)[order], targets.like),
    )
