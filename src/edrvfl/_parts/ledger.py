"""All rows without their columns: what draws of single rows need, a few numbers for each row."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy

from .._inputs.held_back import HeldBack, hold_back
from .._inputs.order import row_hashes
from .._inputs.rows import Rows, to_host
from .._inputs.targets import Classes, Targets, joined_targets
from .._inputs.weights import RowWeights
from .._seam.arrays import Array, array_namespace, device, from_numpy
from .parts import Part, Parts
from .rows import PartedRows
from .sample import TakeByPart, deal, joined_rows


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """Targets, weights and hashes of a part's rows."""

    targets: Targets
    weights: RowWeights
    hashes: numpy.ndarray


def _enter(rows: Rows, _number: int) -> list[Entry]:
    return [Entry(rows.targets, rows.weights, row_hashes(to_host(rows.X)))]


class DistantMatrix:
    """Stands for the matrix X of all rows where they are in parts: gives single rows by a pass over them."""

    ndim = 2

    def __init__(self, parted: PartedRows) -> None:
        self._parted, self._like = parted, parted.reader.like
        self.shape = (sum(parted.part_sizes.values()), parted.reader.n_features)
        self.dtype, self.device = self._like.dtype, device(self._like)

    def __array_namespace__(self, **_: Any) -> Any:
        """Return the library of the rows."""
        return array_namespace(self._like)

    def take_rows(self, which: Array) -> Array:
        """Return the rows with these indices, in their order."""
        chosen, order = numpy.unique(to_host(which), return_inverse=True)
        places = deal(chosen, self._parted.part_sizes)
        X = joined_rows(self._parted.gather(TakeByPart(places))).X
        return array_namespace(X).take(X, from_numpy(order, X, array_namespace(X).int64), axis=0)


def ledger(parted: PartedRows) -> Rows:
    """Return all rows as a fit in memory knows them, but for X, whose rows are fetched when somebody asks.

    In memory is a hash, a target and the weights of each row.
    """
    entries: list[Entry] = parted.gather(_enter)
    targets = joined_targets([entry.targets for entry in entries])
    weights = RowWeights.joined([entry.weights for entry in entries])
    rows = Rows(DistantMatrix(parted), parted.classes, targets, weights)
    # fills the cached property, which would ask for all of X
    rows.__dict__["hashes"] = numpy.concatenate([entry.hashes for entry in entries])
    return rows


@dataclass(frozen=True, slots=True, eq=False)
class _WithoutHeld:
    """Give the rows that are held back the weight 0, and hand the part on."""

    function: Callable[[Part], Any]
    held: Mapping[int, Any]  # by part: indices among the rows that have a weight

    def __call__(self, part: Part) -> Any:
        weights = part.counts().copy()
        weights[numpy.flatnonzero(weights > 0)[self.held.get(part.number, [])]] = 0.0
        return self.function(replace(part, weight=weights))


@dataclass(frozen=True, slots=True, eq=False)
class FittedParts:
    """Parts without the rows that are held back from the fit."""

    parts: Parts
    held: Mapping[int, Any]

    @property
    def spill(self) -> Any:
        """Whether features are kept in files between passes."""
        return self.parts.spill

    @property
    def device(self) -> Any:
        """Where torch computes; None for NumPy."""
        return self.parts.device

    @property
    def threads(self) -> int:
        """How many parts are computed at once."""
        return self.parts.threads

    def total(self, function: Callable[[Part], Any], heard: Callable[[int], None] | None = None) -> Any:
        """Return the sum of function(part) over the parts."""
        return self.parts.total(_WithoutHeld(function, self.held), heard)


def hold_back_parted(parted: PartedRows, seed: int) -> tuple[FittedParts, HeldBack]:
    """Hold back the rows that a fit in memory would; return the parts without these rows, and the rows."""
    rows = ledger(parted)
    m, y = rows.X.shape[0], _as_it_came(rows.targets, rows.classes)
    _, held = hold_back(numpy.arange(m)[:, None], y, rows.weights.counts, seed, rows.classes is not None)
    indices = held.X[:, 0]
    fitted = FittedParts(parted.parts, deal(indices, parted.part_sizes))
    counts = None if held.counts is None else from_numpy(held.counts, parted.reader.like)
    return fitted, HeldBack(rows.X.take_rows(indices), held.y, counts, held.returned)


def _as_it_came(targets: Targets, classes: Array | None) -> numpy.ndarray:
    """Return the labels, or the values in the units of y."""
    if isinstance(targets, Classes):
        labels: numpy.ndarray = to_host(classes)[to_host(targets.codes)]
        return labels
    assert targets.mean is not None
    assert targets.sd is not None
    Y: numpy.ndarray = to_host(targets.Y).astype(float) * to_host(targets.sd) + to_host(targets.mean)
    return Y
