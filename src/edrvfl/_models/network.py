"""A fitted network: its layers, their read-outs, and what they answer together."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from .._inputs.inputs import Inputs
from .._inputs.table import Columns
from .._layers.layers import ACTIVATIONS, fill_inputs, folded, new_features, replay
from .._layers.records import PAPER_DRAWS, DrawSettings, HiddenLayer
from .._loo.calibrate import Calibration
from .._loo.follow import RULES, combine, combine_staged
from .._seam.arrays import (
    Array,
    array_namespace,
    converted,
    device,
    from_numpy,
    ignore_overflow,
    on_accelerator,
    row_blocks,
)
from .._seam.fields import Between, Labels, Long, OneOf, floats
from .._seam.threads import suitable_threads
from .model import Record


@dataclass(frozen=True, slots=True, eq=False)
class Network(Record):
    """A fitted network: everything that decides an answer."""

    columns: Columns | None  # how a frame becomes numbers and codes; None takes finite numbers as they are
    inputs: Inputs  # how these become the network's inputs
    activation: Annotated[str, OneOf(tuple(ACTIVATIONS))]
    n_hidden: Annotated[int, Between(1, side="n")]
    rule: Annotated[str, OneOf(tuple(RULES))]  # how the layers' scores become one answer
    classes: Annotated[Array, Labels("k")] | None  # as they came; None if it answers with values
    seed: Annotated[int, Between(0, 2**63 - 1)]  # of the random layers
    draw_scheme: int  # the rule by which the seed gives the layers
    layers: Annotated[tuple[HiddenLayer, ...], Long("depth")] = ()
    # beta (n + d + 1, k) of each layer; if joint (d + 1 + l n, k)
    readouts: Annotated[tuple[Annotated[Array, floats("", "k")], ...], Long("depth")] = ()
    # how much each layer's vote counts
    votes: Annotated[tuple[Annotated[float, Between(1e-30, 1e30)], ...], Long("depth")] = ()
    # of the first one, two, ... layers together
    calibrations: Annotated[tuple[Calibration | None, ...], Long("depth")] = ()
    joint: bool = False  # whether read-out l is over [X, 1, H1, ..., Hl] and answers alone, without a vote
    draws: DrawSettings = PAPER_DRAWS  # how the seed gives the layers' weights, beside the scheme

    def __getstate__(self) -> dict[str, Any]:
        """Return what a pickle holds: the seed gives most weights again, so they are left out."""
        from .stored import stored  # here, because a stored network knows what a network is

        small = stored(self)
        return {field.name: getattr(small, field.name) for field in dataclasses.fields(self)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        from .stored import restored

        for name, value in state.items():
            object.__setattr__(self, name, value)
        object.__setattr__(self, "layers", restored(self).layers)

    def with_layer(
        self, layer: HiddenLayer, beta: Array, vote: float = 1.0, calibration: Calibration | None = None
    ) -> Network:
        """Return this network with one layer more, its read-out and its vote, and the calibration of all."""
        return dataclasses.replace(
            self,
            layers=(*self.layers, layer),
            readouts=(*self.readouts, beta),
            votes=(*self.votes, vote),
            calibrations=(*self.calibrations, converted(calibration, lambda array: from_numpy(array, beta))),
        )

    def prefix(self, depth: int) -> Network:
        """Return the network of the first layers."""
        of_layers = ("layers", "readouts", "votes", "calibrations")
        return dataclasses.replace(self, **{name: getattr(self, name)[:depth] for name in of_layers})

    @property
    def bias(self) -> int:
        """The row of a read-out that stands for the constant 1."""
        return self.inputs.width if self.joint else -1

    @property
    def n_outputs(self) -> int:
        """How many probabilities or values a row gets."""
        return int(self.readouts[0].shape[-1])

    @property
    def like(self) -> Array:
        """An array of the network, which tells its library, device and precision."""
        return self.readouts[0]

    @property
    def product(self) -> tuple[int, int]:
        """The largest matrix product of an answer: a row's numbers, and the neurons."""
        return self.row_numbers, self.n_hidden

    def encodings(self) -> tuple[Inputs, ...]:
        """Return the only encoding."""
        return (self.inputs,)

    def answer(self, X: Array, Z: Array | None = None) -> Array:
        """Return the probabilities or values (m, k) of rows that were checked, block by block.

        Z holds them encoded, if somebody did that already.
        """
        answer = array_namespace(X).empty((X.shape[0], self.n_outputs), dtype=X.dtype, device=device(X))
        calibration = self.calibrations[-1]
        with suitable_threads(X, *self.product):
            network = self._folded_for(X)
            for rows in row_blocks(X, X.shape[0], self.row_numbers):
                P = _of_all_layers(network, X[rows, :], None if Z is None else Z[rows, :])
                answer[rows, :] = P if calibration is None else calibration(P)
        return answer

    def staged(self, X: Array) -> Iterator[Array]:
        """Yield the probabilities or values (m, k) of the first one, two, ... layers together.

        Either the features of all rows are held from layer to layer, or the answers of all layers are
        computed block by block: whichever holds fewer numbers.
        """
        (c, k), depth = self.readouts[0].shape, len(self.layers)
        threads, network = (X, *self.product), self._folded_for(X)
        if c < depth * k and not self.joint:  # a joint network holds the answers of all depths anyway
            stages = _staged(network, X)
            for _ in range(depth):
                with suitable_threads(*threads):  # not across a yield: the limit would reach the caller
                    P = next(stages)
                yield P
            return
        answer = array_namespace(X).empty((depth, X.shape[0], k), dtype=X.dtype, device=device(X))
        with suitable_threads(*threads):
            for rows in row_blocks(X, X.shape[0], self.row_numbers):
                for l, P in enumerate(_staged(network, X[rows, :])):
                    answer[l, rows, :] = P
        for l in range(depth):
            yield answer[l, ...]

    def _folded_for(self, X: Array) -> Network:
        """Return the network with scales and shifts in its weights, if that pays for so many rows.

        A GPU scales, shifts and activates in one pass anyway.
        """
        if X.shape[0] < self.n_hidden + self.inputs.width or on_accelerator(X):
            return self
        bias = self.n_hidden + self.inputs.width
        return dataclasses.replace(self, layers=tuple(folded(layer, bias) for layer in self.layers))

    @property
    def row_numbers(self) -> int:
        """How many numbers are held for a row that is scored: its features and the scores of some layers."""
        c, k = self.readouts[0].shape
        return int(c + 3 * min(c, len(self.layers) * k) + 4 * k)


