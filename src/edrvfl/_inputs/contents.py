"""What one column of a frame or of a list holds, and the columns of the coded matrix that it becomes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import narwhals.stable.v2 as narwhals
import numpy

from .columns import Kind
from .dates import WORDS, Clock, Dates, clock_of, refuse_written_dates, warn_of_written_times
from .text import Text, holds_text
from .values import (
    Values,
    code,
    column_holds_text,
    column_values,
    count_present,
    is_number_type,
    learn_categories,
    read_numbers,
    warn_of_stray_text,
)

CATEGORY_TYPES = (narwhals.Categorical, narwhals.Enum, narwhals.String, narwhals.Binary)


@dataclass(frozen=True, slots=True)
class Rules:
    """How what a column holds is found, and how messages call the column."""

    name: str
    dtype: Any  # of the matrix
    only_numbers: bool  # whether text that is not declared is an error
    finds_text: bool  # whether columns of text may be text without being declared


@dataclass(frozen=True, slots=True, eq=False)
class Content:
    """What a column holds, and its values if they have been looked at."""

    kind: Kind | None = None  # of dates or text
    categories: numpy.ndarray | None = None
    clock: Clock | None = None
    values: Values | None = None
    places: numpy.ndarray | None = None  # of each row among the values, if these are not the rows' own

    def coded(self, column: Any, m: int, dtype: Any) -> numpy.ndarray:
        """Return the coded columns (m, n) of this column, or of new rows whose values are not known."""
        if isinstance(self.kind, Dates):
            clock = self.clock or clock_of(column)
            if clock is None:
                _refuse_undated(column, self.kind)
            return self.kind.coded(clock, m)
        values, places, known = self.values, self.places, self.categories
        if self.kind is None and known is None:
            found = read_numbers(column) if values is None else numpy.asarray(values)
        else:
            if values is None:
                values, places = column_values(column)
            if self.kind is not None:
                found = self.kind.coded(_as_texts(values))
            else:
                assert known is not None
                # numbers among text are compared as they were written
                found = code(values if known.dtype == object else _rounded(values, dtype), known)
        found = found if places is None else found[places]
        return found.reshape(len(found), -1)


def learn_content(column: Any, declared: bool, text: bool, rules: Rules) -> Content:
    """Find out what a column holds, which may be declared to hold categories or text."""
    if not isinstance(column, list) and is_number_type(column) and not (declared or text):
        return Content()
    if (clock := clock_of(column)) is not None:
        if declared or text:
            raise TypeError(
                f"holds {WORDS[clock.holds]}, which are no categories and no text. Turn them into text first."
            )
        return Content(Dates.learn(clock), clock=clock)
    if rules.only_numbers and not text:
        return Content(values=read_numbers(column))
    values, places = column_values(column)
    if not isinstance(values, list):
        by_type = not isinstance(column, list) and column.dtype in CATEGORY_TYPES
        if not (declared or by_type or text):
            return Content(values=values, places=places)  # objects that are all numbers
        if text and not numpy.isnan(values).all():
            raise ValueError("is named in text_features, but it holds numbers.")
    elif not (declared or text) and column_holds_text(column):
        refuse_written_dates(values)
        warn_of_written_times(values, rules.name)
        n_present = count_present(values, places)
        text = rules.finds_text and holds_text(values, n_present)
        if not text:
            warn_of_stray_text(values, places, rules.name)
    if text:
        return Content(Text(), values=values, places=places)
    values = _rounded(values, rules.dtype)
    return Content(None, learn_categories(values), values=values, places=places)


def _as_texts(values: Values) -> list[Any]:
    """Return values as a list, in which None is missing."""
    if isinstance(values, list):
        return values
    return [
        None if missing else value
        for value, missing in zip(values.tolist(), numpy.isnan(values), strict=True)
    ]


def _refuse_undated(column: Any, kind: Dates) -> None:
    """Refuse a column that is expected to hold dates and holds other values; gaps are welcome."""
    values, _ = column_values(column)
    for value in values if isinstance(values, list) else values[~numpy.isnan(values)].tolist():
        if value is not None:
            raise TypeError(
                f"holds {value!r}, but {WORDS[kind.holds]} are expected, as in the fit. Turn it into "
                f"{WORDS[kind.holds]} first, for instance by pandas.to_datetime."
            )


def _rounded(values: Values, dtype: Any) -> Values:
    """Give numbers the precision of the fit: 0.1 in float32 and 0.1 in float64 are one category."""
    return values if isinstance(values, list) else values.astype(dtype).astype(numpy.float64)
