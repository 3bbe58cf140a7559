"""Small estimators of every kind with the settings that differ in code, and rows: what laws are asked of."""

from functools import cache

import numpy as np
from helpers import PAPER, noisy_rows, noisy_values
from sklearn.base import clone, is_classifier

from edrvfl import (
    EDRVFLClassifier,
    EDRVFLPortfolioClassifier,
    EDRVFLPortfolioRegressor,
    EDRVFLRegressor,
    EDRVFLSearchCV,
    KernelRidgeClassifier,
    KernelRidgeRegressor,
    TabularEncoder,
)

NETWORK = {"n_layers": 3, "n_hidden": 16, "random_state": 0}
DRAWN = {"inputs_per_neuron": 3, "hidden_per_neuron": 4, "norm_scale": (0.5, 2.0), "norm_shift": [-1.0, 1.0]}
JOINT = {"readout": "joint", "correct_weight": 1.0, "prune_rate": 0.0}
# what networks that name classes and networks that predict values both have
OF_NETWORKS = {
    "plain": {},
    "dual": {"n_hidden": 150},
    "pruned": {"prune_rate": 0.4},
    "no penalty": {"regularization": 0.0},
    "weighed": {"correct_weight": 0.4, "weight_from": "loo"},
    "weighed, dual": {"correct_weight": 0.4, "weight_from": "train", "n_hidden": 150},
    "pairs": {"pair_share": 0.5},
    "gradient": {"input_scaling": "gradient"},
    "proven": dict.fromkeys(PAPER, "loo"),
    "bins": {"encoder": TabularEncoder("bins", n_bins=4, categorical_features=[3])},
    "drawn": DRAWN,
    "all drawn": {**DRAWN, "pair_share": 0.5, "input_scaling": "gradient", "encoder": "bins"},
    "weighted votes": {"layer_votes": "weighted"},
    "prefix": {"layer_votes": "prefix", "n_hidden": "auto"},
    "numbers as they are": {"encoder": None, "renormalize": False},
    "joint": {**JOINT, "n_hidden": 8},
    "joint, dual": {**JOINT, "n_hidden": 60},
    "joint, no penalty": {**JOINT, "n_hidden": 15, "regularization": 0.0},
    "joint, chosen penalty": {**JOINT, "n_hidden": 40, "regularization": "loo"},
}
OF_CLASSIFIERS = {
    "not calibrated": {"calibration": None},
    "temperature": {"calibration": "temperature"},
    "mean": {"ensemble": "mean", "calibration": "matrix", "activation": "swish"},
    "vote": {"ensemble": "vote", "layer_votes": "weighted"},
    "balanced": {"class_weight": "balanced", "regularization": 0.0},
    "two classes": {},
    "two classes, temperature": {"calibration": "temperature", "layer_votes": "weighted"},
    "pairs of raw numbers": {"pair_share": 1.0, "renormalize": False},
}
OF_KERNELS = {
    "as it comes": {},
    "given": {"bandwidth": 0.5, "regularization": 0.1, "n_landmarks": None},
    "landmarks": {"n_landmarks": 25},
    "most rows": {"n_landmarks": 60},  # more than the rows that weigh, less than their copies
    "as they are": {"encoder": None, "input_scaling": None},
    "categories": {"encoder": TabularEncoder("robust", categorical_features=[3])},
    "smooth": {"kernel": "matern", "encoder": "loo"},
    "chosen kernel": {"kernel": "loo", "encoder": "loo"},
}


def members(network, kernel, **params):
    """A kernel and three networks, of which two share an encoder and one of these scales its inputs."""
    small = {"n_layers": 2, "n_hidden": 12, "weight_from": "loo", **params}
    given = {"correct_weight": 0.5, "prune_rate": 0.2}  # what the sparse one proves
    sigmoid = {**given, "input_scaling": None, "activation": "sigmoid", "norm_scale": (1.0, 4.0)}
    return [
        ("kernel", kernel),
        ("dense", network(**small, **given, encoder="bins", pair_share=0.5, input_scaling="gradient")),
        ("sparse", network(**small, encoder="robust", inputs_per_neuron=2, hidden_per_neuron=4)),
        ("sigmoid", network(**small, encoder="bins", **sigmoid)),
    ]


