"""Systems with a kernel, and how leave-one-out chooses their bandwidth and penalty."""

from __future__ import annotations

import heapq
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy
from scipy.special import softmax

from .._inputs.chosen import Judged, codes_of, draw_rows, ranking
from .._inputs.inputs import Inputs
from .._inputs.levels import compared
from .._inputs.rows import Rows, to_host
from .._inputs.targets import RowWeights, Targets, Values
from .._loo.calibrate import Calibration
from .._loo.jury import ValueJury, jury_of
from .._ridge.equations import Regression
from .._ridge.kernel import KernelReadOut, LandmarkFeatures, kernel_ridge, landmark_features
from .._ridge.kernels import KERNELS, width_of
from .._ridge.twins import Twins
from .._seam.arrays import Array, array_namespace, device, from_numpy, take_entries, take_rows

BANDWIDTHS = tuple(2.0**q for q in range(-3, 4))
LAMBDAS = tuple(2.0**q for q in range(-7, 6, 2))
Pair = tuple[float, float]  # a bandwidth and a penalty
# Where the search starts: about where it ends on 500 rows of the study's tables and frames, with a penalty
# that is rather too large. Where the loss hardly changes, sets by a small penalty cover too few rows.
FIRST: Mapping[str, Pair] = {
    "laplace": (2.0, 2.0**-3),
    "matern": (2.0, 2.0**-3),
    "product": (1.0, 2.0**-3),
    "additive": (2.0, 2.0**-3),
}
VALUE_FIRST: Mapping[str, Pair] = {
    "laplace": (16.0, 2.0**-5),
    "matern": (4.0, 2.0**-5),
    "product": (2.0, 2.0**-3),
    "additive": (4.0, 2.0**-3),
}
# Values, which are told from each other by more than a sign, want longer kernels with smaller penalties, and
# so do the other kernels.
VALUE_BANDWIDTHS = tuple(2.0**q for q in range(-3, 6))
VALUE_LAMBDAS = tuple(2.0**q for q in range(-11, 6, 2))
OTHER_BANDWIDTHS = tuple(2.0**q for q in range(-3, 7))
OTHER_LAMBDAS = tuple(2.0**q for q in range(-15, 6, 2))
# Places of neighbours. A longer kernel wants a smaller penalty: the valley of the loss runs along (1, -1).
STEPS = ((0, -1), (0, 1), (-1, 0), (1, 0), (1, -1), (-1, 1))
PENALTY_STEPS = STEPS[:2]
NEAR_STEPS = STEPS[:4]  # from where alike rows or columns ended, which is nearly always where these end
MOST_RAISES = 40  # of a penalty, each by 4
GAIN = 1e-3  # a neighbour must be so much better, relatively, to be taken
DOUBLE_ROWS = 1_000  # more rows are computed in float32


