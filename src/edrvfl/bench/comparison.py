"""Compare methods on many datasets: average ranks, and the tests of Friedman, Wilcoxon, Holm and Nemenyi.

Every function takes a score table: a `pandas.DataFrame` with a row for each dataset, a column for each
method and the accuracy in percent, NaN where there is none. The accuracies are rounded as they are printed
before anything is compared, so float noise breaks no tie and a reader can check every number on the page.
Ranks and tests use the rows without a gap. Where less is better, as with log-loss, the table holds the
negative numbers, and `digits` says how many of them are printed.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction
from functools import cached_property

import numpy as np
import pandas as pd
from scipy import stats

ALPHA = 0.05
FEWEST = 6  # datasets on which Wilcoxon's test can be significant: 2 / 2^5 > 0.05 > 2 / 2^6
DIGITS = 2  # of an accuracy in percent, as the paper prints it
NOISE_DIGITS = 9  # digits beyond the printed ones that are still trusted; float noise is smaller


def round_half_up(value: float | Fraction, digits: int = DIGITS) -> float:
    """Round as papers do: half up, in decimal. 80.395 becomes 80.4 although its binary value is smaller.

    >>> round_half_up(80.395), round(80.395, 2)
    (80.4, 80.39)
    """
    if isinstance(value, Fraction):
        exact = Decimal(value.numerator) / Decimal(value.denominator)
    elif math.isfinite(value):
        exact = Decimal(repr(round(float(value), digits + NOISE_DIGITS)))
    else:
        return float(value)
    return float(exact.quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP))


def mean(values: Iterable[float], digits: int = DIGITS) -> float:
    """Compute the mean of printed numbers in decimal and round it half up."""
    exact = [Fraction(repr(float(value))) for value in values]
    return round_half_up(sum(exact, Fraction(0)) / len(exact), digits)


# --- score tables ----------------------------------------------------------------------------------------


def score_table(
    cells: Mapping[tuple[str, str], float],
    datasets: Sequence[str],
    methods: Sequence[str],
    digits: int = DIGITS,
) -> pd.DataFrame:
    """Build a score table from accuracies by (dataset, method). What is absent or not finite becomes NaN."""
    rows = [[round_half_up(cells.get((d, m), math.nan), digits) for m in methods] for d in datasets]
    table = pd.DataFrame(rows, index=list(datasets), columns=list(methods), dtype=float)
    return table.where(np.isfinite(table))


def comparable(scores: pd.DataFrame) -> pd.DataFrame:
    """Keep the methods with the most datasets: as many as make the largest table without a gap.

    Otherwise one method that ran on three datasets would reduce the comparison of all the others to these
    three. At least two methods are kept, because there must be something to compare.
    """
    have = scores.notna().sum()
    tables = [scores.loc[:, have >= least] for least in sorted(set(have))]
    wide = [table for table in tables if table.shape[1] >= min(2, scores.shape[1])]
    return max(wide, key=lambda t: (t.shape[1] * len(t.dropna()), t.shape[1]), default=scores)


def means(scores: pd.DataFrame, digits: int = DIGITS) -> dict[str, float]:
    """Average each method over the rows without a gap. The result is empty if there is no such row."""
    complete = scores.dropna()
    return {method: mean(complete[method], digits) for method in complete} if len(complete) else {}


def average_ranks(scores: pd.DataFrame, digits: int | None = DIGITS) -> dict[str, float]:
    """Rank the methods on each dataset, 1 for the best, and average over the rows without a gap.

    Equal accuracies share the mean of their ranks. `digits=None` leaves the averages unrounded.
    """
    complete = scores.dropna()
    if complete.empty:
        return {}
    # Ranks are whole or half numbers, so their sums are exact and so are the fractions.
    totals = complete.rank(axis=1, ascending=False).sum()
    exact = {method: Fraction(float(total)) / len(complete) for method, total in totals.items()}
    return {m: float(rank) if digits is None else round_half_up(rank, digits) for m, rank in exact.items()}


# --- tests -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Friedman:
    """Result of Friedman's test, which asks whether the methods' ranks differ at all."""

    statistic: float  # chi-square approximation, corrected for ties
    p_value: float
    n_methods: int
    n_datasets: int


def friedman(scores: pd.DataFrame) -> Friedman | None:
    """Run Friedman's test. Returns None with fewer than three methods or two datasets."""
    complete = scores.dropna()
    n, k = complete.shape
    if k < 3 or n < 2:
        return None
    if not np.ptp(complete.to_numpy(), axis=1).any():  # all methods equal everywhere: SciPy computes 0 / 0
        return Friedman(0.0, 1.0, k, n)
    found = stats.friedmanchisquare(*complete.to_numpy().T)
    return Friedman(float(found.statistic), float(found.pvalue), k, n)


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two methods, compared dataset by dataset with the two-sided Wilcoxon signed-rank test.

    `wins` counts the datasets on which the first method is better. Datasets with equal accuracies are left
    out of the test. `p_normal` is the normal approximation, its variance corrected for ties and without
    continuity correction; `p_exact` counts all assignments of signs; `p_holm` is `p_normal` adjusted for
    the number of pairs that were compared.
    """

    first: str
    second: str
    wins: int
    ties: int
    losses: int
    mean_difference: float
    direction: int  # 1 if the rank sum favours the first method, -1 if the second, 0 if neither
    p_normal: float
    p_exact: float
    p_holm: float

    def reversed(self) -> Comparison:
        """The same comparison, seen from the second method."""
        return dataclasses.replace(
            self,
            first=self.second,
            second=self.first,
            wins=self.losses,
            losses=self.wins,
            mean_difference=-self.mean_difference,
            direction=-self.direction,
        )


def compare(scores: pd.DataFrame, first: str, second: str, digits: int = DIGITS) -> Comparison:
    """Compare two methods on the datasets that all methods of the table have.

    A single comparison needs no adjustment, so `p_holm` is `p_normal` here.
    """
    complete = scores.dropna()
    # Rounded again, because the difference of two rounded numbers is not rounded: 30.3 - 30.2 > 0.1.
    differences = (complete[first] - complete[second]).to_numpy().round(digits)
    wins, losses = int((differences > 0).sum()), int((differences < 0).sum())
    difference = mean(differences, digits) if len(differences) else 0.0
    direction, p_normal, p_exact = signed_rank(differences)
    ties = len(differences) - wins - losses
    return Comparison(
        first, second, wins, ties, losses, difference, direction, p_normal, p_exact, p_holm=p_normal
    )


def signed_rank(differences: np.ndarray) -> tuple[int, float, float]:
    """Run Wilcoxon's signed-rank test. Returns the direction and two p-values, normal and exact.

    `scipy.stats.wilcoxon(method="exact")` is exact only without ties: its null distribution is that of the
    ranks 1, 2, ..., n. With ties SciPy needs a permutation test, which for 24 datasets visits 2^24 sign
    patterns. Counting how many subsets of the ranks have each sum gives the same p-value in a few additions.
    """
    nonzero = differences[differences != 0]
    if not len(nonzero):
        return 0, 1.0, 1.0
    normal = stats.wilcoxon(nonzero, method="asymptotic", correction=False).pvalue
    twice = np.rint(2 * stats.rankdata(np.abs(nonzero))).astype(int)  # whole numbers: tied ranks are halves
    counts = np.array([1], dtype=object)  # Python integers do not overflow at 2^63
    for rank in twice:
        shifted = np.zeros(len(counts) + rank, dtype=object)
        shifted[: len(counts)] += counts
        shifted[rank:] += counts
        counts = shifted
    better, worse = int(twice[nonzero > 0].sum()), int(twice[nonzero < 0].sum())
    tail = int(counts[: min(better, worse) + 1].sum())
    exact = float(min(Fraction(1), Fraction(2 * tail, 2 ** len(nonzero))))
    return (better > worse) - (better < worse), float(min(1.0, normal)), exact


@dataclass(frozen=True, slots=True)
class Pairwise:
    """Wilcoxon's test for every pair of methods."""

    methods: tuple[str, ...]  # best average rank first
    comparisons: tuple[Comparison, ...]  # each pair once, the method of the better rank first

    def pair(self, row: str, column: str) -> Comparison:
        """Look up the comparison of two methods, seen from the first."""
        for c in self.comparisons:
            if (c.first, c.second) == (row, column):
                return c
            if (c.second, c.first) == (row, column):
                return c.reversed()
        raise KeyError((row, column))

    def sign(self, row: str, column: str, *, holm: bool) -> str:
        """Give + if the row's method is better than the column's, - if worse, "" if not significantly so."""
        c = self.pair(row, column)
        if (c.p_holm if holm else c.p_normal) >= ALPHA:
            return ""
        return "+" if c.direction > 0 else "-"


