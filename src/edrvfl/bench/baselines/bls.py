"""BLS, the broad learning system: feature windows, enhancement nodes, ridge (Chen & Liu 2017)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from array_api_compat import array_namespace
from scipy import stats
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from .randomised import (
    COUNT,
    Array,
    AutoencodingClassifier,
    LogInteger,
    random_layer,
    random_projection,
    sample_configurations,
    soft_threshold,
    with_constant,
)

RHO = 1.0  # step of ADMM in the authors' code


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


@dataclass(kw_only=True, eq=False, repr=False)
class BLSClassifier(AutoencodingClassifier):
    """Broad learning system: T = [H B_1', H B_2', ...], F = [T, tanh([T, 0.1] W)], beta = (F'F + C I)^-1 F'Y.

    Each window maps the inputs H = [X, 0.1] by random weights to A, finds a sparse B with A B close to H,
    and returns its feature nodes H B', scaled to [0, 1] by the extremes of the training rows. Enhancement
    nodes are random tanh nodes of all feature nodes. The ridge read-out of feature and enhancement nodes is
    fitted to targets of +1 for the class and -1 for the others. There is no link from the raw inputs.

    Parameters
    ----------
    n_windows : int, default=10
        Number of windows of feature nodes, N2 in the authors' code.

    n_window_nodes : int, default=10
        Number of feature nodes in each window, N1.

    n_enhancement : int, default=500
        Number of enhancement nodes, N3. The authors' demo has 11000.

    regularization : float, default=0.0001
        Ridge penalty C, added to the diagonal of F'F. The authors' code has 2^-30.

    scale : float, default=0.8
        The largest input s that a tanh of an enhancement node gets on the training rows.

    sparsity : float, default=0.001
        Penalty on the absolute weights of the windows.

    n_iter : int, default=50
        Number of ADMM iterations for each window.

    scaling : {"feature", "sample"}, default="feature"
        Whether inputs and random projections are scaled column by column over the training rows, or row by
        row as in the authors' code, which was made for images.

    random_state : int, RandomState instance or None, default=None
        Seed of the random weights, which are the same for every array library.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        The labels, as they were given to `fit`.

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
        "n_windows": [COUNT],
        "n_window_nodes": [COUNT],
        "n_enhancement": [COUNT],
        **AutoencodingClassifier._parameter_constraints,
    }

    n_windows: int = 10
    n_window_nodes: int = 10
    n_enhancement: int = 500
    regularization: float = 0.0001
    scale: float = 0.8
    sparsity: float = 0.001
    n_iter: int = 50
    scaling: str = "feature"
    random_state: Any = None

    def _learn(self, X: Array, Y: Array, seed: np.random.SeedSequence) -> None:
        window_seed, enhancement_seed = seed.spawn(2)
        self.input_scaler_ = StandardScaler().fit(X)
        H = with_constant(self._scale_inputs(X))
        self.feature_weights_ = self._learn_windows(H, window_seed)
        self.feature_scaler_ = MinMaxScaler().fit(H @ self.feature_weights_)
        nodes = with_constant(self._feature_nodes(X))
        rng = np.random.default_rng(enhancement_seed)
        self.enhancement_weights_ = random_layer(nodes, self.n_enhancement, self.scale, rng)
        self.output_weights_ = self._read_out(X, Y)

    def _learn_windows(self, H: Array, seed: np.random.SeedSequence) -> Array:
        """Find [B_1', B_2', ...]; only the small Gram matrices of all windows are held at once."""
        xp = array_namespace(H)
        grams, products = [], []
        for child in seed.spawn(self.n_windows):
            A = random_projection(H, self.n_window_nodes, self.scaling, np.random.default_rng(child))
            At = xp.matrix_transpose(A)
            grams.append(At @ A)
            products.append(At @ H)
        B = lasso_admm(xp.stack(grams), xp.stack(products), self.sparsity, self.n_iter)
        return xp.matrix_transpose(xp.reshape(B, (-1, H.shape[1])))

    def _feature_nodes(self, X: Array) -> Array:
        return self.feature_scaler_.transform(with_constant(self._scale_inputs(X)) @ self.feature_weights_)

    def _features(self, X: Array) -> Array:
        xp = array_namespace(X)
        T = self._feature_nodes(X)
        return xp.concat([T, xp.tanh(with_constant(T) @ self.enhancement_weights_)], axis=1)


# N2 and N1 lie around the demo's 10 and 10, and N3 goes up to the demo's 11000. C goes from the authors'
# value up to a strong penalty; s lies around the authors' 0.8.
SPACE = {
    "n_windows": LogInteger(3, 20),
    "n_window_nodes": LogInteger(5, 30),
    "n_enhancement": LogInteger(50, 11000),
    "regularization": stats.loguniform(2.0**-30, 2.0**10),
    "scale": stats.uniform(0.1, 0.9),
}


def configurations(trials: int, seed: int) -> list[dict[str, Any]]:
    """Draw what the search tries; the first of many draws are the draws of few.

    Examples
    --------
    >>> configurations(1, 0)  # doctest: +NORMALIZE_WHITESPACE
    [{'n_enhancement': 965, 'n_window_nodes': 18, 'n_windows': 9, 'regularization': 0.00338959,
      'scale': 0.481289}]
    """
    return sample_configurations(SPACE, trials, seed)
