"""A frame or an array becomes one matrix of floats: numbers as they are, categories as codes.

Codes 0 .. q-1 are places among the column's sorted values, -1 is a value that was never seen, NaN is missing.
Codes only relabel the values, so they are made for all rows at once; what is learnt from training rows
alone comes later, in `encoding.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from numbers import Integral
from typing import Annotated, Any, ClassVar

import narwhals.stable.v2 as narwhals
import numpy
from narwhals.exceptions import DuplicateError
from sklearn import get_config
from sklearn.utils import check_array

from .._seam.arrays import Array, array_namespace, device, from_numpy, ignore_overflow, row_blocks
from .._seam.fields import Long
from .._seam.sklearn import _convert_to_numpy, get_namespace_and_device, supported_float_dtypes
from .values import (
    Values,
    code,
    code_numbers,
    column_holds_text,
    column_values,
    holds_objects,
    is_number_type,
    learn_categories,
    read_numbers,
    warn_of_stray_text,
)

CATEGORY_TYPES = (narwhals.Categorical, narwhals.Enum, narwhals.String, narwhals.Binary)


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """What is known about the columns of X: which hold categories, and which categories."""

    categorical: Annotated[tuple[bool, ...], Long("d")]
    # the sorted values of a column of categories, float64 or text in an object array; None for numbers
    categories: Annotated[tuple[numpy.ndarray | None, ...], Long("d")]
    names: Annotated[tuple[str, ...], Long("d")]  # "x0", "x1", ... if X has none

    stays_in_numpy: ClassVar = True  # when arrays move: frames are read with the categories


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """X as it came, checked: a matrix of numbers, or columns one by one."""

    shape: tuple[int, int]
    dtype: Any  # of the matrix that is made from it
    matrix: Array | None  # None if a column may hold something else than numbers
    columns: tuple[Any, ...] = ()  # series of narwhals, or lists of any values; empty if there is a matrix
    named: tuple[str, ...] | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """Names for features: those of X, else "x0", "x1", ..."""
        return self.named or tuple(f"x{j}" for j in range(self.shape[1]))

    def call(self, j: int) -> str:
        """Return how messages call a column."""
        return f"Column {j}" if self.named is None else f"Column {self.named[j]!r}"

    @contextmanager
    def naming(self, j: int) -> Iterator[None]:
        """Make an error about a column begin with its name."""
        try:
            yield
        except (TypeError, ValueError) as error:
            kind = (
                TypeError if isinstance(error, TypeError) else ValueError
            )  # subclasses may take other arguments
            raise kind(f"{self.call(j)} {error}") from error


def open_table(X: Any, dtype: Any = None, estimator: Any = None) -> Table:
    """Check that X is a table in memory and find out how it is to be read.

    Parameters
    ----------
    X : array, frame (pandas, polars, pyarrow) or list of rows
    dtype : dtype of the matrix, or None for float32 if all numbers of X are float32, else float64
    estimator : estimator that messages name, or None
    """
    options = {"ensure_all_finite": False, "estimator": estimator, "input_name": "X"}
    if isinstance(X, numpy.ma.MaskedArray):
        X = _unmasked(X)
    if not hasattr(X, "__dlpack__"):  # an array is no frame, and asking costs more than a small predict
        frame = as_frame(X)
        if isinstance(frame, narwhals.LazyFrame):
            raise TypeError("X must be a table in memory, but it is a lazy frame. Collect it first.")
        if isinstance(frame, narwhals.DataFrame):
            return _open_frame(frame, dtype, options)
        X = _open_rows(X, options)
    kind = getattr(X.dtype, "kind", "f")
    if kind in "OUST":
        X = check_array(X, dtype=None, **options)
        columns = tuple(X[:, j].tolist() for j in range(X.shape[1]))
        return Table(X.shape, dtype or numpy.dtype(numpy.float64), None, columns)
    if kind in "mM":
        raise TypeError("X holds dates or times; turn these into numbers.")
    matrix = check_array(X, dtype=float_dtypes(X) if dtype is None else [dtype], **options)
    return Table(matrix.shape, matrix.dtype, matrix)


def as_frame(X: Any) -> Any:
    """Return a frame of any library as one of narwhals, and anything else as it is."""
    try:
        return narwhals.from_native(X, pass_through=True)
    except DuplicateError as error:
        names = [str(name) for name in (X.columns if hasattr(X, "iloc") else X.column_names)]
        twice = ", ".join(sorted({repr(name) for name in names if names.count(name) > 1}))
        raise ValueError(f"X has several columns of the name {twice}. Rename them, or drop some.") from error


def _unmasked(X: numpy.ma.MaskedArray) -> numpy.ndarray:
    """Return a masked array as a plain one, in which masked cells are missing."""
    if not numpy.ma.is_masked(X):
        return X.data
    missing: Any = numpy.nan if X.dtype.kind in "biuf" else None
    return numpy.where(numpy.ma.getmaskarray(X), missing, X.data)


def float_dtypes(X: Any) -> list[Any]:
    """Return the precisions that arrays like X keep. float16 is too coarse for sums over rows."""
    xp, _, where = get_namespace_and_device(X)
    return [t for t in supported_float_dtypes(xp, where) if t in (xp.float64, xp.float32)]


def _open_rows(X: Any, options: dict[str, Any]) -> numpy.ndarray:
    """Return rows in lists as an array. Numbers beside text stay numbers: NumPy would make text of them."""
    array = check_array(X, dtype=None, **options)
    return check_array(X, dtype=object, **options) if array.dtype.kind in "US" else array


def _open_frame(frame: Any, dtype: Any, options: dict[str, Any]) -> Table:
    # an array of this shape that takes no memory, for scikit-learn's messages about no rows or no columns
    check_array(numpy.broadcast_to(numpy.float64(0), frame.shape), **options)
    kinds = frame.schema.dtypes()
    named = tuple(frame.columns) if all(isinstance(name, str) for name in frame.columns) else None
    if dtype is None:
        # booleans and categories fit into every precision
        numbers = {kind for kind in kinds if kind.is_numeric()}
        dtype = numpy.dtype(numpy.float32 if numbers == {narwhals.Float32()} else numpy.float64)
    if all(_is_plain(kind, frame.implementation) for kind in kinds):
        matrix = check_array(frame.to_native(), dtype=[dtype], **options)
        return Table(matrix.shape, dtype, matrix, named=named)
    columns = tuple(frame.iter_columns())
    _refuse_columns(columns)
    columns = tuple(column.to_list() if holds_objects(column) else column for column in columns)
    return Table(frame.shape, dtype, None, columns, named)


def _is_plain(kind: Any, library: narwhals.Implementation) -> bool:
    """Tell whether scikit-learn turns columns of this type into numbers, and fast."""
    if library.is_pyarrow() or kind in (narwhals.Int128, narwhals.UInt128):
        return False
    return kind.is_float() or kind.is_integer() or (kind == narwhals.Boolean and library.is_pandas())


def _refuse_columns(columns: Sequence[Any]) -> None:
    """Refuse columns that are neither numbers nor categories, by their names."""
    dates, nested, sparse, other = [], [], [], []
    for column in columns:
        kind, native = column.dtype, getattr(column.to_native(), "dtype", None)
        if kind.is_temporal():
            dates.append(str(column.name))
        elif kind.is_nested():
            nested.append(str(column.name))
        elif type(native).__name__ == "SparseDtype":
            sparse.append(str(column.name))
        elif kind == narwhals.Unknown and not (is_number_type(column) or column.null_count() == len(column)):
            other.append(f"{column.name} ({native or column.to_native().type})")
    if sparse:
        raise TypeError(
            f"Sparse data was passed in columns {', '.join(sparse)}, but dense data is required. Use "
            "'.sparse.to_dense()' to convert to dense."
        )
    for bad, why in [
        (dates, "They hold dates or times; turn these into numbers, for instance days since a fixed day."),
        (nested, "They hold lists or records; make a column of each of their fields."),
        (other, "Turn them into one of these."),
    ]:
        if bad:
            raise TypeError(
                "X may hold columns of numbers, booleans, categories and text, but these are not: "
                f"{', '.join(bad)}. {why}"
            )


def learn_table(table: Table, categorical_features: Any = "from_dtype") -> tuple[Array, Columns]:
    """Learn which columns hold categories and which, and return the coded matrix with what was learnt.

    Parameters
    ----------
    table : what `open_table` returned
    categorical_features : "from_dtype" takes columns of categories, of text, and of objects that are not all
        numbers. A list of names or of positions, or a mask, adds columns of numbers to these. None takes
        no column, and text is an error.
    """
    d = table.shape[1]
    declared = _declared(categorical_features, table)
    if table.matrix is not None:
        _refuse_infinite(table.matrix, table)
        found = [_learn_number_column(table.matrix[:, j]) if declared[j] else None for j in range(d)]
        columns = Columns(tuple(declared), tuple(found), table.names)
        return _code_matrix(table, columns), columns
    X = _empty_matrix(table)
    categories: list[numpy.ndarray | None] = [None] * d
    for j in range(d):
        with table.naming(j), ignore_overflow():
            X[:, j], categories[j] = _learn_column(table, j, declared[j], categorical_features is None)
    _refuse_infinite(X, table)
    return X, Columns(tuple(c is not None for c in categories), tuple(categories), table.names)


def read_table(table: Table, columns: Columns) -> Array:
    """Return the coded matrix of new rows."""
    if table.matrix is not None:
        _refuse_infinite(table.matrix, table)
        return _code_matrix(table, columns)
    X = _empty_matrix(table)
    for j, (column, categories) in enumerate(zip(table.columns, columns.categories, strict=True)):
        with table.naming(j), ignore_overflow():
            X[:, j] = read_numbers(column) if categories is None else _code_column(table, column, categories)
    _refuse_infinite(X, table)
    return X


def _empty_matrix(table: Table) -> numpy.ndarray:
    """Allocate the matrix of a frame by columns, as it is filled and as pandas does."""
    return numpy.empty(table.shape, dtype=table.dtype, order="F")


def _learn_column(
    table: Table, j: int, declared: bool, only_numbers: bool
) -> tuple[numpy.ndarray, numpy.ndarray | None]:
    """Return the numbers or codes of a column, and its categories if it holds some."""
    column = table.columns[j]
    if only_numbers or (not declared and not isinstance(column, list) and is_number_type(column)):
        return read_numbers(column), None
    values, places = column_values(column)
    by_type = not isinstance(column, list) and column.dtype in CATEGORY_TYPES
    if not isinstance(values, list) and not (declared or by_type):
        return values, None  # objects that are all numbers
    if isinstance(values, list) and not declared and column_holds_text(column):
        warn_of_stray_text(values, places, table.call(j))
    values = _rounded(values, table)
    categories = learn_categories(values)
    codes = code(values, categories)
    return (codes if places is None else codes[places]), categories


def _rounded(values: Values, table: Table) -> Values:
    """Give numbers the precision of the fit: 0.1 in float32 and 0.1 in float64 are one category."""
    return values if isinstance(values, list) else values.astype(table.dtype).astype(numpy.float64)


def _code_column(table: Table, column: Any, categories: numpy.ndarray) -> numpy.ndarray:
    values, places = column_values(column)
    if categories.dtype != object:  # numbers among text are compared as they were written
        values = _rounded(values, table)
    codes = code(values, categories)
    return codes if places is None else codes[places]


def _learn_number_column(x: Array) -> numpy.ndarray:
    xp = array_namespace(x)
    found = _convert_to_numpy(xp.unique_values(x[~xp.isnan(x)]), xp)
    return numpy.asarray(found, dtype=numpy.float64)


def _code_matrix(table: Table, columns: Columns) -> Array:
    """Replace the columns of categories of a matrix by codes, in a copy if there are any."""
    X = table.matrix
    if not any(columns.categorical):
        return X
    xp = array_namespace(X)
    X = xp.asarray(X, copy=True)
    for j, categories in enumerate(columns.categories):
        if categories is not None and categories.dtype != object:
            X[:, j] = code_numbers(X[:, j], categories)
        elif categories is not None:
            numbers = numpy.asarray(_convert_to_numpy(X[:, j], xp), dtype=numpy.float64)
            X[:, j] = from_numpy(code(numbers, categories), X)
    return X


def _refuse_infinite(X: Array, table: Table) -> None:
    """Refuse infinite values, by the names of their columns."""
    xp = array_namespace(X)
    with ignore_overflow():
        # one pass without a temporary is enough where nothing is missing or infinite
        if get_config()["assume_finite"] or bool(xp.isfinite(xp.sum(X))):
            return
    infinite = xp.zeros((X.shape[1],), dtype=xp.bool, device=device(X))
    for rows in row_blocks(X, *X.shape):
        infinite = infinite | xp.any(xp.isinf(X[rows, :]), axis=0)
    if bool(xp.any(infinite)):
        bad = [table.call(j) for j in range(X.shape[1]) if bool(infinite[j])]
        raise ValueError(
            f"{', '.join(bad)}: X contains infinity or a value too large for {X.dtype}. Replace such "
            "values, for instance by NaN, which stands for missing."
        )


def _declared(categorical_features: Any, table: Table) -> list[bool]:
    """Return the mask of the columns that are declared to hold categories."""
    d = table.shape[1]
    if categorical_features is None or (
        isinstance(categorical_features, str) and categorical_features == "from_dtype"
    ):
        return [False] * d
    items = [] if isinstance(categorical_features, str) else list(categorical_features)
    mask = [isinstance(item, (bool, numpy.bool_)) for item in items]
    if items and all(mask):
        if len(items) != d:
            raise ValueError(f"categorical_features is a mask of {len(items)} values, but X has {d} columns.")
        return [bool(item) for item in items]
    if items and all(isinstance(item, str) for item in items):
        return _declared_by_name(items, table.named)
    if isinstance(categorical_features, str) or any(mask) or not all(isinstance(i, Integral) for i in items):
        raise ValueError(
            'categorical_features must be "from_dtype", None, a list of names, a list of positions or a mask '
            f"(not a mixture of these), got {categorical_features!r}."
        )
    if outside := [int(item) for item in items if not 0 <= item < d]:
        raise ValueError(
            f"categorical_features names positions {outside}, but X has the columns 0 to {d - 1}."
        )
    positions = set(items)
    return [j in positions for j in range(d)]


def _declared_by_name(items: list[str], named: tuple[str, ...] | None) -> list[bool]:
    if named is None:
        raise ValueError(
            "categorical_features holds names, but X has no names of columns. Use positions or a mask."
        )
    if unknown := [item for item in items if item not in named]:
        raise ValueError(
            f"categorical_features names columns that X does not have: {', '.join(map(repr, unknown))}. "
            f"X has {', '.join(map(repr, named))}."
        )
    return [name in items for name in named]