def compare_pairs(scores: pd.DataFrame, digits: int = DIGITS) -> Pairwise:
    """Compare every pair of methods and adjust the p-values with Holm's method."""
    ranks = average_ranks(scores, digits=None)
    order = tuple(sorted(scores.columns, key=lambda m: ranks.get(m, 0.0)))
    complete = scores.dropna()
    pairs = [compare(complete, a, b, digits) for a, b in itertools.combinations(order, 2)]
    adjusted = holm([c.p_normal for c in pairs])
    pairs = [dataclasses.replace(c, p_holm=p) for c, p in zip(pairs, adjusted, strict=True)]
    return Pairwise(order, tuple(pairs))


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjust p-values for their number by Holm's method.

    statsmodels has it too, but collects all garbage at each call, which takes longer than the tests.
    """
    p = np.asarray(p_values, dtype=float)
    order = np.argsort(p)
    steps = p[order] * np.arange(len(p), 0, -1)
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(steps))
    return [float(value) for value in adjusted]


@dataclass(frozen=True, slots=True)
class CriticalDifference:
    """Result of Nemenyi's test: two average ranks closer than `difference` cannot be told apart."""

    methods: tuple[str, ...]  # best average rank first
    ranks: tuple[float, ...]
    difference: float
    p_values: pd.DataFrame  # method against method, in the order of `methods`
    n_datasets: int


