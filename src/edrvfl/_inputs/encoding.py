"""Learn how the columns of X are encoded: from the rows of one fit or one split, never before."""

from __future__ import annotations

import dataclasses
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy

from .._arrays import Array, array_namespace, from_numpy, ignore_overflow, row_blocks
from .categories import Tally
from .inputs import CUT, Bins, Categories, Inputs, Numbers, OneHots, taken
from .moments import moments
from .ranked import Ranked
from .rows import to_host
from .weights import rows_worth

NORMAL_IQR = 1.349  # the interquartile range of a normal distribution of variance 1


@dataclass(frozen=True, slots=True)
class EncoderSettings:
    """How columns are encoded."""

    numbers: str = "standard"  # or "robust", or "bins"
    n_bins: int = 16
    max_values: int = 12  # with "bins", a number column of 3 to so many values is one-hot
    max_categories: int = 32  # one-hot columns of one categorical column; the rarest share one of them
    min_frequency: int = 2  # lighter categories are rare: what one row says, no other row has confirmed
    max_columns: int = 800  # for bins and categories, beside one column for each source column


DEFAULTS = EncoderSettings()


@dataclass(frozen=True, slots=True, eq=False)
class Knots:
    """The places that the bins of a number column lie between, or the values that it is one-hot by."""

    at: numpy.ndarray  # sorted, no two alike
    weights: numpy.ndarray | None  # of the values; None for bins

    @property
    def wanted(self) -> int:
        """How many columns they ask for. Two values, or one bin, say no more than the column itself."""
        n = len(self.at)
        return 0 if n < 3 else n if self.weights is not None else n - 1

    def narrowed(self, most: int) -> Knots:
        """Return knots of at most so many columns. Values become bins if need be; one bin is no use."""
        if self.wanted <= most:
            return self
        n = min(len(self.at) - 1, most)
        if n < 2:
            return NOTHING
        kept = numpy.round(numpy.linspace(0, len(self.at) - 1, n + 1)).astype(int)
        return Knots(self.at[kept], None)


NOTHING = Knots(numpy.empty(0), None)


@dataclass(frozen=True, slots=True, eq=False)
class Training:
    """The rows that the encoding is learnt from."""

    X: Array
    counts: Array | None
    total: float  # their weight
    gaps: numpy.ndarray  # (d,), which columns have missing values

    def blocks(self, width: int) -> Iterator[tuple[Array, Array | None]]:
        """Yield blocks of rows and their counts, so large that `width` numbers a row are a good size."""
        for rows in row_blocks(self.X, self.X.shape[0], width):
            yield self.X[rows, :], None if self.counts is None else self.counts[rows]

    def column(self, j: int) -> tuple[Array, Array | None]:
        """Return the values of a column that are not missing, and their counts."""
        values, counts = self.X[:, j], self.counts
        if self.gaps[j]:
            seen = ~array_namespace(values).isnan(values)
            values, counts = values[seen], None if counts is None else counts[seen]
        return values, counts

    def missing(self, j: int) -> float:
        """Return the weight of the rows where a column is missing."""
        if not self.gaps[j]:
            return 0.0
        xp = array_namespace(self.X)
        weights = xp.astype(xp.isnan(self.X[:, j]), xp.float64)
        return float(xp.sum(weights if self.counts is None else weights * xp.astype(self.counts, xp.float64)))