CLASS_MEMBERS = members(
    EDRVFLClassifier,
    KernelRidgeClassifier(regularization=0.3, bandwidth=1.0),
    regularization=0.5,  # leave-one-out chooses by accuracy, where rounding may decide
    ensemble="mean",
)
VALUE_MEMBERS = members(EDRVFLRegressor, KernelRidgeRegressor())
FINALISTS = {"finalists": 2, "random_state": 0}
PORTFOLIOS = {
    "class portfolio": EDRVFLPortfolioClassifier(members=CLASS_MEMBERS, **FINALISTS),
    "balanced class portfolio": EDRVFLPortfolioClassifier(
        members=CLASS_MEMBERS, class_weight="balanced", weights="equal", **FINALISTS
    ),
    "value portfolio": EDRVFLPortfolioRegressor(members=VALUE_MEMBERS, **FINALISTS),
}
# A calibration is most of the time of a small fit. What a setting does to the layers needs none.
BARE = {"calibration": None}
TO_LAYERS = {"dual", "pruned", "no penalty", "weighed", "weighed, dual", "pairs", "bins", "drawn"}
TO_LAYERS |= {"numbers as they are", "joint, dual", "joint, no penalty"}
NETWORKS = {
    **{
        f"class network, {name}": EDRVFLClassifier(
            **{**NETWORK, **PAPER, **(BARE if name in TO_LAYERS else {}), "regularization": 1.0, **params}
        )
        for name, params in (OF_NETWORKS | OF_CLASSIFIERS).items()
    },
    **{
        f"value network, {name}": EDRVFLRegressor(**{**NETWORK, **params})
        for name, params in OF_NETWORKS.items()
    },
}
KERNELS = {
    **{f"class kernel, {n}": KernelRidgeClassifier(random_state=0, **p) for n, p in OF_KERNELS.items()},
    "class kernel, balanced": KernelRidgeClassifier(class_weight="balanced", calibration="temperature"),
    **{f"value kernel, {n}": KernelRidgeRegressor(random_state=0, **p) for n, p in OF_KERNELS.items()},
}
ALL = NETWORKS | KERNELS | PORTFOLIOS
SEARCHES = {
    f"{kind} search": EDRVFLSearchCV(network(**NETWORK), {"regularization": [0.1, 4.0]}, n_iter=None, cv=2)
    for kind, network in (("class", EDRVFLClassifier), ("value", EDRVFLRegressor))
}
# one estimator of each class
SIX = {
    "class network": ALL["class network, proven"],
    "value network": ALL["value network, plain"],
    "class kernel": ALL["class kernel, as it comes"],
    "value kernel": ALL["value kernel, as it comes"],
    "class portfolio": ALL["class portfolio"],
    "value portfolio": ALL["value portfolio"],
}
EVERYBODY = ALL | SIX | SEARCHES


def rows_for(name, k=None, seed=7):
    """Draw rows of numbers, the last but one of them whole, with classes, or with one value or k values."""
    rng = np.random.default_rng(seed)
    if name.startswith(("class", "balanced class")):
        X, y = noisy_rows(rng, 90, 5)
        if "two classes" in name:
            y = np.minimum(y, 1)
    else:
        X, y = noisy_values(rng, 60, 5, k)
        y = np.round(2 * y) / 2  # some rows have the same value
        if k is not None:
            y[:, 1] = 0.3 * y[:, 1] - 3 * y[:, 0]  # opposite outputs have a sign that rounding could choose
    X[:, 3] = rng.integers(0, 3, len(y))
    return X, y


@cache
def fitted(name, k=None):
    """A fitted estimator of a name, and its rows; fitted once."""
    X, y = rows_for(name, k)
    return clone(EVERYBODY[name]).fit(X, y), X, y


def answer(model, X):
    """The probabilities of a classifier, or the values of a regressor."""
    return model.predict_proba(X) if is_classifier(model) else model.predict(X)


FIGURES = (
    "loo_accuracies_", "loo_log_losses_", "train_accuracies_", "loo_r2_scores_", "train_r2_scores_",
    "loo_accuracy_", "loo_log_loss_", "loo_r2_score_", "regularization_", "bandwidth_", "best_score_",
)  # fmt: skip


def figures(model):
    """All figures that a fit notes of itself, one after the other."""
    found = [np.ravel(getattr(model, name)) for name in FIGURES if hasattr(model, name)]
    if hasattr(model, "members_"):
        found.append(np.array(model.members_["weight"]))
    return np.concatenate(found)
