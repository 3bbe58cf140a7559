"""What every estimator shares: check input, name bad columns, undo a failed fit, answer."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, check_consistent_length, check_is_fitted, validate_data

from .._inputs.reading import (
    read_new_table,
    read_training_numbers,
    read_training_table,
    refuse_missing_targets,
    refuse_source,
)
from .._inputs.rows import Rows, prepare_rows, prepare_values, refuse_one_class, refuse_unresolved, to_host
from .._inputs.table import Columns
from .._loo.combine import log_odds
from .._looking.summary import Shown
from .._seam.arrays import Array, array_namespace
from .._seam.sklearn import CALLBACK_ATTRIBUTES, _estimator_with_converted_arrays, check_same_namespace

Estimator = TypeVar("Estimator")

# Seeds fit into int32, so that every platform draws the same.
LARGEST_SEED = numpy.iinfo(numpy.int32).max


def predicts(estimator: Shell) -> bool:
    """Tell whether an estimator can ever predict; a search that refits nothing raises an error."""
    if not getattr(estimator, "refit", True):
        raise AttributeError("predictions need refit=True; this search only filled cv_results_.")
    return True


def _gives_probabilities(estimator: Shell) -> bool:
    if not estimator._classifies:
        raise AttributeError("probabilities are for classes; this search tunes a regressor.")
    return predicts(estimator)


class Saving:
    """An estimator that can be saved to a file."""

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
        from .._leaving.files.models import save_model  # here, because a file knows all estimators

        save_model(self, path)


class Shell(Saving, Shown):
    """An estimator that reads frames and arrays. Subclasses compute the answers."""

    _classifies: Any  # whether the targets are classes: an attribute, or a property

    @property
    def _fitted_array(self) -> Array:
        """An array of the fitted model, which tells its library, device and precision."""
        raise NotImplementedError

    def _answers(self, X: Any, method: str) -> Array:
        """Return probabilities or values (rows, k). `method` is the public method that asks, for messages."""
        raise NotImplementedError

    @property
    def _columns(self) -> Columns | None:
        """What the fit learnt about the columns; None if it took finite numbers as they were."""
        return None

    @property
    def _encodes(self) -> bool:
        """Whether categories, text and missing values are welcome."""
        return getattr(self, "encoder", None) is not None

    def _check_targets(self, y: Any) -> Any:
        """Return y after a look at whether it can be learnt."""
        raise NotImplementedError

    def _check_training_rows(
        self, X: Any, y: Any, encoder: Any = None
    ) -> tuple[Array, Array, Columns | None]:
        """Return rows and targets as arrays, and what was learnt about the columns.

        Without a TabularEncoder the rows must be finite numbers, and nothing is learnt.
        """
        refuse_source(self, X)
        y = self._check_targets(y)
        if encoder is None:
            X, columns = read_training_numbers(self, X), None
        else:
            X, columns = read_training_table(self, X, encoder.categorical_features)
        check_consistent_length(X, y)
        return X, y, columns

    def _prepare_rows(self, X: Array, y: Array, sample_weight: Any) -> Rows:
        """Return the rows that have a weight, with their targets."""
        raise NotImplementedError

    def _check_fitted_alike(self, X: Any, method: str) -> None:
        """Refuse to answer before a fit, and for arrays of another library or device than that of the fit."""
        check_is_fitted(self)
        refuse_source(self, X, method)
        check_same_namespace(X, self, attribute="_fitted_array", method=method)

    def _check_new_rows(self, X: Any, method: str) -> Array:
        """Return X as an array with the columns, the library and the precision of the fit."""
        self._check_fitted_alike(X, method)
        return read_new_table(self, X, self._columns, self._fitted_array)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.array_api_support = True
        inputs = tags.input_tags
        inputs.allow_nan = inputs.categorical = inputs.string = self._encodes
        return tags


class ProbabilityShell(Shell):
    """An estimator that answers with class probabilities, if it has to do with classes."""

    classes_: Any  # an attribute, or a property

    def _labels(self, P: Array) -> Array:
        """Return the label of the largest probability of each row."""
        codes = array_namespace(P).argmax(P, axis=-1)
        if isinstance(self.classes_, numpy.ndarray):
            return self.classes_[to_host(codes)]
        return array_namespace(P).take(self.classes_, codes, axis=0)

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


class ClassifierShell(ClassifierMixin, ProbabilityShell):
    """A classifier that answers from class probabilities. Subclasses compute the probabilities."""

    _classifies = True
    class_weight: Any

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


class RegressorShell(RegressorMixin, Shell):
    """A regressor that answers with values, in the units of y."""

    _classifies = False
    # what classifiers can set; code that serves both asks for it
    ensemble, calibration, class_weight = "value", None, None

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


def to_numpy(model: Estimator) -> Estimator:
    """Copy a fitted estimator with every array in NumPy, whatever device it was fitted on.

    Parameters
    ----------
    model : estimator
        A network, a kernel voter, a portfolio, a search or a :class:`TabularEncoder` of this library, or
        a scikit-learn estimator that holds some.

    Returns
    -------
    copy : estimator
        The same model, for NumPy arrays and frames.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from edrvfl import EDRVFLClassifier, to_numpy
    >>> X, y = load_iris(return_X_y=True)
    >>> model = EDRVFLClassifier(n_hidden=20, random_state=0).fit(X, y)
    >>> bool((to_numpy(model).predict(X) == model.predict(X)).all())
    True
    """
    copy: Estimator = _estimator_with_converted_arrays(model, to_host)
    return copy


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
