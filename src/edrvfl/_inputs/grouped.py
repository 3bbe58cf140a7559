"""Groups of rows that leave-one-out leaves out together: what a fit says of them before it begins."""

from __future__ import annotations

import warnings
from typing import Any

import narwhals.stable.v2 as narwhals
import numpy
from array_api_compat import is_array_api_obj

from .rows import Rows, to_host
from .targets import Classes
from .values import is_missing


def read_groups(groups: Any, n_rows: int) -> numpy.ndarray | None:
    """Number the groups as they first come, and return the number of each row's group."""
    if groups is None:
        return None
    series = narwhals.from_native(groups, pass_through=True, allow_series=True, series_only=False)
    if isinstance(series, narwhals.Series):
        values = series.to_list()
    else:
        masked = isinstance(groups, numpy.ma.MaskedArray)  # its list has None where it is masked
        given = to_host(groups) if is_array_api_obj(groups) and not masked else groups
        shape = numpy.shape(given)
        if len(shape) != 1:
            raise ValueError(
                f"groups must hold one value for each row, in one dimension, but its shape is {shape}. "
                "Give an array, a list or a column of a frame."
            )
        values = given.tolist() if isinstance(given, numpy.ndarray) else list(given)
    if len(values) != n_rows:
        raise ValueError(
            f"groups must hold one value for each row, but it has {len(values)} values and X has "
            f"{n_rows} rows."
        )
    missing = [i for i, value in enumerate(values) if is_missing(value)]
    if missing:
        raise ValueError(
            f"groups has a missing value in row {missing[0]}. Say which group the row is in: a row that "
            "belongs to no other is a group of its own."
        )
    known: dict[Any, int] = {}
    try:
        return numpy.array([known.setdefault(value, len(known)) for value in values])
    except TypeError as error:  # lists and records have no hash
        raise TypeError(
            f"groups must hold numbers, text or other values that do not change, but there is an {error}. "
            "Give a number or a text for each group."
        ) from error


def refuse_one_group(rows: Rows, who: str) -> None:
    """Refuse groups that are one: without it there is nothing to learn from."""
    if rows.groups is not None and (rows.groups == rows.groups[0]).all():
        raise ValueError(
            f"{who} leaves out one group after another, but all rows to fit that have weight are in one "
            "group. Give groups at least two different values, or fit without groups."
        )


def warn_of_single_groups(rows: Rows) -> None:
    """Warn of classes whose rows are all in one group: no model that did not see it knows them."""
    if rows.groups is None or not isinstance(rows.targets, Classes):
        return
    k = rows.targets.width
    pairs = numpy.unique(rows.groups * k + to_host(rows.targets.codes))
    alone = numpy.flatnonzero(numpy.bincount(pairs % k, minlength=k) == 1)
    if len(alone):
        names = ", ".join(repr(label) for label in to_host(rows.classes)[alone[:5]].tolist())
        warnings.warn(
            f"{len(alone)} of {k} classes are in one group only ({names}"
            f"{', ...' if len(alone) > 5 else ''}). Without the group no model knows the class: its "
            "rows do not calibrate, and count as rows outside their prediction sets.",
            UserWarning,
            stacklevel=2,
        )
