"""What every estimator shares: read rows, undo a failed fit, answer with labels, values, sets, intervals."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from numbers import Real
from typing import Any, Self

import narwhals.stable.v2 as narwhals
import numpy
from sklearn import config_context
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, check_consistent_length, check_is_fitted, validate_data

from .._fitting.data import InMemory
from .._fitting.parts import Reading, read_parts
from .._fitting.portfolio import LARGEST_SEED
from .._fitting.settings import InputSettings, input_settings
from .._inputs.held_back import HeldBack, hold_back
from .._inputs.reading import (
    RowSource,
    read_new_table,
    read_training_numbers,
    read_training_table,
    refuse_missing_targets,
    refuse_source,
)
from .._inputs.rows import Rows, prepare_rows, prepare_values, refuse_one_class, refuse_unresolved, to_host
from .._inputs.table import Columns
from .._leaving.files.models import save_model
from .._loo.combine import log_odds
from .._loo.coverage import Margins, OwnProbabilities, bounds, prediction_sets
from .._looking.summary import summary
from .._models.coverage import Coverage
from .._models.model import Model, Record
from .._parts.source import RowBlocks
from .._seam.arrays import Array, array_namespace, converted
from .._seam.sklearn import CALLBACK_ATTRIBUTES, StrOptions, _fit_context, check_same_namespace

# What the parameters that all estimators have may be.
COMMON: Mapping[str, list[Any]] = {
    "coverage_from": [StrOptions({"loo", "split"}), None],
    "random_state": ["random_state"],
    "verbose": ["verbose"],
}


def predicts(estimator: Estimator) -> bool:
    """Tell whether an estimator can ever predict; a search that refits nothing raises an error."""
    if not getattr(estimator, "refit", True):
        raise AttributeError("predictions need refit=True; this search only filled cv_results_.")
    return True


def _gives_probabilities(estimator: Estimator) -> bool:
    if not estimator._classifies:
        raise AttributeError("probabilities are for classes; this search tunes a regressor.")
    return predicts(estimator)


class Estimator(BaseEstimator):
    """An estimator that reads frames, arrays and blocks of rows, and keeps a model. Subclasses fit it."""

    _classifies: Any  # whether the targets are classes: an attribute, or a property
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
            missing values. Or a :class:`RowBlocks`: rows that are read block by block, with y and the weights
            in the blocks.

        y : array-like of shape (n_samples,), for a regressor also (n_samples, n_outputs)
            Labels of at least two classes: strings, integers or booleans. Finite numbers for a regressor.

        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows, not negative and not all zero. None gives every row the weight 1.

        Returns
        -------
        self : estimator
            The fitted estimator. A fit that fails leaves it as it was.
        """
        with unchanged_on_failure(self), _dispatch_for(X):
            keep_target_name(self, y)
            self._fit(X, y, sample_weight)
            if _moves(X):  # the model is in NumPy, as the rows are before they are moved
                for name, value in list(vars(self).items()):
                    if isinstance(value, Record):
                        setattr(self, name, converted(value, to_host))
        return self

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> None:
        """Fit, and store what was fitted."""
        raise NotImplementedError

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save the fitted estimator to a file, without pickle.

        :func:`edrvfl.load` gives it back, with the same answers bit for bit. The file holds arrays and a text
        that describes them, in the safetensors format, and nothing that could be executed. Hidden weights are
        drawn again from the seed, so the file is small. A model on a GPU comes back in NumPy.

        Parameters
        ----------
        path : str or path-like
            The file; one that exists is replaced at once, when the new one is complete.
        """
        save_model(self, path)

    def _html_repr(self) -> str:
        return super()._html_repr() + summary(self)

    @property
    def _model(self) -> Model:
        """Everything that decides an answer."""
        raise NotImplementedError

    @property
    def _fitted_array(self) -> Array:
        """An array of the fitted model, which tells its library, device and precision."""
        return self._model.like

    @property
    def _encodes(self) -> bool:
        """Whether categories, text and missing values are welcome."""
        return getattr(self, "encoder", None) is not None

    def _validate_params(self) -> None:
        super()._validate_params()
        encoder = getattr(self, "encoder", None)  # portfolios have none
        if isinstance(encoder, BaseEstimator):
            encoder._validate_params()

    def _draw_seed(self) -> int:
        """Draw the seed of a fit; a RandomState instance moves on."""
        return int(check_random_state(self.random_state).randint(LARGEST_SEED))

    @contextmanager
    def _read(
        self, X: Any, y: Any, sample_weight: Any, heard: Callable[[int], None] | None = None
    ) -> Iterator[Reading]:
        """Yield the training rows of a fit wherever they are, those that are held back, and the seed."""
        inputs = input_settings(self)
        if isinstance(X, RowBlocks):
            if y is not None or sample_weight is not None:
                raise ValueError(
                    "y and sample_weight belong to the blocks of a RowBlocks, (X, y) or (X, y, weight). Give "
                    f"{type(self).__name__}.fit the blocks alone."
                )
            with X.opened() as parts:
                yield read_parts(parts, self, inputs, heard)
            return
        table, y, columns = self._check_training_rows(X, y, inputs)
        seed = self._draw_seed()
        rows, held = self._divide_rows(table, y, sample_weight, seed)
        yield Reading(InMemory(rows, columns), held, seed)

    def _check_targets(self, y: Any) -> Any:
        """Return y after a look at whether it can be learnt."""
        raise NotImplementedError

    def _check_training_rows(
        self, X: Any, y: Any, inputs: InputSettings | None = None
    ) -> tuple[Array, Array, Columns | None]:
        """Return rows and targets as arrays, and what was learnt about the columns.

        Without an encoder the rows must be finite numbers, and nothing is learnt.
        """
        refuse_source(self, X)
        y = self._check_targets(y)
        if inputs is None or inputs.encoder is None:
            X, columns = read_training_numbers(self, X), None
        else:
            X, columns = read_training_table(self, X, inputs.categorical_features)
        check_consistent_length(X, y)
        return X, y, columns

    def _prepare_rows(self, X: Array, y: Array, sample_weight: Any) -> Rows:
        """Return the rows that have a weight, with their targets."""
        raise NotImplementedError

    def _divide_rows(self, X: Array, y: Array, sample_weight: Any, seed: int) -> tuple[Rows, HeldBack | None]:
        """Return the rows to fit, prepared, and those that are held back from the fit."""
        if self.coverage_from != "split":
            return self._prepare_rows(X, y, sample_weight), None
        fitted, held = hold_back(X, y, sample_weight, seed, self._classifies)
        return self._prepare_rows(*fitted), held

    def _check_fitted_alike(self, X: Any, method: str) -> None:
        """Refuse to answer before a fit, and for arrays of another library or device than that of the fit."""
        check_is_fitted(self)
        refuse_source(self, X, method)
        check_same_namespace(X, self, attribute="_fitted_array", method=method)

    def _check_new_rows(self, X: Any, method: str) -> Array:
        """Return X as an array with the columns, the library and the precision of the fit."""
        self._check_fitted_alike(X, method)
        return read_new_table(self, X, self._columns, self._fitted_array)

    @property
    def _columns(self) -> Columns | None:
        """What the fit learnt about the columns; None if it took finite numbers as they were."""
        return self._model.columns

    def _answers(self, X: Any, method: str) -> Array:
        """Return probabilities or values (rows, k). `method` is the public method that asks, for messages."""
        X = self._check_new_rows(X, method)
        return self._model.answer(X)

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

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.array_api_support = True
        inputs = tags.input_tags
        inputs.allow_nan = inputs.categorical = inputs.string = self._encodes
        return tags


class Classifies(Estimator):
    """An estimator that answers with class probabilities, if it has to do with classes."""

    _classifies: Any = True
    class_weight: Any

    @property
    def classes_(self) -> Array:
        """The labels, as they came in `fit`."""
        return self._model.classes

    def _labels(self, P: Array) -> Array:
        """Return the label of the largest probability of each row."""
        codes = array_namespace(P).argmax(P, axis=-1)
        if isinstance(self.classes_, numpy.ndarray):
            return self.classes_[to_host(codes)]
        return array_namespace(P).take(self.classes_, codes, axis=0)

    def _check_targets(self, y: Any) -> Any:
        return read_labels(self, y)

    def _prepare_rows(self, X: Array, y: Array, sample_weight: Any) -> Rows:
        """Return the rows that have a weight, with their classes, of which there must be two."""
        rows = prepare_rows(X, y, sample_weight, self.class_weight)
        refuse_one_class(rows.classes, type(self).__name__)
        return rows

    @available_if(predicts)
    def predict(self, X: Any) -> Array:
        """Return the most probable class of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows with the columns of `fit`.

        Returns
        -------
        y : array of shape (n_samples,)
            Labels as they came in `fit`: the largest of `predict_proba`.
        """
        return self._labels(self._answers(X, "predict"))

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

    def _prepare_rows(self, X: Array, y: Array, sample_weight: Any) -> Rows:
        rows = prepare_values(X, y, sample_weight)
        refuse_unresolved(rows)
        return rows

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
        return without_axis(self._answers(X, "predict"))

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


def _as_numbers(y: numpy.ndarray, name: str) -> numpy.ndarray:
    """Return objects as numbers, and refuse text, and dates, which NumPy would take for numbers."""
    dates, cause = y.dtype.kind in "mM", None
    try:
        if y.dtype.kind == "O":
            return y.astype(float)
    except (ValueError, TypeError) as error:
        cause = error
    what = "dates or times" if dates else f"{next(v for v in y.ravel().tolist() if not _is_number(v))!r}"
    raise ValueError(
        f"{name} predicts numbers, but y holds {what}. Turn y into numbers, or use a classifier for classes."
    ) from cause


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (ValueError, TypeError):
        return False
    return not isinstance(value, str)


def without_axis(values: Array) -> Array:
    """Return values (rows, k) as (rows,) if there is one output."""
    return values[:, 0] if values.shape[1] == 1 else values


def read_labels(estimator: BaseEstimator, y: Any) -> Any:
    """Return y, which must hold labels."""
    refuse_missing_targets(y, "label")
    if isinstance(y, numpy.ndarray) and y.dtype.kind == "T":  # scikit-learn does not know NumPy's newest text
        y = y.astype(object)
    y = validate_data(estimator, "no_validation", y)
    check_classification_targets(y)
    return y


def read_values(estimator: BaseEstimator, y: Any) -> Any:
    """Return y, which must hold finite numbers, of one output or of several."""
    name = type(estimator).__name__
    if getattr(y, "ndim", 1) > 2:
        raise ValueError(
            f"{name} takes y of shape (n_samples,) or (n_samples, n_outputs), got {tuple(y.shape)}."
        )
    refuse_missing_targets(y, "value")
    y = validate_data(estimator, "no_validation", y, multi_output=True)
    if isinstance(y, numpy.ndarray) and y.dtype.kind in "OUSmM":
        y = _as_numbers(y, name)
    return check_array(y, ensure_2d=False, dtype="numeric", input_name="y", estimator=estimator)


def keep_target_name(estimator: BaseEstimator, y: Any) -> None:
    """Keep the name of y, if it is a Series that has one, and forget that of an earlier fit."""
    vars(estimator).pop("target_name_", None)
    series = narwhals.from_native(y, allow_series=True, pass_through=True)
    if isinstance(series, narwhals.Series) and isinstance(series.name, str) and series.name:
        estimator.target_name_ = series.name


@contextmanager
def unchanged_on_failure(estimator: BaseEstimator) -> Iterator[None]:
    """If the fit inside fails, restore the attributes that the estimator had before."""
    before = dict(vars(estimator))
    try:
        yield
    except BaseException:
        # scikit-learn needs the state of its callbacks until it has ended them
        callbacks = {k: v for k, v in vars(estimator).items() if k.startswith(CALLBACK_ATTRIBUTES)}
        estimator.__dict__ = before | callbacks
        raise


@contextmanager
def _dispatch_for(X: Any) -> Iterator[None]:
    """Turn scikit-learn's array API dispatch on for rows that are moved to a device when they are read."""
    with config_context(array_api_dispatch=True) if _moves(X) else nullcontext():
        yield


def _moves(X: Any) -> bool:
    """Tell whether X is rows that are moved to a device when they are read."""
    return isinstance(X, RowSource) and getattr(X, "device", None) is not None
