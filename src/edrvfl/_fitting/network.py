"""Fit a network: one function for the estimators, for the members of a portfolio, and for the spread."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy

from .._inputs.inputs import Inputs
from .._inputs.rows import to_host
from .._layers.draws import DRAW_SCHEME, Draws
from .._layers.grow import Grown, Problem, Riders, grow, start
from .._layers.layers import fill_inputs, new_features
from .._layers.records import Settings
from .._loo.follow import Follower, Stage, answers_of
from .._loo.jury import best_of
from .._models.memory import Judge, NetworkMemory, Sums
from .._models.network import Network
from .._seam.arrays import Array, array_namespace, from_numpy, ignore_overflow
from .._seam.threads import suitable_threads
from .data import Data, Start
from .folds import Fold, Learnt, together
from .settings import NetworkSettings

PROOF_ROWS = 600  # of more rows weighting and pruning are used without a proof, which would double the time


@dataclass(frozen=True, slots=True, eq=False)
class Growing:
    """A network as far as it is grown, with what leave-one-out says about each depth."""

    network: Network
    settings: NetworkSettings
    of_folds: tuple[Inputs, ...] = ()  # what the network would see without the labels of each fold
    scores: tuple[Array, ...] = ()  # each layer's honest leave-one-out scores, as far as they are known
    stages: tuple[Stage, ...] = ()  # of the depths so far; empty if nobody asked for leave-one-out
    follower: Follower | None = None
    fell_back: tuple[Array, ...] = ()  # of each layer: whether its system was singular; read when all is done
    memory: NetworkMemory | None = None  # what the read-outs were solved from, if that is remembered
    beta: Array = None  # the newest read-out, of standardised values
    grown: Grown | None = None  # the newest layer, with its features; None when it is kept or sent
    paused: Any = None  # from where it goes on, if it has not all its layers

    @property
    def best(self) -> int:
        """The number of layers with the smallest leave-one-out loss."""
        return 1 + min(range(len(self.stages)), key=lambda l: self.stages[l].loss)

    def remembered(self, depth: int) -> NetworkMemory | None:
        """Return what the first layers were solved from, if that is remembered."""
        if self.memory is None:
            return None
        return self.memory.prefix(depth, self.network.readouts[depth - 1].shape[0])


def new_network(data: Data, settings: NetworkSettings, learnt: Learnt, seed: int) -> Growing:
    """Return a network without layers. Its settings say what "auto" stands for."""
    layers, votes = settings.layers, settings.votes
    network = Network(
        data.columns,
        learnt.inputs,
        layers.activation,
        layers.n_hidden,
        votes.rule,
        data.rows.classes,
        seed,
        DRAW_SCHEME,
        joint=layers.joint,
        draws=layers.draws,
    )
    return Growing(network, settings, learnt.of_folds)


def judge_by_folds(
    folds: Sequence[Fold], of_folds: Sequence[Inputs], settings: Settings, draws: Draws, stack: Any = ()
) -> Iterator[Array]:
    """Yield the leave-one-out scores (..., r, judged rows, k) of each layer, from networks that folds judge.

    The network of a fold is grown on the rows outside. Those inside ride along: they have features in every
    layer, and shape none of them. What overflows is raised behind the layers that did not.
    """
    for l in range(settings.n_layers):
        draws.prepare(l)  # once for all folds
    each, error = [], None
    for fold, inputs in zip(folds, of_folds, strict=True):
        rows, outside = fold.riding, fold.outside
        D = new_features(rows.X.shape[0], rows.X, settings.n_hidden, inputs, stack)
        fill_inputs(D, rows.X, inputs)
        problem = Problem(
            outside.targets,
            outside.weights,
            draws.for_rows(settings, inputs, outside),
            judged=None,
            stacked=bool(stack),
            twins=outside.twins,
            groups=outside.groups,
            riders=Riders(rows, fold.judged),
        )
        scores: list[Array] = []
        try:
            scores.extend(grown.of_riders for grown in grow(start(D, settings), problem))
        except ValueError as failure:
            error = failure
        each.append(scores)
    yield from (together(folds, of_layer) for of_layer in zip(*each, strict=False))
    if error is not None:
        raise error


def fit_network(data: Data, begin: Growing, until: int | None = None) -> Generator[Growing, None, None]:
    """Grow a network layer by layer: from `new_network`, or from where it paused, up to so many layers.

    Whoever iterates keeps the last one; to stop early, stop iterating.
    """
    settings, network = begin.settings, begin.network
    layers = settings.layers
    until = layers.n_layers if until is None else until
    follower, stages, fell_back, scores = begin.follower, begin.stages, begin.fell_back, begin.scores
    if settings.judges and follower is None:
        follower = Follower(data.jury, settings.votes)
    targets = data.rows.targets
    with _computing(data, begin):
        beginning = Start(network, begin.paused)
        draws = data.draws(beginning, layers)
        by_folds = _judge_by_folds(data, begin, draws, until)
        # a network that pauses weighs the next layer's rows, perhaps by leave-one-out
        own = by_folds is None and len(scores) < until
        wants_loo = settings.judges and (own or until < layers.n_layers)
        growth = data.layers(beginning, layers, draws, wants_loo, until)
        for grown in growth:
            if settings.judges and len(network.layers) == len(scores):
                scores = (*scores, grown.loo if by_folds is None else next(by_folds))
            stage = None if follower is None else follower.add(scores[len(network.layers)][0, ...])
            stages = stages if stage is None else (*stages, stage)
            vote, calibration = (1.0, None) if stage is None else (stage.vote, stage.calibration)
            # Only the hidden weights and the read-out are kept: the next layer overwrites the features.
            plain = grown.readout.beta[0, ...]
            if data.remembers:
                begin = replace(begin, memory=_remembered(begin, grown), beta=plain)
            beta = targets.in_units(plain, network.bias)
            network = network.with_layer(grown.hidden, beta, vote, calibration)
            fell_back = (*fell_back, grown.readout.fell_back[0])
            so_far = replace(begin, network=network, stages=stages, follower=follower, fell_back=fell_back)
            growing = replace(so_far, scores=scores, grown=grown)
            if len(network.layers) < until:
                yield growing
                continue
            paused = data.pause(growth, grown, layers) if until < layers.n_layers else None
            yield replace(growing, paused=paused)
            return


def _remembered(before: Growing, grown: Grown) -> NetworkMemory:
    """Return what the read-outs so far were solved from, those of the layer that was just grown too."""
    known, solved, layers = before.memory, grown.solved, before.settings.layers
    assert solved is not None
    lam: Any = grown.readout.lam if layers.lam is None else layers.lam
    judge = None
    if solved.bound is not None:
        judge = Judge(to_host(before.beta).astype(float), solved.bound, *solved.weights)
    m = grown.targets.n_rows
    right = (numpy.ones(m, dtype=bool) if solved.right is None else solved.right)[None, :]
    sums = Sums(*(to_host(part).astype(float) for part in (solved.system.G, solved.system.R)))
    if known is None:
        return NetworkMemory((sums,), (float(lam),), (judge,), right)
    of_layers = (sums,) if layers.joint else (*known.sums, sums)
    right = numpy.concatenate([known.right, right])
    return NetworkMemory(of_layers, (*known.lams, float(lam)), (*known.judges, judge), right)


def _judge_by_folds(data: Data, begin: Growing, draws: Draws, until: int) -> Iterator[Array] | None:
    """Return the scores of the layers to come; None where the network's own are honest, or all are known."""
    settings, known = begin.settings, len(begin.scores)
    if not (settings.judges and settings.looks_at_labels and begin.of_folds and known < until):
        return None
    layers = replace(settings.layers, n_layers=until)
    return islice(judge_by_folds(data.folds, begin.of_folds, layers, draws), known, None)


