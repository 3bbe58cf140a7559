"""How a part becomes rows of a fit: checked, coded and weighed alike in every part."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import Any

import numpy

from .._inputs.rows import Rows, as_matrix, standard_values, to_host
from .._inputs.table import Columns, learn_table, open_table, read_table
from .._inputs.targets import Classes
from .._inputs.weights import RowWeights
from .._seam.arrays import Array, array_namespace, from_numpy
from .parts import Part
from .scales import ValueScale
from .survey import Survey


@dataclass(frozen=True, slots=True, eq=False)
class Reader:
    """How a part becomes rows of a fit, after all parts were surveyed."""

    columns: Columns | None
    named: tuple[str, ...] | None
    n_features: int
    like: Array  # an array in the precision, of the library and on the device of the fit
    classes: numpy.ndarray | None  # (k,), that are fitted; None for values
    costs: numpy.ndarray | None  # (k,), class weights
    scale: ValueScale | None
    weighted: bool  # whether rows have sample weights

    @classmethod
    def of(cls, survey: Survey, like: Array) -> Reader:
        """Return the reader of the parts that were surveyed, without class weights."""
        return cls(
            columns=survey.columns,
            named=survey.named,
            n_features=survey.n_features,
            like=like,
            classes=survey.labels,
            costs=None,
            scale=survey.scale,
            weighted=survey.weights.given,
        )

    def __call__(self, part: Part) -> tuple[Rows | None, tuple[int, int]]:
        """Return the rows that have a weight, None if there are none, and what tells whether they change."""
        if part.n_rows == 0:
            return None, (0, 0)
        X, y = self._matrix(part.X), self._targets(part.y)
        if not len(X) == len(y) == part.n_rows:
            raise ValueError(f"X has {len(X)} rows, but y has {len(y)}.")
        counts = part.counts()
        kept = counts > 0
        if self.classes is not None:
            codes = numpy.minimum(numpy.searchsorted(self.classes, y), len(self.classes) - 1)
            kept &= self.classes[codes] == y  # a class of weight 0 is not fitted
            y = codes
        if not kept.all():
            X, y, counts = X[kept], y[kept], counts[kept]
        mark = (len(X), checksum(X, y, counts))
        return (self._rows(X, y, counts) if len(X) else None), mark

    def _matrix(self, X: Any) -> numpy.ndarray:
        dtype = to_host(self.like).dtype
        table = open_table(X, dtype)
        if table.shape[1] != self.n_features or table.named != self.named:
            raise ValueError("Its columns are not those of the first pass.")
        if self.columns is None:
            matrix = learn_table(table, None)[0]  # which refuses text
            if not numpy.isfinite(matrix).all():
                raise ValueError("X holds values that are missing.")
            return numpy.asarray(matrix)
        return numpy.asarray(read_table(table, self.columns))

    def _targets(self, y: Any) -> numpy.ndarray:
        """Return labels (rows,) or values (rows, k)."""
        y = numpy.asarray(y)
        return as_matrix(y).astype(float) if self.classes is None else y.reshape(-1)

    def one_row(self, scale: ValueScale) -> Rows:
        """Return a row whose values are a standard deviation above their means."""
        values = (scale.mean + scale.sd) * scale.unit
        return self._rows(numpy.zeros((1, self.n_features)), values[None, :], numpy.ones(1))

    def _rows(self, X: numpy.ndarray, y: numpy.ndarray, counts: numpy.ndarray) -> Rows:
        like, xp = self.like, array_namespace(self.like)
        if not isinstance(like, numpy.ndarray):
            # torch warns of memory that it may not write, such as Arrow's
            X, counts = (values if values.flags.writeable else values.copy() for values in (X, counts))
        matrix = from_numpy(X, like)
        own = from_numpy(counts, like) if self.weighted else None
        if self.scale is not None:
            scale = self.scale
            Y = from_numpy(y / scale.unit, like, xp.float64)
            of_scale = (scale.unit, scale.mean, scale.sd)
            unit, mean, sd = (from_numpy(its, like, xp.float64) for its in of_scale)
            return Rows(matrix, None, standard_values(Y, unit, mean, sd, like.dtype), RowWeights(own))
        assert self.classes is not None
        targets = Classes(from_numpy(y, like, xp.int64), len(self.classes), like[:0])
        costs = None if self.costs is None else from_numpy(self.costs[y], like)
        return Rows(matrix, self.classes, targets, RowWeights(own, costs))


def checksum(*arrays: numpy.ndarray) -> int:
    """Return a checksum that sees changed, and swapped, values and rows.

    CRC-32 takes 4 GB/s. Sums of words times random numbers take 10 GB/s, but in columns of small whole
    numbers they miss one of 2000 swaps: only the few highest bits of these differ.
    """
    check = 0
    for array in arrays:
        # in the order of memory, for a copy in another order would take three times as long
        array = array.T if array.flags.f_contiguous else numpy.ascontiguousarray(array)
        check = zlib.crc32(array.data, check)
    return check
