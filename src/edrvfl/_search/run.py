"""Run a search: cut it into parts, grow many networks together, and judge each layer as it comes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Any

import numpy
from joblib import effective_n_jobs
from sklearn.utils.parallel import delayed

from .._fitting.data import InMemory
from .._fitting.folds import Learnt
from .._fitting.inputs import learn_network_inputs
from .._fitting.network import judge_by_folds
from .._inputs.rows import to_host
from .._inputs.table import Columns
from .._inputs.targets import side_by_side as products
from .._layers.draws import Draws, Recipe
from .._layers.grow import Grown, Problem, grow, start
from .._layers.layers import fill_inputs, new_features
from .._loo.follow import RULES, Follower, Stage, Votes
from .._seam.arrays import Array, array_namespace, device, from_numpy, ignore_overflow
from .._seam.threads import suitable_threads
from .candidates import Candidate
from .material import Material
from .metrics import accuracy
from .plan import Stack, bytes_needed, groups, memory_budget, side_by_side, stack_settings, stacks
from .scorer import Sample, Scoring, Search, Split, SplitScorer

Prepared = tuple[InMemory, Learnt, Draws]  # what candidates that are prepared alike share on a split
LayerScores = tuple[list[Candidate], int, Array, Array]  # networks, a depth, scores, whether finite


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """Some candidates that are scored in one go on one split."""

    split: int
    candidates: Sequence[Candidate]
    call: Any  # for joblib; `score_split` with its arguments


def cut_search(
    material: Material, candidates: Sequence[Candidate], n_jobs: int | None, memory: int | None
) -> tuple[int, list[Part]]:
    """Return how many processes there are, and which networks are scored together on which split."""
    searches, splits = material.searches, material.splits
    jobs, budget = _share_memory(material, candidates, n_jobs, memory)
    # One process keeps the networks of a width together, which share their random layers. The widest come
    # first, so that no process is left with a long task at the end.
    # With several processes smaller pieces balance better, at the price of drawing layers again.
    pieces = groups(candidates, lambda c: c.features if jobs > 1 else c.prepared)
    pieces.sort(key=lambda piece: -piece[0].settings.n_hidden)
    return jobs, [
        Part(i, piece, delayed(score_split)(searches[piece[0].reading], piece, splits[i], budget))
        for i, piece in product(range(len(splits)), pieces)
    ]


def _share_memory(
    material: Material, candidates: Sequence[Candidate], n_jobs: int | None, memory: int | None
) -> tuple[int, int]:
    """Return how many processes there are, and the bytes that each of them may use."""
    search = material.searches[candidates[0].reading]
    jobs = 1 if search.stacked else effective_n_jobs(n_jobs)
    budget = memory_budget(memory, search.rows.X)
    if jobs > 1:  # every process needs room for one network of any kind
        split = max(material.splits, key=lambda split: sum(map(len, split)))
        needs = [
            bytes_needed([[c]], material.searches[c.reading].size(split, c.inputs))
            for c in dict((c.stack, c) for c in candidates).values()
        ]
        jobs = max(1, min(jobs, budget // max(needs)))
    return jobs, budget // jobs


def seconds_left(parts: Sequence[Part], done: int, seconds: float) -> float:
    """Guess how long the other parts take if so many took so long: in proportion to the neurons."""
    neurons = [sum(c.settings.n_hidden * c.settings.n_layers for c in part.candidates) for part in parts]
    return seconds * sum(neurons[done:]) / sum(neurons[:done])


def score_split(
    search: Search, candidates: Sequence[Candidate], split: Split, memory: int
) -> tuple[numpy.ndarray, dict[tuple[int, int], str]]:
    """Score candidates that are prepared alike at every depth of one split, each as if it were fitted alone.

    Return scores (candidates, depths), and what went wrong. A network that fails keeps the scores of the
    layers before, because the shallower network does not fail.
    """
    scorer = SplitScorer.of(search, split)
    values = numpy.full((len(candidates), max(c.settings.n_layers for c in candidates)), numpy.nan)
    place = {candidate: i for i, candidate in enumerate(candidates)}
    prepare = cache(lambda: _prepare(candidates[0], scorer.train, search.columns))
    size = search.size(split, candidates[0].inputs)
    waiting = [s for alike in groups(candidates, lambda c: c.stack) for s in stacks(alike, size, memory)]
    while waiting:
        stack = waiting.pop()
        members = [candidate for read_outs in stack for candidate in read_outs]
        depth, error = 0, None
        layers: list[LayerScores] = []
        try:
            layers.extend(_score_stack(stack, members, prepare(), scorer, search.stacked))
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
            deepest = members[0].settings.n_layers
            failed = scorer.excuse(error, members[0], range(depth + 1, deepest + 1))
            values[place[members[0]], depth:deepest] = failed
    return values, scorer.failures


def _prepare(candidate: Candidate, train: Sample, columns: Columns | None) -> Prepared:
    """Divide the training rows of a split as the network alone would, and learn its inputs from them."""
    estimator, seed = candidate.estimator, candidate.work.seed
    if estimator._classifies and len(numpy.unique(train.labels)) < 2:
        raise ValueError("A training split holds only one class. Use stratified splits or fewer of them.")
    rows, _ = estimator._divide_rows(train.X, train.labels, train.weights, seed, train.groups)
    data = InMemory(rows, columns)
    learnt = learn_network_inputs(data, candidate.inputs, seed)
    return data, learnt, Draws(Recipe.of(candidate.settings, seed, learnt.inputs, rows), rows.X, keep=True)


def _score_stack(
    stack: Stack, members: list[Candidate], prepared: Prepared, scorer: SplitScorer, on_gpu: bool
) -> Iterator[LayerScores]:
    """Grow the networks of a stack; yield some of them, a depth, and their scores at that depth.

    The rows that are scored ride along in D behind the training rows.
    """
    data, learnt, draws = prepared
    inputs = learnt.inputs
    rows, X = data.rows, scorer.test.X
    classes = None if rows.classes is None else to_host(rows.classes)
    abreast = side_by_side(stack, on_gpu)
    settings = stack_settings(stack, abreast)
    follows = _follows(members[0], scorer.scoring)
    by_folds = follows and members[0].work.network.looks_at_labels and bool(data.folds)
    judges = follows and not by_folds
    problem = Problem(
        rows.targets, rows.weights, draws, data.judged, abreast, judges, rows.twins, groups=rows.groups
    )
    answers = _RunningAnswers(members, data, follows, X)
    xp, m = array_namespace(X), rows.X.shape[0]
    side = (len(stack),) if abreast else ()
    D = new_features(m + X.shape[0], X, settings.n_hidden, inputs, side)
    with ignore_overflow(), suitable_threads(X, D.shape[-1], settings.n_hidden):
        fill_inputs(D[..., :m, :], rows.X, inputs)
        fill_inputs(D[..., m:, :], X, inputs)
        bias = inputs.width if settings.joint else -1
        honest = judge_by_folds(data.folds, learnt.of_folds, settings, draws, side) if by_folds else None
        for grown in grow(start(D, settings), problem):
            some, depth = grown.members, grown.layer + 1
            scores = products(grown.D[..., m:, :], rows.targets.in_units(grown.readout.beta, bias))
            finite = xp.all(xp.isfinite(scores))
            if scorer.scoring.metric is None and not bool(finite):  # a scorer would blame its input
                raise _overflow(scorer, depth)
            own = grown.loo if judges else None
            P = answers.add(grown, scores, own if honest is None else next(honest))
            yield members[some], depth, scorer(P, classes, members[some], depth), finite


def _follows(candidate: Candidate, scoring: Scoring) -> bool:
    """Tell whether the networks' leave-one-out scores are needed for their answers.

    Where only predictions count, as those of values always do, a calibration that changes none is not needed,
    nor are intervals.
    """
    network, only_predictions = candidate.work.network, scoring.classes is None or scoring.metric is accuracy
    return network.judges and not (only_predictions and network.votes.keeps_predictions)


class _RunningAnswers:
    """The answers of networks that grow together, for the rows that are scored: each as if fitted alone."""

    def __init__(self, members: list[Candidate], data: InMemory, follows: bool, X: Array) -> None:
        self._by: Votes = members[0].work.network.votes
        xp, shape = array_namespace(X), (len(members), X.shape[0], data.rows.targets.width)
        self._totals = xp.zeros(shape, dtype=X.dtype, device=device(X))
        self._votes = numpy.zeros(len(members))
        self._prefix = follows and self._by.layer_votes == "prefix"
        self._best = xp.zeros_like(self._totals if self._prefix else self._totals[:0, ...])
        self._losses = numpy.full(len(members), numpy.inf)  # of the best prefix
        self._followers = [Follower(data.jury, self._by) for _ in members] if follows else []

    def add(self, grown: Grown, scores: Array, loo: Array | None) -> Array:
        """Take the next layer's scores (..., v, k) of some networks; return their answers so far.

        Their leave-one-out scores (..., judged rows, k) are needed where they are followed.
        """
        xp, some, rule = array_namespace(scores), grown.members, RULES[self._by.rule]
        contributions = rule.contribute(xp.reshape(scores, (-1, *self._totals.shape[1:])))
        stages: list[Stage] = []
        if self._by.joint:  # the newest read-out is over all layers and answers alone
            self._totals[some, ...], self._votes[some] = 0.0, 0.0
        if self._followers:
            assert loo is not None
            loo = xp.reshape(loo, (-1, *loo.shape[-2:]))
            stages = [follower.add(loo[i, ...]) for i, follower in enumerate(self._followers[some])]
            votes = numpy.array([stage.vote for stage in stages])
            self._votes[some] += votes
            contributions = from_numpy(votes, scores)[:, None, None] * contributions
            total_votes = from_numpy(self._votes[some], scores)[:, None, None]
        else:  # one number for all of them, so that a GPU need not wait for those of the host
            self._votes[some] += 1.0
            total_votes = float(self._votes[some.start])
        self._totals[some, ...] += contributions
        P = rule.finish(self._totals[some, ...] / total_votes)
        for i, stage in enumerate(stages):
            if stage.calibration is not None:
                P[i, ...] = stage.calibration(P[i, ...])
            if self._prefix and stage.loss < self._losses[some.start + i]:
                self._losses[some.start + i], self._best[some.start + i, ...] = stage.loss, P[i, ...]
        return self._best[some, ...] if self._prefix else P


def _overflow(scorer: SplitScorer, layer: int) -> ValueError:
    return ValueError(f"The features of test rows overflow {scorer.test.X.dtype} in layer {layer}.")
