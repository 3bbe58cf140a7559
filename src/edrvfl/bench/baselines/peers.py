"""What users would pick instead: the real packages, tuned by the study's protocol over small spaces.

A row is a factory and its search space; the first configuration is always the empty one, the package's own
defaults. Every model is told to use one thread, because a cell of the study runs on one;
HistGradientBoosting has no such parameter and follows OMP_NUM_THREADS or threadpoolctl.
"""

from __future__ import annotations

import importlib
import importlib.util
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np
from scipy.special import expit, softmax
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

# --- factories ---------------------------------------------------------------------------------------


class SoftmaxSVC(SVC):
    """An SVC whose probabilities are the softmax of its decision, for two classes the logistic function.

    They are not calibrated. Calibration refits the machine in five folds, and is refused where a class has
    fewer rows than there are folds, as in some of the study's datasets; this is defined everywhere, costs
    nothing, and leaves the machine and its labels as they are.
    """

    def predict_proba(self, X: Any) -> np.ndarray:
        """Softmax of `decision_function`, in the order of `classes_`."""
        scores = self.decision_function(X)
        P: np.ndarray = (
            np.stack([expit(-scores), expit(scores)], 1) if scores.ndim == 1 else softmax(scores, 1)
        )
        return P


class Coded(ClassifierMixin, BaseEstimator):
    """A classifier that is given the codes 0..k-1 of the labels it sees.

    XGBoost refuses labels with gaps, which a rare class that is absent from the fit rows leaves; CatBoost
    returns labels as a column.

    Parameters
    ----------
    estimator : classifier
        Fitted as a clone.
    """

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    def fit(self, X: Any, y: Any) -> Coded:
        """Fit the classifier on the codes of y."""
        self.classes_, codes = np.unique(y, return_inverse=True)
        self.estimator_ = clone(self.estimator).fit(X, codes)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Labels as they came in `fit`."""
        labels: np.ndarray = self.classes_[np.asarray(self.estimator_.predict(X)).ravel()]
        return labels

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities in the order of `classes_`; XGBoost's float32 are made to sum to 1 in float64."""
        P = np.asarray(self.estimator_.predict_proba(X), dtype=np.float64)
        normalised: np.ndarray = P / P.sum(axis=1, keepdims=True)
        return normalised


def logistic_regression(*, random_state: Any = None, **configuration: Any) -> Any:
    """Standardised inputs; iterations enough to converge, where the default of 100 is often too few."""
    model = LogisticRegression(max_iter=5000, random_state=random_state, **configuration)
    return make_pipeline(StandardScaler(), model)


def rbf_svm(*, random_state: Any = None, **configuration: Any) -> Any:
    """Standardised inputs."""
    return make_pipeline(StandardScaler(), SoftmaxSVC(random_state=random_state, **configuration))


def random_forest(*, random_state: Any = None, **configuration: Any) -> Any:
    """As scikit-learn makes it."""
    return RandomForestClassifier(n_jobs=1, random_state=random_state, **configuration)


def hist_gradient_boosting(*, random_state: Any = None, **configuration: Any) -> Any:
    """As scikit-learn makes it: above 10 000 rows it holds some out and stops early."""
    return HistGradientBoostingClassifier(random_state=random_state, **configuration)


def lightgbm(*, random_state: Any = None, **configuration: Any) -> Any:
    """Silent."""
    make = _required("lightgbm").LGBMClassifier
    return make(n_jobs=1, verbosity=-1, random_state=random_state, **configuration)


def xgboost(*, random_state: Any = None, **configuration: Any) -> Any:
    """Labels coded."""
    make = _required("xgboost").XGBClassifier
    return Coded(make(n_jobs=1, random_state=random_state, **configuration))


def catboost(*, random_state: Any = None, **configuration: Any) -> Any:
    """Labels coded; silent, and writes no files."""
    make = _required("catboost").CatBoostClassifier
    quiet = {"verbose": False, "allow_writing_files": False}
    return Coded(make(thread_count=1, random_state=random_state, **quiet, **configuration))


def _required(package: str) -> Any:
    try:
        return importlib.import_module(package)
    except ImportError as error:
        raise ImportError(
            f"This row needs {package}, which is not installed: pip install 'edrvfl[peers]'."
        ) from error


