"""Fit one member of a portfolio: a kernel voter at once, a network layer by layer, with pauses."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any

from .._inputs.inputs import Inputs
from .._inputs.judged import Judged
from .._inputs.rows import Rows
from .._inputs.table import Columns
from .._layers.draws import DRAW_SCHEME, Draws, Recipe
from .._layers.grow import Pause, Problem, grow, pause, resume, start
from .._layers.layers import fill_inputs, new_features, replay
from .._layers.records import Settings
from .._loo.follow import Follower, Stage
from .._models.kernel import KernelModel
from .._models.network import Network
from .._seam.arrays import converted, from_numpy, ignore_overflow, row_blocks
from .._seam.threads import suitable_threads
from .kernel import fit_kernel
from .systems import KernelSettings

Voter = Network | KernelModel

# Of so many rows a layer's training predictions are nearly its leave-one-out predictions, which would cost as
# much as the Gram matrix.
MANY_ROWS = 10_000


@dataclass(frozen=True, slots=True, eq=False)
class Member:
    """A member before it is fitted."""

    name: str
    estimator: Any  # a network or a kernel voter that is not fitted, or the settings of a network for values
    inputs: Inputs
    seed: int

    @property
    def is_network(self) -> bool:
        """Whether the member has layers."""
        return hasattr(self.estimator, "n_layers")

    @property
    def settings(self) -> Settings:
        """The settings of a network."""
        return self.estimator if isinstance(self.estimator, Settings) else Settings.of(self.estimator)

    @property
    def ensemble(self) -> str:
        """How the layers of a network become its answer."""
        return getattr(self.estimator, "ensemble", "value")


@dataclass(frozen=True, slots=True, eq=False)
class Progress:
    """A member as far as it is fitted, and what leave-one-out says about it."""

    voter: Any  # a Network or a KernelModel
    stages: tuple[Stage, ...]  # one for each layer; a kernel voter has one
    seconds: float
    fell_back: bool = False  # whether some system was numerically singular
    follower: Any = None  # the Follower of a network
    paused: Pause | None = None  # None for a network that has all its layers

    @property
    def best(self) -> int:
        """The number of layers with the smallest leave-one-out loss."""
        return 1 + min(range(len(self.stages)), key=lambda l: self.stages[l].loss)

    @property
    def chosen(self) -> Stage:
        """What leave-one-out says of the best depth."""
        return self.stages[self.best - 1]

    @property
    def kept(self) -> Voter:
        """The voter without the layers beyond the best depth."""
        return self.voter.prefix(self.best) if isinstance(self.voter, Network) else self.voter


@dataclass(frozen=True, slots=True, eq=False)
class Data:
    """The training rows, as all members see them."""

    rows: Rows
    columns: Columns | None
    judged: Judged | None


def fit_voter(data: Data, member: Member, calibration: str | None = "temperature") -> Progress:
    """Fit a kernel voter, and calibrate its scores."""
    began, rows = time.perf_counter(), data.rows
    m = rows.X.shape[0]
    with ignore_overflow(), suitable_threads(rows.X, m + member.inputs.width, m):
        settings = KernelSettings.of(member.estimator)
        voter, loo = fit_kernel(rows, member.inputs, settings, member.seed, data.judged)
        votes = _Votes("value" if rows.classes is None else "softmax", calibration=calibration)
        stage = Follower(rows.targets, rows.weights, data.judged, votes).add(loo)
    moved = converted(stage.calibration, lambda array: from_numpy(array, rows.X))
    model = KernelModel(data.columns, voter, rows.classes, moved)
    raised = settings.lam is not None and voter.lam != settings.lam
    return Progress(model, (stage,), time.perf_counter() - began, raised)


def grow_network(data: Data, member: Member, so_far: Progress | None, n_layers: int) -> Progress:
    """Grow a network to a number of layers: from nothing, or from where it paused.

    A network that paused does not keep its features: they are computed again, which takes a fifth of a layer.
    """
    began, rows, given = time.perf_counter(), data.rows, member.settings
    whole = given.for_rows(rows.worth)
    settings = replace(whole, n_layers=n_layers)
    if rows.X.shape[0] > MANY_ROWS:
        settings = replace(settings, weight_from="train")
    if so_far is None:
        of_answers = (member.ensemble, rows.classes, member.seed, DRAW_SCHEME)
        of_network = (data.columns, member.inputs, given.activation, settings.n_hidden, *of_answers)
        network = Network(*of_network, draws=given.draws)
        follower = Follower(rows.targets, rows.weights, data.judged, _Votes(member.ensemble))
        so_far = Progress(network, (), 0.0, follower=follower)
    else:  # pairs of rows are weights of the first layer alone
        settings = replace(settings, draws=replace(settings.draws, pair_share=0.0))
    network, follower, stages = so_far.voter, so_far.follower, so_far.stages
    n, paused, fell_back = settings.n_hidden, None, so_far.fell_back
    with ignore_overflow(), suitable_threads(rows.X, n + member.inputs.width + 1, n):
        D = new_features(rows.X.shape[0], rows.X, n, member.inputs)
        fill_inputs(D, rows.X, member.inputs)
        for rows_of_block in row_blocks(D, D.shape[0], 2 * D.shape[1]):  # no second matrix of this size
            for layer in network.layers:
                replay(layer, network.activation, D[rows_of_block, :])
        draws = Draws(Recipe.of(settings, member.seed, member.inputs, rows), rows.X)
        problem = Problem(rows.targets, rows.weights, draws, judges=True)
        branch = start(D, settings) if so_far.paused is None else resume(D, settings, so_far.paused)
        for grown in grow(branch, problem):
            stage = follower.add(grown.loo[0, ...])
            stages = (*stages, stage)
            fell_back = fell_back or bool(grown.readout.fell_back[0])
            beta = rows.targets.in_units(grown.readout.beta[0, ...])
            network = network.with_layer(grown.hidden, beta, stage.vote, stage.calibration)
        if n_layers < whole.n_layers:
            paused = pause(grown, settings, problem)
    seconds = so_far.seconds + time.perf_counter() - began
    return Progress(network, stages, seconds, fell_back, follower, paused)


@dataclass(frozen=True, slots=True)
class _Votes:
    """How a member's layers become its answer: equal votes, and by default one temperature on the mean."""

    ensemble: str = "softmax"
    layer_votes: str = "equal"
    calibration: str | None = "temperature"
    readout: str = "layers"
