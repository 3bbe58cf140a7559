"""Many methods on many datasets: ranks, Friedman, Wilcoxon, Holm, Nemenyi; on scipy.

Everything follows from the accuracies as a table prints them: they are rounded, half up in decimal, before
they are compared, so that float noise breaks no tie and a reader can check every figure. Tests use the
datasets that all methods have; `Scores.complete` says which.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction

import numpy as np
from scipy import stats

ALPHA = 0.05
DIGITS = 2  # of an accuracy in percent, as the paper prints it
NOISE_DIGITS = 9  # float noise lies beyond


def round_half_up(value: float | Fraction, digits: int = DIGITS) -> float:
    """A number rounded as papers do, in decimal: 80.395 is 80.4, whatever its binary neighbour.

    Examples
    --------
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
    """The mean of printed figures, computed in decimal and rounded half up."""
    exact = [Fraction(repr(float(value))) for value in values]
    return round_half_up(sum(exact, Fraction(0)) / len(exact), digits)


def mean_and_sd(by_split_and_seed: Sequence[Sequence[float]]) -> tuple[float, float | None]:
    """Mean over the splits of each seed; mean and standard deviation (ddof 1) of these over the seeds."""
    by_seed = np.mean(by_split_and_seed, axis=0)
    return float(np.mean(by_seed)), float(np.std(by_seed, ddof=1)) if len(by_seed) > 1 else None


# --- the table -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Scores:
    """Accuracies in percent, a row for each dataset, rounded as printed; None: there is no figure."""

    datasets: tuple[str, ...]
    methods: tuple[str, ...]
    values: tuple[tuple[float | None, ...], ...]
    digits: int = DIGITS

    @classmethod
    def of(
        cls,
        cells: Mapping[tuple[str, str], float],
        datasets: Sequence[str],
        methods: Sequence[str],
        digits: int = DIGITS,
    ) -> Scores:
        """From figures by (dataset, method); what is absent or not finite is missing."""

        def printed(cell: float | None) -> float | None:
            return None if cell is None or not math.isfinite(cell) else round_half_up(cell, digits)

        rows = tuple(tuple(printed(cells.get((d, m))) for m in methods) for d in datasets)
        return cls(tuple(datasets), tuple(methods), rows, digits)

    def get(self, dataset: str, method: str) -> float | None:
        """One figure; None also for names that are not in the table."""
        if dataset not in self.datasets or method not in self.methods:
            return None
        return self.values[self.datasets.index(dataset)][self.methods.index(method)]

    def only(self, methods: Sequence[str]) -> Scores:
        """The columns of some methods, in their order."""
        at = [self.methods.index(method) for method in methods]
        rows = tuple(tuple(row[j] for j in at) for row in self.values)
        return Scores(self.datasets, tuple(methods), rows, self.digits)

    def complete(self) -> Scores:
        """The datasets that all methods have: what ranks and tests are computed over."""
        kept = [i for i, row in enumerate(self.values) if None not in row]
        names, rows = tuple(self.datasets[i] for i in kept), tuple(self.values[i] for i in kept)
        return Scores(names, self.methods, rows, self.digits)

    def comparable(self) -> Scores:
        """The methods with the most datasets, as many as make the largest table without a gap, at least two.

        One method that ran on a few datasets so does not narrow the comparison of all the others to these.
        """
        have = {m: sum(row[j] is not None for row in self.values) for j, m in enumerate(self.methods)}
        tables = [self.only([m for m in self.methods if have[m] >= least]) for least in set(have.values())]
        wide = [table for table in tables if len(table.methods) >= min(2, len(self.methods))]
        return max(
            wide, key=lambda t: (len(t.methods) * len(t.complete().datasets), len(t.methods)), default=self
        )

    def column(self, method: str) -> tuple[float, ...]:
        """A method's figures on the datasets that all methods have."""
        j = self.methods.index(method)
        return tuple(value for row in self.complete().values if (value := row[j]) is not None)

    def array(self) -> np.ndarray:
        """The figures on the datasets that all methods have, (datasets, methods)."""
        complete = self.complete()
        return np.array(complete.values, dtype=float).reshape(len(complete.datasets), len(self.methods))


