"""Ensemble deep random vector functional link networks for tabular data."""

from ._classifier import EDRVFLClassifier, to_numpy, variant

__all__ = ["EDRVFLClassifier", "to_numpy", "variant"]
__version__ = "0.1.0"