@dataclass(frozen=True, slots=True)
class KernelSettings:
    """The settings of a kernel voter. None lets leave-one-out choose."""

    bandwidth: float | None = None
    lam: float | None = None
    n_landmarks: int | str | None = "auto"  # None: one exact system; "auto": as many as parts need
    kernel: str = "laplace"  # a name of `KERNELS`


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """Rows with their targets and weights: all training rows, or some of them."""

    raw: Array  # (m, columns of X), not encoded yet: of many rows only some are needed
    inputs: Inputs
    kernel: str
    dtype: Any  # the precision of the kernel
    targets: Targets
    weights: RowWeights
    prior: Array  # (k,), the mean of all training rows' targets: the classes' weighted shares, or zeros
    unit: float = 1.0  # the weight of one row, by which weights and penalties are divided
    judged: Judged | None = None
    twins: numpy.ndarray | None = None  # (m,), a number that rows of the same X share: see `Rows.twins`
    groups: numpy.ndarray | None = None  # (m,), the number of each row's group: see `Rows.groups`

    @classmethod
    def of(cls, rows: Rows, inputs: Inputs, kernel: str, judged: Judged | None = None) -> Sample:
        """Take all training rows; many are computed in float32, twice as fast and with the same log-loss.

        The smooth kernel is in float64: the small penalties that it wants need the digits.
        """
        xp, X = array_namespace(rows.X), rows.X
        dtype = X.dtype if X.shape[0] <= DOUBLE_ROWS else xp.float32
        dtype = xp.float64 if kernel == "matern" else dtype
        unit = rows.weights.unit
        refuse_extreme(rows.weights.base, unit, X.shape[0], dtype)
        prior = mean_targets(rows)
        of_rows = rows.targets, rows.weights, prior, unit, judged, rows.twins, rows.groups
        return cls(X, compared(inputs), kernel, dtype, *of_rows)

    def encoded(self, which: Array | None = None) -> Array:
        """Return the encoded rows (m, d), or some of them."""
        xp, X = array_namespace(self.raw), self.raw if which is None else take_rows(self.raw, which)
        encoded = xp.empty((X.shape[0], self.inputs.width), dtype=self.dtype, device=device(X))
        self.inputs.write(X, encoded)
        return encoded

    def regression(self, X: Array) -> Regression:
        """Return the least-squares problem of the targets without the prior."""
        xp, dtype, m = array_namespace(X), self.dtype, X.shape[0]
        Y = xp.astype(self.targets.rows(slice(0, m)) - self.prior, dtype)
        base = self.weights.base
        base = None if base is None else xp.astype(base / self.unit, dtype)
        twins = Twins.of(self.twins, X)
        return Regression(
            X, Values(Y), base, twins=twins, want_loo=True, judged=self.judged, groups=self.groups
        )

    def some(self, counts: numpy.ndarray) -> Sample:
        """Return the rows with a positive count among these counts of all rows; all of them are judged."""
        like, which = self.targets.like, numpy.flatnonzero(counts)
        rows = from_numpy(which, self.raw, array_namespace(self.raw).int64)
        plain = bool((counts[which] == 1).all())
        costs = self.weights.costs
        weights = RowWeights(
            None if plain else from_numpy(counts[which], like),
            None if costs is None else take_entries(costs, rows),
        )
        targets, raw = self.targets.some(rows), take_rows(self.raw, rows)
        twins, groups = (None if numbers is None else numbers[which] for numbers in (self.twins, self.groups))
        some = replace(self, raw=raw, targets=targets, weights=weights, judged=None)
        return replace(some, twins=twins, groups=groups)


def refuse_extreme(base: Array | None, unit: float, m: int, dtype: Any) -> None:
    """Refuse weights that are infinite or 0 in the precision of the kernel, or whose sums overflow it."""
    if base is None:
        return
    xp = array_namespace(base)
    limits = xp.finfo(dtype)
    smallest, largest = float(xp.min(base)) / unit, float(xp.max(base)) / unit
    if not (smallest > float(limits.smallest_normal) and largest * m < float(limits.max) ** 0.5):
        raise ValueError(
            f"The weights differ too much for {dtype}: sample_weight times class_weight goes from "
            f"{smallest:.3g} to {largest:.3g} times that of a usual row. Bring the weights closer together."
        )


def mean_targets(rows: Rows) -> Array:
    """Return the weighted shares of the classes, or the mean of values: 0 for all rows, not for some."""
    base = rows.weights.base
    weights = None if base is None else to_host(base).astype(float)
    if isinstance(rows.targets, Values):
        return from_numpy(numpy.average(to_host(rows.targets.Y), axis=0, weights=weights), rows.X)
    totals = numpy.bincount(to_host(rows.targets.codes), weights, minlength=rows.targets.width)
    return from_numpy(totals / totals.sum(), rows.X)


