"""Algorithm 1 over parts: every layer is one pass, whose sums give the read-out and the next layer's moments.

Mean and variance of a neuron's input z = a'w are those of a, times w: they come from the Gram of the layer
before, so that no pass is spent on them. Right and wrong rows are summed apart, because how much the wrong
ones weigh is known only when all are counted (Eq. 14).

The loop in `_layers/grow.py` is another one because it holds the features of all rows, which many networks
share, and this one holds sums. Both take their steps from the same functions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy

from .._inputs.chosen import Judged
from .._inputs.inputs import Inputs
from .._inputs.rows import Rows, to_host
from .._layers.draws import Drawn, Draws
from .._layers.grow import Grown, overflow_message
from .._layers.layers import importance, next_weights, renormalisation, surviving_columns
from .._layers.records import HiddenLayer, Settings, Solved
from .._ridge.choose import read_outs
from .._ridge.equations import NormalEquations, Regression, linear_system
from .._ridge.leave_one_out import LeastNorm
from .._ridge.solve import require_finite
from .._ridge.twins import Twins
from .._seam.arrays import Array, array_namespace, device, free_bytes, from_numpy, itemsize, on_accelerator
from .._seam.linalg import Cholesky, add_to_diagonal, factorise
from .layers import Depth, LayerSums, SumLayer, Verdict, input_moments, losses_by_layer
from .rows import PartedRows

DEVICE_ROOM = 0.7  # of a device's free memory, that the features of all rows may take


class PartedNetwork:
    """A network that grows over rows in parts. The judged rows are in memory."""

    def __init__(
        self, parted: PartedRows, rows: Rows, judged: Judged | None, settings: Settings, inputs: Inputs
    ) -> None:
        self._parted, self._rows, self._judged, self._settings = parted, rows, judged, settings
        self._reference: Array | None = None  # what is subtracted from inputs before they are summed
        self._depth = Depth(inputs, settings.n_hidden, settings.activation, joint=settings.joint)
        self._lam = None if settings.lam is None else numpy.atleast_1d(settings.lam)
        self._gram: Array = None  # D'CD of the newest features, the inputs minus the reference
        self._of_rows: Array | None = None  # the judged rows' hidden features of the newest layer
        # a joint read-out, and weights by leave-one-out, need the features of all layers
        self._from_the_first = settings.joint or settings.weighs_by_loo

    def n_passes(self, l: int) -> int:
        """Return how many passes layer l takes: see `grow`, and `_bound` of the layer before."""
        settings = self._settings
        if l == 0:
            return 1 + settings.renormalize * (1 + self._centres)
        return 1 + (settings.weighs and self._parted.classes is None)

    @property
    def _centres(self) -> bool:
        """Whether inputs are summed about their means.

        Inputs that are not encoded may have large means, whose squares would drown the variance.
        """
        return self._depth.inputs.plain

    def _kept(self) -> dict[int, Array] | None:
        """Return a place for features between two passes, by part; None if they are computed again.

        A device keeps them in its own memory, if there is room.
        """
        X, n = self._rows.X, self._settings.n_hidden
        if self._from_the_first or not on_accelerator(X):
            return None
        fits = self._parted.weights.n_rows * n * itemsize(X) < DEVICE_ROOM * free_bytes(X)
        return {} if fits else None

    def grow(self, draws: Draws, judges: bool) -> Iterator[Grown]:
        """Yield one layer after another, with the features of the judged rows alone."""
        settings, rows, kept = self._settings, self._rows, self._kept()
        if settings.renormalize:
            if self._centres:
                self._reference = self._parted.total(partial(input_moments, self._depth.inputs)).mean
            self._gram = self._parted.total(SumLayer(self._depth, self._reference, True)).gram
        n, d = settings.n_hidden, self._depth.inputs.width
        inputs: Array | slice = slice(n, n + d)  # the first layer sees X alone
        for l in range(settings.n_layers):
            last = l + 1 == settings.n_layers
            hidden = self._next_layer(draws(l), inputs)
            self._depth = self._depth.with_layer(hidden)
            wants_plain = settings.renormalize and not last
            sums: LayerSums = self._parted.total(SumLayer(self._depth, self._reference, wants_plain, kept))
            self._gram = sums.gram
            problem = replace(self._problem(sums), want_loo=judges or (settings.weighs_by_loo and not last))
            try:
                readout = read_outs(problem, self._lam)
                require_finite(readout.beta)
            except FloatingPointError as error:
                raise ValueError(overflow_message(rows.X.dtype, l)) from error
            xp = array_namespace(rows.X)
            readout = replace(readout, beta=xp.astype(readout.beta, rows.X.dtype, copy=False))
            yield Grown(
                l, slice(0, 1), hidden, readout, problem.D, rows.targets, solved=self._solved(problem)
            )
            if last:
                return
            inputs = self._after(readout, problem)

    def _next_layer(self, drawn: Drawn, inputs: Array | slice) -> HiddenLayer:
        """Return the next layer, whose statistics come from the Gram of the layer before (Eq. 5-11)."""
        settings, W, b = self._settings, drawn.W, drawn.b
        if not isinstance(inputs, slice):
            W = array_namespace(W).take(W, inputs, axis=0)
        if not settings.renormalize:
            return HiddenLayer(inputs, W, None, b)
        gamma = settings.gamma if drawn.gamma is None else drawn.gamma
        alpha = settings.alpha if drawn.alpha is None else drawn.alpha
        mean, variance = self._moments(W, inputs)
        scale, shift = renormalisation(mean, variance, b, gamma, alpha)
        return HiddenLayer(inputs, W, scale, shift)

    def _moments(self, W: Array, inputs: Array | slice) -> tuple[Array, Array]:
        """Return mean and variance (Eq. 8, 9) of z = a'w for each neuron."""
        xp, depth = array_namespace(W), self._depth
        n, d = depth.n_hidden, depth.inputs.width
        places = numpy.arange(n + d)[inputs] if isinstance(inputs, slice) else to_host(inputs)  # in [H, X]
        at = from_numpy(self._columns()[places], self._gram, xp.int64)
        G = xp.take(self._gram, at, axis=0)
        bias = depth.inputs.width if depth.joint else self._gram.shape[0] - 1
        total = self._gram[bias, bias]
        mean = G[:, bias] / total
        covariance = xp.take(G, at, axis=1) / total - mean[:, None] * mean[None, :]
        V = xp.astype(W, self._gram.dtype)
        of_z = mean @ V
        if self._reference is not None:  # the Gram is of inputs minus the reference
            of_z = of_z + xp.astype(self._reference, V.dtype) @ V[-d:, :]  # the inputs come last
        variance = xp.clip(xp.sum((covariance @ V) * V, axis=0), 0.0, None)
        return xp.astype(of_z, W.dtype), xp.astype(variance, W.dtype)

    def _columns(self) -> numpy.ndarray:
        """Return where the columns of [H, X] of the newest layer are among those of the Gram."""
        n, d, depth = self._depth.n_hidden, self._depth.inputs.width, len(self._depth.layers)
        if depth and not self._depth.joint:
            return numpy.arange(n + d)
        # the Gram is of [X, 1, H1, ..., HL]; before the first layer there is no H, and nobody asks for it
        return numpy.concatenate([d + 1 + n * (depth - 1) + numpy.arange(n), numpy.arange(d)])

    def _problem(self, sums: LayerSums) -> Regression:
        """Return the newest layer's problem: the sums over all rows, and the judged rows themselves."""
        depth, rows, judged = self._depth, self._rows, self._judged
        system = sums.right
        if depth.verdicts and sums.wrong is not None:
            omega = self._omega(sums)
            *earlier, verdict = depth.verdicts
            self._depth = depth = replace(depth, verdicts=(*earlier, replace(verdict, omega=omega)))
            system = sums.right * omega[0] + sums.wrong * omega[1]
        if self._reference is not None:
            system = unshifted(system, self._reference, depth)
        seen = depth.walk(rows, slice(0, rows.X.shape[0]), self._of_rows)
        if not self._from_the_first:
            self._of_rows = seen.D[:, : depth.n_hidden]
        omega_of = None if seen.omega is None else seen.omega[None, :]
        return Regression(
            seen.D,
            rows.targets,
            rows.weights.base,
            omega_of,
            # copies of rows are looked for where all rows are judged, and so in memory
            Twins.of(rows.twins, rows.X) if judged is None else None,
            judged=judged,
            summed=system,
            unit=self._parted.weights.of_one,
        )

    def _solved(self, problem: Regression) -> Solved:
        """Return what the newest layer's read-out was solved from."""
        assert problem.summed is not None
        if not self._depth.verdicts:
            return Solved(problem.summed)
        verdict = self._depth.verdicts[-1]
        assert verdict.omega is not None
        return Solved(problem.summed, verdict.bound, verdict.omega)

    def _omega(self, sums: LayerSums) -> tuple[float, float]:
        """Return how much right and wrong rows weigh (Eq. 14): two rows that have all the weight."""
        counts = numpy.asarray([sums.n_right, sums.n_wrong])
        right, wrong = next_weights(numpy.asarray([True, False]), counts, self._settings.omega_r)
        return float(right), float(wrong)

    def _after(self, readout: Any, problem: Regression) -> Array | slice:
        """Note how the layer weighs its rows, and return the columns that the next layer reads (Eq. 17)."""
        settings, beta = self._settings, readout.beta[0, ...]
        n, d = settings.n_hidden, self._depth.inputs.width
        if settings.weighs:
            verdict = Verdict(beta, 0.0, self._factor(problem, readout) if settings.weighs_by_loo else None)
            verdict = replace(verdict, bound=self._bound(verdict))
            self._depth = replace(self._depth, verdicts=(*self._depth.verdicts, verdict))
        if not settings.prunes:
            return slice(0, n + d)
        return surviving_columns(importance(beta[:n, :]), float(settings.p), d)

    def _factor(self, problem: Regression, readout: Any) -> Cholesky | LeastNorm:
        """Return the factor of the layer's system, which gives leave-one-out scores of any row."""
        system, lam = linear_system(problem), self._settings.lam if readout.lam is None else readout.lam
        G = add_to_diagonal(system.G, lam)
        factor = factorise(G)
        return factor if bool(factor.regular) else LeastNorm.of(NormalEquations(G, system.R))

    def _bound(self, verdict: Verdict) -> float:
        """Return the largest loss of a row that is right: 0 for classes, about the median for values."""
        targets = self._rows.targets
        if self._parted.classes is not None:
            return 0.0
        found = self._parted.gather(partial(losses_by_layer, self._depth, verdict))
        xp, weighted = array_namespace(found[0][0]), found[0][1] is not None
        losses = xp.concat([losses for losses, _ in found])
        counts = xp.concat([counts for _, counts in found]) if weighted else xp.ones_like(losses)
        return float(targets.largest_right(losses, counts)[0])


def unshifted(system: NormalEquations, reference: Array, depth: Depth) -> NormalEquations:
    """Return the equations of inputs X from those of X - reference: X = (X - reference) + 1 reference'."""
    xp, d = array_namespace(system.G), reference.shape[0]
    c = system.G.shape[0]
    bias = d if depth.joint else c - 1
    start = 0 if depth.joint else c - 1 - d
    e = xp.zeros((c,), dtype=system.G.dtype, device=device(system.G))
    e[start : start + d] = xp.astype(reference, e.dtype)
    G, R = system.G, system.R
    ones = G[:, bias]
    G = G + e[:, None] * ones[None, :] + ones[:, None] * e[None, :] + ones[bias] * e[:, None] * e[None, :]
    return NormalEquations(G, R + e[:, None] * R[bias, :][None, :])
