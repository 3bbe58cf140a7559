"""The training rows of a fit, in memory or in parts: both learn encodings and grow layers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import numpy

from .._inputs.chosen import Judged, judge_some
from .._inputs.encoding import EncoderSettings, learn_inputs
from .._inputs.inputs import Inputs
from .._inputs.rows import Rows
from .._inputs.table import Columns
from .._layers.draws import Draws, Recipe
from .._layers.grow import Grown, Pause, Problem, grow, pause, resume, start
from .._layers.layers import fill_inputs, new_features, replay
from .._layers.records import Settings
from .._loo.jury import AnyJury, jury_of
from .._models.network import Network
from .._parts.chosen import ledger
from .._parts.encoding import learn_parted_inputs
from .._parts.grow import PartedNetwork
from .._parts.rows import PartedRows
from .._seam.arrays import Array, array_namespace, from_numpy, row_blocks
from .folds import Fold, deal_folds, dealt
from .systems import Draw

FEW_ROWS = 40_000  # of which a kernel takes all, in one system or in several


@dataclass(frozen=True, slots=True, eq=False)
class Start:
    """From where a network grows: without layers, or from where it paused."""

    network: Network
    paused: Any = None  # what `Data.pause` returned

    @property
    def layer(self) -> int:
        """The number of the next layer, from 0."""
        return len(self.network.layers)


class Data(Protocol):
    """Training rows, wherever they are."""

    @property
    def columns(self) -> Columns | None:
        """How a frame becomes numbers and codes; None takes finite numbers as they are."""

    @property
    def rows(self) -> Rows:
        """The rows in memory: all of them, or those that leave-one-out judges."""

    @property
    def judged(self) -> Judged | None:
        """Which rows in memory get leave-one-out scores; None for all, each standing for itself."""

    @property
    def jury(self) -> AnyJury:
        """The targets of the judged rows, and how much each row counts."""

    @property
    def folds(self) -> tuple[Fold, ...]:
        """The judged rows in folds, where they are few; none where one fit is honest enough."""

    @property
    def worth(self) -> float:
        """How many rows there are, where weight 2 is the row twice."""

    @property
    def stand_for(self) -> Array | None:
        """How many rows each row in memory stands for; None for itself."""

    @property
    def single_rows(self) -> Rows:
        """All rows, of which some are drawn one by one. Those that are elsewhere are fetched when drawn."""

    @property
    def kernel_rows(self) -> Rows:
        """All rows, for a kernel: as `single_rows`, but few enough rows are brought to memory."""

    @property
    def remembers(self) -> bool:
        """Whether a fit keeps what its read-outs were solved from."""

    def encoding(self, encoder: EncoderSettings | None) -> Inputs:
        """Learn from the training rows how columns are encoded; without settings they stay as they are."""

    def draws(self, begin: Start, settings: Settings) -> Draws:
        """Return the random layers of a network."""

    def layers(
        self, begin: Start, settings: Settings, draws: Draws, judges: bool, until: int
    ) -> Iterator[Grown]:
        """Yield a network's layers as they grow, the last one having the number `until`."""

    def pause(self, layers: Iterator[Grown], grown: Grown, settings: Settings) -> Any:
        """Return from where a network that was just grown can go on later."""

    def n_blocks(self, settings: Settings, inputs: Inputs, layer: int) -> int | None:
        """Return how many blocks of rows are read for a layer; None if all rows are in memory."""


@dataclass(frozen=True, eq=False)
class InMemory:
    """Training rows that are all in memory."""

    rows: Rows
    columns: Columns | None
    stand_for: None = None
    remembers: bool = False

    @cached_property
    def judged(self) -> Judged | None:
        """Which rows get leave-one-out scores; None for all."""
        return judge_some(self.rows.targets, self.rows.groups)

    @cached_property
    def jury(self) -> AnyJury:
        """The targets of the judged rows, and how much each row counts."""
        rows = self.rows
        return jury_of(rows.targets, rows.weights, self.judged, dealt(self.folds), rows.groups)

    @cached_property
    def folds(self) -> tuple[Fold, ...]:
        """The judged rows in folds, where they are few; none where one fit is honest enough."""
        return deal_folds(self.rows, self.judged)

    @cached_property
    def worth(self) -> float:
        """How many rows there are, where weight 2 is the row twice."""
        return self.rows.worth

    @property
    def single_rows(self) -> Rows:
        """All rows."""
        return self.rows

    kernel_rows = single_rows

    def encoding(self, encoder: EncoderSettings | None) -> Inputs:
        """Learn from the training rows how columns are encoded; without settings they stay as they are."""
        counts = self.rows.weights.counts
        if encoder is None or self.columns is None:
            return learn_inputs(self.rows.X, counts, None)
        return learn_inputs(self.rows.X, counts, encoder, self.columns.coded, self.columns.parts)

    def draws(self, begin: Start, settings: Settings) -> Draws:
        """Return the random layers of a network. Folds share them with it."""
        network, rows = begin.network, self.rows
        if begin.layer and not self.folds:  # pairs of rows are weights of the first layer alone
            settings = replace(settings, draws=replace(settings.draws, pair_share=0.0))
        return Draws(Recipe.of(settings, network.seed, network.inputs, rows), rows.X, keep=bool(self.folds))

    def layers(
        self, begin: Start, settings: Settings, draws: Draws, judges: bool, until: int
    ) -> Iterator[Grown]:
        """Grow with one matrix D = [H, X, 1] of all rows.

        A network that paused does not keep its features: they are computed again, which takes a fifth of a
        layer.
        """
        network, rows, settings = begin.network, self.rows, replace(settings, n_layers=until)
        D = new_features(rows.X.shape[0], rows.X, settings.n_hidden, network.inputs)
        fill_inputs(D, rows.X, network.inputs)
        if begin.layer:
            for block in row_blocks(D, D.shape[0], 2 * D.shape[1]):  # no second matrix of this size
                for layer in network.layers:
                    replay(layer, network.activation, D[block, :])
        problem = Problem(rows.targets, rows.weights, draws, self.judged, judges=judges, twins=rows.twins)
        branch = start(D, settings) if begin.paused is None else resume(D, settings, begin.paused)
        return grow(branch, replace(problem, groups=rows.groups, remembers=self.remembers))

    def pause(self, layers: Iterator[Grown], grown: Grown, settings: Settings) -> Pause:  # noqa: ARG002
        """Return from where a network that was just grown can go on later."""
        return pause(grown, settings, self.rows.weights)

    def n_blocks(self, settings: Settings, inputs: Inputs, layer: int) -> None:
        """No blocks are read."""


