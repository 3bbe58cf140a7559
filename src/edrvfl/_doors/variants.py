"""The paper's names for its methods."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .classifier import EDRVFLClassifier

# The paper's methods, plain RVFL and dRVFL, as parameter values. What is not named keeps its default.
NEUTRAL: Mapping[str, Any] = {"correct_weight": 1.0, "prune_rate": 0.0}
VARIANTS: Mapping[str, Mapping[str, Any]] = {
    "RVFL": {**NEUTRAL, "n_layers": 1, "renormalize": False},
    "edRVFL_O": {**NEUTRAL, "renormalize": False},
    "edRVFL_N": NEUTRAL,
    "dRVFL": {**NEUTRAL, "readout": "joint"},
    "WedRVFL": {"correct_weight": 0.8, "prune_rate": 0.0},
    "PedRVFL": {"correct_weight": 1.0, "prune_rate": 0.2},
    "WPedRVFL": {"correct_weight": 0.8, "prune_rate": 0.2},
}
# The paper takes the ensemble's answer as it is, and the same shape for every number of rows.
OF_ALL: Mapping[str, Any] = {"calibration": None, "n_layers": 10, "n_hidden": 512, "input_scaling": None}


def variant(name: str, **params: Any) -> EDRVFLClassifier:
    """Build a classifier by the name that the paper gives it.

    Its probabilities are the paper's, the mean of the layers' softmax, not calibrated: ``calibration="loo"``
    among the parameters calibrates them.

    Parameters
    ----------
    name : {"RVFL", "edRVFL_O", "edRVFL_N", "dRVFL", "WedRVFL", "PedRVFL", "WPedRVFL"}
        The method, in any case. "dRVFL" (Shi et al., 2021) has one read-out over all layers. Here it has the
        features of "edRVFL_N", re-normalised too, and differs from it in the read-out alone.

    **params
        Parameters of :class:`EDRVFLClassifier`; they win over the method's own.

    Returns
    -------
    classifier : EDRVFLClassifier
        Not fitted.

    Examples
    --------
    >>> from edrvfl import variant
    >>> variant("PedRVFL", prune_rate=0.4)
    EDRVFLClassifier(calibration=None, correct_weight=1.0, input_scaling=None,
                     n_hidden=512, n_layers=10, prune_rate=0.4)
    """
    names = {known.casefold(): known for known in VARIANTS}
    if name.casefold() not in names:
        raise ValueError(f"Unknown variant {name!r}; choose one of {', '.join(VARIANTS)}.")
    return EDRVFLClassifier(**{**OF_ALL, **VARIANTS[names[name.casefold()]], **params})
