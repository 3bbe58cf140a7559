"""H-ELM: two sparse ELM autoencoders, a random layer, ridge (Tang, Deng & Huang 2015).

BLS came out of H-ELM and takes the blocks below from here; SCN takes the scikit-learn shell.
"""

from __future__ import annotations

from abc import abstractmethod
from numbers import Integral, Real
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np
from array_api_compat import array_namespace, device
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from edrvfl._sklearn import (
    Interval,
    StrOptions,
    _convert_to_numpy,
    _fit_context,
    check_same_namespace,
    get_namespace,
    get_namespace_and_device,
    move_to,
    supported_float_dtypes,
)

Array: TypeAlias = Any  # an array of any library that follows the standard
BLOCK_ROWS = 8192  # predict holds the features of so many rows at once
CONSTANT = 0.1  # the released code appends it to the inputs of every layer
AUTOENCODERS = 2


# --- the shell ---------------------------------------------------------------------------------------


class RandomisedClassifier(ClassifierMixin, BaseEstimator):
    """Scores = random features @ output weights: what SCN, BLS and H-ELM share."""

    random_state: Any
    classes_: Array
    output_weights_: Array

    @abstractmethod
    def _learn(self, X: Array, Y: Array, seed: np.random.SeedSequence) -> None:
        """Learn features and output weights from rows X (m, d) and one-hot targets Y (m, k)."""

    @abstractmethod
    def _features(self, X: Array) -> Array:
        """Features (m, L) of rows X (m, d); each row alone."""

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any) -> Self:
        """Fit the network.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Numeric, finite training rows; with scikit-learn's array API dispatch on, also torch arrays.

        y : array-like of shape (n_samples,)
            Labels of at least two classes.

        Returns
        -------
        self : classifier
            The fitted estimator.
        """
        xp, _, where = get_namespace_and_device(X)
        dtypes = [t for t in supported_float_dtypes(xp, where) if t in (xp.float64, xp.float32)]
        X, y = validate_data(self, X, y, dtype=dtypes)
        check_classification_targets(y)
        xp, _, where = get_namespace_and_device(X)
        found = get_namespace(y)[0].unique_inverse(y)
        classes, codes = found.values, move_to(found.inverse_indices, xp=xp, device=where)
        if classes.shape[0] < 2:
            raise ValueError(
                f"{type(self).__name__} needs at least two classes, but y holds only one class "
                f"({classes[0]!r}). Pass rows of another class too."
            )
        if not (isinstance(classes, np.ndarray) and classes.dtype.kind in "OUS"):
            classes = move_to(classes, xp=xp, device=where)  # strings stay in NumPy
        every = xp.arange(classes.shape[0], dtype=codes.dtype, device=where)
        Y = xp.astype(codes[:, None] == every[None, :], X.dtype)
        seed = check_random_state(self.random_state).randint(np.iinfo(np.int32).max)
        self.classes_ = classes
        self._learn(X, Y, np.random.SeedSequence(seed))
        return self

    def _scores(self, X: Any, method: str) -> Array:
        check_is_fitted(self, "output_weights_")
        check_same_namespace(X, self, attribute="output_weights_", method=method)
        X = validate_data(self, X, reset=False, dtype=[self.output_weights_.dtype])
        starts = range(0, X.shape[0], BLOCK_ROWS)
        blocks = [
            self._features(X[i : min(i + BLOCK_ROWS, X.shape[0]), :]) @ self.output_weights_ for i in starts
        ]
        return array_namespace(X).concat(blocks, axis=0)

    def decision_function(self, X: Any) -> Array:
        """Scores of the classes; for two classes the second's less the first's.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows with the columns of `fit`.

        Returns
        -------
        scores : array of shape (n_samples, n_classes), or (n_samples,) for two classes
            `predict` takes the largest, or for two classes the sign.
        """
        return _decision(self._scores(X, "decision_function"))

    def predict_proba(self, X: Any) -> Array:
        """Softmax of the scores. They are least-squares scores: the order means something, not the values.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows with the columns of `fit`.

        Returns
        -------
        P : array of shape (n_samples, n_classes)
            In the order of `classes_`; each row sums to 1. Not calibrated.
        """
        return softmax(self._scores(X, "predict_proba"), axis=1)

    def predict(self, X: Any) -> Array:
        """Class with the largest score.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows with the columns of `fit`.

        Returns
        -------
        y : array of shape (n_samples,)
            Labels as they came in `fit`.
        """
        decision = _decision(self._scores(X, "predict"))
        xp = array_namespace(decision)
        codes = xp.astype(decision > 0, xp.int64) if decision.ndim == 1 else xp.argmax(decision, axis=1)
        if isinstance(self.classes_, np.ndarray):
            return self.classes_[to_host(codes)]
        return xp.take(self.classes_, codes, axis=0)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.array_api_support = True
        return tags