def few_of(data: Data, n: int, seed: int) -> Data:
    """Return n rows, each class by its share, or a range of values; the same data if there are no more."""
    rows = data.single_rows
    if rows.worth <= n:
        return data
    drawn = Draw(rows, seed).proportional(n)
    which = numpy.flatnonzero(drawn)
    some = rows.some(from_numpy(which, rows.X, array_namespace(rows.X).int64))
    counts = from_numpy(drawn[which], some.targets.like)
    return InMemory(replace(some, weights=replace(some.weights, counts=counts)), data.columns)


@dataclass(frozen=True, eq=False)
class InParts:
    """Training rows that are read part by part, and those of them in memory that leave-one-out judges."""

    parted: PartedRows
    rows: Rows  # that leave-one-out judges
    judged: Judged | None  # all of these rows, with what they stand for; None if they are all there are
    remembers: bool = False

    @property
    def columns(self) -> Columns | None:
        """How a frame becomes numbers and codes."""
        return self.parted.reader.columns

    @cached_property
    def jury(self) -> AnyJury:
        """The targets of the judged rows, and how much each row counts."""
        return jury_of(self.rows.targets, self.rows.weights, self.judged, dealt(self.folds))

    @cached_property
    def folds(self) -> tuple[Fold, ...]:
        """The rows in folds, where all of them are judged, and so in memory."""
        return deal_folds(self.rows, None) if self.judged is None else ()

    @property
    def worth(self) -> float:
        """How many rows there are, where weight 2 is the row twice."""
        return self.parted.worth

    @property
    def stand_for(self) -> Array | None:
        """How many rows each row in memory stands for."""
        return None if self.judged is None else self.judged.stand_for

    @cached_property
    def single_rows(self) -> Rows:
        """All rows: in memory, or with an X whose rows are fetched when they are drawn."""
        return self.rows if self.judged is None else ledger(self.parted)

    @cached_property
    def kernel_rows(self) -> Rows:
        """All rows; an exact kernel system needs those of up to 40,000 rows in memory."""
        rows = self.single_rows
        if self.judged is None or rows.X.shape[0] > FEW_ROWS:
            return rows
        return self.parted.take(numpy.arange(rows.X.shape[0]))

    def encoding(self, encoder: EncoderSettings | None) -> Inputs:
        """Learn from all rows how columns are encoded; without settings they stay as they are."""
        columns = self.columns
        if encoder is None or columns is None:
            return learn_parted_inputs(self.parted, None)
        return learn_parted_inputs(self.parted, encoder, columns.coded, columns.parts)

    def draws(self, begin: Start, settings: Settings) -> Draws:
        """Return the random layers of a network."""
        network, keep = begin.network, bool(self.folds)
        pairs = self.single_rows if settings.draws.pair_share > 0 else self.rows
        return Draws(Recipe.of(settings, network.seed, network.inputs, pairs), self.rows.X, keep)

    def layers(
        self,
        begin: Start,
        settings: Settings,
        draws: Draws,
        judges: bool,
        until: int,  # noqa: ARG002
    ) -> Iterator[Grown]:
        """Grow by passes over the parts. A network that paused goes on where it was: it holds sums alone."""
        if begin.paused is not None:
            layers: Iterator[Grown] = begin.paused
            return layers
        grower = PartedNetwork(self.parted, self.rows, self.judged, settings, begin.network.inputs)
        return grower.grow(draws, judges)

    def pause(self, layers: Iterator[Grown], grown: Grown, settings: Settings) -> Any:  # noqa: ARG002
        """Return from where a network that was just grown can go on later."""
        return layers

    def n_blocks(self, settings: Settings, inputs: Inputs, layer: int) -> int:
        """Return how many blocks of rows are read for a layer."""
        grower = PartedNetwork(self.parted, self.rows, self.judged, settings, inputs)
        return grower.n_passes(layer) * self.parted.parts.n_parts
