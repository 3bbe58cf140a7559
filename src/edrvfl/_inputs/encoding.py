"""Learn how the columns of X are encoded: from the rows of one fit or one split, never before."""

from __future__ import annotations

import dataclasses
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

import numpy

from .._seam.arrays import Array, array_namespace, from_numpy, ignore_overflow
from .categories import Tally
from .columns import Columns, Part
from .inputs import CUT, Bins, Categories, Inputs, Numbers, OneHots, Ranks
from .moments import Moments
from .rows import to_host
from .sums import InMemory, InOrder, Look, Measure, TrainingSums

QUARTILES = (0.25, 0.5, 0.75)
RANK_STEPS = 64  # between quantiles
# Ranks tell two values apart if they differ by more than this share of the largest: sines of hours that
# should be equal differ by a third of it, otherwise on each machine and in ONNX, and a rank would jump.
RANK_DIGITS = 16 * float(numpy.finfo(numpy.float64).eps)
NORMAL_IQR = 1.349  # the interquartile range of a normal distribution of variance 1


@dataclass(frozen=True, slots=True)
class EncoderSettings:
    """How columns are encoded."""

    numbers: str = "standard"  # or "robust", "bins" or "ranks"
    n_bins: int = 16
    max_values: int = 12  # with "bins", a number column of 3 to so many values is one-hot
    max_categories: int = 64  # one-hot columns of one categorical column; of more, the rarest share half
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


def learn_inputs(
    X: Array,
    counts: Array | None,
    settings: EncoderSettings | None,
    categorical: Sequence[bool] | None = None,
    parts: Sequence[Part] | None = None,
) -> Inputs:
    """Learn the encoding of the columns of X (m, d) from rows of weight `counts` (m,).

    Number columns hold numbers, categorical ones codes 0, 1, ..., or -1 for a category that is not known.
    NaN is missing in both. `parts` tells what columns are; without it each is a column of its own. Settings
    of None leave the columns as they are.
    """
    d = X.shape[1]
    if settings is None or d == 0:
        return Inputs(d, tuple(range(d)), ("",) * d)
    parts = [Part(j, j) for j in range(d)] if parts is None else parts
    return learn_from_sums(InMemory(X, counts), settings, categorical, parts)


def learn_from_sums(
    rows: TrainingSums, settings: EncoderSettings, categorical: Sequence[bool] | None, parts: Sequence[Part]
) -> Inputs:
    """Learn the encoding of columns from sums over training rows, see `learn_inputs`."""
    d = len(parts)
    coded = [] if categorical is None else [j for j in range(d) if categorical[j]]
    plain = [j for j in range(d) if categorical is None or not categorical[j]]
    with ignore_overflow():  # infinities are clipped
        look = rows.look(coded)
        least = settings.min_frequency * look.one  # weights of any scale: two rows' worth, not the weight 2
        tallies = {
            j: Tally.of(weights, bool(look.missing[j] > 0), look.total, least, parts[j].categories)
            for j, weights in zip(coded, look.codes, strict=True)
        }
        n_frequent = {j: len(tally.frequent) for j, tally in tallies.items()}
        tallies = {j: tally.narrowed(settings.max_categories) for j, tally in tallies.items()}
        plain, tallies = _varied(look, plain, tallies, parts)
        numbers, knots = _learn_scales(rows, look, plain, settings) if plain else (None, {})
        knots = {j: k if parts[j].bins else NOTHING for j, k in knots.items()}
        wanted = [k.wanted for k in knots.values()] + [tally.wanted for tally in tallies.values()]
        most = _most_columns(wanted, settings.max_columns)
        knots = {j: k.narrowed(most) for j, k in knots.items()}
        # even where the budget is spent, the most frequent category stays apart from the others
        tallies = {j: tally.narrowed(max(1, most) + 1) for j, tally in tallies.items()}
        many = [j for j, tally in tallies.items() if len(tally.frequent) < n_frequent[j]]
        bins = _raw_bins(list(knots.values()), rows.like)
        if numbers is not None:
            gaps = bool((look.missing[plain] > 0).any())
            measured = rows.total(Measure(numbers, bins, gaps))
            variances = [parts[j].variance for j in plain]
            numbers = _standardised(numbers, measured.numbers, look.total, variances)
            bins = None if bins is None else _standard_bins(bins, measured.bins)
        inputs = _inputs(rows.like, look, (numbers, bins), knots, tallies, parts)
    if not many:
        return inputs
    return dataclasses.replace(inputs, many=from_numpy(many, rows.like, array_namespace(rows.like).int64))