def _of_all_layers(network: Network, X: Array, Z: Array | None) -> Array:
    """Return what all layers together answer, not yet calibrated."""
    if network.joint:
        return combine(joint_scores(network, X, network.readouts[-1:], Z), network.rule, (1.0,))
    return combine(layer_scores(network, X, Z), network.rule, network.votes)


def _of_each_depth(network: Network, X: Array) -> Iterator[Array]:
    """Yield what the first one, two, ... layers together answer, not yet calibrated."""
    if network.joint:
        for scores in joint_scores(network, X, network.readouts):
            yield combine(iter([scores]), network.rule, (1.0,))
    else:
        yield from combine_staged(layer_scores(network, X), network.rule, network.votes)


def _staged(network: Network, X: Array) -> Iterator[Array]:
    for P, calibration in zip(_of_each_depth(network, X), network.calibrations, strict=True):
        if calibration is not None:
            for rows in row_blocks(P, P.shape[0], 6 * P.shape[1]):
                P[rows, :] = calibration(P[rows, :])
        yield P


def features_by_layer(network: Network, X: Array, Z: Array | None = None) -> Iterator[Array]:
    """Yield D = [H, X, 1] of one layer after the other; the next layer overwrites H.

    Z holds the rows encoded, if somebody did that already.
    """
    blocks = list(row_blocks(X, X.shape[0], network.row_numbers))
    with ignore_overflow():
        D = new_features(X.shape[0], X, network.n_hidden, network.inputs)
        if Z is None:
            fill_inputs(D, X, network.inputs)
        else:
            D[:, network.n_hidden : -1] = Z
    for layer in network.layers:
        with ignore_overflow():
            for rows in blocks:
                replay(layer, network.activation, D[rows, :])
        yield D


def layer_scores(network: Network, X: Array, Z: Array | None = None) -> Iterator[Array]:
    """Yield the scores of consecutive layers, a few layers at a time, as (layers, rows, k).

    The features of a layer are forgotten when the next one is computed. Layers whose scores are small come
    together, because combining layers one by one would cost more than computing them.
    """
    c, k = network.readouts[0].shape
    together = max(1, c // k)  # their scores hold no more numbers than the features do
    scores = []
    for l, D in enumerate(features_by_layer(network, X, Z)):
        with ignore_overflow():
            scores.append(D @ network.readouts[l])
        if len(scores) < together and l + 1 < len(network.layers):
            continue
        batch, scores = array_namespace(X).stack(scores), []
        yield _finite(batch)


def joint_scores(
    network: Network, X: Array, readouts: Sequence[Array], Z: Array | None = None
) -> Iterator[Array]:
    """Yield the scores (1, rows, k) of some of the read-outs of a joint network, the shortest first.

    Each layer adds its part to all of them, so that the features of one layer are held at a time.
    """
    xp, n, k = array_namespace(X), network.n_hidden, readouts[0].shape[-1]
    total: Array = 0.0
    for l, D in enumerate(features_by_layer(network, X, Z)):
        start = D.shape[-1] + (l - 1) * n  # the columns are [X, 1, H1, ..., HL]
        # depths that end before this layer are done
        waiting = [beta for beta in readouts if beta.shape[0] > start]
        with ignore_overflow():
            if l == 0:
                total = D[:, n:] @ xp.concat([beta[:start, :] for beta in waiting], axis=-1)
            total = total + D[:, :n] @ xp.concat([beta[start : start + n, :] for beta in waiting], axis=-1)
        if waiting and waiting[0].shape[0] == start + n:
            yield _finite(total[None, :, :k])
            total = total[:, k:]


def _finite(scores: Array) -> Array:
    """Return the scores; raise if they overflow."""
    xp = array_namespace(scores)
    if not bool(xp.all(xp.isfinite(scores))):
        raise ValueError(
            f"The hidden features of some rows overflow {scores.dtype}: their values are far larger than "
            "those seen in fit. Fit with an encoder, or rescale the columns of X."
        )
    return scores
