"""A kernel ridge over many rows in one system, solved by iteration."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy

from .._inputs.rows import to_host
from .._inputs.targets import Classes
from .._ridge.iterated import Large, Preconditioner, conjugate_gradients, gram, pivoted_cholesky
from .._ridge.kernel import KernelReadOut
from .._ridge.kernels import KERNELS, width_of
from .._seam.arrays import (
    Array,
    array_namespace,
    free_bytes,
    from_numpy,
    itemsize,
    on_accelerator,
    row_blocks,
    take_rows,
)
from .systems import Draw, Sample

LEAST_ITERATED = 5_000  # rows; of fewer a factor is there as soon
MOST_ITERATED = {False: 50_000, True: 100_000}  # rows, on a CPU and on a GPU
HELD_SHARE = 0.5  # of the free memory, which K may take
MOST_RANK = 1_000  # of the partial factor, which has one column for so many rows:
ROWS_OF_RANK = 20
TOLERANCE = 1e-2  # of the residual, relative to the targets, which are met up to so much
MOST_STEPS = 100
# Of all rows a group that is left out has a fifth at most, and a twentieth where columns stay few.
LARGEST_GROUP, SMALL_GROUP, FEW_COLUMNS = 5, 20, 16


def n_iterated(sample: Sample) -> int:
    """Return how many rows one iterated system may have; 0 if so many rows are better in parts.

    On a CPU K has to fit into memory: to compute K again takes as long as thirty products with a column.
    """
    X = sample.raw
    m, gpu = X.shape[0], on_accelerator(X)
    size = array_namespace(X).finfo(sample.dtype).bits // 8
    fits = math.isqrt(int(HELD_SHARE * free_bytes(X) / size))
    n = min(m, MOST_ITERATED[gpu]) if gpu else min(m, MOST_ITERATED[gpu], fits)
    return n if n >= LEAST_ITERATED else 0


def fit_iterated(
    sample: Sample, draw: Draw, n: int, chosen: tuple[float, float], seed: int
) -> tuple[Array, KernelReadOut] | None:
    """Solve one system of n rows, or of all if there are no more; None if the steps come to no end.

    Judged rows are dealt into groups, with their copies, and each group is answered by a system without it,
    whose steps begin at the solution for all rows. Judged rows that are not in the system are answered by it.
    """
    counts, order = draw.parts(1, n)[0], draw.order
    place = numpy.full(len(counts), -1)
    place[counts > 0] = numpy.arange((counts > 0).sum())
    order, part = place[order][place[order] >= 0], sample.some(counts)
    X, (bandwidth, lam) = part.encoded(), chosen
    kernel, width = KERNELS[sample.kernel], width_of(sample.kernel, bandwidth, X.shape[1])
    measure, xp = kernel.measure(X), array_namespace(X)

    def alike(Z: Array) -> Array:
        return kernel.alike(measure(Z), width)

    system, B = _system(part, X, alike, lam / sample.unit, (seed, order))
    solved = conjugate_gradients(system, B, TOLERANCE, MOST_STEPS)
    if not solved.reached(TOLERANCE):
        return None
    judged = numpy.arange(len(counts)) if sample.judged is None else to_host(sample.judged.rows)
    inside, outside = (numpy.flatnonzero(there) for there in (place[judged] >= 0, place[judged] < 0))
    groups = deal(place[judged[inside]], part.twins, order, B.shape[1])
    systems = system.without(groups)
    others = conjugate_gradients(
        systems, systems.repeated(B), TOLERANCE, MOST_STEPS, systems.repeated(solved.U)
    )
    if not others.reached(TOLERANCE):
        return None
    alpha = solved.U * system.root[:, None]
    left_out = systems.left_out(others.U)
    if isinstance(sample.targets, Classes):
        alpha, left_out = _with_last(alpha), _with_last(left_out)
    alpha, left_out = (xp.astype(A, X.dtype, copy=False) for A in (alpha, left_out))
    new = sample.encoded(from_numpy(judged[outside], X, xp.int64))
    scores = [take_rows(left_out, from_numpy(place[judged[inside]], X, xp.int64))]
    scores += [alike(new[rows, :]) @ alpha for rows in row_blocks(new, len(outside), 3 * X.shape[0])]
    back = numpy.argsort(numpy.concatenate([inside, outside]))
    loo = take_rows(xp.concat(scores), from_numpy(back, X, xp.int64))
    return X, KernelReadOut(alpha, loo, lam, True)


def _system(
    part: Sample, X: Array, alike: Callable[[Array], Array], lam: float, drawn: tuple[int, numpy.ndarray]
) -> tuple[Large, Array]:
    """Return the system of encoded rows X and its targets (m, k), in float64.

    The targets of classes add up to 0, and so do the coefficients: the last class is left out.
    """
    xp, m, problem = array_namespace(X), X.shape[0], part.regression(X)
    hold = not on_accelerator(X) or m * m * itemsize(X) <= HELD_SHARE * free_bytes(X)
    K = gram(lambda which: alike(take_rows(X, which)), X, hold)
    root = xp.sqrt(xp.astype(problem.own_weights, xp.float64))
    B = root[:, None] * xp.astype(problem.left_out.Y, xp.float64)
    if isinstance(part.targets, Classes):
        B = B[:, : B.shape[1] - 1]
    generator = numpy.random.Generator(numpy.random.PCG64(drawn[0]))
    rank = min(MOST_RANK, -(-m // ROWS_OF_RANK))
    F, left = pivoted_cholesky(K, root, rank, generator, drawn[1])
    return Large(K, root, lam, Preconditioner.of(F, left, lam)), B


def _with_last(scores: Array) -> Array:
    """Return scores (m, k - 1) beside those of the last class, with which they add up to 0."""
    xp = array_namespace(scores)
    return xp.concat([scores, -xp.sum(scores, axis=1)[:, None]], axis=1)


def deal(
    judged: numpy.ndarray, twins: numpy.ndarray | None, order: numpy.ndarray, k: int
) -> list[numpy.ndarray]:
    """Deal judged rows into groups that are left out together, rows of like targets evenly.

    A row's copies, judged or not, are in its group. A group has a fifth of all rows at most, copies aside,
    and a twentieth if k columns of targets for each group leave the products with K cheap.
    """
    m = len(order)
    n = max(-(-len(judged) * LARGEST_GROUP // m), min(-(-len(judged) * SMALL_GROUP // m), FEW_COLUMNS // k))
    of = numpy.arange(m) if twins is None else numpy.unique(twins, return_inverse=True)[1]
    chosen = numpy.zeros(m, dtype=bool)
    chosen[judged] = True
    dealt = of[order[chosen[order]]]
    _, first = numpy.unique(dealt, return_index=True)
    dealt = dealt[numpy.sort(first)]
    group = numpy.full(m, -1)
    group[dealt] = numpy.arange(len(dealt)) % max(1, n)
    group = group[of]
    return [numpy.flatnonzero(group == g) for g in range(min(max(1, n), len(dealt)))]