def prove_layers(data: Data, settings: NetworkSettings, learnt: Learnt, seed: int) -> Growing:
    """Return a network without layers, after weighting and pruning have proven themselves if they must.

    "loo" uses them if the network is better with them, by honest leave-one-out, whose scores the network
    keeps. Where rows are many, they are used without a proof.
    """
    if not settings.to_prove:
        return new_network(data, settings, learnt, seed)
    if data.rows.X.shape[0] > PROOF_ROWS or not learnt.of_folds or settings.layers.joint:
        return new_network(data, settings.proven(not settings.layers.joint), learnt, seed)
    begun = [new_network(data, settings.proven(used), learnt, seed) for used in (False, True)]
    draws = data.draws(Start(begun[0].network), begun[0].settings.layers)  # the same for both
    tried = [_judged(data, one, draws) for one in begun]
    used, in_folds = best_of(data.jury, [answers for _, answers in tried])
    (plain, _), (by_used, _) = tried
    assert data.jury.dealt is not None
    xp, like = array_namespace(plain.scores[0]), plain.scores[0]
    by_rows = from_numpy(numpy.array(in_folds)[data.jury.dealt.folds], like, xp.int64)[:, None] > 0
    scores = [xp.where(by_rows, *pair) for pair in zip(by_used.scores, plain.scores, strict=True)]
    return replace(by_used if used else plain, scores=tuple(scores))


def _judged(data: Data, begin: Growing, draws: Draws) -> tuple[Growing, numpy.ndarray]:
    """Return a network without layers, with what is known of its layers, and what all of them answer."""
    settings = begin.settings
    with _computing(data, begin):
        scores = tuple(judge_by_folds(data.folds, begin.of_folds, settings.layers, draws))
    answers = answers_of([of_layer[0, ...] for of_layer in scores], settings.votes.rule, data.jury)
    return replace(begin, scores=scores), answers


@contextmanager
def _computing(data: Data, begin: Growing) -> Iterator[None]:
    """Compute layers: what overflows is found later, and small problems have one thread."""
    n = begin.settings.layers.n_hidden
    with ignore_overflow(), suitable_threads(data.rows.X, n + begin.network.inputs.width + 1, n):
        yield


def grow_to(data: Data, begin: Growing, until: int) -> Growing:
    """Grow a network to a number of layers, and let go of its features."""
    growing = begin
    for grown in fit_network(data, begin, until):
        growing = replace(grown, grown=None)
    return growing
