"""The only file that imports private scikit-learn names, so that a release can break one file."""

from __future__ import annotations

from sklearn.base import _fit_context
from sklearn.utils._array_api import (
    _convert_to_numpy,
    _estimator_with_converted_arrays,
    check_same_namespace,
    get_namespace,
    get_namespace_and_device,
    move_to,
    supported_float_dtypes,
)
from sklearn.utils._metadata_requests import _routing_enabled
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import _check_sample_weight

__all__ = [
    "Interval",
    "StrOptions",
    "_check_sample_weight",
    "_convert_to_numpy",
    "_estimator_with_converted_arrays",
    "_fit_context",
    "_routing_enabled",
    "check_same_namespace",
    "get_namespace",
    "get_namespace_and_device",
    "move_to",
    "supported_float_dtypes",
]
