"""What a read-out is of: the features of one layer (edRVFL), or those of all layers so far (dRVFL)."""

from __future__ import annotations

from .._ridge.equations import Regression
from .._ridge.many import read_outs
from .._ridge.nested import NestedReadOuts
from .._ridge.solve import ReadOut
from .._seam.arrays import Array, empty_rows
from .records import Settings

READOUTS = ("layers", "joint")


class LayerReader:
    """Each layer has read-outs of its own, over D = [H, X, 1]."""

    def __init__(self, settings: Settings, stacked: bool) -> None:
        self._lam, self._stacked = settings.lam, stacked

    def features(self, D: Array) -> Array:
        """Return the features that the newest layer's read-outs are of."""
        return D

    def read_outs(self, problem: Regression, want_loo: bool) -> ReadOut:
        """Fit the read-outs of the newest layer."""
        return read_outs(problem, self._lam, self._stacked, want_loo)


class JointReader:
    """Each depth has read-outs over the first columns of A = [X, 1, H1, ..., HL], filled layer by layer.

    In this order of the columns the depths share their work.
    """

    def __init__(self, D: Array, settings: Settings) -> None:
        self._n, inputs = settings.n_hidden, D[..., settings.n_hidden :]
        self._width = inputs.shape[-1]
        self._A = empty_rows((*D.shape[:-1], self._width + settings.n_layers * self._n), like=D)
        self._A[..., : self._width] = inputs
        self._readouts = NestedReadOuts(settings.lam)

    def features(self, D: Array) -> Array:
        """Copy H of D = [H, X, 1] behind the layers before; return the columns that are filled."""
        before, self._width = self._width, self._width + self._n
        self._A[..., before : self._width] = D[..., : self._n]
        return self._A[..., : self._width]

    def read_outs(self, problem: Regression, want_loo: bool) -> ReadOut:
        """Fit the read-outs over the columns that are filled."""
        return self._readouts.add(problem, want_loo)
