"""Section 5.5 of the paper: what omega_r and p do to the accuracy of WPedRVFL, with everything else fixed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from edrvfl import EDRVFLClassifier

from . import paper
from .cell import Done, FitCell, SensitivityUnit, Value, seed_of
from .data import Dataset
from .protocol import PROTOCOL_VERSION
from .record import SensitivityRecord, made_alike

WEIGHTS = (1.0, 0.8, 0.6, 0.4, 0.2)  # omega_r, the weight of samples that are predicted correctly
RATES = (0.0, 0.2, 0.4, 0.6, 0.8)  # p
ACTIVATIONS = ("relu", "sigmoid")
DATASETS = tuple(paper.WEIGHTING_HELPS)
SEEDS = 10

NEUTRAL: Mapping[str, float] = {"correct_weight": 1.0, "prune_rate": 0.0}
SYMBOLS: Mapping[str, str] = {"correct_weight": "omega_r", "prune_rate": "p"}


@dataclass(frozen=True, eq=False)
class SensitivityCell(FitCell[SensitivityRecord]):
    """One value of omega_r and of p on one dataset. A grid that grows later finds its old cells done.

    All values share the hidden seeds, so they compare in pairs.
    """

    unit = SensitivityUnit

    dataset: Dataset
    point: Mapping[str, Any]  # activation, correct_weight and prune_rate
    settings: Mapping[str, Any]
    seeds: int

    def describe(self) -> dict[str, Any]:
        return {
            "kind": SensitivityRecord.kind,
            "protocol": PROTOCOL_VERSION,
            "method": paper.BEST,
            "dataset": self.dataset.name,
            "checksum": self.dataset.checksum,
            "splits": len(self.dataset.splits),
            "trials": 1,
            "seeds": self.seeds,
            **self.point,
            "settings": dict(self.settings),
            "most_units": len(self.dataset.splits) * self.seeds,
        }

    def build(self, seed: int | None = None) -> EDRVFLClassifier:
        """Make the network of this cell, not fitted."""
        return EDRVFLClassifier(**self.point, **self.settings, input_scaling=None, random_state=seed)

    def compute(self, unit: Any) -> Value:
        """Fit on the training rows of a split and score on its test rows, in percent."""
        d, part = self.dataset, self.dataset.splits[unit.split]
        model = self.build(seed_of("hidden", d.name, unit.repeat))
        model.fit(d.X[part.train], d.y[part.train])
        accuracy = 100 * float(np.mean(model.predict(d.X[part.test]) == d.y[part.test]))
        return {"test_accuracy": accuracy, "train_accuracies": [float(a) for a in model.train_accuracies_]}

    def record(self, done: Done) -> SensitivityRecord:
        head = self.head(done)
        values = [[done[unit] for unit in row] for row in self.units()] if head["status"] == "ok" else []
        train = [accuracy for row in values for value in row for accuracy in value["train_accuracies"]]
        return SensitivityRecord(
            **self.point,
            settings=dict(self.settings),
            seeds=self.seeds,
            test_accuracy=tuple(tuple(value["test_accuracy"] for value in row) for row in values),
            train_accuracy=100 * float(np.mean(train)) if train else None,
            **head,
        )


def fixed_settings() -> dict[str, Any]:
    """Return Table 7 in the estimator's words."""
    table = paper.sensitivity_settings()
    return {
        "regularization": table["lambda"],
        "n_hidden": int(table["n"]),
        "n_layers": int(table["l"]),
        "norm_scale": table["gamma"],
        "norm_shift": table["alpha"],
    }


def make_cells(
    datasets: Sequence[Dataset],
    *,
    weights: Sequence[float] = WEIGHTS,
    rates: Sequence[float] = RATES,
    activations: Sequence[str] = ACTIVATIONS,
    seeds: int = SEEDS,
    settings: Mapping[str, Any] | None = None,
) -> list[SensitivityCell]:
    """Make the cells of section 5.5: omega_r varies with p = 0, and p varies with omega_r = 1.

    Every value is checked here, before any work. The paper's four datasets are `DATASETS`. `weights` are
    values of omega_r in (0, 1] and `rates` of p in [0, 1); the neutral values 1 and 0 are added. Each
    activation has a curve of its own. `seeds` says how often the hidden layers are drawn, and `settings`
    everything else, by default the paper's Table 7.
    """
    if seeds < 1:
        raise ValueError(f"seeds must be at least 1, got {seeds}.")
    fixed = fixed_settings() if settings is None else dict(settings)
    cells = {}
    for dataset in datasets:
        for activation in activations:
            for point in _vary_one(weights, rates):
                cell = SensitivityCell(dataset, {"activation": activation, **point}, fixed, seeds)
                cell.build()._validate_params()  # scikit-learn's message names the parameter and its range
                cells[cell.key] = cell
    return list(cells.values())


def _vary_one(weights: Sequence[float], rates: Sequence[float]) -> list[dict[str, float]]:
    """Vary one parameter while the other is neutral. Both grids share the point that is neutral in both."""
    grids = {"correct_weight": weights, "prune_rate": rates}
    return [
        {**NEUTRAL, name: float(value)}
        for name, values in grids.items()
        if values
        for value in (NEUTRAL[name], *values)
    ]


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """Test accuracy as omega_r or p varies and all else stays."""

    records: tuple[SensitivityRecord, ...]  # of the same settings and number of seeds

    @classmethod
    def of(cls, records: Iterable[SensitivityRecord]) -> Sensitivity | None:
        """Put records together; None if there is none.

        If they differ in settings or numbers of seeds, the ones that most records share are taken.
        """
        same = made_alike(records, lambda r: (tuple(sorted(r.settings.items())), r.seeds))
        return cls(tuple(sorted(same, key=_reading_order))) if same else None

    def curves(self, parameter: str) -> dict[tuple[str, str], list[SensitivityRecord]]:
        """Return the records of one parameter by (dataset, activation), from the neutral value on."""
        found: dict[tuple[str, str], list[SensitivityRecord]] = {}
        for record in self.records:
            if all(getattr(record, other) == NEUTRAL[other] for other in NEUTRAL if other != parameter):
                found.setdefault((record.dataset, record.activation), []).append(record)
        for points in found.values():
            points.sort(key=lambda record: abs(getattr(record, parameter) - NEUTRAL[parameter]))
        return found


def _reading_order(record: SensitivityRecord) -> tuple[Any, ...]:
    """Sort the paper's datasets and activations first, in the paper's order."""

    def place(name: str, known: Sequence[str]) -> tuple[int, str]:
        return known.index(name) if name in known else len(known), name

    return place(record.dataset, DATASETS), place(record.activation, ACTIVATIONS), record.key
