"""Ensemble deep random vector functional link networks for tabular data."""

from ._classifier import EDRVFLClassifier, to_numpy, variant
from ._search import EDRVFLClassifierCV, draw_configurations

__all__ = ["EDRVFLClassifier", "EDRVFLClassifierCV", "draw_configurations", "to_numpy", "variant"]
__version__ = "0.1.0"
