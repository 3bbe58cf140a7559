"""Build the table of results and order its rows."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy
from scipy.stats import rankdata

from .._ridge.choose import TIE_DIGITS
from .._seam.arrays import ignore_overflow
from .candidates import ResultRow


def results_table(rows: Sequence[ResultRow], scores: numpy.ndarray) -> dict[str, Any]:
    """Build `cv_results_` from scores (row, split)."""
    results: dict[str, Any] = {}
    for name in dict.fromkeys(name for row in rows for name in row.params):
        values = numpy.empty(len(rows), dtype=object)
        for i, row in enumerate(rows):  # one by one: NumPy would take a list of pairs for a matrix
            values[i] = row.params.get(name)
        results[f"param_{name}"] = numpy.ma.MaskedArray(values, mask=[name not in row.params for row in rows])
    results["params"] = [row.params for row in rows]
    results |= {f"split{i}_test_score": of_split for i, of_split in enumerate(scores.T)}
    with ignore_overflow():
        results |= {"mean_test_score": scores.mean(axis=1), "std_test_score": scores.std(axis=1)}
    results["rank_test_score"] = rank(results["mean_test_score"])
    return results


def rank(means: numpy.ndarray) -> numpy.ndarray:
    """Rank scores from 1 for the best. Scores that agree to 12 decimals are equal, and NaN comes last."""
    if strange := int((~numpy.isfinite(means)).sum()):
        message = f"{strange} of {len(means)} mean scores are not finite; NaN ranks last."
        warnings.warn(message, category=UserWarning, stacklevel=6)
    # scores that differ only by the order of summation must not decide the winner
    known = numpy.where(numpy.isnan(means), -numpy.inf, numpy.round(means, TIE_DIGITS))
    ranks: numpy.ndarray = rankdata(-known, method="min").astype(numpy.int32)
    return ranks


def best_first(ranks: numpy.ndarray, rows: Sequence[ResultRow]) -> list[int]:
    """Order rows by rank; of equal ones the shallower network comes first, then what was drawn first."""
    return sorted(range(len(rows)), key=lambda i: (ranks[i], rows[i].depth))
