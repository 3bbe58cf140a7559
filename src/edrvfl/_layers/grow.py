"""Algorithm 1: grow networks layer by layer, with the features of all rows in memory.

`_parts/grow.py` has the loop for rows that come in parts. It holds sums where this one holds features and
branches of many networks, so the two share the steps, and not the loop.

Networks that differ only in lambda and omega_r have the same features until pruning parts them, so one
projection, one set of statistics and one sum over the rows serve all of them. A single network is the case
of one read-out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy

from .._inputs.chosen import Judged
from .._inputs.rows import Rows, to_host
from .._inputs.targets import RowWeights, Targets, layer_losses
from .._ridge.choose import read_outs
from .._ridge.equations import NormalEquations, Regression, layer_equations, normal_equations, widened
from .._ridge.nested import NestedReadOuts
from .._ridge.solve import ReadOut, require_finite
from .._ridge.twins import Twins
from .._seam.arrays import Array, array_namespace, device, empty_rows, take_rows
from .draws import Drawn, Draws
from .layers import importance, next_layer, next_weights, surviving_columns, survivor_mask
from .records import Branch, HiddenLayer, Settings, Solved

READOUTS = ("layers", "joint")


class LayerReader:
    """Each layer has read-outs of its own, over D = [H, X, 1]."""

    def __init__(self, settings: Settings, stacked: bool) -> None:
        self._lam, self._stacked = settings.lam, stacked

    def features(self, D: Array) -> Array:
        """Return the features that the newest layer's read-outs are of."""
        return D

    def read_outs(self, problem: Regression) -> ReadOut:
        """Fit the read-outs of the newest layer."""
        return read_outs(problem, self._lam, self._stacked)

    def equations(self, problem: Regression) -> NormalEquations:
        """Sum the equations of the newest layer over all rows."""
        return layer_equations(problem) if problem.primal else normal_equations(problem)


class JointReader:
    """Each depth has read-outs over the first columns of A = [X, 1, H1, ..., HL], filled layer by layer.

    In this order of the columns the depths share their work.
    """

    def __init__(self, D: Array, settings: Settings) -> None:
        self._n, inputs = settings.n_hidden, D[..., settings.n_hidden :]
        self._width = inputs.shape[-1]
        self._A = empty_rows((*D.shape[:-1], self._width + settings.n_layers * self._n), like=D)
        self._A[..., : self._width] = inputs
        self._readouts = NestedReadOuts(settings.lam)
        self._known: NormalEquations | None = None

    def features(self, D: Array) -> Array:
        """Copy H of D = [H, X, 1] behind the layers before; return the columns that are filled."""
        before, self._width = self._width, self._width + self._n
        self._A[..., before : self._width] = D[..., : self._n]
        return self._A[..., : self._width]

    def read_outs(self, problem: Regression) -> ReadOut:
        """Fit the read-outs over the columns that are filled."""
        return self._readouts.add(problem)

    def equations(self, problem: Regression) -> NormalEquations:
        """Sum the equations of the columns that are filled, of which the first are known."""
        self._known = widened(self._known, problem)
        return self._known


@dataclass(frozen=True, eq=False)
class Grown:
    """One layer of a branch, just grown. D holds its features until the next layer is asked for."""

    layer: int
    members: slice
    hidden: HiddenLayer
    readout: ReadOut  # beta of shape (..., r, c, k)
    D: Array  # (..., rows, c), the features that the read-out is of
    targets: Targets
    judged: Judged | None = None  # the rows that have leave-one-out scores, if not all have them
    of_riders: Array | None = None  # (..., r, riders, k), their leave-one-out scores, if there are riders
    solved: Solved | None = None  # what the read-out was solved from, if that is remembered

    @property
    def loo(self) -> Array:
        """The leave-one-out scores of the judged rows, (..., r, rows, k)."""
        scores: Array = self.readout.loo
        if self.judged is None or scores.shape[-2] == self.judged.rows.shape[0]:
            return scores
        return take_rows(scores, self.judged.rows)  # the weighting needed the scores of all rows

    @cached_property
    def losses(self) -> Array:
        """The layer's losses on the training rows, (..., r, m): 0 or 1 for classes, squares for values."""
        return layer_losses(self.targets, self.D[..., : self.targets.n_rows, :], self.readout.beta)


