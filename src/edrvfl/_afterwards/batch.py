"""Rows that come to a fitted model, or go."""

from __future__ import annotations

from dataclasses import dataclass

import numpy

from .._inputs.targets import Targets
from .._models.memory import RowsMemory
from .._seam.arrays import Array


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Rows that come or go, with their targets and weights, and all rows that there are afterwards."""

    X: Array  # (b, d) numbers and codes, beside the model
    targets: Targets  # standardised as in the fit
    base: numpy.ndarray  # (b,), sample weights times class weights
    rows: RowsMemory  # afterwards
    places: numpy.ndarray  # (b,), where the rows are among all rows: before they go, or after they came
    goes: bool

    @property
    def sign(self) -> float:
        """What their sums are multiplied by."""
        return -1.0 if self.goes else 1.0

    @property
    def stays(self) -> numpy.ndarray:
        """The places of the rows that stay, where some go."""
        return numpy.delete(numpy.arange(self.rows.n_rows + len(self.places)), self.places)