def _decision(scores: Array) -> Array:
    return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores


def to_host(array: Array) -> Any:
    """An array of any library as NumPy."""
    return _convert_to_numpy(array, array_namespace(array))


def to_device(values: Any, like: Array) -> Array:
    """A NumPy draw as an array beside `like`: its namespace, its device, its dtype."""
    return array_namespace(like).asarray(values, dtype=like.dtype, device=device(like))


# --- blocks ------------------------------------------------------------------------------------------


def scaled(scaler: Any, A: Array, scaling: str) -> Array:
    """Fit and apply a scaler to each column of A ("feature") or to each row ("sample", the released code)."""
    if scaling == "feature":
        return scaler.fit_transform(A)
    xp = array_namespace(A)
    return xp.matrix_transpose(scaler.fit_transform(xp.matrix_transpose(A)))


def scaled_inputs(X: Array, scaling: str, fitted: Any) -> Array:
    """Rows with mean 0 and variance 1 in each column, as fitted on the training rows, or in each row."""
    return fitted.transform(X) if scaling == "feature" else scaled(StandardScaler(), X, "sample")


def with_constant(A: Array) -> Array:
    """[A, 0.1]."""
    xp = array_namespace(A)
    column = xp.full((A.shape[0], 1), CONSTANT, dtype=A.dtype, device=device(A))
    return xp.concat([A, column], axis=1)


def random_projection(H: Array, n: int, scaling: str, rng: np.random.Generator) -> Array:
    """A = H U with U ~ U[-1, 1] (c, n), each column (or row) brought to [-1, 1]."""
    U = to_device(rng.uniform(-1, 1, (H.shape[1], n)), H)
    return scaled(MinMaxScaler((-1, 1)), H @ U, scaling)


def lasso_fista(G: Array, R: Array, lam: float, n_iter: int) -> Array:
    """B = argmin |A B - H|^2 + lam |B|_1 by FISTA, from G = A'A (n, n) and R = A'H (n, c).

    The gradient 2 (G B - R) has the Lipschitz constant 2 max eig G, so the step is its inverse. The
    released code takes twice that step and the momentum with the wrong sign; here both are the method's.
    """
    xp = array_namespace(G)
    step = 1 / (2 * float(xp.linalg.eigvalsh(G)[-1]))
    B = ahead = xp.zeros_like(R)
    t = 1.0
    for _ in range(n_iter):
        before, B = B, soft_threshold(ahead - step * 2 * (G @ ahead - R), step * lam)
        t_before, t = t, (1 + (1 + 4 * t**2) ** 0.5) / 2
        ahead = B + (t_before - 1) / t * (B - before)
    return B


def soft_threshold(B: Array, by: float) -> Array:
    """sign(B) max(|B| - by, 0)."""
    xp = array_namespace(B)
    return B - xp.clip(B, -by, by)


