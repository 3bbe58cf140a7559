"""What one column holds: numbers or text, what is missing, and the codes of its categories."""

from __future__ import annotations

import math
import warnings
from contextlib import suppress
from datetime import date, time, timedelta
from decimal import Decimal
from numbers import Real
from typing import Any, TypeAlias

import narwhals.stable.v2 as narwhals
import numpy

from .._seam.arrays import Array, array_namespace, from_numpy

NUMBERS = (Real, Decimal, numpy.bool_)
DATES = (date, time, timedelta, numpy.datetime64, numpy.timedelta64)
READ = (str, bytes, complex, numpy.complexfloating, *NUMBERS, *DATES)  # some are refused elsewhere
MANY_NUMBERS, NEARLY_ALL = 20, 0.95  # so many values and this share of them make a column one of numbers

# Numbers as float64 with NaN, or text as a list with None.
Values: TypeAlias = numpy.ndarray | list[str | None]


def is_missing(value: Any) -> bool:
    """Tell whether a value is None, NaN, NaT or pandas.NA."""
    if value is None or type(value).__name__ == "NAType":  # pandas need not be installed
        return True
    try:
        return bool(value != value)
    except Exception:  # an array, or anything else that does not compare
        return False


def text_of(value: Any) -> str:
    """Write a value as text. 1, 1.0, True and Decimal("1.00") are the same number and the same text."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    if isinstance(value, NUMBERS):
        with suppress(OverflowError, ValueError):  # larger than a float, or infinite
            number = float(value)
            return str(int(number)) if number.is_integer() else repr(number)
    return str(value)


def numbers_or_text(values: list[Any]) -> Values:
    """Return numbers if every value that is not missing is a number or a bool, else text."""
    kinds = set(map(type, values))
    if kinds <= {str, type(None)}:
        return values if str in kinds else numpy.full(len(values), numpy.nan)
    values = [value if type(value) is str or not is_missing(value) else None for value in values]
    kinds = set(map(type, values)) - {type(None)}
    if any(issubclass(kind, DATES) for kind in kinds):
        raise TypeError(
            "holds dates or times where numbers, text or categories are expected; turn these into numbers, "
            "or into text if they are categories."
        )
    if any(issubclass(kind, (complex, numpy.complexfloating)) for kind in kinds):
        raise ValueError("holds complex numbers. Complex data not supported")
    if all(issubclass(kind, NUMBERS) for kind in kinds):
        return numpy.fromiter(map(_number_of, values), numpy.float64, len(values))
    return [value if value is None or type(value) is str else text_of(value) for value in values]


def _number_of(value: Any) -> float:
    if value is None:
        return numpy.nan
    try:
        return float(value)
    except OverflowError:  # an int that no float can hold; infinity is refused later, with the column's name
        return numpy.inf if value > 0 else -numpy.inf


def distinct_values(column: Any) -> tuple[list[Any], numpy.ndarray | None]:
    """Return the values of a column of categories or text, and each row's place among them.

    Where the frame library finds the distinct values fast, it does. Otherwise the values of all rows
    are returned, and no places. A place of -1 names the last value, None: missing.
    """
    if isinstance(column, list):
        return column, None
    if column.implementation.is_pandas():
        places, values = column.to_native().factorize()
        return [*values.tolist(), None], places
    if column.implementation.is_pyarrow():
        encoded = column.to_native().combine_chunks()
        if not hasattr(encoded, "dictionary"):
            encoded = encoded.dictionary_encode()
        # indices may be unsigned, as those that polars makes
        places = encoded.indices.cast("int64").fill_null(-1).to_numpy(zero_copy_only=False)
        values = [*encoded.dictionary.to_pylist(), None]
        places = numpy.where(places < 0, len(values) - 1, places)
        used = numpy.flatnonzero(numpy.bincount(places, minlength=len(values)))
        among = numpy.zeros(len(values), dtype=numpy.int64)
        among[used] = numpy.arange(len(used))  # a dictionary may hold unused values
        return [values[place] for place in used], among[places]
    if column.implementation.is_polars() and column.dtype in (
        narwhals.Categorical,
        narwhals.Enum,
        narwhals.String,
    ):
        texts = column.cast(narwhals.String)
        values = texts.drop_nulls().unique().to_list()
        if values:
            places = texts.replace_strict(values, list(range(len(values))), return_dtype=narwhals.Int64)
            return [*values, None], places.fill_null(-1).to_numpy()
    return column.to_list(), None


def column_values(column: Any) -> tuple[Values, numpy.ndarray | None]:
    """Return numbers or text of a column, and each row's place among these if they are not the rows' own."""
    if not isinstance(column, list) and is_number_type(column):
        return read_numbers(column).astype(numpy.float64, copy=False), None
    values, places = distinct_values(column)
    if isinstance(column, list):
        _refuse_objects(values)
    return numbers_or_text(values), places


def _refuse_objects(values: list[Any]) -> None:
    """Refuse values of a column of objects that are neither numbers nor text, of which nothing can be learnt.

    A frame's own type of categories may hold anything, intervals for instance.
    """
    for kind in set(map(type, values)):
        if not issubclass(kind, READ):
            value = next(value for value in values if type(value) is kind)
            if not is_missing(value):
                raise TypeError(
                    f"holds lists or records or other objects ({kind.__name__}). Make a column of each of "
                    "their fields, or turn them into text if they are categories."
                )


def column_holds_text(column: Any) -> bool:
    """Tell whether a column is one of objects or of text, and not of a type that is made for categories."""
    return isinstance(column, list) or column.dtype == narwhals.String


def warn_of_stray_text(values: list[str | None], places: numpy.ndarray | None, name: str) -> None:
    """Warn if a column of text holds numbers but for a few values: nobody means these to be categories."""
    distinct = dict.fromkeys(values)
    distinct = {text: text is not None and _is_number_text(text) for text in distinct}
    numbers = numpy.fromiter(map(distinct.__getitem__, values), bool, len(values))
    present = numpy.fromiter((text is not None for text in values), bool, len(values))
    if places is not None:
        numbers, present = numbers[places], present[places]
    n_numbers, n_present = int(numbers.sum()), int(present.sum())
    if n_numbers < max(MANY_NUMBERS, NEARLY_ALL * n_present):
        return
    if n_numbers == n_present:
        _warn_of_written_numbers([text for text in distinct if text is not None], n_present, name)
        return
    row = int((present & ~numbers).argmax())
    stray = values[row if places is None else places[row]]
    warnings.warn(
        f"{name} counts as categories, because it holds the text {stray!r} in row {row}, but {n_numbers} of "
        f"its {n_present} values are numbers. If it should be a column of numbers, replace such text by NaN, "
        "which stands for missing. If it holds categories, name it in categorical_features.",
        stacklevel=2,
    )


def _warn_of_written_numbers(texts: list[str], n_present: int, name: str) -> None:
    """Warn if numbers that are written as text hardly repeat and are not whole: these are no codes."""
    if 2 * sum(not float(text).is_integer() for text in texts) > n_present:
        warnings.warn(  # without an example, so that Python tells it once though blocks of rows have it each
            f"{name} counts as categories, because its numbers are written as text. Turn it into numbers, "
            "for instance by pandas.to_numeric(X[name]). If it holds categories, name it in "
            "categorical_features.",
            stacklevel=2,
        )


def _is_number_text(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def holds_objects(column: Any) -> bool:
    """Tell whether a column of a frame may hold values of several types."""
    # narwhals takes objects of pandas for text if the first ones are
    return column.dtype == narwhals.Object or getattr(column.to_native(), "dtype", None) == numpy.dtype(
        object
    )


def is_number_type(column: Any) -> bool:
    """Tell whether the type of a column of a frame is one of numbers or booleans."""
    if column.dtype.is_numeric() or column.dtype == narwhals.Boolean:
        return True
    # narwhals does not know numpy.longdouble
    return isinstance(kind := getattr(column.to_native(), "dtype", None), numpy.dtype) and kind.kind == "f"


def read_numbers(column: Any) -> numpy.ndarray:
    """Return the numbers of a column, NaN where missing. A column of text is refused."""
    if not isinstance(column, list) and is_number_type(column):
        if not column.dtype.is_float() and column.dtype != narwhals.Unknown:
            column = column.cast(narwhals.Float64)
        found: numpy.ndarray = column.to_numpy()
        return found
    values, places = column_values(column)
    if isinstance(values, list):
        example = next(value for value in values if value is not None)
        raise ValueError(f"holds text ({example!r}), but numbers are expected.")
    return values if places is None else values[places]


def count_present(values: Values, places: numpy.ndarray | None) -> int:
    """Return how many cells of a column are not missing."""
    if isinstance(values, list):
        present = numpy.fromiter((text is not None for text in values), bool, len(values))
    else:
        present = ~numpy.isnan(values)
    return int((present if places is None else present[places]).sum())


def learn_categories(values: Values) -> numpy.ndarray:
    """Return the distinct values, sorted: float64, or an object array of text. Missing is no value."""
    if isinstance(values, list):
        return numpy.array(sorted(set(values) - {None}), dtype=object)  # type: ignore[type-var]
    return numpy.unique(values[~numpy.isnan(values)])


def code(values: Values, categories: numpy.ndarray) -> numpy.ndarray:
    """Return the place of each value among the categories, -1 if it is not there, NaN if it is missing.

    Numbers are compared with numbers as numbers; everything else is compared as text.
    """
    if not isinstance(values, list):
        if numpy.isinf(values).any():
            raise ValueError("holds infinite values. Replace them, for instance by NaN for missing.")
        if categories.dtype != object:
            coded: numpy.ndarray = code_numbers(values, categories)
            return coded
        values = [None if numpy.isnan(value) else text_of(value) for value in values.tolist()]
    known = categories.tolist() if categories.dtype == object else map(text_of, categories.tolist())
    place = {text: float(at) for at, text in enumerate(known)}
    codes: dict[Any, float] = {text: place.get(text, -1.0) for text in set(values)} | {None: numpy.nan}
    return numpy.fromiter(map(codes.__getitem__, values), numpy.float64, len(values))


def code_numbers(values: Array, categories: numpy.ndarray) -> Array:
    """Return the codes of numbers, on their own device: see `code`."""
    xp = array_namespace(values)
    missing = xp.isnan(values)
    if categories.shape[0] == 0:
        return xp.where(missing, values, -xp.ones_like(values))
    known = from_numpy(categories, values)
    # NaN has no place in a sorted list; whatever stands in its row is replaced below
    place = xp.searchsorted(known, xp.where(missing, known[0], values))
    place = xp.clip(place, None, categories.shape[0] - 1)
    codes = xp.where(xp.take(known, place) == values, xp.astype(place, values.dtype), -xp.ones_like(values))
    return xp.where(missing, values, codes)