def learn_inputs(
    X: Array,
    counts: Array | None,
    settings: EncoderSettings | None,
    categorical: Sequence[bool] | None = None,
) -> Inputs:
    """Learn the encoding of the columns of X (m, d) from rows of weight `counts` (m,).

    Number columns hold numbers, categorical ones codes 0, 1, ..., or -1 for a category that is not known.
    NaN is missing in both. Settings of None leave the columns as they are.
    """
    d = X.shape[1]
    if settings is None or d == 0:
        return Inputs(d, tuple(range(d)), ("",) * d)
    coded = [] if categorical is None else [j for j in range(d) if categorical[j]]
    plain = [j for j in range(d) if categorical is None or not categorical[j]]
    with ignore_overflow():  # infinities are clipped
        low, high, gaps = _extremes(X)
        xp = array_namespace(X)
        total = float(X.shape[0] if counts is None else xp.sum(counts, dtype=xp.float64))
        rows = Training(X, counts, total, gaps)
        numbers, knots = _learn_numbers(rows, plain, (low, high), settings)
        # weights of any scale: two rows' worth, not the weight 2
        least = settings.min_frequency * (1.0 if counts is None else total / rows_worth(to_host(counts)))
        tallies = [Tally.of(*rows.column(j), bool(gaps[j]), total, least) for j in coded]
        tallies = [tally.narrowed(settings.max_categories) for tally in tallies]
        most = _most_columns([*(k.wanted for k in knots), *(t.wanted for t in tallies)], settings.max_columns)
        knots = [k.narrowed(most) for k in knots]
        # even where the budget is spent, the most frequent category stays apart from the others
        tallies = [tally.narrowed(max(1, most) + 1) for tally in tallies]
        return _inputs(rows, numbers, knots, tallies, plain, coded)


def _most_columns(wanted: list[int], budget: int) -> int:
    """Return how many columns one source column may ask for, so that all together meet the budget."""
    every = range(1, max(wanted, default=0) + 1)
    return bisect_right(every, budget, key=lambda most: sum(min(w, most) for w in wanted))


def _extremes(X: Array) -> tuple[Array, Array, numpy.ndarray]:
    """Return the smallest and largest number of each column of X, and which columns have gaps."""
    xp = array_namespace(X)
    low, high = xp.min(X, axis=0), xp.max(X, axis=0)
    gaps = to_host(xp.isnan(low))
    if gaps.any():
        far = xp.full_like(low, float("inf"))
        low, high = far, -far
        for rows in row_blocks(X, *X.shape):
            Z = X[rows, :]
            missing = xp.isnan(Z)
            low = xp.minimum(low, xp.min(xp.where(missing, far, Z), axis=0))
            high = xp.maximum(high, xp.max(xp.where(missing, -far, Z), axis=0))
        nothing = low > high  # all values are missing: as constant as a column of zeros
        low, high = (xp.where(nothing, xp.zeros_like(low), bound) for bound in (low, high))
    return low, high, gaps


# --- numbers ---------------------------------------------------------------------------------------------


def _learn_numbers(
    rows: Training, plain: list[int], ends: tuple[Array, Array], settings: EncoderSettings
) -> tuple[Numbers | None, list[Knots]]:
    """Learn the scale of the number columns and, for bins, their knots.

    scikit-learn's StandardScaler is not used: it copies X, overflows on columns of 1e200, and scales what
    rounding left of a constant column. Here constant columns become 0.
    """
    if not plain:
        return None, []
    X, xp = rows.X, array_namespace(rows.X)
    columns = None if len(plain) == X.shape[1] else from_numpy(plain, X, xp.int64)
    low, high = ends if columns is None else (xp.take(end, columns) for end in ends)
    largest = xp.maximum(xp.abs(low), xp.abs(high))
    # compare the extremes, not the variance: rounding leaves a variance in constant columns
    divisor = xp.where(low == high, xp.full_like(largest, float("inf")), largest)
    center, spread, knots = None, None, [NOTHING] * len(plain)
    if settings.numbers != "standard":
        robust = [_robust_column(rows, j, divisor[k], settings) for k, j in enumerate(plain)]
        center, spread = (from_numpy([r[i] for r in robust], X) for i in (0, 1))
        knots = [r[2] for r in robust]
    fill, with_gaps = center, bool(rows.gaps[plain].any())
    if fill is None and with_gaps:
        fill = _observed_means((taken(Z, columns) / divisor, counts) for Z, counts in rows.blocks(X.shape[1]))
    numbers = Numbers(columns, divisor, fill, center, spread, None, None)

    def seen(Z: Array) -> Array:
        Z = taken(Z, columns) / divisor
        return numbers.clipped(xp.where(xp.isnan(Z), fill, Z) if with_gaps else Z)

    mean, variance = moments((seen(Z), counts) for Z, counts in rows.blocks(X.shape[1]))
    # a column whose spread is lost in rounding is only centred
    sd = xp.where(variance > 0, xp.sqrt(variance), xp.ones_like(variance))
    return dataclasses.replace(numbers, fill=mean if fill is None else fill, mean=mean, sd=sd), knots


