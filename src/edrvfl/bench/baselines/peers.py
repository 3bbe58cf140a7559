"""What users would pick instead: the real packages, tuned by the study's protocol over small spaces.

The first configuration of every search is empty, which stands for the package's own defaults. Every model is
told to use one thread, because a cell of the study runs on one. HistGradientBoosting has no such parameter
and follows OMP_NUM_THREADS or threadpoolctl.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np
from scipy.special import expit, softmax
from scipy.stats import loguniform
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from ..data import Task
from . import packages
from .randomised import LogInteger, Space, sample_configurations

EXTRA = "peers"

# --- models ------------------------------------------------------------------------------------------


class SoftmaxSVC(SVC):
    """An SVC whose probabilities are the softmax of its decision, for two classes the logistic function.

    The probabilities are not calibrated. scikit-learn's calibration refits the machine in five folds, and
    refuses a class with fewer rows than folds, as some of the study's datasets have. The softmax is always
    defined, costs nothing, and leaves the machine and its labels as they are.
    """

    def predict_proba(self, X: Any) -> np.ndarray:
        """Take the softmax of `decision_function`, in the order of `classes_`."""
        scores = self.decision_function(X)
        P: np.ndarray = (
            np.stack([expit(-scores), expit(scores)], 1) if scores.ndim == 1 else softmax(scores, 1)
        )
        return P


class Coded(ClassifierMixin, BaseEstimator):
    """A classifier that is fitted on the codes 0..k-1 of the labels.

    XGBoost refuses labels with gaps, which appear where a rare class is absent from the rows of a fit.
    CatBoost returns labels as a column. Both are cured by codes.

    Parameters
    ----------
    estimator : classifier
        `fit` clones it.
    """

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    def fit(self, X: Any, y: Any) -> Coded:
        """Fit the classifier on the codes of y."""
        self.classes_, codes = np.unique(y, return_inverse=True)
        self.estimator_ = clone(self.estimator).fit(X, codes)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Predict labels as they came in `fit`."""
        labels: np.ndarray = self.classes_[np.asarray(self.estimator_.predict(X)).ravel()]
        return labels

    def predict_proba(self, X: Any) -> np.ndarray:
        """Predict probabilities in the order of `classes_`."""
        # XGBoost's are float32, whose sums are too far from 1 for scikit-learn's log-loss.
        P = np.asarray(self.estimator_.predict_proba(X), dtype=np.float64)
        normalised: np.ndarray = P / P.sum(axis=1, keepdims=True)
        return normalised


def logistic_regression(*, random_state: Any = None, **configuration: Any) -> Any:
    """Make a logistic regression on standardised inputs."""
    # The default of 100 iterations is often too few to converge.
    model = LogisticRegression(max_iter=5000, random_state=random_state, **configuration)
    return make_pipeline(StandardScaler(), model)


def rbf_svm(*, random_state: Any = None, **configuration: Any) -> Any:
    """Make a support vector machine on standardised inputs."""
    return make_pipeline(StandardScaler(), SoftmaxSVC(random_state=random_state, **configuration))


def calibrated_svm(*, random_state: Any = None, **configuration: Any) -> Any:
    """Make a support vector machine on standardised inputs whose probabilities are real ones.

    This is what scikit-learn recommends in place of SVC's own `probability=True`. Of the ways to calibrate
    that it offers, its default, the sigmoid, is the fairest by log-loss. On validation rows of the 18
    datasets of at most 6 000 rows, first split, means: sigmoid 0.565, temperature 0.622, softmax without
    calibration 0.657, isotonic 0.718. (Without arrhythmia the temperature is ahead by 0.006.)
    """
    del random_state  # neither the machine nor its folds are random: other seeds are the same fit again
    machine = make_pipeline(StandardScaler(), SVC(**configuration))
    # `cv` is not given: its default are five folds too, but five that are asked for refuse a class with
    # fewer rows, as some of the study's datasets have.
    return CalibratedClassifierCV(machine, ensemble=False)


def random_forest(*, random_state: Any = None, task: Task = "classification", **configuration: Any) -> Any:
    """Make scikit-learn's random forest."""
    make = RandomForestRegressor if task == "regression" else RandomForestClassifier
    return make(n_jobs=1, random_state=random_state, **configuration)


def hist_gradient_boosting(
    *, random_state: Any = None, task: Task = "classification", **configuration: Any
) -> Any:
    """Make scikit-learn's gradient boosting, which stops early above 10 000 rows."""
    make = HistGradientBoostingRegressor if task == "regression" else HistGradientBoostingClassifier
    return make(random_state=random_state, **configuration)


