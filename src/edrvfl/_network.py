"""Algorithm 1: fit a network, or a stack of networks, layer by layer; score rows with it."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy

from ._activations import ACTIVATIONS
from ._arrays import (
    Array,
    array_namespace,
    device,
    empty_rows,
    from_numpy,
    ignore_overflow,
    product,
    row_blocks,
    take_columns,
)
from ._layers import (
    Scaling,
    activate,
    draw,
    input_scaling,
    moments,
    project,
    renormalisation,
    scale_inputs,
)
from ._pruning import importance, n_pruned, survivor_mask, survivors
from ._readout import LooReadout, Readout, ridge, ridge_by_loo
from ._weighting import next_weights


@dataclass(frozen=True, slots=True)
class Settings:
    """What a network is made of, in the paper's symbols.

    lam, gamma, alpha, omega_r and p may be NumPy arrays of shape (k,): a stack of k networks that share
    their width, their depth, their activation and their random draws. Of one network lam may be None:
    leave-one-out chooses it, layer by layer.
    """

    n_layers: int
    n_hidden: int
    activation: str
    renormalize: bool
    lam: Any
    gamma: Any
    alpha: Any
    omega_r: Any
    p: Any
    weight_from: str = "train"  # or "loo": whose predictions decide which samples are right (Eq. 12-14)

    @property
    def stack(self) -> tuple[int, ...]:
        """() for one network, (k,) for a stack of k."""
        return numpy.broadcast(self.lam, self.gamma, self.alpha, self.omega_r, self.p).shape

    @property
    def weighs_by_loo(self) -> bool:
        """Whether the read-outs' leave-one-out scores are needed for the next layer's weights."""
        return self.weight_from == "loo" and bool(numpy.any(numpy.asarray(self.omega_r) != 1))


class _MovesBetweenLibraries:
    """Records whose arrays scikit-learn's mover can bring to another array library or device."""

    __slots__ = ()

    def __sklearn_array_api_convert__(self, converter: Callable[[Array], Array]) -> Any:
        return _converted(self, converter)


