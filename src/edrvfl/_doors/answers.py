"""What classifiers answer (labels, probabilities, sets) and what regressors answer (values, intervals)."""

from __future__ import annotations

from typing import Any

import numpy
from array_api_compat import is_array_api_obj
from sklearn.utils import check_array
from sklearn.utils.metaestimators import available_if

from .._inputs.reading import read_labels, read_values
from .._inputs.rows import Rows, prepare_rows, prepare_values, refuse_one_class, refuse_unresolved, to_host
from .._loo.coverage import Margins, OwnProbabilities, bounds, prediction_sets
from .._loo.follow import log_odds
from .._seam.arrays import Array, array_namespace, from_numpy
from .base import Estimator


def predicts(estimator: Estimator) -> bool:
    """Tell whether an estimator can ever predict; a search that refits nothing raises an error."""
    if not getattr(estimator, "refit", True):
        raise AttributeError("predictions need refit=True; this search only filled cv_results_.")
    return True


def _gives_probabilities(estimator: Estimator) -> bool:
    if not estimator._classifies:
        raise AttributeError("probabilities are for classes; this search tunes a regressor.")
    return predicts(estimator)


def _refuse_other_order(costs: Any, classes: list[Any]) -> None:
    """Refuse a frame that names the classes in another order than the probabilities have."""
    for what in ("index", "columns"):
        names = getattr(costs, what, None)
        known = [] if names is None or callable(names) else [str(name) for name in names]
        own = [str(name) for name in classes]
        if known != own and sorted(known) == sorted(own):
            raise ValueError(
                f"The {what} of costs names the classes in the order {known}, and classes_ is {own}. Give "
                "costs.loc[model.classes_, model.classes_]."
            )


class Classifies(Estimator):
    """An estimator that answers with class probabilities, if it has to do with classes."""

    _classifies: Any = True
    class_weight: Any

    @property
    def classes_(self) -> Array:
        """The labels, as they came in `fit`."""
        return self._model.classes

    def _said(self, P: Array, costs: Array | None = None) -> Array:
        """Return the label of the largest probability of each row, or of the least expected cost."""
        xp = array_namespace(P)
        codes = xp.argmax(P, axis=-1) if costs is None else xp.argmin(P @ costs, axis=-1)
        if isinstance(self.classes_, numpy.ndarray):
            return self.classes_[to_host(codes)]
        return xp.take(self.classes_, codes, axis=0)

    def _priced(self, X: Any, costs: Any) -> Array:
        """Return the labels of least expected cost."""
        P = self._answers(X, "predict")
        if costs is None:
            return self._said(P)
        if self._calibration is None:
            raise ValueError(
                f"costs weigh probabilities that can be believed, but this {type(self).__name__} has "
                'calibration=None. Fit it with calibration="loo", or calibrate it elsewhere.'
            )
        k = P.shape[1]
        _refuse_other_order(costs, to_host(self.classes_).tolist())
        costs = to_host(costs) if is_array_api_obj(costs) else costs
        costs = check_array(costs, dtype=numpy.float64, input_name="costs")
        if costs.shape != (k, k):
            raise ValueError(
                f"costs must have a row and a column for each of the {k} classes, in the order of classes_: "
                f"costs[i, j] is the cost of the answer j where the class is i. Got the shape {costs.shape}."
            )
        # beside the largest one, so that they are finite in any precision
        costs = costs / (numpy.abs(costs).max() or 1.0)
        return self._said(P, from_numpy(costs, P))

    @property
    def _calibration(self) -> str | None:
        """How the probabilities are calibrated."""
        found: str | None = getattr(self, "calibration", None)
        return found

    def _check_targets(self, y: Any) -> Any:
        return read_labels(self, y)

    def _prepare_rows(self, X: Array, y: Array, sample_weight: Any, groups: Any) -> Rows:
        """Return the rows that have a weight, with their classes, of which there must be two."""
        rows = prepare_rows(X, y, sample_weight, self.class_weight, groups=groups)
        refuse_one_class(rows.classes, type(self).__name__)
        return rows

    @available_if(predicts)
    def predict(self, X: Any, costs: Any = None) -> Array:
        """Return the most probable class of each row, or the one of least expected cost.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows with the columns of `fit`.

        costs : array-like of shape (n_classes, n_classes), default=None
            What it costs to answer class j where the class is i: ``costs[i, j]``, in the order of `classes_`.
            The answer is then the class with the smallest sum of costs times `predict_proba`, the first of
            equal ones. Gains are negative costs. None counts every error alike. With ``class_weight`` the
            probabilities are shifted already, so leave it out.

        Returns
        -------
        y : array of shape (n_samples,)
            Labels as they came in `fit`: without costs the largest of `predict_proba`.
        """
        return self._priced(X, costs)

    @available_if(_gives_probabilities)
    def predict_proba(self, X: Any) -> Array:
        """Return the class probabilities of each row.

        They are calibrated by leave-one-out: of the rows that get the probability 0.8, about 80 % should
        belong to the class. No probability is 0. With ``calibration=None`` their order is good, but they
        stay far from 0 and 1.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows with the columns of `fit`.

        Returns
        -------
        P : array of shape (n_samples, n_classes)
            In the order of `classes_`; each row sums to 1.
        """
        return self._answers(X, "predict_proba")

    @available_if(_gives_probabilities)
    def predict_log_proba(self, X: Any) -> Array:
        """Return the logarithm of `predict_proba`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows with the columns of `fit`.

        Returns
        -------
        P : array of shape (n_samples, n_classes)
            In the order of `classes_`; minus infinity where a probability is 0.
        """
        P = self._answers(X, "predict_log_proba")
        with numpy.errstate(divide="ignore"):
            return array_namespace(P).log(P)

    @available_if(_gives_probabilities)
    def decision_function(self, X: Any) -> Array:
        """Return the logarithm of the probabilities; for two classes the log-odds of the second.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows with the columns of `fit`.

        Returns
        -------
        scores : array of shape (n_samples, n_classes), or (n_samples,) for two classes
            Always finite. `predict` takes the largest, or for two classes the sign.
        """
        return log_odds(self._answers(X, "decision_function"))

    def predict_set(self, X: Any, coverage: float = 0.9) -> Array:
        """Return for each row a set of classes that holds the true one with the stated probability.

        A class is in the set if its probability reaches a threshold, the same for all rows and classes
        (LAC, the least ambiguous sets: none of this coverage are smaller on average). The most probable class
        is always in the set. So where the answers are right more often than `coverage`, so are the sets.

        The threshold comes from probabilities that rows gave their own class. With ``coverage_from="split"``
        the rows were held back from the fit, and for new rows of the same kind, and equal sample weights, the
        probability is `coverage` or more, whatever the model is worth: that is guaranteed. With
        ``coverage_from="loo"`` each training row was answered without it, and where rows are few by a model
        that its label did not shape. That costs no rows, and what such sets hold was measured, from 20 rows
        on, with up to 500 columns (benchmarks/honesty.py); nothing guarantees it.

        Either way the promise is for all rows together. In a class that is rare or hard, fewer may be
        covered. A class that no fitted row has is in no set. The threshold allows for this: training rows
        that are alone in their class count as rows outside their set.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows with the columns of `fit`.

        coverage : float, default=0.9
            The share of rows whose class is to be in their set, above 0 and below 1. If there were fewer than
            coverage / (1 - coverage) rows for the threshold, or groups, all classes are in all sets.

        Returns
        -------
        sets : array of bool of shape (n_samples, n_classes)
            Which classes are in the set of each row, in the order of `classes_`.
        """
        X = self._check_new_rows(X, "predict_set")
        found = self._coverage_for(coverage)
        assert isinstance(found.record, OwnProbabilities)
        return prediction_sets(self._model.answer(X), found.record, float(coverage))

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


