"""The least-squares problem of a layer, and the sums over rows that its solution needs: D'WD and D'WY."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy

from .._inputs.chosen import Judged
from .._inputs.targets import Targets, Values
from .._seam.arrays import (
    Array,
    array_namespace,
    device,
    product,
    row_blocks,
    sum_dtype,
    take_entries,
    take_rows,
)
from .._seam.linalg import add_products, symmetric
from .twins import Twins

FEW_BLOCKS = 4  # whose sum in float32 is added to one in float64: one by one that would take a tenth longer


@dataclass(frozen=True, slots=True, eq=False)
class NormalEquations:
    """G beta = R with G = D'WD and R = D'WY (Eq. 3, 15 before lambda is added). Sums of parts add up."""

    G: Array  # (..., c, c)
    R: Array  # (..., c, k)

    def __add__(self, other: NormalEquations) -> NormalEquations:
        """Return the equations of both sets of rows together."""
        return NormalEquations(self.G + other.G, self.R + other.R)

    def __mul__(self, factor: Any) -> NormalEquations:
        """Return the equations in which every row weighs `factor` times as much."""
        return NormalEquations(self.G * factor, self.R * factor)


@dataclass(frozen=True, slots=True, eq=False)
class Regression:
    """One layer's rows as a weighted least-squares problem, or a stack of such problems."""

    D: Array  # (..., m, c), the features
    targets: Targets
    base: Array | None = None  # (m,), the factor of a row's squared error; None for ones
    omega: Array | None = None  # (..., m), the layer's own weights, which take few values (Eq. 14)
    twins: Twins | None = None  # rows that leave-one-out leaves out together; None if all features differ
    want_loo: bool = False  # whether leave-one-out scores are wanted
    of_inputs: NormalEquations | None = None  # of the columns [X, 1]; summed once if X is wider than H
    judged: Judged | None = None  # the rows whose leave-one-out scores are wanted; None for all
    choosers: Judged | None = None  # the rows that choose lambda, if all rows are judged but fewer choose
    summed: NormalEquations | None = None  # over all rows, if D holds only some of them, all judged
    unit: float = 1.0  # the weight of one row, see `weight_of_one`
    groups: numpy.ndarray | None = None  # (m,), in place of twins: rows of one number are left out together
    known: NormalEquations | None = None  # over all rows, if somebody summed them already

    @property
    def weights(self) -> Array | None:
        """The weight of each row, (..., m); None for ones."""
        return product(self.base, self.omega)

    @property
    def root(self) -> Array | None:
        """The square root of the weights: rows of D and Y times it make the problem an unweighted one."""
        weights = self.weights
        return None if weights is None else array_namespace(weights).sqrt(weights)

    @property
    def own_weights(self) -> Array:
        """The weight of each row, (..., m), also where all are ones."""
        D, weights, xp = self.D, self.weights, array_namespace(self.D)
        return xp.ones(D.shape[-2:-1], dtype=D.dtype, device=device(D)) if weights is None else weights

    @property
    def left_out(self) -> Regression:
        """The problem as leave-one-out sees it: a row has the weight and the mean target of all its twins.

        As twins have the same features, one row with this weight and target has the same solution.
        """
        xp, weights, targets = array_namespace(self.D), self.own_weights, self.targets
        if self.twins is not None:
            # beside far larger weights a sum may vanish
            total = xp.maximum(self.twins.sums(weights), weights)
            targets = Values(self.twins.sums(weights[..., None] * self.Y, axis=-2) / total[..., None])
            weights = total
        return replace(self, base=None, omega=weights, targets=targets, twins=None)

    @property
    def Y(self) -> Array:
        """The targets of all rows as one matrix (m, k)."""
        return self.targets.rows(slice(0, self.D.shape[-2]))

    @property
    def primal(self) -> bool:
        """Whether D has no more columns than rows, so that the primal system is the smaller one.

        Rows that come in blocks have the primal system only.
        """
        return self.summed is not None or bool(self.D.shape[-1] <= self.D.shape[-2])

    @property
    def n_judged(self) -> int:
        """How many rows get leave-one-out scores."""
        return int(self.D.shape[-2] if self.judged is None else self.judged.rows.shape[0])

    def judged_rows(self, place: slice) -> slice | Array:
        """Return which rows stand at some places among the judged ones."""
        return place if self.judged is None else self.judged.rows[place]

    def member(self, i: tuple[int, ...], stack: tuple[int, ...]) -> Regression:
        """Return problem i of a stack of problems, some of whose arrays may be common to all."""
        xp = array_namespace(self.D)
        D = xp.broadcast_to(self.D, (*stack, *self.D.shape[-2:]))[(*i, ...)]
        omega = self.omega
        if omega is not None:
            omega = xp.broadcast_to(omega, (*stack, omega.shape[-1]))[(*i, ...)]
        return replace(self, D=D, omega=omega)


