"""Section 5.6 of the paper: how long training takes. Cells are timed one at a time, alone on the machine."""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_info, threadpool_limits

from . import paper
from .cell import Cell, Done, TimingUnit, Unit, Value, seed_of
from .data import Dataset
from .methods import METHOD_GROUPS
from .record import TimingRecord, made_alike
from .searching import Method, check_installed
from .sensitivity import fixed_settings

DATASETS = tuple(dict.fromkeys(dataset for dataset, _ in paper.training_seconds()))
WARMUPS, REPEATS, THREADS = 1, 5, 1


@dataclass(frozen=True, eq=False)
class TimingCell(Cell[TimingRecord]):
    """A method on the training rows of a dataset's first split. Run these cells with `jobs=1`."""

    method: Method
    dataset: Dataset
    settings: Mapping[str, Any]
    unit: TimingUnit
    processor: str  # part of the key: seconds of another machine are other figures

    def describe(self) -> dict[str, Any]:
        return {
            "kind": TimingRecord.kind,
            "method": self.method.name,
            "dataset": self.dataset.name,
            "checksum": self.dataset.checksum,
            "trials": 1,
            "seeds": self.unit.repeats,
            "settings": dict(self.settings),
            "warmups": self.unit.warmups,
            "threads": self.unit.threads,
            "processor": self.processor,
            "most_units": 1,
        }

    def build(self, seed: int) -> Any:
        """Make the classifier, not fitted."""
        return self.method.estimator(random_state=seed, **self.settings)

    def pending(self, done: Done) -> list[Unit]:
        return [] if self.unit in done else [self.unit]

    def compute(self, unit: Any) -> Value:
        """Fit as often as the unit says. A warm-up shares the hidden seed of the first fit that counts."""
        X, y = self._training_rows()
        repeats = [0] * unit.warmups + list(range(unit.repeats))
        seconds = []
        with threadpool_limits(unit.threads):
            for repeat in repeats:
                model = self.build(seed_of("hidden", self.dataset.name, repeat))
                start = time.perf_counter()
                model.fit(X, y)
                seconds.append(time.perf_counter() - start)
        pools = [pool for pool in threadpool_info() if pool["user_api"] == "blas"]
        blas = sorted({f"{pool['internal_api']} {pool.get('version')}" for pool in pools})
        return {"fits": seconds[unit.warmups :], "blas": blas}

    def record(self, done: Done) -> TimingRecord:
        """Put the seconds beside what was fitted and where."""
        head, value = self.head(done), done[self.unit]
        rows, features = self._training_rows()[0].shape
        return TimingRecord(
            rows=rows,
            features=features,
            parameters=" ".join(repr(self.build(0)).split()) if head["status"] == "ok" else "",
            seconds=tuple(value.get("fits", ())),
            **dataclasses.asdict(self.unit),
            blas=tuple(value.get("blas", ())),
            processor=self.processor,
            **head,
        )

    def _training_rows(self) -> tuple[np.ndarray, np.ndarray]:
        train = self.dataset.splits[0].train
        return self.dataset.X[train], self.dataset.y[train]


def make_cells(
    methods: Iterable[Method],
    datasets: Sequence[Dataset],
    *,
    warmups: int = WARMUPS,
    repeats: int = REPEATS,
    threads: int = THREADS,
) -> list[TimingCell]:
    """Make the cells of section 5.6. The edRVFL family gets n and lambda of Table 7, others their defaults.

    The paper's five datasets are `DATASETS`. Warm-ups are fits that do not count; of the repeats the median
    does. `threads` are those of BLAS.
    """
    if repeats < 1 or warmups < 0 or threads < 1:
        raise ValueError(
            f"repeats and threads must be at least 1 and warmups at least 0, got repeats={repeats}, "
            f"threads={threads} and warmups={warmups}."
        )
    methods = tuple(methods)
    check_installed(methods)
    family = {name: fixed_settings()[name] for name in ("n_hidden", "regularization")}
    unit, processor, cells = TimingUnit(warmups, repeats, threads), find_processor(), []
    for dataset in datasets:
        for method in methods:
            settings = family if method.name in METHOD_GROUPS["edrvfl"] else {}
            cells.append(TimingCell(method, dataset, settings, unit, processor))
    return cells


def find_processor() -> str:
    """Return the processor's name where the system tells it, and how many logical cores there are."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{names[0] if names else 'processor not named'}, {os.cpu_count()} logical cores"


@dataclass(frozen=True, slots=True)
class Timing:
    """Training times that were measured alike: by dataset and method."""

    timed: tuple[TimingRecord, ...]

    @classmethod
    def of(cls, records: Iterable[TimingRecord]) -> Timing | None:
        """Put records together; None if there is none.

        If machines or ways to measure differ, the ones that most records share are taken.
        """
        same = made_alike(records, lambda r: (r.warmups, r.repeats, r.threads, r.processor))
        return cls(tuple(sorted(same, key=lambda r: (r.dataset, r.method)))) if same else None

    @property
    def blas(self) -> list[str]:
        """The libraries that occur: torch brings one of its own."""
        return sorted({name for record in self.timed for name in record.blas})
