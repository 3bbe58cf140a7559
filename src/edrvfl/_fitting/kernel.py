"""The kernel voter: a kernel ridge on encoded rows, with what leave-one-out chooses for it.

With the Laplace kernel it is the limit of an infinitely wide random layer. It is exact up to some thousand
rows. More rows are dealt into parts, each part has an exact ridge of its own, and the score is their mean: at
the same cost that is far better than landmarks (Nystroem), because a rough kernel forgets the rows that are
no landmarks.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy

from .._inputs.chosen import Judged, judge_some
from .._inputs.inputs import Inputs
from .._inputs.rows import Rows, to_host
from .._inputs.targets import Values
from .._loo.follow import Follower, Stage, Votes
from .._models.kernel import KernelModel, KernelVoter
from .._ridge.kernel import KernelReadOut
from .._seam.arrays import (
    Array,
    array_namespace,
    converted,
    device,
    free_bytes,
    from_numpy,
    ignore_overflow,
    on_accelerator,
    row_blocks,
    take_rows,
)
from .._seam.threads import suitable_threads
from .data import Data
from .folds import Fold, Learnt, together
from .gradient import fit_ridge
from .iterated import fit_iterated, n_iterated
from .settings import KernelFit
from .systems import (
    LAMBDAS,
    NEAR_STEPS,
    PENALTY_STEPS,
    STEPS,
    Choice,
    Draw,
    KernelSettings,
    Pair,
    Sample,
    System,
    descend,
    mean_targets,
    regular,
    search,
)

# On a CPU and on a GPU (False and True): the rows of an exact system, which takes about a second; the rows
# that have a coefficient; and what trying candidates on all rows may cost, three systems of so many rows.
PART_ROWS = {False: 5_000, True: 20_000}
LEAST_PART = 1_000  # rows of a part, however little memory is free
MOST_ROWS = {False: 20_000, True: 100_000}
# Values gain more by further rows than classes do.
VALUE_PART_ROWS = {False: 8_000, True: 20_000}
VALUE_MOST_ROWS = {False: 40_000, True: 100_000}
WORK = {False: 3 * 1_500**3, True: 3 * 20_000**3}
SEARCH_ROWS = (1_000, 1_500)  # rows that choose for all rows; the second where all rows can try little
FEW = 3


@dataclass(frozen=True, slots=True, eq=False)
class KernelSolved:
    """A fitted kernel voter, and how its system was solved."""

    voter: KernelVoter
    loo: Array  # (judged rows, k), the leave-one-out scores
    solver: str  # of `KernelMemory`
    lams: tuple[float, ...]  # the penalty of each part
    parts: list[numpy.ndarray] | None  # the counts of all rows in each part; None: all rows are in one


def fit_kernel(
    rows: Rows,
    inputs: Inputs,
    settings: KernelSettings,
    seed: int,
    judged: Judged | None = None,
    near: Pair | None = None,
) -> KernelSolved:
    """Fit a kernel voter, and return it with the leave-one-out scores (judged rows, k).

    The search begins near a bandwidth and a penalty that suited some of the rows, if there are such. Of many
    rows some choose bandwidth and penalty first; then all rows, or those of the first part, try
    the neighbours, as far as the work allows. With landmarks all rows try other penalties only: another
    bandwidth would cost as much as everything before.
    """
    draw, sample = Draw(rows, seed), Sample.of(rows, inputs, settings.kernel, judged)
    s, n_parts, most = _plan(settings, sample, rows.worth)
    n_rows = n_iterated(sample, _most_rows(sample)[1]) if n_parts > 1 else 0
    cheap = s is None and most >= FEW and not n_rows
    choice = Choice.of(settings, sample, near)
    if s is not None and rows.X.shape[0] <= SEARCH_ROWS[0]:  # landmarks do not look for a bandwidth
        choice, _ = descend(System(sample), choice, choice.n_candidates)
    some = SEARCH_ROWS[:1] if cheap else SEARCH_ROWS
    choice = search(sample, draw, choice, some if near is None else some[1:])
    one = fit_iterated(sample, draw, n_rows, choice, seed) if n_rows else None
    lams: tuple[float, ...] = ()
    parts: list[numpy.ndarray] | None = None
    if one is not None:
        (choice, landmarks, found), solver, parts = one, "iterated", draw.parts(1, n_rows)
    elif n_parts > 1:
        solver, parts = "parts", draw.parts(n_parts, _most_rows(sample)[1])
        choice, landmarks, found, lams = _fit_parts(sample, parts, choice, most)
    else:
        solver = "exact" if s is None else "landmarks"
        landmarks = None if s is None else sample.encoded(draw.landmarks(s, rows.X))
        system = System(sample, landmarks)
        steps = STEPS if near is None else NEAR_STEPS
        choice, found = descend(system, choice, most, steps if s is None else PENALTY_STEPS)
        landmarks, found = system.landmarks, regular(system, choice.values[0], found)
    prior, xp = sample.prior, array_namespace(sample.prior)
    # units may be too large or small for the precision of the coefficients, so these stay without
    in_units = rows.targets.in_units(xp.stack([xp.ones_like(prior), prior]))
    scale, offset = in_units[0, :], in_units[1, :]
    voter = KernelVoter(
        sample.inputs, landmarks, found.alpha, scale, offset, choice.values[0], found.lam, settings.kernel
    )
    loo = xp.astype(found.loo, prior.dtype) + prior
    return KernelSolved(voter, loo, solver, lams or (found.lam,), parts)


def _fit_parts(
    sample: Sample, parts: list[numpy.ndarray], choice: Choice, most: int
) -> tuple[Choice, Array, KernelReadOut, tuple[float, ...]]:
    """Fit an exact ridge to each part of the rows; the mean of their scores is the score.

    A part is given as the counts of all rows, 0 for those of other parts. A row's leave-one-out score is the
    mean of that in its own part and of the plain scores of the other parts, which never saw the row. A row in
    no part is not answered by the part that has others of its group.
    """
    xp, X = array_namespace(sample.raw), sample.raw
    judged = numpy.arange(X.shape[0]) if sample.judged is None else to_host(sample.judged.rows)
    # judged rows by part, so that those of a part are a slice; rows without a part come last
    of_rows = _part_of_rows(parts)[judged]
    order, n_inside = numpy.argsort(of_rows, kind="stable"), int((of_rows < len(parts)).sum())
    without = judged[order[n_inside:]]
    answers = numpy.full(len(judged), float(len(parts)))  # how many parts answer a row
    seen = sample.encoded(from_numpy(judged[order], X, xp.int64))
    loo = xp.zeros((len(judged), sample.targets.width), dtype=sample.dtype, device=device(X))
    landmarks, alphas, start, lams = [], [], 0, []
    for i, counts in enumerate(parts):
        system = System(sample.some(counts))
        if i == 0:
            choice, found = descend(system, choice, most)
        else:
            found = system.readout(*choice.values)
        found = regular(system, choice.values[0], found)
        inside = numpy.flatnonzero(numpy.isin(numpy.flatnonzero(counts), judged))
        own = slice(start, start + len(inside))
        width = system.width(choice.values[0])
        for rows in (slice(0, own.start), slice(own.stop, n_inside)):
            _add_scores(seen[rows, :], system, found.alpha, width, loo[rows, :])
        fair = numpy.ones(len(without))
        if sample.groups is not None:
            fair[numpy.isin(sample.groups[without], sample.groups[counts > 0])] = 0.0
        answers[n_inside:] -= 1.0 - fair
        others = xp.zeros_like(loo[n_inside:, :])
        _add_scores(seen[n_inside:, :], system, found.alpha, width, others)
        loo[n_inside:, :] += others * from_numpy(fair, loo)[:, None]
        loo[own, :] += take_rows(found.loo, from_numpy(inside, X, xp.int64))
        landmarks.append(system.landmarks)
        alphas.append(found.alpha / len(parts))
        lams.append(found.lam)
        start = own.stop
    loo = loo / from_numpy(numpy.maximum(answers, 1.0), loo)[:, None]
    loo = take_rows(loo, from_numpy(numpy.argsort(order), X, xp.int64))
    together = KernelReadOut(xp.concat(alphas), loo, max(lams), True)
    return choice, xp.concat(landmarks), together, tuple(lams)


def _part_of_rows(parts: list[numpy.ndarray]) -> numpy.ndarray:
    """Return the part of each row; rows in no part have a number beyond the last."""
    part = numpy.full(len(parts[0]), len(parts))
    for i, counts in enumerate(parts):
        part[counts > 0] = i
    return part


def _add_scores(X: Array, system: System, alpha: Array, width: float, out: Array) -> None:
    """Add K(x, z_s) alpha_s of encoded rows X to `out` (rows, k), block by block."""
    for rows in row_blocks(X, X.shape[0], 3 * alpha.shape[0] + X.shape[1]):
        out[rows, :] += system.kernel.alike(system.measure(X[rows, :]), width) @ alpha


def _most_rows(sample: Sample) -> tuple[int, int]:
    """Return how many rows a part may have, and how many all parts together."""
    gpu, values = on_accelerator(sample.raw), isinstance(sample.targets, Values)
    of_part, of_all = (VALUE_PART_ROWS, VALUE_MOST_ROWS) if values else (PART_ROWS, MOST_ROWS)
    return of_part[gpu], of_all[gpu]


def _plan(settings: KernelSettings, sample: Sample, worth: float) -> tuple[int | None, int, int]:
    """Return the number of landmarks, if there are any, of parts, and of candidates that all rows may try.

    Rows whose weights are worth more rows get landmarks as these would.
    """
    X, s = sample.raw, settings.n_landmarks
    m, gpu = X.shape[0], on_accelerator(X)
    if isinstance(s, int) and s < max(m, worth):
        return s, 1, len(LAMBDAS)
    n_parts = 1
    if s == "auto":
        of_part, most = _most_rows(sample)
        m = min(m, most)
        size = array_namespace(X).finfo(sample.dtype).bits // 8
        # distances, the kernel, its factor and the factor's inverse
        largest = min(of_part, int(math.sqrt(free_bytes(X) / (5 * size))))
        n_parts = math.ceil(m / max(LEAST_PART, largest))
    return None, n_parts, max(1, WORK[gpu] // math.ceil(m / n_parts) ** 3)


@dataclass(frozen=True, slots=True, eq=False)
class KernelFitted:
    """A fitted kernel model, with what leave-one-out says about it."""

    model: KernelModel
    solved: KernelSolved
    stage: Stage
    fell_back: bool  # whether the given penalty was too small for the precision


def judge_fold(
    fold: Fold, inputs: Inputs, chosen: Pair, kernel: str = "laplace", landmarks: Array | None = None
) -> Array:
    """Return leave-one-out scores (rows inside, k) of a fold by a ridge over all rows.

    The rows outside chose bandwidth and penalty, and the mean of their targets is the prior.
    """
    prior = mean_targets(fold.outside)
    system = System(replace(Sample.of(fold.riding, inputs, kernel, fold.judged), prior=prior), landmarks)
    found = regular(system, chosen[0], system.readout(*chosen))
    return array_namespace(prior).astype(found.loo, prior.dtype) + prior


def _judge_folds(data: Data, learnt: Learnt, settings: KernelSettings, seed: int) -> Array:
    """Return the leave-one-out scores (judged rows, k) by ridges that the own fold of a row did not shape."""
    scores = []
    for i, (fold, inputs) in enumerate(zip(data.folds, learnt.of_folds, strict=True)):
        if learnt.ridges and settings == KernelSettings(kernel=settings.kernel):
            scores.append(judge_fold(fold, inputs, learnt.ridges[i], settings.kernel))
            continue
        if learnt.near and settings == KernelSettings(kernel=settings.kernel):
            ridge = fit_ridge(inputs, fold.outside, seed, settings.kernel, learnt.near)
            scores.append(judge_fold(fold, inputs, ridge.choice.values, settings.kernel))
            continue
        voter = fit_kernel(fold.outside, inputs, settings, seed).voter
        landmarks = voter.landmarks if isinstance(settings.n_landmarks, int) else None
        chosen = voter.bandwidth, voter.lam
        scores.append(judge_fold(fold, inputs, chosen, settings.kernel, landmarks))
    return together(data.folds, scores)


def fit_kernel_model(data: Data, settings: KernelFit, learnt: Learnt, seed: int) -> KernelFitted:
    """Fit a kernel voter, and calibrate its scores."""
    rows, inputs = data.kernel_rows, learnt.inputs
    m = rows.X.shape[0]
    with ignore_overflow(), suitable_threads(rows.X, m + inputs.width, m):
        # rows in memory are judged once; among all rows of parts the same ones have other numbers
        judged = data.judged if rows is data.rows else judge_some(rows.targets, rows.groups)
        near = None if isinstance(settings.kernel.n_landmarks, int) else learnt.near  # of exact systems
        solved = fit_kernel(rows, inputs, settings.kernel, seed, judged, near)
        voter, loo = solved.voter, solved.loo
        if data.folds:
            loo = _judge_folds(data, learnt, settings.kernel, seed)
        votes = Votes("value" if rows.classes is None else "softmax", calibration=settings.calibration)
        stage = Follower(data.jury, votes).add(loo)
    moved = converted(stage.calibration, lambda array: from_numpy(array, data.rows.X))
    given = settings.kernel.lam
    raised = given is not None and voter.lam != given
    return KernelFitted(KernelModel(data.columns, voter, rows.classes, moved), solved, stage, raised)