def _varied(
    look: Look, plain: list[int], tallies: dict[int, Tally], parts: Sequence[Part]
) -> tuple[list[int], dict[int, Tally]]:
    """Leave out constant columns, which say nothing: neurons that see few columns would see these.

    A gap beside values is a variation. If no column varies all stay, so that a network has an input.
    """
    low, high = (to_host(end) for end in look.ends())

    def varies(j: int) -> bool:
        if parts[j].least:  # a wave; another part tells of gaps
            return bool(high[j] - low[j] >= parts[j].least)
        return bool(low[j] != high[j] or 0 < look.missing[j] < look.total)

    varied = [j for j in plain if varies(j)]
    several = {j: tally for j, tally in tallies.items() if len(tally.groups()[0]) > 1}
    return (varied, several) if varied or several else (plain, tallies)


def _most_columns(wanted: list[int], budget: int) -> int:
    """Return how many columns one source column may ask for, so that all together meet the budget."""
    every = range(1, max(wanted, default=0) + 1)
    return bisect_right(every, budget, key=lambda most: sum(min(w, most) for w in wanted))


# --- numbers ---------------------------------------------------------------------------------------------


def _learn_scales(
    rows: TrainingSums, look: Look, plain: list[int], settings: EncoderSettings
) -> tuple[Numbers, dict[int, Knots]]:
    """Learn what number columns are divided by, their robust scale and, for bins, their knots.

    scikit-learn's StandardScaler is not used: it copies X, overflows on columns of 1e200, and scales what
    rounding left of a constant column. Here constant columns become 0.
    """
    like, xp = rows.like, array_namespace(rows.like)
    columns = None if len(plain) == len(look.missing) else from_numpy(plain, like, xp.int64)
    low, high = look.ends() if columns is None else (xp.take(end, columns) for end in look.ends())
    largest = xp.maximum(xp.abs(low), xp.abs(high))
    # compare the extremes, not the variance: rounding leaves a variance in constant columns
    divisor = xp.where(low == high, xp.full_like(largest, float("inf")), largest)
    center, spread, knots = None, None, dict.fromkeys(plain, NOTHING)
    if settings.numbers == "ranks":
        fill, ranks = _rank_columns(rows, look, plain, divisor)
        return Numbers(columns, divisor, fill, None, None, None, None, ranks), knots
    if settings.numbers != "standard":
        robust = _robust_columns(rows, look, plain, divisor, settings)
        center, spread = (from_numpy([r[i] for r in robust], like) for i in (0, 1))
        knots = {j: r[2] for j, r in zip(plain, robust, strict=True)}
    return Numbers(columns, divisor, center, center, spread, None, None), knots