def _observed_means(blocks: Iterator[tuple[Array, Array | None]]) -> Array:
    """Return the weighted means of the numbers that are not missing; 0 where all are."""
    total, weight = 0.0, 0.0
    for Z, counts in blocks:
        xp = array_namespace(Z)
        missing = xp.isnan(Z)
        w = xp.ones_like(Z[:, 0]) if counts is None else counts
        total = total + w @ xp.where(missing, xp.zeros_like(Z), Z)
        weight = weight + w @ xp.astype(~missing, Z.dtype)
    return total / xp.where(weight > 0, weight, xp.ones_like(weight))


def _robust_column(
    rows: Training, j: int, divisor: Array, settings: EncoderSettings
) -> tuple[float, float, Knots]:
    """Return median, robust standard deviation and knots of a number column, after the division."""
    if float(divisor) == float("inf"):
        return 0.0, 1.0, NOTHING
    values, counts = rows.column(j)
    ranked = Ranked.of(values / divisor, counts)
    first, median, third = ranked.quantiles([0.25, 0.5, 0.75])
    spread = float(third - first) / NORMAL_IQR
    if spread <= 0:
        _, variance = moments([(ranked.values[:, None], ranked.counts)])
        spread = float(variance[0]) ** 0.5 or 1.0
    if settings.numbers == "robust":
        return float(median), spread, NOTHING
    found = ranked.distinct(settings.max_values)
    if found is None:
        shares = [k / settings.n_bins for k in range(settings.n_bins + 1)]
        return float(median), spread, Knots(numpy.unique(ranked.quantiles(shares)), None)
    values, weights = found
    weights[numpy.searchsorted(values, median)] += rows.missing(j)  # missing ones are imputed
    return float(median), spread, Knots(values, weights)


def _learn_bins(rows: Training, numbers: Numbers, knots: list[Knots]) -> Bins:
    """Learn the bins between the knots of the number columns."""
    X, xp = rows.X, array_namespace(rows.X)
    left, right = (numpy.concatenate([k.at[cut] for k in knots]) for cut in (slice(-1), slice(1, None)))
    slope = numpy.minimum(1 / (right - left), numpy.finfo(right.dtype).max ** 0.5)  # that of a step is finite
    columns = numpy.repeat(numpy.arange(len(knots)), [max(0, len(k.at) - 1) for k in knots])
    columns, left, slope = from_numpy(columns, X, xp.int64), from_numpy(left, X), from_numpy(slope, X)
    zeros, ones = xp.zeros_like(left), xp.ones_like(left)
    raw = Bins(columns, left, slope, zeros, zeros, ones)
    mean, variance = moments((raw.of(numbers.filled(Z)), c) for Z, c in rows.blocks(left.shape[0]))
    sd = xp.where(variance > 0, xp.sqrt(variance), ones)
    low, high = (xp.clip((end - mean) / sd, -CUT, CUT) for end in (zeros, ones))
    return Bins(columns, left, slope / sd, -mean / sd, low, high)


# --- all together ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Hot:
    """One one-hot column."""

    source: int
    label: str | int
    column: int  # among the number columns, then the places of categories
    low: float
    high: float
    on: float
    off: float


