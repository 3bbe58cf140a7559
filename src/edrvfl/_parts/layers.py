"""The features of a part's rows at any depth, and the sums over them that the next layer needs.

A part does not remember anything: its features are computed again, layer after layer, from its rows and the
network so far. So a part may be read by any process, and twice, and the sums are the same.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass, replace
from functools import reduce

from .._inputs.inputs import Inputs
from .._inputs.moments import Moments
from .._inputs.rows import Rows
from .._inputs.targets import RowWeights
from .._layers.layers import ACTIVATIONS, activate, fill_inputs, folded, new_features, project
from .._layers.records import HiddenLayer
from .._ridge.equations import NormalEquations, Regression
from .._ridge.leave_one_out import LeastNorm, from_leverage
from .._seam.arrays import Array, array_namespace, device, from_numpy, product, row_blocks, take_rows
from .._seam.linalg import Cholesky, add_products, inverse_forms, symmetric
from .parts import add


@dataclass(frozen=True, slots=True, eq=False)
class Verdict:
    """How a layer tells which rows it got right (Eq. 12), and how much rows weigh in the layer after it."""

    beta: Array  # (c, k), of standardised values if the targets are values
    bound: float  # a row is right if its loss is not above this
    factor: Cholesky | LeastNorm | None = None  # of the layer's system, if leave-one-out scores decide
    omega: tuple[float, float] | None = None  # of right and wrong rows in the next layer, once it is known

    def losses(self, D: Array, rows: Rows, place: slice, omega: Array | None) -> Array:
        """Return the losses of some rows. D are their features, omega their weights in the layer."""
        scores = D @ self.beta if self.factor is None else self._left_out(D, rows, place, omega)
        return rows.targets.losses(scores, place)

    def _left_out(self, D: Array, rows: Rows, place: slice, omega: Array | None) -> Array:
        """Return the scores of some rows, each fitted without it. Copies stay: any part may have them."""
        xp, base = array_namespace(D), rows.weights.some(place).base
        if isinstance(self.factor, LeastNorm):
            some = Regression(D, rows.targets.some(place), base, omega)
            return xp.astype(self.factor.scores(some), D.dtype, copy=False)
        assert self.factor is not None
        forms = inverse_forms(self.factor, xp.astype(D, self.factor.L.dtype, copy=False))
        h = product(base, omega, xp.astype(forms, D.dtype, copy=False))
        return from_leverage(D @ self.beta, rows.targets.rows(place), h)

    def weigh(self, right: Array, like: Array) -> Array | None:
        """Return the weights of rows in the next layer (Eq. 14); None as long as they are not known."""
        if self.omega is None:
            return None
        low, high = (from_numpy(value, like) for value in self.omega)
        return array_namespace(like).where(right, low, high)


@dataclass(frozen=True, slots=True, eq=False)
class Seen:
    """Some rows as the newest layer's read-out sees them."""

    D: Array  # [H, X, 1]; if joint [X, 1, H1, ..., HL]
    right: Array | None  # whether the layer before got them right; None if nobody is weighed
    omega: Array | None  # their weights in the newest layer; None for ones, or if they are not known


@dataclass(frozen=True, slots=True, eq=False)
class Depth:
    """A network so far: what the features of any row need."""

    inputs: Inputs
    n_hidden: int
    activation: str
    layers: tuple[HiddenLayer, ...] = ()  # folded
    verdicts: tuple[Verdict, ...] = ()  # of the layers before the newest; empty without weighting
    joint: bool = False

    def with_layer(self, layer: HiddenLayer) -> Depth:
        """Return the network with one layer more."""
        bias = self.n_hidden + self.inputs.width
        return replace(self, layers=(*self.layers, folded(layer, bias)))

    @property
    def width(self) -> int:
        """How many columns the newest layer's read-out is of."""
        d, n = self.inputs.width, self.n_hidden
        return d + 1 + n * (len(self.layers) if self.joint else min(1, len(self.layers)))

    def walk(self, rows: Rows, place: slice, known: Array | None = None) -> Seen:
        """Compute the features of some rows of a part, layer after layer.

        `known` are the hidden features of the layer before the newest, if they need not be computed again.
        """
        n, X = self.n_hidden, rows.X[place, :]
        D = new_features(X.shape[0], X, n if self.layers else 0, self.inputs)
        fill_inputs(D, X, self.inputs)
        A = new_joint(D, n, len(self.layers)) if self.joint else D
        right = omega = None
        first = 0
        if known is not None:
            D[:, :n], first = known, len(self.layers) - 1
        for l, layer in enumerate(self.layers[first:], start=first):
            if l > 0 and self._asks(l - 1):
                verdict = self.verdicts[l - 1]
                right = verdict.losses(D, rows, place, omega) <= verdict.bound
                omega = verdict.weigh(right, D)
            H = D[:, :n]
            project(D, layer.inputs, layer.W, H)
            activate(H, None, None, ACTIVATIONS[self.activation])
            if self.joint:
                start = self.inputs.width + 1 + l * n
                A[:, start : start + n] = H
        return Seen(A, right, omega)

    def _asks(self, l: int) -> bool:
        """Whether the verdict of layer l is needed: the last one, or all if leave-one-out decides."""
        return bool(self.verdicts) and (l == len(self.layers) - 2 or self.verdicts[l].factor is not None)


def new_joint(D: Array, n: int, depth: int) -> Array:
    """Allocate [X, 1, H1, ..., HL] with the X of D = [H, X, 1]."""
    inputs = D[:, n:] if depth else D
    xp = array_namespace(D)
    A = xp.empty((D.shape[0], inputs.shape[1] + depth * n), dtype=D.dtype, device=device(D))
    A[:, : inputs.shape[1]] = inputs
    return A


