"""Pairs of training rows of different classes. Their differences are weights that point across a border."""

from __future__ import annotations

import numpy

from .._inputs.inputs import Inputs
from .._inputs.rows import Rows, to_host, weights_on_host
from .._inputs.strata import groups
from .._seam.arrays import array_namespace, from_numpy, take_rows


def pair_differences(inputs: Inputs, rows: Rows, u: numpy.ndarray) -> numpy.ndarray:
    """Return a - b (pairs, d) of encoded rows a and b, drawn by the numbers u (2, pairs) in [0, 1).

    The draw happens on the host, and only the rows that are drawn are encoded.
    """
    first, second = draw_pairs(rows, u)
    integers = array_namespace(rows.X).int64
    chosen = (take_rows(rows.X, from_numpy(some, rows.X, integers)) for some in (first, second))
    a, b = (to_host(inputs.apply(some)).astype(float) for some in chosen)
    difference: numpy.ndarray = a - b
    return difference


def draw_pairs(rows: Rows, u: numpy.ndarray) -> tuple[numpy.ndarray, numpy.ndarray]:
    """Draw pairs of rows of different classes: any row, and any row of the other classes, by their counts.

    Rows with values belong to groups of like values instead of classes.

    The rows stand in an order that their values decide, and a row of weight 2 has two places in it, so
    neither the order of the file nor repeating a row instead of weighing it changes the draw.
    """
    codes = groups(rows)
    counts = weights_on_host(rows.weights.counts, len(codes))
    order = numpy.lexsort((rows.hashes, codes))
    codes, ends = codes[order], numpy.cumsum(counts[order])
    class_ends = ends[numpy.searchsorted(codes, numpy.arange(codes.max() + 1), side="right") - 1]
    class_starts = numpy.concatenate([[0.0], class_ends[:-1]])

    def at(place: numpy.ndarray) -> numpy.ndarray:
        return numpy.minimum(numpy.searchsorted(ends, place, side="right"), len(ends) - 1)

    first = at(u[0] * ends[-1])
    start, weight = class_starts[codes[first]], (class_ends - class_starts)[codes[first]]
    place = u[1] * (ends[-1] - weight)
    second = at(numpy.where(place < start, place, place + weight))  # jump over the first row's class
    return order[first], order[second]
