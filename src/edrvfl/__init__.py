"""Ensemble deep random vector functional link networks for tabular data."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from ._version import __version__ as __version__

if TYPE_CHECKING:
    from ._doors.classifier import EDRVFLClassifier as EDRVFLClassifier
    from ._doors.encoder import TabularEncoder as TabularEncoder
    from ._doors.files import TRUSTED_TYPES as TRUSTED_TYPES
    from ._doors.files import load as load
    from ._doors.files import register_onnx_converters as register_onnx_converters
    from ._doors.kernel import KernelRidgeClassifier as KernelRidgeClassifier
    from ._doors.kernel import KernelRidgeRegressor as KernelRidgeRegressor
    from ._doors.portfolio import EDRVFLPortfolioClassifier as EDRVFLPortfolioClassifier
    from ._doors.portfolio import EDRVFLPortfolioRegressor as EDRVFLPortfolioRegressor
    from ._doors.regressor import EDRVFLRegressor as EDRVFLRegressor
    from ._doors.search import EDRVFLSearchCV as EDRVFLSearchCV
    from ._doors.variants import variant as variant
    from ._leaving.moving import to_numpy as to_numpy
    from ._leaving.onnx.export import to_onnx as to_onnx
    from ._looking.depth import DepthDisplay as DepthDisplay
    from ._looking.doubtful_rows_display import DoubtfulRowsDisplay as DoubtfulRowsDisplay
    from ._looking.importance import feature_importance as feature_importance
    from ._looking.importance_display import ImportanceDisplay as ImportanceDisplay
    from ._looking.influence_display import InfluenceDisplay as InfluenceDisplay
    from ._looking.members import MembersDisplay as MembersDisplay
    from ._looking.reliability import ReliabilityDisplay as ReliabilityDisplay
    from ._looking.search import SearchDisplay as SearchDisplay
    from ._parts.source import RowBlocks as RowBlocks
    from ._search.space import paper_configurations as paper_configurations
    from .bench.beside import compare as compare

_MODULES = {
    "DepthDisplay": "_looking.depth",
    "DoubtfulRowsDisplay": "_looking.doubtful_rows_display",
    "EDRVFLClassifier": "_doors.classifier",
    "EDRVFLPortfolioClassifier": "_doors.portfolio",
    "EDRVFLPortfolioRegressor": "_doors.portfolio",
    "EDRVFLRegressor": "_doors.regressor",
    "EDRVFLSearchCV": "_doors.search",
    "ImportanceDisplay": "_looking.importance_display",
    "InfluenceDisplay": "_looking.influence_display",
    "KernelRidgeClassifier": "_doors.kernel",
    "KernelRidgeRegressor": "_doors.kernel",
    "MembersDisplay": "_looking.members",
    "ReliabilityDisplay": "_looking.reliability",
    "RowBlocks": "_parts.source",
    "SearchDisplay": "_looking.search",
    "TRUSTED_TYPES": "_doors.files",
    "TabularEncoder": "_doors.encoder",
    "compare": "bench.beside",
    "feature_importance": "_looking.importance",
    "load": "_doors.files",
    "paper_configurations": "_search.space",
    "register_onnx_converters": "_doors.files",
    "to_numpy": "_leaving.moving",
    "to_onnx": "_leaving.onnx.export",
    "variant": "_doors.variants",
}
__all__ = [*_MODULES]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: `edrvfl --version` need not wait for scikit-learn."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f".{_MODULES[name]}", __name__), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
