"""Score candidates on one split: grow many networks together and judge each layer as it comes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache

import numpy

from .._answers.combine import RULES
from .._arrays import Array, array_namespace, device, ignore_overflow
from .._inputs.encoded import Inputs
from .._inputs.encoding import EncoderSettings, learn_inputs
from .._inputs.rows import Rows, prepare_rows, to_host
from .._inputs.targets import side_by_side
from .._network.grow import Problem, grow, start
from .._network.layers import Draws, fill_inputs, new_features
from .._threads import suitable_threads
from .metrics import Judge, Sample, Search, Split, is_kernel
from .plan import Candidate, Stack, stack_settings, stacks

Prepared = tuple[Rows, numpy.ndarray, Inputs, Draws]  # what candidates of one problem share on a split
Judged = tuple[list[Candidate], int, Array, Array]  # networks, a depth, their scores, whether they are finite


def score_split(
    search: Search, candidates: Sequence[Candidate], split: Split, memory: int
) -> tuple[numpy.ndarray, dict[tuple[int, int], str]]:
    """Score candidates of one problem at every depth of one split, each as if it had been fitted alone.

    Return scores (candidates, depths), and what went wrong. A network that fails keeps the scores of the
    layers before, because the shallower network does not fail.
    """
    judge = Judge.of(search, split)
    values = numpy.full((len(candidates), max(c.settings.n_layers for c in candidates)), numpy.nan)
    place = {candidate: i for i, candidate in enumerate(candidates)}
    prepare = cache(lambda: _prepare(candidates[0], judge.train))
    waiting = list(stacks(candidates, search.size(split), memory))
    while waiting:
        stack = waiting.pop()
        members = [candidate for read_outs in stack for candidate in read_outs]
        depth, error = 0, None
        judged: list[Judged] = []
        try:
            judged.extend(_score_stack(stack, members, prepare(), judge))
        except Exception as failure:  # features that overflow, or what a scorer raises
            error = failure
        for some, at, scores, finite in judged:  # only now, so that a GPU does not wait after each layer
            if not bool(finite):
                error = _overflow(judge, at)
                break
            values[[place[c] for c in some], at - 1], depth = to_host(scores), at
        # Grown alone, the others get their scores, and the network that fails gets the error.
        if error is not None and len(members) > 1:
            waiting += [[[candidate]] for candidate in members]
        elif error is not None:
            alone, deepest = members[0], members[0].settings.n_layers
            values[place[alone], depth:deepest] = judge.excuse(error, alone, range(depth + 1, deepest + 1))
    return values, judge.failures


def _prepare(candidate: Candidate, train: Sample) -> Prepared:
    estimator = candidate.estimator
    rows = prepare_rows(train.X, train.labels, train.weights, estimator.class_weight)
    if rows.targets.width < 2:
        raise ValueError("A training split holds only one class. Use stratified splits or fewer of them.")
    inputs = learn_inputs(rows.X, rows.weights.counts, EncoderSettings() if estimator.standardize else None)
    draws = Draws(candidate.seed, inputs.width, estimator.n_hidden, rows.X, keep=True)
    return rows, to_host(rows.classes), inputs, draws


def _score_stack(
    stack: Stack, members: list[Candidate], prepared: Prepared, judge: Judge
) -> Iterator[Judged]:
    """Grow the networks of a stack; yield some of them, a depth, and their scores at that depth.

    The rows that are scored ride along in D behind the training rows.
    """
    rows, classes, inputs, draws = prepared
    stacked = judge.search.stacked and members[0].settings.lam is not None
    settings, rule = stack_settings(stack, stacked), RULES[members[0].estimator.ensemble]
    xp, m, v = array_namespace(rows.X), rows.X.shape[0], judge.test.X.shape[0]
    shape = (len(members), v, rows.targets.width)
    totals = xp.zeros(shape, dtype=rows.X.dtype, device=device(rows.X))
    D = new_features(m + v, rows.X, settings.n_hidden, inputs, (len(stack),) if stacked else ())
    with ignore_overflow(), suitable_threads(rows.X, D.shape[-1], settings.n_hidden):
        fill_inputs(D[..., :m, :], rows.X, inputs)
        fill_inputs(D[..., m:, :], judge.test.X, inputs)
        for grown in grow(start(D, settings), Problem(rows.targets, rows.weights, draws, stacked)):
            some, depth = grown.members, grown.layer + 1
            scores = side_by_side(grown.D[..., m:, :], grown.readout.beta)
            finite = xp.all(xp.isfinite(scores))
            if not is_kernel(judge.search.scoring) and not bool(finite):  # a scorer would blame its input
                raise _overflow(judge, depth)
            totals[some, ...] += rule.contribute(xp.reshape(scores, (-1, *shape[1:])))
            P = rule.finish(totals[some, ...] / depth)
            yield members[some], depth, judge(P, classes, members[some], depth), finite


def _overflow(judge: Judge, layer: int) -> ValueError:
    return ValueError(f"The features of test rows overflow {judge.test.X.dtype} in layer {layer}.")
