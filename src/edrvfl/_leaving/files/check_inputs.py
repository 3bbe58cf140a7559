"""What the records about columns must satisfy before rows are encoded by them."""

from __future__ import annotations

import itertools
from typing import Any

import numpy

from ..._inputs.inputs import Bins, Categories, Inputs, Numbers, OneHots
from ..._inputs.table import Columns
from .values import floats, indices, integer, items, need, positive, record


def check_columns(columns: Any, d: int) -> None:
    """Refuse columns that are not d, or whose categories are not sorted values."""
    record(columns, "columns", Columns)
    categorical, categories, names = (
        items(getattr(columns, name), f"columns.{name}", d) for name in ("categorical", "categories", "names")
    )
    need(all(isinstance(name, str) for name in names), "columns.names", "texts")
    for holds, values in zip(categorical, categories, strict=True):
        need(
            type(holds) is bool and holds is (values is not None),
            "columns.categorical",
            "where categories are",
        )
        if values is not None:
            _check_categories(values)


def _check_categories(values: Any) -> None:
    where = "columns.categories"
    need(isinstance(values, numpy.ndarray) and values.ndim == 1, where, "lists of values")
    if values.dtype == object:
        need(all(isinstance(v, str) for v in values.tolist()), where, "texts or numbers")
        known = values.tolist()
        need(all(a < b for a, b in itertools.pairwise(known)), where, "sorted")
    else:
        floats(values, where, values.shape, numpy.dtype(numpy.float64))
        need((numpy.diff(values) > 0).all(), where, "sorted")


def check_reading(columns: Columns | None, inputs: Inputs) -> None:
    """Refuse inputs that are made of categories or gaps where columns are taken as finite numbers."""
    plain = inputs.numbers is None and inputs.categories is None
    need(plain is (columns is None), "columns", "None where X is taken as it is, and only there")


def check_inputs(inputs: Any, d: int, dtype: Any) -> None:
    """Refuse an encoding whose parts do not make the columns that it names of d columns of a precision."""
    record(inputs, "inputs", Inputs)
    width = integer(inputs.width, "inputs.width")
    for j in items(inputs.source, "inputs.source", width):
        integer(j, "inputs.source", 0, d - 1)
    for label in items(inputs.labels, "inputs.labels", width):
        need(isinstance(label, str) or (type(label) is int and label >= 0), "inputs.labels", "texts or codes")
    if inputs.factors is not None:
        floats(inputs.factors, "inputs.factors", (width,), dtype)
    if inputs.numbers is None and inputs.categories is None:
        rest = (inputs.missing, inputs.bins, inputs.onehots)
        need(width == d and all(part is None for part in rest), "inputs", "the columns of X as they are")
        return
    p = 0 if inputs.numbers is None else _check_numbers(inputs.numbers, d, dtype)
    c = 0 if inputs.categories is None else _check_table(inputs.categories, d, dtype)
    found = p
    if inputs.missing is not None:
        found += len(indices(inputs.missing, "inputs.missing", d))
    if inputs.bins is not None:
        found += _check_parts(inputs.bins, Bins, p, dtype, finite=True)
    if inputs.onehots is not None:
        found += _check_parts(inputs.onehots, OneHots, p + c, dtype, finite=False)
    need(found == width, "inputs.width", f"{found}, the number of encoded columns")


def _check_numbers(numbers: Any, d: int, dtype: Any) -> int:
    """Return how many columns of numbers there are."""
    record(numbers, "inputs.numbers", Numbers)
    p = d
    if numbers.columns is not None:
        p = len(indices(numbers.columns, "inputs.numbers.columns", d))
    positive(floats(numbers.divisor, "inputs.numbers.divisor", (p,), dtype, infinite=True), "divisor")
    for name in ("fill", "mean"):
        floats(getattr(numbers, name), f"inputs.numbers.{name}", (p,), dtype)
    positive(floats(numbers.sd, "inputs.numbers.sd", (p,), dtype), "inputs.numbers.sd")
    need(
        (numbers.center is None) is (numbers.spread is None),
        "inputs.numbers",
        "with center and spread, or none",
    )
    if numbers.center is not None:
        floats(numbers.center, "inputs.numbers.center", (p,), dtype)
        positive(floats(numbers.spread, "inputs.numbers.spread", (p,), dtype), "inputs.numbers.spread")
    return p


def _check_parts(part: Any, kind: type, below: int, dtype: Any, finite: bool) -> int:
    """Return how many columns there are of bins or one-hot columns."""
    where = f"inputs.{kind.__name__.lower()}"
    record(part, where, kind)
    n = len(indices(part.columns, f"{where}.columns", below))
    for name in ("left", "slope", "offset", "low", "high") if kind is Bins else ("low", "high", "on", "off"):
        may_be_infinite = not finite and name in ("low", "high")
        floats(getattr(part, name), f"{where}.{name}", (n,), dtype, infinite=may_be_infinite)
    return n


def _check_table(categories: Any, d: int, dtype: Any) -> int:
    """Return how many columns of categories there are."""
    where = "inputs.categories"
    record(categories, where, Categories)
    c = len(indices(categories.columns, f"{where}.columns", d))
    need(
        isinstance(categories.table, numpy.ndarray) and categories.table.ndim == 1, f"{where}.table", "a list"
    )
    size = len(floats(categories.table, f"{where}.table", categories.table.shape, dtype))
    start, end = (
        floats(getattr(categories, name), f"{where}.{name}", (c,), dtype) for name in ("start", "end")
    )
    whole = (start == numpy.floor(start)).all() and (end == numpy.floor(end)).all()
    inside = (start >= 0).all() and (start < end).all() and (end < size).all()
    need(whole and inside, where, "places in the table")
    return c
