"""What a fitted estimator can still do: the methods of all that remember what they were fitted from."""

from __future__ import annotations

from collections.abc import Sequence

import numpy

from .._afterwards.remembered import Solved, remember
from .._fitting.parts import Reading
from .._models.memory import Memory
from .explaining import Explains


class Remembers(Explains):
    """An estimator that can keep what its read-outs were solved from."""

    def _remembered(
        self, reading: Reading, voters: Sequence[Solved], P: numpy.ndarray | None
    ) -> Memory | None:
        """Return what the fit keeps beside the model. P are the leave-one-out answers, if there are any."""
        return None if self.remember is None else remember(self.remember, reading, voters, P)
