"""SCN, the stochastic configuration network, algorithm SC-III (Wang & Li 2017)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from array_api_compat import array_namespace, device
from sklearn.preprocessing import StandardScaler

from edrvfl._sklearn import Interval

from .helm import Array, RandomisedClassifier, checked_trials, to_device, to_host

SCALES = (0.5, 1, 3, 5, 7, 9, 15, 25, 50, 100, 150, 200)  # lambda, of the authors' class
CONTRACTIONS = (0.9, 0.99, 0.999, 0.9999, 0.99999)  # r, likewise


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """An admitted node g: its weights, its place in the factorisation H = Q R, and why it was admitted."""

    w: Array  # (d + 1,), the bias last
    q: Array  # (m,), the part of g orthogonal to the nodes before, of length 1
    r_column: Array  # (l + 1,), g in the basis of Q: the nodes before, then itself
    xi: tuple[float, ...]  # margins of the inequality, one for each output
    r: float  # the contraction with which it was admitted


@dataclass(frozen=True, slots=True, eq=False)
class Configured:
    """A configured network and the history of its nodes."""

    W: Array  # (d + 1, L), the biases in the last row
    beta: Array  # (L, k)
    residual_norms: tuple[float, ...]  # before the first node and after each
    margins: tuple[tuple[float, ...], ...]
    admitted_at: tuple[float, ...]
    stop_reason: str


def configure(
    X: Array,
    Y: Array,
    *,
    max_nodes: int,
    n_candidates: int,
    scales: Sequence[float],
    contractions: Sequence[float],
    tol: float,
    rng: np.random.Generator,
) -> Configured:
    """H beta ~ Y, a node at a time, all of beta = argmin |H beta - Y|^2 after each: Algorithm SC-III.

    H = Q R grows by a column with each node, so the residual E = Y - Q Q'Y costs one product, and
    R beta = Q'Y is solved once, at the end.
    """
    xp = array_namespace(X)
    m, d = X.shape

    def zeros(*shape: int) -> Array:
        return xp.zeros(shape, dtype=X.dtype, device=device(X))

    W, Qt, R = zeros(d + 1, max_nodes), zeros(max_nodes, m), zeros(max_nodes, max_nodes)
    QtY, E = zeros(max_nodes, Y.shape[1]), Y
    norms = [float(xp.linalg.vector_norm(E))]
    xis, rs = [], []
    stop_reason = "max_nodes"
    for l in range(max_nodes):
        if norms[-1] <= tol * math.sqrt(m):
            stop_reason = "tolerance"
            break
        node = _search(X, E, Qt[:l, :], n_candidates, scales, contractions, rng)
        if node is None:
            stop_reason = "no candidate"
            break
        W[:, l], Qt[l, :], R[: l + 1, l] = node.w, node.q, node.r_column
        QtY[l, :] = node.q @ E  # = q'Y: the rest of Y is orthogonal to q
        E = E - node.q[:, None] * QtY[l, :][None, :]
        norms.append(float(xp.linalg.vector_norm(E)))
        xis.append(node.xi)
        rs.append(node.r)
    L = len(rs)
    beta = xp.linalg.solve(R[:L, :L], QtY[:L, :])  # LU of a triangle is back substitution
    return Configured(W[:, :L], beta, tuple(norms), tuple(xis), tuple(rs), stop_reason)


def sigmoid_nodes(X: Array, W: Array) -> Array:
    """H = 1 / (1 + exp(-(X W + b))) = (1 + tanh((X W + b) / 2)) / 2, the biases b in the last row of W."""
    Z = X @ W[:-1, :]
    Z += W[-1, :]
    Z /= 2
    H = array_namespace(X).tanh(Z)
    H /= 2
    H += 0.5
    return H


def margins(gains: Any, energies: Any, r: float) -> Any:
    """xi_q = (e_q'g)^2 / g'g - (1 - r) e_q'e_q, as in the authors' code, for each output q and candidate g.

    The paper subtracts (1 - r - mu_L) e_q'e_q with mu_L = (1 - r) / (L + 1), which is less: a node that
    passes here passes there.
    """
    return gains - (1 - r) * energies[:, None]


def _search(
    X: Array,
    E: Array,
    Qt: Array,
    n_candidates: int,
    scales: Sequence[float],
    contractions: Sequence[float],
    rng: np.random.Generator,
) -> Node | None:
    """The candidate with the largest sum of margins at the first (lambda, r) where one has all positive."""
    xp = array_namespace(X)
    energies = to_host(xp.sum(E * E, axis=0))
    for scale in scales:
        W = to_device(rng.uniform(-scale, scale, (X.shape[1] + 1, n_candidates)), X)
        H = sigmoid_nodes(X, W)
        lengths = xp.sum(H * H, axis=0)
        lengths = xp.where(lengths > 0, lengths, 1.0)  # a node that never fires gains nothing
        gains = to_host((xp.matrix_transpose(E) @ H) ** 2 / lengths)
        refused = np.zeros(n_candidates, dtype=bool)
        for r in contractions:
            xi = margins(gains, energies, r)
            while (admissible := (xi.min(axis=0) > 0) & ~refused).any():
                t = int(np.argmax(np.where(admissible, xi.sum(axis=0), -np.inf)))
                if (place := _orthogonalised(H[:, t], Qt)) is not None:
                    return Node(W[:, t], *place, tuple(xi[:, t].tolist()), r)
                if not refused.any():  # seldom: where one adds nothing others do not either
                    refused |= _dependent(H, Qt)
                refused[t] = True
    return None


def _orthogonalised(g: Array, Qt: Array) -> tuple[Array, Array] | None:
    """q and the column of R with g = [Q, q] column, by Gram-Schmidt done twice; None if g is dependent."""
    xp = array_namespace(g)
    first = Qt @ g
    q = g - first @ Qt
    second = Qt @ q
    q = q - second @ Qt
    left = xp.linalg.vector_norm(q)
    if float(left) <= _least_part(g) * float(xp.linalg.vector_norm(g)):
        return None
    return q / left, xp.concat([first + second, xp.reshape(left, (1,))])


def _dependent(H: Array, Qt: Array) -> Any:
    """Which columns of H add nothing to the nodes of Q, on the host."""
    xp = array_namespace(H)
    left = xp.linalg.vector_norm(H - xp.matrix_transpose(Qt) @ (Qt @ H), axis=0)
    return to_host(left <= _least_part(H) * xp.linalg.vector_norm(H, axis=0))


def _least_part(like: Array) -> float:
    """sqrt(eps): a smaller part of a node is rounding as much as direction, and its weight huge."""
    return math.sqrt(float(array_namespace(like).finfo(like.dtype).eps))


class SCNClassifier(RandomisedClassifier):
    """Stochastic configuration network: (e_q'g)^2 / g'g > (1 - r) e_q'e_q for each node g and each output q.

    The network grows by nodes g = sigmoid(X w + b). Of `n_candidates` random ones those pass that take more
    than the share 1 - r of every output's squared residual e_q'e_q; of these the best overall joins, and
    all output weights are fitted anew by least squares (algorithm SC-III). If none passes, r grows, then
    the weights' range. Outputs are the one-hot classes; there is no penalty, no link from the inputs, no
    constant.

    Parameters
    ----------
    max_nodes : int, default=100
        Most nodes, L_max. A smaller value gives the first nodes of the same network.

    n_candidates : int, default=100
        Random nodes tried at once, T_max.

    scales : sequence of float, default=(0.5, 1, 3, 5, 7, 9, 15, 25, 50, 100, 150, 200)
        Ranges lambda of the candidates' weights and biases, U[-lambda, lambda], ascending.

    contractions : sequence of float, default=(0.9, 0.99, 0.999, 0.9999, 0.99999)
        Values of r in (0, 1), ascending; all are tried with one lambda before the next.

    tol : float, default=0.0001
        Root of the mean over the rows of the squared residual at which the network is good enough.

    standardize : bool, default=True
        Whether inputs are brought to mean 0 and variance 1 with the training rows' statistics.

    random_state : int, RandomState instance or None, default=None
        Seed of the candidates, the same for every array library.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        The labels, as they came.

    n_features_in_ : int
        Number of columns seen in `fit`.

    n_nodes_ : int
        Nodes of the network.

    stop_reason_ : {"max_nodes", "tolerance", "no candidate"}
        Why it has no more.

    residual_norms_ : tuple of float
        Frobenius norm of the residual before the first node and after each.

    margins_ : tuple of tuples of float
        xi of each node, one for each output, when it was admitted.

    admitted_at_ : tuple of float
        r with which each node was admitted.

    hidden_weights_ : array of shape (n_features_in_ + 1, n_nodes_)
        Weights w of the nodes, biases b in the last row.

    output_weights_ : array of shape (n_nodes_, n_classes)
        The read-out, beta.

    References
    ----------
    D. Wang, M. Li, "Stochastic Configuration Networks: Fundamentals and Algorithms", IEEE Transactions on
    Cybernetics 47 (2017).

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from edrvfl.bench.baselines.scn import SCNClassifier
    >>> X, y = load_wine(return_X_y=True)
    >>> model = SCNClassifier(max_nodes=20, random_state=0).fit(X[::2], y[::2])
    >>> model.score(X[1::2], y[1::2]) > 0.9
    True
    >>> model.n_nodes_, model.stop_reason_
    (20, 'max_nodes')
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "max_nodes": [Interval(Integral, 1, None, closed="left")],
        "n_candidates": [Interval(Integral, 1, None, closed="left")],
        "scales": ["array-like"],
        "contractions": ["array-like"],
        "tol": [Interval(Real, 0, None, closed="left")],
        "standardize": ["boolean"],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        *,
        max_nodes: int = 100,
        n_candidates: int = 100,
        scales: Sequence[float] = SCALES,
        contractions: Sequence[float] = CONTRACTIONS,
        tol: float = 0.0001,
        standardize: bool = True,
        random_state: Any = None,
    ) -> None:
        self.max_nodes = max_nodes
        self.n_candidates = n_candidates
        self.scales = scales
        self.contractions = contractions
        self.tol = tol
        self.standardize = standardize
        self.random_state = random_state

    def _learn(self, X: Array, Y: Array, seed: np.random.SeedSequence) -> None:
        scales = _ascending("scales", self.scales, math.inf)
        contractions = _ascending("contractions", self.contractions, 1.0)
        self.input_scaler_ = StandardScaler().fit(X) if self.standardize else None
        found = configure(
            self._scaled(X),
            Y,
            max_nodes=self.max_nodes,
            n_candidates=self.n_candidates,
            scales=scales,
            contractions=contractions,
            tol=self.tol,
            rng=np.random.default_rng(seed),
        )
        self.n_nodes_ = len(found.admitted_at)
        self.stop_reason_ = found.stop_reason
        self.residual_norms_ = found.residual_norms
        self.margins_ = found.margins
        self.admitted_at_ = found.admitted_at
        self.hidden_weights_ = found.W
        self.output_weights_ = found.beta

    def _scaled(self, X: Array) -> Array:
        return X if self.input_scaler_ is None else self.input_scaler_.transform(X)

    def _features(self, X: Array) -> Array:
        return sigmoid_nodes(self._scaled(X), self.hidden_weights_)


def _ascending(name: str, values: Sequence[float], below: float) -> list[float]:
    numbers = [float(v) for v in values]
    if not numbers or sorted(set(numbers)) != numbers or numbers[0] <= 0 or not numbers[-1] < below:
        bound = "" if math.isinf(below) else f" below {below:g}"
        raise ValueError(f"{name} must be ascending positive numbers{bound}, at least one, got {values!r}.")
    return numbers


def configurations(trials: int, seed: int) -> list[dict[str, Any]]:
    """SCN's search space, drawn beforehand; the first of many draws are the draws of few.

    L_max is one of 25, 50, 100, 200, 400: the authors' class has 100, their demos 10 and 250. The authors'
    lambda sequence is stretched by 2^u, u even in [-4, 1] (our range): many standardised inputs saturate
    the sigmoid already at its smallest, 0.5. T_max, r and the tolerance stay the authors'.

    Examples
    --------
    >>> configurations(1, 0)[0]["max_nodes"], configurations(1, 0)[0]["scales"][:3]
    (100, [0.284, 0.568, 1.7])
    """
    rng = np.random.default_rng(seed)
    drawn = []
    for _ in range(checked_trials(trials)):
        stretch = 2 ** rng.uniform(-4, 1)
        drawn.append(
            {
                "max_nodes": int(rng.choice((25, 50, 100, 200, 400))),
                "scales": [float(f"{scale * stretch:.3g}") for scale in SCALES],
            }
        )
    return drawn