def _inputs(
    rows: Training,
    numbers: Numbers | None,
    knots: list[Knots],
    tallies: list[Tally],
    plain: list[int],
    coded: list[int],
) -> Inputs:
    """Put the encoded columns in order: numbers, where they are missing, bins, values, categories."""
    X, xp = rows.X, array_namespace(rows.X)
    named: list[tuple[int, str | int]] = [(j, "") for j in plain]
    missing = bins = categories = None
    gaps = [j for j in plain if rows.gaps[j] and rows.missing(j) < rows.total]  # not where all are missing
    if gaps:
        named += [(j, "missing") for j in gaps]
        missing = from_numpy(gaps, X, xp.int64)
    edges = [k if k.weights is None and k.wanted else NOTHING for k in knots]
    if numbers is not None and any(k.wanted for k in edges):
        named += [(j, f"bin{i}") for j, k in zip(plain, edges, strict=True) for i in range(k.wanted)]
        bins = _learn_bins(rows, numbers, edges)
    hots = []
    for i, (j, k) in enumerate(zip(plain, knots, strict=True)):
        if numbers is not None and k.weights is not None and k.wanted:
            hots += _hots_of_values(k.at, k.weights / rows.total, j, i, float(numbers.divisor[i]))
    if coded:
        categories, more = _learn_categories(rows, tallies, coded, len(plain))
        hots += more
    named += [(hot.source, hot.label) for hot in hots]
    onehots = _onehots(hots, X) if hots else None
    source, labels = (tuple(part) for part in zip(*named, strict=True))
    return Inputs(len(named), source, labels, numbers, missing, bins, categories, onehots)


def _hots_of_values(at: numpy.ndarray, shares: numpy.ndarray, j: int, column: int, unit: float) -> list[Hot]:
    """Return a one-hot column for each value: those nearest to it, between the middles to its neighbours."""
    middles = at[:-1] / 2 + at[1:] / 2
    middles = numpy.where(middles > at[:-1], middles, at[1:]).tolist()  # between neighbouring floats is none
    ends = zip([-float("inf"), *middles], [*middles, float("inf")], strict=True)
    sds = numpy.sqrt(shares * (1 - shares))
    sds = numpy.where(sds > 0, sds, 1.0)  # a value whose weight is lost in rounding
    heights = numpy.clip(numpy.stack([(1 - shares) / sds, -shares / sds], axis=1), -CUT, CUT)
    return [
        Hot(j, f"is_{float(f'{value * unit:.12g}')}", column, *end, *height)
        for value, end, height in zip(at.tolist(), ends, heights.tolist(), strict=True)
    ]


def _learn_categories(
    rows: Training, tallies: list[Tally], coded: list[int], first: int
) -> tuple[Categories, list[Hot]]:
    """Give categories their places, and return the one-hot columns of these, of 0 and 1.

    They are not brought to variance 1: a column of 50 categories would weigh as much as 50 numbers, and
    rare categories most. The ridge shrinks the effect of a column of 0 and 1 the more, the rarer it is.
    """
    X, xp = rows.X, array_namespace(rows.X)
    tables, hots = [], []
    for i, (j, tally) in enumerate(zip(coded, tallies, strict=True)):
        groups, places = tally.groups()
        tables.append(places)
        on = float(len(groups) > 1)  # a constant column is 0: unseen categories must not leave a constant
        hots += [Hot(j, label, first + i, p - 0.5, p + 0.5, on, 0.0) for p, label in enumerate(groups)]
    ends = numpy.cumsum([len(table) for table in tables])
    starts = ends - [len(table) for table in tables]
    table, start, end = (from_numpy(part, X) for part in (numpy.concatenate(tables), starts, ends - 1))
    return Categories(from_numpy(coded, X, xp.int64), table, start, end), hots


def _onehots(hots: list[Hot], like: Array) -> OneHots:
    """Put one-hot columns side by side."""
    parts = ([getattr(hot, name) for hot in hots] for name in ("low", "high", "on", "off"))
    columns = from_numpy([hot.column for hot in hots], like, array_namespace(like).int64)
    return OneHots(columns, *(from_numpy(part, like) for part in parts))
