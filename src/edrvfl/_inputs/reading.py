"""Read rows: frames and arrays become a matrix, and an error names the columns that cannot."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import narwhals.stable.v2 as narwhals
import numpy
from array_api_compat import is_array_api_obj
from sklearn.base import BaseEstimator
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, validate_data

from .._seam.arrays import Array, array_namespace
from .dates import as_plain_dates, is_dated
from .rows import to_host
from .table import Columns, Table, as_frame, float_dtypes, learn_table, open_table, read_table, refuse_sparse
from .values import is_missing

NUMBER_DIGITS = 18  # longer numbers are names of somebody else, beyond which one cannot count


class RowSource:
    """Rows that are read block by block. Classifiers and regressors take it; others take rows in memory."""


def refuse_source(estimator: BaseEstimator, X: Any, method: str = "fit") -> None:
    """Say who takes rows that are read block by block, if these are such rows."""
    if not isinstance(X, RowSource):
        return
    kind, what = type(estimator).__name__, type(X).__name__
    if method == "fit":
        advice = (
            "Classifiers and regressors are fitted to rows that are read block by block. Give arrays or a "
            "frame, of some of the rows if there are too many"
        )
    else:
        given = {"update": "X, y, weight", "forget": "X, y"}.get(method, "X")
        advice = f"Ask block by block: [model.{method}({given}) for X, y, weight in blocks]"
    raise TypeError(f"{kind}.{method} takes rows in memory, but X is a {what}. {advice}.")


def read_training_numbers(estimator: BaseEstimator, X: Any) -> Array:
    """Return X, which must hold finite numbers, as a matrix; note the names of its columns."""
    with name_bad_columns(estimator, X):
        return validate_data(estimator, X, dtype=float_dtypes(X))


def read_training_table(
    estimator: BaseEstimator,
    X: Any,
    categorical_features: Any = "from_dtype",
    text_features: Any = "from_dtype",
) -> tuple[Array, Columns]:
    """Return X as a matrix of numbers and codes, with what was learnt of its columns; note their names."""
    refuse_source(estimator, X)
    return learn_table(open_training_table(estimator, X), categorical_features, text_features)


def open_training_table(estimator: BaseEstimator, X: Any) -> Table:
    """Return X as a table, and note the names of its columns."""
    table = open_table(X, estimator=estimator)
    validate_data(estimator, X, skip_check_array=True)
    return table


def read_new_table(estimator: BaseEstimator, X: Any, columns: Columns | None, like: Array) -> Array:
    """Return new rows as a matrix of numbers and codes, in the precision of `like`.

    Without `columns` the rows must be finite numbers. Columns that are missing, additional or in another
    order are scikit-learn's errors, with their names.
    """
    if columns is None:
        with name_bad_columns(estimator, X):
            return validate_data(estimator, X, reset=False, dtype=[like.dtype])
    table = open_table(X, like.dtype, estimator)
    validate_data(estimator, X, reset=False, skip_check_array=True)
    return read_table(table, columns)


def names_of(X: Any) -> numpy.ndarray | None:
    """Return the index of a pandas frame as numbers or texts; None where rows are only numbered."""
    index = getattr(X, "index", None)
    if index is None or callable(index):  # lists have a method of this name
        return None
    if getattr(index, "start", 1) == 0 and getattr(index, "step", 0) == 1:
        return None
    return as_names(index.to_numpy())


def as_ids(ids: Any) -> numpy.ndarray:
    """Return the names that somebody gives rows. Missing ones are refused: they would all be one name."""
    values = ids if isinstance(ids, list) else numpy.atleast_1d(numpy.asarray(ids)).tolist()
    missing = [i for i, value in enumerate(values) if is_missing(value)]
    if missing:
        raise ValueError(
            f"ids has a missing value in place {missing[0]}. Give every row a name; leave out ids, and they "
            "are numbered."
        )
    return as_names(ids)


def as_names(names: Any) -> numpy.ndarray:
    """Return names of rows as whole numbers, or as texts if they are anything else."""
    if isinstance(names, list) and any(isinstance(name, tuple) for name in names):
        found = numpy.empty(len(names), dtype=object)  # of an index of several levels
        found[:] = names
    else:
        found = numpy.atleast_1d(numpy.asarray(names))
    if found.ndim != 1:
        raise ValueError(f"ids must be one name for each row, got an array of shape {found.shape}.")
    if found.dtype.kind == "f" and (found == numpy.round(found)).all() and (abs(found) < 2**53).all():
        found = found.astype(numpy.int64)  # whole numbers that were floats beside a gap, say
    if found.dtype.kind in "iu":
        return found.astype(numpy.int64)
    if found.dtype.kind == "M":  # a moment has one name, whether it comes as a number or as an object
        moments = found.astype("datetime64[us]")
        found = numpy.where(moments == found, moments.astype(object), numpy.datetime_as_string(found))
    return numpy.array([str(name) for name in found.tolist()], dtype=object)


def next_number(number: int, names: numpy.ndarray) -> int:
    """Return the first number, from `number` on, beyond all names that are numbers or read like some."""
    if names.dtype == object:
        used = [int(name) for name in names.tolist() if name.isdecimal() and len(name) < NUMBER_DIGITS]
    else:
        used = names[names < 10**NUMBER_DIGITS].tolist()
    return max([number, *(name + 1 for name in used)])


def refuse_missing_targets(y: Any, what: str) -> None:
    """Refuse a y in which a target is missing, and name the first such row, counted from 0."""
    missing = numpy.asarray(_missing_targets(y), dtype=bool)
    if missing.any():
        row = int(missing.reshape(len(missing), -1).any(axis=1).argmax())
        raise ValueError(f"y has a missing {what} in row {row}. Fill it in, or leave the row out.")


def _missing_targets(y: Any) -> Any:
    """Mark the missing targets, (m,) or (m, k). What is no array, series or list is not looked at."""
    if isinstance(y, numpy.ma.MaskedArray) and numpy.ma.is_masked(y):
        return numpy.ma.getmaskarray(y)
    if isinstance(y, list | tuple):
        return [is_missing(value) for value in y]
    if isinstance(y, numpy.ndarray) and y.dtype.kind == "O":
        return numpy.frompyfunc(is_missing, 1, 1)(y)
    if is_array_api_obj(y):
        xp = array_namespace(y)
        return to_host(xp.isnan(y)) if xp.isdtype(y.dtype, "real floating") else False
    frame = narwhals.from_native(y, pass_through=True, allow_series=True)
    series = isinstance(frame, narwhals.Series)
    columns = [frame] if series else frame.iter_columns() if isinstance(frame, narwhals.DataFrame) else ()
    marks = [
        column.is_nan() | column.is_null() if column.dtype.is_float() else column.is_null()
        for column in columns
    ]
    return numpy.stack([mark.to_numpy() for mark in marks], axis=1) if marks else False


@contextmanager
def name_bad_columns(estimator: BaseEstimator, X: Any) -> Iterator[None]:
    """Refuse columns of dates, and make an error about a frame name the columns that are not numbers."""
    # An array has no named columns, and asking costs more than a small predict.
    frame = X if hasattr(X, "__dlpack__") else as_frame(X)
    refuse_sparse(X, estimator)
    if numpy.ma.is_masked(X):
        row, column = (int(place) for place in numpy.argwhere(numpy.ma.getmaskarray(X))[0])
        raise ValueError(
            f"{type(estimator).__name__} takes no missing values with encoder=None, but the cell of X in row "
            f'{row}, column {column} is masked. Fill it in, or set encoder="standard".'
        )
    if isinstance(frame, narwhals.LazyFrame):
        raise TypeError(
            f"{type(estimator).__name__} takes rows in memory, but X is a lazy frame. Collect it first."
        )
    if not isinstance(frame, narwhals.DataFrame):
        if getattr(getattr(X, "dtype", None), "kind", "f") in "mM":  # NumPy would take them for numbers
            raise TypeError(
                f"{type(estimator).__name__} takes numbers with encoder=None, but X holds dates or "
                'durations. Turn them into numbers, or set encoder="standard".'
            )
        yield
        return
    if dates := [
        str(column.name)
        for column in frame.iter_columns()
        if is_dated(column) or as_plain_dates(column) is not column
    ]:
        raise TypeError(
            _bad_columns_message(estimator, dates, "They hold dates or times; turn these into numbers.")
        )
    try:
        yield
    except (ValueError, TypeError) as error:
        if bad := [str(column.name) for column in frame.iter_columns() if not _is_numeric(column)]:
            # the same kind of error, so that whoever catches it still does
            advice = f'Encode them first, or leave that to encoder="standard". ({error})'
            raise type(error)(_bad_columns_message(estimator, bad, advice)) from error
        raise


def _bad_columns_message(estimator: BaseEstimator, columns: list[str], advice: str) -> str:
    return (
        f"{type(estimator).__name__} takes numeric columns with encoder=None, but these are not: "
        f"{', '.join(columns)}. {advice}"
    )


def _is_numeric(column: Any) -> bool:
    """Tell whether a column holds numbers, also where its type is a general one (objects, categories)."""
    try:
        numpy.asarray(column.to_numpy(), dtype=float)
    except (ValueError, TypeError):
        return False
    return True


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


def read_labels(estimator: BaseEstimator, y: Any) -> Any:
    """Return y, which must hold labels."""
    if isinstance(y, numpy.ndarray) and y.dtype.kind == "T":  # scikit-learn does not know NumPy's newest text
        y = y.astype(object)
    refuse_missing_targets(y, "label")
    kind: Any = getattr(y, "dtype", None)
    if hasattr(kind, "numpy_dtype") and kind.kind in "iub":  # scikit-learn makes floats of pandas' own types
        y = y.to_numpy(dtype=kind.numpy_dtype)
    y = validate_data(estimator, "no_validation", y)
    if isinstance(y, numpy.ndarray) and y.dtype.kind == "O":
        kinds = set(map(type, y.ravel().tolist()))
        if not all(issubclass(kind, (str, bytes)) for kind in kinds):  # scikit-learn has words for bytes
            names = ", ".join(sorted(kind.__name__ for kind in kinds))
            raise ValueError(
                f"Unknown label type: objects must all be text, but y holds objects of the type {names}. "
                "Give it one type, for instance by y.astype(int), y.astype(bool) or y.astype(str)."
            )
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
