"""Ensemble deep random vector functional link networks for tabular data."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from ._version import __version__ as __version__

if TYPE_CHECKING:
    from ._classifier import EDRVFLClassifier
    from ._display.depth import DepthDisplay
    from ._display.importance import ImportanceDisplay
    from ._display.members import MembersDisplay
    from ._display.reliability import ReliabilityDisplay
    from ._display.search import SearchDisplay
    from ._encoder import TabularEncoder
    from ._files.models import TRUSTED_TYPES, load
    from ._importance import feature_importance
    from ._laplace import LaplaceRidgeClassifier, LaplaceRidgeRegressor
    from ._onnx.converters import register_onnx_converters
    from ._onnx.export import to_onnx
    from ._portfolio import EDRVFLPortfolioClassifier, EDRVFLPortfolioRegressor
    from ._regressor import EDRVFLRegressor
    from ._search.space import paper_configurations
    from ._search_cv import EDRVFLSearchCV
    from ._shell import to_numpy
    from ._stream.source import RowBlocks
    from ._variants import variant

__all__ = [
    "TRUSTED_TYPES",
    "DepthDisplay",
    "EDRVFLClassifier",
    "EDRVFLPortfolioClassifier",
    "EDRVFLPortfolioRegressor",
    "EDRVFLRegressor",
    "EDRVFLSearchCV",
    "ImportanceDisplay",
    "LaplaceRidgeClassifier",
    "LaplaceRidgeRegressor",
    "MembersDisplay",
    "ReliabilityDisplay",
    "RowBlocks",
    "SearchDisplay",
    "TabularEncoder",
    "feature_importance",
    "load",
    "paper_configurations",
    "register_onnx_converters",
    "to_numpy",
    "to_onnx",
    "variant",
]

_MODULES = {
    "DepthDisplay": "_display.depth",
    "EDRVFLClassifier": "_classifier",
    "EDRVFLPortfolioClassifier": "_portfolio",
    "EDRVFLPortfolioRegressor": "_portfolio",
    "EDRVFLRegressor": "_regressor",
    "EDRVFLSearchCV": "_search_cv",
    "ImportanceDisplay": "_display.importance",
    "LaplaceRidgeClassifier": "_laplace",
    "LaplaceRidgeRegressor": "_laplace",
    "MembersDisplay": "_display.members",
    "ReliabilityDisplay": "_display.reliability",
    "RowBlocks": "_stream.source",
    "SearchDisplay": "_display.search",
    "TRUSTED_TYPES": "_files.models",
    "TabularEncoder": "_encoder",
    "feature_importance": "_importance",
    "load": "_files.models",
    "paper_configurations": "_search.space",
    "register_onnx_converters": "_onnx.converters",
    "to_numpy": "_shell",
    "to_onnx": "_onnx.export",
    "variant": "_variants",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: `edrvfl --version` need not wait for scikit-learn."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f".{_MODULES[name]}", __name__), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
