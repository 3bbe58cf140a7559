"""A model that was read answers a few rows first: that finds what no look at its parts does."""

from __future__ import annotations

from typing import Any

import numpy

from ..._inputs.inputs import Inputs
from ..._layers.draws import uniform
from ..._loo.coverage import bounds
from ..._models.network import Network

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
    X[0] = 0.0
    if gaps:
        X[-1] = numpy.nan
    return X.astype(dtype)


def try_model(
    answer: Any, network: Network | None, coverage: Any, X: numpy.ndarray, classifies: bool
) -> None:
    """Let a model answer rows by all its ways. An answer that is none is an error."""
    P = answer(X)
    _check_answers(P, classifies)
    if network is not None:
        for stage in network.staged(X):
            _check_answers(stage, classifies)
    if coverage is None:
        return
    log_spread = None if coverage.spread is None else coverage.spread.answer(X)
    for share in COVERAGES:
        if classifies:
            _check(not numpy.isnan(coverage.record.threshold(share)))
        else:
            lower, upper = bounds(coverage.record, P, log_spread, share)
            _check(not (numpy.isnan(lower).any() or numpy.isnan(upper).any()))


def _check_answers(P: numpy.ndarray, classifies: bool) -> None:
    _check(not numpy.isnan(P).any())
    if classifies:
        _check((P >= 0).all() and (numpy.abs(P.sum(axis=1) - 1) < 1e-3).all())


def _check(good: Any) -> None:
    if not good:
        raise ValueError("Its numbers belong to no fitted model: it answers with no number.")
