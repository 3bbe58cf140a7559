"""What a search scores: networks that are not fitted, what they have in common, and the rows of results."""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

from sklearn.base import clone

from .._fitting.settings import PAPER_WEIGHTS, InputSettings, NetworkSettings, network_settings
from .._layers.records import PAPER_SHAPE, Settings

Key = TypeVar("Key")
# What a search takes where a parameter is "auto" or "loo".
PAPER_VALUES = {
    **dataclasses.asdict(PAPER_SHAPE),
    "input_scaling": None,
    "correct_weight": PAPER_WEIGHTS["omega_r"],
    "prune_rate": PAPER_WEIGHTS["p"],
}


@dataclass(frozen=True, slots=True)
class Work:
    """Everything that decides the scores of a network on a split. Two that are equal mean the same scores."""

    network: NetworkSettings
    seed: int  # of its random layers, and of the rows that are held back
    coverage_from: str | None  # "split" holds rows back
    class_weight: Hashable = None

    @classmethod
    def of(cls, estimator: Any) -> Work:
        """Read the parameters of a network."""
        weights = getattr(estimator, "class_weight", None)
        weights = frozenset(weights.items()) if isinstance(weights, Mapping) else weights
        seed = clone(estimator)._draw_seed()  # a clone, so that a RandomState instance does not move on
        return cls(network_settings(estimator), seed, estimator.coverage_from, weights)


def key_without(record: Key, *differing: str) -> Key:
    """Return a record with None in the fields that are marked so: those in which networks may differ.

    Every field that is not marked, here or in a record within, is part of the key.
    """
    changes: dict[str, Any] = {}
    for field in dataclasses.fields(record):  # type: ignore[arg-type]
        value = getattr(record, field.name)
        if field.metadata.get("differs") in differing:
            changes[field.name] = None
        elif dataclasses.is_dataclass(value):
            changes[field.name] = key_without(value, *differing)
    return dataclasses.replace(record, **changes)  # type: ignore[type-var]


@dataclass(frozen=True, eq=False)
class Candidate:
    """One network of a search."""

    number: int  # its place among all candidates
    estimator: Any  # with all its parameters, not fitted
    depths: frozenset[int]  # at which it is a result
    work: Work

    @property
    def settings(self) -> Settings:
        """The settings of the layers."""
        return self.work.network.layers

    @property
    def inputs(self) -> InputSettings:
        """How the columns become inputs."""
        return self.work.network.inputs

    @cached_property
    def prepared(self) -> Work:
        """A key: networks that share it have the same rows, inputs and random layers."""
        return key_without(self.work, "read-out", "features", "growth", "depth")

    @cached_property
    def stack(self) -> Work:
        """A key: networks that share it are prepared alike, and can be stacked."""
        return key_without(self.work, "read-out", "features")

    @cached_property
    def features(self) -> Work:
        """A key: networks that share it have the same features and differ in their read-outs."""
        return key_without(self.work, "read-out")

    @property
    def reading(self) -> Hashable:
        """A key: networks that share it read the columns of a frame in the same way."""
        return self.inputs.encoder is None, self.inputs.categorical_features, self.inputs.text_features

    def at(self, depth: int) -> Any:
        """Return the network of this depth, not fitted."""
        return clone(self.estimator).set_params(n_layers=depth)


@dataclass(frozen=True, slots=True, eq=False)
class ResultRow:
    """One row of the results: a candidate at one depth."""

    candidate: Candidate
    depth: int
    params: dict[str, Any]  # what the search set


def result_rows(estimator: Any, configurations: Sequence[Mapping[str, Any]]) -> list[ResultRow]:
    """Return what is scored: every configuration at every depth, or at the depth that it names.

    Configurations that differ in `n_layers` alone are one network, because a shallower one is its prefix.
    """
    base = estimator.get_params(deep=False)
    networks: dict[Work, Any] = {}
    rows: dict[tuple[Work, int], dict[str, Any]] = {}  # each network at each depth once
    for configuration in configurations:
        model = _configured(estimator, base, configuration)
        for name, value in PAPER_VALUES.items():
            # one network for all splits and the refit, whatever their rows; the search is what proves it
            if getattr(model, name) in ("auto", "loo"):
                setattr(model, name, value)
        identity = key_without(Work.of(model), "depth")
        network = networks.setdefault(identity, model)
        network.n_layers = max(network.n_layers, model.n_layers)
        for depth in [model.n_layers] if "n_layers" in configuration else range(1, model.n_layers + 1):
            rows.setdefault((identity, depth), {**configuration, "n_layers": depth})
    depths: dict[Work, set[int]] = {}
    for identity, depth in rows:
        depths.setdefault(identity, set()).add(depth)
    candidates = {
        identity: Candidate(i, model, frozenset(depths[identity]), Work.of(model))
        for i, (identity, model) in enumerate(networks.items())
    }
    return [ResultRow(candidates[identity], depth, params) for (identity, depth), params in rows.items()]


def _configured(estimator: Any, base: dict[str, Any], configuration: Mapping[str, Any]) -> Any:
    """Return an estimator with the parameters of a configuration, checked. Nothing of the user's is changed.

    `base` holds the estimator's own parameters.
    """
    values = clone(dict(configuration), safe=False)
    own = {name: value for name, value in values.items() if name in base}
    model = type(estimator)(**base | own)
    if len(own) < len(values):  # settings of the encoder, or names that nobody knows
        of_encoder = [name for name in values if name.startswith("encoder__")]
        if of_encoder and not hasattr(model.encoder, "set_params"):
            raise ValueError(
                f"{of_encoder[0]!r} sets a parameter of a TabularEncoder, but encoder={model.encoder!r}. "
                "Give the estimator, or param_distributions, a TabularEncoder."
            )
        model = clone(model).set_params(**values)
    model._validate_params()
    return model