def means(scores: Scores) -> dict[str, float]:
    """Mean accuracy over the datasets that all methods have; empty if there are none."""
    columns = {method: scores.column(method) for method in scores.methods}
    return {method: mean(column, scores.digits) for method, column in columns.items() if column}


def average_ranks(scores: Scores, digits: int | None = DIGITS) -> dict[str, float]:
    """Rank 1 for the best on a dataset, ties share; mean over the datasets that all methods have.

    Examples
    --------
    >>> average_ranks(Scores(("iris", "wine"), ("a", "b"), ((90.0, 80.0), (70.0, 70.0))))
    {'a': 1.25, 'b': 1.75}
    """
    A = scores.array()
    if not A.size:
        return {}
    twice = np.rint(2 * stats.rankdata(-A, axis=1)).astype(int).sum(axis=0)  # whole numbers: exact means
    exact = [Fraction(int(total), 2 * len(A)) for total in twice]
    ranks = [float(rank) if digits is None else round_half_up(rank, digits) for rank in exact]
    return dict(zip(scores.methods, ranks, strict=True))


# --- tests ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Friedman:
    """Whether the methods' ranks differ at all; chi-square approximation, corrected for ties."""

    statistic: float
    p_value: float
    n_methods: int
    n_datasets: int


def friedman(scores: Scores) -> Friedman | None:
    """Friedman's test; None with fewer than three methods or two datasets."""
    A = scores.array()
    n, k = A.shape
    if k < 3 or n < 2:
        return None
    if not np.ptp(A, axis=1).any():  # every dataset a tie of all: 0 / 0 in the statistic
        return Friedman(0.0, 1.0, k, n)
    found = stats.friedmanchisquare(*A.T)
    return Friedman(float(found.statistic), float(found.pvalue), k, n)


@dataclass(frozen=True, slots=True)
class Comparison:
    """Paired two-sided Wilcoxon signed-rank test; `wins` counts datasets on which the first is better.

    Datasets with equal figures are left out of the test. `p_normal` is the normal approximation with the
    variance corrected for ties and no continuity correction; `p_exact` counts all assignments of signs.
    """

    first: str
    second: str
    wins: int
    ties: int
    losses: int
    mean_difference: float
    direction: int  # 1 if the rank sum speaks for the first, -1 for the second
    p_normal: float
    p_exact: float

    def p_value(self, test: str = "normal") -> float:
        return {"normal": self.p_normal, "exact": self.p_exact}[test]


def compare(scores: Scores, first: str, second: str) -> Comparison:
    """Two methods on the datasets that all methods of the table have."""
    a, b = scores.column(first), scores.column(second)
    differences = np.round(np.subtract(a, b), scores.digits)
    wins, losses = int((differences > 0).sum()), int((differences < 0).sum())
    ties = len(differences) - wins - losses
    difference = mean(differences.tolist(), scores.digits) if len(differences) else 0.0
    return Comparison(first, second, wins, ties, losses, difference, *signed_rank(differences))


def signed_rank(differences: np.ndarray) -> tuple[int, float, float]:
    """Wilcoxon's signed-rank test: direction and two-sided p-values, normal approximation and exact.

    scipy's exact null distribution knows no ties; here every subset of the ranks, tied or not, is counted.
    """
    nonzero = differences[differences != 0]
    if not len(nonzero):
        return 0, 1.0, 1.0
    normal = stats.wilcoxon(nonzero, method="asymptotic", correction=False).pvalue
    twice = np.rint(2 * stats.rankdata(np.abs(nonzero))).astype(int)  # tied ranks are halves
    counts = np.array([1], dtype=object)  # Python integers: no overflow
    for rank in twice:
        shifted = np.zeros(len(counts) + rank, dtype=object)
        shifted[: len(counts)] += counts
        shifted[rank:] += counts
        counts = shifted
    better, worse = int(twice[nonzero > 0].sum()), int(twice[nonzero < 0].sum())
    tail = int(counts[: min(better, worse) + 1].sum())
    exact = float(min(Fraction(1), Fraction(2 * tail, 2 ** len(nonzero))))
    return (better > worse) - (better < worse), float(min(1.0, normal)), exact


