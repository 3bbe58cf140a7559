"""Targets, classes or values, of which a fit asks the same; and how much rows weigh."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy

from .._seam.arrays import Array, array_namespace, device, product, row_blocks, take_entries, take_rows
from .._seam.sklearn import _convert_to_numpy


@dataclass(frozen=True, slots=True, eq=False)
class WeightSums:
    """Sums of the weights of some rows, by which one knows how many rows they are worth."""

    n_rows: int  # with a positive weight
    total: float
    largest: float
    shares: float  # the sum of the weights over the largest one, whose squares would vanish if it is tiny
    squares: float  # of these

    @classmethod
    def of(cls, counts: numpy.ndarray, times: numpy.ndarray | float = 1.0) -> WeightSums:
        """Sum positive weights of rows, each of which comes so many times."""
        largest = float(counts.max(initial=0.0))
        shares = counts / largest if largest else counts
        sums = (counts * times).sum(), largest, (shares * times).sum(), (shares * times) @ shares
        return cls(len(counts), *map(float, sums))

    def __add__(self, other: WeightSums) -> WeightSums:
        """Return the sums over both sets of rows."""
        largest = max(self.largest, other.largest)
        a, b = (one.largest / largest if largest else 0.0 for one in (self, other))
        shares, squares = self.shares * a + other.shares * b, self.squares * a**2 + other.squares * b**2
        return WeightSums(self.n_rows + other.n_rows, self.total + other.total, largest, shares, squares)

    @property
    def equal(self) -> float:
        """(sum w)^2 / sum w^2: how many rows of equal weight say as much (Kish); their scale is no matter.

        That is the number of rows where all weights are equal.
        """
        return self.shares**2 / self.squares if self.n_rows else 0.0

    @property
    def worth(self) -> float:
        """How many rows without weights say as much as rows with these weights.

        Weight 2 is the row twice, so this is their sum. Weights below 1 may have any scale, for instance a
        sum of 1; then it is (sum w)^2 / sum w^2, which does not depend on the scale, and which is never above
        the sum of weights that are 1 or more.
        """
        return max(self.total, self.equal)

    @property
    def of_one(self) -> float:
        """The weight of one row: 1 if weights are 1 or more, but weights below 1 may have any scale."""
        return self.total / self.worth


def rows_worth(counts: numpy.ndarray, times: numpy.ndarray | float = 1.0) -> float:
    """Return how many rows without weights say as much as rows with these counts: see `WeightSums`."""
    return WeightSums.of(counts, times).worth


def equal_rows(counts: numpy.ndarray, times: numpy.ndarray | float = 1.0) -> float:
    """Return how many rows of equal weight say as much as rows with these counts: see `WeightSums`."""
    return WeightSums.of(counts, times).equal


def weight_of_one(counts: numpy.ndarray) -> float:
    """Return the weight of one row among rows with these counts: see `WeightSums`."""
    return WeightSums.of(counts).of_one


@dataclass(frozen=True, slots=True, eq=False)
class RowWeights:
    """How much each training row weighs, apart from the layer's own omega (Eq. 14).

    None stands for ones. No weight is 0: `prepare_rows` has dropped rows of weight 0.
    """

    counts: Array | None = None  # (m,), sample weights: weight 2 is the row twice, in every statistic
    costs: Array | None = None  # (m,), class weights: factors of the row's squared error alone

    @property
    def base(self) -> Array | None:
        """The factor of a row's squared error in every read-out; a layer multiplies it by its omega."""
        return product(self.counts, self.costs)

    @property
    def unit(self) -> float:
        """The weight of one row, see `WeightSums.of_one`. Class weights are no part of it."""
        counts = self.counts
        if counts is None:
            return 1.0
        return weight_of_one(numpy.asarray(_convert_to_numpy(counts, array_namespace(counts)), dtype=float))

    @classmethod
    def joined(cls, parts: Sequence[RowWeights]) -> RowWeights:
        """Return the weights of all parts, one after another."""

        def join(each: list[Array | None]) -> Array | None:
            return None if each[0] is None else array_namespace(each[0]).concat(each)

        return cls(join([part.counts for part in parts]), join([part.costs for part in parts]))

    def some(self, which: Array | slice) -> RowWeights:
        """Return the weights of some rows."""
        return RowWeights(*(None if w is None else take_entries(w, which) for w in (self.counts, self.costs)))

    def counts_of(self, m: int, like: Array) -> Array:
        """Return the counts of m rows as an array, ones if there are none."""
        if self.counts is not None:
            return self.counts
        return array_namespace(like).ones((m,), dtype=like.dtype, device=device(like))


