"""A fitted encoder: what TabularEncoder keeps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from .._inputs.inputs import Inputs
from .._inputs.table import Columns
from .._seam.arrays import Array
from .._seam.fields import floats
from .model import Record


@dataclass(frozen=True, slots=True, eq=False)
class Encoding(Record):
    """Everything that decides how rows are encoded."""

    columns: Columns
    inputs: Inputs
    like: Annotated[Array, floats(0, "d")]  # no rows; tells library, device and precision

    @property
    def classes(self) -> None:
        """An encoder answers with encoded columns, not with classes."""

    @property
    def n_outputs(self) -> int:
        """How many encoded columns there are."""
        return self.inputs.width

    def encodings(self) -> tuple[Inputs, ...]:
        """Return the only encoding."""
        return (self.inputs,)

    def answer(self, X: Array) -> Array:
        """Return the encoded columns of rows that were checked."""
        return self.inputs.apply(X)
