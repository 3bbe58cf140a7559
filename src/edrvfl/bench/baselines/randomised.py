"""What SCN, BLS and H-ELM share: the scikit-learn shell, the ridge, building blocks, sampling.

This is also the only file of the baselines that imports private modules of the library. What is imported
under its own name is passed on to the other files.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from array_api_compat import array_namespace, device
from scipy import stats
from scipy.special import softmax
from sklearn.base import ClassifierMixin
from sklearn.model_selection import ParameterSampler
from sklearn.preprocessing import MinMaxScaler, StandardScaler
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
CONSTANT = 0.1  # the authors' code of BLS and of H-ELM appends this number to the inputs of every layer

COUNT = Interval(Integral, 1, None, closed="left")
POSITIVE = Interval(Real, 0, None, closed="neither")
NOT_NEGATIVE = Interval(Real, 0, None, closed="left")


# --- moving arrays, seeds, the ridge -----------------------------------------------------------------


def fit_context() -> Any:
    """Decorate `fit`, so that scikit-learn checks the parameters before it runs."""
    return _fit_context(prefer_skip_nested_validation=True)


def seed_sequence(random_state: Any) -> np.random.SeedSequence:
    """Draw one integer from scikit-learn's `random_state`, and make it the root of all seeds of a fit."""
    return np.random.SeedSequence(check_random_state(random_state).randint(np.iinfo(np.int32).max))


def ridge(D: Array, Y: Array, C: float) -> Array:
    """beta = (D'D + C I)^-1 D'Y, by the library's solver; the least-norm solution if that is singular."""
    return solve_ridge(Regression(D, Values(Y)), C).beta


# --- the scikit-learn shell --------------------------------------------------------------------------


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


class AutoencodingClassifier(RandomisedClassifier):
    """What BLS and H-ELM share: scaled inputs, sparse autoencoders with random codes, a ridge read-out."""

    regularization: float
    scaling: str
    input_scaler_: StandardScaler

    # The constraints of the parameters that both methods have.
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "regularization": [NOT_NEGATIVE],
        "scale": [POSITIVE],
        "sparsity": [NOT_NEGATIVE],
        "n_iter": [COUNT],
        "scaling": [StrOptions({"feature", "sample"})],
        "random_state": ["random_state"],
    }

    def _scale_inputs(self, X: Array) -> Array:
        """Bring X to mean 0 and variance 1: by column as the training rows were, or row by row."""
        if self.scaling == "feature":
            return self.input_scaler_.transform(X)
        return fit_scaling(StandardScaler(), X, "sample")

    def _read_out(self, X: Array, Y: Array) -> Array:
        """Solve for the output weights, with targets of +1 for the class and -1 for the others."""
        return ridge(self._features(X), 2 * Y - 1, self.regularization)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # scikit-learn's check has two columns; scaled row by row, all that is left of them is which is larger
        tags.classifier_tags.poor_score = self.scaling == "sample"
        return tags


# --- building blocks of BLS and H-ELM ----------------------------------------------------------------


def fit_scaling(scaler: Any, A: Array, scaling: str) -> Array:
    """Fit a scaler and apply it to each column of A ("feature") or to each row ("sample")."""
    if scaling == "feature":
        return scaler.fit_transform(A)
    xp = array_namespace(A)
    return xp.matrix_transpose(scaler.fit_transform(xp.matrix_transpose(A)))


def with_constant(A: Array) -> Array:
    """[A, 0.1]: append a constant column."""
    xp = array_namespace(A)
    column = xp.full((A.shape[0], 1), CONSTANT, dtype=A.dtype, device=device(A))
    return xp.concat([A, column], axis=1)


def random_projection(H: Array, n: int, scaling: str, rng: np.random.Generator) -> Array:
    """A = H U with U ~ U[-1, 1] (c, n), each column (or row) brought to [-1, 1]."""
    U = from_numpy(rng.uniform(-1, 1, (H.shape[1], n)), H)
    return fit_scaling(MinMaxScaler((-1, 1)), H @ U, scaling)


def soft_threshold(B: Array, by: float) -> Array:
    """sign(B) max(|B| - by, 0)."""
    return B - array_namespace(B).clip(B, -by, by)


def random_layer(H: Array, n: int, s: float, rng: np.random.Generator) -> Array:
    """W (c, n), orthonormal, times s / max |H W|: on the training rows no tanh gets an input above s.

    The columns are orthonormal if n <= c, the rows if n > c. The authors' code divides by max H W, which
    can be negative.
    """
    draw = rng.uniform(-1, 1, (H.shape[1], n))
    W = from_numpy(np.linalg.qr(draw)[0] if n <= H.shape[1] else np.linalg.qr(draw.T)[0].T, H)
    xp = array_namespace(H)
    return W * (s / xp.max(xp.abs(H @ W)))


# --- sampling ----------------------------------------------------------------------------------------


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

    Examples
    --------
    >>> space = {"n_hidden": LogInteger(50, 1000), "scale": stats.uniform(0.1, 0.9)}
    >>> sample_configurations(space, trials=2, seed=0)
    [{'n_hidden': 259, 'scale': 0.74367}, {'n_hidden': 304, 'scale': 0.590395}]
    """
    if trials < 1:
        raise ValueError(f"trials must be at least 1, got {trials}.")
    spaces = [dict(s) for s in ([space] if isinstance(space, Mapping) else space)]
    sampler = ParameterSampler(spaces, trials, random_state=seed)
    return [{name: _plain(value) for name, value in drawn.items()} for drawn in sampler]


def _plain(value: Any) -> Any:
    value = value.item() if isinstance(value, np.generic) else value
    return float(f"{value:.6g}") if isinstance(value, float) else value
