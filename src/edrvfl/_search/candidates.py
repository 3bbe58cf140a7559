"""What a search scores: estimators that are not fitted, and the rows of results that they fill."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

from sklearn.base import clone

from .._fitting.settings import InputSettings, input_settings


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """One configuration of the estimator that is tuned."""

    number: int  # its place among all candidates
    estimator: Any  # with all its parameters, not fitted
    depths: set[int]  # at which it is a result; {1} for an estimator without layers

    @property
    def reader(self) -> InputSettings:
        """How the columns of a frame are read."""
        return input_settings(self.estimator)

    @property
    def door(self) -> Hashable:
        """A key: candidates that share it read the columns of a frame in the same way."""
        return door_of(self.estimator)

    def at(self, depth: int) -> Any:  # noqa: ARG002
        """Return the estimator of one row of the results, not fitted."""
        return clone(self.estimator)


def door_of(estimator: Any) -> Hashable:
    """Return a key that is the same for estimators that read the columns of a frame in the same way."""
    inputs = input_settings(estimator)
    return "numbers" if inputs.encoder is None else (inputs.categorical_features,)


@dataclass(frozen=True, slots=True, eq=False)
class ResultRow:
    """One row of the results: a candidate at one depth."""

    candidate: Candidate
    depth: int
    params: dict[str, Any]  # what the search set


def configured(estimator: Any, base: dict[str, Any], configuration: Mapping[str, Any]) -> Any:
    """Return an estimator with the parameters of a configuration, checked. Nothing of the user's is changed.

    `base` holds the estimator's own parameters.
    """
    values = clone(dict(configuration), safe=False)
    own = {name: value for name, value in values.items() if name in base}
    model = type(estimator)(**base | own)
    if len(own) < len(values):  # settings of the encoder, or names that nobody knows
        of_encoder = [name for name in values if name.startswith("encoder__")]
        if of_encoder and not hasattr(getattr(model, "encoder", model), "set_params"):
            raise ValueError(
                f"{of_encoder[0]!r} sets a parameter of a TabularEncoder, but encoder={model.encoder!r}. "
                "Give the estimator, or param_distributions, a TabularEncoder."
            )
        model = clone(model).set_params(**values)
    model._validate_params()
    return model
