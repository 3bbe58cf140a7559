"""Scale inputs by how much the classes depend on them, as a kernel ridge that is thrown away sees it."""

from __future__ import annotations

import dataclasses

import numpy

from .._inputs.inputs import Inputs
from .._inputs.rows import Rows, to_host
from .._ridge.kernel import mean_squared_gradients
from .._seam.arrays import Array, array_namespace, from_numpy, ignore_overflow
from .._seam.threads import suitable_threads
from .systems import Choice, Draw, KernelSettings, Sample, System, descend

GRADIENT_ROWS = 1_000  # training rows that the ridge is fitted to
GRADIENT_CLASSES = 32  # the most frequent classes, whose scores are asked for gradients


def with_gradient_factors(inputs: Inputs, rows: Rows, seed: int) -> Inputs:
    """Return inputs whose columns are multiplied by the root mean squared gradient of the classes' scores.

    The scores are those of a Laplace-kernel ridge on some of the rows, with bandwidth and penalty chosen by
    leave-one-out. The columns that come from one column of X share the mean of their squares, and all
    squares have the mean 1. A column that decides nothing nearly vanishes.
    """
    draw = Draw(rows, seed)
    with ignore_overflow(), suitable_threads(rows.X, GRADIENT_ROWS, GRADIENT_ROWS):
        sample = Sample.of(rows, inputs)
        if rows.worth > GRADIENT_ROWS:
            # few rows, in full precision: the factors are the same with every array library
            sample = dataclasses.replace(sample.some(draw.proportional(GRADIENT_ROWS)), dtype=rows.X.dtype)
        squares = to_host(_gradients(sample, draw.unit)).astype(float)
    places = numpy.unique(inputs.source, return_inverse=True)[1]
    squares = (numpy.bincount(places, squares) / numpy.bincount(places))[places]
    mean = squares.mean()
    if not (numpy.isfinite(mean) and mean > 0):  # no input matters, so none matters more than another
        return inputs
    return dataclasses.replace(inputs, factors=from_numpy(numpy.sqrt(squares / mean), rows.X))


def _gradients(sample: Sample, unit: float) -> Array:
    """Fit the kernel ridge, and return the mean squared gradient of its scores for each column."""
    system, choice = System(sample), Choice.of(KernelSettings(), sample)
    X = system.landmarks  # all rows of the sample, encoded
    xp = array_namespace(X)
    choice, found = descend(system, choice, choice.n_candidates)
    frequent = xp.argsort(-sample.prior)[: min(GRADIENT_CLASSES, sample.prior.shape[0])]
    alpha = xp.take(found.alpha, frequent, axis=1)
    counts = xp.astype(sample.weights.counts_of(X.shape[0], sample.raw) / unit, X.dtype)
    return mean_squared_gradients(X, alpha, counts, system.width(choice.values[0]))
