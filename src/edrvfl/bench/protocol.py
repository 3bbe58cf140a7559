"""One cell of the study, a method on a dataset: search -> choose -> refit -> score -> RunRecord.

A cell is worked off in units, named pieces that need nothing but the cell: ``search/3`` is configuration 3
(and those searched together with it), ``refit/3/7/0/2`` is it at depth 7 on split 0 with hidden seed 2.
`pending` says which units are left, `compute` does one, `record` makes the answer of all. Who does them, in
which order and in how many lives, is the business of schedule.py, and cannot change a figure.
"""

from __future__ import annotations

import dataclasses
import hashlib
import importlib.metadata
import json
import math
import platform
import subprocess
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import scipy
import sklearn
from scipy.linalg import LinAlgWarning
from sklearn.metrics import accuracy_score, log_loss, recall_score

import edrvfl

from .datasets import Dataset, Split
from .methods import Configuration, Method

PROTOCOL_VERSION = 1  # part of every key: raise it when the same inputs give other figures
SEARCH_MEMORY = {"cpu": 1024, "cuda": 12 * 1024}  # MiB for the networks searched together
TIE_DIGITS = 12  # accuracies that agree to so many digits are equal
TIMES = ("fit_seconds", "predict_seconds", "search_seconds", "seconds", "finished")
METRICS = ("test_accuracy", "balanced_accuracy", "log_loss", "fit_seconds", "predict_seconds")


# --- the cell ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Cell:
    """A method on a dataset, with all it will try drawn beforehand. The key is its identity in a store."""

    key: str
    method: Method
    dataset: Dataset
    configurations: tuple[Configuration, ...]
    seeds: int
    device: str


def make_cell(method: Method, dataset: Dataset, trials: int, seeds: int, device: str = "cpu") -> Cell:
    """The cell of a method and a dataset with `trials` configurations and `seeds` refits."""
    if trials < 1 or seeds < 1:
        raise ValueError(f"trials and seeds must be at least 1, got trials={trials} and seeds={seeds}.")
    configurations = tuple(method.configurations(trials, seed_of("configurations", dataset.name)))
    device = "cpu" if method.cpu_only else device
    cell = Cell("", method, dataset, configurations, seeds, device)
    return dataclasses.replace(cell, key=key_of(describe(cell)))


def describe(cell: Cell) -> dict[str, Any]:
    """What decides a cell's figures, as plain values; not the commit, the versions or the device."""
    return {
        "protocol": PROTOCOL_VERSION,
        "method": cell.method.name,
        "dataset": cell.dataset.name,
        "checksum": cell.dataset.checksum,
        "splits": len(cell.dataset.splits),
        "trials": len(cell.configurations),
        "seeds": cell.seeds,
        "fixed": dict(cell.method.fixed),
        "together": list(cell.method.together),
        "configurations": [dict(c) for c in cell.configurations],
    }


