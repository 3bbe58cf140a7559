"""Prediction intervals of regressors and prediction sets of classifiers: what a fit keeps for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any, Self

import numpy
from sklearn.utils import check_random_state

from ._answers.coverage import (
    Margins,
    OwnProbabilities,
    bounds,
    choose_widths,
    prediction_sets,
    spread_targets,
)
from ._answers.jury import Jury, ValueJury
from ._arrays import Array, converted, from_numpy, take_rows
from ._encoder import TabularEncoder, learn_encoding
from ._inputs.held_back import HeldBack, hold_back
from ._inputs.inputs import Inputs
from ._inputs.judged import Judged
from ._inputs.rows import Rows, as_matrix, prepare_values, to_host, weights_on_host
from ._inputs.table import Columns
from ._inputs.targets import Classes, Values
from ._inputs.weights import equal_rows
from ._members.voters import Data, Member, grow_network
from ._network.answer import answers
from ._network.records import Network, Settings
from ._shell import (
    LARGEST_SEED,
    ClassifierShell,
    RegressorShell,
    Shell,
    keep_target_name,
    unchanged_on_failure,
    without_axis,
)
from ._sklearn import StrOptions, _fit_context

# The model of the spread: one random layer whose penalty leave-one-out chooses.
SPREAD = Settings(n_layers=1, n_hidden=256)
# What the parameters that all estimators have may be.
COMMON: Mapping[str, list[Any]] = {
    "coverage_from": [StrOptions({"loo", "split"}), None],
    "random_state": ["random_state"],
    "verbose": ["verbose"],
}


@dataclass(frozen=True, slots=True, eq=False)
class Coverage:
    """What intervals or sets need beside the answers."""

    source: str  # "loo" or "split"
    n_rows: int  # how many rows said how far answers are off
    record: Any  # OwnProbabilities of classes, or the Margins of values
    spread: Network | None = None  # gives the logarithm of the spread, where the widths of intervals vary

    def __sklearn_array_api_convert__(self, converter: Callable[[Array], Array]) -> Coverage:
        """Bring the arrays to another library or device. scikit-learn's mover of estimators calls this."""
        moved: Coverage = converted(self, converter)
        return moved


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """What a fit knows about how far its answers are off."""

    rows: Rows  # that were fitted
    columns: Columns | None  # what they are of
    judged: Judged | None  # those that have leave-one-out answers, if not all have them
    P: numpy.ndarray | None  # (judged rows, k), the leave-one-out answers, if they were computed
    held: HeldBack | None  # rows that were not fitted
    seed: int
    # learns an encoding from all rows that were fitted, if `rows` are only those that are judged
    learn: Callable[[TabularEncoder], Inputs] | None = None

    def encoding(self, encoder: TabularEncoder) -> Inputs:
        """Learn an encoding from the rows that were fitted."""
        if self.learn is not None:
            return self.learn(encoder)
        return learn_encoding(self.rows, encoder, self.columns)


