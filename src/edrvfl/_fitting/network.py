"""Fit a network: one function for the estimators, for the members of a portfolio, and for the spread."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, replace
from typing import Any

from .._inputs.inputs import Inputs
from .._layers.draws import DRAW_SCHEME
from .._layers.grow import Grown
from .._loo.follow import Follower, Stage
from .._models.network import Network
from .._seam.arrays import Array, ignore_overflow
from .._seam.threads import suitable_threads
from .data import Data, Start
from .settings import NetworkSettings


@dataclass(frozen=True, slots=True, eq=False)
class Growing:
    """A network as far as it is grown, with what leave-one-out says about each depth."""

    network: Network
    stages: tuple[Stage, ...] = ()  # of the depths so far; empty if nobody asked for leave-one-out
    follower: Follower | None = None
    fell_back: tuple[Array, ...] = ()  # of each layer: whether its system was singular; read when all is done
    grown: Grown | None = None  # the newest layer, with its features; None when it is kept or sent
    paused: Any = None  # from where it goes on, if it has not all its layers

    @property
    def best(self) -> int:
        """The number of layers with the smallest leave-one-out loss."""
        return 1 + min(range(len(self.stages)), key=lambda l: self.stages[l].loss)


def new_network(data: Data, settings: NetworkSettings, inputs: Inputs, seed: int) -> Network:
    """Return a network without layers. Its settings say what "auto" stands for."""
    layers, votes = settings.layers, settings.votes
    return Network(
        data.columns,
        inputs,
        layers.activation,
        layers.n_hidden,
        votes.rule,
        data.rows.classes,
        seed,
        DRAW_SCHEME,
        joint=layers.joint,
        draws=layers.draws,
    )


def fit_network(
    data: Data, settings: NetworkSettings, begin: Growing, until: int | None = None
) -> Generator[Growing, None, None]:
    """Grow a network layer by layer: from `new_network`, or from where it paused, up to so many layers.

    Whoever iterates keeps the last one; to stop early, stop iterating.
    """
    layers, network = settings.layers, begin.network
    until = layers.n_layers if until is None else until
    follower, stages, fell_back = begin.follower, begin.stages, begin.fell_back
    if settings.judges and follower is None:
        follower = Follower(data.jury, settings.votes)
    targets, X, n = data.rows.targets, data.rows.X, layers.n_hidden
    with ignore_overflow(), suitable_threads(X, n + network.inputs.width + 1, n):
        growth = data.layers(Start(network, begin.paused), layers, network.seed, settings.judges, until)
        for grown in growth:
            stage = None if follower is None else follower.add(grown.loo[0, ...])
            stages = stages if stage is None else (*stages, stage)
            vote, calibration = (1.0, None) if stage is None else (stage.vote, stage.calibration)
            # Only the hidden weights and the read-out are kept: the next layer overwrites the features.
            beta = targets.in_units(grown.readout.beta[0, ...], network.bias)
            network = network.with_layer(grown.hidden, beta, vote, calibration)
            fell_back = (*fell_back, grown.readout.fell_back[0])
            growing = Growing(network, stages, follower, fell_back, grown)
            if len(network.layers) < until:
                yield growing
                continue
            paused = data.pause(growth, grown, layers) if until < layers.n_layers else None
            yield replace(growing, paused=paused)
            return


def grow_to(data: Data, settings: NetworkSettings, begin: Growing, until: int) -> Growing:
    """Grow a network to a number of layers, and let go of its features."""
    growing = begin
    for grown in fit_network(data, settings, begin, until):
        growing = replace(grown, grown=None)
    return growing
