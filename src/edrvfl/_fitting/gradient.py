"""Scale inputs by how much the classes depend on them, as a kernel ridge that is thrown away sees it."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy

from .._inputs.inputs import Inputs
from .._inputs.rows import Rows, to_host
from .._ridge.kernel import mean_squared_gradients
from .._seam.arrays import Array, array_namespace, from_numpy, ignore_overflow
from .._seam.threads import suitable_threads
from .systems import Choice, Draw, KernelSettings, Sample, System, descend

GRADIENT_ROWS = 1_000  # training rows that the ridge is fitted to
GRADIENT_CLASSES = 32  # the most frequent classes, whose scores are asked for gradients


@dataclass(frozen=True, slots=True, eq=False)
class Ridge:
    """A Laplace-kernel ridge on some of the rows, with the bandwidth and penalty that leave-one-out chose."""

    inputs: Inputs
    sample: Sample
    system: System
    bandwidth: float
    lam: float
    alpha: Array

    def scaled(self) -> Inputs:
        """Return inputs whose columns are multiplied by the root mean squared gradient of the ridge's scores.

        The columns that come from one column of X share the mean of their squares, and all squares have the
        mean 1. A column that decides nothing nearly vanishes.
        """
        X, sample = self.system.landmarks, self.sample  # all rows of the sample, encoded
        xp = array_namespace(X)
        frequent = xp.argsort(-sample.prior)[: min(GRADIENT_CLASSES, sample.prior.shape[0])]
        counts = xp.astype(sample.weights.counts_of(X.shape[0], sample.raw) / sample.unit, X.dtype)
        alpha, width = xp.take(self.alpha, frequent, axis=1), self.system.width(self.bandwidth)
        squares = to_host(mean_squared_gradients(X, alpha, counts, width)).astype(float)
        places = numpy.unique(self.inputs.source, return_inverse=True)[1]
        squares = (numpy.bincount(places, squares) / numpy.bincount(places))[places]
        mean = squares.mean()
        if not (numpy.isfinite(mean) and mean > 0):  # no input matters, so none matters more than another
            return self.inputs
        factors = from_numpy(numpy.sqrt(squares / mean), sample.raw)
        return dataclasses.replace(self.inputs, factors=factors)


def fit_ridge(inputs: Inputs, rows: Rows, seed: int) -> Ridge:
    """Fit a kernel ridge to at most 1,000 of the rows."""
    sample = Sample.of(rows, inputs)
    if rows.worth > GRADIENT_ROWS:
        # few rows, in full precision: the factors are the same with every array library
        drawn = Draw(rows, seed).proportional(GRADIENT_ROWS)
        sample = dataclasses.replace(sample.some(drawn), dtype=rows.X.dtype)
    system, choice = System(sample), Choice.of(KernelSettings(), sample)
    choice, found = descend(system, choice, choice.n_candidates)
    return Ridge(inputs, sample, system, *choice.values, found.alpha)


def with_gradient_factors(inputs: Inputs, rows: Rows, seed: int) -> Inputs:
    """Return inputs whose columns are multiplied by how much the targets depend on each of them."""
    with ignore_overflow(), suitable_threads(rows.X, GRADIENT_ROWS, GRADIENT_ROWS):
        return fit_ridge(inputs, rows, seed).scaled()
