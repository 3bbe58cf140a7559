"""What read-outs know of each training row: how far its error reaches, and what they would say without it.

A row z moves the score of a row x by g(x, z) w r / (1 - w g(z, z)): its weight w, its residual r, and the
reach g(x, z) = d(x)'(D'WD + lam I)^-1 d(z), or with a kernel the same by the dual system. That is exact given
what the fit froze. All of it is NumPy in float64.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy

from .._inputs.rows import MOST_COMPARED, Rows, merge_copies, to_host
from .._inputs.targets import RowWeights, Values
from .._models.kernel import KernelVoter, kernel_scores
from .._models.memory import KernelMemory, Memory, NetworkMemory
from .._models.network import Network, features_by_layer
from .._ridge.equations import Regression
from .._ridge.kernels import KERNELS
from .._ridge.leave_one_out import from_dual, from_leverage, twin_directions
from .._ridge.twins import Twins
from .._seam.arrays import free_bytes, row_blocks
from .._seam.linalg import (
    Cholesky,
    add_to_diagonal,
    factorise,
    half_inverse,
    inverse_diagonal,
    inverse_forms,
    solve,
)

# how far rows are (read-outs, rows), and a function that tells it of new ones
Spread = tuple[numpy.ndarray, Callable[[numpy.ndarray], numpy.ndarray]]
Reach = Callable[[slice], numpy.ndarray]  # some of the rows that came -> (read-outs, new rows, rows)
EPS = float(numpy.finfo(float).eps)


@dataclass(frozen=True, eq=False)
class Known:
    """The training rows that a fit remembers: those that came, and each once without its copies."""

    came: numpy.ndarray  # (n, d), the rows that came
    base: numpy.ndarray  # (n,), the factors of their squared errors
    Y: numpy.ndarray  # (n, k), 0 and 1 for classes, or values as they came
    at: numpy.ndarray  # (n,), which row stands for each of them
    first: numpy.ndarray  # (m,), the place of the first copy of each row
    groups: numpy.ndarray | None  # (m,), a number that rows of the same columns share: see `Rows.twins`

    @classmethod
    def of(cls, memory: Memory) -> Known:
        """Find copies and twins as the fit did."""
        held = memory.rows
        assert held.X is not None
        assert held.y is not None
        rows = Rows(held.X, None, memory.targets(held.y, held.X), RowWeights(held.counts))
        # copies that agree by chance are rows of their own
        alone = held.n_rows > MOST_COMPARED or merge_copies(rows).apart
        first, at = numpy.arange(held.n_rows), numpy.arange(held.n_rows)
        if not alone:
            _, first, at = numpy.unique(held.keys, return_index=True, return_inverse=True)
        groups = None if alone else rows.some(first).twins
        Y = held.y if memory.mean is not None else to_host(rows.targets.rows(slice(None)))
        return cls(held.X, memory.weights(held.y, held.counts), Y.astype(float), at, first, groups)

    @property
    def X(self) -> numpy.ndarray:
        """The rows, each once."""
        return self.came[self.first]

    def summed(self, weights: numpy.ndarray) -> numpy.ndarray:
        """Return the weights (m,) of all copies of each row."""
        return numpy.bincount(self.at, weights, minlength=len(self.first))

    def left_out(self, weights: numpy.ndarray, which: Any = slice(None)) -> Regression:
        """Return some rows as a least-squares problem; weights (m,) are those of all rows."""
        X = self.came[self.first[which]]
        groups = None if self.groups is None else self.groups[which]
        Y = Values(self.Y[self.first[which]])
        empty = numpy.empty((len(X), 0))  # nobody asks for the features
        return Regression(empty, Y, omega=weights[which], twins=Twins.of(groups, empty))


class Primal:
    """Read-outs over features D, each with a system D'WD + lam I."""

    def __init__(
        self,
        known: Known,
        features: Callable[[numpy.ndarray], Iterator[numpy.ndarray]],
        factors: Sequence[Cholesky],
        betas: Sequence[numpy.ndarray],
        omegas: Sequence[Any],
        offset: Any = 0.0,
    ) -> None:
        self._known, self._features, self._factors, self._betas = known, features, factors, betas
        self._weights = [known.base * omega for omega in omegas]  # of the rows that came
        self._offset = offset

    def scores(self, X: numpy.ndarray) -> numpy.ndarray:
        """Return the scores (read-outs, rows, k) of new rows."""
        pairs = zip(self._features(X), self._betas, strict=True)
        return numpy.stack([D @ beta for D, beta in pairs]) + self._offset

    def spans(self, X: numpy.ndarray) -> numpy.ndarray:
        """Return g(x, x) (read-outs, rows)."""
        pairs = zip(self._factors, self._features(X), strict=True)
        return numpy.stack([inverse_forms(factor, D) for factor, D in pairs])

    @cached_property
    def _own(self) -> tuple[numpy.ndarray, numpy.ndarray]:
        """What each training row gets: g (read-outs, m), and scores (read-outs, m, k)."""
        X = self._known.X
        parts = [(self.spans(X[r]), self.scores(X[r])) for r in self._blocks(X)]
        return tuple(numpy.concatenate(each, axis=1) for each in zip(*parts, strict=True))  # type: ignore[return-value]

    def _blocks(self, X: numpy.ndarray) -> Iterator[slice]:
        return row_blocks(X, len(X), 2 * max(len(beta) for beta in self._betas))

    @cached_property
    def pushes(self) -> numpy.ndarray:
        """w r / (1 - w g) (read-outs, n, k) of each row that came."""
        at, (g, scores) = self._known.at, self._own
        w = numpy.stack(self._weights)
        rest = numpy.maximum(1 - w * g[:, at], EPS)
        return (w / rest)[..., None] * (self._known.Y - scores[:, at])

    def reach(self, X: numpy.ndarray) -> Reach:
        """Return g(x, z) of new rows x and some of the training rows z that came."""
        pairs = zip(self._factors, self._features(X), strict=True)
        solved = [solve(factor, D.T) for factor, D in pairs]

        def of_rows(some: slice) -> numpy.ndarray:
            pairs = zip(self._features(self._known.came[some]), solved, strict=True)
            return numpy.stack([(D @ V).T for D, V in pairs])

        return of_rows

    def left_out(self) -> numpy.ndarray:
        """Return the scores (read-outs, m, k) of the rows by read-outs without them and their twins."""
        g, scores = self._own
        found = []
        for l, weights in enumerate(self._weights):
            left = self._known.left_out(self._known.summed(weights)).left_out
            found.append(from_leverage(scores[l], left.Y, left.own_weights * g[l]))
        return numpy.stack(found)

    def spread(self, some: numpy.ndarray) -> Spread:
        """Return how far some rows are from the others, (read-outs, rows), and a function for new rows."""
        g = self.spans(self._known.X[some])
        left = [self._known.left_out(self._known.summed(w)).left_out.own_weights[some] for w in self._weights]
        return g / numpy.maximum(1 - numpy.stack(left) * g, EPS), self.spans