@dataclass(frozen=True, slots=True, eq=False)
class Riders:
    """Rows that shape no layer and are judged, among all rows: those that shape the layers come first."""

    rows: Rows
    judged: Judged

    def scores(self, D: Array, omega: Array | None, lam: numpy.ndarray, stacked: bool) -> Array:
        """Return leave-one-out scores (..., r, riders, k) by read-outs over the features D of all rows.

        The layer's weights omega are those of the rows that shape it; riders, whose labels Eq. 12 never saw,
        weigh 1.
        """
        xp, m = array_namespace(D), D.shape[-2]
        if omega is not None:
            ones = xp.ones((*omega.shape[:-1], m - omega.shape[-1]), dtype=omega.dtype, device=device(omega))
            omega = xp.concat([omega, ones], axis=-1)
        rows, twins = self.rows, Twins.of(self.rows.twins, D)
        all_rows = Regression(
            D, rows.targets, rows.weights.base, omega, twins, True, judged=self.judged, groups=rows.groups
        )
        scores: Array = read_outs(all_rows, lam, stacked).loo
        return scores


@dataclass(frozen=True, eq=False)
class Problem:
    """The training rows, which are the first m rows of D, and the random layers."""

    targets: Targets
    weights: RowWeights
    draws: Draws
    judged: Judged | None  # which rows get leave-one-out scores; None for all
    stacked: bool = False  # whether branches and their systems are computed side by side, as suits a GPU
    judges: bool = False  # whether the leave-one-out scores of every layer are wanted
    twins: numpy.ndarray | None = None  # (m,), a number that rows of the same X share: see `Rows.twins`
    riders: Riders | None = None  # rows behind the first m, which shape nothing and are judged in their place
    groups: numpy.ndarray | None = None  # (m,), the number of each row's group: see `Rows.groups`
    remembers: bool = False  # whether the sums over rows are wanted, of a single network


def start(D: Array, settings: Settings) -> Branch:
    """Return the branch from which all networks grow: the first layer sees X alone."""
    n, d = settings.n_hidden, D.shape[-1] - settings.n_hidden - 1
    lam = None if settings.lam is None else numpy.atleast_1d(settings.lam)
    settings = replace(settings, lam=lam, omega_r=numpy.atleast_1d(settings.omega_r))
    return Branch(settings, slice(0, settings.omega_r.size), 0, D, D, slice(n, n + d))


def grow(branch: Branch, problem: Problem) -> Iterator[Grown]:
    """Algorithm 1, one layer at a time: draw, project, re-normalise, activate, read out, weigh, prune.

    To keep a network, keep the layers that are yielded; to score it, keep their scores; to stop early, stop
    iterating.
    """
    m, n, D = problem.targets.n_rows, branch.settings.n_hidden, branch.D
    settings = branch.settings
    # without leave-one-out nobody is judged
    judged = problem.judged if problem.judges or settings.lam is None else None
    weights = problem.weights
    regression = Regression(D[..., :m, :], problem.targets, weights.base, judged=judged, unit=weights.unit)
    regression = replace(regression, twins=Twins.of(problem.twins, D), groups=problem.groups)
    if settings.weighs_by_loo:  # the weighting needs the scores of all rows
        regression = replace(regression, judged=None, choosers=judged)
    if D.ndim == 2 and not (problem.stacked or settings.joint) and 2 * n < D.shape[-1] <= m:
        # Where X is wider than H, its part of the Gram is not summed again for each layer.
        of_inputs = normal_equations(replace(regression, D=D[:m, n:]))
        regression = replace(regression, of_inputs=of_inputs)
    yield from _grow(branch, problem, regression)


