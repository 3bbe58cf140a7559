"""H-ELM: two sparse ELM autoencoders, a random layer, ridge (Tang, Deng & Huang 2015)."""

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

AUTOENCODERS = 2


def lasso_fista(G: Array, R: Array, lam: float, n_iter: int) -> Array:
    """B = argmin |A B - H|^2 + lam |B|_1 by FISTA, from G = A'A (n, n) and R = A'H (n, c).

    The gradient 2 (G B - R) has the Lipschitz constant 2 max eig G, so the step is 1 over that constant.
    The authors' code takes twice that step, and the momentum with the wrong sign; here both are those of
    FISTA.
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


@dataclass(kw_only=True, eq=False, repr=False)
class HELMClassifier(AutoencodingClassifier):
    """Hierarchical extreme learning machine: T = H B' twice, F = tanh([T, 0.1] W), beta = (F'F + C I)^-1 F'Y.

    Each autoencoder maps its input H = [T, 0.1] by random weights to A, finds a sparse B with A B close to
    H, and returns H B', scaled to [0, 1] by the extremes of the training rows. The last layer is random. Its
    ridge read-out is fitted to targets of +1 for the class and -1 for the others.

    Parameters
    ----------
    n_encoder : int, default=100
        Nodes of each of the two autoencoders, N1 = N2. The authors' demo has 700.

    n_hidden : int, default=500
        Nodes of the last layer, N3. The authors' demo has 12000.

    regularization : float, default=0.0001
        Ridge penalty C, added to the diagonal of F'F. The authors' code has 2^-30.

    scale : float, default=0.8
        The largest input s that a tanh of the last layer gets on the training rows.

    sparsity : float, default=0.001
        Penalty on the absolute weights of the autoencoders.

    n_iter : int, default=50
        Number of FISTA iterations for each autoencoder.

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
        "n_encoder": [COUNT],
        "n_hidden": [COUNT],
        **AutoencodingClassifier._parameter_constraints,
    }

    n_encoder: int = 100
    n_hidden: int = 500
    regularization: float = 0.0001
    scale: float = 0.8
    sparsity: float = 0.001
    n_iter: int = 50
    scaling: str = "feature"
    random_state: Any = None

    def _learn(self, X: Array, Y: Array, seed: np.random.SeedSequence) -> None:
        *encoder_rngs, layer_rng = (np.random.default_rng(s) for s in seed.spawn(AUTOENCODERS + 1))
        self.input_scaler_ = StandardScaler().fit(X)
        xp = array_namespace(X)
        T, weights, scalers = self._scale_inputs(X), [], []
        for rng in encoder_rngs:
            H = with_constant(T)
            A = random_projection(H, self.n_encoder, self.scaling, rng)
            At = xp.matrix_transpose(A)
            weights.append(xp.matrix_transpose(lasso_fista(At @ A, At @ H, self.sparsity, self.n_iter)))
            scalers.append(MinMaxScaler().fit(H @ weights[-1]))
            T = scalers[-1].transform(H @ weights[-1])
        self.encoder_weights_, self.encoder_scalers_ = tuple(weights), tuple(scalers)
        self.hidden_weights_ = random_layer(with_constant(T), self.n_hidden, self.scale, layer_rng)
        self.output_weights_ = self._read_out(X, Y)

    def _features(self, X: Array) -> Array:
        T = self._scale_inputs(X)
        for W, scaler in zip(self.encoder_weights_, self.encoder_scalers_, strict=True):
            T = scaler.transform(with_constant(T) @ W)
        return array_namespace(X).tanh(with_constant(T) @ self.hidden_weights_)


# N1 = N2 and N3 go up to the authors' demo, which has 700 and 12000. C goes from the authors' value up to a
# strong penalty. The range of s is that of a grid that others published for H-ELM.
SPACE = {
    "n_encoder": LogInteger(20, 700),
    "n_hidden": LogInteger(50, 12000),
    "regularization": stats.loguniform(2.0**-30, 2.0**10),
    "scale": stats.uniform(0.1, 0.9),
}


def configurations(trials: int, seed: int) -> list[dict[str, Any]]:
    """Draw what the search tries; the first of many draws are the draws of few.

    Examples
    --------
    >>> configurations(1, 0)
    [{'n_encoder': 141, 'n_hidden': 2519, 'regularization': 0.0168692, 'scale': 0.590395}]
    """
    return sample_configurations(SPACE, trials, seed)
