"""BLS (Chen & Liu 2017) and H-ELM (Tang, Deng & Huang 2015): sparse autoencoders, random nodes, a ridge."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from array_api_compat import array_namespace, device
from scipy import stats
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from .randomised import (
    COUNT,
    NOT_NEGATIVE,
    POSITIVE,
    Array,
    LogInteger,
    RandomisedClassifier,
    StrOptions,
    from_numpy,
    ridge,
)

CONSTANT = 0.1  # the authors' code of both methods appends this number to the inputs of every layer
AUTOENCODERS = 2  # of H-ELM
RHO = 1.0  # step of ADMM in the authors' code of BLS


# --- building blocks ---------------------------------------------------------------------------------


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


def random_layer(H: Array, n: int, s: float, rng: np.random.Generator) -> Array:
    """W (c, n), orthonormal, times s / max |H W|: on the training rows no tanh gets an input above s.

    The columns are orthonormal if n <= c, the rows if n > c. The authors' code divides by max H W, which
    can be negative.
    """
    draw = rng.uniform(-1, 1, (H.shape[1], n))
    W = from_numpy(np.linalg.qr(draw)[0] if n <= H.shape[1] else np.linalg.qr(draw.T)[0].T, H)
    xp = array_namespace(H)
    return W * (s / xp.max(xp.abs(H @ W)))


@dataclass(kw_only=True, eq=False, repr=False)
class AutoencodingClassifier(RandomisedClassifier):
    """Scaled inputs, sparse autoencoders with random codes, tanh nodes, and a ridge read-out.

    An autoencoder maps its input H by random weights to A, finds a sparse B with A B close to H, and returns
    H B', scaled to [0, 1] by the extremes of the training rows. The read-out is fitted to targets of +1 for
    the class and -1 for the others.
    """

    regularization: float = (
        0.0001  # ridge penalty C, added to the diagonal of F'F; the authors' code has 2^-30
    )
    scale: float = 0.8  # the largest input s that a tanh gets on the training rows
    sparsity: float = 0.001  # penalty on the absolute weights of the autoencoders
    n_iter: int = 50  # of ADMM or FISTA, for each autoencoder
    # Inputs and random projections are scaled column by column over the training rows ("feature"), or row by
    # row ("sample") as in the authors' code, which was made for images.
    scaling: str = "feature"
    random_state: Any = None  # of the random weights, which are the same for every array library

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


@dataclass(kw_only=True, eq=False, repr=False)
class BLSClassifier(AutoencodingClassifier):
    """Broad learning system: T = [H B_1', H B_2', ...], F = [T, tanh([T, 0.1] W)], beta = (F'F + C I)^-1 F'Y.

    Each window is an autoencoder of the inputs H = [X, 0.1]. Enhancement nodes are random tanh nodes of all
    feature nodes. The read-out is of both; there is no link from the raw inputs.

    C. L. P. Chen, Z. Liu, "Broad Learning System: An Effective and Efficient Incremental Learning System
    Without the Need for Deep Architecture", IEEE Transactions on Neural Networks and Learning Systems 29
    (2018), online in 2017.
    """

    n_windows: int = 10  # windows of feature nodes, N2 in the authors' code
    n_window_nodes: int = 10  # feature nodes in each window, N1
    n_enhancement: int = 500  # enhancement nodes, N3; the authors' demo has 11000

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_windows": [COUNT],
        "n_window_nodes": [COUNT],
        "n_enhancement": [COUNT],
        **AutoencodingClassifier._parameter_constraints,
    }

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


@dataclass(kw_only=True, eq=False, repr=False)
class HELMClassifier(AutoencodingClassifier):
    """Hierarchical extreme learning machine: T = H B' twice, F = tanh([T, 0.1] W), beta = (F'F + C I)^-1 F'Y.

    The second autoencoder has the codes of the first as its inputs, H = [T, 0.1]. The last layer is random.

    J. Tang, C. Deng, G.-B. Huang, "Extreme Learning Machine for Multilayer Perceptron", IEEE Transactions
    on Neural Networks and Learning Systems 27 (2016), online in 2015.
    """

    n_encoder: int = 100  # nodes of each of the two autoencoders, N1 = N2; the authors' demo has 700
    n_hidden: int = 500  # nodes of the last layer, N3; the authors' demo has 12000

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_encoder": [COUNT],
        "n_hidden": [COUNT],
        **AutoencodingClassifier._parameter_constraints,
    }

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


# --- what the searches try ---------------------------------------------------------------------------

# C goes from the authors' value up to a strong penalty. The range of s lies around the authors' 0.8, and is
# that of a grid that others published for H-ELM.
_BOTH = {"regularization": stats.loguniform(2.0**-30, 2.0**10), "scale": stats.uniform(0.1, 0.9)}
# N2 and N1 lie around the demo's 10 and 10, and N3 goes up to the demo's 11000.
BLS_SPACE = {
    "n_windows": LogInteger(3, 20),
    "n_window_nodes": LogInteger(5, 30),
    "n_enhancement": LogInteger(50, 11000),
    **_BOTH,
}
# N1 = N2 and N3 go up to the authors' demo, which has 700 and 12000.
HELM_SPACE = {"n_encoder": LogInteger(20, 700), "n_hidden": LogInteger(50, 12000), **_BOTH}
