"""What is known about the columns of parts, taken together."""

from __future__ import annotations

import numpy

from .._inputs.table import Columns


def merge_columns(a: Columns, b: Columns) -> Columns:
    """Return the categories of both."""
    categories = [
        None if one is None or other is None else numpy.unique(numpy.concatenate([one, other]))
        for one, other in zip(a.categories, b.categories, strict=True)
    ]
    return Columns(tuple(c is not None for c in categories), tuple(categories), a.names)
