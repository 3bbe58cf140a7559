"""Score candidates on one split: grow many networks together and judge each layer as it comes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache

import numpy

from .._fitting.data import InMemory, learn_network_inputs
from .._fitting.settings import NetworkSettings
from .._inputs.inputs import Inputs
from .._inputs.rows import Rows, to_host
from .._inputs.table import Columns
from .._inputs.targets import side_by_side
from .._layers.draws import Draws, Recipe
from .._layers.grow import Grown, Problem, grow, start
from .._layers.layers import fill_inputs, new_features
from .._loo.combine import RULES
from .._loo.follow import Follower
from .._seam.arrays import Array, array_namespace, device, ignore_overflow
from .._seam.threads import suitable_threads
from .metrics import Sample, Search, Split, SplitScorer
from .plan import NetworkCandidate, Stack, stack_settings, stacks

Prepared = tuple[
    InMemory, numpy.ndarray | None, Inputs, Draws, int
]  # what candidates of one problem share on a split
LayerScores = tuple[list[NetworkCandidate], int, Array, Array]  # networks, a depth, scores, whether finite


def score_split(
    search: Search, candidates: Sequence[NetworkCandidate], split: Split, memory: int
) -> tuple[numpy.ndarray, dict[tuple[int, int], str]]:
    """Score candidates of one problem at every depth of one split, each as if it had been fitted alone.

    Return scores (candidates, depths), and what went wrong. A network that fails keeps the scores of the
    layers before, because the shallower network does not fail.
    """
    scorer = SplitScorer.of(search, split)
    values = numpy.full((len(candidates), max(c.settings.n_layers for c in candidates)), numpy.nan)
    place = {candidate: i for i, candidate in enumerate(candidates)}
    prepare = cache(lambda: _prepare(candidates[0], scorer.train, search.columns))
    waiting = list(stacks(candidates, search.size(split, candidates[0]), memory))
    while waiting:
        stack = waiting.pop()
        members = [candidate for read_outs in stack for candidate in read_outs]
        depth, error = 0, None
        layers: list[LayerScores] = []
        try:
            layers.extend(_score_stack(stack, members, prepare(), scorer))
        except Exception as failure:  # features that overflow, or what a scorer raises
            error = failure
        # only now, so that a GPU need not wait after each layer (it does where leave-one-out is followed)
        for some, at, scores, finite in layers:
            if not bool(finite):
                error = _overflow(scorer, at)
                break
            values[[place[c] for c in some], at - 1], depth = to_host(scores), at
        # Grown alone, the others get their scores, and the network that fails gets the error.
        if error is not None and len(members) > 1:
            waiting += [[[candidate]] for candidate in members]
        elif error is not None:
            alone, deepest = members[0], members[0].settings.n_layers
            values[place[alone], depth:deepest] = scorer.excuse(error, alone, range(depth + 1, deepest + 1))
    return values, scorer.failures


def _prepare(candidate: NetworkCandidate, train: Sample, columns: Columns | None) -> Prepared:
    rows, classes = _prepare_rows(candidate, train)
    settings, data = candidate.settings, InMemory(rows, columns)
    inputs = learn_network_inputs(data, candidate.plan.inputs, candidate.seed)
    draws = Draws(Recipe.of(settings, candidate.seed, inputs, rows), rows.X, keep=True)
    return data, classes, inputs, draws, settings.n_hidden


def _prepare_rows(candidate: NetworkCandidate, train: Sample) -> tuple[Rows, numpy.ndarray | None]:
    """Return the rows of a split that are fitted, and their classes; None if the targets are values."""
    estimator = candidate.estimator
    if estimator._classifies and len(numpy.unique(train.labels)) < 2:
        raise ValueError("A training split holds only one class. Use stratified splits or fewer of them.")
    # the rows that the network alone would hold back
    rows, _ = estimator._divide_rows(train.X, train.labels, train.weights, candidate.seed)
    return rows, None if rows.classes is None else to_host(rows.classes)


def _score_stack(
    stack: Stack, members: list[NetworkCandidate], prepared: Prepared, scorer: SplitScorer
) -> Iterator[LayerScores]:
    """Grow the networks of a stack; yield some of them, a depth, and their scores at that depth.

    The rows that are scored ride along in D behind the training rows.
    """
    data, classes, inputs, draws, width = prepared
    rows = data.rows
    first = members[0].settings
    stacked = scorer.search.stacked and first.lam is not None and not first.joint
    settings = replace(stack_settings(stack, stacked), n_hidden=width)
    follows = _follows(members[0].plan, scorer)
    problem = Problem(rows.targets, rows.weights, draws, data.judged, stacked, follows)
    answers = _RunningAnswers(members, data, follows, scorer)
    xp, m, v = array_namespace(rows.X), rows.X.shape[0], scorer.test.X.shape[0]
    D = new_features(m + v, rows.X, settings.n_hidden, inputs, (len(stack),) if stacked else ())
    with ignore_overflow(), suitable_threads(rows.X, D.shape[-1], settings.n_hidden):
        fill_inputs(D[..., :m, :], rows.X, inputs)
        fill_inputs(D[..., m:, :], scorer.test.X, inputs)
        bias = inputs.width if settings.joint else -1
        for grown in grow(start(D, settings), problem):
            some, depth = grown.members, grown.layer + 1
            scores = side_by_side(grown.D[..., m:, :], rows.targets.in_units(grown.readout.beta, bias))
            finite = xp.all(xp.isfinite(scores))
            if scorer.search.kernel is None and not bool(finite):  # a scorer would blame its input
                raise _overflow(scorer, depth)
            P = answers.add(grown, scores)
            yield members[some], depth, scorer(P, classes, members[some], depth), finite


def _follows(plan: NetworkSettings, scorer: SplitScorer) -> bool:
    """Tell whether the networks' leave-one-out scores are needed for their answers.

    Where only predictions count, as those of values always do, a calibration that changes none is not needed,
    nor are intervals.
    """
    only_predictions = scorer.search.classes is None or scorer.search.scoring in (None, "accuracy")
    return plan.judges and not (only_predictions and plan.votes.keeps_predictions)


class _RunningAnswers:
    """The answers of networks that grow together, for the rows that are scored: each as if fitted alone."""

    def __init__(
        self, members: list[NetworkCandidate], data: InMemory, follows: bool, scorer: SplitScorer
    ) -> None:
        votes, targets, X = members[0].plan.votes, data.rows.targets, scorer.test.X
        self._rule, self._prefix = RULES[votes.rule], votes.layer_votes == "prefix"
        self._joint = votes.joint
        shape = (len(members), X.shape[0], targets.width)
        xp = array_namespace(X)
        self._totals = xp.zeros(shape, dtype=X.dtype, device=device(X))
        self._votes = numpy.zeros(len(members))
        self._best = xp.zeros_like(self._totals if self._prefix else self._totals[:0, ...])
        self._losses = numpy.full(len(members), numpy.inf)  # of the best prefix
        self._followers = [Follower(data.jury, one.plan.votes) for one in members] if follows else []

    def add(self, grown: Grown, scores: Array) -> Array:
        """Take the next layer's scores (..., v, k) of some networks; return their answers so far."""
        xp, some = array_namespace(scores), grown.members
        contributions = self._rule.contribute(xp.reshape(scores, (-1, *self._totals.shape[1:])))
        if self._joint:  # the newest read-out is over all layers and answers alone
            self._totals[some, ...], self._votes[some] = 0.0, 0.0
        if not self._followers:
            self._totals[some, ...] += contributions
            return self._rule.finish(self._totals[some, ...] / (1 if self._joint else grown.layer + 1))
        loo = grown.loo
        loo = xp.reshape(loo, (-1, *loo.shape[-2:]))
        return xp.stack(
            [self._follow(some.start + i, contributions[i, ...], loo[i, ...]) for i in range(loo.shape[0])]
        )

    def _follow(self, i: int, contribution: Array, loo: Array) -> Array:
        """Take the next layer of network i."""
        stage = self._followers[i].add(loo)
        self._totals[i, ...] += stage.vote * contribution
        self._votes[i] += stage.vote
        P = self._rule.finish(self._totals[i, ...] / float(self._votes[i]))
        P = P if stage.calibration is None else stage.calibration(P)
        if self._prefix and stage.loss < self._losses[i]:
            self._losses[i], self._best[i, ...] = stage.loss, P
        return self._best[i, ...] if self._prefix else P


def _overflow(scorer: SplitScorer, layer: int) -> ValueError:
    return ValueError(f"The features of test rows overflow {scorer.test.X.dtype} in layer {layer}.")