class Predicts(Estimator):
    """An estimator that answers with values, in the units of y."""

    _classifies = False

    def _check_targets(self, y: Any) -> Any:
        return read_values(self, y)

    def _prepare_rows(self, X: Array, y: Array, sample_weight: Any, groups: Any) -> Rows:
        rows = prepare_values(X, y, sample_weight, groups=groups)
        refuse_unresolved(rows)
        return rows

    def _said(self, P: Array) -> Array:
        return without_axis(P)

    @available_if(predicts)
    def predict(self, X: Any) -> Array:
        """Return the values of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows with the columns of `fit`.

        Returns
        -------
        y : array of shape (n_samples,), or (n_samples, n_outputs) for several outputs
            Values in the units of `fit`.
        """
        return self._said(self._answers(X, "predict"))

    def predict_interval(self, X: Any, coverage: float = 0.9) -> tuple[Array, Array]:
        """Return for each row an interval that holds the true value with the stated probability.

        The ends are the prediction plus two quantiles of the errors of rows that the prediction did not see,
        so intervals need not be symmetric; each side misses (1 - coverage) / 2 of the rows. Intervals are
        wider for rows where larger errors are expected, if leave-one-out says that this pays: then the
        quantiles are of errors over the spread that a small network predicts. Else all are equally wide.

        With ``coverage_from="split"`` the errors are those of rows that were held back from the fit, and for
        new rows of the same kind, and equal sample weights, the probability is `coverage` or more, whatever
        the model is worth: that is guaranteed. With ``coverage_from="loo"`` they are those of the training
        rows, each predicted without it, and where rows are few by a model that its value did not shape. That
        costs no rows, and what such intervals hold was measured, from 20 rows on, with up to 500 columns
        (benchmarks/honesty.py); nothing guarantees it.

        Either way the promise is for all rows together, and for each output alone.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows with the columns of `fit`.

        coverage : float, default=0.9
            The share of rows whose value is to be in the interval, above 0 and below 1. It takes
            (1 + coverage) / (1 - coverage) rows to know its ends, 19 for 0.9 and 39 for 0.95, or as many
            groups. With fewer, held back or left out one by one, intervals are infinite.

        Returns
        -------
        lower, upper : arrays of shape (n_samples,), or (n_samples, n_outputs) for several outputs
            The ends of the intervals, in the units of `fit`.
        """
        X = self._check_new_rows(X, "predict_interval")
        found = self._coverage_for(coverage)
        assert isinstance(found.record, Margins)
        log_spread = None if found.spread is None else found.spread.answer(X)
        lower, upper = bounds(found.record, self._model.answer(X), log_spread, float(coverage))
        return without_axis(lower), without_axis(upper)

    def _how_to_cover(self) -> str:
        return (
            f"predict_interval needs the errors of rows that were left out, and this {type(self).__name__} "
            'was fitted with coverage_from=None. Fit it again with coverage_from="loo" or "split".'
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


def without_axis(values: Array) -> Array:
    """Return values (rows, k) as (rows,) if there is one output."""
    return values[:, 0] if values.shape[1] == 1 else values
