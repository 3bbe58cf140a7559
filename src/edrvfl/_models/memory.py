"""What a fit kept beside the model, so that the model can change and explain itself afterwards.

All of it is in NumPy, whatever library the model is in, and sums are in float64, whatever precision it has.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy

from .._inputs.targets import Classes, Targets, Values
from .._seam.arrays import Array, array_namespace, from_numpy
from .._seam.fields import Between, Long, OneOf, floats
from .model import Record

KEEPS = ("sums", "rows")  # what a fit may be asked to remember


@dataclass(frozen=True, slots=True, eq=False)
class Sums:
    """The normal equations of a read-out over all rows: D'WD and D'WY, without a penalty."""

    G: Annotated[numpy.ndarray, floats("", "", own=True)]  # (c, c)
    R: Annotated[numpy.ndarray, floats("", "k", own=True)]  # (c, k), of standardised values


@dataclass(frozen=True, slots=True, eq=False)
class Judge:
    """How rows of a layer are weighed by the read-out of the layer before, as it was fitted (Eq. 12-14)."""

    beta: Annotated[numpy.ndarray, floats("", "k", own=True)]  # of standardised values
    bound: float  # a row is right if its loss is not above this
    right: float  # how much it weighs then
    wrong: float  # and else


@dataclass(frozen=True, slots=True, eq=False)
class NetworkMemory:
    """What the read-outs of a network were solved from."""

    # of each layer; of a joint network those of the last one, whose first columns are the others'
    sums: tuple[Sums, ...]
    lams: Annotated[tuple[Annotated[float, Between(0, 1e300)], ...], Long("layers")]  # the penalties
    # who weighs the rows of each layer; None where they weigh the same
    judges: Annotated[tuple[Judge | None, ...], Long("layers")]
    right: numpy.ndarray  # (layers, rows) of bool, which rows the layer before got right

    def omega(self, l: int) -> numpy.ndarray | float:
        """Return the weights (rows,) that rows have in layer l beside their own (Eq. 14)."""
        judge = self.judges[l]
        return 1.0 if judge is None else numpy.where(self.right[l], judge.right, judge.wrong)

    def prefix(self, depth: int, width: int) -> NetworkMemory:
        """Return what the first layers were solved from; the last of their read-outs has so many rows."""
        sums = self.sums[:depth]
        if len(self.sums) < len(self.lams):  # joint
            whole = self.sums[-1]
            sums = (Sums(whole.G[:width, :width].copy(), whole.R[:width].copy()),)
        return NetworkMemory(sums, self.lams[:depth], self.judges[:depth], self.right[:depth])


@dataclass(frozen=True, slots=True, eq=False)
class KernelMemory:
    """How the system of a kernel voter was solved."""

    solver: Annotated[str, OneOf(("exact", "parts", "iterated", "landmarks"))]
    lams: Annotated[
        tuple[Annotated[float, Between(0, 1e300)], ...], Long("parts")
    ]  # the penalty of each part
    sizes: Annotated[tuple[Annotated[int, Between()], ...], Long("parts")]  # its landmarks
    part: numpy.ndarray  # (rows,) of int64, the part that each row is in; -1 for rows without a coefficient
    # (rows,), how often each row counts there: its sample weight, or that of all rows it was drawn for
    counts: Annotated[numpy.ndarray, floats("rows", own=True)]


VoterMemory = NetworkMemory | KernelMemory


@dataclass(frozen=True, slots=True, eq=False)
class RowsMemory:
    """The rows as they came, copies too, but for rows of weight 0: those of the fit first.

    Of a fit that read rows block by block there are none.
    """

    keys: numpy.ndarray  # (m,) of uint64, which rows of the same columns and target share
    ids: numpy.ndarray  # (m,), the names of rows: numbers, or texts
    counts: Annotated[numpy.ndarray, floats("rows", own=True)]  # (m,), their sample weights
    # (came, 2), of the rows that came later, the last ones of all: the loss of what the model foretold before
    # it saw them, and how much each counts
    losses: Annotated[numpy.ndarray, floats("came", 2, own=True)]
    # (m, d) numbers and codes, in the precision of the fit; may hold NaN. None where sums are kept alone
    X: numpy.ndarray | None = None
    y: numpy.ndarray | None = None  # (m,) places among the classes, or (m, k) values as they came
    # (m, k), what leave-one-out answered each row in the fit, in the units of y; NaN for rows that were not
    # judged. None where nobody was, and where sums are kept alone
    answers: numpy.ndarray | None = None

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return len(self.keys)

    def some(self, which: numpy.ndarray) -> RowsMemory:
        """Return the rows with these places, which are in order."""
        first = self.n_rows - len(self.losses)
        losses = self.losses[which[which >= first] - first]
        large = (None if values is None else values[which] for values in (self.X, self.y, self.answers))
        return RowsMemory(self.keys[which], self.ids[which], self.counts[which], losses, *large)


@dataclass(frozen=True, slots=True, eq=False)
class Memory(Record):
    """What a fit kept beside the model."""

    voters: tuple[VoterMemory, ...]  # of the model itself, or of each voter of a portfolio
    rows: RowsMemory
    n_outputs: Annotated[int, Between(side="k")]
    # (k,), the class weights; None for ones, and for values
    costs: Annotated[numpy.ndarray, floats("k", own=True)] | None
    # (k,), the mean and the standard deviation by which values were standardised; None for classes
    mean: Annotated[numpy.ndarray, floats("k", own=True)] | None
    sd: Annotated[numpy.ndarray, floats("k", own=True)] | None
    # the leave-one-out loss of the fit: log-loss, or squared error of standardised values. None if unknown
    loss: float | None
    number: Annotated[int, Between()] = 0  # the name of the next row that has none
    elsewhere: Annotated[int, Between()] = 0  # rows of the fit that are not in `rows`, read block by block
    came: Annotated[int, Between()] = 0  # how many rows came since the fit
    went: Annotated[int, Between()] = 0  # and went

    stays_in_numpy: ClassVar = True

    def targets(self, y: numpy.ndarray, like: Array) -> Targets:
        """Return codes of classes, or values as they came, as the targets of a fit, beside `like`."""
        xp = array_namespace(like)
        if self.mean is None or self.sd is None:
            return Classes(from_numpy(y, like, xp.int64), self.n_outputs, from_numpy([], like))
        Y = from_numpy((y - self.mean) / self.sd, like)
        return Values(Y, from_numpy(self.mean, like), from_numpy(self.sd, like))

    def weights(self, y: numpy.ndarray, counts: numpy.ndarray) -> numpy.ndarray:
        """Return the factors of rows' squared errors: their sample weights times those of their classes."""
        return counts if self.costs is None else counts * self.costs[y]