# --- search spaces -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Log:
    """Uniform in the logarithm, whole numbers if both ends are."""

    low: float
    high: float

    def draw(self, rng: np.random.Generator) -> float | int:
        """One value, a plain number with six digits."""
        x = math.exp(rng.uniform(math.log(self.low), math.log(self.high)))
        return round(x) if isinstance(self.low, int) and isinstance(self.high, int) else float(f"{x:.6g}")


@dataclass(frozen=True, slots=True)
class OneOf:
    """One of some values."""

    values: Sequence[Any]

    def draw(self, rng: np.random.Generator) -> Any:
        """One value."""
        return self.values[int(rng.integers(len(self.values)))]


Space = Mapping[str, Log | OneOf]

_SHARES = OneOf((0.5, 0.7, 0.85, 1.0))
SPACES: Mapping[str, Space] = MappingProxyType(
    {
        "LogisticRegression": {"C": Log(1e-3, 1e3)},
        "RBF-SVM": {"C": Log(1e-2, 1e3), "gamma": Log(1e-4, 1e1)},
        "RandomForest": {
            "n_estimators": Log(100, 500),
            "max_features": OneOf(("sqrt", 0.3, 0.5, 1.0)),
            "min_samples_leaf": Log(1, 16),
        },
        "HistGradientBoosting": {
            "max_iter": Log(50, 500),
            "learning_rate": Log(0.01, 0.3),
            "max_leaf_nodes": Log(7, 127),
            "min_samples_leaf": Log(5, 50),
            "l2_regularization": Log(1e-4, 1e1),
        },
        "LightGBM": {
            "n_estimators": Log(50, 500),
            "learning_rate": Log(0.01, 0.3),
            "num_leaves": Log(7, 127),
            "min_child_samples": Log(5, 50),
            "reg_lambda": Log(1e-4, 1e1),
            "colsample_bytree": _SHARES,
        },
        "XGBoost": {
            "n_estimators": Log(50, 500),
            "learning_rate": Log(0.01, 0.3),
            "max_depth": Log(2, 10),
            "min_child_weight": Log(0.5, 16.0),
            "reg_lambda": Log(1e-4, 1e1),
            "subsample": _SHARES,
            "colsample_bytree": _SHARES,
        },
        "CatBoost": {
            "iterations": Log(100, 1000),
            "learning_rate": Log(0.01, 0.3),
            "depth": Log(3, 8),
            "l2_leaf_reg": Log(0.5, 16.0),
        },
    }
)


def configurations(trials: int, seed: int, *, space: str) -> list[dict[str, Any]]:
    """The package's defaults, then draws from its space.

    Examples
    --------
    >>> configurations(3, 0, space="LogisticRegression")
    [{}, {'C': 6.63392}, {'C': 0.0415643}]
    """
    if trials < 1:
        raise ValueError(f"trials must be at least 1, got {trials}.")
    rng = np.random.default_rng(seed)
    drawn = [{name: axis.draw(rng) for name, axis in SPACES[space].items()} for _ in range(trials - 1)]
    return [{}, *drawn]


# --- rows --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Peer:
    """One row: the functions that a study's method is made of, and the package it asks for."""

    estimator: Callable[..., Any]  # (random_state=seed, **configuration) -> classifier, not fitted
    configurations: Callable[[int, int], list[dict[str, Any]]]  # (trials, seed) -> all that will be tried
    package: str  # of the extra `peers` if not scikit-learn

    @property
    def installed(self) -> bool:
        """Whether the package can be found."""
        return importlib.util.find_spec(self.package) is not None


def _row(name: str, estimator: Callable[..., Any], package: str = "sklearn") -> tuple[str, Peer]:
    return name, Peer(estimator, partial(configurations, space=name), package)


PEERS: Mapping[str, Peer] = MappingProxyType(
    dict(
        (
            _row("LogisticRegression", logistic_regression),
            _row("RBF-SVM", rbf_svm),
            _row("RandomForest", random_forest),
            _row("HistGradientBoosting", hist_gradient_boosting),
            _row("LightGBM", lightgbm, "lightgbm"),
            _row("XGBoost", xgboost, "xgboost"),
            _row("CatBoost", catboost, "catboost"),
        )
    )
)