def network_read_outs(network: Network, memory: NetworkMemory, known: Known) -> Primal:
    """Return the read-outs of a network: one for each layer, or a joint one."""
    joint = network.joint
    betas = [beta.astype(float) for beta in (network.readouts[-1:] if joint else network.readouts)]
    lams = memory.lams[-1:] if joint else memory.lams
    factors = [_factor(sums.G.copy(), lam) for sums, lam in zip(memory.sums, lams, strict=True)]
    omegas = [1.0] if joint else [memory.omega(l) for l in range(len(betas))]

    def features(X: numpy.ndarray) -> Iterator[numpy.ndarray]:
        n = network.n_hidden
        parts: list[numpy.ndarray] = []
        for D in features_by_layer(network, X):
            if not joint:
                yield D.astype(float, copy=False)
                continue
            parts += [D[:, n:].copy()] if not parts else []
            parts.append(D[:, :n].copy())
        if joint:
            yield numpy.concatenate(parts, axis=1).astype(float, copy=False)

    return Primal(known, features, factors, betas, omegas)


def _factor(G: numpy.ndarray, lam: float) -> Cholesky:
    found = factorise(add_to_diagonal(G, lam))
    if not bool(found.regular):
        raise ValueError(
            f"The system of a read-out is singular with the penalty {lam:g}, so what it would say without a "
            "row is not known. Fit with a larger regularization."
        )
    return found


