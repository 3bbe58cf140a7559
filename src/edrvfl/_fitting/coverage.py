"""Learn how far the answers of a model may be off: from leave-one-out, or from rows that were held back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy

from .._inputs.chosen import HeldBack
from .._inputs.encoding import EncoderSettings
from .._inputs.rows import as_matrix, prepare_values, to_host, weights_on_host
from .._inputs.targets import Values, equal_rows
from .._layers.records import Settings
from .._loo.coverage import Margins, OwnProbabilities, choose_widths, spread_targets
from .._loo.follow import Votes
from .._loo.jury import Jury, ValueJury, counted_once
from .._models.coverage import Coverage
from .._models.model import Model
from .._models.network import Network
from .._seam.arrays import Array, from_numpy, take_rows
from .data import Data, InMemory
from .folds import Learnt
from .network import grow_to, new_network
from .settings import InputSettings, NetworkSettings

# The model of the spread: one random layer whose penalty leave-one-out chooses.
SPREAD = NetworkSettings(Settings(n_layers=1, n_hidden=256), Votes("value"), InputSettings(None), judges=True)


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """What a fit knows about how far its answers are off."""

    data: Data  # the rows that were fitted
    model: Model  # that answers
    P: numpy.ndarray | None  # (judged rows, k), the leave-one-out answers, if they were computed
    held: HeldBack | None  # rows that were not fitted
    seed: int


def learn_coverage(evidence: Evidence, source: str | None) -> Coverage | None:
    """Return what prediction sets or intervals need; None if nobody asked, or nothing tells it."""
    if source is None:
        return None
    return (_sets if evidence.data.rows.classes is not None else _intervals)(evidence, source)


def _sets(evidence: Evidence, source: str) -> Coverage | None:
    """Return the probabilities that rows gave their own class."""
    if evidence.held is not None:
        own = _own_of_held(evidence.held, evidence.data.rows.classes, evidence.model.answer)
        return Coverage(source, len(own.values), own)
    if evidence.P is None:
        return None
    jury = evidence.data.jury
    assert isinstance(jury, Jury)
    assert jury.counts is not None
    values = numpy.where(jury.honest, _own(evidence.P, jury.codes), -numpy.inf)
    return Coverage(source, len(values), OwnProbabilities.of(values, counted_once(jury.counts, jury.groups)))


def _intervals(evidence: Evidence, source: str) -> Coverage | None:
    """Return the errors of rows, and a model of their spread where that pays."""
    if evidence.P is None:
        return None
    jury, targets, held = evidence.data.jury, evidence.data.rows.targets, evidence.held
    assert isinstance(targets, Values)
    assert isinstance(jury, ValueJury)
    residuals = jury.Y - evidence.P
    if targets.sd is not None:
        residuals = residuals * to_host(targets.sd).astype(float)
    spread, of_rows = fit_spread(evidence, residuals, jury.weights)
    weights = counted_once(jury.weights, jury.groups)
    widths = choose_widths(residuals, of_rows, weights)
    log_spread = None if widths is None else of_rows
    if held is not None:
        y = as_matrix(to_host(held.y).astype(float))
        residuals = y - to_host(evidence.model.answer(held.X)).astype(float)
        weights = _weights_of(held)
        log_spread = None if widths is None else to_host(spread.answer(held.X))
    margins = Margins.of(residuals, weights, widths, log_spread, guaranteed=held is not None)
    return Coverage(source, len(weights), margins, None if widths is None else spread)


def fit_spread(
    evidence: Evidence, residuals: numpy.ndarray, weights: numpy.ndarray
) -> tuple[Network, numpy.ndarray]:
    """Fit a small network to the logarithm of the judged rows' residuals (n, k).

    Return it with its leave-one-out answers (n, k). It sees numbers without bins, because these would make it
    cost more, and without the factors that say how much values depend on columns, because the spread may
    depend on others.
    """
    data = evidence.data
    X, inputs = data.rows.X, data.encoding(EncoderSettings("robust"))
    if data.judged is not None:
        X = take_rows(X, data.judged.rows)
    targets = spread_targets(residuals, weights)
    # each judged row wants an answer, so equal rows stay several ones
    counts, groups = None if (weights == 1).all() else from_numpy(weights, X), data.jury.groups
    rows = prepare_values(X, targets, counts, merge=False, groups=groups)
    own = InMemory(rows, None)
    grown = grow_to(own, new_network(own, SPREAD, Learnt(inputs), evidence.seed), 1)
    values = rows.targets
    assert isinstance(values, Values)
    assert values.sd is not None
    assert values.mean is not None
    return grown.network, grown.stages[0].P * to_host(values.sd) + to_host(values.mean)


def _own_of_held(held: HeldBack, classes: Array, answer: Callable[[Array], Array]) -> OwnProbabilities:
    """Return what the held-back rows gave their own classes; rows that returned to the fit gave nothing."""
    known, labels = to_host(classes), to_host(held.y)
    # a class of weight 0 is not fitted, and its rows are no rows
    here = numpy.isin(labels, known)
    codes = numpy.searchsorted(known, labels[here])
    own = _own(to_host(answer(held.X))[here], codes)
    n_returned = int(numpy.isin(held.returned, known).sum())
    return OwnProbabilities.of(
        numpy.concatenate([numpy.full(n_returned, -numpy.inf), own]),
        numpy.concatenate([numpy.ones(n_returned), _weights_of(held, here)]),
    )


def _own(P: numpy.ndarray, codes: numpy.ndarray) -> numpy.ndarray:
    """Return the probabilities (n,) of the rows' own classes."""
    own: numpy.ndarray = P[numpy.arange(len(codes)), codes]
    return own


def _weights_of(held: HeldBack, some: Any = slice(None)) -> numpy.ndarray:
    """Return how much some held-back rows count: 1 if all weigh the same, whatever that is.

    The rows of a group count 1 together.
    """
    counts = weights_on_host(held.counts, int(held.X.shape[0]))[some]
    if not counts.size:
        return counts
    if held.groups is not None and len(numpy.unique(held.groups)) < len(held.groups):
        return counted_once(counts, held.groups[some])
    weights: numpy.ndarray = counts * (equal_rows(counts) / counts.sum())
    return weights
