"""A kernel ridge over many rows in one system, solved by iteration."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy

from .._inputs.rows import to_host
from .._inputs.targets import Classes
from .._ridge.iterated import Gram, Large, Preconditioner, conjugate_gradients, gram, pivoted_cholesky
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
from .systems import GAIN, Choice, Draw, Pair, Sample, deal_evenly

LEAST_ITERATED = 5_000  # rows; of fewer a factor is there as soon
# Rows, on a CPU and on a GPU, where nothing was measured yet. Time and memory grow with their square.
MOST_ITERATED = {False: 20_000, True: 0}
HELD_SHARE = 0.4  # of the free memory, which K may take: a portfolio may fit two kernels side by side
MOST_RANK = 1_000  # of the partial factor, which has one column for so many rows:
ROWS_OF_RANK = 20
# Of the residual, relative to the targets, which are met up to so much: of values, and of classes.
TOLERANCE = {False: 1e-3, True: 1e-2}
MOST_STEPS = 60  # of one system; more would take longer than parts
MOST_FAILED = 2  # penalties at which these are not enough, before parts are taken
MOST_OUTPUTS = 40  # of more the products with K cost more than the factors of parts
# Of all rows a group that is left out has a fifth at most, and a twentieth where columns stay few.
LARGEST_GROUP, SMALL_GROUP, FEW_COLUMNS = 5, 20, 16


def n_iterated(sample: Sample, of_parts: int) -> int:
    """Return how many rows one iterated system may have; 0 where rows are better in parts.

    That is where parts would take more rows, or where memory does not hold K: to compute K again takes as
    long as ten products with a column.
    """
    X, k = sample.raw, sample.targets.width
    size = array_namespace(X).finfo(sample.dtype).bits // 8
    n = min(X.shape[0], MOST_ITERATED[on_accelerator(X)])
    fits = n * n * size <= HELD_SHARE * free_bytes(X)
    return n if fits and n >= max(LEAST_ITERATED, min(X.shape[0], of_parts)) and k <= MOST_OUTPUTS else 0


def fit_iterated(
    sample: Sample, draw: Draw, n: int, choice: Choice, seed: int
) -> tuple[Choice, Array, KernelReadOut] | None:
    """Solve one system of n rows, or of all if there are no more; None if the steps come to no end.

    Judged rows are dealt into groups, with their copies or the rest of their own groups, and each group is
    answered by a system without it, whose steps begin at the solution for all rows. Judged rows that are not
    in the system are answered by it, or by the one that lacks the rest of their own group.
    """
    counts, order = draw.parts(1, n)[0], draw.order
    place = numpy.full(len(counts), -1)
    place[counts > 0] = numpy.arange((counts > 0).sum())
    order = place[order][place[order] >= 0]
    many = Many.of(sample.some(counts), choice.values, order, seed)
    judged = numpy.arange(len(counts)) if sample.judged is None else to_host(sample.judged.rows)
    inside, outside = (numpy.flatnonzero(there) for there in (place[judged] >= 0, place[judged] < 0))
    asked, owners = place[judged[inside]], many.part.groups
    if owners is not None:
        asked = numpy.flatnonzero(numpy.isin(owners, sample.groups[judged]))  # type: ignore[index]
    groups = deal(asked, many.part.twins if owners is None else owners, order, many.B.shape[1])
    if groups and many.B.shape[1] <= FEW_COLUMNS:
        choice = _penalty(many, groups[0], choice)
    found = many.solved(choice.values[1], groups)
    if found is None:
        return None
    alpha, left_out, of_others = found
    X, xp = many.X, array_namespace(many.X)
    alike = many.compared(X)
    scores, answered = [take_rows(left_out, from_numpy(place[judged[inside]], X, xp.int64))], [inside]
    lacking = numpy.full(len(outside), -1)
    for g, rows in enumerate(groups if owners is not None else ()):
        lacking[numpy.isin(sample.groups[judged[outside]], owners[rows])] = g  # type: ignore[index]
    for g in numpy.unique(lacking).tolist():
        some, by = outside[lacking == g], alpha if g < 0 else of_others[g]
        new = sample.encoded(from_numpy(judged[some], X, xp.int64))
        scores += [alike(new[rows, :]) @ by for rows in row_blocks(new, len(some), 3 * X.shape[0])]
        answered.append(some)
    back = numpy.argsort(numpy.concatenate(answered))
    loo = take_rows(xp.concat(scores), from_numpy(back, X, xp.int64))
    return choice, X, KernelReadOut(alpha, loo, choice.values[1], True)


@dataclass(frozen=True, slots=True, eq=False)
class Many:
    """The rows of one large system, with all that does not depend on the penalty."""

    part: Sample
    X: Array  # (m, d), encoded
    compared: Callable[[Array], Callable[[Array], Array]]  # encoded rows z -> the function x -> K(x, z)
    K: Gram
    root: Array  # (m,) in float64, the roots of the weights
    B: Array  # (m, k) in float64, the targets times them
    F: Array  # (m, s), the partial factor
    left: Array  # (m,), what it leaves of the diagonal
    tolerance: float

    @classmethod
    def of(cls, part: Sample, chosen: Pair, order: numpy.ndarray, seed: int) -> Many:
        """Compute K of a bandwidth, and a partial factor that suits a penalty and its neighbours.

        The targets of classes add up to 0, and so do the coefficients: the last class is left out.
        """
        X, kernel, classes = part.encoded(), KERNELS[part.kernel], isinstance(part.targets, Classes)
        xp, m, problem = array_namespace(X), X.shape[0], part.regression(X)
        width, contrasts = width_of(part.kernel, chosen[0], part.inputs.n_compared), part.inputs.contrasts(X)

        def compared(Z: Array) -> Callable[[Array], Array]:
            measure = kernel.measure(Z, contrasts)
            return lambda rows: kernel.alike(measure(rows), width)

        hold = not on_accelerator(X) or m * m * itemsize(X) <= HELD_SHARE * free_bytes(X)
        K = gram(X, compared, hold)
        root = xp.sqrt(xp.astype(problem.own_weights, xp.float64))
        B = root[:, None] * xp.astype(problem.left_out.Y, xp.float64)
        B = B[:, : B.shape[1] - 1] if classes else B
        rank = min(MOST_RANK, -(-m // ROWS_OF_RANK))
        generator = numpy.random.Generator(numpy.random.PCG64(seed))
        F, left = pivoted_cholesky(K, root, rank, generator, order, chosen[1] / part.unit / 4)
        return cls(part, X, compared, K, root, B, F, left, TOLERANCE[classes])

    def system(self, lam: float) -> Large:
        """Return the system of a penalty."""
        of_unit = lam / self.part.unit
        return Large(self.K, self.root, of_unit, Preconditioner.of(self.F * 1.0, self.left, of_unit))

    def solved(self, lam: float, groups: list[numpy.ndarray]) -> tuple[Array, Array, list[Array]] | None:
        """Return alpha (m, k), the scores (m, k) of each group's rows by the system that lacks them, and that
        system's alpha for each group.
        """
        system = self.system(lam)
        found = conjugate_gradients(system, self.B, self.tolerance, MOST_STEPS)
        if not found.reached(self.tolerance):
            return None
        answers = [found.U * self.root[:, None]]
        if groups:
            systems = system.without(groups)
            start = systems.repeated(found.U)
            others = conjugate_gradients(systems, systems.repeated(self.B), self.tolerance, MOST_STEPS, start)
            if not others.reached(self.tolerance):
                return None
            answers.append(systems.left_out(others.U))
            U, k = others.U * self.root[:, None], self.B.shape[1]
            if self.part.groups is not None:
                answers += [U[:, g * k : (g + 1) * k] for g in range(len(groups))]
        if isinstance(self.part.targets, Classes):
            answers = [_with_last(scores) for scores in answers]
        alpha, *left_out = (array_namespace(self.X).astype(scores, self.X.dtype) for scores in answers)
        return alpha, left_out[0] if left_out else alpha, left_out[1:]


def _penalty(many: Many, group: numpy.ndarray, choice: Choice) -> Choice:
    """Go to larger penalties, or to smaller ones, while a group of judged rows is foretold better.

    The loss is the squared error. What suits some thousand rows is too small for many where the kernel is
    too smooth for them. A penalty at which the steps come to no end has an infinite loss.
    """
    xp = array_namespace(many.B)
    start: Array | None = None

    def loss(lam: float) -> float:
        nonlocal start
        systems = many.system(lam).without([group])
        # half the steps from a near solution: without it, the last system has to do with all of them
        most = MOST_STEPS if start is None else MOST_STEPS // 2
        found = conjugate_gradients(systems, systems.repeated(many.B), many.tolerance, most, start)
        if not found.reached(many.tolerance):
            return math.inf
        start = found.U
        rows = from_numpy(group, many.B, xp.int64)
        error = take_rows(many.B - many.root[:, None] * systems.left_out(found.U), rows)
        return float(xp.sum(error * error))

    best = loss(choice.values[1]) if len(choice.lams) > 1 else 0.0
    failed = int(best == math.inf)
    for step in (1, -1):
        before = choice
        while best > 0 and (there := choice.moved(0, step)) is not None:
            new = loss(there.values[1])
            failed += new == math.inf
            if (not new < best * (1 - GAIN) and not best == new == math.inf) or failed > MOST_FAILED:
                break
            choice, best = there, new
        if failed or choice is not before:
            break
    return choice


def _with_last(scores: Array) -> Array:
    """Return scores (m, k - 1) beside those of the last class, with which they add up to 0."""
    xp = array_namespace(scores)
    return xp.concat([scores, -xp.sum(scores, axis=1)[:, None]], axis=1)


def deal(
    judged: numpy.ndarray, together: numpy.ndarray | None, order: numpy.ndarray, k: int
) -> list[numpy.ndarray]:
    """Deal judged rows into groups that are left out together, rows of like targets evenly.

    Rows of the same number in `together`, judged or not, are in one group. But for these, a group has a fifth
    of all rows at most, and a twentieth if k columns of targets for each group leave products with K cheap.
    """
    m = len(order)
    n = max(-(-len(judged) * LARGEST_GROUP // m), min(-(-len(judged) * SMALL_GROUP // m), FEW_COLUMNS // k))
    of = numpy.arange(m) if together is None else numpy.unique(together, return_inverse=True)[1]
    chosen = numpy.zeros(m, dtype=bool)
    chosen[judged] = True
    dealt = of[order[chosen[order]]]
    _, first = numpy.unique(dealt, return_index=True)
    dealt = dealt[numpy.sort(first)]
    group = numpy.full(m, -1)
    group[dealt] = deal_evenly(numpy.bincount(of)[dealt], max(1, n))
    group = group[of]
    return [numpy.flatnonzero(group == g) for g in range(min(max(1, n), len(dealt)))]
