"""Read what a report is about: the store with its experiments, their costs, and what is known of a dataset.

This is the only file of the report that knows how the study keeps its results. Everything else works with
`Study` and `Result`, which hold plain values.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from .. import paper
from ..cell import SearchUnit, Unit
from ..data import DEMO, UCI24
from ..defaults import Defaults
from ..methods import TABLE, line_name
from ..names import MISSING
from ..record import (
    AsItComesRecord,
    DefaultsRecord,
    Record,
    RunRecord,
    Scored,
    SensitivityRecord,
    TimingRecord,
    ValuesRecord,
)
from ..sensitivity import Sensitivity
from ..store import CellState, Store
from ..timing import Timing

Pair = tuple[str, str]  # dataset, method

PROCESSOR = "processor"  # everything that is not named otherwise ran on one
STATUSES = (MISSING, "failed", "ok")  # from the least to the most that can be said about a cell


@dataclass(frozen=True, slots=True)
class Result:
    """One method on one dataset, as far as it came."""

    dataset: str
    method: str
    status: str  # one of STATUSES
    message: str | None = None
    configurations: int = 0
    seeds: int = 0
    scored: Mapping[str, Scored] = field(default_factory=dict)  # by choice: "strict" and "paper"
    search_seconds: float | None = None
    finished: str | None = None  # date and time, UTC
    checksum: str | None = None  # of the data and partitions
    origins: Mapping[str, str] = field(default_factory=dict)  # versions, commit, device, protocol
    key: str = ""
    searched: bool = True  # False for a record of a method as it comes

    @property
    def tuned(self) -> bool:
        """Whether something was chosen: the only configuration of a peer is its package's default."""
        row = TABLE.get(self.method)
        return self.searched and not (row is not None and row.kind == "peer" and self.configurations == 1)

    @property
    def line(self) -> str:
        """The method's name in tables, which says of a peer whether it was tuned."""
        return line_name(self.method, tuned=self.tuned)

    @property
    def fit_seconds(self) -> float | None:
        """The median over splits and seeds, strict choice."""
        return self.scored["strict"].seconds if "strict" in self.scored else None


@dataclass(frozen=True, slots=True)
class Cost:
    """What the records of one kind took on one device."""

    kind: str  # a kind of `record.RECORDS`
    device: str
    records: int
    seconds: float | None  # None: these records do not say


@dataclass(frozen=True, slots=True)
class Study:
    """Everything that a report is made from."""

    results: tuple[Result, ...] = ()  # a method may have several on one dataset
    depth_accuracies: Mapping[Pair, tuple[float, ...]] = field(default_factory=dict)
    sensitivity: Sensitivity | None = None
    timing: Timing | None = None
    defaults: Defaults | None = None
    costs: tuple[Cost, ...] = ()
    origins: tuple[Mapping[str, str], ...] = ()  # as of a result, of the records beside the search


def read_study(store: str | Path) -> Study:
    """Read a store: the records, what is known of unfinished cells, and the experiments beside the search."""
    with Store(store, create=False) as opened:
        runs = opened.records()
        results = [result_of(record) for record in runs]
        results += [_open_cell(state) for state in opened.states() if not state.finished]
        depths = {}
        for pair, result in choose_results(results).items():
            if result.status == "ok" and (curve := _best_by_depth(opened.values(result.key))):
                depths[pair] = curve
        curves, timed = opened.records_of(SensitivityRecord), opened.records_of(TimingRecord)
        as_they_come = [*opened.records_of(DefaultsRecord), *opened.records_of(ValuesRecord)]
    return Study(
        tuple(results),
        depths,
        Sensitivity.of(curves),
        Timing.of(timed),
        Defaults.of(as_they_come),
        add_costs([*runs, *as_they_come, *curves, *timed]),
        tuple(_origins(record) for record in (*as_they_come, *curves, *timed)),
    )


def choose_results(results: Iterable[Result]) -> dict[Pair, Result]:
    """Choose one result for each pair: the one that came farthest, then the larger search, then the later."""

    def importance(r: Result) -> tuple[int, int, int, str, str]:
        return STATUSES.index(r.status), r.configurations, r.seeds, r.finished or "", r.key

    return {(r.dataset, r.line): r for r in sorted(results, key=importance)}


