"""Whether a column of a user's table holds classes or amounts."""

from __future__ import annotations

import numpy as np

FEW = 10  # so many different whole numbers are classes, more are values, unless the user says


def are_whole(numbers: np.ndarray) -> bool:
    """Tell whether numbers are whole ones that floats can tell apart."""
    return bool((numbers == np.round(numbers)).all() and np.abs(numbers).max() < 2**53)


def are_classes(values: np.ndarray) -> bool:
    """Tell whether values are classes: texts, truth values, or a few different whole numbers.

    >>> are_classes(np.array(["no", "yes"])), are_classes(np.array([0, 1])), are_classes(np.array([0.5, 1]))
    (True, True, False)
    """
    if values.dtype.kind not in "iuf":
        return True
    return are_whole(values.astype(np.float64)) and len(np.unique(values)) <= FEW