class System:
    """The kernel systems of some rows: exact, or over landmarks (s, d)."""

    def __init__(self, sample: Sample, landmarks: Array | None = None) -> None:
        X = sample.encoded()
        self._sample, self._problem = sample, sample.regression(X)
        self._jury = jury_of(sample.targets, sample.weights, sample.judged, groups=sample.groups)
        self._exact = landmarks is None
        self.landmarks = X if landmarks is None else landmarks
        self.kernel = KERNELS[sample.kernel]
        self.contrasts = sample.inputs.contrasts(X)
        self.measure = self.kernel.measure(self.landmarks, self.contrasts)
        self.apart = self.measure.own() if self._exact else self.measure(X)
        self._features: tuple[float, LandmarkFeatures] | None = None
        self._near: Calibration | None = None
        self._alike: tuple[float, Array] | None = None  # the newest bandwidth, and K

    def width(self, bandwidth: float) -> float:
        """Return the width of the kernel in units of the encoded columns."""
        return width_of(self._sample.kernel, bandwidth, self._sample.inputs.n_compared)

    def readout(self, bandwidth: float, lam: float) -> KernelReadOut:
        """Solve the system of a bandwidth and a penalty."""
        width, of_unit = self.width(bandwidth), lam / self._sample.unit
        if self._exact:
            found = kernel_ridge(self._gram(bandwidth), self._problem, of_unit)
            return replace(found, lam=lam)
        if self._features is None or self._features[0] != bandwidth:
            self._features = None  # two would fill memory
            of_landmarks = self.kernel.alike(self.measure.own(), width)
            K = self.kernel.alike(self.apart, width)
            self._features = bandwidth, landmark_features(K, of_landmarks, self._problem)
        return replace(self._features[1].ridge(of_unit), lam=lam)

    def _gram(self, bandwidth: float) -> Array:
        """Return K between all rows, to be overwritten. One that is dear is kept for other penalties."""
        width = self.width(bandwidth)
        if not self.kernel.dear:
            return self.kernel.alike(self.apart, width)
        if self._alike is None or self._alike[0] != bandwidth:
            self._alike = None  # two would fill memory
            self._alike = bandwidth, self.kernel.alike(self.apart, width)
        return self._alike[1] * 1.0

    def loss(self, found: KernelReadOut) -> float:
        """Return the leave-one-out log-loss after one temperature, or the mean squared error of values."""
        if not found.regular:
            return math.inf
        scores = to_host(found.loo + from_numpy(self._sample.prior, found.loo)).astype(float)
        if isinstance(self._jury, ValueJury):
            return self._jury.loss(scores)
        P = softmax(scores, axis=-1)
        # that of a neighbour is a good start
        self._near = self._jury.calibration(P, "temperature", self._near)
        return self._jury.loss(self._near(P))


@dataclass(frozen=True, slots=True)
class Choice:
    """A bandwidth and a penalty, as places in the lists of candidates."""

    bandwidths: tuple[float, ...]
    lams: tuple[float, ...]
    i: int
    j: int

    @classmethod
    def of(cls, settings: KernelSettings, sample: Sample, near: Pair | None = None) -> Choice:
        """Start near what suits alike rows, or where many end; what is given is the only candidate.

        Penalties go with the unit of weights.
        """
        h, lam, unit = settings.bandwidth, settings.lam, sample.unit
        bandwidths, lams, first = BANDWIDTHS, LAMBDAS, FIRST[sample.kernel]
        if isinstance(sample.targets, Values):
            bandwidths, lams, first = VALUE_BANDWIDTHS, VALUE_LAMBDAS, VALUE_FIRST[sample.kernel]
        if sample.kernel != "laplace":
            bandwidths, lams = OTHER_BANDWIDTHS, OTHER_LAMBDAS
        bandwidths = bandwidths if h is None else (h,)
        lams = tuple(unit * candidate for candidate in lams) if lam is None else (lam,)
        bandwidth, penalty = near or (first[0], unit * first[1])
        return cls(bandwidths, lams, _nearest(bandwidths, bandwidth), _nearest(lams, penalty))

    @property
    def n_candidates(self) -> int:
        return len(self.bandwidths) * len(self.lams)

    @property
    def values(self) -> Pair:
        return self.bandwidths[self.i], self.lams[self.j]

    def moved(self, i: int, j: int) -> Choice | None:
        """Return a neighbour; None if there is none."""
        i, j = self.i + i, self.j + j
        inside = 0 <= i < len(self.bandwidths) and 0 <= j < len(self.lams)
        return Choice(self.bandwidths, self.lams, i, j) if inside else None


def _nearest(candidates: tuple[float, ...], value: float) -> int:
    """Return the place of the candidate whose ratio to a value is nearest to 1."""
    return min(range(len(candidates)), key=lambda i: abs(math.log(candidates[i] / value)))


def descend(
    system: System, start: Choice, most: int, steps: tuple[tuple[int, int], ...] = STEPS
) -> tuple[Choice, KernelReadOut]:
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


def search(sample: Sample, draw: Draw, choice: Choice, sizes: tuple[int, ...]) -> Choice:
    """Let parts of the rows, one after another, choose a bandwidth and a penalty."""
    for n in sizes:
        if choice.n_candidates > 1 and n < sample.raw.shape[0]:
            choice, _ = descend(System(sample.some(draw.proportional(n))), choice, choice.n_candidates)
    return choice


def regular(system: System, bandwidth: float, found: KernelReadOut) -> KernelReadOut:
    """Raise the penalty of a system that is numerically singular, until it is not."""
    for _ in range(MOST_RAISES):
        if found.regular:
            return found
        found = system.readout(bandwidth, 4 * found.lam)
    raise ValueError("The kernel matrix stays singular with any penalty: the encoded columns are not finite.")


