"""A frame or an array becomes one matrix of floats: numbers as they are, categories as codes.

A column of dates or of text becomes several columns, which are numbers too.

Codes 0 .. q-1 are places among the column's sorted values, -1 is a value that was never seen, NaN is missing.
Codes only relabel the values, so they are made for all rows at once; what is learnt from training rows
alone comes later, in `encoding.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import narwhals.stable.v2 as narwhals
import numpy
from narwhals.exceptions import DuplicateError
from scipy.sparse import issparse
from sklearn import get_config
from sklearn.utils import check_array

from .._seam.arrays import Array, array_namespace, device, from_numpy, ignore_overflow, row_blocks
from .._seam.sklearn import _convert_to_numpy, get_namespace_and_device, supported_float_dtypes
from .columns import Columns as Columns
from .columns import declared_columns, refuse_both
from .contents import Content, Rules, learn_content
from .dates import as_plain_dates, is_dated
from .rows import to_host
from .values import code, code_numbers, holds_objects, is_number_type


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
        refuse_sparse(X, estimator)
        frame = as_frame(X)
        if isinstance(frame, narwhals.LazyFrame):
            raise TypeError("X must be a table in memory, but it is a lazy frame. Collect it first.")
        if isinstance(frame, narwhals.DataFrame):
            return _open_frame(frame, dtype, options)
        X = _open_rows(X, options)
    kind = getattr(X.dtype, "kind", "f")
    if kind in "OUSTmM":
        X = check_array(X, dtype=None, **options)
        # dates stay NumPy's: lists of far ones, or of nanoseconds, would be of integers
        columns = tuple(list(X[:, j]) if kind in "mM" else X[:, j].tolist() for j in range(X.shape[1]))
        return Table(X.shape, dtype or numpy.dtype(numpy.float64), None, columns)
    matrix = check_array(X, dtype=float_dtypes(X) if dtype is None else [dtype], **options)
    return Table(matrix.shape, matrix.dtype, matrix)


def refuse_sparse(X: Any, estimator: Any) -> None:
    """Refuse a sparse matrix, and say how a few dense columns are made of its many."""
    if issparse(X):
        model = "..." if estimator is None else f"{type(estimator).__name__}()"
        raise TypeError(
            f"Sparse data was passed for X, of shape {X.shape}, but dense columns are needed. Make a few of "
            f"them first, make_pipeline(TruncatedSVD(100), {model}), or pass X.toarray() if memory allows."
        )


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
    columns = tuple(map(as_plain_dates, frame.iter_columns()))
    _refuse_columns(columns)
    columns = tuple(column.to_list() if holds_objects(column) else column for column in columns)
    return Table(frame.shape, dtype, None, columns, named)


def _is_plain(kind: Any, library: narwhals.Implementation) -> bool:
    """Tell whether scikit-learn turns columns of this type into numbers, and fast."""
    if library.is_pyarrow() or kind in (narwhals.Int128, narwhals.UInt128):
        return False
    return kind.is_float() or kind.is_integer() or (kind == narwhals.Boolean and library.is_pandas())


def _refuse_columns(columns: Sequence[Any]) -> None:
    """Refuse columns of types of which nothing can be learnt, by their names."""
    nested, sparse, other = [], [], []
    for column in columns:
        kind, native = column.dtype, getattr(column.to_native(), "dtype", None)
        if kind.is_nested():
            nested.append(str(column.name))
        elif type(native).__name__ == "SparseDtype":
            sparse.append(str(column.name))
        elif kind == narwhals.Unknown and not (
            is_number_type(column) or is_dated(column) or column.null_count() == len(column)
        ):
            other.append(f"{column.name} ({native or column.to_native().type})")
    if sparse:
        raise TypeError(
            f"Sparse data was passed in columns {', '.join(sparse)}, but dense data is required. Use "
            "'.sparse.to_dense()' to convert to dense."
        )
    for bad, why in [
        (nested, "They hold lists or records; make a column of each of their fields."),
        (other, "Turn them into one of these."),
    ]:
        if bad:
            raise TypeError(
                "X may hold columns of numbers, booleans, categories, dates and text, but these are not: "
                f"{', '.join(bad)}. {why}"
            )


def learn_table(
    table: Table,
    categorical_features: Any = "from_dtype",
    text_features: Any = "from_dtype",
    finds_text: bool = True,
) -> tuple[Array, Columns]:
    """Learn what the columns hold, and return the coded matrix with what was learnt.

    Parameters
    ----------
    table : what `open_table` returned
    categorical_features : "from_dtype" takes columns of categories, of text, and of objects that are not all
        numbers. A list of names or of positions, or a mask, adds columns of numbers to these. None takes
        no column, and text is an error unless `text_features` names it.
    text_features : "from_dtype" takes columns of text whose values hardly repeat: see `holds_text`. A list or
        a mask adds columns to these. None takes no column.
    finds_text : whether text is found by this rule; else text that is not declared is categories
    """
    d = table.shape[1]
    declared = declared_columns(categorical_features, "categorical_features", d, table.named)
    texts = declared_columns(text_features, "text_features", d, table.named)
    refuse_both(declared, texts, table.names)
    if any(texts):
        table = _by_columns(table)  # numbers are refused, and gaps are not
    if table.matrix is not None:
        _refuse_infinite(table.matrix, table)
        found = [_learn_number_column(table.matrix[:, j]) if declared[j] else None for j in range(d)]
        columns = Columns(tuple(declared), tuple(found), table.names)
        return _code_matrix(table, columns), columns
    finds_text = finds_text and text_features is not None
    contents: list[Content] = []
    for j in range(d):
        rules = Rules(table.call(j), table.dtype, categorical_features is None, finds_text)
        with table.naming(j), ignore_overflow():
            contents.append(learn_content(table.columns[j], declared[j], texts[j], rules))
    found = [content.categories for content in contents]
    kinds = tuple(content.kind for content in contents)
    some = any(kind is not None for kind in kinds)
    columns = Columns(tuple(c is not None for c in found), tuple(found), table.names, kinds if some else None)
    return _filled(table, columns, contents), columns


def _by_columns(table: Table) -> Table:
    """Return a table whose columns are looked at one by one."""
    if table.matrix is None:
        return table
    X = to_host(table.matrix)
    return replace(table, matrix=None, columns=tuple(X[:, j].tolist() for j in range(X.shape[1])))


def read_table(table: Table, columns: Columns) -> Array:
    """Return the coded matrix of new rows."""
    if table.matrix is not None and columns.kinds is not None:
        table = _by_columns(table)  # where dates or text are expected numbers are refused, and gaps are not
    if table.matrix is not None:
        _refuse_infinite(table.matrix, table)
        return _code_matrix(table, columns)
    return _filled(table, columns)


def _filled(table: Table, columns: Columns, contents: Sequence[Content] | None = None) -> numpy.ndarray:
    """Return the coded matrix of columns, of which some have been looked at."""
    # by columns, as it is filled and as pandas does
    X = numpy.empty((table.shape[0], columns.width), dtype=table.dtype, order="F")
    starts, kinds = columns.starts, columns.kind_of
    for j, start in enumerate(starts[:-1]):
        with table.naming(j), ignore_overflow():
            content = Content(kinds[j], columns.categories[j]) if contents is None else contents[j]
            X[:, start : starts[j + 1]] = content.coded(table.columns[j], len(X), table.dtype)
    _refuse_infinite(X, table, columns)
    return X


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


def _refuse_infinite(X: Array, table: Table, columns: Columns | None = None) -> None:
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
        given = range(X.shape[1]) if columns is None else [part.column for part in columns.parts]
        bad = [table.call(j) for i, j in enumerate(given) if bool(infinite[i])]
        raise ValueError(
            f"{', '.join(bad)}: X contains infinity or a value too large for {X.dtype}. Replace such "
            "values, for instance by NaN, which stands for missing."
        )