def _converted(value: Any, converter: Callable[[Array], Array]) -> Any:
    if isinstance(value, tuple):
        return tuple(_converted(v, converter) for v in value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = [f.name for f in dataclasses.fields(value)]
        return type(value)(**{f: _converted(getattr(value, f), converter) for f in fields})
    return converter(value) if hasattr(value, "__dlpack__") else value


@dataclass(frozen=True, slots=True, eq=False)
class FittedLayer(_MovesBetweenLibraries):
    """One hidden layer with its read-out: H = g(scale * (A W) + shift), scores = [H, X, 1] beta."""

    inputs: Array | slice  # which columns of the previous [H, X, 1] are A
    W: Array  # (inputs, n)
    scale: Array | None  # (n,); None without re-normalisation
    shift: Array  # (n,)
    beta: Array  # (n + d + 1, k)


@dataclass(frozen=True, slots=True, eq=False)
class Network(_MovesBetweenLibraries):
    """A fitted network: all that is needed to score rows."""

    activation: str
    n_hidden: int
    scaling: Scaling | None
    layers: tuple[FittedLayer, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """What fitting gives: the network, and one figure a layer."""

    network: Network
    accuracies: tuple[Any, ...]  # training accuracy, weighted by s; a float, or an array of the stack
    fell_back: tuple[Any, ...]  # whether the Gram was numerically singular
    kept: tuple[Any, ...]  # how many neurons feed the next layer
    lam: tuple[Any, ...]  # the penalty, given or chosen


def fit(
    X: Array,
    y: Array,
    n_classes: int,
    settings: Settings,
    seed: int,
    s: Array | None = None,
    cost: Array | None = None,
    standardize: bool = True,
    on_layer: Callable[[int, Any, Callable[[], Network]], bool] | None = None,
) -> Fit:
    """Algorithm 1.

    Parameters
    ----------
    X : array of shape (m, d), finite
    y : integer array of shape (m,), classes as 0 .. n_classes - 1
    settings : Settings of one network or of a stack
    seed : int, of the random layers
    s : array of shape (m,), positive sample weights, which count rows; None for ones
    cost : array of shape (m,), positive factors of the squared errors alone; None for ones
    on_layer : called after each layer with its index, its training accuracy and a function that gives the
        network so far; True ends the fit there
    """
    xp = array_namespace(X)
    m, d = X.shape
    n, stack = settings.n_hidden, settings.stack
    g = ACTIVATIONS[settings.activation]
    ones = xp.ones((m,), dtype=X.dtype, device=device(X))
    counts = ones if s is None else s
    Y = one_hot(y, n_classes, X)

    with ignore_overflow():
        scaling = input_scaling(X, s) if standardize else None
        D = empty_rows((*stack, m, n + d + 1), like=X)  # [H, X, 1], the only matrix of this size
        fill_inputs(D, X, scaling)

        inputs: Array | slice = slice(n, n + d)  # the first layer sees X alone
        mask = omega = None
        left_out = unit_shares(counts) if settings.weighs_by_loo or settings.lam is None else None
        layers: list[FittedLayer] = []
        accuracies, fell_back, kept, lams = [], [], [], []

        def network() -> Network:
            return Network(settings.activation, n, scaling, tuple(layers))

        draws = (draw(seed, l, d if l == 0 else n + d, n) for l in range(settings.n_layers))
        drawn = next(draws)
        for l in range(settings.n_layers):
            W, b = (from_numpy(v, X) for v in drawn)
            if mask is not None:  # a stack: members keep different counts, so rows become zero
                W = W * mask[..., None]
            elif not isinstance(inputs, slice):
                W = xp.take(W, inputs, axis=0)
            scale, shift = generate(D, inputs, W, b, settings, g, s)
            drawn = next(draws, drawn)  # for the next layer, while a GPU still works on this one
            weights = product(s, cost, omega)
            readout: Readout | LooReadout
            if settings.lam is None:
                readout = ridge_by_loo(D, Y, y, weights, left_out)
            else:
                last = l + 1 == settings.n_layers
                readout = ridge(D, Y, settings.lam, weights, None if last else left_out)
            if not bool(xp.all(xp.isfinite(readout.beta))):
                raise ValueError(
                    f"The hidden features overflow {X.dtype} in layer {l + 1}. Set renormalize=True and "
                    "standardize=True, use fewer layers, or rescale the input columns."
                )
            layers.append(FittedLayer(inputs, W, scale, shift, readout.beta))

            right = predicted(D @ readout.beta) == y
            accuracy = xp.sum(xp.where(right, counts, 0 * counts), axis=-1) / xp.sum(counts)
            accuracies.append(_figure(accuracy, float))
            fell_back.append(_figure(readout.fell_back, bool))
            lams.append(readout.lam if isinstance(readout, LooReadout) else settings.lam)
            drop = n_pruned(n, settings.p)
            kept.append(_figure(n - drop, int))
            if on_layer is not None and on_layer(l, accuracies[-1], network):
                break

            if isinstance(readout, LooReadout):
                right = readout.right if settings.weighs_by_loo else right
            elif readout.loo is not None:
                right = predicted(readout.loo) == y
            if numpy.any(numpy.asarray(settings.omega_r) != 1):
                omega = next_weights(right, counts, settings.omega_r)
            inputs = slice(0, n + d)
            if numpy.any(drop > 0):
                theta = importance(readout.beta[..., :n, :])
                if stack:
                    ones_for_X = xp.ones((*stack, d), dtype=X.dtype, device=device(X))
                    mask = xp.concat([survivor_mask(theta, settings.p), ones_for_X], axis=-1)
                else:
                    inputs = direct_links(survivors(theta, settings.p), n, d)

    return Fit(network(), tuple(accuracies), tuple(fell_back), tuple(kept), tuple(lams))


def layer_scores(network: Network, X: Array) -> Array:
    """Scores of every layer for the rows of X (r, d), as (layers, ..., r, k)."""
    xp = array_namespace(X)
    r, d = X.shape
    n, g = network.n_hidden, ACTIVATIONS[network.activation]
    stack = network.layers[0].beta.shape[:-2]
    with ignore_overflow():
        D = empty_rows((*stack, r, n + d + 1), like=X)
        fill_inputs(D, X, network.scaling)
        scores = []
        for layer in network.layers:
            H = D[..., :n]
            project(take_columns(D, layer.inputs), layer.W, out=H)
            activate(H, layer.scale, layer.shift, g)
            scores.append(D @ layer.beta)
    scores = xp.stack(scores)
    if not bool(xp.all(xp.isfinite(scores))):
        raise ValueError(
            f"The hidden features of some rows overflow {X.dtype}: their values are far larger than "
            "those seen in fit. Fit with standardize=True, or rescale the input columns."
        )
    return scores


def row_numbers(network: Network) -> int:
    """How many numbers `layer_scores` holds for one row."""
    return int(numpy.prod(network.layers[0].beta.shape[:-1]))


def fill_inputs(D: Array, X: Array, scaling: Scaling | None) -> None:
    """Write the direct links and the constant column of D = [H, X, 1]."""
    d = X.shape[1]
    for rows in row_blocks(X, *X.shape):
        D[..., rows, -d - 1 : -1] = scale_inputs(X[rows, :], scaling)
    D[..., -1] = 1.0


def generate(
    D: Array,
    inputs: Array | slice,
    W: Array,
    b: Array,
    settings: Settings,
    g: Callable[[Array], Array],
    s: Array | None,
    m: int | None = None,
    source: Array | None = None,
) -> tuple[Array | None, Array]:
    """Replace H in D = [H, X, 1] by the next layer's; return the neurons' scale and shift.

    The statistics are those of the first m rows (all by default), weighted by s. The layer's input is
    read from `source`, by default D itself.
    """
    *stack, n_rows, c = D.shape
    m = n_rows if m is None else m
    source = D if source is None else source
    H = D[..., : settings.n_hidden]
    blocks = list(row_blocks(D, m, c * math.prod(stack)))
    others = [slice(m + r.start, m + r.stop) for r in row_blocks(D, n_rows - m, c * math.prod(stack))]

    def projected(rows: slice) -> Array:
        Z = H[..., rows, :]
        project(take_columns(source[..., rows, :], inputs), W, out=Z)
        return Z

    scale, shift = None, b
    if settings.renormalize:
        parts = ((projected(rows), None if s is None else s[rows]) for rows in blocks)
        scale, shift = renormalisation(*moments(parts), b, settings.gamma, settings.alpha)
    for rows in others if settings.renormalize else blocks + others:
        projected(rows)
    for rows in blocks + others:
        activate(H[..., rows, :], scale, shift, g)
    return scale, shift


def direct_links(kept: Array, n: int, d: int) -> Array:
    """Columns of [H, X, 1] that feed the next layer: the kept neurons and all of X."""
    xp = array_namespace(kept)
    return xp.concat([kept, xp.arange(n, n + d, dtype=kept.dtype, device=device(kept))])


def predicted(scores: Array) -> Array:
    """The class of the largest score."""
    return array_namespace(scores).argmax(scores, axis=-1)


def unit_shares(s: Array) -> Array:
    """The share of its weight that a row loses when one unit of it is left out; all of it below one unit."""
    return array_namespace(s).clip(1 / s, None, 1.0)


def one_hot(y: Array, n_classes: int, like: Array) -> Array:
    """Targets Y (m, k) of 0 and 1."""
    return array_namespace(like).astype(y[:, None] == from_numpy(range(n_classes), like, y.dtype), like.dtype)


def _figure(value: Array, kind: type) -> Any:
    """A layer's figure as a plain number; an array for a stack."""
    return kind(value) if value.ndim == 0 else value
