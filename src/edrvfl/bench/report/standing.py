"""Who stands where: tuned methods and methods at their defaults in one table, ranked by accuracy.

A method of the paper's family or of its comparison has one line, with what its search found by the strict
choice. A peer may have two: as its search found it, and as its package comes.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pandas as pd

from ..comparison import Ranking, comparable, mean, round_half_up, score_table
from ..defaults import Defaults
from ..methods import kind_of, line_name, subject_first
from .study import Pair, Result, on_gpu, result_of

PRINTED = 4  # digits of a dataset's log-loss and calibration error
CHOICE = "strict"  # what was found without a look at test labels; the paper's choice has tables of its own


@dataclass(frozen=True, slots=True)
class Entry:
    """A line: a method, tuned or as it comes, with its results by dataset; none is without a figure."""

    method: str
    tuned: bool
    results: Mapping[str, Result]

    @property
    def name(self) -> str:
        return line_name(self.method, tuned=self.tuned)

    @property
    def kind(self) -> str:
        return kind_of(self.name)

    @property
    def configurations(self) -> str:
        """Say how many configurations were tried: one number, or the least and the most."""
        if not self.tuned:
            return "1"
        tried = sorted({r.configurations for r in self.results.values()})
        return str(tried[0]) if len(tried) == 1 else f"{tried[0]}-{tried[-1]}"

    def mean(self, metric: str, datasets: Sequence[str], digits: int) -> float | None:
        """Average the printed figures of a metric over datasets; None if a result lacks it."""
        found = [self.results[d].scored[CHOICE].mean(metric) for d in datasets]
        if not found or any(map(math.isnan, found)):
            return None
        return mean((round_half_up(value, PRINTED) for value in found), digits)

    def seconds(self, datasets: Sequence[str]) -> float | None:
        """Average the seconds of a fit over datasets, geometrically; None if a fit took none."""
        found = [self.results[d].fit_seconds for d in datasets]
        known = [value for value in found if value is not None and value > 0]  # a logarithm is taken
        return statistics.geometric_mean(known) if known and len(known) == len(found) else None

    @property
    def on_gpu(self) -> bool:
        return any(on_gpu(r.origins.get("device", "")) for r in self.results.values())


@dataclass(frozen=True, eq=False)
class Standing(Ranking):
    """All lines over the same datasets, ranked by accuracy; the columns of its tables begin with ours."""

    entries: Mapping[str, Entry] = field(default_factory=dict)  # best average rank first; unranked ones last


def make_standing(
    searched: Mapping[Pair, Result],
    unsearched: dict[Pair, Result],
    defaults: Defaults | None,
    datasets: Sequence[str],
) -> Standing:
    """Put the lines together: searches, and methods as they come on the same datasets.

    A record of a method as it comes stands before a search of one configuration, which says the same. If
    `datasets` is empty, because nothing was searched, the datasets are those of `defaults`.
    """
    datasets = tuple(datasets) or _other_datasets(defaults)
    groups: dict[tuple[str, bool], dict[str, Result]] = {}
    for some in (searched, unsearched | _defaults_results(defaults)):
        for (dataset, _), result in some.items():
            if dataset in datasets and CHOICE in result.scored:
                groups.setdefault((result.method, result.tuned), {})[dataset] = result
    entries = {
        e.name: e for (method, tuned), results in groups.items() for e in [Entry(method, tuned, results)]
    }
    cells = {(d, e.name): r.scored[CHOICE].accuracy for e in entries.values() for d, r in e.results.items()}
    scores = score_table(cells, datasets, tuple(entries))
    found = Ranking(scores, _whole(scores))

    def place(name: str) -> tuple[float, float, int]:
        mean = found.means.get(name, 0.0)
        return found.ranks.get(name, math.inf), -mean, -len(entries[name].results)

    order = {name: entries[name] for name in sorted(entries, key=place)}
    scores = scores[list(subject_first(order, {name: float(i) for i, name in enumerate(order)}))]
    return Standing(scores, _whole(scores), entries=order)


def _whole(scores: pd.DataFrame) -> pd.DataFrame:
    """Keep the lines that have all datasets, or as many as make the largest whole table."""
    complete = scores.dropna(axis="columns")
    enough = complete.shape[1] >= min(2, scores.shape[1])
    return complete if enough else comparable(scores).dropna()


def _other_datasets(defaults: Defaults | None) -> tuple[str, ...]:
    """Choose datasets where nothing was searched: the paper's if they are there, else the first group."""
    groups = {} if defaults is None else defaults.groups()
    classes = {
        g: names for g, names in groups.items() if defaults and defaults.task(names) == "classification"
    }
    return classes.get("uci24") or next(iter(classes.values()), ())


def _defaults_results(defaults: Defaults | None) -> dict[Pair, Result]:
    """Make results of the records of methods as they come, by dataset and line."""
    records = {} if defaults is None else defaults.records
    good = (r for r in records.values() if r.status == "ok" and r.task == "classification")
    found = [result_of(record) for record in good]
    return {(result.dataset, result.line): result for result in found}
