"""What a search scores: estimators that are not fitted, and the rows of results that they fill."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

from sklearn.base import clone

from .._doors.encoder import TabularEncoder, as_encoder


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """One configuration of the estimator that is tuned."""

    number: int  # its place among all candidates
    estimator: Any  # with all its parameters, not fitted
    depths: set[int]  # at which it is a result; {1} for an estimator without layers

    @property
    def reader(self) -> TabularEncoder | None:
        """The encoder that reads the columns of a frame; None takes finite numbers as they are."""
        e = self.estimator
        if hasattr(e, "encoder"):
            return as_encoder(e.encoder)
        return TabularEncoder(categorical_features=e.categorical_features)

    @property
    def door(self) -> Hashable:
        """A key: candidates that share it read the columns of a frame in the same way."""
        return door_of(self.reader)

    def at(self, depth: int) -> Any:  # noqa: ARG002
        """Return the estimator of one row of the results, not fitted."""
        return clone(self.estimator)


def door_of(encoder: Any) -> Hashable:
    """Return a key that is the same for encoders that read the columns of a frame in the same way."""
    found = as_encoder(encoder)
    if found is None:
        return "numbers"
    return None if found.categorical_features is None else str(list(found.categorical_features))


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
