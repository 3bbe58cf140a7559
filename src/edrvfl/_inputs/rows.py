"""Prepare rows for a fit: the one place that drops rows without weight, merges copies, and codes y.

Every fit and every split of a search calls it, so both see the same rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Real
from typing import Any

import numpy
from sklearn.utils import compute_class_weight

from .._seam.arrays import Array, array_namespace, from_numpy, ignore_overflow, take_rows
from .._seam.sklearn import (
    _check_sample_weight,
    _convert_to_numpy,
    get_namespace,
    get_namespace_and_device,
    move_to,
)
from .copies import agree_by_chance
from .moments import ValueScale
from .targets import Classes, RowWeights, Targets, Values, joined_targets, rows_worth

# Odd 64-bit constants without structure: the fractions of the golden ratio and of pi, and a mix of SplitMix64
GOLDEN, PI, MIX = (numpy.uint64(c) for c in (0x9E3779B97F4A7C15, 0x243F6A8885A308D3, 0xBF58476D1CE4E5B9))


def row_hashes(X: numpy.ndarray) -> numpy.ndarray:
    """Return one uint64 for each row of X (m, d), from its numbers in float32. Equal rows have equal ones."""
    with numpy.errstate(over="ignore"):  # integers wrap around, and large numbers become infinite
        bits = _same_bits(X).astype(numpy.float32).view(numpy.uint32)
        total = numpy.full(len(X), PI)
        for j in range(X.shape[1]):
            total = (total ^ bits[:, j]) * GOLDEN
            total ^= total >> numpy.uint64(29)
        total *= MIX
        return total ^ (total >> numpy.uint64(32))


def _same_bits(X: numpy.ndarray) -> numpy.ndarray:
    """Give equal numbers equal bits: -0.0 has other ones than 0.0, and gaps may have several."""
    return numpy.where(numpy.isnan(X), numpy.nan, X + 0.0)


@dataclass(frozen=True, slots=True, eq=False)
class Came:
    """The rows as they came, copies too, but for rows of weight 0."""

    which: numpy.ndarray  # (n,), their places among all rows that came
    at: numpy.ndarray  # (n,), the row that stands for each of them
    counts: numpy.ndarray  # (n,), their sample weights, in float64


@dataclass(frozen=True, eq=False)
class Rows:
    """Training rows with their targets and weights. Every row has a positive weight."""

    X: Array  # (m, d)
    classes: Array | None  # (k,), labels as they came, sorted; None if the targets are values
    targets: Targets
    weights: RowWeights
    known_hashes: numpy.ndarray | None = None  # where X is not in memory, or was hashed before
    apart: bool = False  # equal rows agree by chance: see `agree_by_chance`
    came: Came | None = None  # what these rows were; None for some of other rows
    # (m,), rows of the same number are left out together, and equal rows of other numbers are not; None if
    # leave-one-out leaves out a row with its copies
    groups: numpy.ndarray | None = None

    @cached_property
    def hashes(self) -> numpy.ndarray:
        """A number for each row that its values decide, and not its place."""
        return row_hashes(to_host(self.X)) if self.known_hashes is None else self.known_hashes

    @cached_property
    def twins(self) -> numpy.ndarray | None:
        """For each row the first row that is left out with it, having the same X; None if there are none."""
        if self.apart or self.groups is not None or self.X.shape[0] > MOST_COMPARED:
            return None
        return first_of_equals(self.X, self.hashes)

    @property
    def worth(self) -> float:
        """How many rows these are, where weight 2 is the row twice."""
        counts = self.weights.counts
        return float(self.X.shape[0]) if counts is None else rows_worth(to_host(counts).astype(float))

    def some(self, which: Array) -> Rows:
        """Return the rows with these indices, in this order."""
        X, targets = take_rows(self.X, which), self.targets.some(which)
        known, groups = (
            None if numbers is None else numbers[to_host(which)]
            for numbers in (self.known_hashes, self.groups)
        )
        return Rows(X, self.classes, targets, self.weights.some(which), known, self.apart, groups=groups)

    @staticmethod
    def joined(parts: Sequence[Rows]) -> Rows:
        """Return the rows of all parts, one after another."""
        X = array_namespace(parts[0].X).concat([part.X for part in parts])
        targets = joined_targets([part.targets for part in parts])
        return Rows(X, parts[0].classes, targets, RowWeights.joined([part.weights for part in parts]))


# More rows are not compared: hashes of them would take longer than they bring, because beside so many others
# a row moves its own answer by next to nothing.
MOST_COMPARED = 100_000


def first_of_equals(X: Array, hashes: numpy.ndarray) -> numpy.ndarray | None:
    """Return for each row of X the index of the first row that equals it, or None if all differ.

    Rows are compared in full precision where their hashes are the same; a gap equals a gap.
    """
    _, place, sizes = numpy.unique(hashes, return_inverse=True, return_counts=True)
    alike = numpy.flatnonzero(sizes[place] > 1)
    if not len(alike):
        return None
    some = take_rows(X, from_numpy(alike, X, array_namespace(X).int64))
    bits = numpy.ascontiguousarray(_same_bits(to_host(some))).view(numpy.uint8)
    rows = bits.view(numpy.dtype((numpy.void, bits.shape[1])))[:, 0]
    _, first, place = numpy.unique(rows, return_index=True, return_inverse=True)
    if len(first) == len(alike):
        return None
    found = numpy.arange(len(hashes))
    found[alike] = alike[first[place]]
    return found


def merge_copies(rows: Rows) -> Rows:
    """Make one row of rows that have the same X and the same target; it counts for all, at the first's place.

    So weight 2 is the row twice, and leave-one-out leaves a row out with its copies. But where rows agree by
    chance each of them is a row of its own, and whole weights say how many rows there are. Where rows are in
    groups, copies are merged within a group.
    """
    if rows.X.shape[0] > MOST_COMPARED:
        return rows
    twins = rows.twins if rows.groups is None else first_of_equals(rows.X, rows.hashes)
    rows = replace(rows, known_hashes=rows.hashes)  # nobody hashes them again
    if twins is None:
        return rows
    first = _first_copies(rows, twins)
    which, times = numpy.unique(first, return_counts=True)
    counts = numpy.bincount(first, weights_on_host(rows.weights.counts, len(first)))[which]
    if rows.groups is not None:
        return _with_counts(rows, first, which, counts)
    whole = counts.sum() <= MOST_COMPARED and bool((counts == counts.round()).all())
    if whole:
        times = (counts / numpy.gcd.reduce(counts.astype(int))).astype(int)
    if agree_by_chance(to_host(rows.X)[which], twins[which], times):
        rows = replace(rows, apart=True)
        if not whole:
            return rows
        which, counts = (numpy.repeat(values, times) for values in (which, counts / times))
    return _with_counts(rows, first, which, counts)


def _first_copies(rows: Rows, twins: numpy.ndarray) -> numpy.ndarray:
    """Return for each row the first that has the same X, target and group; twins have the same X."""
    targets = rows.targets
    Y = to_host(targets.codes if isinstance(targets, Classes) else targets.Y)
    keys = numpy.column_stack([twins, Y] if rows.groups is None else [twins, Y, rows.groups]).astype(float)
    first = first_of_equals(keys, row_hashes(keys))
    return numpy.arange(len(twins)) if first is None else first


def _with_counts(rows: Rows, first: numpy.ndarray, which: numpy.ndarray, counts: numpy.ndarray) -> Rows:
    """Return some of the rows, with counts of their own; each row has become the one that `first` names."""
    came = (
        None if rows.came is None else replace(rows.came, at=numpy.searchsorted(which, first[rows.came.at]))
    )
    if len(which) == len(first) and (counts == 1).all():
        return rows
    some = rows.some(from_numpy(which, rows.X, array_namespace(rows.X).int64))
    return replace(some, weights=replace(some.weights, counts=from_numpy(counts, rows.X)), came=came)


def in_groups(rows: Rows, groups: numpy.ndarray | None) -> Rows:
    """Note which rows are left out together, which have the same number in `groups` (m,).

    Groups of one row each are the rows themselves; then equal rows are left out apart.
    """
    if groups is None:
        return rows
    m = rows.X.shape[0]
    if len(numpy.unique(groups)) < m:
        return replace(rows, groups=groups)
    return replace(rows, apart=m <= MOST_COMPARED and first_of_equals(rows.X, rows.hashes) is not None)


def prepare_rows(
    X: Array,
    y: Array,
    sample_weight: Any = None,
    class_weight: Any = None,
    merge: bool = True,
    groups: numpy.ndarray | None = None,
) -> Rows:
    """Drop rows of weight 0, code the labels, weigh the classes, and make one row of equal ones.

    Parameters
    ----------
    X : validated array of shape (m, d)
    y : validated labels of shape (m,), in NumPy or in the namespace of X
    sample_weight : array-like of shape (m,) or None
    class_weight : dict, "balanced" or None
    merge : whether equal rows become one row: see `merge_copies`
    groups : numbers of shape (m,), the same for rows that are left out together, or None
    """
    xp, _, where = get_namespace_and_device(X)
    counts = costs = None
    places: Any = numpy.arange(X.shape[0])
    if sample_weight is not None:
        counts, X, y, groups, places = keep_weighted(sample_weight, X, y, groups, places)
    if class_weight is not None:
        costs = from_numpy(_costs_of_rows(class_weight, y, counts), X)
        X, y, counts, groups, costs, places = keep_marked(costs > 0, X, y, counts, groups, costs, places)
    weights = RowWeights(counts, costs)
    _refuse_overflow(weights)
    found = get_namespace(y)[0].unique_inverse(y)
    classes, codes = found.values, move_to(found.inverse_indices, xp=xp, device=where)
    if not (isinstance(classes, numpy.ndarray) and classes.dtype.kind in "OUS"):
        classes = move_to(classes, xp=xp, device=where)  # strings stay in NumPy
    targets = Classes(codes, int(classes.shape[0]), X[:0, 0])
    rows = in_groups(Rows(X, classes, targets, weights, came=_came(places, counts)), groups)
    return merge_copies(rows) if merge else rows


def prepare_values(
    X: Array, y: Array, sample_weight: Any = None, merge: bool = True, groups: numpy.ndarray | None = None
) -> Rows:
    """Drop rows of weight 0, make one row of equal ones, and standardise the outputs.

    Parameters
    ----------
    X : validated array of shape (m, d)
    y : validated numbers of shape (m,) or (m, k), in NumPy or in the namespace of X
    sample_weight : array-like of shape (m,) or None
    merge : whether equal rows become one row: see `merge_copies`
    groups : numbers of shape (m,), the same for rows that are left out together, or None
    """
    xp, _, where = get_namespace_and_device(X)
    y = move_to(y, xp=xp, device=where)
    Y = xp.astype(as_matrix(y), xp.float64)
    counts: Array | None = None
    places: Any = numpy.arange(X.shape[0])
    if sample_weight is not None:
        counts, X, Y, groups, places = keep_weighted(sample_weight, X, Y, groups, places)
    weights = RowWeights(counts)
    _refuse_overflow(weights)
    rows = in_groups(Rows(X, None, Values(Y), weights, came=_came(places, counts)), groups)
    rows = merge_copies(rows) if merge else rows
    Y = rows.targets.rows(slice(None))
    return replace(rows, targets=standard_values(Y, ValueScale.of(Y, rows.weights.counts), X.dtype))


def _came(places: numpy.ndarray, counts: Array | None) -> Came:
    """Return rows that stand for themselves."""
    return Came(places, numpy.arange(len(places)), weights_on_host(counts, len(places)))


def standard_values(Y: Array, scale: ValueScale, dtype: Any) -> Values:
    """Bring outputs Y (m, k) in float64 to mean 0 and variance 1."""
    xp, unit, mean, sd = array_namespace(Y), scale.unit, scale.mean, scale.sd
    # an output that is constant but for rounding has no scale
    flat = sd <= 4 * float(xp.finfo(xp.float64).eps) * xp.abs(mean)
    sd = xp.where(flat, xp.ones_like(sd), sd)
    unit = xp.where(flat & (mean == 0), xp.ones_like(unit), unit)  # zeros have the smallest one
    Y = Y / scale.unit - mean
    Y = xp.where(flat, xp.zeros_like(Y), Y / sd)
    with ignore_overflow():
        Y, mean, sd = (xp.astype(values, dtype, copy=False) for values in (Y, mean * unit, sd * unit))
    if not bool(xp.all(xp.isfinite(mean) & xp.isfinite(sd))):
        raise ValueError(f"The values of y are too large for {dtype}, in which X is. Divide y by a number.")
    return Values(Y, mean, sd)


def as_matrix(y: Array) -> Array:
    """Return values (m,) or (m, k) as (m, k)."""
    return y[:, None] if y.ndim == 1 else y


def refuse_unresolved(rows: Rows) -> None:
    """Refuse outputs that vary by less than answers in the precision of the rows can tell apart.

    An answer is rounded to eps times its size. Four such steps in a standard deviation cost about one
    percent of the variance. In float64 what varies by less counts as constant, and nothing can be done.
    """
    targets, dtype, xp = rows.targets, rows.X.dtype, array_namespace(rows.X)
    assert isinstance(targets, Values)
    if dtype == xp.float64 or targets.mean is None or targets.sd is None:
        return
    limits = xp.finfo(dtype)
    least = xp.clip(4 * float(limits.eps) * xp.abs(targets.mean), float(limits.smallest_normal), None)
    lost = to_host(xp.any(targets.Y != 0, axis=0) & (targets.sd < least))
    if lost.any():
        i = int(lost.argmax())
        which = "y" if targets.width == 1 else f"output {i} of y"
        raise ValueError(
            f"In {dtype}, in which X is, {which} has the mean {float(targets.mean[i]):.6g} and the standard "
            f"deviation {float(targets.sd[i]):.3g}: too little to tell values apart. Give X in float64, or "
            "subtract the mean from y and divide it by its standard deviation."
        )


def keep_weighted(sample_weight: Any, X: Array, *others: Array | None) -> list[Array]:
    """Drop rows of weight 0; return the weights of the rows that stay, and these rows of X and the others."""
    counts = _check_sample_weight(sample_weight, X, dtype=X.dtype, ensure_non_negative=True)
    counts = _with_digits(counts)
    return keep_marked(counts > 0, counts, X, *others)


def _with_digits(counts: Array) -> Array:
    """Multiply weights that are all so tiny that their products lose digits: they vanish beside any penalty.

    A weight that vanishes beside the largest one is 0.
    """
    xp = array_namespace(counts)
    normal = float(xp.finfo(counts.dtype).smallest_normal)
    largest = float(xp.max(counts)) if counts.shape[0] else 0.0
    if 0 < largest < normal * 2.0**60:
        counts = counts * (normal * 2.0**60 / largest)
    return xp.where(counts < normal, xp.zeros_like(counts), counts)


def to_host(array: Array) -> numpy.ndarray:
    """Bring an array of any library to NumPy."""
    return numpy.asarray(_convert_to_numpy(array, array_namespace(array)))


def weights_on_host(weights: Array | None, m: int) -> numpy.ndarray:
    """Return weights of m rows in NumPy and float64; None stands for ones."""
    return numpy.ones(m) if weights is None else to_host(weights).astype(float)


def refuse_one_class(classes: Array, who: str = "A fit") -> None:
    """Refuse labels that are all the same."""
    if classes.shape[0] < 2:
        raise ValueError(
            f"{who} needs at least two classes, but y holds only one class "
            f"({to_host(classes).tolist()[0]!r}) in the rows with positive weight."
        )


def _costs_of_rows(class_weight: Any, y: Array, counts: Array | None) -> numpy.ndarray:
    """Return the class weight of each row."""
    labels = to_host(y)
    classes, codes = numpy.unique(labels, return_inverse=True)
    counts = None if counts is None else to_host(counts)
    by_row: numpy.ndarray = class_costs(class_weight, classes, labels, counts)[codes]
    return by_row


def class_costs(
    class_weight: Any, classes: numpy.ndarray, labels: numpy.ndarray, counts: numpy.ndarray | None
) -> numpy.ndarray:
    """Return the weight of each class by scikit-learn's rule, from labels and their counts."""
    if isinstance(class_weight, dict) and not all(isinstance(w, Real) for w in class_weight.values()):
        raise ValueError(f"class_weight must hold a number for each class, got {class_weight!r}.")
    costs = compute_class_weight(class_weight, classes=classes, y=labels, sample_weight=counts)
    if not (numpy.isfinite(costs).all() and (costs >= 0).all() and (costs > 0).any()):
        raise ValueError(
            "class_weight must hold finite weights that are not negative and, for the classes of y, not all "
            f"zero, got {class_weight!r}."
        )
    return numpy.asarray(costs)


def keep_marked(rows: Array, *arrays: Array | None) -> list[Array | None]:
    """Keep the rows marked True. The arrays may belong to different libraries."""
    if bool(array_namespace(rows).all(rows)):
        return list(arrays)
    kept = []
    for array in arrays:
        if array is not None:
            xp, _, where = get_namespace_and_device(array)
            array = array[move_to(rows, xp=xp, device=where)]
        kept.append(array)
    return kept


def _refuse_overflow(weights: RowWeights) -> None:
    base = weights.base
    if base is not None:
        refuse_large_weights(float(array_namespace(base).max(base)), base.shape[0], base)


def refuse_large_weights(largest: float, n_rows: int, like: Array) -> None:
    """Refuse weights whose weighted squares overflow: the later error would blame the features."""
    bound = float(array_namespace(like).finfo(like.dtype).max) ** 0.5
    if not largest * n_rows < bound:
        raise ValueError(
            f"The weights are too large: the largest sample_weight times class_weight is {largest:.3g}, and "
            f"sums of weighted squares overflow {like.dtype}. Divide the weights by their mean."
        )
