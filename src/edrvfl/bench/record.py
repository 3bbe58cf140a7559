"""The records that cells end in, as JSON and back, and where they were made: versions and commit."""

from __future__ import annotations

import dataclasses
import importlib.metadata
import json
import math
import platform
import statistics
import subprocess
import types
import typing
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
import scipy
import sklearn

import edrvfl

# Another machine may change these without changing what was found.
_TIMES = ("fit_seconds", "predict_seconds", "search_seconds", "seconds", "finished")
_PLACES = ("device", "versions", "commit", "processor", "blas")
NOT_RESULTS = frozenset(_TIMES + _PLACES)
MEASURED_LATER = ("calibration_error",)  # a record without it contradicts no record that has it


R = TypeVar("R", bound="Record")


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """What every record says. All values are plain, so `to_json` and `from_json` lose nothing."""

    kind: ClassVar[str]

    key: str
    dataset: str
    method: str
    status: str  # "ok" or "failed"
    message: str | None  # why it failed
    finished: str | None  # date and time, UTC
    versions: Mapping[str, str]
    commit: str | None

    def to_json(self) -> str:
        """Write one line of JSON."""
        return json.dumps(dataclasses.asdict(self), allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read the record that `to_json` wrote. What it cannot have written is a `ValueError`."""
        record: Self = read_as(cls, json.loads(text))
        if record.status not in ("ok", "failed"):
            raise ValueError(f"status must be 'ok' or 'failed', got {record.status!r}")
        if record.status == "ok":
            record.check_figures()
        return record

    def check_figures(self) -> None:
        """Raise a `ValueError` if a record that says it succeeded lacks figures."""


class Scored:
    """Figures on test rows, by split and seed, and their means."""

    __slots__ = ()

    fit_seconds: tuple[tuple[float, ...], ...]

    def by_seed(self, metric: str) -> np.ndarray:
        """Average a metric over the splits, for each seed."""
        averages: np.ndarray = np.mean(self.table(metric), axis=0)
        return averages

    def table(self, metric: str) -> Any:
        """Return a metric by split and seed; None if the record did not measure it."""
        more: Mapping[str, Any] = getattr(self, "more", {})
        return more.get(metric) if metric in more else getattr(self, metric, None)

    def mean_and_sd(self, metric: str = "test_accuracy") -> tuple[float, float]:
        """Average over the splits for each seed; return mean and standard deviation over the seeds."""
        by_seed = self.by_seed(metric)
        return float(np.mean(by_seed)), float(np.std(by_seed, ddof=1)) if len(by_seed) > 1 else math.nan

    def mean(self, metric: str) -> float:
        """Average a metric over splits and seeds; NaN if an old record did not measure it."""
        return math.nan if self.table(metric) is None else self.mean_and_sd(metric)[0]

    @property
    def accuracy(self) -> float:
        """The mean test accuracy in percent."""
        return 100 * self.mean("test_accuracy")

    @property
    def sd(self) -> float:
        """Its standard deviation over the seeds, in percent; NaN with one seed."""
        return 100 * self.mean_and_sd()[1]

    @property
    def seconds(self) -> float:
        """The median of the seconds of the fits."""
        return statistics.median(s for row in self.fit_seconds for s in row)


@dataclass(frozen=True, slots=True)
class Choice(Scored):
    """What one way to choose found. Parameters and depth are by split, metrics by split and hidden seed."""

    configuration: tuple[int, ...]
    parameters: tuple[Mapping[str, Any], ...]
    depth: tuple[int, ...]
    validation_accuracy: tuple[float, ...]
    test_accuracy: tuple[tuple[float, ...], ...]
    balanced_accuracy: tuple[tuple[float, ...], ...]
    log_loss: tuple[tuple[float, ...], ...]
    fit_seconds: tuple[tuple[float, ...], ...]
    predict_seconds: tuple[tuple[float, ...], ...]
    calibration_error: tuple[tuple[float, ...], ...] | None = None  # records of old did not measure it

    def check_figures(self) -> None:
        by_split = (self.configuration, self.parameters, self.depth, self.validation_accuracy)
        if {len(each) for each in by_split} != {check_tables(self)}:
            raise ValueError("a choice needs an entry for each split")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord(Record):
    """A method on a dataset, searched and scored by the paper's protocol."""

    kind: ClassVar[str] = "study"

    checksum: str
    n_configurations: int
    seeds: int
    choices: Mapping[str, Choice]  # "paper" and "strict"; empty if the cell failed
    search_seconds: float
    device: str
    protocol: int

    def check_figures(self) -> None:
        if set(self.choices) != {"paper", "strict"}:
            raise ValueError(f"choices must be 'paper' and 'strict', got {sorted(self.choices)}")
        for choice in self.choices.values():
            choice.check_figures()


@dataclass(frozen=True, slots=True, kw_only=True)
class SensitivityRecord(Record):
    """Section 5.5: one value of omega_r and of p on one dataset, with everything else fixed."""

    kind: ClassVar[str] = "sensitivity"

    activation: str
    correct_weight: float
    prune_rate: float
    settings: Mapping[str, Any]  # all other parameters
    seeds: int
    test_accuracy: tuple[tuple[float, ...], ...]  # percent, by split and hidden seed
    train_accuracy: float | None  # percent, mean over layers, splits and seeds; None if the cell failed

    @property
    def by_seed(self) -> np.ndarray:
        return np.mean(self.test_accuracy, axis=0)

    def check_figures(self) -> None:
        check_tables(self)
        if self.train_accuracy is None:
            raise ValueError("train_accuracy is missing")
        if odd := [name for name, value in self.settings.items() if isinstance(value, list | dict)]:
            raise ValueError(f"settings {', '.join(odd)} must be single values")


@dataclass(frozen=True, slots=True, kw_only=True)
class TimingRecord(Record):
    """Section 5.6: how long a method takes to fit the training rows of a dataset."""

    kind: ClassVar[str] = "timing"

    rows: int
    features: int
    parameters: str  # the estimator as it prints itself
    seconds: tuple[float, ...]  # of every fit that counts
    warmups: int
    repeats: int
    threads: int
    blas: tuple[str, ...]
    processor: str

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    def check_figures(self) -> None:
        if not self.seconds or min(self.seconds) <= 0:
            raise ValueError("seconds must be above 0, of one fit at least")


@dataclass(frozen=True, slots=True, kw_only=True)
class AsItComesRecord(Scored, Record):
    """A method as it comes, nothing searched: fitted for each split and seed of a dataset or a frame.

    What decides how well it did is said by its two kinds, one for each task.
    """

    task: ClassVar[str]

    checksum: str
    settings: Mapping[str, Any]  # the parameters that decide; of other packages only those that we set
    seeds: int
    # These and the metrics of a task are by split and seed; empty if the cell failed.
    fit_seconds: tuple[tuple[float, ...], ...]
    predict_seconds: tuple[tuple[float, ...], ...]
    processor: str
    more: Mapping[str, tuple[tuple[float, ...], ...]] = field(default_factory=dict)  # metrics from elsewhere

    def check_figures(self) -> None:
        check_tables(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class DefaultsRecord(AsItComesRecord):
    """A classifier as it comes."""

    kind: ClassVar[str] = "defaults"
    task: ClassVar[str] = "classification"

    test_accuracy: tuple[tuple[float, ...], ...]
    balanced_accuracy: tuple[tuple[float, ...], ...]
    log_loss: tuple[tuple[float, ...], ...]
    calibration_error: tuple[tuple[float, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ValuesRecord(AsItComesRecord):
    """A regressor as it comes."""

    kind: ClassVar[str] = "values"
    task: ClassVar[str] = "regression"

    r2: tuple[tuple[float, ...], ...]
    rmse: tuple[tuple[float, ...], ...]


RECORDS: Mapping[str, type[Record]] = {
    cls.kind: cls for cls in (RunRecord, SensitivityRecord, TimingRecord, DefaultsRecord, ValuesRecord)
}


def same_results(a: Any, b: Any, tolerance: float = 1e-9) -> bool:
    """Tell whether two plain values agree. Times and places are ignored, and so are the last digits of
    numbers, which another machine may change.
    """
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        later = {k for k in MEASURED_LATER if a.get(k) is None or b.get(k) is None}
        keys = (a.keys() | b.keys()) - NOT_RESULTS - later
        return all(k in a and k in b and same_results(a[k], b[k], tolerance) for k in keys)
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(map(lambda x, y: same_results(x, y, tolerance), a, b))
    if isinstance(a, float) and isinstance(b, float):
        return math.isclose(a, b, rel_tol=tolerance, abs_tol=tolerance)
    return bool(a == b)


def same_records(a: Record, b: Record, tolerance: float = 1e-9) -> bool:
    """Tell whether two records found the same, wherever and however fast they were made."""
    return same_results(dataclasses.asdict(a), dataclasses.asdict(b), tolerance)


def importance(record: Any) -> tuple[Any, ...]:
    """Order records of one cell: one that succeeded counts most, then one of more work, then a later one."""
    work = (getattr(record, "n_configurations", 1), getattr(record, "seeds", 1))
    return record.status == "ok", *work, record.finished or "", record.key


def made_alike(records: Iterable[R], conditions: Callable[[R], Any]) -> list[R]:
    """Keep the records that succeeded under the conditions that most of them share."""
    good = [record for record in records if record.status == "ok"]
    size = Counter(conditions(record) for record in good)
    best = max(good, key=lambda r: (size[conditions(r)], importance(r)), default=None)
    return [] if best is None else [r for r in good if conditions(r) == conditions(best)]


# --- reading ------------------------------------------------------------------------------------------

_TABLE = tuple[tuple[float, ...], ...]  # figures by split and seed
_hints: Callable[[Any], dict[str, Any]] = cache(typing.get_type_hints)
_PLAIN: Mapping[Any, tuple[Any, str]] = {
    str: (str, "a text"),
    int: (int, "a whole number"),
    float: ((int, float), "a number"),
}
MOST = 1e20  # no figure of a study is larger; printing a much larger one in decimal fails


def read_as(hint: Any, value: Any, where: str = "") -> Any:
    """Read plain JSON as what a type hint says: records, tuples, mappings, numbers and texts.

    >>> read_as(tuple[float, ...], [1, 0.5])
    (1, 0.5)
    >>> read_as(tuple[float, ...], ["1"], "seconds")
    Traceback (most recent call last):
    ValueError: seconds must be a number, got '1'
    """
    if hint in _PLAIN:  # most values are numbers, so this comes first
        kinds, what = _PLAIN[hint]
        if (
            not isinstance(value, kinds)
            or isinstance(value, bool)
            or (hint is not str and not abs(value) < MOST)
        ):
            raise ValueError(f"{where} must be {what}, got {value!r}")
        return value
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin is tuple:
        if not isinstance(value, list):
            raise ValueError(f"{where} must be a list, got {value!r}")
        return tuple(read_as(inner[0], each, where) for each in value)
    if origin is Mapping:
        found = _an_object(value, where).items()
        return {key: read_as(inner[1], each, f"{where} {key}") for key, each in found}
    if origin is types.UnionType:
        return None if value is None else read_as(inner[0], value, where)
    return value if hint is Any else _read_fields(hint, _an_object(value, where), where)


def _an_object(value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"{where or 'a record'} must be a JSON object, got {value!r}")
    return value


def _read_fields(record: Any, fields: Mapping[str, Any], where: str) -> Any:
    missing = dataclasses.MISSING
    known = {f.name: f.default is f.default_factory is missing for f in dataclasses.fields(record)}
    if odd := [name for name, needed in known.items() if needed and name not in fields]:
        raise ValueError(f"{where or record.__name__} lacks {', '.join(odd)}")
    if odd := [name for name in fields if name not in known]:
        raise ValueError(f"{where or record.__name__} has no {', '.join(odd)}")
    hints = _hints(record)
    return record(**{name: read_as(hints[name], v, f"{where} {name}".strip()) for name, v in fields.items()})


def check_tables(record: Any) -> int:
    """Return the number of splits of a record's tables, or raise a `ValueError` if a figure is missing."""
    names = [name for name, hint in _hints(type(record)).items() if hint in (_TABLE, _TABLE | None)]
    tables = [table for name in names if (table := getattr(record, name)) is not None]
    shapes = {(len(table), len(row)) for table in tables for row in table}
    if len(shapes) != 1 or not all(tables) or 0 in next(iter(shapes)):
        raise ValueError(f"{', '.join(names)} need a figure for each split and seed")
    return len(tables[0])


# --- where it ran ------------------------------------------------------------------------------------


def stamp(device: str = "cpu") -> dict[str, Any]:
    """Say when and with what a record is made: its fields `finished`, `versions` and `commit`."""
    now = datetime.now(UTC).isoformat(timespec="seconds")
    return {"finished": now, "versions": find_versions(device), "commit": find_commit()}


@cache
def find_versions(device: str = "cpu") -> Mapping[str, str]:
    """Return the versions of the packages that decide the last digits."""
    found = {
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "scikit-learn": sklearn.__version__,
        "edrvfl": edrvfl.__version__,
    }
    if device != "cpu":
        found["torch"] = importlib.metadata.version("torch")
    return found


@cache
def find_commit() -> str | None:
    """Return the commit of the checkout that edrvfl runs from, marked if it was changed; None outside one."""
    folder = Path(edrvfl.__file__).parent
    git = ("git", "-C", str(folder))
    try:
        subprocess.run([*git, "ls-files", "--error-unmatch", "__init__.py"], check=True, capture_output=True)
        describe = [*git, "describe", "--always", "--abbrev=40", "--dirty", "--exclude=*"]
        return subprocess.run(describe, check=True, capture_output=True, text=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None