def random_layer(H: Array, n: int, s: float, rng: np.random.Generator) -> Array:
    """W (c, n), orthonormal, times s / max |H W|: no input of a tanh is larger than s on the training rows.

    Columns are orthonormal if n <= c, rows if n > c. The released code divides by max H W, which may
    be negative.
    """
    draw = rng.uniform(-1, 1, (H.shape[1], n))
    W = to_device(np.linalg.qr(draw)[0] if n <= H.shape[1] else np.linalg.qr(draw.T)[0].T, H)
    xp = array_namespace(H)
    return W * (s / xp.max(xp.abs(H @ W)))


def ridge(D: Array, Y: Array, C: float) -> Array:
    """beta = (D'D + C I)^-1 D'Y, or D'(DD' + C I)^-1 Y when D is wide; the least-norm if singular."""
    xp = array_namespace(D)
    Dt = xp.matrix_transpose(D)
    primal = D.shape[0] >= D.shape[1]
    G, B = (Dt @ D, Dt @ Y) if primal else (D @ Dt, Y)
    floor = float(xp.finfo(D.dtype).eps) * G.shape[0]
    if float(xp.linalg.trace(G)) * floor < C:  # the condition number is below 1 / floor
        X = xp.linalg.solve(G + C * xp.eye(G.shape[0], dtype=D.dtype, device=device(D)), B)
    else:
        values, V = xp.linalg.eigh(G)
        kept = values > floor * values[-1]
        inverse = xp.where(kept, 1 / xp.where(kept, values + C, 1.0), 0.0)
        X = V @ (inverse[:, None] * (xp.matrix_transpose(V) @ B))
    return X if primal else Dt @ X


# --- the classifier ----------------------------------------------------------------------------------


