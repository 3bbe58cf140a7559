"""The random layers: everything in them that is drawn.

Layer l is child l of the seed, and each kind of number in it is a child of that: a prefix of a deep network
is the shallower network, the kinds are independent, and a setting that draws more changes nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy

from .._inputs.chosen import strata
from .._inputs.inputs import Inputs
from .._inputs.rows import Rows, to_host, weights_on_host
from .._seam.arrays import Array, array_namespace, converted, from_numpy, take_rows
from .records import PAPER_DRAWS, DrawSettings, Settings


def pair_differences(inputs: Inputs, rows: Rows, u: numpy.ndarray) -> numpy.ndarray:
    """Return a - b (pairs, d) of encoded rows a and b, drawn by the numbers u (2, pairs) in [0, 1).

    The draw happens on the host, and only the rows that are drawn are encoded.
    """
    first, second = draw_pairs(rows, u)
    integers = array_namespace(rows.X).int64
    chosen = (take_rows(rows.X, from_numpy(some, rows.X, integers)) for some in (first, second))
    a, b = (to_host(inputs.apply(some)).astype(float) for some in chosen)
    difference: numpy.ndarray = a - b
    return difference


def draw_pairs(rows: Rows, u: numpy.ndarray) -> tuple[numpy.ndarray, numpy.ndarray]:
    """Draw pairs of rows of different classes: any row, and any row of the other classes, by their counts.

    Rows with values belong to groups of like values instead of classes.

    The rows stand in an order that their values decide, and a row of weight 2 has two places in it, so
    neither the order of the file nor repeating a row instead of weighing it changes the draw.
    """
    codes = strata(rows)
    counts = weights_on_host(rows.weights.counts, len(codes))
    order = numpy.lexsort((rows.hashes, codes))
    codes, ends = codes[order], numpy.cumsum(counts[order])
    # a class may have no rows where a fold has them all
    last = numpy.searchsorted(codes, numpy.arange(codes.max() + 1), side="right")
    class_ends = numpy.concatenate([[0.0], ends])[last]
    class_starts = numpy.concatenate([[0.0], class_ends[:-1]])

    def at(place: numpy.ndarray) -> numpy.ndarray:
        return numpy.minimum(numpy.searchsorted(ends, place, side="right"), len(ends) - 1)

    first = at(u[0] * ends[-1])
    start, weight = class_starts[codes[first]], (class_ends - class_starts)[codes[first]]
    place = u[1] * (ends[-1] - weight)
    second = at(numpy.where(place < start, place, place + weight))  # jump over the first row's class
    return order[first], order[second]


DRAW_SCHEME = 1  # the number of the rule in `draw`; a network remembers it beside its seed
# The children of a layer. W is 0 and b is 1.
N_INPUTS, WHICH_INPUTS, WHICH_HIDDEN, SCALES, SHIFTS, PAIRS = range(2, 8)


def uniform(seed: int, child: tuple[int, ...], size: int) -> numpy.ndarray:
    """Draw numbers in [0, 1) that every version of NumPy repeats bit for bit.

    NumPy keeps its bit generators and SeedSequence the same for ever, but not what `Generator` makes of
    the bits. The top 53 bits times 2^-53 are what `Generator.random` makes of them today.
    """
    bits = numpy.random.PCG64(numpy.random.SeedSequence(seed, spawn_key=child)).random_raw(size)
    bits >>= numpy.uint64(11)
    numbers = bits.view(numpy.float64)  # in place: fresh memory takes longer than the draws
    numbers[...] = bits
    numbers *= 2.0**-53
    return numbers


def draw(seed: int, layer: int, n_inputs: int, n_hidden: int) -> tuple[numpy.ndarray, numpy.ndarray]:
    """Draw W ~ U[-1, 1] of shape (n_inputs, n_hidden) and b ~ U[0, 1] of one layer (Eq. 5, 6)."""
    W = uniform(seed, (layer, 0), n_inputs * n_hidden)
    W *= 2
    W -= 1
    return W.reshape(n_inputs, n_hidden), uniform(seed, (layer, 1), n_hidden)


@dataclass(frozen=True, slots=True, eq=False)
class Recipe:
    """What decides the random layers of one network."""

    seed: int
    n_hidden: int
    source: tuple[int, ...]  # the column of X that each input comes from, as in `Inputs`
    settings: DrawSettings = PAPER_DRAWS
    pairs: numpy.ndarray | None = None  # (pairs, d), differences of rows: weights of layer 0's first neurons

    @classmethod
    def of(cls, settings: Settings, seed: int, inputs: Inputs, rows: Rows) -> Recipe:
        """Return the recipe of a network of known width, and draw its pairs of training rows."""
        recipe = cls(seed, settings.n_hidden, inputs.source, settings.draws)
        n_pairs = round(settings.draws.pair_share * settings.n_hidden)
        if n_pairs == 0:
            return recipe
        u = uniform(seed, (0, PAIRS), 2 * n_pairs).reshape(2, n_pairs)
        return replace(recipe, pairs=pair_differences(inputs, rows, u))


@dataclass(frozen=True, slots=True, eq=False)
class Drawn:
    """The random numbers of one layer. gamma and alpha are None where all neurons have the same."""

    W: Array  # (inputs, n)
    b: Array  # (n,)
    gamma: Array | None = None  # (n,)
    alpha: Array | None = None  # (n,)


def draw_layer(recipe: Recipe, layer: int) -> Drawn:
    """Draw all numbers of one layer, on the host."""
    seed, n, s = recipe.seed, recipe.n_hidden, recipe.settings
    d = len(recipe.source)
    W, b = draw(seed, layer, d if layer == 0 else n + d, n)
    seen = _seen(recipe, layer)
    if seen is not None:
        W *= seen
    if layer == 0 and recipe.pairs is not None:
        _write_pairs(W, recipe.pairs, seen)
    gamma = alpha = None
    if s.scales is not None:
        low, high = s.scales
        gamma = low * (high / low) ** uniform(seed, (layer, SCALES), n)
    if s.shifts is not None:
        low, high = s.shifts
        alpha = low + (high - low) * uniform(seed, (layer, SHIFTS), n)
    return Drawn(W, b, gamma, alpha)


def _seen(recipe: Recipe, layer: int) -> numpy.ndarray | None:
    """Draw which inputs each neuron sees, as a mask (inputs, n); None where all neurons see all."""
    seed, n, s = recipe.seed, recipe.n_hidden, recipe.settings
    seen = numpy.ones((len(recipe.source), n), dtype=bool)
    if s.inputs_per_neuron is not None:
        places = numpy.unique(recipe.source, return_inverse=True)[1]
        n_sources = int(places.max()) + 1
        counts = 1 + uniform(seed, (layer, N_INPUTS), n) * min(s.inputs_per_neuron, n_sources)
        keys = uniform(seed, (layer, WHICH_INPUTS), n_sources * n).reshape(n_sources, n)
        seen = _smallest(keys, counts.astype(int))[places, :]  # all columns of a source together
    if layer == 0:
        return None if s.inputs_per_neuron is None else seen
    if s.inputs_per_neuron is None and s.hidden_per_neuron is None:
        return None
    hidden = numpy.ones((n, n), dtype=bool)
    if s.hidden_per_neuron is not None and s.hidden_per_neuron < n:
        keys = uniform(seed, (layer, WHICH_HIDDEN), n * n).reshape(n, n)
        hidden = _smallest(keys, numpy.full(n, s.hidden_per_neuron))
    return numpy.concatenate([hidden, seen])


def _smallest(keys: numpy.ndarray, counts: numpy.ndarray) -> numpy.ndarray:
    """Mark the smallest keys of each column, as many as `counts` says: a random choice without repetition."""
    most = int(counts.max())
    first = numpy.argpartition(keys, most - 1, axis=0)[:most]  # few of many, so they alone are sorted
    order = numpy.argsort(numpy.take_along_axis(keys, first, axis=0), axis=0)
    first = numpy.take_along_axis(first, order, axis=0)
    marked = numpy.zeros(keys.shape, dtype=bool)
    numpy.put_along_axis(marked, first, numpy.arange(most)[:, None] < counts, axis=0)
    return marked


def _write_pairs(W: numpy.ndarray, pairs: numpy.ndarray, seen: numpy.ndarray | None) -> None:
    """Write a - b over |a - b|^2 of each pair into the first columns of W, as far as a neuron sees it.

    So the two rows are 1 apart in the projection, as in SWIM (Bolager et al., 2023). Rows that are the same
    in all that the neuron sees leave its random weights.
    """
    first = W[:, : pairs.shape[0]]
    weights = pairs.T if seen is None else pairs.T * seen[:, : pairs.shape[0]]
    with numpy.errstate(all="ignore"):  # what is not finite is left out
        weights = weights / numpy.sum(weights * weights, axis=0)
    usable = numpy.isfinite(weights).all(axis=0)
    first[:, usable] = weights[:, usable]


class Draws:
    """The random layers of one recipe, on the device of `like`."""

    def __init__(
        self, recipe: Recipe, like: Array, keep: bool = False, shared: dict[int, Drawn] | None = None
    ) -> None:
        self._recipe, self._like, self._keep = recipe, like, keep
        self._drawn = {} if shared is None else shared

    def for_rows(self, settings: Settings, inputs: Inputs, rows: Rows) -> Draws:
        """Return the same random layers for other rows, whose pairs are other weights of the first layer."""
        recipe = Recipe.of(settings, self._recipe.seed, inputs, rows)
        shared = {l: drawn for l, drawn in self._drawn.items() if l > 0 or recipe.pairs is None}
        return Draws(recipe, self._like, self._keep, shared)

    def prepare(self, layer: int) -> None:
        """Draw a layer ahead, while a GPU still works on the layer before."""
        if layer not in self._drawn:
            drawn = draw_layer(self._recipe, layer)
            self._drawn[layer] = converted(drawn, lambda values: from_numpy(values, self._like))

    def __call__(self, layer: int) -> Drawn:
        """Return the numbers of a layer. With `keep` they stay, for other networks that share them."""
        self.prepare(layer)
        return self._drawn[layer] if self._keep else self._drawn.pop(layer)
