"""BLS, the broad learning system: feature windows, enhancement nodes, ridge (Chen & Liu 2017)."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from array_api_compat import array_namespace
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from edrvfl._sklearn import Interval, StrOptions

from .helm import (
    Array,
    RandomisedClassifier,
    checked_trials,
    log_uniform,
    random_layer,
    random_projection,
    ridge,
    scaled_inputs,
    soft_threshold,
    with_constant,
)

RHO = 1.0  # of the released ADMM


def lasso_admm(G: Array, R: Array, lam: float, n_iter: int) -> Array:
    """B = argmin |A B - H|^2 / 2 + lam |B|_1 by ADMM, from G = A'A (..., n, n) and R = A'H (..., n, c)."""
    xp = array_namespace(G)
    values, V = xp.linalg.eigh(G)
    Vt, damping = xp.matrix_transpose(V), 1 / (values + RHO)[..., None]
    Z = U = xp.zeros_like(R)
    for _ in range(n_iter):
        B = V @ (damping * (Vt @ (R + RHO * (Z - U))))  # (G + rho I)^-1 (R + rho (Z - U))
        Z = soft_threshold(B + U, lam / RHO)
        U = U + B - Z
    return Z


class BLSClassifier(RandomisedClassifier):
    """Broad learning system: T = [H B_1', H B_2', ...], F = [T, tanh([T, 0.1] W)], beta = (F'F + C I)^-1 F'Y.

    A window maps the inputs H = [X, 0.1] by random weights to A, finds the sparse B with A B close to H,
    and gives its feature nodes H B', brought to [0, 1] with the training rows' extremes. Enhancement nodes
    are random tanh nodes of all feature nodes. The ridge read-out of both is fitted to targets of +1 for
    the class and -1 for the others. There is no link from the raw inputs.

    Parameters
    ----------
    n_windows : int, default=10
        Windows of feature nodes, N2 of the released code.

    n_window_nodes : int, default=10
        Feature nodes of each window, N1.

    n_enhancement : int, default=500
        Enhancement nodes, N3. The authors' demo has 11000.

    regularization : float, default=0.0001
        Ridge penalty, added to the Gram's diagonal: C of the released code, there 2^-30.

    scale : float, default=0.8
        Largest input of an enhancement node's tanh on the training rows, s.

    sparsity : float, default=0.001
        Penalty of the windows' absolute weights.

    n_iter : int, default=50
        ADMM iterations of a window.

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

    feature_weights_ : array of shape (n_features_in_ + 1, n_windows * n_window_nodes)
        [B_1', B_2', ...].

    enhancement_weights_ : array of shape (n_windows * n_window_nodes + 1, n_enhancement)
        The scaled random weights W of the enhancement nodes.

    output_weights_ : array of shape (n_windows * n_window_nodes + n_enhancement, n_classes)
        The read-out, beta.

    References
    ----------
    C. L. P. Chen, Z. Liu, "Broad Learning System: An Effective and Efficient Incremental Learning System
    Without the Need for Deep Architecture", IEEE Transactions on Neural Networks and Learning Systems 29
    (2018), online in 2017.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from edrvfl.bench.baselines.bls import BLSClassifier
    >>> X, y = load_wine(return_X_y=True)
    >>> BLSClassifier(random_state=0).fit(X[::2], y[::2]).score(X[1::2], y[1::2]) > 0.9
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_windows": [Interval(Integral, 1, None, closed="left")],
        "n_window_nodes": [Interval(Integral, 1, None, closed="left")],
        "n_enhancement": [Interval(Integral, 1, None, closed="left")],
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
        n_windows: int = 10,
        n_window_nodes: int = 10,
        n_enhancement: int = 500,
        regularization: float = 0.0001,
        scale: float = 0.8,
        sparsity: float = 0.001,
        n_iter: int = 50,
        scaling: str = "feature",
        random_state: Any = None,
    ) -> None:
        self.n_windows = n_windows
        self.n_window_nodes = n_window_nodes
        self.n_enhancement = n_enhancement
        self.regularization = regularization
        self.scale = scale
        self.sparsity = sparsity
        self.n_iter = n_iter
        self.scaling = scaling
        self.random_state = random_state

    def _learn(self, X: Array, Y: Array, seed: np.random.SeedSequence) -> None:
        of_windows, of_enhancement = seed.spawn(2)
        self.input_scaler_ = StandardScaler().fit(X)
        H = self._inputs(X)
        self.feature_weights_ = self._windows(H, of_windows)
        self.feature_scaler_ = MinMaxScaler().fit(H @ self.feature_weights_)
        nodes = with_constant(self._feature_nodes(X))
        rng = np.random.default_rng(of_enhancement)
        self.enhancement_weights_ = random_layer(nodes, self.n_enhancement, self.scale, rng)
        self.output_weights_ = ridge(self._features(X), 2 * Y - 1, self.regularization)

    def _windows(self, H: Array, seed: np.random.SeedSequence) -> Array:
        """[B_1', B_2', ...], all windows at once once their Gram matrices are known."""
        xp = array_namespace(H)
        grams, products = [], []
        for child in seed.spawn(self.n_windows):
            A = random_projection(H, self.n_window_nodes, self.scaling, np.random.default_rng(child))
            At = xp.matrix_transpose(A)
            grams.append(At @ A)
            products.append(At @ H)
        B = lasso_admm(xp.stack(grams), xp.stack(products), self.sparsity, self.n_iter)
        return xp.matrix_transpose(xp.reshape(B, (-1, H.shape[1])))

    def _inputs(self, X: Array) -> Array:
        return with_constant(scaled_inputs(X, self.scaling, self.input_scaler_))

    def _feature_nodes(self, X: Array) -> Array:
        return self.feature_scaler_.transform(self._inputs(X) @ self.feature_weights_)

    def _features(self, X: Array) -> Array:
        xp = array_namespace(X)
        T = self._feature_nodes(X)
        return xp.concat([T, xp.tanh(with_constant(T) @ self.enhancement_weights_)], axis=1)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = (
            self.scaling == "sample"
        )  # of two columns it leaves only their order
        return tags


def configurations(trials: int, seed: int) -> list[dict[str, Any]]:
    """BLS's search space, drawn beforehand; the first of many draws are the draws of few.

    Evenly in their logarithms: N1 from [5, 30] and N2 from [3, 20], around the demo's 10 and 10, and N3 from
    [50, 1000]: the demo's 11000 are for 60000 images, and 1000 is the largest width of the paper's own
    methods. log2 C is even in [-30, 10], from the released value up to a strong penalty; s is even in
    [0.1, 1], around the released 0.8.

    Examples
    --------
    >>> configurations(1, 0)  # doctest: +NORMALIZE_WHITESPACE
    [{'n_windows': 10, 'n_window_nodes': 8, 'n_enhancement': 57, 'regularization': 1.47e-09,
      'scale': 0.832}]
    """
    rng = np.random.default_rng(seed)
    return [
        {
            "n_windows": log_uniform(rng, 3, 20),
            "n_window_nodes": log_uniform(rng, 5, 30),
            "n_enhancement": log_uniform(rng, 50, 1000),
            "regularization": float(f"{2 ** rng.uniform(-30, 10):.3g}"),
            "scale": round(rng.uniform(0.1, 1), 3),
        }
        for _ in range(checked_trials(trials))
    ]
