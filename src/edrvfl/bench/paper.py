"""The paper's Tables 1 to 8 as data, and whether its summaries follow from its own Table 3.

The CSV files in published/ hold the numbers as printed; table3_summary.csv is the foot of Table 3. Tables
are read anew for each caller, because a `pandas.DataFrame` can be changed by whoever gets it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import pandas as pd

from .comparison import Comparison, Pairwise, average_ranks, compare_pairs, mean, means

BEST = "WPedRVFL"  # the method that Table 4 compares with all others
SD_SUFFIX = "_std"  # of the columns of Table 3 with standard deviations


def table(name: str) -> pd.DataFrame:
    """Read a table of the paper by the name of its file; the first column becomes the index."""
    with files(__package__).joinpath("published", f"{name}.csv").open(encoding="utf-8") as file:
        return pd.read_csv(file, index_col=0)


def accuracies() -> pd.DataFrame:
    """Table 3: accuracy in percent, 24 datasets and 12 methods."""
    printed = table("table3_accuracy")
    return printed[[c for c in printed if not c.endswith(SD_SUFFIX)]]


def standard_deviations() -> pd.DataFrame:
    """Table 3: standard deviation over ten seeds, of the five edRVFL methods."""
    printed = table("table3_accuracy").filter(regex=f"{SD_SUFFIX}$")
    return printed.rename(columns=lambda column: column.removesuffix(SD_SUFFIX))


@dataclass(frozen=True, slots=True)
class Foot:
    """The foot of Table 3 for one method: printed, and recomputed from the 24 rows above it."""

    method: str
    mean: float
    recomputed_mean: float
    rank: float
    recomputed_rank: float
    sd: float | None  # the paper prints it for the edRVFL methods only
    recomputed_sd: float | None

    @property
    def differs(self) -> bool:
        printed = (self.mean, self.rank, self.sd)
        return printed != (self.recomputed_mean, self.recomputed_rank, self.recomputed_sd)


@cache
def feet() -> tuple[Foot, ...]:
    """Means, average ranks and mean standard deviations of Table 3, printed and recomputed."""
    scores, sds = accuracies(), standard_deviations()
    new_means, new_ranks = means(scores), average_ranks(scores)
    new_sds = {method: mean(sds[method]) for method in sds}
    return tuple(
        Foot(
            method=str(row.Index),
            mean=row.mean_accuracy,
            recomputed_mean=new_means[row.Index],
            rank=row.average_rank,
            recomputed_rank=new_ranks[row.Index],
            sd=None if math.isnan(row.mean_std) else row.mean_std,
            recomputed_sd=new_sds.get(row.Index),
        )
        for row in table("table3_summary").itertuples()
    )


@dataclass(frozen=True, slots=True)
class PrintedP:
    """A p-value of Table 4, WPedRVFL against a method: printed, and recomputed from Table 3."""

    method: str
    printed: float
    comparison: Comparison

    @property
    def differs(self) -> bool:
        """Whether the normal approximation is another number in the two digits that the paper prints."""
        return two_digits(self.comparison.p_normal) != two_digits(self.printed)


def two_digits(p: float) -> str:
    """Write a p-value as the paper does.

    >>> two_digits(0.000335), two_digits(1.0)
    ('3.4e-4', '1.0')
    """
    mantissa, exponent = f"{p:.1e}".split("e")
    return f"{mantissa}e{int(exponent)}" if int(exponent) else mantissa


@cache
def recomputed_pairs() -> Pairwise:
    """Compare every pair of Table 3's methods."""
    return compare_pairs(accuracies())


@cache
def printed_p_values() -> tuple[PrintedP, ...]:
    """Table 4's p-values, printed and recomputed."""
    found = recomputed_pairs()
    printed = table("table4_vs_wpedrvfl")["p_value"].dropna()  # WPedRVFL has none against itself
    return tuple(PrintedP(str(method), float(p), found.pair(BEST, method)) for method, p in printed.items())


@dataclass(frozen=True, slots=True)
class PrintedSign:
    """A cell of Table 5: the sign of the row against the column, printed and recomputed without Holm."""

    row: str
    column: str
    printed: str
    recomputed: str

    @property
    def differs(self) -> bool:
        return self.printed != self.recomputed


@cache
def printed_signs() -> tuple[PrintedSign, ...]:
    """Table 5's cells off the diagonal, row by row, printed and recomputed at 0.05."""
    found, printed = recomputed_pairs(), table("table5_pairwise").fillna("")
    return tuple(
        PrintedSign(row, column, printed.loc[row, column], found.sign(row, column, holm=False))
        for row in printed.index
        for column in printed
        if row != column
    )


# What the text of section 5.5 says about each dataset. The paper's source does not contain its figures.
WEIGHTING_HELPS: Mapping[str, bool] = {
    "arrhythmia": True,
    "congressional-voting": True,
    "statlog-image": True,
    "waveform-noise": False,
}
PRUNING_PEAKS = tuple(WEIGHTING_HELPS)  # accuracy rises with p to a peak, then falls below the start


def sensitivity_settings() -> dict[str, float]:
    """Table 7's fixed settings by symbol: lambda, n, l, gamma, alpha."""
    values = table("table7_sensitivity_settings").set_index("symbol")["value"]
    return {symbol: float(values[symbol]) for symbol in ("lambda", "n", "l", "gamma", "alpha")}


def training_seconds() -> dict[tuple[str, str], float]:
    """Table 8: seconds by (dataset, method)."""
    printed = table("table8_training_time")
    return {
        (str(dataset), column.removesuffix("_seconds")): float(printed.loc[dataset, column])
        for dataset in printed.index
        for column in printed
    }
