"""Training rows whose own label the model without them denies."""

from __future__ import annotations

from dataclasses import dataclass

import numpy

from .explained import Explained

ROBUST = 1.4826  # standard deviations of a normal distribution in its median absolute deviation
DENIED = 3.0  # so many standard deviations off, a value counts as denied


@dataclass(frozen=True, slots=True, eq=False)
class Doubts:
    """Training rows, the most doubtful first."""

    rows: numpy.ndarray  # their places among the rows that came
    doubt: numpy.ndarray  # log-odds against the own class, or standard deviations; above `least` it is denied
    said: numpy.ndarray  # (rows, k), the probabilities or values that the model without them gives
    least: float
    of: numpy.ndarray | None = None  # (rows,), the output that is farthest off; None for classes


def honest_answers(explained: Explained) -> numpy.ndarray:
    """Return what each row that came gets from the model without it and its copies, (n, k).

    The fit judged some rows or all, where rows are few by models that their label did not shape. The others
    are answered by read-outs that are solved without them.
    """
    known, judged = explained.known, explained.rows.answers
    if judged is not None and not numpy.isnan(judged).any():
        return judged
    with explained.computing():
        P = explained.answers([one.left_out() for one in explained.read_outs])[known.at]
    return P if judged is None else numpy.where(numpy.isnan(judged), P, judged)


def doubts(explained: Explained) -> Doubts:
    """Rank all rows by how strongly the model without them denies what they say."""
    P, known, of = honest_answers(explained), explained.known, None
    if explained.model.classes is None:
        errors = known.Y - P
        spread = ROBUST * numpy.median(numpy.abs(errors), axis=0)
        spread = numpy.where(spread > 0, spread, numpy.maximum(errors.std(axis=0), numpy.finfo(float).tiny))
        off = numpy.abs(errors) / spread
        doubt, least, of = off.max(axis=1), DENIED, off.argmax(axis=1)
    else:
        own = (known.Y * P).sum(axis=1)
        other = numpy.where(known.Y > 0, 0.0, P).max(axis=1)
        doubt, least = numpy.log(other + 1e-300) - numpy.log(own + 1e-300), 0.0
        codes = known.Y.argmax(axis=1)
        different = numpy.bincount(codes[known.first], minlength=P.shape[1])
        # without a row that is alone in its class nothing is known of the class
        doubt = numpy.where(different[codes] > 1, doubt, -numpy.inf)
    order = numpy.argsort(-doubt, kind="stable")
    order = order[doubt[order] > -numpy.inf]
    return Doubts(order, doubt[order], P[order], least, None if of is None else of[order])
