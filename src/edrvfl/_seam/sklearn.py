"""The only file that imports private scikit-learn names, so that a release of theirs can break one file."""

from __future__ import annotations

from numbers import Integral
from typing import Any

from sklearn.base import _fit_context as _fit_context
from sklearn.utils import _safe_indexing as _safe_indexing
from sklearn.utils._array_api import _convert_to_numpy as _convert_to_numpy
from sklearn.utils._array_api import _estimator_with_converted_arrays as _estimator_with_converted_arrays
from sklearn.utils._array_api import check_same_namespace as check_same_namespace
from sklearn.utils._array_api import get_namespace as get_namespace
from sklearn.utils._array_api import get_namespace_and_device as get_namespace_and_device
from sklearn.utils._array_api import move_to as move_to
from sklearn.utils._array_api import supported_float_dtypes as supported_float_dtypes
from sklearn.utils._metadata_requests import _routing_enabled as _routing_enabled
from sklearn.utils._param_validation import Interval as Interval
from sklearn.utils._param_validation import StrOptions as StrOptions
from sklearn.utils.validation import _check_feature_names_in as _check_feature_names_in
from sklearn.utils.validation import _check_sample_weight as _check_sample_weight

# scikit-learn keeps the state of callbacks in attributes with these beginnings.
CALLBACK_ATTRIBUTES = ("_callback", "_skl")


class Pair(Interval):
    """Pairs (low, high) of numbers within an interval, low <= high."""

    def is_satisfied_by(self, val: Any) -> bool:
        """Tell whether the value fits."""
        if not (isinstance(val, (tuple, list)) and len(val) == 2):
            return False
        return all(super(Pair, self).is_satisfied_by(end) for end in val) and bool(val[0] <= val[1])

    def __str__(self) -> str:
        return f"a pair (low, high) with low <= high, each of them {super().__str__()}"


class Count(Interval):
    """Whole numbers from `least` on. Python counts True as a whole number, this constraint does not."""

    def __init__(self, least: int) -> None:
        super().__init__(Integral, least, None, closed="left")

    def is_satisfied_by(self, val: Any) -> bool:
        """Tell whether the value fits."""
        # n_layers=True is more likely a mistake than one layer
        return not isinstance(val, bool) and bool(super().is_satisfied_by(val))