class Landmarks(Primal):
    """A kernel over landmarks: a read-out over features whose products are the kernel."""

    def __init__(self, voter: KernelVoter, lam: float, known: Known) -> None:
        self._voter, self._lam = voter, lam
        kernel, Z = KERNELS[voter.kernel], voter.landmarks.astype(float)
        measure = _measure(voter, Z)
        G = kernel.alike(measure.own(), voter.width)
        jitter = 4 * EPS * len(G)
        while not bool((factor := factorise(add_to_diagonal(G * 1.0, jitter))).regular):
            jitter *= 4
        whitening = half_inverse(factor)

        def features(X: numpy.ndarray) -> Iterator[numpy.ndarray]:
            yield kernel.alike(measure(_encoded(voter, X)), voter.width) @ whitening

        w, (c, k) = known.summed(known.base), (len(Z), known.Y.shape[1])
        system, R = numpy.zeros((c, c)), numpy.zeros((c, k))
        X, Y = known.X, known.Y[known.first] - voter.prior
        for rows in row_blocks(X, len(X), 2 * c):
            (D,) = features(X[rows])
            system += D.T @ (D * w[rows, None])
            R += D.T @ (Y[rows] * w[rows, None])
        solved = _factor(system, lam)
        super().__init__(known, features, [solved], [solve(solved, R)], [1.0], voter.prior.astype(float))

    def spread(self, some: numpy.ndarray) -> Spread:
        """Return how far some rows are from each other, (1, rows), and a function for new rows."""
        return kernel_spread(self._voter, self._lam, self._known.base, self._known, some)


def _encoded(voter: KernelVoter, X: numpy.ndarray) -> numpy.ndarray:
    """Return rows as the kernel compares them, in the digits of the landmarks."""
    return voter.inputs.apply(X).astype(voter.landmarks.dtype, copy=False).astype(float, copy=False)


def _measure(voter: KernelVoter, Z: numpy.ndarray) -> Any:
    """Return what measures rows against encoded rows Z."""
    return KERNELS[voter.kernel].measure(Z, voter.inputs.contrasts(Z))


class Part:
    """One exact system W^(1/2) K W^(1/2) + lam I of a kernel."""

    def __init__(self, voter: KernelVoter, X: numpy.ndarray, w: numpy.ndarray, lam: float) -> None:
        m, kernel = len(X), KERNELS[voter.kernel]
        if 3 * 8 * m * m > free_bytes(X):
            raise ValueError(
                f"The system of a kernel over {m} rows takes {24 * m * m / 1e9:.0f} GB, which are not free. "
                "Fit with fewer rows, or a network."
            )
        self._voter, self._kernel, self.lam = voter, kernel, lam
        self.w, self.root = w, numpy.sqrt(w)
        self._measure = _measure(voter, _encoded(voter, X))
        K = kernel.alike(self._measure.own(), voter.width)
        K *= self.root[:, None]
        K *= self.root
        self.factor = _factor(K, lam)

    @cached_property
    def q(self) -> numpy.ndarray:
        """The diagonal of the inverse (m,)."""
        return inverse_diagonal(self.factor)

    def solved(self, X: numpy.ndarray) -> tuple[numpy.ndarray, numpy.ndarray]:
        """Return W^(1/2) k(x) (m, rows), and the solution for it."""
        k = self._kernel.alike(self._measure(_encoded(self._voter, X)), self._voter.width).T
        k = self.root[:, None] * k
        return k, solve(self.factor, k)