@dataclass(frozen=True, slots=True, eq=False)
class LayerSums:
    """What a layer needs of all rows: what `SumLayer` makes of each part, added up."""

    right: NormalEquations  # of the rows that the layer before got right; of all rows without weighting
    wrong: NormalEquations | None  # of the others
    n_right: float  # the sample weight of the rows in each
    n_wrong: float
    plain: Array | None  # D'CD with sample weights only, where class weights are in the equations

    def __add__(self, other: LayerSums) -> LayerSums:
        """Return the sums over both sets of rows."""
        counts = (self.n_right + other.n_right, self.n_wrong + other.n_wrong)
        wrong, plain = add(self.wrong, other.wrong), add(self.plain, other.plain)
        return LayerSums(self.right + other.right, wrong, *counts, plain)

    @property
    def gram(self) -> Array:
        """D'CD of all rows with their sample weights, which gives the moments of the next layer's neurons."""
        if self.plain is not None:
            return self.plain
        return self.right.G if self.wrong is None else self.right.G + self.wrong.G


@dataclass(frozen=True, slots=True, eq=False)
class SumLayer:
    """Sum the equations of the newest layer over the rows of a part."""

    depth: Depth
    reference: Array | None = None  # (d,), what is subtracted from the inputs: large means would cancel
    wants_plain: bool = False  # whether D'CD is wanted where class weights are in the equations
    # by part: the hidden features of the layer before, which those of this layer replace; None if they are
    # computed again
    kept: dict[int, Array] | None = None

    def __call__(self, rows: Rows, number: int) -> LayerSums:
        """Return the sums over one part, in float64."""
        depth, c, k, X = self.depth, self.depth.width, rows.targets.width, rows.X
        right, wrong = (_Adder(c, k, X) for _ in range(2))
        plain = _Adder(c, 0, X) if self.wants_plain and rows.weights.costs is not None else None
        features = self._kept_features(X, number)
        for place in row_blocks(X, X.shape[0], 2 * c + k):
            known = None if features is None or len(depth.layers) == 1 else features[place, :]
            seen = depth.walk(rows, place, known)
            if features is not None:
                features[place, :] = seen.D[:, : depth.n_hidden]
            D, T, weights = self._shifted(seen.D), rows.targets.rows(place), rows.weights.some(place)
            if seen.right is None:
                right.add(D, T, weights)
            else:
                for some, sums in ((seen.right, right), (~seen.right, wrong)):
                    which = array_namespace(D).nonzero(some)[0]
                    sums.add(take_rows(D, which), take_rows(T, which), weights.some(which), packed=True)
            if plain is not None:
                plain.add(D, T[:, :0], RowWeights(weights.counts))
        return LayerSums(
            right.equations,
            wrong.equations if depth.verdicts else None,
            right.weight,
            wrong.weight,
            None if plain is None else plain.equations.G,
        )

    def _kept_features(self, X: Array, number: int) -> Array | None:
        """Return the place for the hidden features of a part's rows; None if they are not kept."""
        if self.kept is None or not self.depth.layers:
            return None
        if number not in self.kept:
            shape = (X.shape[0], self.depth.n_hidden)
            self.kept[number] = array_namespace(X).empty(shape, dtype=X.dtype, device=device(X))
        return self.kept[number]

    def _shifted(self, D: Array) -> Array:
        """Subtract the reference from the inputs in D, in place."""
        if self.reference is not None:
            d = self.reference.shape[0]
            start = 0 if self.depth.joint else D.shape[1] - 1 - d
            D[:, start : start + d] -= self.reference
        return D


class _Adder:
    """Adds up normal equations in float64, and the weight of their rows."""

    def __init__(self, c: int, k: int, like: Array) -> None:
        xp = array_namespace(like)
        self._G = xp.zeros((c, c), dtype=xp.float64, device=device(like))
        self._R = xp.zeros((c, k), dtype=xp.float64, device=device(like))
        self.weight = 0.0

    def add(self, D: Array, T: Array, weights: RowWeights, packed: bool = False) -> None:
        """Add the rows of D and T; `packed` tells that D is a copy."""
        if D.shape[0] == 0:
            return
        xp = array_namespace(D)
        root = None if weights.base is None else xp.sqrt(weights.base)
        if D.dtype == xp.float64:
            add_products(self._G, self._R, D, T, root, packed)
        else:
            G, R = (xp.zeros(A.shape, dtype=D.dtype, device=device(D)) for A in (self._G, self._R))
            add_products(G, R, D, T, root, packed)
            self._G += xp.astype(G, xp.float64)
            self._R += xp.astype(R, xp.float64)
        counts = weights.counts
        self.weight += D.shape[0] if counts is None else float(xp.sum(counts, dtype=xp.float64))

    @property
    def equations(self) -> NormalEquations:
        """The sums so far, with both triangles of the Gram."""
        return NormalEquations(symmetric(self._G), self._R)


def losses_by_layer(
    depth: Depth, verdict: Verdict, rows: Rows, _number: int
) -> list[tuple[Array, Array | None]]:
    """Return losses by the newest layer and sample weights of a part's rows, block by block."""
    found = []
    for place in row_blocks(rows.X, rows.X.shape[0], 2 * depth.width):
        seen = depth.walk(rows, place)
        losses = verdict.losses(seen.D, rows, place, seen.omega)
        found.append((losses, rows.weights.some(place).counts))
    return found


def input_moments(inputs: Inputs, rows: Rows, _number: int) -> Moments:
    """Return weight, mean and scatter of the inputs over a part's rows, by their sample weights."""
    X, weights = rows.X, rows.weights
    places = row_blocks(X, X.shape[0], inputs.width)
    each = (Moments.of(inputs.apply(X[at, :]), weights.some(at).counts) for at in places)
    return reduce(operator.add, each)
