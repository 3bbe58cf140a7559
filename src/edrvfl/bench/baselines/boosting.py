"""Gradient boosting by four packages, and early stopping that treats them alike."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.ensemble import HistGradientBoostingClassifier

from ..data import Task
from . import packages
from .fnn.training import hold_out
from .randomised import seed_sequence

EXTRA = "peers"
MOST_ROUNDS, PATIENCE = 1000, 20  # of boosting in a search, as in the benchmark of Grinsztajn et al. (2022)
HELD_OUT = 0.1  # the share of the rows by whose loss boosting stops


class _OnCodes(ClassifierMixin, BaseEstimator):
    """A classifier whose model was fitted on the codes 0..k-1 of the labels `classes_`."""

    classes_: np.ndarray

    def _ask(self, method: str, X: Any) -> Any:
        """Let the model answer, by its method `predict` or `predict_proba`."""
        raise NotImplementedError

    def predict(self, X: Any) -> np.ndarray:
        """Predict labels as they came in `fit`."""
        labels: np.ndarray = self.classes_[np.asarray(self._ask("predict", X)).ravel()]
        return labels

    def predict_proba(self, X: Any) -> np.ndarray:
        """Predict probabilities in the order of `classes_`."""
        # XGBoost's are float32, whose sums are too far from 1 for scikit-learn's log-loss.
        P = np.asarray(self._ask("predict_proba", X), dtype=np.float64)
        normalised: np.ndarray = P / P.sum(axis=1, keepdims=True)
        return normalised


@dataclass(eq=False, repr=False)
class Coded(_OnCodes):
    """A classifier that is fitted on the codes 0..k-1 of the labels.

    XGBoost refuses labels with gaps, which appear where a rare class is absent from the rows of a fit.
    CatBoost returns labels as a column. Both are cured by codes.
    """

    estimator: Any  # `fit` clones it

    def fit(self, X: Any, y: Any) -> Coded:
        """Fit the classifier on the codes of y."""
        self.classes_, codes = np.unique(y, return_inverse=True)
        self.estimator_ = clone(self.estimator).fit(X, codes)
        return self

    def _ask(self, method: str, X: Any) -> Any:
        return getattr(self.estimator_, method)(X)


# --- four packages -----------------------------------------------------------------------------------


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
    """What a package calls its boosting, how it boosts a given number of rounds, and how it stops early."""

    package: str
    kinds: tuple[str, str]  # its classifier and its regressor
    rounds: str  # the parameter that holds the number of rounds
    stop_early: Callable[[Any, Any, Any, Any, Any], int]  # fits, and returns the best round
    count: Callable[[Any], int]  # the rounds of a model that was fitted
    given: Mapping[str, Any] = field(default_factory=dict)  # one thread, and no messages
    whole: Mapping[str, Any] = field(default_factory=dict)  # keeps the package from holding out rows itself
    coded: bool = False  # whether its classifier needs the labels as codes


BOOSTERS: Mapping[str, Booster] = {
    "HistGradientBoosting": Booster(
        "sklearn.ensemble",  # it stops early above 10 000 rows
        ("HistGradientBoostingClassifier", "HistGradientBoostingRegressor"),
        "max_iter",
        _stop_hist,
        lambda model: model.n_iter_,
        whole={"early_stopping": False},
    ),
    "LightGBM": Booster(
        "lightgbm",
        ("LGBMClassifier", "LGBMRegressor"),
        "n_estimators",
        _stop_lightgbm,
        lambda model: model.n_estimators_,
        given={"n_jobs": 1, "verbosity": -1},
    ),
    "XGBoost": Booster(
        "xgboost",
        ("XGBClassifier", "XGBRegressor"),
        "n_estimators",
        _stop_xgboost,
        lambda model: model.get_booster().num_boosted_rounds(),
        given={"n_jobs": 1},
        coded=True,
    ),
    "CatBoost": Booster(
        "catboost",
        ("CatBoostClassifier", "CatBoostRegressor"),
        "iterations",
        _stop_catboost,
        lambda model: model.tree_count_,
        # Without the last flag every fit leaves a folder catboost_info where the study was started.
        given={"thread_count": 1, "verbose": False, "allow_writing_files": False},
        coded=True,
    ),
}


def make_booster(
    name: str, *, random_state: Any = None, task: Task = "classification", **configuration: Any
) -> Any:
    """Make a package's regressor or classifier, with labels as codes where it needs them."""
    booster, classes = BOOSTERS[name], task == "classification"
    package = packages.import_package(name, booster.package, EXTRA)
    make = getattr(package, booster.kinds[0 if classes else 1])
    model = make(random_state=random_state, **booster.given, **configuration)
    return Coded(model) if classes and booster.coded else model


