"""The paper's protocol for one method on one dataset: search -> choose -> refit -> score.

The search scores every configuration and depth on the validation rows of each split. Two choices follow from
it: "paper" takes one configuration for all splits, "strict" one for each split. The chosen networks are
fitted again on fit and validation rows and scored on the test rows, with several hidden seeds.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .cell import Cell, Done, RefitUnit, SearchUnit, Unit, Value, find_failure, seed_of
from .data import Dataset
from .device import arrays_on, device_name
from .record import Choice, RunRecord
from .scores import METRICS, fit_and_score
from .searching import Configuration, Method, SearchSplit

PROTOCOL_VERSION = 1  # part of every key: raise it when the same inputs give other figures
TIE_DIGITS = 12  # accuracies that agree to so many digits are equal


@dataclass(frozen=True, eq=False)
class StudyCell(Cell[RunRecord]):
    """A method on a dataset. Everything it will try is drawn beforehand."""

    method: Method
    dataset: Dataset
    configurations: tuple[Configuration, ...]
    seeds: int
    device: str

    def describe(self) -> dict[str, Any]:
        searches = len(self.method.batches(self.configurations))
        return {
            "kind": RunRecord.kind,
            "protocol": PROTOCOL_VERSION,
            "method": self.method.name,
            "dataset": self.dataset.name,
            "checksum": self.dataset.checksum,
            "splits": len(self.dataset.splits),
            "trials": len(self.configurations),
            "seeds": self.seeds,
            "fixed": dict(self.method.fixed),
            "configurations": [dict(c) for c in self.configurations],
            "most_units": searches + 2 * len(self.dataset.splits) * self.seeds,
        }

    def pending(self, done: Done) -> list[Unit]:
        """Return the searches that are left, then the refits that are left."""
        if find_failure(done):
            return []
        if searches := [unit for unit in _search_units(self) if unit not in done]:
            return [*searches]
        # Both ways to choose may ask for the same refit, which is then done once.
        refits = dict.fromkeys(unit for _, units in _refit_units(self, done) for row in units for unit in row)
        return [unit for unit in refits if unit not in done]

    def compute(self, unit: Any) -> Value:
        return search(self, unit) if isinstance(unit, SearchUnit) else refit(self, unit)

    def record(self, done: Done) -> RunRecord:
        head = self.head(done, self.device)
        chosen = _refit_units(self, done) if head["status"] == "ok" else ()
        searched = [value for unit, value in done.items() if isinstance(unit, SearchUnit)]
        return RunRecord(
            checksum=self.dataset.checksum,
            n_configurations=len(self.configurations),
            seeds=self.seeds,
            choices={name: _choice(self, done, units) for name, units in chosen},
            search_seconds=math.fsum(value.get("seconds", 0.0) for value in searched),
            device=device_name(self.device),
            protocol=PROTOCOL_VERSION,
            **head,
        )


def make_cell(method: Method, dataset: Dataset, trials: int, seeds: int, device: str = "cpu") -> StudyCell:
    """Make the cell of a method and a dataset, with `trials` configurations and `seeds` refits."""
    if trials < 1 or seeds < 1:
        raise ValueError(f"trials and seeds must be at least 1, got trials={trials} and seeds={seeds}.")
    configurations = tuple(method.configurations(trials, seed_of("configurations", dataset.name)))
    return StudyCell(method, dataset, configurations, seeds, "cpu" if method.cpu_only else device)


def search(cell: StudyCell, unit: SearchUnit) -> Value:
    """Score the unit's configurations on every split: scores (configuration, split, depth)."""
    configurations = [cell.configurations[i] for i in unit.configurations]
    seed = seed_of("search", cell.dataset.name)
    X, y = cell.dataset.X, cell.dataset.y
    splits = [SearchSplit(X[s.fit], y[s.fit], X[s.validation], y[s.validation]) for s in cell.dataset.splits]
    results = [cell.method.search(configurations, split, seed, cell.device) for split in splits]
    value: Value = {"scores": np.stack([result.scores for result in results], axis=1).tolist()}
    if epochs := [result.epochs for result in results if result.epochs is not None]:
        value["epochs"] = np.mean(epochs, axis=0).tolist()
    return value


