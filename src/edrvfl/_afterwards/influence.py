"""How much each training row moved an answer: f(x) - f_without_i(x), exact for the read-outs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy

from .._seam.arrays import row_blocks
from .explained import Explained

PAIRS = 2**24  # of training rows and new ones: what is held of them at a time


@dataclass(frozen=True, slots=True, eq=False)
class Moved:
    """The training rows that moved the answer to each new row most, the strongest first."""

    rows: numpy.ndarray  # (new rows, n), their places among the rows that came
    change: numpy.ndarray  # (new rows, n), by how much the answer is larger with the row
    answers: numpy.ndarray  # (new rows,), the answers that moved
    of: numpy.ndarray  # (new rows,), the class or output of the answer


def most_moving(explained: Explained, X: numpy.ndarray, of: numpy.ndarray | None, n: int) -> Moved:
    """Find the n training rows that moved one answer of each row of X most.

    `of` (rows,) is the class or output that is looked at; None takes the most probable class, or the first
    output.
    """
    n = min(n, explained.rows.n_rows)
    few = max(64, PAIRS // explained.rows.n_rows)  # with few, training rows pass through the layers often
    some = [slice(i, i + few) for i in range(0, len(X), few)]
    found = [_of_some(explained, X[r], None if of is None else of[r], n) for r in some]
    together = [numpy.concatenate(each) for each in zip(*found, strict=True)]
    return Moved(*together)


def _of_some(
    explained: Explained, X: numpy.ndarray, of: numpy.ndarray | None, n: int
) -> tuple[numpy.ndarray, ...]:
    with explained.computing():
        scores = [one.scores(X) for one in explained.read_outs]
        reaches = [one.reach(X) for one in explained.read_outs]
        P = explained.answers([own.copy() for own in scores])
        if of is None:
            of = P.argmax(axis=1) if explained.model.classes is not None else numpy.zeros(len(X), dtype=int)
        mine = P[numpy.arange(len(X)), of]
        best = numpy.zeros((len(X), 0), dtype=int), numpy.zeros((len(X), 0))
        held = len(X) * (8 + sum(own.shape[0] * own.shape[2] for own in scores))
        for block in row_blocks(P, explained.rows.n_rows, held):
            without = []
            for own, reach, one in zip(scores, reaches, explained.read_outs, strict=True):
                step = reach(block)[..., None] * one.pushes[:, None, block, :]
                without.append((own[:, :, None, :] - step).reshape(len(own), -1, own.shape[-1]))
            Q = explained.answers(without).reshape(len(X), -1, P.shape[1])
            change = mine[:, None] - numpy.take_along_axis(Q, of[:, None, None], axis=2)[..., 0]
            rows = numpy.broadcast_to(numpy.arange(block.start, block.start + change.shape[1]), change.shape)
            best = _strongest(numpy.hstack([best[0], rows]), numpy.hstack([best[1], change]), n)
    return *best, mine, of


def _strongest(rows: numpy.ndarray, change: numpy.ndarray, n: int) -> tuple[numpy.ndarray, numpy.ndarray]:
    """Keep the n largest changes of each line, the largest first; of equal ones the first row."""
    order = numpy.argsort(-numpy.abs(change), axis=1, kind="stable")[:, :n]
    return numpy.take_along_axis(rows, order, axis=1), numpy.take_along_axis(change, order, axis=1)
