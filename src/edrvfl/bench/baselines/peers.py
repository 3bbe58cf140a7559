"""What users would pick instead: the real packages, tuned by the study's protocol over published spaces.

The first configuration of every search is empty, which stands for the package's own defaults. Every model is
told to use one thread, because a cell of the study runs on one. HistGradientBoosting has no such parameter
and follows OMP_NUM_THREADS or threadpoolctl.
"""

from __future__ import annotations

import warnings
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
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from ..data import Task
from . import packages
from .fnn.training import hold_out
from .randomised import LogInteger, Space, sample_configurations, seed_sequence

EXTRA = "peers"
MOST_ROUNDS, PATIENCE = 1000, 20  # of boosting in a search, as in the benchmark of Grinsztajn et al. (2022)
HELD_OUT = 0.1  # the share of the rows by whose loss boosting stops
MOST_STEPS = 1_000_000  # of a support vector machine: C and gamma at the ends of their ranges may need hours

# --- models ------------------------------------------------------------------------------------------


class SoftmaxSVC(SVC):
    """An SVC whose probabilities are the softmax of its decision, for two classes the logistic function.

    The probabilities are not calibrated. scikit-learn's calibration refits the machine in five folds, and
    refuses a class with fewer rows than folds, as some of the study's datasets have. The softmax is always
    defined, costs nothing, and leaves the machine and its labels as they are.
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> SoftmaxSVC:
        """Fit the machine. One that needs more steps than it may take is what it is then."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            super().fit(X, y, sample_weight)
        return self

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
        return normalised(self.estimator_.predict_proba(X))