UNEVEN = 1.25  # times the rows that a part is to have; before it has more, there is another part


def whole_groups(groups: numpy.ndarray, n_parts: int) -> numpy.ndarray:
    """Return the part of each row, -1 for none, so that rows of one group are in one part.

    Parts have about as many rows as n_parts even ones. There may be a few more, or less if groups are few.
    """
    of, most = numpy.unique(groups, return_inverse=True)[1], -(-len(groups) // n_parts)
    sizes = numpy.bincount(of)
    order = numpy.argsort(of, kind="stable")
    within = numpy.arange(len(of)) - (numpy.cumsum(sizes) - sizes)[of[order]]
    share = numpy.minimum(1.0, most / sizes)[of[order]]
    used = numpy.zeros(len(of), dtype=bool)
    used[order] = numpy.floor((within + 1) * share + 1e-9) > numpy.floor(within * share + 1e-9)
    sizes = numpy.bincount(of[used], minlength=len(sizes))
    for n in range(min(n_parts, len(sizes)), len(sizes) + 1):
        part = deal_evenly(sizes, n)
        if numpy.bincount(part, sizes).max() <= UNEVEN * most:
            break
    return numpy.where(used, part[of], -1)


def deal_evenly(sizes: numpy.ndarray, n: int) -> numpy.ndarray:
    """Return the heap, below n, of each thing, so that heaps are about equal: large things come first."""
    heaps = [(0.0, heap) for heap in range(n)]
    dealt = numpy.zeros(len(sizes), dtype=int)
    for i in numpy.argsort(-sizes, kind="stable"):
        load, dealt[i] = heapq.heappop(heaps)
        heapq.heappush(heaps, (load + float(sizes[i]), int(dealt[i])))
    return dealt


class Draw:
    """Draws of rows that depend on the seed and on what the rows hold, but not on their order."""

    def __init__(self, rows: Rows, seed: int) -> None:
        counts = rows.weights.counts_of(rows.X.shape[0], rows.targets.like)
        self._counts = to_host(counts).astype(numpy.float64)
        self._codes, self._hashes, self._groups = codes_of(rows.targets), rows.hashes, rows.groups
        self.unit = rows.weights.unit
        # rows of like targets stand together, so that steps of equal length meet all kinds of rows
        self._by_class = numpy.lexsort((self._hashes, ranking(rows.targets, rows.weights.counts)))
        self._start = float(numpy.random.Generator(numpy.random.PCG64(seed)).random())

    @property
    def order(self) -> numpy.ndarray:
        """All rows: those of like targets together, else by what they hold."""
        return self._by_class

    def proportional(self, n: int) -> numpy.ndarray:
        """Draw n rows, each class by its share, and return the counts of all rows, 0 for the others."""
        zeros = numpy.zeros_like(self._codes)
        times = draw_rows(n, zeros, self._counts, self._by_class, self._start)
        return times * self.unit

    def parts(self, n_parts: int, most: int) -> list[numpy.ndarray]:
        """Deal the rows, or if there are too many `most` of them, into parts. Return the counts of each.

        A part holds whole groups; of a group of more rows than a part is to have, some are dealt.
        """
        # Copies with other targets may come to other parts, which then saw them: kept together, a row that
        # comes often would make one part far larger than the memory allows.
        counts = self._counts if len(self._counts) <= most else self.proportional(most)
        dealt = self._by_class[counts[self._by_class] > 0]
        n_parts = min(n_parts, len(dealt))  # few rows may have all the weight
        part = numpy.arange(len(dealt)) % n_parts
        if self._groups is not None:
            part = whole_groups(self._groups[dealt], n_parts)
        parts = []
        for i in range(int(part.max()) + 1):
            own = dealt[part == i]
            parts.append(numpy.zeros_like(counts))
            parts[-1][own] = counts[own]
        return parts

    def landmarks(self, n: int, like: Array) -> Array:
        """Draw n different rows, or a few less, each class as often as the others; return their indices."""
        order = numpy.argsort(self._hashes, kind="stable")
        times = draw_rows(n, self._codes, self._counts, order, self._start)
        drawn = order[times[order] > 0]
        _, first = numpy.unique(self._hashes[drawn], return_index=True)
        return from_numpy(drawn[first], like, array_namespace(like).int64)