@dataclass(frozen=True, slots=True, eq=False)
class Values:
    """Targets that are numbers: Y is a matrix. In a fit its columns have mean 0 and variance 1."""

    Y: Array  # (m, k)
    mean: Array | None = None  # (k,), what Y + 0 stands for in the user's units; None for 0
    sd: Array | None = None  # (k,), what a step of 1 stands for; None for 1

    @property
    def width(self) -> int:
        """The number of columns of Y."""
        return int(self.Y.shape[1])

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return int(self.Y.shape[0])

    @property
    def like(self) -> Array:
        """An array of the dtype of Y, and on its device."""
        return self.Y[:0, 0]

    def rows(self, which: slice | Array) -> Array:
        """Return the named rows of Y."""
        return take_rows(self.Y, which)

    def some(self, which: slice | Array) -> Values:
        """Return the targets of some rows."""
        return replace(self, Y=take_rows(self.Y, which))

    def losses(self, scores: Array, which: slice | Array) -> Array:
        """Return the mean squared error over the outputs of scores (..., rows, k) for the named rows."""
        errors = scores - self.rows(which)
        return array_namespace(scores).mean(errors * errors, axis=-1)

    def largest_right(self, losses: Array, counts: Array) -> Array:
        """Return the largest loss (..., 1) that is right in Eq. 12: half of the weight has such losses."""
        xp = array_namespace(losses)
        order = xp.argsort(losses, axis=-1, stable=True)
        counts = xp.astype(counts, xp.float64)
        sorted_counts = xp.reshape(xp.take(counts, xp.reshape(order, (-1,))), order.shape)
        reached = xp.cumulative_sum(sorted_counts, axis=-1)
        # rows before the weighted median; rounding must not move it
        below = xp.astype(reached < (0.5 - 1e-9) * reached[..., -1:], xp.int64)
        place = xp.sum(below, axis=-1, keepdims=True)
        median = xp.take_along_axis(xp.sort(losses, axis=-1), place, axis=-1)
        # rounding gives copies of a row losses that differ a little, and none of them may be wrong alone
        eps = float(xp.finfo(losses.dtype).eps)
        return median * (1 + eps**0.5) + eps

    def in_units(self, beta: Array, bias: int = -1) -> Array:
        """Return read-outs (..., c, k) that answer in the user's units; `bias` is the constant's row."""
        if self.mean is None or self.sd is None:
            return beta
        beta = beta * self.sd
        beta[..., bias, :] += self.mean
        return beta


@dataclass(frozen=True, slots=True, eq=False)
class Classes:
    """Targets that are classes. Y is one-hot, made by blocks: with many classes it would fill memory."""

    codes: Array  # (m,), places in the list of classes
    width: int  # the number of classes
    like: Array  # an array whose dtype Y takes

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return int(self.codes.shape[0])

    def rows(self, which: slice | Array) -> Array:
        """Return the named rows of Y, a matrix of 0 and 1."""
        xp = array_namespace(self.codes)
        codes = take_entries(self.codes, which)
        every = xp.arange(self.width, dtype=codes.dtype, device=device(codes))  # made where it is needed
        return xp.astype(codes[:, None] == every, self.like.dtype)

    def some(self, which: slice | Array) -> Classes:
        """Return the targets of some rows."""
        return replace(self, codes=take_entries(self.codes, which))

    def losses(self, scores: Array, which: slice | Array) -> Array:
        """Return 0 where the largest of the scores (..., rows, k) is that of the row's own class, else 1."""
        xp = array_namespace(scores)
        return xp.astype(xp.argmax(scores, axis=-1) != take_entries(self.codes, which), scores.dtype)

    def largest_right(self, losses: Array, counts: Array) -> Array:  # noqa: ARG002
        """Return the largest loss (..., 1) that is right in Eq. 12: none."""
        return array_namespace(losses).zeros_like(losses[..., :1])

    def in_units(self, beta: Array, bias: int = -1) -> Array:  # noqa: ARG002
        """Return the read-out as it is: scores of classes have no units."""
        return beta


Targets = Classes | Values


def joined_targets(parts: Sequence[Targets]) -> Targets:
    """Return the targets of all parts, one after another."""
    first = parts[0]
    if isinstance(first, Classes):
        codes = [part.codes for part in parts if isinstance(part, Classes)]
        return replace(first, codes=array_namespace(first.codes).concat(codes))
    return replace(first, Y=array_namespace(first.Y).concat([p.Y for p in parts if isinstance(p, Values)]))


def layer_losses(targets: Targets, D: Array, beta: Array) -> Array:
    """Return the losses (..., r, m) of the rows of D (..., m, c) with the read-outs (..., r, c, k)."""
    xp = array_namespace(D)
    m, r, k = D.shape[-2], beta.shape[-3], beta.shape[-1]
    parts = [
        targets.losses(side_by_side(D[..., rows, :], beta), rows)
        for rows in row_blocks(D, m, D.shape[-1] + 3 * r * k)
    ]
    return parts[0] if len(parts) == 1 else xp.concat(parts, axis=-1)


def side_by_side(D: Array, beta: Array) -> Array:
    """Return D beta for all read-outs in one product: (..., rows, c), (..., r, c, k) -> (..., r, rows, k)."""
    xp = array_namespace(D)
    *stack, r, c, k = beta.shape
    if r == 1:
        return xp.expand_dims(D @ beta[..., 0, :, :], axis=-3)
    # one wide product is faster than r narrow ones
    together = D @ xp.reshape(xp.moveaxis(beta, -3, -2), (*stack, c, r * k))
    return xp.moveaxis(xp.reshape(together, (*D.shape[:-1], r, k)), -2, -3)
