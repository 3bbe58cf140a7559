"""Fit a portfolio: race its members, weigh them by leave-one-out, and calibrate their common answer."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy

from .._loo.calibrate import SMALLEST
from .._loo.follow import CALIBRATIONS
from .._loo.pool import averaged, equal_kinds, pooled, weigh
from .._models.portfolio import Portfolio
from .._seam.arrays import array_namespace, converted, device, from_numpy
from .data import Data, few_of
from .folds import Learnt
from .inputs import best_kernel, learn_network_inputs
from .race import REFUSALS, Member, Progress
from .settings import EFFORTS, Effort, InputSettings, KernelFit, VoterSettings

# Seeds fit into int32, so that every platform draws the same.
LARGEST_SEED = numpy.iinfo(numpy.int32).max


def prepare_members(
    data: Data,
    settings: Mapping[str, VoterSettings],
    seed: int,
    effort: Effort = EFFORTS["usual"],
    heard: Callable[[], None] = lambda: None,
) -> list[Member]:
    """Return the members that are worth a fit: all networks, and the best of the kernel voters.

    Kernel voters prove on some of the rows how good they are, which takes far less than a fit. Members of the
    same encoder and scaling share what they see. `heard` is told of each kernel voter that has done so.
    """
    for name, given in settings.items():
        if refuse := REFUSALS.get(type(given)):
            refuse(name, given, data)
    found = {name: given.as_member(data.worth) for name, given in settings.items()}
    kernels = {name: one for name, one in found.items() if isinstance(one, KernelFit)}
    few = None
    if len(kernels) > effort.kept:
        kernels = {name: one.as_raced(effort.rounds) for name, one in kernels.items()}
        few = few_of(data, effort.race_rows, seed)
    raced = {}
    for name, kernel in kernels.items():
        raced[name] = best_kernel(data, kernel, seed, few)
        heard()
    proofs = {one.inputs: proof for one, proof in raced.values()}
    kept = sorted(raced, key=lambda name: raced[name][1].loss)[: effort.kept]
    known: dict[Any, Learnt] = {}
    members = []
    for i, (name, given) in enumerate(found.items()):
        if name in raced and name not in kept:
            continue
        one = raced[name][0] if name in raced else _as_kernels_see(given, proofs)
        if one.inputs not in known:
            known[one.inputs] = learn_network_inputs(data, one.inputs, seed, proofs.get(one.inputs))
        child = numpy.random.SeedSequence(seed, spawn_key=(i,)).generate_state(1)
        members.append(Member(name, one, known[one.inputs], int(child[0]) % LARGEST_SEED))
    return members


def _as_kernels_see(given: VoterSettings, proofs: Collection[InputSettings]) -> VoterSettings:
    """Let a network whose scaling must prove itself see what a kernel of the same encoder proved already."""
    for inputs in proofs if given.inputs.scaling == "loo" else ():
        if inputs.raced and inputs == replace(
            given.inputs, kernel=inputs.kernel, rounds=inputs.rounds, raced=True
        ):
            return replace(given, inputs=inputs)
    return given


@dataclass(frozen=True, slots=True, eq=False)
class Weighed:
    """A portfolio, what leave-one-out says about it, and the weight of each member."""

    model: Portfolio
    P: numpy.ndarray  # (judged rows, k), its leave-one-out answers
    score: float
    loss: float
    weights: dict[int, float]  # by the number of the member
    solved: tuple[Any, ...]  # what the read-outs of each voter were solved from


def weigh_members(
    data: Data, members: Sequence[Member], progress: Mapping[int, Progress], by_loo: bool, rule: str | None
) -> Weighed:
    """Weigh the members that were fitted, and calibrate their common answer by a rule, if there is one."""
    jury, rows, fitted = data.jury, data.rows, sorted(progress)
    answers = [progress[i].chosen.P for i in fitted]
    weights = equal_kinds([type(members[i].settings) for i in fitted])
    combine = averaged if rows.classes is None else pooled
    if by_loo:
        weights, P = weigh(answers, jury, weights, combine)
    else:
        P = combine(answers, weights.tolist())
    # without a rule a temperature still makes the figures comparable
    by = CALIBRATIONS[rule or "temperature"]
    found = jury.calibration(P, by)
    calibrated = P if found is None else jury.calibrated(P, found, by, SMALLEST)
    figures = jury.score(calibrated), jury.loss(calibrated)
    heavy = [(progress[i], float(w)) for i, w in zip(fitted, weights, strict=True) if w > 0]
    model = Portfolio(
        data.columns,
        rows.classes,
        tuple(one.kept for one, _ in heavy),
        tuple(weight for _, weight in heavy),
        None if rule is None else converted(found, lambda array: from_numpy(array, rows.X)),
        array_namespace(rows.X).empty((0,), dtype=rows.X.dtype, device=device(rows.X)),
    )
    of_members = dict(zip(fitted, weights.tolist(), strict=True))
    solved = tuple(one.remembered for one, _ in heavy)
    return Weighed(model, P if rule is None else calibrated, *figures, of_members, solved)
