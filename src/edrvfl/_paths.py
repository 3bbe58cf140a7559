"""Many networks at once: hidden settings times read-outs, sharing all that the algebra lets them share.

Networks that differ only in lambda and omega_r have the same features until pruning parts them, so one
projection, one set of statistics and one Gram serve them all. The rows to be scored travel in the same
matrix as the training rows, so nothing of a network has to be kept.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy

from ._activations import ACTIVATIONS
from ._arrays import (
    Array,
    aligned,
    array_namespace,
    block_bytes,
    device,
    empty_rows,
    from_numpy,
    ignore_overflow,
    on_accelerator,
    product,
)
from ._layers import draw, input_scaling
from ._network import Settings, direct_links, fill_inputs, generate, one_hot, predicted, unit_shares
from ._pruning import importance, survivor_mask, survivors
from ._readout import ridge, ridge_path
from ._weighting import next_weights


class Draws:
    """Random layers of one seed and width, drawn once for all the networks that share them."""

    def __init__(self, seed: int, n_inputs: int, n_hidden: int, like: Array) -> None:
        self._seed, self._d, self._n, self._like = seed, n_inputs, n_hidden, like
        self._drawn: dict[int, tuple[Array, Array]] = {}

    def __call__(self, layer: int) -> tuple[Array, Array]:
        if layer not in self._drawn:
            rows = self._d if layer == 0 else self._n + self._d
            W, b = draw(self._seed, layer, rows, self._n)
            self._drawn[layer] = from_numpy(W, self._like), from_numpy(b, self._like)
        return self._drawn[layer]


@dataclass(frozen=True, slots=True, eq=False)
class _Rows:
    """The problem: m training rows, then the rows to be scored."""

    y: Array  # (m,)
    Y: Array  # (m, k)
    s: Array | None  # (m,), weights that count rows
    base: Array | None  # (m,), s times the costs
    counts: Array  # (m,), s or ones
    left_out: Array | None  # (m,), for leave-one-out scores
    draws: Draws
    scores: Array  # (networks, layers, new rows, k): the answer


def path_scores(
    X: Array,
    y: Array,
    n_classes: int,
    X_new: Array,
    settings: Settings,
    draws: Draws,
    s: Array | None = None,
    cost: Array | None = None,
    standardize: bool = True,
) -> Array:
    """Scores of every layer of every network for the rows of X_new.

    Parameters
    ----------
    X, y, n_classes, s, cost, standardize : as in `_network.fit`
    X_new : array of shape (v, d)
    settings : Settings with lam and omega_r of shape (..., r), and gamma, alpha and p of shape (...):
        r read-outs for each hidden setting; off a GPU there is one hidden setting, of shape ()
    draws : Draws of the seed and width

    Returns
    -------
    scores : array of shape (..., r, layers, v, k)
    """
    xp = array_namespace(X)
    (m, d), v = X.shape, X_new.shape[0]
    stack, r = settings.lam.shape[:-1], settings.lam.shape[-1]
    n_networks = math.prod(stack) * r
    shape = (n_networks, settings.n_layers, v, n_classes)
    counts = xp.ones((m,), dtype=X.dtype, device=device(X)) if s is None else s
    scores = xp.empty(shape, dtype=X.dtype, device=device(X))
    base = product(s, cost)
    left_out = unit_shares(counts) if settings.weighs_by_loo else None
    rows = _Rows(y, one_hot(y, n_classes, X), s, base, counts, left_out, draws, scores)
    with ignore_overflow():
        D = empty_rows((*stack, m + v, settings.n_hidden + d + 1), like=X)
        scaling = input_scaling(X, s) if standardize else None
        fill_inputs(D[..., :m, :], X, scaling)
        fill_inputs(D[..., m:, :], X_new, scaling)
        first = slice(settings.n_hidden, settings.n_hidden + d)
        _grow(rows, settings, slice(0, n_networks), 0, D, D, first, None, None)
    return xp.reshape(scores, (*stack, r, *shape[1:]))


def _grow(
    rows: _Rows,
    settings: Settings,
    members: slice,
    first: int,
    source: Array,
    D: Array,
    inputs: Array | slice,
    mask: Array | None,
    omega: Array | None,
) -> None:
    """Algorithm 1 from layer `first` on, for read-outs that share the features of D.

    The first layer's input is read from `source`, later ones from D itself.
    """
    xp = array_namespace(D)
    m, n, r = rows.y.shape[0], settings.n_hidden, settings.lam.shape[-1]
    d = D.shape[-1] - n - 1
    g = ACTIVATIONS[settings.activation]
    for l in range(first, settings.n_layers):
        W, b = rows.draws(l)
        if mask is not None:
            W = W * mask[..., None]
        elif not isinstance(inputs, slice):
            W = xp.take(W, inputs, axis=0)
        generate(D, inputs, W, b, settings, g, rows.s, m, source)
        source = D
        left_out = rows.left_out if l + 1 < settings.n_layers else None
        beta, loo = _betas(D[..., :m, :], rows, settings.lam, omega, left_out)
        scores = _scores(D, beta)
        answer = xp.reshape(scores[..., m:, :], (members.stop - members.start, *rows.scores.shape[2:]))
        rows.scores[members, l, ...] = answer
        if l + 1 == settings.n_layers:
            return
        if numpy.any(settings.omega_r != 1):
            right = predicted(scores[..., :m, :] if loo is None else loo) == rows.y
            omega = next_weights(right, rows.counts, settings.omega_r)
        inputs = slice(0, n + d)
        if numpy.any(numpy.asarray(settings.p) > 0):
            theta = importance(beta[..., :n, :])  # (..., r, n)
            if r > 1:
                _part(rows, settings, members, l + 1, D, theta, omega)
                return
            if mask is None and D.ndim == 2:
                inputs = direct_links(survivors(theta[0, :], float(settings.p)), n, d)
            else:
                mask = _mask(theta[..., 0, :], settings.p, d)


def _part(
    rows: _Rows,
    settings: Settings,
    members: slice,
    first: int,
    D: Array,
    theta: Array,
    omega: Array | None,
) -> None:
    """Pruning gives every read-out features of its own: a stack on a GPU, one by one elsewhere."""
    n, r = settings.n_hidden, settings.lam.shape[-1]
    d = D.shape[-1] - n - 1
    if not on_accelerator(D):
        own = empty_rows(D.shape, like=D)
        own[..., n:] = D[..., n:]
        for i in range(r):
            alone = replace(settings, lam=settings.lam[i : i + 1], omega_r=settings.omega_r[i : i + 1])
            inputs = direct_links(survivors(theta[i, :], float(settings.p)), n, d)
            weights = None if omega is None else omega[i : i + 1, :]
            _grow(
                rows,
                alone,
                slice(members.start + i, members.start + i + 1),
                first,
                D,
                own,
                inputs,
                None,
                weights,
            )
        return

    def of_each(value: Any) -> numpy.ndarray:
        return numpy.repeat(numpy.asarray(value)[..., None], r, axis=-1)

    alone = replace(
        settings,
        lam=settings.lam[..., None],
        omega_r=settings.omega_r[..., None],
        gamma=of_each(settings.gamma),
        alpha=of_each(settings.alpha),
        p=of_each(settings.p),
    )
    own = empty_rows((*settings.lam.shape, *D.shape[-2:]), like=D)
    own[..., n:] = D[..., None, :, n:]
    mask = _mask(theta, alone.p, d)
    weights = None if omega is None else omega[..., None, :]
    _grow(rows, alone, members, first, D[..., None, :, :], own, slice(0, n + d), mask, weights)


def _betas(
    D: Array, rows: _Rows, lam: Any, omega: Array | None, left_out: Array | None
) -> tuple[Array, Array | None]:
    """Output weights (..., r, c, k) and, where asked for, leave-one-out scores (..., r, m, k).

    Alone, a read-out has nothing to share and weighs its rows directly.
    """
    xp = array_namespace(D)
    if lam.shape[-1] > 1:
        readout = ridge_path(D, rows.Y, lam, omega, rows.base, left_out)
        beta, loo = readout.beta, readout.loo
    else:
        weights = product(None if omega is None else omega[..., 0, :], rows.base)
        readout = ridge(D, rows.Y, lam[..., 0], weights, left_out)
        beta = xp.expand_dims(readout.beta, axis=-3)
        loo = None if readout.loo is None else xp.expand_dims(readout.loo, axis=-3)
    if not bool(xp.all(xp.isfinite(beta))):
        raise ValueError(
            f"The hidden features of some networks overflow {D.dtype}. Set renormalize=True and "
            "standardize=True, use fewer layers, or rescale the input columns."
        )
    return beta, loo


def _scores(D: Array, beta: Array) -> Array:
    """D beta for all read-outs in one product: (..., rows, c) times (..., r, c, k) -> (..., r, rows, k)."""
    xp = array_namespace(D)
    *stack, r, c, k = beta.shape
    side_by_side = xp.reshape(xp.moveaxis(beta, -3, -2), (*stack, c, r * k))
    together = D @ side_by_side
    return xp.moveaxis(xp.reshape(together, (*D.shape[:-1], r, k)), -2, -3)


def _mask(theta: Array, p: Any, d: int) -> Array:
    """0/1 factors of the rows of the next W: pruned neurons 0, the direct links 1."""
    xp = array_namespace(theta)
    ones = xp.ones((*theta.shape[:-1], d), dtype=theta.dtype, device=device(theta))
    return xp.concat([survivor_mask(theta, p), ones], axis=-1)


def bytes_needed(m: int, v: int, d: int, k: int, settings: Settings, itemsize: int, gpu: bool) -> int:
    """Peak memory of `path_scores` with these settings, and of judging its answer by slices of networks.

    From the shapes alone; X and X_new are included.
    """
    n, r, layers = settings.n_hidden, settings.lam.shape[-1], settings.n_layers
    f = math.prod(settings.lam.shape[:-1])
    rows, c = m + v, n + d + 1
    side, dual = min(c, m), c > m
    parted = bool(numpy.any(numpy.asarray(settings.p) > 0)) and layers > 1
    networks = f * r
    abreast = networks if gpu else 1  # elsewhere read-outs come one after another
    matrices = (f + (abreast if r > 1 else 0) * parted) * rows * aligned(c) + (f * m * c if dual else 0)
    weights = (layers + (3 * abreast if gpu else 1) * parted) * (n + d + 1) * n
    systems = (4 * abreast + 2) * side * side
    scores = networks * (3 * rows * k + 6 * m)
    answers = networks * layers * v * k
    if settings.weighs_by_loo:
        systems += 2 * abreast * side * side * dual
        scores += 2 * networks * m * k
    block = min(block_bytes(gpu, abreast * c * itemsize), abreast * rows * c * itemsize)
    growing = itemsize * (matrices + weights + systems + scores) + 3 * block
    judged = min(block_bytes(gpu, layers * v * k * itemsize, least=1), answers * itemsize)
    return itemsize * (answers + rows * (d + k)) + max(growing, 5 * judged)
