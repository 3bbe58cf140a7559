"""SNN, MSRAinit, Highway and ResNet: networks trained by gradient descent with PyTorch, the extra `fnn`.

Klambauer et al., "Self-Normalizing Neural Networks" (2017), compared these four on the UCI datasets, and the
paper of WPedRVFL quotes their columns.
"""

from .classifier import FNNClassifier
from .grids import configurations

__all__ = ["FNNClassifier", "configurations"]
