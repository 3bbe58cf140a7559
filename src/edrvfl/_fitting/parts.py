"""The passes before the first layer: all that a fit from parts learns, but for the layers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from .._doors.encoder import TabularEncoder, as_encoder
from .._inputs.held_back import HeldBack
from .._inputs.inputs import Inputs
from .._inputs.judged import Judged
from .._inputs.rows import Rows
from .._layers.draws import Draws, Recipe
from .._layers.records import Settings, scaling_for_rows
from .._parts.chosen import hold_back_parted, judged_rows, ledger
from .._parts.encoding import learn_parted_encoding
from .._parts.parts import Parts
from .._parts.rows import PartedRows, parted_rows
from .._parts.survey import take_survey
from .._parts.watched import WatchedParts
from .._seam.arrays import ignore_overflow, like_on
from .gradient import with_gradient_factors


@dataclass(frozen=True, slots=True, eq=False)
class Prepared:
    """What a fit knows before the first layer."""

    parted: PartedRows  # the rows that are fitted
    held: HeldBack | None  # rows that are held back from the fit
    rows: Rows  # those that leave-one-out judges, in memory
    judged: Judged | None  # all of these rows, with what they stand for; None if they are all there are
    settings: Settings
    inputs: Inputs
    draws: Draws
    seed: int


def prepare_fit(parts: Parts, estimator: Any, heard: Callable[[int], None]) -> Prepared:
    """Survey the parts, bring the judged rows to memory, learn the encoding, and decide the draws."""
    encoder = as_encoder(estimator.encoder)
    parted, held, seed = _divide(parts, estimator, encoder, heard)
    with ignore_overflow():
        rows, judged = judged_rows(parted)
        inputs = learn_parted_encoding(parted, encoder)
        settings = Settings.of(estimator).for_rows(parted.worth)
        scaling, every = scaling_for_rows(estimator.input_scaling, parted.worth), rows
        if estimator.pair_share > 0 or scaling is not None:  # single rows are drawn from all rows
            every = rows if judged is None else ledger(parted)
            inputs = inputs if scaling is None else with_gradient_factors(inputs, every, seed)
        draws = Draws(Recipe.of(settings, seed, inputs, every), rows.X)
    return Prepared(parted, held, rows, judged, settings, inputs, draws, seed)


def _divide(
    parts: Parts, estimator: Any, encoder: TabularEncoder | None, heard: Callable[[int], None]
) -> tuple[PartedRows, HeldBack | None, int]:
    """Return the rows to fit, those that are held back from the fit, and the seed."""
    watched = WatchedParts(parts, heard)
    survey = take_survey(watched, estimator, encoder)
    seed = estimator._draw_seed()
    like = like_on(parts.device, "float32" if survey.single else "float64")
    if estimator.coverage_from != "split":
        return parted_rows(watched, survey, estimator.class_weight, like), None, seed
    fitted, held = hold_back_parted(parted_rows(watched, survey, None, like), seed)
    # categories are those of all rows, as in memory; all else is of the rows that are fitted
    again = replace(take_survey(fitted, estimator, encoder), kinds=survey.kinds)
    return parted_rows(fitted, again, estimator.class_weight, like), held, seed
