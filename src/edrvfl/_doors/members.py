"""The table of a portfolio's members, and what a user's own members may set."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sklearn.base import clone, is_classifier, is_regressor
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)

from .._fitting.settings import SUITED, Effort
from .base import Estimator
from .classifier import EDRVFLClassifier
from .encoder import TabularEncoder
from .kernel import KernelRidgeClassifier, KernelRidgeRegressor
from .regressor import EDRVFLRegressor

# What all networks of the table share. Beside two kernel voters further layers and neurons gain nothing.
SIZE: Mapping[str, Any] = {"n_layers": 2, "n_hidden": 256}  # neurons: see `EFFORTS`
# Of the classifiers, leave-one-out chooses the penalties and who is weighted.
SHARED: Mapping[str, Any] = {
    **SIZE,
    "regularization": "loo",
    "weight_from": "loo",
    "ensemble": "mean",
    "correct_weight": 0.8,
    "prune_rate": 0.2,
}
BINS: Mapping[str, Any] = {"encoder": "bins", "input_scaling": "loo"}
RAW: Mapping[str, Any] = {"encoder": "robust", "input_scaling": "loo"}
SPARSE: Mapping[str, Any] = {"inputs_per_neuron": 3, "hidden_per_neuron": 8}
SIGMOID: Mapping[str, Any] = {"activation": "sigmoid", "norm_scale": (1.0, 4.0), "norm_shift": (-2.0, 2.0)}
PAIRS: Mapping[str, Any] = {"pair_share": 0.5}
NEUTRAL: Mapping[str, Any] = {"correct_weight": 1.0, "prune_rate": 0.0}
# Each kernel with the inputs that suit it. The two that prove best on some of the rows are fitted to all.
# The table of members. How it was found: benchmarks/portfolio.py, and the kernels by benchmarks/kernels.py.
MEMBERS: Mapping[str, Any] = {
    **{f"{kind} kernel": KernelRidgeClassifier(kernel=kind, encoder=seen) for kind, seen in SUITED.items()},
    "dense": EDRVFLClassifier(**{**SHARED, **BINS, **PAIRS, **NEUTRAL}),
    "sparse": EDRVFLClassifier(**SHARED, **BINS, **SPARSE, **SIGMOID),
    "raw dense": EDRVFLClassifier(**SHARED, **RAW, **PAIRS, **SIGMOID),
    "raw sparse": EDRVFLClassifier(**SHARED, **RAW, **SPARSE),
}
# The members of a portfolio for values: the same, with what regressors have.
VALUE_MEMBERS: Mapping[str, Any] = {
    **{f"{kind} kernel": KernelRidgeRegressor(kernel=kind, encoder=seen) for kind, seen in SUITED.items()},
    "dense": EDRVFLRegressor(**SIZE, **BINS, **PAIRS),
    "sparse": EDRVFLRegressor(**SIZE, **BINS, **SPARSE, **SIGMOID),
    "raw sparse": EDRVFLRegressor(**SIZE, **RAW, **SPARSE),
}
# Trees, which err on other rows than networks. Of a bootstrap each row is out of the bag of a third of them.
BAGGED: Mapping[str, Any] = {"n_estimators": 200, "bootstrap": True, "oob_score": True}
TREES: Mapping[str, Any] = {
    "extra trees": ExtraTreesClassifier(**BAGGED),
    "boosted trees": HistGradientBoostingClassifier(),
}
VALUE_TREES: Mapping[str, Any] = {
    "extra trees": ExtraTreesRegressor(**BAGGED),
    "boosted trees": HistGradientBoostingRegressor(),
}
# What the portfolio decides, and the value that leaves it to the portfolio.
DECIDED: Mapping[str, Any] = {
    "class_weight": None,
    "random_state": None,
    "calibration": "loo",
    "layer_votes": "equal",
    "readout": "layers",
    "coverage_from": "loo",
    "remember": None,
    "categorical_features": "from_dtype",
    "text_features": "from_dtype",
}


def members_of(table: Mapping[str, Any], effort: Effort) -> dict[str, Any]:
    """Return those of a table that an effort has, the networks in its size."""
    kernels = {f"{kind} kernel" for kind in effort.kernels}
    networks = {name: one for name, one in table.items() if hasattr(one, "n_hidden") and effort.n_hidden}
    sized = {name: clone(one).set_params(n_hidden=effort.n_hidden) for name, one in networks.items()}
    return {name: one for name, one in {**table, **sized}.items() if name in kernels or name in sized}


def check_member(name: str, estimator: Any, kinds: tuple[type[Any], ...], classifies: bool) -> None:
    """Refuse what cannot be a member, and settings that the portfolio decides."""
    if not isinstance(estimator, kinds):
        _check_guest(name, estimator, kinds, classifies)
        return
    if estimator.encoder is None:
        raise ValueError(f"Member {name!r} has encoder=None, but members of a portfolio encode their inputs.")
    of_estimator = estimator.get_params(deep=False)
    given = {parameter: of_estimator.get(parameter, value) for parameter, value in DECIDED.items()}
    if isinstance(estimator.encoder, TabularEncoder):
        for parameter in ("categorical_features", "text_features"):
            given[parameter] = getattr(estimator.encoder, parameter)
    for parameter, value in given.items():
        default = DECIDED[parameter]
        # the columns may be named by an array, whose comparison is one
        if value is not default and not (isinstance(value, str) and value == default):
            raise ValueError(
                f"Member {name!r} sets {parameter}, which the portfolio decides: leave it at {default!r}."
            )


def refuse_to_remember(
    remember: str | None, members: Mapping[str, Any], kinds: tuple[type[Any], ...]
) -> None:
    """Refuse members whose read-outs cannot be solved again from what a portfolio is asked to keep."""
    for name, member in members.items() if remember is not None else ():
        if not isinstance(member, kinds):
            raise ValueError(
                f"Member {name!r} is a {type(member).__name__}, which has no read-out in closed form: it can "
                f"only be fitted anew. Leave it out, or set remember=None instead of {remember!r}."
            )
        if remember == "sums" and not hasattr(member, "n_layers"):
            raise ValueError(
                f"Member {name!r} is a {type(member).__name__}, whose system needs the rows themselves. Set "
                'remember="rows".'
            )


def _check_guest(name: str, estimator: Any, kinds: tuple[type[Any], ...], classifies: bool) -> None:
    """Refuse what is no estimator of scikit-learn of the right kind, and classifiers of labels alone."""
    follows = hasattr(estimator, "__sklearn_tags__") and not isinstance(estimator, (type, Estimator))
    if not (follows and (is_classifier if classifies else is_regressor)(estimator)):
        wanted = " or ".join(f"{'an' if kind.__name__[0] == 'E' else 'a'} {kind.__name__}" for kind in kinds)
        other = f"a {'classifier' if classifies else 'regressor'} that follows scikit-learn"
        raise TypeError(f"Member {name!r} must be {wanted}, or {other}, got {estimator!r}.")
    if classifies and not hasattr(estimator, "predict_proba"):
        raise TypeError(
            f"Member {name!r} has no predict_proba, and a portfolio pools probabilities. Wrap it: "
            f"sklearn.calibration.CalibratedClassifierCV({type(estimator).__name__}(...))."
        )
