"""Learn what a model sees of the columns; factors that saw labels prove themselves on other rows."""

from __future__ import annotations

import numpy

from .._inputs.inputs import Inputs
from .._loo.follow import answers_of
from .._loo.jury import is_better
from .._seam.arrays import ignore_overflow
from .._seam.threads import suitable_threads
from .data import Data
from .folds import Fold, Learnt, together
from .gradient import GRADIENT_ROWS, fit_ridge, with_gradient_factors
from .kernel import judge_fold
from .settings import InputSettings

Seen = tuple[Inputs, tuple[float, float]]  # inputs, and the bandwidth and penalty that suit them


def learn_network_inputs(data: Data, settings: InputSettings, seed: int) -> Learnt:
    """Learn from training rows what a model sees of their columns.

    The scaling "loo" multiplies columns by gradient factors if a kernel ridge is better with them, by honest
    leave-one-out. Where rows are many it does so without a proof.
    """
    with ignore_overflow(), suitable_threads(data.rows.X, GRADIENT_ROWS, GRADIENT_ROWS):
        inputs, folds = data.encoding(settings.encoder), data.folds
        if settings.scaling is None:
            return Learnt(inputs, (inputs,) * len(folds))
        used, seen = _prove(data, inputs, seed, settings.scaling == "loo") if folds else (True, [])
        scaled = with_gradient_factors(inputs, data.single_rows, seed) if used else inputs
        return Learnt(scaled, *(tuple(part) for part in zip(*seen, strict=True)))


def _prove(data: Data, inputs: Inputs, seed: int, proof: bool) -> tuple[bool, list[Seen]]:
    """Return whether factors are used, and what the model of each fold sees: as the other folds decide."""
    each = [_see(fold, inputs, seed) for fold in data.folds]
    scaled, plain = ([one[i] for one in each] for i in range(2))
    if not proof:
        return True, scaled
    used, in_folds = is_better(data.jury, *(_answers(data, tried) for tried in (scaled, plain)))
    return used, [a if better else b for a, b, better in zip(scaled, plain, in_folds, strict=True)]


def _see(fold: Fold, inputs: Inputs, seed: int) -> tuple[Seen, Seen]:
    """Let the rows outside a fold find factors; return inputs with and without them."""
    outside = fold.outside
    ridge = fit_ridge(inputs, outside, seed)
    scaled = fit_ridge(ridge.scaled(), outside, seed)
    with_factors, without = ((one.inputs, (one.bandwidth, one.lam)) for one in (scaled, ridge))
    return with_factors, without


def _answers(data: Data, seen: list[Seen]) -> numpy.ndarray:
    """Return the honest leave-one-out answers of a kernel ridge that sees these inputs."""
    scores = [judge_fold(fold, *one) for fold, one in zip(data.folds, seen, strict=True)]
    rule = "value" if data.rows.classes is None else "softmax"
    return answers_of([together(data.folds, scores)], rule, data.jury)
