"""Learn what a model sees of the columns; factors that saw labels prove themselves on other rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy

from .._inputs.inputs import Inputs
from .._inputs.rows import Rows
from .._loo.follow import answers_of
from .._loo.jury import best_of
from .._seam.arrays import ignore_overflow
from .._seam.threads import suitable_threads
from .data import Data, few_of
from .folds import Fold, Learnt, together
from .gradient import CHOOSING_ROWS, GRADIENT_ROWS, Ridge, fit_ridge
from .kernel import judge_fold
from .settings import RACE_ROWS, InputSettings, KernelFit
from .systems import Pair

LEAST_GAIN = 2e-3  # of a round of factors, relatively; after less no further round is tried
Seen = tuple[Inputs, Pair]  # inputs, and the bandwidth and penalty that suit them


@dataclass(frozen=True, slots=True, eq=False)
class Proof:
    """What came of factors on rows whose labels did not shape them."""

    inputs: Inputs  # without factors
    rounds: int  # how often columns are multiplied by factors
    loss: float = math.inf  # the honest loss of a kernel ridge then, if it was tried
    data: Data | None = None  # the rows that were asked, if there were folds
    seen: tuple[Seen, ...] = ()  # what the ridge of each of their folds saw
    pairs: tuple[Pair, ...] = ()  # the bandwidth and penalty of their first fold after 0, 1, ... rounds


def prove_inputs(data: Data, settings: InputSettings, seed: int, few: Data | None = None) -> Proof:
    """Find out on rows whose labels did not shape them how often factors help.

    A network uses them without a proof where rows are many. A kernel, which may multiply several times, is
    asked on few of the rows then, and tells how good it is beside other kernels.
    """
    with ignore_overflow(), suitable_threads(data.rows.X, GRADIENT_ROWS, GRADIENT_ROWS):
        inputs = data.encoding(settings.encoder)
        if not settings.looks_at_labels:
            return Proof(inputs, 0)
        if few is None:
            few = few_of(data, RACE_ROWS, seed) if settings.raced or data.folds else data
        if not few.folds:
            return Proof(inputs, int(settings.scaling is not None))
        return _prove(few, inputs, settings, seed)


def best_kernel(
    data: Data, settings: KernelFit, seed: int, few: Data | None = None
) -> tuple[KernelFit, Proof]:
    """Return the candidate of the smallest honest loss, with its proof; the first one if none was tried.

    Candidates prove themselves on the same few rows, which may be given.
    """
    candidates = settings.candidates()
    if few is None and settings.inputs.raced:
        few = few_of(data, RACE_ROWS, seed)
    proofs = [prove_inputs(data, one.inputs, seed, few) for one in candidates]
    return min(zip(candidates, proofs, strict=True), key=lambda one: one[1].loss)


def learn_network_inputs(
    data: Data, settings: InputSettings, seed: int, proof: Proof | None = None
) -> Learnt:
    """Learn from training rows what a model sees of their columns, and what it would see without a fold."""
    found = prove_inputs(data, settings, seed) if proof is None else proof
    inputs, rounds, pairs = found.inputs, found.rounds, found.pairs
    with ignore_overflow(), suitable_threads(data.rows.X, GRADIENT_ROWS, GRADIENT_ROWS):
        if not settings.looks_at_labels:
            return Learnt(inputs, (inputs,) * len(data.folds))
        known: Sequence[Pair | None] = pairs[:rounds] or (None,) * rounds
        scaled = _scaled(data.single_rows, inputs, settings, seed, known)
        near = pairs[rounds] if settings.raced and pairs else None
        if found.data is data:
            of_folds, chosen = zip(*found.seen, strict=True)
            return Learnt(scaled, of_folds, chosen, near)
        of_folds = tuple(_scaled(fold.outside, inputs, settings, seed, known) for fold in data.folds)
        return Learnt(scaled, of_folds, (), near)


def _scaled(
    rows: Rows, inputs: Inputs, settings: InputSettings, seed: int, pairs: Sequence[Pair | None]
) -> Inputs:
    """Multiply columns by factors once for each pair: the bandwidth and penalty of a ridge that finds them.

    Where a pair is not known, some of the rows choose it: factors hardly depend on it. Few rows choose again.
    """
    for known in pairs:
        pair = known or fit_ridge(inputs, rows, seed, settings.kernel, n=CHOOSING_ROWS).choice.values
        settled = rows.worth > CHOOSING_ROWS
        inputs = fit_ridge(inputs, rows, seed, settings.kernel, pair, settled).scaled()
    return inputs


def _prove(data: Data, inputs: Inputs, settings: InputSettings, seed: int) -> Proof:
    """Find out how many rounds of factors are used, what each fold's model sees, and the honest loss.

    What a fold's model sees is decided by the other folds. A round that gains next to nothing is the last.
    """
    given = {None: 0, "gradient": 1}.get(settings.scaling)
    before: list[Ridge | None] = [None] * len(data.folds)
    tried: list[list[Seen]] = []
    answers: list[numpy.ndarray] = []
    losses: list[float] = []
    while True:
        ridges = [
            _next(fold, ridge, inputs, settings, seed) for fold, ridge in zip(data.folds, before, strict=True)
        ]
        before = [*ridges]
        tried.append([(ridge.inputs, ridge.choice.values) for ridge in ridges])
        if given is not None and len(tried) <= given:
            continue
        answers.append(_answers(data, tried[-1], settings.kernel))
        losses.append(data.jury.loss(answers[-1]))
        pairs = tuple(of_round[0][1] for of_round in tried)
        if given is not None:
            return Proof(inputs, given, losses[0], data, tuple(tried[given]), pairs)
        if len(tried) > settings.rounds or losses[-1] > min(losses[:-1], default=math.inf) * (1 - LEAST_GAIN):
            break
    best, in_folds = best_of(data.jury, answers)
    seen = tuple(tried[rounds][fold] for fold, rounds in enumerate(in_folds))
    return Proof(inputs, best, losses[best], data, seen, pairs)


def _next(fold: Fold, before: Ridge | None, inputs: Inputs, settings: InputSettings, seed: int) -> Ridge:
    """Return a ridge that sees columns after one more round of factors, found by the ridge before."""
    if before is None:
        return fit_ridge(inputs, fold.outside, seed, settings.kernel)
    near = before.choice.values if settings.raced else None
    return fit_ridge(before.scaled(), fold.outside, seed, settings.kernel, near)


def _answers(data: Data, seen: list[Seen], kernel: str) -> numpy.ndarray:
    """Return the honest leave-one-out answers of a kernel ridge that sees these inputs."""
    scores = [judge_fold(fold, *one, kernel) for fold, one in zip(data.folds, seen, strict=True)]
    rule = "value" if data.rows.classes is None else "softmax"
    return answers_of([together(data.folds, scores)], rule, data.jury)
