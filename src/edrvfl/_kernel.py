"""The kernel voter: a ridge with a Laplace kernel on encoded rows, with what leave-one-out chooses for it.

It is the limit of an infinitely wide random layer. Up to some thousand rows it is exact; above, landmarks
stand for all rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from types import SimpleNamespace

import numpy

from ._answers.follow import Follower
from ._arrays import (
    Array,
    array_namespace,
    device,
    free_bytes,
    from_numpy,
    itemsize,
    on_accelerator,
    row_blocks,
    take_entries,
    take_rows,
)
from ._inputs.inputs import Inputs
from ._inputs.judged import Judged
from ._inputs.order import draw_rows, row_hashes
from ._inputs.rows import Rows, to_host
from ._inputs.targets import Classes, Values
from ._inputs.weights import RowWeights, rows_worth
from ._ridge.equations import Regression
from ._ridge.kernel import (
    KernelReadOut,
    LandmarkFeatures,
    distances,
    kernel_ridge,
    landmark_features,
    laplace,
)

BANDWIDTHS = tuple(2.0**q for q in range(-3, 3))
LAMBDAS = tuple(2.0**q for q in range(-7, 6, 2))
FIRST = (3, 2)  # where the search starts: bandwidth 1, lambda 1/8
# Places of neighbours. A longer kernel wants a smaller penalty: the valley of the loss runs along (1, -1).
STEPS = ((0, -1), (0, 1), (-1, 0), (1, 0), (1, -1), (-1, 1))
PENALTY_STEPS = STEPS[:2]
GAIN = 1e-3  # a neighbour must be so much better, relatively, to be taken
# Of these sizes, on a CPU and on a GPU (False and True), systems of all rows take a few seconds.
EXACT_ROWS = {False: 6_000, True: 20_000}
LANDMARKS = {False: 1_500, True: 4_000}
WORK = {False: 3 * 4_000**3, True: 3 * 20_000**3}  # three systems of 4,000 rows: what all rows may try
SEARCH_ROWS = (1_000, 2_000)  # rows that choose for all rows; the second where all rows can try little
FEW = 3
DOUBLE_ROWS = 1_000  # more rows are computed in float32
# Without votes and calibration: one score, and the log-loss after one temperature.
ONE_SCORE = SimpleNamespace(ensemble="softmax", layer_votes="equal", calibration="temperature")


@dataclass(frozen=True, slots=True)
class KernelSettings:
    """The settings of a kernel voter. None lets leave-one-out choose."""

    bandwidth: float | None = None
    lam: float | None = None
    n_landmarks: int | str | None = "auto"  # None takes all rows, "auto" up to a size


@dataclass(frozen=True, slots=True, eq=False)
class KernelVoter:
    """A fitted kernel ridge: score(x) = prior + sum_s alpha_s exp(-|x - z_s| / width)."""

    inputs: Inputs  # how a row of X becomes encoded columns
    landmarks: Array  # (s, d), encoded rows, in float32 if there were many training rows
    alpha: Array  # (s, k), in the same precision
    prior: Array  # (k,), the classes' shares, in the precision of X: the score far away from all rows
    bandwidth: float
    lam: float

    @property
    def width(self) -> float:
        """The distance at which the kernel is 1/e: the bandwidth times the root of the number of columns."""
        return self.bandwidth * math.sqrt(max(1, self.landmarks.shape[1]))


@dataclass(frozen=True, slots=True, eq=False)
class _Sample:
    """Encoded rows with their classes and weights: all training rows, or some that choose for all."""

    X: Array  # (m, d), in the precision of the kernel
    targets: Classes
    weights: RowWeights
    judged: Judged | None

    @property
    def prior(self) -> Array:
        """The weighted shares of the classes."""
        xp, base = array_namespace(self.X), self.weights.base
        Y = self.targets.rows(slice(None))
        total = xp.sum(Y if base is None else Y * base[:, None], axis=0)
        return total / xp.sum(total)

    def regression(self) -> Regression:
        """Return the least-squares problem of the one-hot targets without the prior."""
        xp, dtype, m = array_namespace(self.X), self.X.dtype, self.X.shape[0]
        Y = xp.astype(self.targets.rows(slice(None)) - self.prior, dtype)
        base = self.weights.base
        base = None if base is None else xp.astype(base, dtype)
        shares = xp.astype(self.weights.left_out_shares(m, self.targets.like), dtype)
        return Regression(self.X, Values(Y), base, shares=shares, judged=self.judged)

    def some(self, times: numpy.ndarray, unit: float) -> _Sample:
        """Return the rows that were drawn, as often as they were drawn."""
        rows = from_numpy(numpy.flatnonzero(times), self.X, array_namespace(self.X).int64)
        counts = from_numpy(unit * times[times > 0], self.targets.like)
        costs = None if self.weights.costs is None else take_entries(self.weights.costs, rows)
        targets = Classes(take_entries(self.targets.codes, rows), self.targets.width, self.targets.like)
        return _Sample(take_rows(self.X, rows), targets, RowWeights(counts, costs), None)


class _System:
    """The kernel systems of some rows: exact, or over landmarks (s, d)."""

    def __init__(self, sample: _Sample, landmarks: Array | None = None) -> None:
        self._sample, self._problem = sample, sample.regression()
        self._exact = landmarks is None
        self.landmarks = sample.X if landmarks is None else landmarks
        self.prior = array_namespace(sample.X).astype(sample.prior, sample.X.dtype)
        self._distance = distances(sample.X, self.landmarks)
        self._features: tuple[float, LandmarkFeatures] | None = None

    def readout(self, bandwidth: float, lam: float) -> KernelReadOut:
        """Solve the system of a bandwidth and a penalty."""
        width = bandwidth * math.sqrt(max(1, self.landmarks.shape[1]))
        if self._exact:
            return kernel_ridge(laplace(self._distance, width), self._problem, lam)
        if self._features is None or self._features[0] != bandwidth:
            self._features = None  # two would fill memory
            of_landmarks = laplace(distances(self.landmarks, self.landmarks), width)
            K = laplace(self._distance, width)
            self._features = bandwidth, landmark_features(K, of_landmarks, self._problem)
        return self._features[1].ridge(lam)

    def loss(self, found: KernelReadOut) -> float:
        """Return the leave-one-out log-loss after one temperature."""
        if not found.regular:
            return math.inf
        s = self._sample
        return Follower(s.targets, s.weights, s.judged, ONE_SCORE).add(found.loo + self.prior).log_loss


@dataclass(frozen=True, slots=True)
class _Choice:
    """A bandwidth and a penalty, as places in the lists of candidates."""

    bandwidths: tuple[float, ...]
    lams: tuple[float, ...]
    i: int
    j: int

    @classmethod
    def of(cls, settings: KernelSettings) -> _Choice:
        """Start in the middle; what is given is the only candidate."""
        h, lam = settings.bandwidth, settings.lam
        return cls(
            BANDWIDTHS if h is None else (h,),
            LAMBDAS if lam is None else (lam,),
            FIRST[0] if h is None else 0,
            FIRST[1] if lam is None else 0,
        )

    @property
    def n_candidates(self) -> int:
        return len(self.bandwidths) * len(self.lams)

    @property
    def values(self) -> tuple[float, float]:
        return self.bandwidths[self.i], self.lams[self.j]

    def moved(self, i: int, j: int) -> _Choice | None:
        """Return a neighbour; None if there is none."""
        i, j = self.i + i, self.j + j
        inside = 0 <= i < len(self.bandwidths) and 0 <= j < len(self.lams)
        return _Choice(self.bandwidths, self.lams, i, j) if inside else None


def _descend(
    system: _System, start: _Choice, most: int, steps: tuple[tuple[int, int], ...] = STEPS
) -> tuple[_Choice, KernelReadOut]:
    """Go from neighbour to better neighbour; a direction that helped is tried again first.

    At most `most` candidates are tried. A singular system has an infinite loss.
    """
    best, found = start, system.readout(*start.values)
    loss = system.loss(found) if most > 1 else 0.0
    tried, ahead = {start}, list(steps)
    while ahead and len(tried) < most:
        step = ahead.pop(0)
        there = best.moved(*step)
        if there is None or there in tried:
            continue
        tried.add(there)
        candidate = system.readout(*there.values)
        new = system.loss(candidate)
        if new < loss * (1 - GAIN):
            best, found, loss = there, candidate, new
            ahead = [step, *(s for s in steps if s != step)]
    return best, found


def fit_kernel(
    rows: Rows, inputs: Inputs, settings: KernelSettings, seed: int, judged: Judged | None = None
) -> tuple[KernelVoter, Array]:
    """Fit a kernel voter, and return it with the leave-one-out scores (judged rows, k).

    Of many rows a part chooses bandwidth and penalty first; then all rows try the neighbours, as far as
    the work allows. Among landmarks all rows try other penalties only: another bandwidth would cost as much
    as everything before.
    """
    xp, sample = array_namespace(rows.X), _Sample(_encoded(rows, inputs), rows.targets, rows.weights, judged)
    m, gpu = rows.X.shape[0], on_accelerator(rows.X)
    s, choice, draw = _n_landmarks(settings, sample.X), _Choice.of(settings), _Draw(rows, seed)
    most = len(BANDWIDTHS) * len(LAMBDAS) if s is not None else max(1, WORK[gpu] // m**3)
    if choice.n_candidates > 1:
        for n in SEARCH_ROWS[: 1 if s is None and most >= FEW else 2]:
            if n < m:
                choice, _ = _descend(_System(sample.some(*draw.proportional(n))), choice, 99)
    landmarks = None if s is None else take_rows(sample.X, from_numpy(draw.landmarks(s), rows.X, xp.int64))
    system = _System(sample, landmarks)
    choice, found = _descend(system, choice, most, STEPS if s is None else PENALTY_STEPS)
    bandwidth, lam = choice.values
    while not found.regular:  # the penalty is nothing beside rounding
        lam *= 4
        found = system.readout(bandwidth, lam)
    voter = KernelVoter(inputs, system.landmarks, found.alpha, sample.prior, bandwidth, lam)
    return voter, xp.astype(found.loo, rows.X.dtype) + sample.prior


def kernel_scores(voter: KernelVoter, X: Array) -> Array:
    """Return the scores (rows, k) of new rows of X, block by block."""
    xp, (s, k) = array_namespace(X), voter.alpha.shape
    scores = xp.empty((X.shape[0], k), dtype=X.dtype, device=device(X))
    for rows in row_blocks(X, X.shape[0], 3 * s + 2 * voter.inputs.width):
        block = xp.astype(voter.inputs.apply(X[rows, :]), voter.alpha.dtype, copy=False)
        K = laplace(distances(block, voter.landmarks), voter.width)
        scores[rows, :] = xp.astype(K @ voter.alpha, X.dtype, copy=False) + voter.prior
    return scores


def _encoded(rows: Rows, inputs: Inputs) -> Array:
    """Return the encoded rows; many rows in float32, which is twice as fast and gives the same log-loss."""
    xp, X = array_namespace(rows.X), rows.X
    dtype = X.dtype if X.shape[0] <= DOUBLE_ROWS else xp.float32
    encoded = xp.empty((X.shape[0], inputs.width), dtype=dtype, device=device(X))
    inputs.write(X, encoded)
    return encoded


def _n_landmarks(settings: KernelSettings, X: Array) -> int | None:
    """Return how many landmarks stand for the rows; None if all rows do."""
    m, s, gpu = X.shape[0], settings.n_landmarks, on_accelerator(X)
    if s == "auto":
        # distances, the kernel, its factor and the factor's inverse
        fits = 5 * m * m * itemsize(X) < free_bytes(X)
        s = None if m <= EXACT_ROWS[gpu] and fits else LANDMARKS[gpu]
    return None if s is None or int(s) >= m else int(s)


class _Draw:
    """Draws of rows that depend on the seed and on what the rows hold, but not on their order."""

    def __init__(self, rows: Rows, seed: int) -> None:
        counts = rows.weights.counts_of(rows.X.shape[0], rows.targets.like)
        self._counts = to_host(counts).astype(numpy.float64)
        self._codes, self._hashes = to_host(rows.targets.codes), row_hashes(to_host(rows.X))
        self._start = float(numpy.random.Generator(numpy.random.PCG64(seed)).random())

    def proportional(self, n: int) -> tuple[numpy.ndarray, float]:
        """Draw n rows, each class by its share. Return how often each row came, and what a draw counts."""
        order = numpy.lexsort((self._hashes, self._codes))  # by class: equal steps hit all of them
        times = draw_rows(n, numpy.zeros_like(self._codes), self._counts, order, self._start)
        return times, float(self._counts.sum()) / rows_worth(self._counts)

    def landmarks(self, n: int) -> numpy.ndarray:
        """Draw n different rows, or a few less, each class as often as the others."""
        order = numpy.argsort(self._hashes, kind="stable")
        times = draw_rows(n, self._codes, self._counts, order, self._start)
        drawn = order[times[order] > 0]
        _, first = numpy.unique(self._hashes[drawn], return_index=True)
        rows: numpy.ndarray = drawn[first]
        return rows
