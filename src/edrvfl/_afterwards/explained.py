"""A model beside what its fit remembers: answers, and answers without a row."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy
from scipy.special import softmax

from .._inputs.rows import to_host
from .._loo.follow import combine
from .._loo.pool import averaged, pooled
from .._models.memory import Memory, RowsMemory
from .._models.network import Network
from .._models.portfolio import Portfolio
from .._seam.arrays import converted, ignore_overflow
from .._seam.threads import suitable_threads
from .readouts import Known, ReadOuts, read_outs_of


@dataclass(frozen=True, eq=False)
class Explained:
    """A fitted model in NumPy, and what its read-outs know of the training rows."""

    model: Any
    rows: RowsMemory
    known: Known
    voters: tuple[Any, ...]
    read_outs: tuple[ReadOuts, ...]

    @classmethod
    def of(cls, model: Any, memory: Memory) -> Explained:
        """Bring a model to NumPy, and prepare its read-outs."""
        model, known = converted(model, to_host), Known.of(memory)
        voters = model.voters if isinstance(model, Portfolio) else (model,)
        found = tuple(read_outs_of(voter, memory, i, known) for i, voter in enumerate(voters))
        return cls(model, memory.rows, known, voters, found)

    @property
    def categorical(self) -> numpy.ndarray:
        """Which columns of the coded matrix hold codes of categories."""
        columns = self.model.columns
        d = self.known.came.shape[1]
        return numpy.zeros(d, dtype=bool) if columns is None else numpy.array(columns.coded)

    @contextmanager
    def computing(self) -> Iterator[None]:
        """Compute: features may overflow, which answers refuse, and small problems have one thread."""
        largest = max((voter.product for voter in self.voters), key=math.prod)
        with ignore_overflow(), suitable_threads(self.known.came, *largest):
            yield

    def answers(self, scores: list[numpy.ndarray]) -> numpy.ndarray:
        """Return what users get (rows, k) for the scores (read-outs, rows, k) of each voter."""
        values = self.model.classes is None
        P = [_answer(voter, own) for voter, own in zip(self.voters, scores, strict=True)]
        if not isinstance(self.model, Portfolio):
            return P[0]
        pool = (averaged if values else pooled)(P, self.model.weights)
        return pool if self.model.calibration is None else self.model.calibration(pool)


def _answer(voter: Any, scores: numpy.ndarray) -> numpy.ndarray:
    """Return the probabilities or values (rows, k) of one voter."""
    if isinstance(voter, Network):
        P = combine(iter([scores]), voter.rule, (1.0,) if voter.joint else voter.votes)
        calibration = voter.calibrations[-1]
    else:
        P = scores[0] if voter.classes is None else softmax(scores[0], axis=-1)
        calibration = voter.calibration
    return P if calibration is None else calibration(P)