def _grow(branch: Branch, problem: Problem, regression: Regression) -> Iterator[Grown]:
    settings, D = branch.settings, branch.D
    m, n = problem.targets.n_rows, settings.n_hidden
    reader = JointReader(D, settings) if settings.joint else LayerReader(settings, problem.stacked)
    for l in range(branch.layer, settings.n_layers):
        last = l + 1 == settings.n_layers
        hidden = next_layer(branch, _without_pruned(problem.draws(l), branch), problem.weights.counts, m)
        if not last:
            problem.draws.prepare(l + 1)  # the host draws while the device works
        # after the last layer nobody is weighed
        want_loo = problem.judges or (settings.weighs_by_loo and not last)
        features = reader.features(D)
        rows = replace(regression, D=features[..., :m, :], omega=branch.omega, want_loo=want_loo)
        solved = _solved(reader, rows, branch) if problem.remembers else None
        try:
            if solved is not None and rows.primal and not settings.joint:
                rows = replace(rows, known=solved.system)  # nobody sums them again
            readout, of_riders = reader.read_outs(rows), None
            require_finite(readout.beta)
            if problem.riders is not None:
                lam = numpy.asarray([readout.lam]) if settings.lam is None else settings.lam
                of_riders = problem.riders.scores(features, branch.omega, lam, problem.stacked)
        except FloatingPointError as error:
            raise ValueError(overflow_message(D.dtype, l)) from error
        judged = problem.judged if problem.judges else None
        grown = Grown(
            l, branch.members, hidden, readout, features, problem.targets, judged, of_riders, solved
        )
        yield grown
        if last:
            return
        branch = _after(grown, branch, problem.weights)
        if settings.prunes and readout.beta.shape[-3] > 1:
            # each read-out prunes other neurons, so the features are no longer shared
            for child in _part(branch, importance(readout.beta[..., :n, :]), problem.stacked):
                yield from _grow(child, problem, regression)
            return


def _solved(reader: LayerReader | JointReader, rows: Regression, branch: Branch) -> Solved:
    """Return what the read-out of a single network is solved from."""
    if rows.omega is None:
        return Solved(reader.equations(rows))
    system, omega = reader.equations(replace(rows, omega=rows.omega[0, :])), to_host(rows.omega)[0]
    assert branch.bound is not None
    weights = float(omega.min()), float(omega.max())
    right = omega == omega.min() if weights[0] < weights[1] else None
    return Solved(system, float(branch.bound[0, 0]), weights, right)


def _after(grown: Grown, branch: Branch, weights: RowWeights) -> Branch:
    """Weigh the samples of the next layer, and leave out the neurons that a single read-out prunes."""
    settings, D, beta = branch.settings, branch.D, grown.readout.beta
    branch = replace(branch, layer=grown.layer + 1, source=D, inputs=slice(0, D.shape[-1] - 1))
    if settings.weighs:
        omega, bound = _next_weights(grown, settings, weights)
        branch = replace(branch, omega=omega, bound=bound)
    if settings.prunes and beta.shape[-3] == 1:
        branch = _prune(branch, importance(beta[..., 0, : settings.n_hidden, :]))
    return branch


@dataclass(frozen=True, slots=True, eq=False)
class Pause:
    """What the next layer of one network needs beside the layers so far: small enough to keep or to send."""

    layer: int  # the next layer's number
    inputs: Array | slice  # the columns of [H, X, 1] that it reads
    omega: Array | None  # the samples' weights in it
    bound: Array | None = None  # the largest loss of a sample that is right


def pause(grown: Grown, settings: Settings, weights: RowWeights) -> Pause:
    """Return from where one network that was just grown can go on later, by `resume`."""
    branch = _after(grown, start(grown.D, settings), weights)
    return Pause(branch.layer, branch.inputs, branch.omega, branch.bound)