def _search_units(cell: StudyCell) -> list[SearchUnit]:
    return [SearchUnit(batch) for batch in cell.method.batches(cell.configurations)]


def _collect_scores(cell: StudyCell, done: Done) -> np.ndarray:
    """Put the scores of all search units into the order of the configurations."""
    units = _search_units(cell)
    scores = np.concatenate([done[unit]["scores"] for unit in units])
    return scores[np.argsort(np.concatenate([unit.configurations for unit in units]))]


def choose(scores: np.ndarray) -> tuple[int, int]:
    """Return the best (configuration, depth - 1) of scores (configuration, depth).

    Of equal scores the shallower wins, then the configuration that was drawn first.

    >>> choose(np.array([[0.5, 0.9], [0.9, 0.9], [0.9, 0.5]]))
    (1, 0)
    """
    by_depth = np.round(scores, TIE_DIGITS).T
    depth, configuration = np.unravel_index(np.argmax(by_depth), by_depth.shape)
    return int(configuration), int(depth)


def choose_both_ways(scores: np.ndarray) -> dict[str, list[tuple[int, int]]]:
    """Choose (configuration, depth - 1) for each split from scores (configuration, split, depth)."""
    splits = range(scores.shape[1])
    return {
        "paper": [choose(scores.mean(axis=1))] * len(splits),  # one for all, by the mean of the splits
        "strict": [choose(scores[:, split]) for split in splits],  # each split by its own validation rows
    }


def _refit_units(cell: StudyCell, done: Done) -> Iterator[tuple[str, list[list[RefitUnit]]]]:
    """For both ways to choose, yield its name and its refits by split and hidden seed."""
    epochs = {
        i: round(epochs)
        for unit in _search_units(cell)
        for i, epochs in zip(unit.configurations, done[unit].get("epochs", ()), strict=False)
    }
    for name, chosen in choose_both_ways(_collect_scores(cell, done)).items():
        yield (
            name,
            [
                [RefitUnit(c, depth + 1, split, repeat, epochs.get(c)) for repeat in range(cell.seeds)]
                for split, (c, depth) in enumerate(chosen)
            ],
        )


def refit(cell: StudyCell, unit: RefitUnit) -> Value:
    """Fit on the fit and validation rows of a split, and score on its test rows."""
    d, part = cell.dataset, cell.dataset.splits[unit.split]
    seed = seed_of("hidden", cell.dataset.name, unit.repeat)
    configuration = cell.configurations[unit.configuration]
    model = cell.method.build(configuration, seed, unit.depth, unit.epochs, final=True)
    with arrays_on(cell.device, d.X[part.train], d.X[part.test]) as (X_train, X_test):
        return fit_and_score(model, X_train, X_test, d, part)


def _choice(cell: StudyCell, done: Done, refits: Sequence[Sequence[RefitUnit]]) -> Choice:
    """Put the refits of one way to choose, by split and hidden seed, into a record."""
    scores = _collect_scores(cell, done)
    chosen = [row[0] for row in refits]
    metrics: dict[str, Any] = {
        m: tuple(tuple(done[u].get(m) for u in row) for row in refits) for m in METRICS
    }
    if any(None in row for row in metrics["calibration_error"]):  # a refit stored before it was measured
        del metrics["calibration_error"]
    return Choice(
        configuration=tuple(unit.configuration for unit in chosen),
        parameters=tuple(dict(cell.configurations[unit.configuration]) for unit in chosen),
        depth=tuple(unit.depth for unit in chosen),
        validation_accuracy=tuple(float(scores[u.configuration, u.split, u.depth - 1]) for u in chosen),
        **metrics,
    )
