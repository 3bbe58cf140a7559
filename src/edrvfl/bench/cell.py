"""What the study is made of: cells, each of which ends in one record, and units, the pieces of their work.

A unit is a frozen record that says, together with its cell, everything a worker has to know. Which process
does a unit, in which order, and after how many interruptions is decided in schedule.py and changes no figure.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np

from .record import RECORDS, Record, read_as, stamp

R_co = TypeVar("R_co", bound=Record, covariant=True)
Value = dict[str, Any]  # what a unit found, as plain data; of a unit that failed: "error" and "traceback"


# --- units -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, order=True)
class SearchUnit:
    """Score some configurations on the validation rows of every split."""

    configurations: tuple[int, ...]

    def __str__(self) -> str:
        return f"search of configuration {', '.join(map(str, self.configurations))}"


@dataclass(frozen=True, slots=True, order=True)
class RefitUnit:
    """Fit a chosen configuration on the training rows of a split, and score it on the test rows."""

    configuration: int
    depth: int
    split: int
    repeat: int  # the number of the hidden seed
    epochs: int | None = None  # what early stopping found in the search, where the refit takes it over

    def __str__(self) -> str:
        what = f"configuration {self.configuration} at depth {self.depth}"
        return f"refit of {what} on split {self.split} with hidden seed {self.repeat}"


@dataclass(frozen=True, slots=True, order=True)
class SensitivityUnit:
    """Fit the network of a sensitivity cell on one split with one hidden seed."""

    split: int
    repeat: int

    def __str__(self) -> str:
        return f"fit on split {self.split} with hidden seed {self.repeat}"


@dataclass(frozen=True, slots=True, order=True)
class TimingUnit:
    """Time all fits of a timing cell. They are one unit, because a warm-up only serves its own process."""

    warmups: int
    repeats: int
    threads: int

    def __str__(self) -> str:
        return f"timing of {self.repeats} fits after {self.warmups} warm-ups"


@dataclass(frozen=True, slots=True, order=True)
class DefaultsUnit:
    """Fit a method as it comes on the training rows of a split, and score it on the test rows."""

    split: int
    repeat: int

    def __str__(self) -> str:
        return f"fit at the defaults on split {self.split} with seed {self.repeat}"


Unit = SearchUnit | RefitUnit | SensitivityUnit | TimingUnit | DefaultsUnit
Done = Mapping[Unit, Value]

STAGES: Mapping[str, type[Unit]] = {
    "search": SearchUnit,
    "refit": RefitUnit,
    "sensitivity": SensitivityUnit,
    "timing": TimingUnit,
    "defaults": DefaultsUnit,
}
_STAGE_NAMES = {stage: name for name, stage in STAGES.items()}


def unit_to_dict(unit: Unit) -> dict[str, Any]:
    """Return the stage and the fields of a unit as plain values, for JSON."""
    return {"stage": _STAGE_NAMES[type(unit)], **dataclasses.asdict(unit)}


def unit_from_dict(fields: Mapping[str, Any]) -> Unit:
    """Return the unit that `unit_to_dict` wrote."""
    unit: Unit = read_as(STAGES[fields["stage"]], {k: v for k, v in fields.items() if k != "stage"})
    return unit


def unit_order(unit: Unit) -> tuple[int, Any]:
    """Sort units by stage, then by their fields."""
    return list(STAGES).index(_STAGE_NAMES[type(unit)]), unit


_NUMBERS = tuple[float, ...]
_VALUES: Mapping[str, Any] = {  # what a unit's value may hold beside metrics, which are numbers
    "scores": tuple[tuple[_NUMBERS, ...], ...],  # by configuration, split and depth
    **dict.fromkeys(("epochs", "fits", "train_accuracies"), _NUMBERS),
    **dict.fromkeys(("error", "traceback"), str),
    "blas": tuple[str, ...],
}


def check_value(unit: Unit, value: Any) -> Value:
    """Return what a unit found, or raise a `ValueError` if it cannot have found that."""
    read = {name: read_as(_VALUES.get(name, float), each, name) for name, each in dict(value).items()}
    searched = isinstance(unit, SearchUnit) and "error" not in read
    if searched and np.array(read.get("scores", ()), dtype=float).ndim != 3:
        raise ValueError("scores must be by configuration, split and depth")
    return dict(value)


def check_description(description: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what decides a cell's figures, or raise a `ValueError` if an entry that all cells have lacks."""
    texts, numbers = ("kind", "dataset", "method"), ("trials", "seeds", "most_units")
    for hint, names in ((str, texts), (int, numbers)):
        for name in names:
            read_as(hint, description[name], name)
    if description["kind"] not in RECORDS:
        raise ValueError(f"kind must be one of {', '.join(RECORDS)}, got {description['kind']!r}")
    return description


def find_failure(done: Done) -> str | None:
    """Return the message of the first unit that failed, or None."""
    failed = sorted((unit for unit, value in done.items() if "error" in value), key=unit_order)
    return f"{failed[0]}: {done[failed[0]]['error']}" if failed else None


# --- cells -------------------------------------------------------------------------------------------


class Cell(ABC, Generic[R_co]):
    """One piece of the study that ends in one record: `protocol.StudyCell`, `sensitivity.SensitivityCell`,
    `timing.TimingCell` or `defaults.DefaultsCell`.
    """

    dataset: Any
    seeds: int

    @cached_property
    def key(self) -> str:
        """The cell's identity in a store."""
        return key_of(self.describe())

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """Say what decides the cell's figures, as plain values, and how many units it needs at most.

        Every kind of cell has the entries "kind", "dataset", "method", "trials", "seeds" and "most_units".
        The commit, the versions and the device are not part of it.
        """

    @abstractmethod
    def pending(self, done: Done) -> list[Unit]:
        """Return the units that can be done now. None is left when `record` has all it needs."""

    @abstractmethod
    def compute(self, unit: Any) -> Value:
        """Do one unit."""

    @abstractmethod
    def record(self, done: Done) -> R_co:
        """Make the record when all units are done, or one of them failed."""

    def head(self, done: Done, device: str = "cpu") -> dict[str, Any]:
        """Return the fields that every record has."""
        message, described = find_failure(done), self.describe()
        return {
            "key": self.key,
            "dataset": described["dataset"],
            "method": described["method"],
            "status": "failed" if message else "ok",
            "message": message,
            **stamp(device),
        }


class FitCell(Cell[R_co]):
    """A cell of one fit for each split and seed."""

    unit: ClassVar[type[SensitivityUnit] | type[DefaultsUnit]]

    def units(self) -> list[list[Unit]]:
        """Return the fits by split and seed."""
        splits = range(len(self.dataset.splits))
        return [[self.unit(split, repeat) for repeat in range(self.seeds)] for split in splits]

    def pending(self, done: Done) -> list[Unit]:
        """Return the fits that are left."""
        return [] if find_failure(done) else [u for row in self.units() for u in row if u not in done]


def key_of(description: Mapping[str, Any]) -> str:
    """Return the SHA-256 of a description. It is the same in every process and on every machine."""
    text = json.dumps(description, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def seed_of(*names: str | int) -> int:
    """Make a seed from names, so that it never depends on the order of work.

    >>> seed_of("hidden", "wine", 0), seed_of("hidden", "wine", 1)
    (1501605743, 2133677941)
    """
    digest = hashlib.sha256(json.dumps(names).encode()).digest()
    return int.from_bytes(digest[:4], "little") >> 1  # a RandomState takes 31 bits where int has 32
