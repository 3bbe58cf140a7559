"""Scale inputs by how much the classes depend on them, as a throw-away layer sees it."""

from __future__ import annotations

import dataclasses

import numpy

from .._arrays import array_namespace, device, from_numpy, ignore_overflow, row_blocks
from .._inputs.inputs import Inputs
from .._inputs.rows import Rows, to_host
from .._threads import suitable_threads
from .draws import Draws, Recipe
from .grow import Grown, Problem, grow, start
from .layers import fill_inputs, new_features
from .records import Settings

GRADIENT_WIDTH = 256  # neurons of the throw-away layer
OWN_CHILD = 2**32 - 1  # of the seed: the number of a layer that no network has


def with_gradient_factors(inputs: Inputs, rows: Rows, seed: int) -> Inputs:
    """Return inputs whose columns are multiplied by the root mean squared gradient of the classes' scores.

    The scores are those of one relu layer that is thrown away, with a penalty chosen by leave-one-out. The
    columns that come from one column of X share the mean of their squares, and all squares have the mean 1.
    """
    with ignore_overflow(), suitable_threads(rows.X, GRADIENT_WIDTH + inputs.width + 1, GRADIENT_WIDTH):
        squares = mean_squared_gradients(_throw_away_layer(inputs, rows, seed), rows)
    places = numpy.unique(inputs.source, return_inverse=True)[1]
    squares = (numpy.bincount(places, squares) / numpy.bincount(places))[places]
    mean = squares.mean()
    if not (numpy.isfinite(mean) and mean > 0):  # no input matters, so none matters more than another
        return inputs
    return dataclasses.replace(inputs, factors=from_numpy(numpy.sqrt(squares / mean), rows.X))


def _throw_away_layer(inputs: Inputs, rows: Rows, seed: int) -> Grown:
    n = GRADIENT_WIDTH
    child = numpy.random.SeedSequence(seed, spawn_key=(OWN_CHILD,)).generate_state(1)
    settings = Settings(1, n, "relu", True, lam=None, gamma=1.0, alpha=0.0, omega_r=1.0, p=0.0)
    D = new_features(rows.X.shape[0], rows.X, n, inputs)
    fill_inputs(D, rows.X, inputs)
    draws = Draws(Recipe(int(child[0]), n, inputs.source), rows.X)
    return next(grow(start(D, settings), Problem(rows.targets, rows.weights, draws)))


def mean_squared_gradients(grown: Grown, rows: Rows) -> numpy.ndarray:
    """mean_i sum_c (ds_ic / dx_j)^2 of a first relu layer, for each input j, (d,).

    The gradient is B + V diag(a_i) A, with A and B the read-out's rows of H and of X, V = W scale, and a_i
    which neurons are active in row i. Its mean square needs of the rows only how often two neurons are
    active together, which is summed by blocks.
    """
    D, hidden = grown.D, grown.hidden
    xp, n, m = array_namespace(D), hidden.W.shape[1], grown.D.shape[0]
    counts = rows.weights.counts_of(m, D)
    together = xp.zeros((n, n), dtype=D.dtype, device=device(D))
    for block in row_blocks(D, m, 2 * n):
        active = xp.astype(D[block, :n] > 0, D.dtype)
        together += xp.matrix_transpose(active * counts[block, None]) @ active
    # small matrices from here on: the host's float64 gives every library the same factors
    beta, V = (
        to_host(grown.readout.beta[0, ...]).astype(float),
        to_host(hidden.W * hidden.scale).astype(float),
    )
    shares = to_host(together).astype(float) / float(xp.sum(counts, dtype=xp.float64))
    A, B = beta[:n], beta[n:-1]
    of_direct = numpy.sum(B * B, axis=1)
    of_both = 2 * numpy.sum(V * numpy.diagonal(shares) * (B @ A.T), axis=1)
    of_hidden = numpy.sum((V @ (shares * (A @ A.T))) * V, axis=1)
    return numpy.maximum(of_direct + of_both + of_hidden, 0.0)