def result_of(record: RunRecord | AsItComesRecord) -> Result:
    """Make a result of a search or of a method as it comes, which has one figure and no choices."""
    run = record if isinstance(record, RunRecord) else None
    scored: dict[str, Scored] = (
        {"strict": record} if isinstance(record, AsItComesRecord) else {**record.choices}
    )
    return Result(
        *(record.dataset, record.method, record.status),
        message=None if record.status == "ok" else record.message or "no message",
        configurations=run.n_configurations if run else 1,
        seeds=record.seeds,
        scored=scored,
        search_seconds=run.search_seconds if run else None,
        finished=record.finished,
        checksum=record.checksum,
        origins={**_origins(record), **({"protocol": str(run.protocol)} if run else {})},
        key=record.key,
        searched=run is not None,
    )


def _origins(record: Record) -> dict[str, str]:
    return {**record.versions, "commit": record.commit or "unknown", "device": device_of(record)}


def _open_cell(state: CellState) -> Result:
    """A cell that a run has noted but not finished. It has no result, so it is missing."""
    message = f"{state.done} of at most {state.units} units done"
    return Result(state.dataset, state.method, MISSING, message, state.trials, state.seeds, key=state.key)


def _best_by_depth(values: Mapping[Unit, Any]) -> tuple[float, ...]:
    """Find the best configuration of each depth: its validation accuracy in percent, averaged over splits."""
    parts = [np.array(value["scores"]) for unit, value in values.items() if isinstance(unit, SearchUnit)]
    # An imported export may hold records without their searches.
    if not parts or len({part.shape[-2:] for part in parts}) > 1:
        return ()
    scores = np.concatenate([part.reshape(-1, *part.shape[-2:]) for part in parts])  # by configuration
    return tuple(100 * float(accuracy) for accuracy in scores.mean(axis=1).max(axis=0))


def add_costs(records: Iterable[Record]) -> tuple[Cost, ...]:
    """Add up the seconds of records by kind and device."""
    found: dict[tuple[str, str], list[float | None]] = {}
    for record in records:
        found.setdefault((record.kind, device_of(record)), []).append(_seconds(record))
    costs = []
    for (kind, device), seconds in found.items():
        known = [s for s in seconds if s is not None]
        costs.append(Cost(kind, device, len(seconds), math.fsum(known) if known else None))
    return tuple(costs)


def device_of(record: Record) -> str:
    """Name the device that computed a record, or the processor where the record names one."""
    device = str(getattr(record, "device", "cpu"))
    if device != "cpu":
        return device
    return str(getattr(record, "processor", "")) or PROCESSOR


def on_gpu(device: str) -> bool:
    """Tell a GPU from a processor."""
    return device.startswith("cuda")


def _seconds(record: Record) -> float | None:
    """Add the seconds of a record's searches, fits and answers; warm-ups are in no record."""
    if isinstance(record, RunRecord):
        return record.search_seconds + _refit_seconds(record)
    if isinstance(record, AsItComesRecord):
        both = (record.fit_seconds, record.predict_seconds)
        return math.fsum(s for times in both for row in times for s in row)
    return math.fsum(record.seconds) if isinstance(record, TimingRecord) else None


def _refit_seconds(record: RunRecord) -> float:
    """Add the seconds of the refits. Both choices share the refits of a split where they chose the same."""
    refits = {}
    for choice in record.choices.values():
        chosen = zip(choice.configuration, choice.depth, strict=True)
        for split, what in enumerate(chosen):
            times = (*choice.fit_seconds[split], *choice.predict_seconds[split])
            refits[split, what] = math.fsum(times)
    return math.fsum(refits.values())


FIXED_TEST_FILE = frozenset({"adult", "monks-3", "pendigits", "statlog-landsat", "statlog-shuttle"})


def dataset_facts(name: str) -> tuple[str, str, str]:
    """Say how large a dataset is, what the paper prints for that, and where its partitions come from."""
    if name not in UCI24:
        own = "" if name in DEMO else " (own table)"
        return "", "", f"four stratified draws of 25 %, drawn by edrvfl{own}"
    entry, row = UCI24[name], paper.table("table1_datasets").loc[name]
    partitions = "one fixed test file" if name in FIXED_TEST_FILE else "four overlapping draws of 25 %"
    return (
        f"{entry.rows} / {entry.features} / {entry.classes}",
        f"{row['patterns']} / {row['features_printed']} / {row['classes']}",
        f"published: {partitions}",
    )
