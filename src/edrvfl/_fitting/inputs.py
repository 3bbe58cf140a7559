"""Learn what a model sees of the columns; factors that saw labels prove themselves on other rows."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import islice

import numpy

from .._inputs.inputs import Inputs
from .._inputs.rows import Rows
from .._loo.follow import answers_of
from .._loo.jury import best_of
from .._seam.arrays import ignore_overflow
from .._seam.threads import suitable_threads
from .data import Data, few_of
from .folds import Learnt, together
from .gradient import GRADIENT_ROWS, Ridge, fit_ridge
from .kernel import judge_fold
from .settings import InputSettings

Seen = tuple[Inputs, tuple[float, float]]  # inputs, and the bandwidth and penalty that suit them


def learn_network_inputs(data: Data, settings: InputSettings, seed: int) -> Learnt:
    """Learn from training rows what a model sees of their columns.

    The scaling "loo" multiplies columns by gradient factors if a kernel ridge is better with them, by honest
    leave-one-out. Where rows are many a network uses them without a proof; a kernel, which may multiply
    several times, proves on some of the rows how often.
    """
    with ignore_overflow(), suitable_threads(data.rows.X, GRADIENT_ROWS, GRADIENT_ROWS):
        inputs, folds = data.encoding(settings.encoder), data.folds
        if settings.scaling is None and not settings.raced:
            return Learnt(inputs, (inputs,) * len(folds))
        few = few_of(data, GRADIENT_ROWS, seed) if settings.raced else data
        rounds, seen, loss = int(settings.scaling is not None), [], math.inf
        if few.folds:
            rounds, seen, loss = _prove(few, inputs, settings, seed)
        if few is not data:
            ridges = (_after(rounds, fold.outside, inputs, settings, seed) for fold in folds)
            seen = [(ridge.inputs, ridge.choice.values) for ridge in ridges]
        scaled = inputs
        if rounds:
            scaled = _after(rounds - 1, data.single_rows, inputs, settings, seed).scaled()
        of_folds, chosen = (tuple(part) for part in zip(*seen, strict=True)) if seen else ((), ())
        return Learnt(scaled, of_folds, chosen, loss)


def _rounds(rows: Rows, inputs: Inputs, settings: InputSettings, seed: int) -> Iterator[Ridge]:
    """Yield kernel ridges that see columns after 0, 1, ... rounds of factors, each found by the one before."""
    ridge = None
    while True:
        ridge = fit_ridge(inputs, rows, seed, settings.kernel, ridge if settings.raced else None)
        yield ridge
        inputs = ridge.scaled()


def _after(rounds: int, rows: Rows, inputs: Inputs, settings: InputSettings, seed: int) -> Ridge:
    """Return the ridge that sees columns after so many rounds."""
    return next(islice(_rounds(rows, inputs, settings, seed), rounds, None))


def _prove(data: Data, inputs: Inputs, settings: InputSettings, seed: int) -> tuple[int, list[Seen], float]:
    """Return how many rounds of factors are used, what each fold's model sees, and the honest loss.

    What a fold's model sees is decided by the other folds. No further round is tried after one that made
    things worse.
    """
    given = {None: 0, "gradient": 1}.get(settings.scaling)
    tried: list[list[Seen]] = []
    answers: list[numpy.ndarray] = []
    losses: list[float] = []
    for ridges in zip(*(_rounds(fold.outside, inputs, settings, seed) for fold in data.folds), strict=True):
        tried.append([(ridge.inputs, ridge.choice.values) for ridge in ridges])
        if given is not None and len(tried) <= given:
            continue
        answers.append(_answers(data, tried[-1], settings.kernel))
        losses.append(data.jury.loss(answers[-1]))
        if given is not None:
            return given, tried[given], losses[0]
        if len(tried) > settings.rounds or losses[-1] > min(losses):
            break
    best, in_folds = best_of(data.jury, answers)
    seen = [tried[rounds][fold] for fold, rounds in enumerate(in_folds)]
    return best, seen, losses[best]


def _answers(data: Data, seen: list[Seen], kernel: str) -> numpy.ndarray:
    """Return the honest leave-one-out answers of a kernel ridge that sees these inputs."""
    scores = [judge_fold(fold, *one, kernel) for fold, one in zip(data.folds, seen, strict=True)]
    rule = "value" if data.rows.classes is None else "softmax"
    return answers_of([together(data.folds, scores)], rule, data.jury)
