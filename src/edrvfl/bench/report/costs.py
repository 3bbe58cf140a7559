"""What the records took: seconds of processors and of devices."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from ..record import AsItComesRecord, Record, RunRecord, TimingRecord

PROCESSOR = "processor"  # everything that is not named otherwise ran on one


@dataclass(frozen=True, slots=True)
class Cost:
    """What the records of one kind took on one device."""

    kind: str  # a kind of `record.RECORDS`
    device: str
    records: int
    seconds: float | None  # None: these records do not say


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
