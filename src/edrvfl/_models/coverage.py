"""What prediction intervals or sets need beside the answers of a model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from .._loo.coverage import Margins, OwnProbabilities
from .._seam.fields import Between, OneOf
from .model import Record
from .network import Network


@dataclass(frozen=True, slots=True, eq=False)
class Coverage(Record):
    """How far answers may be off, as rows say that the model did not see."""

    source: Annotated[str, OneOf(("loo", "split"))]
    n_rows: Annotated[int, Between(side="rows")]  # how many rows said how far answers are off
    record: OwnProbabilities | Margins  # of classes, or of values
    spread: Network | None = None  # gives the logarithm of the spread, where the widths of intervals vary
