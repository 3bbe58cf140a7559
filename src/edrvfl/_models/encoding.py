"""A fitted encoder: what TabularEncoder keeps."""

from __future__ import annotations

from dataclasses import dataclass

from .._inputs.inputs import Inputs
from .._inputs.table import Columns
from .._seam.arrays import Array
from .model import Record


@dataclass(frozen=True, slots=True, eq=False)
class Encoding(Record):
    """Everything that decides how rows are encoded."""

    columns: Columns
    inputs: Inputs
    like: Array  # no rows; tells library, device and precision

    @property
    def n_outputs(self) -> int:
        """How many encoded columns there are."""
        return self.inputs.width