def lightgbm(*, random_state: Any = None, task: Task = "classification", **configuration: Any) -> Any:
    """Make LightGBM's classifier or regressor, without its messages."""
    package = packages.import_package("LightGBM", "lightgbm", EXTRA)
    make = package.LGBMRegressor if task == "regression" else package.LGBMClassifier
    return make(n_jobs=1, verbosity=-1, random_state=random_state, **configuration)


def xgboost(*, random_state: Any = None, task: Task = "classification", **configuration: Any) -> Any:
    """Make XGBoost's regressor, or its classifier with labels as codes."""
    package = packages.import_package("XGBoost", "xgboost", EXTRA)
    if task == "regression":
        return package.XGBRegressor(n_jobs=1, random_state=random_state, **configuration)
    return Coded(package.XGBClassifier(n_jobs=1, random_state=random_state, **configuration))


def catboost(*, random_state: Any = None, task: Task = "classification", **configuration: Any) -> Any:
    """Make CatBoost's regressor, or its classifier with labels as codes, without its messages."""
    package = packages.import_package("CatBoost", "catboost", EXTRA)
    # Without the second flag every fit leaves a folder catboost_info where the study was started.
    quiet = {"thread_count": 1, "verbose": False, "allow_writing_files": False}
    if task == "regression":
        return package.CatBoostRegressor(random_state=random_state, **quiet, **configuration)
    return Coded(package.CatBoostClassifier(random_state=random_state, **quiet, **configuration))


# --- search spaces -----------------------------------------------------------------------------------

_SHARES = (0.5, 0.7, 0.85, 1.0)
_RATES = loguniform(0.01, 0.3)
_PENALTIES = loguniform(1e-4, 1e1)

SPACES: Mapping[str, Space] = MappingProxyType(
    {
        "LogisticRegression": {"C": loguniform(1e-3, 1e3)},
        "RBF-SVM": {"C": loguniform(1e-2, 1e3), "gamma": loguniform(1e-4, 1e1)},
        "RandomForest": {
            "n_estimators": LogInteger(100, 500),
            "max_features": ("sqrt", 0.3, 0.5, 1.0),
            "min_samples_leaf": LogInteger(1, 16),
        },
        "HistGradientBoosting": {
            "max_iter": LogInteger(50, 500),
            "learning_rate": _RATES,
            "max_leaf_nodes": LogInteger(7, 127),
            "min_samples_leaf": LogInteger(5, 50),
            "l2_regularization": _PENALTIES,
        },
        "LightGBM": {
            "n_estimators": LogInteger(50, 500),
            "learning_rate": _RATES,
            "num_leaves": LogInteger(7, 127),
            "min_child_samples": LogInteger(5, 50),
            "reg_lambda": _PENALTIES,
            "colsample_bytree": _SHARES,
        },
        "XGBoost": {
            "n_estimators": LogInteger(50, 500),
            "learning_rate": _RATES,
            "max_depth": LogInteger(2, 10),
            "min_child_weight": loguniform(0.5, 16.0),
            "reg_lambda": _PENALTIES,
            "subsample": _SHARES,
            "colsample_bytree": _SHARES,
        },
        "CatBoost": {
            "iterations": LogInteger(100, 1000),
            "learning_rate": _RATES,
            "depth": LogInteger(3, 8),
            "l2_leaf_reg": loguniform(0.5, 16.0),
        },
    }
)


def configurations(trials: int, seed: int, *, space: str) -> list[dict[str, Any]]:
    """List what the search tries: the package's defaults, then draws from its space.

    Examples
    --------
    >>> configurations(3, 0, space="LogisticRegression")
    [{}, {'C': 1.96282}, {'C': 19.5495}]
    """
    return [{}, *sample_configurations(SPACES[space], trials, seed)[:-1]]


# --- rows --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Peer:
    """One row of the study: how to make the model, what the search tries, and which package it needs."""

    name: str
    estimator: Callable[..., Any]  # (random_state=seed, **configuration) -> classifier, not fitted
    configurations: Callable[[int, int], list[dict[str, Any]]]  # (trials, seed) -> everything to try
    package: str  # scikit-learn, or a package of the extra `peers`


def missing_package(peer: Peer) -> str | None:
    """Return None if the package of a peer is installed, else a message that says how to install it."""
    return packages.missing_package(peer.name, peer.package, EXTRA)


def _row(name: str, estimator: Callable[..., Any], package: str = "sklearn") -> Peer:
    return Peer(name, estimator, partial(configurations, space=name), package)


_ROWS = (
    _row("LogisticRegression", logistic_regression),
    _row("RBF-SVM", rbf_svm),
    _row("RandomForest", random_forest),
    _row("HistGradientBoosting", hist_gradient_boosting),
    _row("LightGBM", lightgbm, "lightgbm"),
    _row("XGBoost", xgboost, "xgboost"),
    _row("CatBoost", catboost, "catboost"),
)

PEERS: Mapping[str, Peer] = MappingProxyType({row.name: row for row in _ROWS})
