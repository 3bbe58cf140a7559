"""Rows come to a kernel voter or go: the systems that they belong to are solved again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy

from .._fitting.iterated import Many
from .._fitting.systems import Draw, Sample, System, regular
from .._inputs.rows import Rows, merge_copies
from .._inputs.targets import RowWeights
from .._models.kernel import KernelModel, KernelVoter
from .._models.memory import KernelMemory, Memory
from .._seam.arrays import Array, array_namespace, from_numpy
from .batch import Batch

Solution = tuple[Array, Array, float]  # landmarks, their coefficients, and the penalty


def change_kernel(
    model: KernelModel, kept: KernelMemory, batch: Batch, memory: Memory
) -> tuple[KernelModel, KernelMemory]:
    """Solve the parts again in which rows came or went, with the bandwidth and the penalty of the fit.

    New rows come to the smallest part. A system of few thousand rows is solved in seconds, so no factor of it
    is kept, which would take as much memory as the kernel.
    """
    if batch.goes:
        parts, counts = kept.part[batch.stays], kept.counts[batch.stays]
        touched = set(kept.part[batch.places].tolist()) - {-1}
    else:
        smallest = int(numpy.argmin(kept.sizes))
        parts = numpy.append(kept.part, numpy.full(len(batch.places), smallest))
        counts = numpy.append(kept.counts, memory.rows.counts[batch.places])
        touched = {smallest}
    voter, xp = model.voter, array_namespace(model.voter.alpha)
    ends = numpy.cumsum(kept.sizes).tolist()
    n, lams, sizes = len(kept.sizes), list(kept.lams), list(kept.sizes)
    landmarks, alphas = [], []
    for i, (size, end) in enumerate(zip(kept.sizes, ends, strict=True)):
        own = slice(end - size, end)
        found = voter.landmarks[own, :], voter.alpha[own, :], lams[i]
        if i in touched:
            which = numpy.flatnonzero(parts == i)
            solve = SOLVERS[kept.solver]
            points, alpha, lam = solve(voter, _rows(model, memory, which, counts[which]), lams[i])
            found = points, alpha / n if n > 1 else alpha, lam
        landmarks.append(found[0])
        alphas.append(found[1])
        lams[i], sizes[i] = float(found[2]), int(found[0].shape[0])
    changed = replace(voter, landmarks=xp.concat(landmarks), alpha=xp.concat(alphas), lam=max(lams))
    memories = replace(kept, lams=tuple(lams), sizes=tuple(sizes), part=parts, counts=counts)
    return replace(model, voter=changed), memories


def _rows(model: KernelModel, memory: Memory, which: numpy.ndarray, counts: numpy.ndarray) -> Rows:
    """Return remembered rows as a fit sees them, equal ones as one."""
    known, like = memory.rows, model.like
    assert known.X is not None
    assert known.y is not None
    X, y = from_numpy(known.X[which], like), known.y[which]
    costs = None if memory.costs is None else from_numpy(memory.costs[y], like)
    plain = bool((counts == 1).all())
    weights = RowWeights(None if plain else from_numpy(counts, like), costs)
    return merge_copies(Rows(X, model.classes, memory.targets(y, like), weights))


def _sample(voter: KernelVoter, rows: Rows) -> Sample:
    """Return the rows of a system, in the precision of the fit and without its prior."""
    sample = Sample.of(rows, voter.inputs, voter.kernel)
    prior = voter.prior if rows.classes is not None else 0 * voter.prior
    return replace(sample, dtype=voter.alpha.dtype, prior=prior)


def _solve_exactly(voter: KernelVoter, rows: Rows, lam: float) -> Solution:
    system = System(_sample(voter, rows))
    found = regular(system, voter.bandwidth, system.readout(voter.bandwidth, lam))
    return system.landmarks, found.alpha, found.lam


def _solve_over_landmarks(voter: KernelVoter, rows: Rows, lam: float) -> Solution:
    system = System(_sample(voter, rows), voter.landmarks)
    return voter.landmarks, regular(system, voter.bandwidth, system.readout(voter.bandwidth, lam)).alpha, lam


def _iterate(voter: KernelVoter, rows: Rows, lam: float) -> Solution:
    many = Many.of(_sample(voter, rows), (voter.bandwidth, lam), Draw(rows, 0).order, 0)
    found = many.solved(lam, [])
    if found is None:
        raise ValueError("The iteration that solves the kernel system comes to no end any more. Fit again.")
    return many.X, found[0], lam


SOLVERS: Mapping[str, Callable[[KernelVoter, Rows, float], Solution]] = {
    "exact": _solve_exactly,
    "parts": _solve_exactly,
    "iterated": _iterate,
    "landmarks": _solve_over_landmarks,
}
