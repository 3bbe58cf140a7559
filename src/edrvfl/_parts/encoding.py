"""Learn how columns are encoded from rows that come in parts.

An encoding takes so many passes over the rows, whatever their number:

- columns of categories only: 1, which weighs the codes.
- "standard": 2, for extremes and gaps, and for moments.
- "robust" and "bins": 2 where no column has more than 1024 different values. Otherwise 3 or 4: the first,
  one or two that look for quantiles (see `quantiles.py`), and one for the moments of numbers and bins. A
  table of thousands of columns may take one more.

The first pass finds all that needs no earlier pass: extremes, gaps, weights, weights of codes, first cells.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy

from .._inputs.columns import Part
from .._inputs.encoding import EncoderSettings, learn_from_sums
from .._inputs.inputs import Inputs
from .._inputs.rows import Rows, weights_on_host
from .._inputs.sums import InOrder, Look, LookAt, Step
from .._inputs.targets import WeightSums
from .._seam.arrays import Array
from .parts import together
from .quantiles import Counted, first_count, in_order
from .rows import PartedRows


def _on_rows(step: Step, rows: Rows, _number: int) -> Any:
    """Make a sum of the matrix and the counts of a part's rows."""
    return step(rows.X, rows.weights.counts)


def _weigh(X: Array, counts: Array | None) -> WeightSums:
    """Sum the weights as they are in the precision of the fit."""
    return WeightSums.of(weights_on_host(counts, X.shape[0]))


@dataclass(eq=False)
class PartedSums:
    """Training rows in parts, as the learning of an encoding sees them."""

    parted: PartedRows
    ranked: tuple[int, ...]  # columns of which quantiles will be wanted
    max_values: int  # different values of these columns are wanted where there are up to so many
    _counted: Counted | None = None

    @property
    def like(self) -> Array:
        """An array in the precision, of the library and on the device of the rows."""
        return self.parted.reader.like

    def total(self, step: Step) -> Any:
        """Return the sum of what the step makes of the parts, by one pass over them."""
        return self.parted.total(partial(_on_rows, step))

    def look(self, coded: Sequence[int]) -> Look:
        """Take the first look."""
        steps: list[Step] = [LookAt(tuple(coded)), _weigh]
        if self.ranked:
            steps.append(first_count(self.ranked, self.max_values))
        look, weights, *counted = self.total(partial(together, steps)).values
        self._counted = counted[0] if counted else None
        found: Look = replace(look, one=weights.of_one)
        return found

    def in_order(
        self,
        look: Look,  # noqa: ARG002
        columns: Sequence[int],
        divisor: numpy.ndarray,
        shares: Sequence[float],
    ) -> Iterator[InOrder]:
        """Count until the quantiles of all columns are known."""
        assert self._counted is not None
        yield from in_order(self.total, self._counted, dict(zip(columns, divisor, strict=True)), shares)


def learn_parted_inputs(
    parted: PartedRows,
    settings: EncoderSettings | None,
    categorical: Sequence[bool] | None = None,
    parts: Sequence[Part] | None = None,
) -> Inputs:
    """Learn the encoding of the columns, as `learn_inputs` does from rows in memory."""
    d = parted.reader.n_features
    if settings is None or d == 0:
        return Inputs(d, tuple(range(d)), ("",) * d)
    ranked: tuple[int, ...] = ()
    if settings.numbers != "standard":
        ranked = tuple(j for j in range(d) if categorical is None or not categorical[j])
    parts = [Part(j, j) for j in range(d)] if parts is None else parts
    return learn_from_sums(PartedSums(parted, ranked, settings.max_values), settings, categorical, parts)
