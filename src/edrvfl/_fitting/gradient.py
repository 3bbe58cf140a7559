"""Scale inputs by how much the targets depend on them, as a kernel ridge on some of the rows sees it."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy

from .._inputs.inputs import Inputs
from .._inputs.rows import Rows, to_host
from .._seam.arrays import Array, array_namespace, from_numpy
from .systems import NEAR_STEPS, STEPS, Choice, Draw, KernelSettings, Pair, Sample, System, descend, regular

GRADIENT_ROWS = 1_000  # training rows that the ridge is fitted to
CHOOSING_ROWS = 400  # of them choose bandwidth and penalty, where nothing has to be judged
GRADIENT_CLASSES = 32  # the most frequent classes, whose scores are asked for gradients


@dataclass(frozen=True, slots=True, eq=False)
class Ridge:
    """A kernel ridge on some of the rows, with what leave-one-out chose."""

    inputs: Inputs
    sample: Sample
    system: System
    choice: Choice  # of bandwidth and penalty
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
        alpha, width = xp.take(self.alpha, frequent, axis=1), self.system.width(self.choice.values[0])
        known = self.system.contrasts, self.system.apart
        steepness = self.system.kernel.squared_gradients(X, alpha, counts, width, *known)
        squares, seen = to_host(steepness).astype(float), sample.inputs
        if seen.factors is not None:  # found in columns that were multiplied before
            squares = squares * to_host(seen.factors).astype(float) ** 2
        sources, places = numpy.unique(seen.source, return_inverse=True)
        of_sources = numpy.bincount(places, squares) / numpy.bincount(places)
        mean = of_sources[places].mean()
        if not (numpy.isfinite(mean) and mean > 0):  # no input matters, so none matters more than another
            return self.inputs
        # the kernel may see a column of categories as one of codes
        squares = of_sources[numpy.searchsorted(sources, self.inputs.source)]
        factors = from_numpy(numpy.sqrt(squares / mean), sample.raw)
        return dataclasses.replace(self.inputs, factors=factors)


def fit_ridge(
    inputs: Inputs,
    rows: Rows,
    seed: int,
    kernel: str = "laplace",
    near: Pair | None = None,
    settled: bool = False,
    n: int = GRADIENT_ROWS,
) -> Ridge:
    """Fit a kernel ridge to at most n of the rows.

    Its choice may begin at a pair that suited another ridge, and if that is settled it ends there.
    """
    sample = Sample.of(rows, inputs, kernel)
    if rows.worth > n:
        # few rows, in full precision: the factors are the same with every array library
        drawn = Draw(rows, seed).proportional(n)
        sample = dataclasses.replace(sample.some(drawn), dtype=rows.X.dtype)
    system = System(sample)
    choice = Choice.of(KernelSettings(kernel=kernel), sample, near)
    most, steps = 1 if settled else choice.n_candidates, STEPS if near is None else NEAR_STEPS
    choice, found = descend(system, choice, most, steps)
    found = regular(system, choice.values[0], found)
    return Ridge(inputs, sample, system, choice, found.alpha)