def holm(p_values: Sequence[float]) -> tuple[float, ...]:
    """Holm's step-down adjustment: compare with alpha as they are.

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03])
    (0.03, 0.06, 0.06)
    """
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    adjusted, largest = [0.0] * len(p_values), 0.0
    for step, i in enumerate(order):
        largest = max(largest, (len(p_values) - step) * p_values[i])
        adjusted[i] = min(1.0, largest)
    return tuple(adjusted)


@dataclass(frozen=True, slots=True)
class Pairwise:
    """All pairs: p-values, adjusted by Holm and not, and the sign of the row against the column."""

    methods: tuple[str, ...]  # best average rank first
    test: str  # "normal" or "exact"
    alpha: float
    n_datasets: int
    comparisons: tuple[Comparison, ...]  # each pair once, the earlier method first
    adjusted: tuple[float, ...]  # by Holm, over all pairs

    def pair(self, row: str, column: str) -> Comparison:
        """The comparison of two methods, seen from the first."""
        for c in self.comparisons:
            if (c.first, c.second) == (row, column):
                return c
            if (c.second, c.first) == (row, column):
                p = (c.p_normal, c.p_exact)
                seen = (c.losses, c.ties, c.wins, -c.mean_difference, -c.direction)
                return Comparison(row, column, *seen, *p)
        raise KeyError((row, column))

    def p_value(self, row: str, column: str, *, adjust: bool) -> float:
        """The p-value of a pair, adjusted by Holm or not."""
        for c, p in zip(self.comparisons, self.adjusted, strict=True):
            if {c.first, c.second} == {row, column}:
                return p if adjust else c.p_value(self.test)
        raise KeyError((row, column))

    def sign(self, row: str, column: str, *, adjust: bool) -> str:
        """Whether the row's method is better (+) or worse (-) than the column's; empty: not significant."""
        if row == column or self.p_value(row, column, adjust=adjust) >= self.alpha:
            return ""
        return "+" if self.pair(row, column).direction > 0 else "-"


def pairwise(scores: Scores, test: str = "normal", alpha: float = ALPHA) -> Pairwise:
    """Wilcoxon's test for every pair of methods."""
    ranks = average_ranks(scores, digits=None)
    order = tuple(sorted(scores.methods, key=lambda m: ranks.get(m, 0.0)))
    pairs = tuple(compare(scores, a, b) for a, b in itertools.combinations(order, 2))
    adjusted = holm([c.p_value(test) for c in pairs])
    return Pairwise(order, test, alpha, len(scores.complete().datasets), pairs, adjusted)


@dataclass(frozen=True, slots=True)
class CriticalDifference:
    """Nemenyi's test on average ranks: ranks nearer than `difference` are not told apart.

    `groups` are the largest sets of neighbours in rank that are not told apart, best first.
    """

    methods: tuple[str, ...]  # best average rank first
    ranks: tuple[float, ...]
    difference: float
    p_values: tuple[tuple[float, ...], ...]
    groups: tuple[tuple[str, ...], ...]
    alpha: float
    n_datasets: int


def critical_difference(scores: Scores, alpha: float = ALPHA) -> CriticalDifference | None:
    """Nemenyi's critical difference and groups; None with fewer than two methods or datasets."""
    n, k = scores.array().shape
    if k < 2 or n < 2:
        return None
    by_rank = sorted(average_ranks(scores, digits=None).items(), key=lambda item: item[1])
    methods, ranks = zip(*by_rank, strict=True)
    unit = math.sqrt(k * (k + 1) / (12 * n))  # the studentized range of k, over sqrt(2)
    gaps = np.abs(np.subtract.outer(ranks, ranks))
    p = np.minimum(1.0, stats.studentized_range.sf(gaps / unit, k, np.inf))
    np.fill_diagonal(p, 1.0)
    cd = float(stats.studentized_range.ppf(1 - alpha, k, np.inf)) * unit
    groups: list[tuple[int, int]] = []
    for start in range(k):
        end = max(j for j in range(start, k) if ranks[j] - ranks[start] < cd)
        if end > start and (not groups or end > groups[-1][1]):  # not within the group before
            groups.append((start, end))
    named = tuple(methods[start : end + 1] for start, end in groups)
    matrix = tuple(tuple(row) for row in p.tolist())
    return CriticalDifference(methods, ranks, cd, matrix, named, alpha, n)
