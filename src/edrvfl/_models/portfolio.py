"""A fitted portfolio: voters whose answers become one."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated

from .._inputs.inputs import Inputs
from .._inputs.table import Columns
from .._loo.calibrate import Calibration
from .._loo.pool import averaged, pooled
from .._seam.arrays import Array, array_namespace, device, row_blocks
from .._seam.fields import Between, Labels, Long, floats
from .._seam.threads import suitable_threads
from .model import Record, Voter


@dataclass(frozen=True, slots=True, eq=False)
class Portfolio(Record):
    """Everything that decides the answer of a portfolio."""

    columns: Columns | None  # how a frame becomes numbers and codes
    classes: Annotated[Array, Labels("k")] | None  # as they came; None if it answers with values
    voters: Annotated[tuple[Voter, ...], Long("voters")]
    # of the voters; they add up to 1
    weights: Annotated[tuple[Annotated[float, Between(0, 1)], ...], Long("voters")]
    calibration: Calibration | None
    like: Annotated[Array, floats(0)]  # no rows; tells library, device and precision

    @property
    def n_outputs(self) -> int:
        """How many probabilities or values a row gets."""
        return self.voters[0].n_outputs

    def encodings(self) -> tuple[Inputs, ...]:
        """Return the encodings of the voters, each once: voters that see the same share the record."""
        return tuple({id(voter.inputs): voter.inputs for voter in self.voters}.values())

    def answer(self, X: Array) -> Array:
        """Return the probabilities or values (rows, k) of rows that were checked, block by block."""
        k, encodings = self.n_outputs, self.encodings()
        P = array_namespace(X).empty((X.shape[0], k), dtype=X.dtype, device=device(X))
        # the answers of all voters are held for a block of rows, and each encoding once
        held = X.shape[1] + sum(inputs.width for inputs in encodings) + (len(self.voters) + 6) * k
        # all rows decide about threads, not those of a block
        with suitable_threads(X, *max((voter.product for voter in self.voters), key=math.prod)):
            for rows in row_blocks(X, X.shape[0], held):
                block = X[rows, :]
                encoded = {id(inputs): inputs.apply(block) for inputs in encodings}
                answers = [voter.answer(block, encoded[id(voter.inputs)]) for voter in self.voters]
                pool = (averaged if self.classes is None else pooled)(answers, self.weights)
                P[rows, :] = pool if self.calibration is None else self.calibration(pool)
        return P