def normal_equations(problem: Regression, only: Array | None = None, dtype: Any = None) -> NormalEquations:
    """Sum D'WD and D'WY over blocks of rows: of all rows, or of those whose indices are in `only`.

    `dtype` is the precision of the products and their sums. By default products have that of D, and sums
    `sum_dtype`, to which each sum over a few blocks is added.
    """
    D, targets, root = problem.D, problem.targets, problem.root
    xp = array_namespace(D)
    dtype, higher = (D.dtype, sum_dtype(D)) if dtype is None else (dtype, dtype)
    *stack, m, c = D.shape
    if root is not None:
        stack = numpy.broadcast_shapes(tuple(stack), root.shape[:-1])
        root = xp.astype(root, dtype, copy=False)
    G = xp.zeros((*stack, c, c), dtype=dtype, device=device(D))
    R = xp.zeros((*stack, c, targets.width), dtype=dtype, device=device(D))
    total: NormalEquations | None = None  # in higher precision than G and R
    n_rows = m if only is None else only.shape[0]
    for i, rows in enumerate(row_blocks(D, n_rows, c * math.prod(stack) + targets.width)):
        which = rows if only is None else only[rows]
        block, part = take_rows(D, which), None if root is None else take_entries(root, which)
        # Rows get the precision of the sums before they are weighted: rounding would part collinear columns.
        S, T = (xp.astype(values, dtype, copy=False) for values in (block, targets.rows(which)))
        add_products(G, R, S, T, part, packed=only is not None)
        if higher != dtype and (i % FEW_BLOCKS == FEW_BLOCKS - 1 or rows.stop == n_rows):
            total = _moved(G, R, total, higher)
    if total is not None:
        G, R = total.G, total.R
    return NormalEquations(symmetric(G), R)


def _moved(G: Array, R: Array, total: NormalEquations | None, dtype: Any) -> NormalEquations:
    """Add sums to a total of higher precision, and clear them."""
    xp = array_namespace(G)
    if total is None:
        total = NormalEquations(xp.astype(G, dtype), xp.astype(R, dtype))
    else:
        total.G[...] += G
        total.R[...] += R
    G[...] = 0
    R[...] = 0
    return total


def linear_system(problem: Regression, dtype: Any = None) -> NormalEquations:
    """Return the smaller of the two systems: the normal equations (Eq. 3, 15) or the dual (Eq. 4, 16)."""
    if problem.summed is not None:
        return problem.summed * 1.0  # the solver overwrites it
    if not problem.primal:
        return dual_system(problem, gram_of_rows(problem.D, dtype))
    if problem.known is not None and dtype is None:
        return problem.known * 1.0
    return layer_equations(problem) if dtype is None else normal_equations(problem, dtype=dtype)


def gram_of_rows(D: Array, dtype: Any = None) -> Array:
    """Return K = DD'."""
    xp = array_namespace(D)
    D = D if dtype is None else xp.astype(D, dtype)
    return D @ xp.matrix_transpose(D)


def dual_system(problem: Regression, K: Array) -> NormalEquations:
    """Return W^(1/2) K W^(1/2) and W^(1/2) Y (Eq. 4, 16 made symmetric).

    The rows of D and Y are scaled by the roots of their weights, because the printed Eq. 16 inverts a
    matrix that is not symmetric. Twins have their mean target: what parts them is no part of the solution,
    and over a small lambda it would drown the rest.
    """
    T, root = array_namespace(K).astype(problem.left_out.Y, K.dtype, copy=False), problem.root
    if root is None:
        return NormalEquations(K, T)
    K = root[..., :, None] * K
    K *= root[..., None, :]
    return NormalEquations(K, root[..., None] * T)