def _rank_columns(rows: TrainingSums, look: Look, plain: list[int], divisor: Array) -> tuple[Array, Ranks]:
    """Return the medians of the number columns, and what makes ranks of numbers, after the division.

    Between quantiles a rank rises straight, and where many rows have one value it rises by their share.
    """
    units, like = to_host(divisor), rows.like
    varied = [k for k in range(len(plain)) if units[k] != numpy.inf]
    shares = [k / RANK_STEPS for k in range(RANK_STEPS + 1)]
    medians, steps = numpy.zeros(len(plain)), numpy.zeros((3, RANK_STEPS, len(plain)))
    found = rows.in_order(look, [plain[k] for k in varied], units[varied], shares)
    for k, column in zip(varied, found, strict=True):
        at = column.quantiles(shares) / units[k]
        medians[k] = at[RANK_STEPS // 2]
        knots, first = numpy.unique(at, return_index=True)
        apart = numpy.diff(knots) > min(RANK_DIGITS, (knots[-1] - knots[0]) / 1000)  # two stay, however close
        knots, first = knots[[True, *apart]], first[[True, *apart]]
        n = len(knots) - 1
        steps[0, :n, k], steps[2, :n, k] = knots[:-1], numpy.diff(first) / RANK_STEPS
        limit = float(numpy.finfo(at.dtype).max) ** 0.5  # that of a step is finite
        steps[1, :n, k] = numpy.minimum(1 / numpy.diff(knots), limit)
    return from_numpy(medians, like), Ranks(*(from_numpy(part, like) for part in steps))


def _robust_columns(
    rows: TrainingSums, look: Look, plain: list[int], divisor: Array, settings: EncoderSettings
) -> list[tuple[float, float, Knots]]:
    """Return median, robust standard deviation and knots of the number columns, after the division."""
    units = to_host(divisor)
    varied = [k for k in range(len(plain)) if units[k] != numpy.inf]
    shares = list(QUARTILES)
    if settings.numbers == "bins":
        shares += [k / settings.n_bins for k in range(settings.n_bins + 1)]
    found: list[tuple[float, float, Knots]] = [(0.0, 1.0, NOTHING)] * len(plain)
    columns = [plain[k] for k in varied]
    in_order = rows.in_order(look, columns, units[varied], shares)
    for k, column in zip(varied, in_order, strict=True):
        found[k] = _robust_column(column, units[k], shares, float(look.missing[plain[k]]), settings)
    return found


def _robust_column(
    column: InOrder, unit: numpy.floating, shares: list[float], missing: float, settings: EncoderSettings
) -> tuple[float, float, Knots]:
    """Return median, robust standard deviation and knots of one column."""
    quantiles = column.quantiles(shares) / unit
    first, median, third = quantiles[: len(QUARTILES)]
    spread = float(third - first) / NORMAL_IQR
    if spread <= 0:
        spread = column.variance(float(unit)) ** 0.5 or 1.0
    if settings.numbers == "robust":
        return float(median), spread, NOTHING
    found = column.distinct(settings.max_values)
    if found is None:
        return float(median), spread, Knots(numpy.unique(quantiles[len(QUARTILES) :]), None)
    values, places = numpy.unique(found[0] / unit, return_inverse=True)  # the division may make two alike
    weights = numpy.bincount(places, found[1])
    weights[numpy.searchsorted(values, median)] += missing  # missing ones are imputed
    return float(median), spread, Knots(values, weights)


def _standardised(numbers: Numbers, found: Moments, total: float, variances: Sequence[float]) -> Numbers:
    """Add the moments of the scaled numbers, which give them these variances.

    Numbers without a fill take the mean of those observed.
    """
    # rows at the mean add nothing to the scatter
    mean, variance = found.mean, found.scatter / total
    xp = array_namespace(mean)
    # a column whose spread is lost in rounding is only centred
    sd = xp.where(variance > 0, xp.sqrt(variance), xp.ones_like(variance))
    if any(wanted != 1.0 for wanted in variances):
        sd = sd / from_numpy([wanted**0.5 for wanted in variances], sd)
    fill = mean if numbers.fill is None else numbers.fill
    return dataclasses.replace(numbers, fill=fill, mean=mean, sd=sd)


def _raw_bins(knots: list[Knots], like: Array) -> Bins | None:
    """Return the bins between the knots of the number columns, from 0 to 1; None if there are none."""
    knots = [k if k.weights is None and k.wanted else NOTHING for k in knots]
    if not any(k.wanted for k in knots):
        return None
    xp = array_namespace(like)
    left, right = (numpy.concatenate([k.at[cut] for k in knots]) for cut in (slice(-1), slice(1, None)))
    slope = numpy.minimum(1 / (right - left), numpy.finfo(right.dtype).max ** 0.5)  # that of a step is finite
    columns = numpy.repeat(numpy.arange(len(knots)), [max(0, len(k.at) - 1) for k in knots])
    columns, left, slope = (
        from_numpy(columns, like, xp.int64),
        from_numpy(left, like),
        from_numpy(slope, like),
    )
    zeros, ones = xp.zeros_like(left), xp.ones_like(left)
    return Bins(columns, left, slope, zeros, zeros, ones)


def _standard_bins(raw: Bins, found: Moments) -> Bins:
    """Bring bins to mean 0 and variance 1."""
    mean, variance = found.mean, found.scatter / found.weight
    xp = array_namespace(mean)
    sd = xp.where(variance > 0, xp.sqrt(variance), xp.ones_like(variance))
    low, high = (xp.clip((end - mean) / sd, -CUT, CUT) for end in (raw.low, raw.high))
    return Bins(raw.columns, raw.left, raw.slope / sd, -mean / sd, low, high)


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
    like: Array,
    look: Look,
    scaled: tuple[Numbers | None, Bins | None],
    knots: dict[int, Knots],
    tallies: dict[int, Tally],
    parts: Sequence[Part],
) -> Inputs:
    """Put the encoded columns in order: numbers, where they are missing, bins, values, categories."""
    numbers, bins = scaled
    named: list[tuple[int, str | int]] = [(j, "") for j in knots]
    missing = categories = None
    # not where all are missing, and the parts of a column are missing together
    first = {parts[j].column: j for j in reversed(knots)}.values()
    gaps = [j for j in sorted(first) if 0 < look.missing[j] < look.total]
    if gaps:
        named += [(j, "missing") for j in gaps]
        missing = from_numpy(gaps, like, array_namespace(like).int64)
    named += [(j, f"bin{i}") for j, k in knots.items() if k.weights is None for i in range(k.wanted)]
    hots = []
    for i, (j, k) in enumerate(knots.items()):
        if numbers is not None and k.weights is not None and k.wanted:
            hots += _hots_of_values(k.at, k.weights / look.total, j, i, float(numbers.divisor[i]))
    if tallies:
        categories, more = _learn_categories(like, tallies, len(knots))
        hots += more
    named += [(hot.source, hot.label) for hot in hots]
    onehots = _onehots(hots, like) if hots else None
    source = tuple(parts[j].source for j, _ in named)
    labels = tuple(_label(parts[j], label) for j, label in named)
    return Inputs(len(named), source, labels, numbers, missing, bins, categories, onehots)


