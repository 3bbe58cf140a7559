"""Read rows: frames and arrays become a matrix, and an error names the columns that cannot."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import narwhals.stable.v2 as narwhals
import numpy
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from .._seam.arrays import Array
from .table import Columns, Table, float_dtypes, learn_table, open_table, read_table


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
        advice = f"Ask block by block: [model.{method}(X) for X, y, weight in blocks]"
    raise TypeError(f"{kind}.{method} takes rows in memory, but X is a {what}. {advice}.")


def read_training_numbers(estimator: BaseEstimator, X: Any) -> Array:
    """Return X, which must hold finite numbers, as a matrix; note the names of its columns."""
    with name_bad_columns(estimator, X):
        return validate_data(estimator, X, dtype=float_dtypes(X))


def read_training_table(
    estimator: BaseEstimator, X: Any, categorical_features: Any = "from_dtype"
) -> tuple[Array, Columns]:
    """Return X as a matrix of numbers and codes, with what was learnt of its columns; note their names."""
    refuse_source(estimator, X)
    return learn_table(open_training_table(estimator, X), categorical_features)


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


@contextmanager
def name_bad_columns(estimator: BaseEstimator, X: Any) -> Iterator[None]:
    """Refuse columns of dates, and make an error about a frame name the columns that are not numbers."""
    # An array has no named columns, and asking costs more than a small predict.
    frame = X if hasattr(X, "__dlpack__") else narwhals.from_native(X, pass_through=True)
    if isinstance(frame, narwhals.LazyFrame):
        raise TypeError(
            f"{type(estimator).__name__} takes rows in memory, but X is a lazy frame. Collect it first."
        )
    if not isinstance(frame, narwhals.DataFrame):
        yield
        return
    if dates := [str(column.name) for column in frame.iter_columns() if column.dtype.is_temporal()]:
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
