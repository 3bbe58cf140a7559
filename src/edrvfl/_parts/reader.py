"""How a part becomes rows of a fit: checked, coded and weighed alike in every part."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy

from .._inputs.moments import ValueScale
from .._inputs.rows import Rows, as_matrix, standard_values, to_host
from .._inputs.table import Columns, learn_table, open_table, read_table
from .._inputs.targets import Classes, RowWeights
from .._seam.arrays import Array, array_namespace, converted, from_numpy
from .parts import Part
from .survey import Survey


@dataclass(frozen=True, slots=True, eq=False)
class Reader:
    """How a part becomes rows of a fit, after all parts were surveyed."""

    columns: Columns | None
    n_features: int  # of the coded matrix
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
            n_features=survey.n_features if survey.columns is None else survey.columns.width,
            like=like,
            classes=survey.labels,
            costs=None,
            scale=survey.scale,
            weighted=survey.weighted,
        )

    def __call__(self, part: Part) -> Rows | None:
        """Return the rows that have a weight; None if there are none."""
        if part.n_rows == 0:
            return None
        X, y, counts = self._matrix(part.X), self._targets(part.y), part.counts()
        kept = counts > 0
        if self.classes is not None:
            codes = numpy.minimum(numpy.searchsorted(self.classes, y), len(self.classes) - 1)
            kept &= self.classes[codes] == y  # a class of weight 0 is not fitted
            y = codes
        if not kept.all():
            X, y, counts = X[kept], y[kept], counts[kept]
        return self._rows(X, y, counts) if len(X) else None

    def _matrix(self, X: Any) -> numpy.ndarray:
        table = open_table(X, to_host(self.like).dtype)
        matrix = learn_table(table, None)[0] if self.columns is None else read_table(table, self.columns)
        return numpy.asarray(matrix)

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
            Y = from_numpy(y, like, xp.float64)
            scale = converted(self.scale, lambda of_all: from_numpy(of_all, like, xp.float64))
            return Rows(matrix, None, standard_values(Y, scale, like.dtype), RowWeights(own))
        assert self.classes is not None
        targets = Classes(from_numpy(y, like, xp.int64), len(self.classes), like[:0])
        costs = None if self.costs is None else from_numpy(self.costs[y], like)
        return Rows(matrix, self.classes, targets, RowWeights(own, costs))
