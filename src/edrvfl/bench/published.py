"""The paper's Tables 1 to 8 as data, and what follows from them: printed beside recomputed.

The csv files in published/ hold the figures as printed; table3_summary.csv is the foot of Table 3.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from types import MappingProxyType

from .statistics import Comparison, Pairwise, Scores, average_ranks, mean, means, pairwise

Value = str | int | float | None

BEST = "WPedRVFL"  # the method of Table 4
SD_SUFFIX = "_std"


@dataclass(frozen=True, slots=True)
class Table:
    """Named columns of plain values. `name` is one word, for files and anchors."""

    name: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Value, ...], ...]

    def column(self, name: str) -> tuple[Value, ...]:
        j = self.columns.index(name)
        return tuple(row[j] for row in self.rows)

    def records(self) -> list[dict[str, Value]]:
        """The rows as dictionaries."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]

    def to_csv(self) -> str:
        """Comma-separated text with a header; None is empty."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(self.columns)
        writer.writerows(self.rows)
        return text.getvalue()


TITLES: Mapping[str, str] = MappingProxyType(
    {
        "table1_datasets": "Table 1: the 24 datasets",
        "table2_search_box": "Table 2: what is searched",
        "table3_accuracy": "Table 3: accuracy in percent on 24 datasets",
        "table3_summary": "Table 3, foot: mean accuracy and average rank",
        "table4_vs_wpedrvfl": "Table 4: WPedRVFL against each of the other methods",
        "table5_pairwise": "Table 5: pairwise comparison of all methods",
        "table6_std": "Table 6: average standard deviation",
        "table7_sensitivity_settings": "Table 7: settings of section 5.5",
        "table8_training_time": "Table 8: training time in seconds",
    }
)


@cache
def table(name: str) -> Table:
    """A table of the paper by the name of its file, every value as text.

    Examples
    --------
    >>> table("table8_training_time").rows[0]
    ('arrhythmia', '4.4731', '0.6504')
    """
    if name not in TITLES:
        raise ValueError(f"There is no table {name!r}; choose one of {', '.join(TITLES)}.")
    text = files(__package__).joinpath("published", f"{name}.csv").read_text(encoding="utf-8")
    header, *rows = csv.reader(io.StringIO(text))
    return Table(name, TITLES[name], tuple(header), tuple(tuple(cell or None for cell in r) for r in rows))


def _number(value: Value) -> float | None:
    return None if value is None else float(value)


def _names(values: Sequence[Value]) -> tuple[str, ...]:
    return tuple(map(str, values))


def _figures(suffix: str) -> Scores:
    """The columns of Table 3 that end in the suffix, as figures."""
    source = table("table3_accuracy")
    plain = [c for c in source.columns[1:] if not c.endswith(SD_SUFFIX)]
    methods = [c for c in plain if c + suffix in source.columns]
    columns = [[_number(value) for value in source.column(method + suffix)] for method in methods]
    return Scores(_names(source.column("dataset")), tuple(methods), tuple(zip(*columns, strict=True)))


@cache
def accuracies() -> Scores:
    """Table 3: accuracy in percent, 24 datasets and 12 methods."""
    return _figures("")


@cache
def standard_deviations() -> Scores:
    """Table 3: standard deviation over ten seeds, of the five edRVFL methods."""
    return _figures(SD_SUFFIX)


# --- does the paper follow from its own Table 3? ---------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Foot:
    """The foot of Table 3 for one method, printed and recomputed from the 24 rows above it."""

    method: str
    mean: float
    recomputed_mean: float
    rank: float
    recomputed_rank: float
    sd: float | None
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
    new_sds = {method: mean(sds.column(method)) for method in sds.methods}
    rows = []
    for r in table("table3_summary").records():
        method = str(r["method"])
        printed_mean, rank = float(str(r["mean_accuracy"])), float(str(r["average_rank"]))
        sds_of = (_number(r["mean_std"]), new_sds.get(method))
        rows.append(Foot(method, printed_mean, new_means[method], rank, new_ranks[method], *sds_of))
    return tuple(rows)


@dataclass(frozen=True, slots=True)
class PrintedP:
    """A p-value of Table 4, WPedRVFL against a method: printed, and recomputed from Table 3."""

    method: str
    printed: float
    comparison: Comparison

    @property
    def differs(self) -> bool:
        """Whether the normal approximation, to the two digits printed, is another number."""
        return two_digits(self.comparison.p_normal) != two_digits(self.printed)


def two_digits(p: float) -> str:
    """A p-value as the paper prints it.

    Examples
    --------
    >>> two_digits(0.000335), two_digits(1.0)
    ('3.4e-4', '1.0')
    """
    mantissa, exponent = f"{p:.1e}".split("e")
    return f"{mantissa}e{int(exponent)}" if int(exponent) else mantissa


@cache
def printed_p_values() -> tuple[PrintedP, ...]:
    """Table 4's p-values, printed and recomputed."""
    found = recomputed_pairs()
    rows = table("table4_vs_wpedrvfl").records()
    return tuple(
        PrintedP(str(r["method"]), float(r["p_value"]), found.pair(BEST, str(r["method"])))
        for r in rows
        if r["p_value"] is not None
    )


@cache
def recomputed_pairs() -> Pairwise:
    """Every pair of Table 3's methods, by the normal approximation."""
    return pairwise(accuracies())


@dataclass(frozen=True, slots=True)
class PrintedSign:
    """A cell of Table 5: the printed sign of the row against the column, and the recomputed ones."""

    row: str
    column: str
    printed: str
    recomputed: str
    recomputed_holm: str

    @property
    def differs(self) -> bool:
        return self.printed != self.recomputed


@cache
def printed_signs() -> tuple[PrintedSign, ...]:
    """Table 5's cells off the diagonal, row by row, printed and recomputed at 0.05."""
    found, source = recomputed_pairs(), table("table5_pairwise")
    return tuple(
        PrintedSign(
            str(r["method"]),
            column,
            str(r[column] or ""),
            found.sign(str(r["method"]), column, adjust=False),
            found.sign(str(r["method"]), column, adjust=True),
        )
        for r in source.records()
        for column in source.columns[1:]
        if column != r["method"]
    )


# --- sections 5.5 and 5.6 --------------------------------------------------------------------------------

# What the text of section 5.5 says of each dataset; the figures themselves are not in the paper's source.
WEIGHTING_HELPS: Mapping[str, bool] = MappingProxyType(
    {"arrhythmia": True, "congressional-voting": True, "statlog-image": True, "waveform-noise": False}
)
PRUNING_PEAKS = tuple(WEIGHTING_HELPS)  # accuracy rises with p to a peak, then falls below the start


def sensitivity_settings() -> dict[str, float]:
    """Table 7's fixed settings by symbol: lambda, n, l, gamma, alpha."""
    rows = table("table7_sensitivity_settings").records()
    fixed = ("lambda", "n", "l", "gamma", "alpha")
    return {str(r["symbol"]): float(str(r["value"])) for r in rows if r["symbol"] in fixed}


def training_seconds() -> dict[tuple[str, str], float]:
    """Table 8: seconds by (dataset, method)."""
    source = table("table8_training_time")
    return {
        (str(r["dataset"]), column.removesuffix("_seconds")): float(str(r[column]))
        for r in source.records()
        for column in source.columns[1:]
    }