def resume(D: Array, settings: Settings, paused: Pause) -> Branch:
    """Return the branch from which a network goes on. D holds the features of its last layer again."""
    begin = replace(start(D, settings), layer=paused.layer, inputs=paused.inputs)
    return replace(begin, omega=paused.omega, bound=paused.bound)


def _without_pruned(drawn: Drawn, branch: Branch) -> Drawn:
    """Drop the rows of W of pruned neurons. The full W is drawn, so the draws do not depend on p."""
    W = drawn.W
    if branch.mask is not None:
        return replace(drawn, W=W * branch.mask[..., None])
    if isinstance(branch.inputs, slice):
        return drawn
    return replace(drawn, W=array_namespace(W).take(W, branch.inputs, axis=0))


def _next_weights(grown: Grown, settings: Settings, weights: RowWeights) -> tuple[Array, Array]:
    """Weigh the samples of the next layer by what this layer got right (Eq. 12-14).

    Return the weights, and the largest loss (..., r, 1) that is right.
    """
    targets, m = grown.targets, grown.targets.n_rows
    losses = targets.losses(grown.readout.loo, slice(0, m)) if settings.weighs_by_loo else grown.losses
    counts = weights.counts_of(m, grown.D)
    bound = targets.largest_right(losses, counts)
    return next_weights(losses <= bound, counts, settings.omega_r), bound


def _prune(branch: Branch, theta: Array) -> Branch:
    """Leave the least important neurons out of the next layer (Eq. 17). A stack sets rows of W to 0."""
    d = branch.D.shape[-1] - branch.settings.n_hidden - 1
    xp = array_namespace(theta)
    if theta.ndim > 1:  # members of a stack keep different neurons, so rows of W become zero
        ones = xp.ones((*theta.shape[:-1], d), dtype=theta.dtype, device=device(theta))
        return replace(branch, mask=xp.concat([survivor_mask(theta, branch.settings.p), ones], axis=-1))
    return replace(branch, inputs=surviving_columns(theta, float(branch.settings.p), d))


def _part(branch: Branch, theta: Array, stacked: bool) -> Iterator[Branch]:
    """Give every read-out features of its own, because pruning keeps different neurons for each."""
    s, D, n = branch.settings, branch.D, branch.settings.n_hidden
    if stacked:
        # hidden setting i with read-out j becomes hidden setting (i, j) with one read-out
        lam, omega_r, gamma, alpha, p = (
            numpy.asarray(value)[..., None] for value in (s.lam, s.omega_r, s.gamma, s.alpha, s.p)
        )
        own = replace(s, lam=lam, omega_r=omega_r, gamma=gamma, alpha=alpha, p=p)
        child = replace(branch, settings=own, D=_own_features(D, n, s.lam.shape), source=D[..., None, :, :])
        omega = None if branch.omega is None else branch.omega[..., None, :]
        yield _prune(replace(child, omega=omega), theta)
        return
    own_D = _own_features(D, n, ())  # one buffer for all: a branch is grown to its end before the next begins
    first = branch.members.start
    for i in range(s.lam.shape[-1]):
        child = replace(
            branch,
            settings=replace(s, lam=s.lam[i : i + 1], omega_r=s.omega_r[i : i + 1]),
            members=slice(first + i, first + i + 1),
            D=own_D,
            omega=None if branch.omega is None else branch.omega[i : i + 1, :],
        )
        yield _prune(child, theta[i, :])


def _own_features(D: Array, n: int, stack: tuple[int, ...]) -> Array:
    """Allocate [H, X, 1] for branches that part, with the same X."""
    own = empty_rows((*stack, *D.shape[-2:]), like=D)
    own[..., n:] = D[..., None, :, n:] if stack else D[..., n:]
    return own


def overflow_message(dtype: Any, layer: int) -> str:
    """Say what to do if features overflow."""
    return (
        f"The hidden features overflow {dtype} in layer {layer + 1}. Set renormalize=True and an encoder, "
        "use fewer layers, rescale the input columns, or bring norm_scale and norm_shift closer to 1 and 0."
    )
