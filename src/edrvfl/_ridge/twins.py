"""Rows whose features are equal and whose targets differ: leave-one-out leaves all of them out together."""

from __future__ import annotations

from dataclasses import dataclass

import numpy

from .._seam.arrays import Array, array_namespace, device, from_numpy


@dataclass(frozen=True, slots=True, eq=False)
class Twins:
    """Which rows have twins, as places that every array library can sum and take."""

    rows: Array  # (t,), the rows that have twins, those of a group side by side
    starts: Array  # (g,), where each group starts among them
    ends: Array  # (g,), where the next one starts
    at: Array  # (m,), the row itself, or m + its group: places among rows that groups follow

    @classmethod
    def of(cls, groups: numpy.ndarray | None, like: Array) -> Twins | None:
        """Sort rows that have the same number in `groups` (m,); return None if no row has a twin."""
        if groups is None:
            return None
        order = numpy.argsort(groups, kind="stable")
        starts = numpy.flatnonzero(numpy.diff(groups[order], prepend=-1))
        sizes = numpy.diff(starts, append=len(order))
        rows, sizes = order[numpy.repeat(sizes > 1, sizes)], sizes[sizes > 1]
        if not len(rows):
            return None
        at, ends = numpy.arange(len(order)), numpy.cumsum(sizes)
        at[rows] = len(order) + numpy.repeat(numpy.arange(len(sizes)), sizes)
        integers = array_namespace(like).int64
        return cls(*(from_numpy(places, like, integers) for places in (rows, ends - sizes, ends, at)))

    def put(self, values: Array, of_groups: Array, axis: int = -1) -> Array:
        """Return the values of all rows, those of twins replaced by the values of their groups."""
        xp = array_namespace(values)
        return xp.take(xp.concat([values, xp.astype(of_groups, values.dtype)], axis=axis), self.at, axis=axis)

    def sums(self, values: Array, axis: int = -1) -> Array:
        """Return the values of all rows, those of twins summed over their groups."""
        xp = array_namespace(values)
        some = xp.take(values, self.rows, axis=axis)
        # no library but NumPy sums by groups; in float64 differences of running sums keep their digits
        running = xp.cumulative_sum(some, axis=axis, dtype=xp.float64, include_initial=True)
        ends, starts = (xp.take(running, places, axis=axis) for places in (self.ends, self.starts))
        return self.put(values, ends - starts, axis)

    def directions(self, sizes: Array) -> Array:
        """Return vectors (..., g, m) that have these sizes (..., m) at a group's rows, and 0 elsewhere."""
        xp, m = array_namespace(sizes), self.at.shape[0]
        groups = m + xp.arange(self.ends.shape[0], dtype=self.at.dtype, device=device(self.at))
        return xp.astype(self.at == groups[:, None], sizes.dtype) * sizes[..., None, :]
