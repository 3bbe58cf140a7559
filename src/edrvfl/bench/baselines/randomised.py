"""What SCN, BLS and H-ELM share: the scikit-learn shell, the ridge, sampling.

This is also the only file of the baselines that imports private modules of the library. What is imported
under its own name is passed on to the other files.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from array_api_compat import array_namespace
from scipy import stats
from scipy.special import softmax
from sklearn.base import ClassifierMixin
from sklearn.model_selection import ParameterSampler
from sklearn.utils import check_random_state

from edrvfl._doors.answers import Classifies
from edrvfl._inputs.rows import prepare_rows, refuse_one_class
from edrvfl._inputs.rows import to_host as to_host
from edrvfl._inputs.targets import Classes, Values
from edrvfl._ridge.equations import Regression
from edrvfl._ridge.solve import ridge as solve_ridge
from edrvfl._seam.arrays import Array as Array
from edrvfl._seam.arrays import from_numpy as from_numpy
from edrvfl._seam.sklearn import Interval as Interval
from edrvfl._seam.sklearn import StrOptions as StrOptions
from edrvfl._seam.sklearn import _fit_context

BLOCK_ROWS = 8192  # predictions compute the features of this many rows at a time, to bound the memory

COUNT = Interval(Integral, 1, None, closed="left")
POSITIVE = Interval(Real, 0, None, closed="neither")
NOT_NEGATIVE = Interval(Real, 0, None, closed="left")


def fit_context() -> Any:
    """Decorate `fit`, so that scikit-learn checks the parameters before it runs."""
    return _fit_context(prefer_skip_nested_validation=True)


def seed_sequence(random_state: Any) -> np.random.SeedSequence:
    """Draw one integer from scikit-learn's `random_state`, and make it the root of all seeds of a fit."""
    return np.random.SeedSequence(check_random_state(random_state).randint(np.iinfo(np.int32).max))


def ridge(D: Array, Y: Array, C: float) -> Array:
    """beta = (D'D + C I)^-1 D'Y, by the library's solver; the least-norm solution if that is singular."""
    return solve_ridge(Regression(D, Values(Y)), C).beta


class ScoredClassifier(ClassifierMixin, Classifies):
    """A classifier that derives all its answers from one method, `_scores`, through the library's shell."""

    random_state: Any
    class_weight = None  # every row counts alike
    classes_: Any = None  # stored by `fit`; there is no model that knows them
    _columns = None  # finite numbers are taken as they are

    @abstractmethod
    def _scores(self, X: Any, method: str) -> Array:
        """Check the rows X and return their scores (m, k); errors name `method`, which the user called."""

    def _answers(self, X: Any, method: str) -> Array:
        return softmax(self._scores(X, method), axis=1)

    def _prepare_training_rows(self, X: Any, y: Any) -> tuple[Array, Classes]:
        """Check X and y, store the labels in `classes_`, and return X with its targets on its device."""
        rows = prepare_rows(*self._check_training_rows(X, y)[:2], merge=False)  # nobody asks for weights
        refuse_one_class(rows.classes, type(self).__name__)
        assert isinstance(rows.targets, Classes)
        self.classes_ = rows.classes
        return rows.X, rows.targets

    def predict_proba(self, X: Any) -> Array:
        """Return the softmax of the classes' scores. Nothing calibrates it."""
        return self._answers(X, "predict_proba")

    def decision_function(self, X: Any) -> Array:
        """Score the classes; with two classes, the score of the second minus that of the first."""
        scores = self._scores(X, "decision_function")
        return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores


class RandomisedClassifier(ScoredClassifier):
    """scores = features(X) output_weights: random features and a read-out that is solved in closed form."""

    output_weights_: Array

    @abstractmethod
    def _learn(self, X: Array, Y: Array, seed: np.random.SeedSequence) -> None:
        """Learn the features and the output weights from rows X (m, d) and one-hot targets Y (m, k)."""

    @abstractmethod
    def _features(self, X: Array) -> Array:
        """Compute the features (m, L) of rows X (m, d); no row may influence another."""

    @fit_context()
    def fit(self, X: Any, y: Any) -> Self:
        """Fit the network to numeric, finite rows with labels of at least two classes.

        Torch arrays are accepted too if scikit-learn's array API dispatch is on.
        """
        X, targets = self._prepare_training_rows(X, y)
        Y = targets.rows(slice(0, X.shape[0]))
        self._learn(X, Y, seed_sequence(self.random_state))
        return self

    def _scores(self, X: Any, method: str) -> Array:
        X = self._check_new_rows(X, method)
        m = X.shape[0]
        blocks = [X[i : min(i + BLOCK_ROWS, m), :] for i in range(0, m, BLOCK_ROWS)]
        return array_namespace(X).concat([self._features(b) @ self.output_weights_ for b in blocks], axis=0)

    @property
    def _fitted_array(self) -> Array:
        return self.output_weights_


@dataclass(frozen=True, slots=True)
class LogInteger:
    """Whole numbers from low to high, uniform in the logarithm: what scipy.stats has only for floats."""

    low: int
    high: int

    def rvs(self, random_state: Any = None) -> int:
        """Draw one number, under the name that scikit-learn's sampler calls."""
        return round(float(stats.loguniform(self.low, self.high).rvs(random_state=random_state)))


Space = Mapping[str, Any]  # parameter -> a sequence of values or a distribution with the method `rvs`


def sample_configurations(space: Space | Sequence[Space], trials: int, seed: int) -> list[dict[str, Any]]:
    """Draw configurations as plain Python numbers, floats with six digits, so that JSON keeps them.

    The first of many draws are the draws of few, except where a space holds nothing but lists of values:
    there no configuration comes twice.
    """
    if trials < 1:
        raise ValueError(f"trials must be at least 1, got {trials}.")
    spaces = [dict(s) for s in ([space] if isinstance(space, Mapping) else space)]
    sampler = ParameterSampler(spaces, trials, random_state=seed)
    return [{name: _plain(value) for name, value in drawn.items()} for drawn in sampler]


def _plain(value: Any) -> Any:
    value = value.item() if isinstance(value, np.generic) else value
    return float(f"{value:.6g}") if isinstance(value, float) else value