class Dual:
    """Exact systems of a kernel, whose mean is the score."""

    def __init__(
        self, voter: KernelVoter, memory: KernelMemory, weights: numpy.ndarray, known: Known
    ) -> None:
        self._voter, self._known, self._weights = voter, known, weights
        self._memory = memory
        self._unit = numpy.full(len(weights), -1)  # the place of each row among those of all systems
        self._rows: list[numpy.ndarray] = []  # of each system: rows, each once
        start = 0
        for p in range(len(memory.lams)):
            inside = memory.part == p
            rows, place = numpy.unique(known.at[inside], return_inverse=True)
            self._unit[inside] = start + place
            self._rows.append(rows)
            start += len(rows)

    @cached_property
    def _parts(self) -> list[Part]:
        inside = self._unit >= 0
        w = numpy.bincount(self._unit[inside], self._weights[inside])
        ends = numpy.cumsum([len(rows) for rows in self._rows])[:-1]
        several = zip(self._rows, numpy.split(w, ends), self._memory.lams, strict=True)
        return [Part(self._voter, self._known.X[rows], own, lam) for rows, own, lam in several]

    @cached_property
    def _solutions(self) -> list[numpy.ndarray]:
        """The dual solution (rows, k) of each system."""
        Y = self._known.Y[self._known.first] - self._voter.prior
        pairs = zip(self._parts, self._rows, strict=True)
        return [solve(part.factor, part.root[:, None] * Y[rows]) for part, rows in pairs]

    def scores(self, X: numpy.ndarray) -> numpy.ndarray:
        """Return the scores (1, rows, k) of new rows."""
        return kernel_scores(self._voter, X)[None].astype(float)

    @cached_property
    def pushes(self) -> numpy.ndarray:
        """w r / (1 - w g) (1, n, k) of each row that came; 0 for rows without a coefficient."""
        pairs = list(zip(self._parts, self._solutions, strict=True))
        errors = numpy.concatenate([part.lam * dual / part.root[:, None] for part, dual in pairs])
        # 1 - w g = lam q, written without the difference
        alone = numpy.concatenate([part.lam * part.q for part in self._parts])
        w, inside = numpy.concatenate([part.w for part in self._parts]), self._unit >= 0
        unit, own = self._unit[inside], self._weights[inside]
        share = own / w[unit]
        rest = numpy.maximum(1 - share + share * alone[unit], EPS)
        found = numpy.zeros((1, len(inside), errors.shape[1]))
        found[0, inside] = (own / rest)[:, None] * errors[unit] / len(self._parts)
        return found

    def reach(self, X: numpy.ndarray) -> Reach:
        """Return g(x, z) of new rows x and some of the training rows z that came."""
        g = numpy.concatenate([part.solved(X)[1] / part.root[:, None] for part in self._parts])
        g = numpy.concatenate([g, numpy.zeros((1, len(X)))])  # which rows without a coefficient get
        return lambda some: g[self._unit[some]].T[None]

    def left_out(self) -> numpy.ndarray:
        """Return the scores (1, m, k) of the rows by systems without them and their twins."""
        known, prior = self._known, self._voter.prior
        n_parts, Y = len(self._parts), known.Y[known.first]
        found = kernel_scores(self._voter, known.X).astype(float)
        for part, rows, dual in zip(self._parts, self._rows, self._solutions, strict=True):
            w = numpy.ones(len(known.first))
            w[rows] = part.w
            problem = known.left_out(w, rows)
            mean = problem.left_out.Y - prior  # of twins
            centred = Regression(problem.D, Values(mean), omega=part.w, twins=problem.twins)
            solution = solve(part.factor, part.root[:, None] * mean)
            fitted = Y[rows] - prior - part.lam * dual / part.root[:, None]
            found[rows] += (from_dual(centred, part.factor, solution) - fitted) / n_parts
        return found[None]

    def spread(self, some: numpy.ndarray) -> Spread:
        """Return how far some rows are from each other, (1, rows), and a function for new rows."""
        return kernel_spread(self._voter, max(self._memory.lams), self._weights, self._known, some)


def kernel_spread(
    voter: KernelVoter, lam: float, weights: numpy.ndarray, known: Known, some: numpy.ndarray
) -> Spread:
    """Return 1 - k'(K + lam W^-1)^-1 k of the system over some rows: of these by the others, and of new ones.

    Landmarks do not tell it: far from all of them, all of their features are 0.
    """
    w = known.summed(weights)
    w = numpy.where(w > 0, w, 1.0)  # of rows without a coefficient
    part = Part(voter, known.X[some], w[some], lam)
    problem = known.left_out(w, some)
    q, total, twins = part.q, problem.left_out.own_weights, problem.twins
    if twins is not None:
        q = twins.put(q, inverse_forms(part.factor, twin_directions(problem, twins)))

    def of_new(X: numpy.ndarray) -> numpy.ndarray:
        k, solution = part.solved(X)
        return 1 - numpy.einsum("ij,ij->j", k, solution)[None]

    return (1 / q - lam)[None] / total, of_new


ReadOuts = Primal | Dual


def read_outs_of(voter: Any, memory: Memory, i: int, known: Known) -> ReadOuts:
    """Return the read-outs of a voter in NumPy, of which the memory holds what number i was solved from."""
    solved, held = memory.voters[i], memory.rows
    assert held.y is not None
    if isinstance(solved, NetworkMemory):
        return network_read_outs(voter, solved, known)
    if solved.solver == "landmarks":
        return Landmarks(voter.voter, solved.lams[0], known)
    return Dual(voter.voter, solved, memory.weights(held.y, solved.counts), known)
