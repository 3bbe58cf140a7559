"""What every estimator shares: read rows, undo a failed fit, answer with labels, values, sets, intervals."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from numbers import Real
from typing import Any, Self, TypeVar, dataclass_transform

import narwhals.stable.v2 as narwhals
import numpy
from sklearn import config_context
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from .._fitting.data import InMemory
from .._fitting.parts import Given, Reading, read_parts
from .._fitting.portfolio import LARGEST_SEED
from .._fitting.settings import InputSettings, input_settings
from .._inputs.chosen import HeldBack, hold_back
from .._inputs.grouped import read_groups, refuse_one_group, warn_of_single_groups
from .._inputs.reading import (
    RowSource,
    names_of,
    read_new_table,
    read_training_numbers,
    read_training_table,
    refuse_source,
)
from .._inputs.rows import Rows, to_host
from .._inputs.table import Columns
from .._leaving.files.models import save_model
from .._loo.follow import CALIBRATIONS
from .._looking.summary import summary
from .._models.coverage import Coverage
from .._models.memory import KEEPS
from .._models.model import Model, Record
from .._parts.source import RowBlocks
from .._seam.arrays import Array, converted
from .._seam.sklearn import CALLBACK_ATTRIBUTES, StrOptions, _fit_context, check_same_namespace

Kind = TypeVar("Kind")
# What the parameters that all estimators have may be.
COMMON: Mapping[str, list[Any]] = {
    "coverage_from": [StrOptions({"loo", "split"}), None],
    "remember": [StrOptions(set(KEEPS)), None],
    "random_state": ["random_state"],
    "verbose": ["verbose"],
}
# What those may be that all classifiers have beside them.
OF_CLASSES: Mapping[str, list[Any]] = {
    "calibration": [StrOptions(set(CALIBRATIONS)), None],
    "class_weight": [dict, StrOptions({"balanced"}), None],
}


class Estimator(BaseEstimator):
    """An estimator that reads frames, arrays and blocks of rows, and keeps a model. Subclasses fit it."""

    _classifies: Any  # whether the targets are classes: an attribute, or a property
    _record: str  # the fitted attribute that decides answers
    coverage_from: str | None
    remember: str | None
    random_state: Any
    coverage_: Coverage | None

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, groups: Any = None) -> Self:
        """Fit the estimator.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training rows: a NumPy array, a pandas, polars or pyarrow table, or, with scikit-learn's array API
            dispatch on, a torch or CuPy array. Columns may hold numbers, booleans, categories, dates or text,
            and missing values. Or a :class:`RowBlocks`: rows that are read block by block, with y and the
            weights in the blocks.

        y : array-like of shape (n_samples,), for a regressor also (n_samples, n_outputs)
            Labels of at least two classes: strings, integers or booleans. Finite numbers for a regressor.

        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows, not negative and not all zero. None gives every row the weight 1.

        groups : array-like of shape (n_samples,), default=None
            Which rows belong together, such as the visits of a patient: rows of the same value are one group.
            Then leave-one-out leaves out whole groups, exactly, and all that is learnt from it is about rows
            of new groups: penalties, depths, weights, calibration, sets and intervals. For rows in memory.

        Returns
        -------
        self : estimator
            The fitted estimator. A fit that fails leaves it as it was.
        """
        # rows that are moved to a device when they are read
        moves = isinstance(X, RowSource) and getattr(X, "device", None) is not None
        dispatch = config_context(array_api_dispatch=True) if moves else nullcontext()
        with unchanged_on_failure(self), dispatch:
            keep_target_name(self, y)
            self._fit(X, y, sample_weight, groups)
            if moves:  # the model is in NumPy, as the rows are before they are moved
                for name, value in list(vars(self).items()):
                    if isinstance(value, Record):
                        setattr(self, name, converted(value, to_host))
        return self

    def _fit(self, X: Any, y: Any, sample_weight: Any, groups: Any) -> None:
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
        model: Model = getattr(self, self._record)
        return model

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
        self, X: Any, y: Any, sample_weight: Any, groups: Any, heard: Callable[[int], None] | None = None
    ) -> Iterator[Reading]:
        """Yield the training rows of a fit wherever they are, those that are held back, and the seed."""
        inputs = input_settings(self)
        if isinstance(X, RowBlocks):
            if y is not None or sample_weight is not None:
                raise ValueError(
                    "y and sample_weight belong to the blocks of a RowBlocks, (X, y) or (X, y, weight). Give "
                    f"{type(self).__name__}.fit the blocks alone."
                )
            if groups is not None:
                raise ValueError(
                    "groups are for rows in memory, but X is a RowBlocks. Bring the rows to memory, or fit "
                    "without groups, and judge the model by groups that it did not see."
                )
            if self.remember == "rows":
                raise ValueError(
                    'remember="rows" keeps rows that are in memory, but X is a RowBlocks, which is read '
                    'block by block. Give an array or a frame, or set remember=None; networks take "sums".'
                )
            with X.opened() as parts:
                yield read_parts(parts, self, inputs, heard)
            return
        table, y, columns = self._check_training_rows(X, y, inputs)
        seed = self._draw_seed()
        numbers = read_groups(groups, int(table.shape[0]))
        rows, held = self._divide_rows(table, y, sample_weight, seed, numbers)
        given = None if self.remember is None else Given(table, y, names_of(X))
        yield Reading(InMemory(rows, columns, remembers=given is not None), held, seed, given)

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
            X, columns = read_training_table(self, X, inputs.categorical_features, inputs.text_features)
        check_consistent_length(X, y)
        return X, y, columns

    def _prepare_rows(self, X: Array, y: Array, sample_weight: Any, groups: Any) -> Rows:
        """Return the rows that have a weight, with their targets and groups."""
        raise NotImplementedError

    def _divide_rows(
        self, X: Array, y: Array, sample_weight: Any, seed: int, groups: numpy.ndarray | None
    ) -> tuple[Rows, HeldBack | None]:
        """Return the rows to fit, prepared, and those that are held back from the fit."""
        given, held = (X, y, sample_weight, groups), None
        if self.coverage_from == "split":
            given, held = hold_back(X, y, sample_weight, seed, self._classifies, groups)
        rows = self._prepare_rows(*given)
        refuse_one_group(rows, type(self).__name__)
        warn_of_single_groups(rows)
        return rows, held

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

    def _said(self, P: Array) -> Array:
        """Return what `predict` says: labels for probabilities, and values without an axis of length 1."""
        raise NotImplementedError

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


@dataclass_transform(eq_default=False)
def fields_are_parameters(kind: type[Kind]) -> type[Kind]:
    """Write the constructor of an estimator, which takes its fields.

    What it makes are no dataclasses, because frames would take a column of these to pieces.
    """
    dataclass(eq=False, repr=False, match_args=False)(kind)
    del kind.__dataclass_fields__  # type: ignore[attr-defined]
    return kind


def keep_target_name(estimator: BaseEstimator, y: Any) -> None:
    """Keep the name of y, if it is a Series that has one, and forget that of an earlier fit."""
    vars(estimator).pop("target_name_", None)
    series = narwhals.from_native(y, allow_series=True, pass_through=True)
    name: Any = series.name if isinstance(series, narwhals.Series) else None  # pandas takes any object
    if isinstance(name, str) and name:
        estimator.target_name_ = name


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