def vectorized(*, random_state: Any = None, task: Task = "classification") -> Any:
    """Make scikit-learn's gradient boosting after skrub's TableVectorizer, set up as skrub does for it."""
    package = packages.import_package("TableVectorizer", "skrub", EXTRA)
    boosting = make_booster("HistGradientBoosting", random_state=random_state, task=task)
    of_texts = {"tablevectorizer__high_cardinality__random_state": random_state}  # of its SVD of texts
    return package.tabular_pipeline(boosting).set_params(**of_texts)


@dataclass(eq=False, repr=False)
class EarlyStopped(_OnCodes):
    """Boosting that finds its number of rounds on rows that it holds out, or takes the number it is given.

    All four packages are treated alike: a share of every class is held out, boosting stops `PATIENCE` rounds
    after the smallest log-loss on these rows, and `n_rounds_` is the best round. With `n_rounds` nothing is
    held out. Without `parameters` boosting stops where the package's own defaults do, since these are what a
    user gets who types nothing; so it does where no row can be held out.
    """

    package: str  # who boosts, of `BOOSTERS`
    parameters: Mapping[str, Any] | None = None  # of the package's classifier; by default its own
    n_rounds: int | None = None  # from earlier fits; by default this fit finds it
    random_state: Any = None  # seeds the package, and the rows that are held out

    def fit(self, X: Any, y: Any) -> EarlyStopped:
        """Fit the package's classifier on the codes of the labels."""
        self.classes_, codes = np.unique(y, return_inverse=True)
        booster = BOOSTERS[self.package]
        given = dict(self.parameters or {})
        held = np.zeros(len(codes), dtype=bool)
        if self.n_rounds is not None:
            given |= {booster.rounds: self.n_rounds, **booster.whole}
        elif given:
            rng = np.random.default_rng(seed_sequence(self.random_state))
            held = hold_out(codes, HELD_OUT, rng)
        if held.any():
            given[booster.rounds] = MOST_ROUNDS
        model = make_booster(self.package, random_state=self.random_state, **given)
        self.model_ = model.estimator if isinstance(model, Coded) else model  # the codes are here already
        if held.any():
            self.n_rounds_ = booster.stop_early(self.model_, X[~held], codes[~held], X[held], codes[held])
        else:
            self.model_.fit(X, codes)
            self.n_rounds_ = booster.count(self.model_)
        return self

    def _ask(self, method: str, X: Any) -> Any:
        """Ask the best rounds. scikit-learn alone would answer with all rounds up to the stop."""
        model, best = self.model_, self.n_rounds_
        if isinstance(model, HistGradientBoostingClassifier) and best < model.n_iter_:
            return next(islice(getattr(model, f"staged_{method}")(X), best - 1, None))
        return getattr(model, method)(X)


def boosting(
    package: str, *, random_state: Any = None, n_rounds: int | None = None, **configuration: Any
) -> EarlyStopped:
    """Make boosting that stops early, or boosts a given number of rounds."""
    return EarlyStopped(package, configuration, n_rounds, random_state)