def critical_difference(scores: pd.DataFrame) -> CriticalDifference | None:
    """Run Nemenyi's test. Returns None with fewer than two methods or datasets."""
    complete = scores.dropna()
    n, k = complete.shape
    if k < 2 or n < 2:
        return None
    by_rank = sorted(average_ranks(complete, digits=None).items(), key=lambda item: item[1])
    methods, ranks = zip(*by_rank, strict=True)
    import scikit_posthocs  # it imports matplotlib.pyplot, which most commands do not need

    p = scikit_posthocs.posthoc_nemenyi_friedman(complete).loc[list(methods), list(methods)].clip(upper=1.0)
    # scikit-posthocs gives p-values only; the difference itself is drawn in the figure (Demsar 2006).
    difference = float(stats.studentized_range.ppf(1 - ALPHA, k, np.inf)) * math.sqrt(k * (k + 1) / (12 * n))
    return CriticalDifference(methods, ranks, difference, p, n)


# --- all of it -------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Ranking:
    """A table of figures, and what follows from the methods and datasets of it that are compared."""

    scores: pd.DataFrame  # every figure; NaN where there is none
    compared: pd.DataFrame  # of these, a table without a gap
    digits: int = DIGITS
    sign: int = 1  # -1 where less is better

    @classmethod
    def of(cls, scores: pd.DataFrame, digits: int = DIGITS, sign: int = 1) -> Ranking:
        """Compare as many methods and datasets as make the largest table without a gap."""
        return cls(scores, comparable(scores).dropna(), digits, sign)

    @property
    def common(self) -> tuple[str, ...]:
        """The datasets that means, ranks and tests are over."""
        return tuple(self.compared.index)

    @property
    def behind(self) -> list[str]:
        """The methods that are not compared, because they have fewer datasets."""
        return [method for method in self.scores if method not in self.compared]

    @cached_property
    def means(self) -> dict[str, float]:
        return means(self.compared, self.digits)

    @cached_property
    def ranks(self) -> dict[str, float]:
        return average_ranks(self.sign * self.compared)

    @property
    def by_rank(self) -> list[str]:
        """The compared methods, best average rank first."""
        return sorted(self.ranks, key=lambda m: (self.ranks[m], -self.sign * self.means[m]))

    @cached_property
    def friedman(self) -> Friedman | None:
        return friedman(self.sign * self.compared)

    @cached_property
    def pairs(self) -> Pairwise:
        """Wilcoxon's test of every pair."""
        return compare_pairs(self.sign * self.compared, digits=self.digits)
