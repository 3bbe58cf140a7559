"""Many read-outs of the same features, with penalties that are given or that leave-one-out chooses.

Read-outs share what does not depend on lambda and omega; one decomposition of the Gram serves every lambda.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy

from .._inputs.rows import to_host
from .._seam.arrays import (
    Array,
    array_namespace,
    device,
    from_numpy,
    on_accelerator,
    row_blocks,
    take_entries,
    take_rows,
)
from .._seam.linalg import add_to_diagonal, eigenvalues, factorise, solve
from .equations import (
    Regression,
    dual_system,
    gram_of_rows,
    layer_equations,
    linear_system,
    output_weights,
    reweighted,
)
from .groups import Batches, Inverse, cost_of, leave_groups_out, scores_without_groups
from .leave_one_out import from_leverage, leave_one_out, twin_directions
from .solve import ReadOut, require_finite, ridge


def read_outs(problem: Regression, lam: Any, stacked: bool = False) -> ReadOut:
    """Fit r read-outs on the same features.

    Parameters
    ----------
    problem : Regression with D (..., m, c) and omega (..., r, m) or None
    lam : NumPy array of shape (..., r), one penalty for each read-out; None lets leave-one-out choose the
        penalty of a single read-out
    stacked : whether the systems are solved side by side, which suits a GPU, or one after another, which
        holds one system at a time and shares more on a CPU

    Returns
    -------
    ReadOut
        beta of shape (..., r, c, k)
    """
    D = problem.D
    if lam is None:
        return together([ridge_by_loo(_read_out(problem, 0), on_accelerator(problem.D))])
    if stacked and not numpy.any(lam == 0):
        return ridge(replace(problem, D=D[..., None, :, :]), lam)
    if D.ndim > 2:  # a read-out with lambda 0 needs singular values, so all are solved one by one
        each = [read_outs(replace(_read_out(problem, i), D=D[i, ...]), lam[i]) for i in range(D.shape[0])]
        return together(each)
    if lam.shape[-1] == 1:
        return together([ridge(_read_out(problem, 0), float(lam[0]))])
    alone = [_read_out(problem, i) for i in range(len(lam))]
    if problem.primal:
        shared = layer_equations(replace(problem, omega=None))
        systems = (reweighted(shared, one) for one in alone)
    else:
        K = gram_of_rows(D)
        # A system without weights is K itself, which the solver overwrites; weights make a new one.
        systems = (dual_system(one, 1.0 * K if one.weights is None else K) for one in alone)
    systems_of = zip(alone, lam, systems, strict=True)
    return together([ridge(one, float(l), system) for one, l, system in systems_of])


def _read_out(problem: Regression, i: int) -> Regression:
    return problem if problem.omega is None else replace(problem, omega=problem.omega[i, ...])


def together(each: list[ReadOut]) -> ReadOut:
    """Put read-outs side by side along a new first axis."""

    def join(name: str) -> Array:
        parts = [getattr(one, name) for one in each]
        # One read-out stays a view: scores of many classes are large.
        return parts[0][None, ...] if len(parts) == 1 else array_namespace(parts[0]).stack(parts)

    loo = None if each[0].loo is None else join("loo")
    return ReadOut(join("beta"), join("fell_back"), loo, each[0].lam)


LAMBDAS = 2.0 ** numpy.arange(-12, 13)  # the candidates: the paper's range, Table 2
TIE_DIGITS = 12  # losses that agree to so many digits are equal


def ridge_by_loo(problem: Regression, side_by_side: bool = False) -> ReadOut:
    """Fit the read-out whose lambda has the smallest leave-one-out loss, counted by the rows' weights.

    The loss is that of the judged rows, each for the rows that it stands for: the share of wrong classes, or
    the squared error of values. Of equal candidates the larger wins. A lambda at which the system is
    numerically singular does not compete; if no system is regular the largest lambda is taken. The
    candidates are LAMBDAS times the weight of one row, so that weights which are all small choose as their
    multiples do. Class weights are no part of it: beside them too a row of weight 2 is the row twice. The
    systems of all candidates are solved side by side, as suits a GPU, or one decomposition serves them all.
    """
    base, summed, unit = problem.base, problem.summed, problem.unit
    if base is not None and unit != 1:  # with weights near 1 no product vanishes
        summed = None if summed is None else summed * (1 / unit)
        problem = replace(problem, base=base / unit, of_inputs=None, summed=summed, known=None)
    few = problem.choosers is not None
    some = replace(problem, judged=problem.choosers, want_loo=False) if few else problem
    found = _side_by_side(some) if side_by_side else _by_eigenvalues(some)
    lam = found.lam
    assert lam is not None
    if few and problem.want_loo:
        found = ridge(problem, lam)
    return replace(found, lam=unit * lam)


def _by_eigenvalues(problem: Regression) -> ReadOut:
    """Do what `ridge_by_loo` says by the eigenvalues of the system, which serve every lambda."""
    D, xp = problem.D, array_namespace(problem.D)
    system = linear_system(problem)
    G, B = (xp.astype(A, D.dtype, copy=False) for A in (system.G, system.R))
    require_finite(xp.linalg.diagonal(G))
    values, V = eigenvalues(G)
    values = xp.clip(values, 0.0, None)
    floor = float(xp.finfo(D.dtype).eps * values.shape[0] * xp.max(values))
    lams = LAMBDAS[LAMBDAS + float(xp.min(values)) > floor]
    if not len(lams):
        return _with_largest(problem)
    B = xp.matrix_transpose(V) @ B
    inverse = 1 / (values[:, None] + from_numpy(lams, D))  # (j, lambdas)
    spread = inverse[:, :, None] * B[:, None, :]  # (j, lambdas, k)
    if problem.groups is not None:
        return _by_groups(problem, Inverse(V, inverse, _solutions(V, spread), not problem.primal), lams)
    S, twins = V, problem.twins  # S: of the dual, the rows of the eigenvectors with twins as one row
    if twins is not None and not problem.primal:
        S = twins.put(V, twin_directions(problem, twins) @ V, axis=-2)
    forms, losses = _try_all(problem, S, inverse, spread)
    best = min(range(len(lams)), key=lambda i: (losses[i], -lams[i]))
    beta = output_weights(problem, V @ spread[:, best, :])
    loo = None
    if problem.want_loo:
        left, solution = problem.left_out, beta if problem.primal else spread[:, best, :]
        loo = xp.empty((problem.n_judged, B.shape[-1]), dtype=D.dtype, device=device(D))
        for place in row_blocks(D, problem.n_judged, D.shape[1]):
            rows = problem.judged_rows(place)
            answers = take_rows(D if problem.primal else S, rows) @ solution
            loo[place, :] = _scores(left, rows, answers, forms[place, best])
    return ReadOut(beta, xp.zeros((), dtype=xp.bool, device=device(D)), loo, float(lams[best]))


def _solutions(V: Array, spread: Array) -> Array:
    """Return V spread (rows of V, lambdas, k): the solutions of all lambdas in one product."""
    xp, (j, n_lams, k) = array_namespace(V), spread.shape
    return xp.reshape(V @ xp.reshape(spread, (j, n_lams * k)), (V.shape[0], n_lams, k))


def _by_groups(problem: Regression, found: Inverse, lams: numpy.ndarray) -> ReadOut:
    """Choose the lambda by leaving out one group after another, some groups if all would take too long."""
    D, xp = problem.D, array_namespace(problem.D)
    counts = numpy.zeros(D.shape[0])  # of rows that are not judged, but whose group is
    batches = Batches.of(problem)
    counts[batches.judged] = to_host(_counts_of_judged(problem))
    c, n_lams = found.inverse.shape
    some = batches.cheapest(lambda g: cost_of(g, c, n_lams, found.dual))
    total, of_rows = numpy.zeros(n_lams), 0.0
    for rows, loo in scores_without_groups(problem, found, some):
        losses = problem.targets.losses(loo, from_numpy(rows, D, xp.int64))
        total += to_host(losses).astype(float) @ counts[rows]
        of_rows += counts[rows].sum()
    rounded = [round(loss, TIE_DIGITS) for loss in (total / of_rows).tolist()]
    best = min(range(n_lams), key=lambda i: (rounded[i], -lams[i]))
    one = found.only(best)
    beta = output_weights(problem, one.solution[:, 0, :])
    loo = leave_groups_out(problem, one) if problem.want_loo else None
    return ReadOut(beta, xp.zeros((), dtype=xp.bool, device=device(D)), loo, float(lams[best]))


def _side_by_side(problem: Regression) -> ReadOut:
    """Do what `ridge_by_loo` says by a factor for each lambda: a GPU is slow at eigenvalues.

    On an H200 the eigenvalues of a Gram of 800 columns take longer than all 25 factors and their leverages.
    """
    D, targets = problem.D, problem.targets
    xp = array_namespace(D)
    system = linear_system(problem)
    require_finite(xp.linalg.diagonal(system.G))
    factor = factorise(add_to_diagonal(system.G, LAMBDAS))
    regular = to_host(factor.regular)
    if not regular.any():
        return _with_largest(problem)
    solution = solve(factor, xp.broadcast_to(system.R, (*factor.G.shape[:-1], system.R.shape[-1])))
    loo = leave_one_out(problem, factor, solution)
    counts = _counts_of_judged(problem)
    losses = xp.astype(targets.losses(loo, problem.judged_rows(slice(None))), xp.float64)
    mean = xp.sum(losses * counts, axis=-1) / xp.sum(counts)
    rounded = [round(float(mean[i]), TIE_DIGITS) for i in range(len(LAMBDAS))]
    best = min(numpy.flatnonzero(regular), key=lambda i: (rounded[i], -i))
    beta = output_weights(problem, solution[best, ...])
    fell_back = xp.zeros((), dtype=xp.bool, device=device(D))
    return ReadOut(beta, fell_back, loo[best, ...], float(LAMBDAS[best]))


def _with_largest(problem: Regression) -> ReadOut:
    """Fit the read-out of the largest lambda, where no system is regular."""
    lam = float(LAMBDAS[-1])
    return replace(ridge(problem, lam), lam=lam)


def _counts_of_judged(problem: Regression) -> Array:
    """Return how much each judged row counts: its weight times the rows that it stands for."""
    xp = array_namespace(problem.D)
    counts = xp.astype(take_entries(problem.own_weights, problem.judged_rows(slice(None))), xp.float64)
    return counts if problem.judged is None else counts * xp.astype(problem.judged.stand_for, xp.float64)


def _try_all(problem: Regression, V: Array, inverse: Array, spread: Array) -> tuple[Array, list[float]]:
    """Return s'(G + lam I)^-1 s of every row and lambda, and the leave-one-out loss of every lambda."""
    D, targets, left = problem.D, problem.targets, problem.left_out
    xp, m = array_namespace(D), problem.n_judged
    _, n_lams, k = spread.shape
    spread = xp.reshape(spread, (-1, n_lams * k))  # all lambdas in one product
    forms = xp.empty((m, n_lams), dtype=D.dtype, device=device(D))
    counts = _counts_of_judged(problem)
    total = xp.zeros((n_lams,), dtype=xp.float64, device=device(D))
    # the scores of all lambdas are held for a block
    for place in row_blocks(D, m, D.shape[1] + 4 * n_lams * k):
        rows = problem.judged_rows(place)
        P = take_rows(D, rows) @ V if problem.primal else take_rows(V, rows)
        forms[place, :] = (P * P) @ inverse
        answers = xp.moveaxis(xp.reshape(P @ spread, (-1, n_lams, k)), 1, 0)
        loo = _scores(left, rows, answers, xp.matrix_transpose(forms[place, :]))
        total += xp.sum(xp.astype(targets.losses(loo, rows), xp.float64) * counts[place], axis=-1)
    mean = total / xp.sum(counts)
    return forms, [round(float(mean[i]), TIE_DIGITS) for i in range(n_lams)]


def _scores(left: Regression, rows: slice | Array, answers: Array, forms: Array) -> Array:
    """Return leave-one-out scores (..., rows, k) from the scores, or in the dual from the dual solution."""
    Y, weights = left.targets.rows(rows), take_entries(left.own_weights, rows)
    if left.primal:
        return from_leverage(answers, Y, weights * forms)
    return Y - answers / (weights**0.5 * forms)[..., None]