class HELMClassifier(RandomisedClassifier):
    """Hierarchical extreme learning machine: T = H B' twice, F = tanh([T, 0.1] W), beta = (F'F + C I)^-1 F'Y.

    Each autoencoder maps its input H = [T, 0.1] by random weights to A, finds the sparse B with A B close to
    H, and gives H B', brought to [0, 1] with the training rows' extremes. The last layer is random; its
    ridge read-out is fitted to targets of +1 for the class and -1 for the others.

    Parameters
    ----------
    n_encoder : int, default=100
        Nodes of each of the two autoencoders, N1 = N2. The authors' demo has 700.

    n_hidden : int, default=500
        Nodes of the last layer, N3. The authors' demo has 12000.

    regularization : float, default=0.0001
        Ridge penalty, added to the Gram's diagonal: C of the released code, there 2^-30.

    scale : float, default=0.8
        Largest input of the last layer's tanh on the training rows, s.

    sparsity : float, default=0.001
        Penalty of the autoencoders' absolute weights.

    n_iter : int, default=50
        FISTA iterations of an autoencoder.

    scaling : {"feature", "sample"}, default="feature"
        Whether inputs and random projections are scaled column by column over the training rows, or row by
        row as in the released code, which was made for images.

    random_state : int, RandomState instance or None, default=None
        Seed of the random weights, the same for every array library.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        The labels, as they came.

    n_features_in_ : int
        Number of columns seen in `fit`.

    encoder_weights_ : tuple of arrays of shape (n_inputs + 1, n_encoder)
        B' of each autoencoder.

    hidden_weights_ : array of shape (n_encoder + 1, n_hidden)
        The scaled random weights W of the last layer.

    output_weights_ : array of shape (n_hidden, n_classes)
        The read-out, beta.

    References
    ----------
    J. Tang, C. Deng, G.-B. Huang, "Extreme Learning Machine for Multilayer Perceptron", IEEE Transactions
    on Neural Networks and Learning Systems 27 (2016), online in 2015.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from edrvfl.bench.baselines.helm import HELMClassifier
    >>> X, y = load_wine(return_X_y=True)
    >>> HELMClassifier(random_state=0).fit(X[::2], y[::2]).score(X[1::2], y[1::2]) > 0.95
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_encoder": [Interval(Integral, 1, None, closed="left")],
        "n_hidden": [Interval(Integral, 1, None, closed="left")],
        "regularization": [Interval(Real, 0, None, closed="left")],
        "scale": [Interval(Real, 0, None, closed="neither")],
        "sparsity": [Interval(Real, 0, None, closed="left")],
        "n_iter": [Interval(Integral, 1, None, closed="left")],
        "scaling": [StrOptions({"feature", "sample"})],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        *,
        n_encoder: int = 100,
        n_hidden: int = 500,
        regularization: float = 0.0001,
        scale: float = 0.8,
        sparsity: float = 0.001,
        n_iter: int = 50,
        scaling: str = "feature",
        random_state: Any = None,
    ) -> None:
        self.n_encoder = n_encoder
        self.n_hidden = n_hidden
        self.regularization = regularization
        self.scale = scale
        self.sparsity = sparsity
        self.n_iter = n_iter
        self.scaling = scaling
        self.random_state = random_state

    def _learn(self, X: Array, Y: Array, seed: np.random.SeedSequence) -> None:
        *of_encoders, of_layer = (np.random.default_rng(s) for s in seed.spawn(AUTOENCODERS + 1))
        self.input_scaler_ = StandardScaler().fit(X)
        xp = array_namespace(X)
        T, weights, scalers = scaled_inputs(X, self.scaling, self.input_scaler_), [], []
        for rng in of_encoders:
            H = with_constant(T)
            A = random_projection(H, self.n_encoder, self.scaling, rng)
            At = xp.matrix_transpose(A)
            weights.append(xp.matrix_transpose(lasso_fista(At @ A, At @ H, self.sparsity, self.n_iter)))
            scalers.append(MinMaxScaler().fit(H @ weights[-1]))
            T = scalers[-1].transform(H @ weights[-1])
        self.encoder_weights_, self.encoder_scalers_ = tuple(weights), tuple(scalers)
        self.hidden_weights_ = random_layer(with_constant(T), self.n_hidden, self.scale, of_layer)
        self.output_weights_ = ridge(self._features(X), 2 * Y - 1, self.regularization)

    def _features(self, X: Array) -> Array:
        T = scaled_inputs(X, self.scaling, self.input_scaler_)
        for W, scaler in zip(self.encoder_weights_, self.encoder_scalers_, strict=True):
            T = scaler.transform(with_constant(T) @ W)
        return array_namespace(X).tanh(with_constant(T) @ self.hidden_weights_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = (
            self.scaling == "sample"
        )  # of two columns it leaves only their order
        return tags


def configurations(trials: int, seed: int) -> list[dict[str, Any]]:
    """H-ELM's search space, drawn beforehand; the first of many draws are the draws of few.

    N1 = N2 and N3 are evenly drawn in their logarithms from [20, 300] and [50, 1000]: the demo's 700 and
    12000 are for 60000 images, and 1000 is the largest width of the paper's own methods. log2 C is even in
    [-30, 10], from the released value up to a strong penalty; s is even in [0.1, 1], the range of a
    third party's grid.

    Examples
    --------
    >>> configurations(1, 0)
    [{'n_encoder': 112, 'n_hidden': 112, 'regularization': 2.9e-09, 'scale': 0.115}]
    """
    rng = np.random.default_rng(seed)
    return [
        {
            "n_encoder": log_uniform(rng, 20, 300),
            "n_hidden": log_uniform(rng, 50, 1000),
            "regularization": float(f"{2 ** rng.uniform(-30, 10):.3g}"),
            "scale": round(rng.uniform(0.1, 1), 3),
        }
        for _ in range(checked_trials(trials))
    ]


def log_uniform(rng: np.random.Generator, low: int, high: int) -> int:
    """A whole number of [low, high], even in its logarithm."""
    return round(float(np.exp(rng.uniform(np.log(low), np.log(high)))))


def checked_trials(trials: int) -> int:
    """The number of trials, if there are any."""
    if trials < 1:
        raise ValueError(f"trials must be at least 1, got {trials}.")
    return trials
