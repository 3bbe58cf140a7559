"""A model that was read answers a few rows first: that finds what no look at its parts does."""

from __future__ import annotations

from typing import Any

import numpy

from ..._inputs.inputs import Inputs
from ..._layers.draws import uniform
from ..._loo.coverage import bounds

N_ROWS = 6
COVERAGES = (0.01, 0.9, 0.999)


def trial_rows(inputs: Inputs, d: int, dtype: Any, gaps: bool) -> numpy.ndarray:
    """Return rows as they come after reading: within the range seen in fit, and some without values."""
    X: numpy.ndarray = 2 * uniform(0, (0,), N_ROWS * d).reshape(N_ROWS, d) - 1
    if inputs.numbers is not None:
        places = numpy.arange(d) if inputs.numbers.columns is None else inputs.numbers.columns
        divisor = numpy.asarray(inputs.numbers.divisor, dtype=float)
        X[:, places] *= numpy.where(numpy.isfinite(divisor), divisor, 1.0)
    if inputs.categories is not None:
        X[:, inputs.categories.columns] = numpy.arange(-1, N_ROWS - 1)[:, None]
    if inputs.codes is not None:
        X[:, inputs.codes] = numpy.arange(-1, N_ROWS - 1)[:, None]
    X[0] = 0.0
    if gaps:
        X[-1] = numpy.nan
    return X.astype(dtype)


def try_model(record: Any, coverage: Any, d: int) -> None:
    """Let a model answer rows by all its ways. An answer that is not a number is an error."""
    X = trial_rows(record.encodings()[0], d, record.like.dtype, record.columns is not None)
    P = record.answer(X)
    for answer in (P, *(record.staged(X) if hasattr(record, "staged") else ())):
        _need(answer.shape == (N_ROWS, record.n_outputs) and not numpy.isnan(answer).any())
        if record.classes is not None:
            _need((answer >= 0).all() and (numpy.abs(answer.sum(axis=1) - 1) < 1e-3).all())
    if coverage is None:
        return
    log_spread = None if coverage.spread is None else coverage.spread.answer(X)
    for share in COVERAGES:
        if record.classes is not None:
            _need(not numpy.isnan(coverage.record.threshold(share)))
        else:
            ends = bounds(coverage.record, P, log_spread, share)
            _need(not any(numpy.isnan(end).any() for end in ends))


def _need(good: Any) -> None:
    if not good:
        raise ValueError("Its numbers are not those of a fitted model: some of its answers are not numbers.")