def output_weights(problem: Regression, solution: Array) -> Array:
    """Return beta: the solution itself, or D'W^(1/2) times the solution of the dual system."""
    if problem.primal:
        return solution
    xp, root = array_namespace(solution), problem.root
    # In a second try the solution has more digits than D.
    D = xp.astype(problem.D, solution.dtype, copy=False)
    return xp.matrix_transpose(D) @ (solution if root is None else root[..., None] * solution)


def layer_equations(problem: Regression) -> NormalEquations:
    """Sum the equations of a layer's features, without summing again what is known of its inputs."""
    if problem.of_inputs is None:
        return normal_equations(problem)
    xp, D = array_namespace(problem.D), problem.D
    m, c = D.shape
    n = c - problem.of_inputs.G.shape[-1]
    weights, k = problem.weights, problem.targets.width
    dtype = problem.of_inputs.G.dtype
    G = xp.zeros((c, c), dtype=dtype, device=device(D))
    R = xp.zeros((c, k), dtype=dtype, device=device(D))
    for rows in row_blocks(D, m, 2 * n + k):  # H'W[H, X, 1], the part that is new in this layer
        H = D[rows, :n] if weights is None else D[rows, :n] * weights[rows, None]
        G[:n, :] += xp.matrix_transpose(H) @ D[rows, :]
        R[:n, :] += xp.matrix_transpose(H) @ problem.targets.rows(rows)
    of_inputs = reweighted(problem.of_inputs, replace(problem, D=D[:, n:]))
    G[n:, :n] = xp.matrix_transpose(G[:n, n:])
    G[n:, n:], R[n:, :] = of_inputs.G, of_inputs.R
    return NormalEquations(G, R)


def widened(known: NormalEquations | None, problem: Regression) -> NormalEquations:
    """Return the equations of all columns of D (m, c) from those of its first columns."""
    if known is None:
        return normal_equations(problem)
    D, weights, targets = problem.D, problem.weights, problem.targets
    xp, (m, c), before = array_namespace(D), D.shape, known.G.shape[-1]
    G = xp.zeros((c, c), dtype=known.G.dtype, device=device(D))
    R = xp.zeros((c, targets.width), dtype=known.G.dtype, device=device(D))
    G[:before, :before], R[:before, :] = known.G, known.R
    for rows in row_blocks(D, m, 2 * (c - before) + targets.width):
        H = D[rows, before:] if weights is None else D[rows, before:] * weights[rows, None]
        G[before:, :] += xp.matrix_transpose(H) @ D[rows, :]
        R[before:, :] += xp.matrix_transpose(H) @ targets.rows(rows)
    G[:before, before:] = xp.matrix_transpose(G[before:, :before])
    return NormalEquations(G, R)


def reweighted(shared: NormalEquations, problem: Regression) -> NormalEquations:
    """Give the rows of `shared`, which have the base weights, the layer's weights omega (m,) too.

    Eq. 14 gives omega two values, low for the rows that were right and high for the wrong ones, so
    D'WD = low D'D + (high - low) D_w'D_w, and the wrong rows D_w are few. Riders have a third value.
    """
    if problem.omega is None:
        return shared * 1.0
    xp = array_namespace(problem.omega)
    low, high = xp.min(problem.omega), xp.max(problem.omega)
    if not bool(high > low):
        return shared * low
    wrong = xp.nonzero(problem.omega > low)[0]
    alike = bool(xp.all((problem.omega == low) | (problem.omega == high)))  # exact: they were written so
    extra = normal_equations(replace(problem, omega=None if alike else problem.omega - low), wrong)
    G, R = extra.G, extra.R  # in place from here on: a Gram of many columns is large
    if alike:
        G *= high - low
        R *= high - low
    G += shared.G * low
    R += shared.R * low
    return NormalEquations(G, R)
