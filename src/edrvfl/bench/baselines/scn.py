"""SCN, the stochastic configuration network, algorithm SC-III (Wang & Li 2017)."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from array_api_compat import array_namespace, device
from scipy import stats
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted

from .randomised import (
    COUNT,
    NOT_NEGATIVE,
    Array,
    RandomisedClassifier,
    from_numpy,
    sample_configurations,
    to_host,
)

SCALES = (0.5, 1, 3, 5, 7, 9, 15, 25, 50, 100, 150, 200)  # lambda in the authors' code
CONTRACTIONS = (0.9, 0.99, 0.999, 0.9999, 0.99999)  # r in the authors' code


@dataclass(frozen=True, slots=True)
class Rules:
    """How nodes are looked for, and when the network stops growing; see the parameters of SCNClassifier."""

    max_nodes: int
    n_candidates: int
    scales: Sequence[float]
    contractions: Sequence[float]
    tol: float


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """An admitted node g: its weights, its place in the factorisation H = Q R, and why it was admitted."""

    w: Array  # (d + 1,), the bias last
    q: Array  # (m,), the part of g that is orthogonal to the nodes before it, of length 1
    r_column: Array  # (l + 1,), the coordinates of g in the columns of Q, its own q last
    xi: tuple[float, ...]  # margins of the inequality, one for each output
    r: float  # the contraction with which the node was admitted


@dataclass(frozen=True, slots=True, eq=False)
class Configured:
    """A finished network and the history of its nodes."""

    W: Array  # (d + 1, L), the biases in the last row
    R: Array  # (L, L), of H = Q R
    QtY: Array  # (L, k)
    residual_norms: tuple[float, ...]  # before the first node and after each node
    margins: tuple[tuple[float, ...], ...]
    admitted_at: tuple[float, ...]
    stop_reason: str


def configure(X: Array, Y: Array, rules: Rules, rng: np.random.Generator) -> Configured:
    """H beta ~ Y, one node at a time, with beta = argmin |H beta - Y|^2 after each: Algorithm SC-III.

    H = Q R grows by one column with each node. So the residual E = Y - Q Q'Y costs one product per node,
    and R beta = Q'Y is solved only once, at the end; for fewer nodes by the leading part of R and Q'Y.
    """
    xp = array_namespace(X)
    (m, d), k, n = X.shape, Y.shape[1], rules.max_nodes
    shapes = (d + 1, n), (n, m), (n, n), (n, k)
    W, Qt, R, QtY = (xp.zeros(shape, dtype=X.dtype, device=device(X)) for shape in shapes)
    E, norms, xis, rs = Y, [float(xp.linalg.vector_norm(Y))], [], []
    stop_reason = "max_nodes"
    for l in range(n):
        if norms[-1] <= rules.tol * math.sqrt(m):
            stop_reason = "tolerance"
            break
        node = find_node(X, E, Qt[:l, :], rules, rng)
        if node is None:
            stop_reason = "no candidate"
            break
        W[:, l], Qt[l, :], R[: l + 1, l] = node.w, node.q, node.r_column
        QtY[l, :] = node.q @ E  # equals q'Y, because what E lacks of Y is orthogonal to q
        E = E - node.q[:, None] * QtY[l, :][None, :]
        norms.append(float(xp.linalg.vector_norm(E)))
        xis.append(node.xi)
        rs.append(node.r)
    L = len(rs)
    return Configured(W[:, :L], R[:L, :L], QtY[:L, :], tuple(norms), tuple(xis), tuple(rs), stop_reason)


def sigmoid_nodes(X: Array, W: Array) -> Array:
    """H = 1 / (1 + exp(-(X W + b))) = (1 + tanh((X W + b) / 2)) / 2, the biases b in the last row of W."""
    Z = X @ W[:-1, :]
    Z += W[-1, :]  # in place: H is the largest array of the method
    Z /= 2
    H = array_namespace(X).tanh(Z)
    H /= 2
    H += 0.5
    return H


def margins(gains: Any, energies: Any, r: float) -> Any:
    """xi_q = (e_q'g)^2 / g'g - (1 - r) e_q'e_q, for each output q and candidate g.

    This is the inequality of the authors' code. The paper subtracts (1 - r - mu_L) e_q'e_q with
    mu_L = (1 - r) / (L + 1), which is less, so a node that passes here passes there.
    """
    return gains - (1 - r) * energies[:, None]


def find_node(X: Array, E: Array, Qt: Array, rules: Rules, rng: np.random.Generator) -> Node | None:
    """Find the first (lambda, r) at which a candidate has only positive margins; take their best candidate.

    The best candidate has the largest sum of margins. The result is None if no (lambda, r) has one.
    """
    xp = array_namespace(X)
    energies = to_host(xp.sum(E * E, axis=0))
    for scale in rules.scales:
        W = from_numpy(rng.uniform(-scale, scale, (X.shape[1] + 1, rules.n_candidates)), X)
        H = sigmoid_nodes(X, W)
        lengths = xp.sum(H * H, axis=0)
        lengths = xp.where(lengths > 0, lengths, 1.0)  # a node that is 0 in every row has a gain of 0
        gains = to_host((xp.matrix_transpose(E) @ H) ** 2 / lengths)
        refused = np.zeros(rules.n_candidates, dtype=bool)
        for r in rules.contractions:
            xi = margins(gains, energies, r)
            while (admissible := (xi.min(axis=0) > 0) & ~refused).any():
                t = int(np.argmax(np.where(admissible, xi.sum(axis=0), -np.inf)))
                if (place := orthogonalise(H[:, t], Qt)) is not None:
                    return Node(W[:, t], *place, tuple(xi[:, t].tolist()), r)
                # Dependent nodes are rare, but come in numbers: test all candidates after the first one.
                if not refused.any():
                    refused |= _find_dependent(H, Qt)
                refused[t] = True
    return None


def orthogonalise(g: Array, Qt: Array) -> tuple[Array, Array] | None:
    """Find q and the column of R with g = [Q, q] column; None if g depends on the columns of Q.

    Gram-Schmidt is done twice, because one pass loses digits for a node that nearly depends on the others.
    """
    xp = array_namespace(g)
    first = Qt @ g
    q = g - first @ Qt
    second = Qt @ q
    q = q - second @ Qt
    left = xp.linalg.vector_norm(q)
    if float(left) <= _least_part(g) * float(xp.linalg.vector_norm(g)):
        return None
    return q / left, xp.concat([first + second, xp.reshape(left, (1,))])


def _find_dependent(H: Array, Qt: Array) -> np.ndarray:
    """Mark the columns of H that depend on the columns of Q."""
    xp = array_namespace(H)
    left = xp.linalg.vector_norm(H - xp.matrix_transpose(Qt) @ (Qt @ H), axis=0)
    return to_host(left <= _least_part(H) * xp.linalg.vector_norm(H, axis=0))


def _least_part(like: Array) -> float:
    """sqrt(eps): below this share, the direction of q is mostly rounding and its output weight is huge."""
    return math.sqrt(float(array_namespace(like).finfo(like.dtype).eps))


@dataclass(kw_only=True, eq=False, repr=False)
class SCNClassifier(RandomisedClassifier):
    """Stochastic configuration network: (e_q'g)^2 / g'g > (1 - r) e_q'e_q for each node g and each output q.

    The network grows by nodes g = sigmoid(X w + b). A random candidate passes if it removes more than the
    share 1 - r of the squared residual e_q'e_q of every output. The best candidate that passes joins the
    network, and all output weights are fitted again by least squares (algorithm SC-III). If no candidate
    passes, r is raised, and after the last r the range of the weights. The outputs are the one-hot classes.
    There is no penalty, no link from the inputs, and no constant.

    D. Wang, M. Li, "Stochastic Configuration Networks: Fundamentals and Algorithms", IEEE Transactions on
    Cybernetics 47 (2017).
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "max_nodes": [COUNT],
        "n_candidates": [COUNT],
        "scales": ["array-like"],
        "contractions": ["array-like"],
        "tol": [NOT_NEGATIVE],
        "standardize": ["boolean"],
        "random_state": ["random_state"],
    }

    max_nodes: int = 100  # L_max; a smaller value gives the first nodes of the same network
    n_candidates: int = 100  # random nodes that are compared at a time, T_max
    # Ranges lambda, ascending: weights and biases of candidates are drawn from U[-lambda, lambda].
    scales: Sequence[float] = SCALES
    # Values of r in (0, 1), ascending. All of them are tried with one lambda before the next lambda.
    contractions: Sequence[float] = CONTRACTIONS
    tol: float = 0.0001  # growing stops when the root of the mean squared residual of a row is this small
    standardize: bool = True  # inputs get mean 0 and variance 1, as measured on the training rows
    random_state: Any = None  # of the candidates, which are the same for every array library

    def _learn(self, X: Array, Y: Array, seed: np.random.SeedSequence) -> None:
        rules = Rules(
            max_nodes=self.max_nodes,
            n_candidates=self.n_candidates,
            scales=_check_ascending("scales", self.scales, math.inf),
            contractions=_check_ascending("contractions", self.contractions, 1.0),
            tol=self.tol,
        )
        self.input_scaler_ = StandardScaler().fit(X) if self.standardize else None
        found = configure(self._scale_inputs(X), Y, rules, np.random.default_rng(seed))
        self._keep(found, self.max_nodes)

    def _keep(self, found: Configured, max_nodes: int) -> None:
        """Keep the first nodes of a network. Their output weights are those of the smaller network."""
        xp = array_namespace(found.W)
        n_nodes = min(max_nodes, len(found.admitted_at))
        self.configured_ = found
        self.n_nodes_ = n_nodes
        self.stop_reason_ = found.stop_reason if n_nodes < max_nodes else "max_nodes"
        self.residual_norms_ = found.residual_norms[: n_nodes + 1]
        self.margins_ = found.margins[:n_nodes]
        self.admitted_at_ = found.admitted_at[:n_nodes]
        self.hidden_weights_ = found.W[:, :n_nodes]
        # the LU of a triangle is back substitution
        self.output_weights_ = xp.linalg.solve(found.R[:n_nodes, :n_nodes], found.QtY[:n_nodes, :])

    def first_nodes(self, n_nodes: int) -> SCNClassifier:
        """Return the network that `max_nodes=n_nodes` would have given, without growing it again."""
        check_is_fitted(self)
        smaller = copy.copy(self)
        smaller.max_nodes = n_nodes
        smaller._keep(self.configured_, n_nodes)
        return smaller

    def _scale_inputs(self, X: Array) -> Array:
        return X if self.input_scaler_ is None else self.input_scaler_.transform(X)

    def _features(self, X: Array) -> Array:
        return sigmoid_nodes(self._scale_inputs(X), self.hidden_weights_)


def _check_ascending(name: str, values: Sequence[float], below: float) -> list[float]:
    numbers = [float(v) for v in values]
    if not numbers or sorted(set(numbers)) != numbers or numbers[0] <= 0 or not numbers[-1] < below:
        bound = "" if math.isinf(below) else f" below {below:g}"
        raise ValueError(f"{name} must be ascending positive numbers{bound}, at least one, got {values!r}.")
    return numbers


# L_max is 100 in the authors' class and 10 or 250 in their demos; 1000 is the largest number of hidden
# neurons in the paper of WPedRVFL. The range of the stretch is ours: with many standardised inputs even the
# authors' smallest lambda, 0.5, saturates the sigmoid.
NODES = (50, 100, 250, 500, 1000)
STRETCH = stats.loguniform(2.0**-4, 2.0)


def configurations(trials: int, seed: int) -> list[dict[str, Any]]:
    """Draw what the search tries; the first of many draws are the draws of few.

    A factor is drawn by which the authors' sequence of lambda is stretched, and each factor is tried with all
    numbers of nodes, which one growth gives together. T_max, r and the tolerance stay those of the authors.
    """
    found = []
    for drawn in sample_configurations({"stretch": STRETCH}, math.ceil(trials / len(NODES)), seed):
        scales = [float(f"{scale * drawn['stretch']:.3g}") for scale in SCALES]
        found += [{"max_nodes": n, "scales": scales} for n in NODES]
    return found[:trials]