def key_of(description: Mapping[str, Any]) -> str:
    """SHA-256 of a description, the same in every process and on every machine."""
    text = json.dumps(description, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def seed_of(*names: str | int) -> int:
    """A seed as a function of names, never of the order of work.

    Examples
    --------
    >>> seed_of("hidden", "wine", 0), seed_of("hidden", "wine", 1)
    (1501605743, 2133677941)
    """
    digest = hashlib.sha256(json.dumps(names).encode()).digest()
    return int.from_bytes(digest[:4], "little") >> 1  # what a RandomState takes, also where int is 32 bits


# --- search ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class SearchSplit:
    """What the search may see of a split: test rows and test labels are not in it."""

    X_fit: np.ndarray
    y_fit: np.ndarray
    X_validation: np.ndarray
    y_validation: np.ndarray


def validation_scores(
    method: Method,
    configurations: Sequence[Configuration],
    splits: Sequence[SearchSplit],
    random_state: int,
    device: str = "cpu",
    carried: list[float] | None = None,
) -> np.ndarray:
    """Validation accuracy (configuration, split, depth) of networks fitted on the fit rows.

    The networks of an edRVFL variant share their work; other methods are fitted one by one, and what
    their refits need to know of the search fits is appended to `carried`, configuration by configuration.
    """
    if method.variant:
        shared = [_shared_accuracies(method, configurations, s, random_state, device) for s in splits]
        return np.stack(shared, axis=1)
    scores = []
    for configuration in configurations:
        fits = [_depth_accuracies(method, configuration, s, random_state, device) for s in splits]
        scores.append([accuracies for accuracies, _ in fits])
        if carried is not None:
            carried.append(float(np.mean([value for _, value in fits])))
    return np.array(scores)


def _shared_accuracies(
    method: Method,
    configurations: Sequence[Configuration],
    split: SearchSplit,
    random_state: int,
    device: str,
) -> np.ndarray:
    """Validation accuracy (configuration, depth), the figures of the networks fitted one by one."""
    m, v = len(split.y_fit), len(split.y_validation)
    search = edrvfl.EDRVFLClassifierCV(
        variant=str(method.variant),
        space=[dict(configuration) for configuration in configurations],
        cv=[(np.arange(m), np.arange(m, m + v))],
        refit=False,
        memory=SEARCH_MEMORY[device.split(":")[0]],
        random_state=random_state,
        **method.fixed,
    )
    y = np.concatenate([split.y_fit, split.y_validation])
    with _arrays_on(device, np.concatenate([split.X_fit, split.X_validation])) as (X,):
        scores = search.fit(X, y).cv_results_["split0_test_score"]
    return np.reshape(scores, (len(configurations), -1))


def _depth_accuracies(
    method: Method, configuration: Configuration, split: SearchSplit, random_state: int, device: str
) -> tuple[list[float], float]:
    """Validation accuracy at depths 1, 2, ..., or of one depth; and what the method carries to its refit."""
    model = method.build(configuration, random_state)
    with _arrays_on(device, split.X_fit, split.X_validation) as (X_fit, X_validation):
        model.fit(X_fit, split.y_fit)
        staged = model.staged_predict if method.depth else lambda X: [model.predict(X)]
        accuracies = [float(np.mean(_host(y) == split.y_validation)) for y in staged(X_validation)]
    return accuracies, float(getattr(model, method.carry[0])) if method.carry else math.nan


def _search(cell: Cell, first: int) -> dict[str, Any]:
    """The unit search/first: the configuration of that number and those searched together with it."""
    d = cell.dataset
    splits = [SearchSplit(d.X[s.fit], d.y[s.fit], d.X[s.validation], d.y[s.validation]) for s in d.splits]
    group = next(group for group in _groups(cell) if group[0] == first)
    configurations = [cell.configurations[i] for i in group]
    carried: list[float] | None = [] if cell.method.carry else None
    seed = seed_of("search", d.name)
    scores = validation_scores(cell.method, configurations, splits, seed, cell.device, carried)
    return {"scores": scores.tolist()} | ({"carried": carried} if carried else {})


def _groups(cell: Cell) -> list[list[int]]:
    """Numbers of the configurations, those together that are searched in one call."""
    return groups(cell.configurations, cell.method.together)


def groups(configurations: Sequence[Configuration], together: Sequence[str]) -> list[list[int]]:
    """Configurations that differ in nothing but the parameters `together`; alone if there are none.

    Examples
    --------
    >>> groups([{"n": 20, "lam": 1}, {"n": 50, "lam": 1}, {"n": 20, "lam": 2}], together=["lam"])
    [[0, 2], [1]]
    """
    found: dict[Any, list[int]] = {}
    for i, configuration in enumerate(configurations):
        rest = tuple((name, value) for name, value in configuration.items() if name not in together)
        found.setdefault(rest if together else i, []).append(i)
    return list(found.values())


# --- choose ------------------------------------------------------------------------------------------


def choose(scores: np.ndarray) -> tuple[int, int]:
    """Best (configuration, depth - 1) of scores (configuration, depth): the shallower, then the first drawn.

    Examples
    --------
    >>> choose(np.array([[0.5, 0.9], [0.9, 0.9], [0.9, 0.5]]))
    (1, 0)
    """
    by_depth = np.round(scores, TIE_DIGITS).T
    depth, configuration = np.unravel_index(np.argmax(by_depth), by_depth.shape)
    return int(configuration), int(depth)


def _choices(cell: Cell, done: Mapping[str, Any]) -> dict[str, list[tuple[int, int]]]:
    """(configuration, depth - 1) of each split, for both ways to choose."""
    scores = _scores(cell, done)
    splits = range(scores.shape[1])
    return {
        "paper": [choose(scores.mean(axis=1))] * len(splits),  # one for all, by the mean of the splits
        "strict": [choose(scores[:, split]) for split in splits],  # each split by its own validation part
    }


def _scores(cell: Cell, done: Mapping[str, Any]) -> np.ndarray:
    scores = np.concatenate([done[unit]["scores"] for unit in _search_units(cell)])
    order = np.concatenate(_groups(cell))
    return scores[np.argsort(order)]


# --- refit -------------------------------------------------------------------------------------------


def _refit(
    cell: Cell, configuration: int, depth: int, split: int, repeat: int, carried: int | None = None
) -> dict[str, Any]:
    """The unit refit/configuration/depth/split/repeat: fit on fit and validation rows, score on test."""
    d, part, method = cell.dataset, cell.dataset.splits[split], cell.method
    settings = dict(cell.configurations[configuration])
    if method.carry is not None:
        settings[method.carry[1]] = carried
    model = method.build(settings, seed_of("hidden", d.name, repeat), depth)
    with _arrays_on(cell.device, d.X[part.train], d.X[part.test]) as (X_train, X_test):
        start = time.perf_counter()
        model.fit(X_train, d.y[part.train])
        fitted = time.perf_counter()
        P = _host(model.predict_proba(X_test))
        predicted = time.perf_counter()
        labels, classes = _host(model.predict(X_test)), _host(model.classes_)
    scores = _test_scores(d, part, labels, P, classes)
    return scores | {"fit_seconds": fitted - start, "predict_seconds": predicted - fitted}


def _test_scores(
    d: Dataset, part: Split, labels: np.ndarray, P: np.ndarray, classes: np.ndarray
) -> dict[str, float]:
    """The one place where test labels are read."""
    y = d.y[part.test]
    every = np.arange(int(d.y.max()) + 1)
    probabilities = np.zeros((len(y), len(every)))  # a class that the training rows lack has none
    probabilities[:, classes.astype(int)] = P
    recalls = recall_score(y, labels, labels=np.unique(y), average="macro", zero_division=0)
    return {
        "test_accuracy": float(accuracy_score(y, labels)),
        "balanced_accuracy": float(recalls),
        "log_loss": float(log_loss(y, probabilities, labels=every)),
    }


# --- units -------------------------------------------------------------------------------------------

STAGES: Mapping[str, Callable[..., dict[str, Any]]] = {"search": _search, "refit": _refit}


def _search_units(cell: Cell) -> list[str]:
    return [f"search/{group[0]}" for group in _groups(cell)]


def _refit_unit(cell: Cell, done: Mapping[str, Any], choice: tuple[int, int], split: int, repeat: int) -> str:
    """A unit needs nothing but the cell, so what the search hands to the refit stands in its name."""
    configuration, depth = choice
    name = f"refit/{configuration}/{depth + 1}/{split}/{repeat}"
    if cell.method.carry is None:
        return name
    group = next(group for group in _groups(cell) if configuration in group)
    carried = done[f"search/{group[0]}"]["carried"][group.index(configuration)]
    return f"{name}/{round(carried)}"


def pending(cell: Cell, done: Mapping[str, Any]) -> list[str]:
    """Units that can be done now, given the values of those done; none: `record` has all it needs."""
    if failure(done):
        return []
    if search := [unit for unit in _search_units(cell) if unit not in done]:
        return search
    refits = (
        _refit_unit(cell, done, choice, split, repeat)
        for choices in _choices(cell, done).values()
        for split, choice in enumerate(choices)
        for repeat in range(cell.seeds)
    )
    return [unit for unit in dict.fromkeys(refits) if unit not in done]  # what both chose is fitted once


def expected_units(description: Mapping[str, Any]) -> int:
    """The most units a cell of this description can need."""
    searches = len(groups(description["configurations"], description["together"]))
    return int(searches + 2 * description["splits"] * description["seeds"])


def compute(cell: Cell, unit: str) -> dict[str, Any]:
    """Do one unit; its value is plain data."""
    stage, *numbers = unit.split("/")
    start = time.perf_counter()
    with warnings.catch_warnings():
        # The search tries penalties at which the Gram is singular; the least-norm answer is the method's.
        warnings.simplefilter("ignore", LinAlgWarning)
        value = STAGES[stage](cell, *map(int, numbers))
    return value | {"seconds": time.perf_counter() - start}


def failure(done: Mapping[str, Any]) -> str | None:
    """The message of the first unit that failed."""
    failed = sorted(unit for unit, value in done.items() if "error" in value)
    return f"{failed[0]}: {done[failed[0]]['error']}" if failed else None


def run_cell(cell: Cell) -> RunRecord:
    """A whole cell here and now, without a store."""
    done: dict[str, Any] = {}
    while units := pending(cell, done):
        done |= {unit: compute(cell, unit) for unit in units}
    return record(cell, done)


# --- the record --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Choice:
    """One way to choose: what was chosen for each split, and its scores for each split and seed."""

    configuration: tuple[int, ...]
    parameters: tuple[Mapping[str, Any], ...]
    depth: tuple[int, ...]
    validation_accuracy: tuple[float, ...]
    test_accuracy: tuple[tuple[float, ...], ...]
    balanced_accuracy: tuple[tuple[float, ...], ...]
    log_loss: tuple[tuple[float, ...], ...]
    fit_seconds: tuple[tuple[float, ...], ...]
    predict_seconds: tuple[tuple[float, ...], ...]

    def mean_and_sd(self, metric: str = "test_accuracy") -> tuple[float, float]:
        """Mean over the splits of each seed; mean and standard deviation of these over the seeds."""
        by_seed = np.mean(getattr(self, metric), axis=0)
        return float(np.mean(by_seed)), float(np.std(by_seed, ddof=1)) if len(by_seed) > 1 else math.nan


@dataclass(frozen=True, slots=True)
class RunRecord:
    """The answer of one cell. Plain values throughout: `to_json` and `from_json` lose nothing."""

    key: str
    method: str
    dataset: str
    checksum: str
    status: str  # "ok" or "failed"
    message: str | None
    n_configurations: int
    seeds: int
    choices: Mapping[str, Choice]  # "paper" and "strict"; none if failed
    search_seconds: float
    finished: str | None  # date and time, UTC
    device: str
    versions: Mapping[str, str]
    commit: str | None
    protocol: int

    def to_json(self) -> str:
        """One line of JSON."""
        return json.dumps(dataclasses.asdict(self), allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> RunRecord:
        """The record that `to_json` wrote."""
        fields = json.loads(text)
        choices = {
            name: Choice(**{key: _tuples(value) for key, value in choice.items()})
            for name, choice in fields["choices"].items()
        }
        return cls(**(fields | {"choices": choices}))

    def without_times(self) -> RunRecord:
        """The same with nothing in it that a clock decides: equal for equal work."""
        timeless = {
            name: dataclasses.replace(choice, fit_seconds=(), predict_seconds=())
            for name, choice in self.choices.items()
        }
        return dataclasses.replace(self, choices=timeless, search_seconds=0.0, finished=None)

    def results(self) -> dict[str, Any]:
        """What was found, as plain values, without where it was found."""
        fields = dataclasses.asdict(self)
        return {name: fields[name] for name in fields if name not in ("device", "versions", "commit")}


def record(cell: Cell, done: Mapping[str, Any]) -> RunRecord:
    """The record of a cell whose units are all done, or one of which failed."""
    message = failure(done)
    searched = [done[unit] for unit in _search_units(cell) if unit in done]
    choices = {} if message else {k: _choice(cell, done, v) for k, v in _choices(cell, done).items()}
    return RunRecord(
        key=cell.key,
        method=cell.method.name,
        dataset=cell.dataset.name,
        checksum=cell.dataset.checksum,
        status="failed" if message else "ok",
        message=message,
        n_configurations=len(cell.configurations),
        seeds=cell.seeds,
        choices=choices,
        search_seconds=math.fsum(value.get("seconds", 0.0) for value in searched),
        finished=datetime.now(UTC).isoformat(timespec="seconds"),
        device=device_name(cell.device),
        versions=versions(cell.device),
        commit=commit(),
        protocol=PROTOCOL_VERSION,
    )


def _choice(cell: Cell, done: Mapping[str, Any], chosen: Sequence[tuple[int, int]]) -> Choice:
    scores = _scores(cell, done)
    refits = [
        [done[_refit_unit(cell, done, choice, split, repeat)] for repeat in range(cell.seeds)]
        for split, choice in enumerate(chosen)
    ]
    return Choice(
        configuration=tuple(c for c, _ in chosen),
        parameters=tuple(dict(cell.configurations[c]) for c, _ in chosen),
        depth=tuple(depth + 1 for _, depth in chosen),
        validation_accuracy=tuple(float(scores[c, split, l]) for split, (c, l) in enumerate(chosen)),
        **{metric: tuple(tuple(v[metric] for v in row) for row in refits) for metric in METRICS},
    )


def same_results(a: Any, b: Any, tolerance: float = 1e-9) -> bool:
    """Whether two plain values agree, times aside; numbers to what another machine may change."""
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        keys = (a.keys() | b.keys()) - set(TIMES)
        return all(k in a and k in b and same_results(a[k], b[k], tolerance) for k in keys)
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(map(lambda x, y: same_results(x, y, tolerance), a, b))
    if isinstance(a, float) and isinstance(b, float):
        return math.isclose(a, b, rel_tol=tolerance, abs_tol=tolerance)
    return bool(a == b)


def _tuples(value: Any) -> Any:
    return tuple(_tuples(v) for v in value) if isinstance(value, list) else value


# --- where it ran ------------------------------------------------------------------------------------


@contextmanager
def _arrays_on(device: str, *arrays: np.ndarray) -> Iterator[tuple[Any, ...]]:
    """The arrays where they are to be worked on: in NumPy for "cpu", else as torch tensors on the device."""
    if device == "cpu":
        yield arrays
        return
    import torch

    with sklearn.config_context(array_api_dispatch=True):  # asks for SCIPY_ARRAY_API=1 in the environment
        yield tuple(torch.asarray(array, device=device) for array in arrays)


def _host(array: Any) -> np.ndarray:
    return np.asarray(array.cpu() if hasattr(array, "cpu") else array)


def check_device(device: str) -> None:
    """Say before the run that a device is not there, rather than in every record."""
    if device == "cpu":
        return
    try:
        import torch
    except ImportError as error:
        raise ValueError(f"device {device!r} needs torch: pip install 'edrvfl[torch]' ({error}).") from error
    if device.startswith("cuda") and not torch.cuda.is_available():
        raise ValueError(f"device {device!r}: torch sees no CUDA device here; take device 'cpu'.")


@cache
def device_name(device: str) -> str:
    """The device and, of a GPU, its model."""
    if not device.startswith("cuda"):
        return device
    import torch

    return f"{device} ({torch.cuda.get_device_name(device)})" if torch.cuda.is_available() else device


@cache
def versions(device: str = "cpu") -> Mapping[str, str]:
    """Versions of all that decides the last digits."""
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
def commit() -> str | None:
    """The commit of the checkout that edrvfl runs from, marked if it was changed; None outside one."""
    folder = Path(edrvfl.__file__).parent
    git = ("git", "-C", str(folder))
    try:
        subprocess.run([*git, "ls-files", "--error-unmatch", "__init__.py"], check=True, capture_output=True)
        describe = [*git, "describe", "--always", "--abbrev=40", "--dirty", "--exclude=*"]
        return subprocess.run(describe, check=True, capture_output=True, text=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None
