"""What users would pick instead: the real packages, tuned by the study's protocol over published spaces.

The first configuration of every search is empty, which stands for the package's own defaults. Every model is
told to use one thread, because a cell of the study runs on one. HistGradientBoosting has no such parameter
and follows OMP_NUM_THREADS or threadpoolctl.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy.special import expit, softmax
from scipy.stats import loguniform
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC

from ..data import Task
from .randomised import LogInteger, Space, sample_configurations

PENALTIES = tuple(10.0**x for x in range(-3, 4))  # of ridge regression, chosen by leave-one-out
MOST_STEPS = 1_000_000  # of a support vector machine: C and gamma at the ends of their ranges may need hours


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


def logistic_regression(*, random_state: Any = None, **configuration: Any) -> Any:
    """Make a logistic regression on standardised inputs."""
    # The default of 100 iterations is often too few to converge.
    model = LogisticRegression(max_iter=5000, random_state=random_state, **configuration)
    return make_pipeline(StandardScaler(), model)


def linear_model(
    *, random_state: Any = None, task: Task = "classification", texts: Sequence[str] = ()
) -> Any:
    """Make a linear model of standardised numbers and of 0 and 1 for each text of the columns `texts`.

    A gap in a column of numbers becomes its median, and a column that says so.
    """
    numbers = make_pipeline(
        SimpleImputer(strategy="median", add_indicator=True, keep_empty_features=True), StandardScaler()
    )
    inputs = make_column_transformer((OneHotEncoder(handle_unknown="ignore"), list(texts)), remainder=numbers)
    if task == "regression":
        return make_pipeline(inputs, RidgeCV(alphas=PENALTIES))
    return make_pipeline(inputs, LogisticRegression(max_iter=5000, random_state=random_state))


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
SPACES: Mapping[str, Space] = {
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
    "CatBoost": {"learning_rate": _RATES, "depth": LogInteger(2, 12), "l2_leaf_reg": loguniform(0.5, 30.0)},
}


def configurations(trials: int, seed: int, *, space: str) -> list[dict[str, Any]]:
    """List what the search tries: the package's defaults, then draws from its space."""
    return [{}, *sample_configurations(SPACES[space], trials, seed)[:-1]]
