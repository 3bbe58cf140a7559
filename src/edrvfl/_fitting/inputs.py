"""Learn what a model sees of the columns; factors that saw labels prove themselves on other rows."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
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
from .settings import InputSettings, KernelFit
from .systems import Pair

RACE_ROWS = 800  # of which a kernel proves how good it is, and how often factors help it
Seen = tuple[Inputs, Pair]  # inputs, and the bandwidth and penalty that suit them


@dataclass(frozen=True, slots=True, eq=False)
class Proof:
    """What came of factors on rows whose labels did not shape them."""

    inputs: Inputs  # without factors
    rounds: int  # how often columns are multiplied by factors
    loss: float = math.inf  # the honest loss of a kernel ridge then, if it was tried
    data: Data | None = None  # the rows that were asked, if there were folds
    seen: tuple[Seen, ...] = ()  # what the ridge of each of their folds saw


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
            few = few_of(data, RACE_ROWS, seed) if settings.raced else data
        if not few.folds:
            return Proof(inputs, int(settings.scaling is not None))
        rounds, seen, loss = _prove(few, inputs, settings, seed)
        return Proof(inputs, rounds, loss, few, tuple(seen))


def best_kernel(data: Data, settings: KernelFit, seed: int) -> tuple[KernelFit, Proof]:
    """Return the candidate of the smallest honest loss, with its proof; the first one if none was tried."""
    candidates = settings.candidates()
    few = few_of(data, RACE_ROWS, seed) if settings.inputs.raced else None
    proofs = [prove_inputs(data, one.inputs, seed, few) for one in candidates]
    return min(zip(candidates, proofs, strict=True), key=lambda one: one[1].loss)


def learn_network_inputs(
    data: Data, settings: InputSettings, seed: int, proof: Proof | None = None
) -> Learnt:
    """Learn from training rows what a model sees of their columns, and what it would see without a fold."""
    found = prove_inputs(data, settings, seed) if proof is None else proof
    inputs, rounds, seen = found.inputs, found.rounds, found.seen
    with ignore_overflow(), suitable_threads(data.rows.X, GRADIENT_ROWS, GRADIENT_ROWS):
        if not settings.looks_at_labels:
            return Learnt(inputs, (inputs,) * len(data.folds))
        near = seen[0][1] if settings.raced and seen else None
        if found.data is not data:
            ridges = (_after(rounds, fold.outside, inputs, settings, seed, near) for fold in data.folds)
            seen = tuple((ridge.inputs, ridge.choice.values) for ridge in ridges)
        scaled = inputs
        if rounds:
            scaled = _after(rounds - 1, data.single_rows, inputs, settings, seed, near).scaled()
        of_folds, chosen = zip(*seen, strict=True) if seen else ((), ())
        return Learnt(scaled, of_folds, chosen, near)


def _rounds(
    rows: Rows, inputs: Inputs, settings: InputSettings, seed: int, near: Pair | None = None
) -> Iterator[Ridge]:
    """Yield ridges that see columns after 0, 1, ... rounds of factors, each found by the ridge before."""
    while True:
        ridge = fit_ridge(inputs, rows, seed, settings.kernel, near)
        yield ridge
        inputs, near = ridge.scaled(), ridge.choice.values if settings.raced else None


def _after(
    rounds: int, rows: Rows, inputs: Inputs, settings: InputSettings, seed: int, near: Pair | None = None
) -> Ridge:
    """Return the ridge that sees columns after so many rounds."""
    return next(islice(_rounds(rows, inputs, settings, seed, near), rounds, None))


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