def _label(part: Part, label: str | int) -> str | int:
    """Return what an encoded column adds to the name of its column of X."""
    if isinstance(label, int) or label == "missing" or not part.label:
        return label
    return f"{part.label}_{label}" if label else part.label


def _hots_of_values(at: numpy.ndarray, shares: numpy.ndarray, j: int, column: int, unit: float) -> list[Hot]:
    """Return a one-hot column for each value: those nearest to it, between the middles to its neighbours."""
    middles = at[:-1] / 2 + at[1:] / 2
    middles = numpy.where(middles > at[:-1], middles, at[1:]).tolist()  # between neighbouring floats is none
    ends = zip([-float("inf"), *middles], [*middles, float("inf")], strict=True)
    sds = numpy.sqrt(shares * (1 - shares))
    sds = numpy.where(sds > 0, sds, 1.0)  # a value whose weight is lost in rounding
    heights = numpy.clip(numpy.stack([(1 - shares) / sds, -shares / sds], axis=1), -CUT, CUT)
    return [
        Hot(j, f"is_{float(f'{value * unit + 0.0:.12g}')}", column, *end, *height)
        for value, end, height in zip(at.tolist(), ends, heights.tolist(), strict=True)
    ]


def _learn_categories(like: Array, tallies: dict[int, Tally], first: int) -> tuple[Categories, list[Hot]]:
    """Give categories their places, and return the one-hot columns of these, of 0 and 1.

    They are not brought to variance 1: a column of 50 categories would weigh as much as 50 numbers, and
    rare categories most. The ridge shrinks the effect of a column of 0 and 1 the more, the rarer it is.
    """
    xp = array_namespace(like)
    tables, hots = [], []
    for i, (j, tally) in enumerate(tallies.items()):
        groups, places = tally.groups()
        tables.append(places)
        on = float(len(groups) > 1)  # a constant column is 0: unseen categories must not leave a constant
        hots += [Hot(j, label, first + i, p - 0.5, p + 0.5, on, 0.0) for p, label in enumerate(groups)]
    ends = numpy.cumsum([len(table) for table in tables])
    starts = ends - [len(table) for table in tables]
    table, start, end = (from_numpy(part, like) for part in (numpy.concatenate(tables), starts, ends - 1))
    return Categories(from_numpy(list(tallies), like, xp.int64), table, start, end), hots


def _onehots(hots: list[Hot], like: Array) -> OneHots:
    """Put one-hot columns side by side."""
    parts = ([getattr(hot, name) for hot in hots] for name in ("low", "high", "on", "off"))
    columns = from_numpy([hot.column for hot in hots], like, array_namespace(like).int64)
    return OneHots(columns, *(from_numpy(part, like) for part in parts))


def largest_width(X: Array, settings: EncoderSettings | None, columns: Columns | None) -> int:
    """Return how many columns the encoding of any of these rows has at most."""
    d = int(X.shape[1])
    if settings is None or columns is None:
        return d
    parts = columns.parts
    xp = array_namespace(X)
    gaps = int(xp.sum(xp.astype(xp.isnan(xp.max(X, axis=0)), xp.int64)))  # a sum would overflow
    known = [len(categories) for categories in columns.categories if categories is not None]
    wanted = sum(min(n, settings.max_categories) for n in known)
    if settings.numbers == "bins":
        plain = sum(part.bins for part in parts) - len(known)
        wanted += plain * max(settings.n_bins, settings.max_values)
    return d + gaps + max(min(wanted, settings.max_columns), len(known))