class EarlyStopped(ClassifierMixin, BaseEstimator):
    """Boosting that finds its number of rounds on rows that it holds out, or takes the number it is given.

    All four packages are treated alike: a share of every class is held out, boosting stops `PATIENCE` rounds
    after the smallest log-loss on these rows, and `n_rounds_` is the best round. With `n_rounds` nothing is
    held out. A package's defaults are not stopped, since they are what a user gets who types nothing.

    Parameters
    ----------
    package : {"HistGradientBoosting", "LightGBM", "XGBoost", "CatBoost"}
        Who boosts.

    parameters : dict, optional
        Parameters of the package's classifier; by default its own.

    n_rounds : int, optional
        Number of rounds, from earlier fits. By default this fit finds it.

    random_state : int, optional
        Seed of the package and of the rows that are held out.
    """

    def __init__(
        self,
        package: str,
        parameters: Mapping[str, Any] | None = None,
        n_rounds: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.package = package
        self.parameters = parameters
        self.n_rounds = n_rounds
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> EarlyStopped:
        """Fit the package's classifier on the codes of the labels."""
        self.classes_, codes = np.unique(y, return_inverse=True)
        booster = BOOSTERS[self.package]
        searching = self.n_rounds is None and bool(self.parameters)
        rounds = MOST_ROUNDS if searching else self.n_rounds
        given = dict(self.parameters or {}) | ({} if rounds is None else {booster.rounds: rounds})
        model = booster.make(random_state=self.random_state, **given)
        # The makers of XGBoost and CatBoost wrap their classifier for the codes, which are here already.
        self.model_ = model.estimator if isinstance(model, Coded) else model
        if searching:
            rng = np.random.default_rng(seed_sequence(self.random_state))
            held = hold_out(codes, HELD_OUT, rng)
            self.n_rounds_ = booster.stop_early(self.model_, X[~held], codes[~held], X[held], codes[held])
        else:
            self.model_.fit(X, codes)
            self.n_rounds_ = booster.count(self.model_)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Predict labels as they came in `fit`."""
        labels: np.ndarray = self.classes_[np.asarray(self.model_.predict(X)).ravel()]
        return labels

    def predict_proba(self, X: Any) -> np.ndarray:
        """Predict probabilities in the order of `classes_`."""
        return normalised(self.model_.predict_proba(X))


def normalised(P: Any) -> np.ndarray:
    """Divide probabilities by their sum: XGBoost's float32 are too far from 1 for scikit-learn's log-loss."""
    P = np.asarray(P, dtype=np.float64)
    divided: np.ndarray = P / P.sum(axis=1, keepdims=True)
    return divided


def logistic_regression(*, random_state: Any = None, **configuration: Any) -> Any:
    """Make a logistic regression on standardised inputs."""
    # The default of 100 iterations is often too few to converge.
    model = LogisticRegression(max_iter=5000, random_state=random_state, **configuration)
    return make_pipeline(StandardScaler(), model)


def rbf_svm(*, random_state: Any = None, **configuration: Any) -> Any:
    """Make a support vector machine on standardised inputs."""
    del random_state  # the machine is not random
    return make_pipeline(StandardScaler(), _limited_svm(**configuration))


def _limited_svm(**configuration: Any) -> SVC:
    """Make a machine that ends, whatever the search asks for; without a configuration it is the package's."""
    if not configuration:
        return SoftmaxSVC()
    return SoftmaxSVC(max_iter=MOST_STEPS, cache_size=1000, **configuration)


def calibrated_svm(*, random_state: Any = None, **configuration: Any) -> Any:
    """Make a support vector machine on standardised inputs whose probabilities are real ones.

    This is what scikit-learn recommends in place of SVC's own `probability=True`. Of the ways to calibrate
    that it offers, its default, the sigmoid, is the fairest by log-loss. On validation rows of the 18
    datasets of at most 6 000 rows, first split, means: sigmoid 0.565, temperature 0.622, softmax without
    calibration 0.657, isotonic 0.718. (Without arrhythmia the temperature is ahead by 0.006.)
    """
    del random_state  # neither the machine nor its folds are random: other seeds are the same fit again
    machine = make_pipeline(StandardScaler(), _limited_svm(**configuration))
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


# --- boosting that stops early -----------------------------------------------------------------------


def _stop_hist(model: Any, X: Any, y: Any, X_held: Any, y_held: Any) -> int:
    model.set_params(early_stopping=True, n_iter_no_change=PATIENCE).fit(X, y, X_val=X_held, y_val=y_held)
    return max(1, int(np.argmax(model.validation_score_)))  # the first score is of no round


def _stop_lightgbm(model: Any, X: Any, y: Any, X_held: Any, y_held: Any) -> int:
    package = packages.import_package("LightGBM", "lightgbm", EXTRA)
    stop = package.early_stopping(PATIENCE, verbose=False)
    return int(model.fit(X, y, eval_X=X_held, eval_y=y_held, callbacks=[stop]).best_iteration_)


def _stop_xgboost(model: Any, X: Any, y: Any, X_held: Any, y_held: Any) -> int:
    model.set_params(early_stopping_rounds=PATIENCE).fit(X, y, eval_set=[(X_held, y_held)], verbose=False)
    return int(model.best_iteration) + 1


def _stop_catboost(model: Any, X: Any, y: Any, X_held: Any, y_held: Any) -> int:
    model.fit(X, y, eval_set=(X_held, y_held), early_stopping_rounds=PATIENCE)
    return int(model.tree_count_)  # it keeps the best rounds alone


@dataclass(frozen=True, slots=True)
class Booster:
    """How a package boosts a given number of rounds, and how it stops early."""

    make: Callable[..., Any]
    rounds: str  # the parameter that holds the number of rounds
    stop_early: Callable[[Any, Any, Any, Any, Any], int]  # fits, and returns the best round
    count: Callable[[Any], int]  # the rounds of a model that was fitted


BOOSTERS: Mapping[str, Booster] = MappingProxyType(
    {
        "HistGradientBoosting": Booster(
            hist_gradient_boosting, "max_iter", _stop_hist, lambda model: model.n_iter_
        ),
        "LightGBM": Booster(lightgbm, "n_estimators", _stop_lightgbm, lambda model: model.n_estimators_),
        "XGBoost": Booster(
            xgboost, "n_estimators", _stop_xgboost, lambda model: model.get_booster().num_boosted_rounds()
        ),
        "CatBoost": Booster(catboost, "iterations", _stop_catboost, lambda model: model.tree_count_),
    }
)


def boosting(
    package: str, *, random_state: Any = None, n_rounds: int | None = None, **configuration: Any
) -> EarlyStopped:
    """Make boosting that stops early, or boosts a given number of rounds."""
    return EarlyStopped(package, configuration, n_rounds, random_state)


# --- search spaces -----------------------------------------------------------------------------------

_RATES = loguniform(0.01, 0.3)

# Where the spaces come from:
# - LightGBM, XGBoost, CatBoost: McElfresh et al., "When Do Neural Nets Outperform Boosted Trees on Tabular
#   Data?" (2023), the spaces of TabZilla.
# - HistGradientBoosting: Feurer et al., "Auto-sklearn 2.0" (2022), the space of its gradient boosting.
# - RandomForest: Grinsztajn et al., "Why do tree-based models still outperform deep learning on typical
#   tabular data?" (2022); what their space has with probabilities comes as often as that here.
# - RBF-SVM: Fernández-Delgado et al., "Do we Need Hundreds of Classifiers to Solve Real World Classification
#   Problems?" (2014), who published the partitions of the 24 datasets; C ends at 2^10 instead of 2^14, and
#   gamma at 2^3 instead of 2^8, where a fit takes very long and all rows are support vectors.
# - LogisticRegression: ours.
SPACES: Mapping[str, Space] = MappingProxyType(
    {
        "LogisticRegression": {"C": loguniform(1e-3, 1e3)},
        "RBF-SVM": {"C": tuple(2.0**x for x in range(-5, 11)), "gamma": tuple(2.0**x for x in range(-16, 4))},
        "RandomForest": {
            "n_estimators": (250,),
            "criterion": ("gini", "entropy"),
            "max_features": ("sqrt", "sqrt", "log2", None, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9),
            "max_depth": (*[None] * 7, 2, 3, 4),
            "min_samples_split": (*[2] * 19, 3),
            "min_samples_leaf": LogInteger(2, 50),
            "bootstrap": (True, False),
            "min_impurity_decrease": (*[0.0] * 17, 0.01, 0.02, 0.05),
        },
        "HistGradientBoosting": {
            "learning_rate": loguniform(0.01, 1.0),
            "max_leaf_nodes": LogInteger(3, 2047),
            "min_samples_leaf": LogInteger(1, 200),
            "l2_regularization": loguniform(1e-10, 1.0),
        },
        "LightGBM": {
            "learning_rate": _RATES,
            "num_leaves": LogInteger(2, 4096),
            "reg_alpha": loguniform(1e-8, 10.0),
            "reg_lambda": loguniform(1e-8, 10.0),
        },
        "XGBoost": {
            "learning_rate": _RATES,
            "max_depth": LogInteger(2, 12),
            "reg_alpha": loguniform(1e-8, 1.0),
            "reg_lambda": loguniform(1e-8, 1.0),
        },
        "CatBoost": {
            "learning_rate": _RATES,
            "depth": LogInteger(2, 12),
            "l2_leaf_reg": loguniform(0.5, 30.0),
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
    rounds: str | None = None  # the parameter that early stopping finds, for the refit
    final: Callable[..., Any] | None = None  # makes what is refitted, where that is not what is searched


def missing_package(peer: Peer) -> str | None:
    """Return None if the package of a peer is installed, else a message that says how to install it."""
    return packages.missing_package(peer.name, peer.package, EXTRA)


def _row(name: str, estimator: Callable[..., Any], final: Callable[..., Any] | None = None) -> Peer:
    return Peer(name, estimator, partial(configurations, space=name), "sklearn", final=final)


def _booster(name: str, package: str) -> Peer:
    drawn = partial(configurations, space=name)
    return Peer(name, partial(boosting, name), drawn, package, rounds="n_rounds")


_ROWS = (
    _row("LogisticRegression", logistic_regression),
    _row("RBF-SVM", rbf_svm, calibrated_svm),  # the search looks at labels, which need no calibration
    _row("RandomForest", random_forest),
    _booster("HistGradientBoosting", "sklearn"),
    _booster("LightGBM", "lightgbm"),
    _booster("XGBoost", "xgboost"),
    _booster("CatBoost", "catboost"),
)

PEERS: Mapping[str, Peer] = MappingProxyType({row.name: row for row in _ROWS})
