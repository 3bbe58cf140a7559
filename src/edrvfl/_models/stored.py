"""A fitted network without what its seed gives: most of its memory are weights that can be drawn again.

A stored layer says which neurons feed it, and how they are re-normalised. Its weights are drawn when it is
read back. A checksum of them tells whether the draw gave what the network was fitted with.
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Annotated, Any

import numpy

from .._layers.draws import DRAW_SCHEME, Recipe, draw_layer
from .._layers.records import DrawSettings, HiddenLayer
from .._seam.arrays import Array
from .._seam.fields import Between, Places, floats
from .network import Network


@dataclass(frozen=True, slots=True, eq=False)
class StoredLayer:
    """A hidden layer whose weights are drawn again: everything else that decides its features."""

    # the neurons of the layer before that feed this one, in ascending order; None for all
    kept: Annotated[numpy.ndarray, Places("kept", ("n",))] | None
    scale: Annotated[numpy.ndarray, floats("n")] | None  # as in HiddenLayer
    shift: Annotated[numpy.ndarray, floats("n")]
    # the CRC-32 of W, row by row, as little-endian numbers of the network's precision
    checksum: Annotated[int, Between(0, 2**32 - 1)]
    # weights that came from training rows: W's first columns
    pairs: Annotated[numpy.ndarray, floats("width", "pairs")] | None = None
    # (inputs, n), only where the seed does not give the weights
    W: Annotated[numpy.ndarray, floats("inputs", "n")] | None = None


def checksum_of(W: numpy.ndarray) -> int:
    """Return the CRC-32 of a matrix, row by row, as little-endian numbers."""
    little = W if sys.byteorder == "little" else W.astype(W.dtype.newbyteorder("<"))
    contiguous: Any = numpy.ascontiguousarray(little)
    return zlib.crc32(contiguous)


def stored(network: Network) -> Network:
    """Return a network of NumPy arrays whose layers are stored ones; any other network as it is."""
    layers: tuple[Any, ...] = network.layers  # some may be stored ones
    if not all(isinstance(layer, HiddenLayer) and _can_be_stored(layer) for layer in layers):
        return network
    return replace(network, layers=tuple(_stored_layer(network, l) for l in range(len(layers))))


def restored(network: Network) -> Network:
    """Return a network with the weights of its stored layers drawn again. A wrong checksum is an error."""
    layers: list[Any] = list(network.layers)
    for l, layer in enumerate(layers):
        if isinstance(layer, StoredLayer):
            layers[l] = _restored_layer(network, l)
    return replace(network, layers=tuple(layers))


def networks_in(value: Any) -> Iterator[Network]:
    """Yield the networks within a fitted record: itself, its voters, that of its spread."""
    if isinstance(value, Network):
        yield value
    elif isinstance(value, tuple):
        for item in value:
            yield from networks_in(item)
    elif is_dataclass(value):
        for part in fields(value):
            yield from networks_in(getattr(value, part.name))


def with_networks(value: Any, change: Callable[[Network], Network]) -> Any:
    """Return a fitted record with the networks within it changed; one without any as it is."""
    if isinstance(value, Network):
        return change(value)
    if isinstance(value, tuple):
        found = tuple(with_networks(item, change) for item in value)
        return found if any(a is not b for a, b in zip(found, value, strict=True)) else value
    if not is_dataclass(value) or isinstance(value, type):
        return value
    parts = {part.name: getattr(value, part.name) for part in fields(value)}
    changed = {name: with_networks(part, change) for name, part in parts.items()}
    changed = {name: part for name, part in changed.items() if part is not parts[name]}
    return replace(value, **changed) if changed else value


def drawn_bytes(network: Network) -> int:
    """Return how many bytes are held at most while the weights of the stored layers are drawn."""
    n, d, size = network.n_hidden, network.inputs.width, network.readouts[0].dtype.itemsize
    inputs, draws = [_n_inputs(network, l) for l in range(len(network.layers))], network.draws
    # the widest layer is drawn in float64 before its rows are taken
    widest = d if len(inputs) == 1 else n + d
    # a random choice of inputs takes their keys, a copy of these, their order, and what is chosen
    chosen = (d if draws.inputs_per_neuron else 0) + (widest - d if draws.hidden_per_neuron else 0)
    masks = 24 * chosen + (3 * widest if draws.inputs_per_neuron or draws.hidden_per_neuron else 0)
    return n * (size * sum(inputs) + 8 * widest + masks)


def _n_inputs(network: Network, l: int) -> int:
    if l == 0:
        return network.inputs.width
    layer: Any = network.layers[l]
    hidden = network.n_hidden if layer.kept is None else len(layer.kept)
    return int(hidden + network.inputs.width)


def _can_be_stored(layer: HiddenLayer) -> bool:
    parts = (layer.W, layer.shift, *([] if layer.scale is None else [layer.scale]))
    return all(isinstance(part, numpy.ndarray) for part in parts)


def _stored_layer(network: Network, l: int) -> Any:
    layer, n, d = network.layers[l], network.n_hidden, network.inputs.width
    kept: numpy.ndarray | None = None
    if not isinstance(layer.inputs, slice):
        indices = numpy.asarray(layer.inputs)
        kept, rest = indices[: len(indices) - d].copy(), indices[len(indices) - d :]
        if l == 0 or not numpy.array_equal(rest, numpy.arange(n, n + d)):
            return layer
    elif layer.inputs != _all_inputs(network, l):
        return layer
    of_rows = round(network.draws.pair_share * n) if l == 0 else 0
    pairs = layer.W[:, :of_rows].copy() if of_rows else None
    found = StoredLayer(kept, layer.scale, layer.shift, checksum_of(layer.W), pairs)
    same = network.draw_scheme == DRAW_SCHEME and numpy.array_equal(_drawn(network, l, found), layer.W)
    return found if same else replace(found, pairs=None, W=layer.W)


def _restored_layer(network: Network, l: int) -> HiddenLayer:
    layer: Any = network.layers[l]
    W = _drawn(network, l, layer) if layer.W is None else layer.W
    if checksum_of(W) != layer.checksum:
        raise ValueError(
            f"The weights that seed {network.seed} gives for layer {l + 1} are not those that the network "
            "was fitted with. It was stored by a NumPy whose random numbers differ from those of NumPy "
            f"{numpy.__version__}, or it was changed since. Load it with the NumPy that stored it, or fit "
            "again."
        )
    inputs: Array | slice = _all_inputs(network, l)
    if layer.kept is not None:
        n, d = network.n_hidden, network.inputs.width
        inputs = numpy.concatenate([layer.kept, numpy.arange(n, n + d, dtype=layer.kept.dtype)])
    return HiddenLayer(inputs, W, layer.scale, layer.shift)


def _all_inputs(network: Network, l: int) -> slice:
    """Return the columns of [H, X, 1] that a layer reads if no neuron was pruned."""
    n, d = network.n_hidden, network.inputs.width
    return slice(n, n + d) if l == 0 else slice(0, n + d)


def _drawn(network: Network, l: int, layer: StoredLayer) -> numpy.ndarray:
    """Draw the weights of a layer, and write those over them that came from training rows."""
    s = DrawSettings(network.draws.inputs_per_neuron, network.draws.hidden_per_neuron)
    drawn = draw_layer(Recipe(network.seed, network.n_hidden, network.inputs.source, s), l)
    W: numpy.ndarray = drawn.W.astype(network.readouts[0].dtype, copy=False)
    if layer.kept is not None:
        n, d = network.n_hidden, network.inputs.width
        W = W[numpy.concatenate([layer.kept, numpy.arange(n, n + d)])]
    if layer.pairs is not None:
        W[:, : layer.pairs.shape[1]] = layer.pairs
    return W
