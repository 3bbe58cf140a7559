"""Exact weighted quantiles of columns whose rows come in parts, by counting.

Floats in order are unsigned integers in order, their keys. A first pass weighs, for each column, the leading
bits of its keys, or the keys themselves where there are few different ones. Every quantile then lies in a
known cell. Further passes weigh what is in these cells alone, until each holds few different keys, so each
quantile is one of the values, as if all were sorted.

The memory is that of the cells and does not depend on the rows: in the first pass at most 2^18 for each
column (a column that spans three powers of ten fills about 10 x 2^6), in later ones at most 2^21 in all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy

from .._inputs.moments import Moments
from .._inputs.ranked import SLACK
from .._inputs.rows import to_host
from .._inputs.sums import Step, observed
from .._seam.arrays import Array
from .parts import together

FIRST_BITS = 18  # sign, exponent and six bits of the fraction of a float64
FEW = 1024  # so many different values of a column are counted one by one in the first pass
MIX = 0x9E3779B97F4A7C15  # 2^64 over the golden ratio
CELLS = 2**21  # in a later pass, of all columns


def keys_of(values: numpy.ndarray) -> numpy.ndarray:
    """Return unsigned integers in the order of the floats; 0.0 and -0.0 are the same."""
    kind = numpy.dtype(f"u{values.itemsize}")
    bits = (values + values.dtype.type(0)).view(kind)  # the sum of -0.0 and 0.0 is 0.0
    last = 8 * values.itemsize - 1
    # all bits of a negative number change, of others only that of the sign
    changes = (bits.view(f"i{values.itemsize}") >> last).view(kind)
    changes |= kind.type(1 << last)
    return numpy.bitwise_xor(bits, changes, out=bits)


def values_of(keys: numpy.ndarray) -> numpy.ndarray:
    """Return the floats that have these keys."""
    sign = keys.dtype.type(1 << (8 * keys.itemsize - 1))
    return numpy.where(keys & sign, keys ^ sign, ~keys).view(f"f{keys.itemsize}")


def _n_distinct(keys: numpy.ndarray) -> int:
    """Count different keys."""
    keys = numpy.sort(keys)
    return 1 + int(numpy.count_nonzero(keys[1:] != keys[:-1]))


def _weigh_all(keys: numpy.ndarray, counts: numpy.ndarray | None) -> tuple[numpy.ndarray, numpy.ndarray]:
    """Return different keys, sorted, and their weights."""
    at, places = numpy.unique(keys, return_inverse=True)
    return at, numpy.bincount(places, counts).astype(float)


def _weigh_few(keys: numpy.ndarray, counts: numpy.ndarray | None) -> tuple[numpy.ndarray, numpy.ndarray]:
    """Return different keys, sorted, and their weights; without sorting all keys, if most are alike."""
    kind, slot_bits = keys.dtype.type, 16
    mixed = keys * kind(MIX >> (64 - 8 * keys.itemsize))  # Fibonacci hashing
    slots = (mixed >> kind(8 * keys.itemsize - slot_bits)).astype(numpy.intp)
    owners = numpy.empty(2**slot_bits, dtype=keys.dtype)
    owners[slots] = keys
    own = owners[slots] == keys
    if not own.all():  # another key has the slot
        return _weigh_all(keys, counts)
    weights = numpy.bincount(slots, counts, minlength=2**slot_bits)
    used = numpy.flatnonzero(weights > 0)
    used = used[numpy.argsort(owners[used])]
    return owners[used], weights[used].astype(float)


@dataclass(frozen=True, slots=True)
class Grain:
    """How finely keys are counted: each key, or their leading bits where there are more than `few` keys."""

    depth: int  # leading bits
    few: int


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """How much the keys weigh that begin with the same bits."""

    grain: Grain
    at: numpy.ndarray  # the leading bits, sorted
    weights: numpy.ndarray  # in float64
    depth: int  # how many bits; all of them as long as there are few keys

    @classmethod
    def of(cls, keys: numpy.ndarray, counts: numpy.ndarray | None, grain: Grain) -> Cells:
        """Weigh keys, of which there is at least one."""
        bits = 8 * keys.itemsize
        if _n_distinct(keys[: 2 * grain.few]) <= grain.few:  # a fast look
            at, weights = _weigh_few(keys, counts)
            if len(at) <= grain.few:
                return cls(grain, at, weights, bits)
        heads = keys >> keys.dtype.type(bits - grain.depth)
        first, last = heads.min(), heads.max()
        if int(last) - int(first) > max(2**FIRST_BITS, 8 * len(keys)):
            return cls(grain, *_weigh_all(heads, counts), grain.depth)
        heads = (heads - first).astype(numpy.intp)
        weights = numpy.bincount(heads, counts)
        used = numpy.flatnonzero(weights > 0)
        return cls(grain, used.astype(keys.dtype) + first, weights[used].astype(float), grain.depth)

    @property
    def bits(self) -> int:
        """How many bits a key has."""
        return 8 * int(self.at.itemsize)

    def __add__(self, other: Cells) -> Cells:
        """Return what the keys of both weigh."""
        depth = min(self.depth, other.depth)
        few, many = sorted((one._coarse(depth) for one in (self, other)), key=lambda one: len(one.at))
        places = numpy.searchsorted(many.at, few.at)
        known = many.at[numpy.minimum(places, len(many.at) - 1)] == few.at
        weights = many.weights.copy()
        weights[places[known]] += few.weights[known]
        at = numpy.insert(many.at, places[~known], few.at[~known])
        found = Cells(self.grain, at, numpy.insert(weights, places[~known], few.weights[~known]), depth)
        return found._coarse(self.grain.depth) if len(at) > self.grain.few else found

    def _coarse(self, depth: int) -> Cells:
        """Return the cells of this depth; these ones if they are not finer."""
        if depth >= self.depth:
            return self
        at = self.at >> self.at.dtype.type(self.depth - depth)
        first = numpy.flatnonzero(numpy.concatenate([[True], at[1:] != at[:-1]]))
        return Cells(self.grain, at[first], numpy.add.reduceat(self.weights, first), depth)


Place = tuple[int, int]  # a column, and the leading bits of keys


@dataclass(frozen=True, slots=True, eq=False)
class Counted:
    """The cells within some places."""

    cells: dict[Place, Cells]

    def __add__(self, other: Counted) -> Counted:
        """Return the cells of both sets of rows."""
        both = dict(self.cells)
        for place, cells in other.cells.items():
            both[place] = both[place] + cells if place in both else cells
        return Counted(both)


@dataclass(frozen=True, slots=True, eq=False)
class Count:
    """Weigh the keys of columns; only those within the named places, if there are any."""

    columns: tuple[int, ...]
    grain: Grain
    within: dict[int, numpy.ndarray] = field(default_factory=dict)  # by column: leading bits, sorted
    depth: int = 0  # how many leading bits; 0 for all keys

    def __call__(self, X: Array, counts: Array | None) -> Counted:
        """Return the cells of these rows."""
        X, counts = to_host(X), None if counts is None else to_host(counts)
        cells: dict[Place, Cells] = {}
        for j in self.columns:
            column = numpy.ascontiguousarray(X[:, j])
            values, weights = observed(column, counts, bool(numpy.isnan(column.min())))
            keys = keys_of(values)
            if self.depth == 0 and len(keys):
                cells[j, 0] = Cells.of(keys, weights, self.grain)
            elif len(keys):
                cells |= self._inside(j, keys, weights)
        return Counted(cells)

    def _inside(self, j: int, keys: numpy.ndarray, counts: numpy.ndarray | None) -> dict[Place, Cells]:
        """Return the cells of one column within its places."""
        within, kind, bits = self.within[j], keys.dtype.type, 8 * keys.itemsize
        near = numpy.zeros(2**FIRST_BITS, dtype=bool)  # most keys are in no place: a fast look
        near[within >> kind(self.depth - FIRST_BITS)] = True
        rows = numpy.flatnonzero(near[(keys >> kind(bits - FIRST_BITS)).view(f"i{keys.itemsize}")])
        keys = keys[rows]
        heads = keys >> kind(bits - self.depth)
        places = numpy.searchsorted(within, heads)
        inside = within[numpy.minimum(places, len(within) - 1)] == heads
        places = places[inside].astype(numpy.min_scalar_type(len(within)))
        order = numpy.argsort(places, kind="stable")  # small integers are sorted fast
        rows = rows[inside][order]
        ends = numpy.cumsum(numpy.bincount(places, minlength=len(within)))[:-1]
        by_place = numpy.split(keys[inside][order], ends)
        of_rows = [None] * len(within) if counts is None else numpy.split(counts[rows], ends)
        return {
            (j, int(head)): Cells.of(some, weights, self.grain)
            for head, some, weights in zip(within, by_place, of_rows, strict=True)
            if len(some)
        }


@dataclass(eq=False)
class CountedColumn:
    """A column in order, as `Ranked` knows one in memory: where each wanted quantile is by now."""

    column: int
    cells: Cells  # of the first pass
    goals: dict[float, float]  # by share, the weight to be reached
    heads: dict[float, int]  # by share, the leading bits of the quantile
    before: dict[float, float]  # by share, the weight before these
    unknown: set[float]  # the shares of which only leading bits are known
    moments: Moments | None = None  # of the values over a divisor; None if they are not needed

    @classmethod
    def of(cls, column: int, cells: Cells, shares: Sequence[float]) -> CountedColumn:
        """Find the quantiles among the cells of the first pass."""
        total = float(cells.weights.sum())
        goals = {share: (share - SLACK) * total for share in shares}
        found = cls(column, cells, goals, dict.fromkeys(goals, 0), dict.fromkeys(goals, 0.0), set(goals))
        found.narrow(Counted({(column, 0): cells}))
        return found

    def narrow(self, counted: Counted) -> None:
        """Find the quantiles that are not yet known among the cells of a pass."""
        for share in sorted(self.unknown):
            cells = counted.cells[self.column, self.heads[share]]
            reach = self.before[share] + numpy.cumsum(cells.weights)
            # in another pass rounding may leave the last cell below the goal
            i = min(int(numpy.searchsorted(reach, self.goals[share])), len(reach) - 1)
            self.heads[share] = int(cells.at[i])
            if i:
                self.before[share] = float(reach[i - 1])
            if cells.depth == cells.bits:
                self.unknown.discard(share)

    def places(self) -> numpy.ndarray:
        """Return the leading bits of the quantiles that are not yet known, sorted."""
        return numpy.asarray(sorted({self.heads[share] for share in self.unknown}), dtype=self.cells.at.dtype)

    def quantiles(self, shares: Sequence[float]) -> numpy.ndarray:
        """Return, for each share, the smallest value whose cumulated weight reaches it."""
        return values_of(numpy.asarray([self.heads[share] for share in shares], dtype=self.cells.at.dtype))

    def distinct(self, most: int) -> tuple[numpy.ndarray, numpy.ndarray] | None:
        """Return the different values and the weight of each, or None if there are more than `most`."""
        if self.cells.depth < self.cells.bits or len(self.cells.at) > most:
            return None
        return values_of(self.cells.at), self.cells.weights

    def may_be_narrow(self, divisor: numpy.floating) -> bool:
        """Tell whether, after the first pass, the quartiles may be one value over the divisor."""
        shift, kind = self.cells.bits - self.cells.depth, self.cells.at.dtype
        keys = [((self.heads[0.25] + 1) << shift) - 1, self.heads[0.75] << shift]
        last, first = values_of(numpy.asarray(keys, dtype=kind)) / divisor
        return not first > last

    def variance(self, divisor: float) -> float:
        """Return the variance of the values over the divisor."""
        found = self.moments
        if found is None:
            values = values_of(self.cells.at)
            found = Moments.of((values / values.dtype.type(divisor))[:, None], self.cells.weights)
        return float((found.scatter / found.weight)[0])


def _observed_moments(
    columns: tuple[int, ...], divisor: numpy.ndarray, X: Array, counts: Array | None
) -> Moments:
    """Return the moments of columns over their divisors, without their gaps."""
    Z = to_host(X)[:, columns] / divisor
    return Moments.of_observed(Z, None if counts is None else to_host(counts))


def first_count(columns: Sequence[int], most_values: int) -> Count:
    """Return what counts columns in the first pass, exactly where they have up to `most_values` values."""
    return Count(tuple(columns), Grain(FIRST_BITS, max(FEW, most_values)))


def in_order(
    total: Callable[[Step], Any],
    counted: Counted,
    divisors: dict[int, numpy.floating],
    shares: Sequence[float],
) -> list[CountedColumn]:
    """Find the quantiles of columns, by their divisors, from the cells of the first pass and further passes.

    `total` returns the sum of a step over all rows, by one pass over them.
    """
    found = [CountedColumn.of(j, counted.cells[j, 0], shares) for j in divisors]
    narrow = [c for c in found if c.unknown and c.may_be_narrow(divisors[c.column])]
    depth = FIRST_BITS
    while unknown := [c for c in found if c.unknown]:
        within = {c.column: c.places() for c in unknown}
        n_places = sum(map(len, within.values()))
        bits = unknown[0].cells.bits
        few = max(1, CELLS // n_places)
        grain = Grain(min(bits, depth + max(1, few.bit_length() - 1)), few)
        steps: list[Step] = [Count(tuple(within), grain, within, depth)]
        if narrow:
            columns = tuple(c.column for c in narrow)
            divisor = numpy.asarray([divisors[j] for j in columns])
            steps.append(partial(_observed_moments, columns, divisor))
        sums = total(partial(together, steps)).values
        for c in unknown:
            c.narrow(sums[0])
        for i, c in enumerate(narrow):
            at, of_all = slice(i, i + 1), sums[1]
            c.moments = Moments(of_all.weight[at], of_all.mean[at], of_all.scatter[at])
        narrow, depth = [], grain.depth
    return found