class CoveringShell(Shell):
    """An estimator that can say how far its answers may be off. Subclasses answer."""

    coverage_from: str | None
    random_state: Any
    coverage_: Coverage | None

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the estimator.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training rows: a NumPy array, a pandas, polars or pyarrow table, or, with scikit-learn's array API
            dispatch on, a torch or CuPy array. Columns may hold numbers, booleans, categories or text, and
            missing values. :class:`EDRVFLClassifier` and :class:`EDRVFLRegressor` also take a
            :class:`RowBlocks`: rows that are read block by block, with y and the weights in the blocks.

        y : array-like of shape (n_samples,), for a regressor also (n_samples, n_outputs)
            Labels of at least two classes: strings, integers or booleans. Finite numbers for a regressor.

        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows, not negative and not all zero. None gives every row the weight 1.

        Returns
        -------
        self : estimator
            The fitted estimator. A fit that fails leaves it as it was.
        """
        with unchanged_on_failure(self):
            keep_target_name(self, y)
            self._fit(X, y, sample_weight)
        return self

    def _validate_params(self) -> None:
        super()._validate_params()
        encoder = getattr(self, "encoder", None)  # portfolios have none
        if isinstance(encoder, TabularEncoder):
            encoder._validate_params()

    def _draw_seed(self) -> int:
        """Draw the seed of a fit; a RandomState instance moves on."""
        return int(check_random_state(self.random_state).randint(LARGEST_SEED))

    def _answer(self, X: Array) -> Array:
        """Return the probabilities or values (rows, k) of rows that were checked."""
        raise NotImplementedError

    def _learn_coverage(self, evidence: Evidence) -> None:
        """Store `coverage_`. The estimator already answers."""
        raise NotImplementedError

    def _answers(self, X: Any, method: str) -> Array:
        return self._answer(self._check_new_rows(X, method))

    def _divide_rows(self, X: Array, y: Array, sample_weight: Any, seed: int) -> tuple[Rows, HeldBack | None]:
        """Return the rows to fit, prepared, and those that are held back from the fit."""
        if self.coverage_from != "split":
            return self._prepare_rows(X, y, sample_weight), None
        fitted, held = hold_back(X, y, sample_weight, seed, self._classifies)
        return self._prepare_rows(*fitted), held

    def _coverage_for(self, coverage: Any) -> Coverage:
        """Return what was stored, after a look at the coverage that is asked for."""
        if not isinstance(coverage, Real) or not 0 < float(coverage) < 1:
            raise ValueError(
                f"coverage must be a number above 0 and below 1, got {coverage!r}. For 90 % write 0.9."
            )
        if self.coverage_ is None:
            raise ValueError(self._how_to_cover())
        return self.coverage_

    def _how_to_cover(self) -> str:
        """Say what to do about a fit that kept nothing for intervals or sets."""
        raise NotImplementedError

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> None:
        """Fit, and store what was fitted."""
        raise NotImplementedError


class CoveringClassifier(CoveringShell, ClassifierShell):
    """A classifier with prediction sets."""

    def predict_set(self, X: Any, coverage: float = 0.9) -> Array:
        """Return for each row a set of classes that holds the true one with the stated probability.

        A class is in the set if its probability reaches a threshold, the same for all rows and classes
        (LAC, the least ambiguous sets: none of this coverage are smaller on average). The most probable class
        is always in the set. So where the answers are right more often than `coverage`, so are the sets.

        The threshold comes from probabilities that rows gave their own class. With ``coverage_from="loo"``
        each training row was answered without it. That costs no rows, and on average such sets hold what they
        promise, but nothing guarantees it: the random features, the penalties and the calibration saw all
        rows. With ``coverage_from="split"`` the rows were held back from the fit, and for new rows of the
        same kind, and equal sample weights, the probability is `coverage` or more, whatever the
        model is worth.

        Do not trust "loo" where there are about as many columns as rows, or more, and
        ``input_scaling="gradient"``, as it is by default in kernel voters and in the members of portfolios.
        The factors of the columns saw the labels, so each row's answer without it is much too good, and far
        fewer rows are covered than stated. Take ``coverage_from="split"`` there, or ``input_scaling=None``.

        Either way the promise is for all rows together. In a class that is rare or hard, fewer may be
        covered. A class that no fitted row has is in no set. The threshold allows for this: training rows
        that are alone in their class count as rows outside their set.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows with the columns of `fit`.

        coverage : float, default=0.9
            The share of rows whose class is to be in their set, above 0 and below 1. If there were fewer than
            coverage / (1 - coverage) rows for the threshold, all classes are in all sets.

        Returns
        -------
        sets : array of bool of shape (n_samples, n_classes)
            Which classes are in the set of each row, in the order of `classes_`.
        """
        X = self._check_new_rows(X, "predict_set")
        found = self._coverage_for(coverage)
        return prediction_sets(self._answer(X), found.record, float(coverage))

    def _learn_coverage(self, evidence: Evidence) -> None:
        targets = evidence.rows.targets
        assert isinstance(targets, Classes)
        self.coverage_ = None
        if self.coverage_from is None:
            return
        if evidence.held is not None:
            own = _own_of_held(evidence.held, evidence.rows.classes, self._answer)
            self.coverage_ = Coverage("split", len(own.values), own)
        elif evidence.P is not None:
            jury = Jury.of(targets, evidence.rows.weights, evidence.judged)
            assert jury.counts is not None
            values = numpy.where(jury.honest, _own(evidence.P, jury.codes), -numpy.inf)
            self.coverage_ = Coverage("loo", len(values), OwnProbabilities.of(values, jury.counts))

    def _how_to_cover(self) -> str:
        if self.coverage_from is None:
            return (
                f"predict_set needs the answers of rows that were left out, and this {type(self).__name__} "
                'was fitted with coverage_from=None. Fit it again with coverage_from="loo" or "split".'
            )
        return (
            f"predict_set needs leave-one-out answers, and with calibration=None this {type(self).__name__} "
            'computed none. Fit again with calibration="loo", or with coverage_from="split", which holds a '
            "fifth of the rows back."
        )


class CoveringRegressor(CoveringShell, RegressorShell):
    """A regressor with prediction intervals."""

    def predict_interval(self, X: Any, coverage: float = 0.9) -> tuple[Array, Array]:
        """Return for each row an interval that holds the true value with the stated probability.

        The ends are the prediction plus two quantiles of the errors of rows that the prediction did not see,
        so intervals need not be symmetric; each side misses (1 - coverage) / 2 of the rows. Intervals are
        wider for rows where larger errors are expected, if leave-one-out says that this pays: then the
        quantiles are of errors over the spread that a small network predicts. Else all are equally wide.

        With ``coverage_from="loo"`` the errors are those of the training rows, each predicted without
        it. That costs no rows, and on average such intervals hold what they promise, but nothing
        guarantees it: the random features and the penalties saw all rows. With ``coverage_from="split"`` the
        rows were held back from the fit, and for new rows of the same kind, and equal sample weights, the
        probability is `coverage` or more, whatever the model is worth.

        Do not trust "loo" where there are about as many columns as rows, or more, and
        ``input_scaling="gradient"``, as it is by default in kernel voters and in the members of portfolios.
        The factors of the columns saw the values, so each row's prediction without it is much too good, and
        fewer rows are covered than stated. Take ``coverage_from="split"`` there, or ``input_scaling=None``.

        Either way the promise is for all rows together, and for each output alone.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows with the columns of `fit`.

        coverage : float, default=0.9
            The share of rows whose value is to be in the interval, above 0 and below 1. It takes
            (1 + coverage) / (1 - coverage) rows to know its ends, 19 for 0.9 and 39 for 0.95. If fewer were
            held back, intervals are infinite. With fewer training rows for leave-one-out, they rest on a
            t distribution.

        Returns
        -------
        lower, upper : arrays of shape (n_samples,), or (n_samples, n_outputs) for several outputs
            The ends of the intervals, in the units of `fit`.
        """
        X = self._check_new_rows(X, "predict_interval")
        found = self._coverage_for(coverage)
        log_spread = None if found.spread is None else answers(found.spread, X)
        lower, upper = bounds(found.record, self._answer(X), log_spread, float(coverage))
        return without_axis(lower), without_axis(upper)

    def _learn_coverage(self, evidence: Evidence) -> None:
        self.coverage_ = None
        if self.coverage_from is None or evidence.P is None:
            return
        targets, held = evidence.rows.targets, evidence.held
        assert isinstance(targets, Values)
        jury = ValueJury.of(targets, evidence.rows.weights, evidence.judged)
        residuals = jury.Y - evidence.P
        if targets.sd is not None:
            residuals = residuals * to_host(targets.sd).astype(float)
        weights = jury.weights
        spread, of_rows = fit_spread(evidence, residuals, weights)
        widths = choose_widths(residuals, of_rows, weights)
        log_spread = None if widths is None else of_rows
        if held is not None:
            y = as_matrix(to_host(held.y).astype(float))
            residuals = y - to_host(self._answer(held.X)).astype(float)
            weights = _weights_of(held)
            log_spread = None if widths is None else to_host(answers(spread, held.X))
        margins = Margins.of(residuals, weights, widths, log_spread, guaranteed=held is not None)
        kept = None if widths is None else spread
        self.coverage_ = Coverage(str(self.coverage_from), len(weights), margins, kept)

    def _how_to_cover(self) -> str:
        return (
            f"predict_interval needs the errors of rows that were left out, and this {type(self).__name__} "
            'was fitted with coverage_from=None. Fit it again with coverage_from="loo" or "split".'
        )


def fit_spread(
    evidence: Evidence, residuals: numpy.ndarray, weights: numpy.ndarray
) -> tuple[Network, numpy.ndarray]:
    """Fit a small network to the logarithm of the judged rows' residuals (n, k).

    Return it with its leave-one-out answers (n, k). It sees numbers without bins, because these would make it
    cost more, and without the factors that say how much values depend on columns, because the spread may
    depend on others.
    """
    X = evidence.rows.X
    inputs = evidence.encoding(TabularEncoder("robust"))
    if evidence.judged is not None:
        X = take_rows(X, evidence.judged.rows)
    targets = spread_targets(residuals, weights)
    rows = prepare_values(X, targets, None if (weights == 1).all() else from_numpy(weights, X))
    member = Member("spread", SPREAD, inputs, evidence.seed)
    grown = grow_network(Data(rows, None, None), member, None, 1)
    values = rows.targets
    assert isinstance(values, Values)
    assert values.sd is not None
    assert values.mean is not None
    return grown.voter, grown.stages[0].P * to_host(values.sd) + to_host(values.mean)


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
    """Return how much some held-back rows count: 1 if all weigh the same, whatever that is."""
    counts = weights_on_host(held.counts, int(held.X.shape[0]))[some]
    if not counts.size:
        return counts
    weights: numpy.ndarray = counts * (equal_rows(counts) / counts.sum())
    return weights
