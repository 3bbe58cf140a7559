"""Read training rows that come in parts: the passes before anything is fitted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy

from .._inputs.chosen import HeldBack
from .._inputs.rows import merge_copies
from .._parts.chosen import hold_back_parted, judged_rows
from .._parts.parts import Parts
from .._parts.rows import PartedRows, parted_rows
from .._parts.survey import take_survey
from .._parts.watched import WatchedParts
from .._seam.arrays import Array, ignore_overflow, like_on
from .data import Data, InParts
from .settings import InputSettings


@dataclass(frozen=True, slots=True, eq=False)
class Given:
    """Rows as they came, those of weight 0 too."""

    X: Array  # (m, d), numbers and codes
    y: Array  # (m,) or (m, k)
    ids: numpy.ndarray | None  # (m,), the names of the rows, if they have some


@dataclass(frozen=True, slots=True, eq=False)
class Reading:
    """What a fit reads: the training rows, those that are held back from the fit, and the seed."""

    data: Data
    held: HeldBack | None
    seed: int
    given: Given | None = None  # the rows as they came, where they are in memory and a fit remembers


def read_parts(
    parts: Parts, estimator: Any, inputs: InputSettings, heard: Callable[[int], None] | None
) -> Reading:
    """Survey the parts, and bring the rows to memory that leave-one-out judges."""
    parted, held, seed = _divide(parts, estimator, inputs, heard)
    with ignore_overflow():
        rows, judged = judged_rows(parted)
        if judged is None:  # all rows are in memory, which tell whether equal ones agree by chance
            rows = replace(rows, apart=merge_copies(rows).apart)
        return Reading(InParts(parted, rows, judged, remembers=estimator.remember is not None), held, seed)


def _divide(
    parts: Parts, estimator: Any, inputs: InputSettings, heard: Callable[[int], None] | None
) -> tuple[PartedRows, HeldBack | None, int]:
    """Return the rows to fit, those that are held back from the fit, and the seed."""
    columns = None if inputs.encoder is None else inputs
    class_weight, watched = getattr(estimator, "class_weight", None), WatchedParts(parts, heard)
    survey = take_survey(watched, estimator, columns)
    seed = estimator._draw_seed()
    like = like_on(parts.device, "float32" if survey.single else "float64")
    if estimator.coverage_from != "split":
        return parted_rows(watched, survey, class_weight, like), None, seed
    fitted, held = hold_back_parted(parted_rows(watched, survey, None, like), seed)
    # categories are those of all rows, as in memory; all else is of the rows that are fitted
    again = replace(take_survey(fitted, estimator, columns), kinds=survey.kinds)
    return parted_rows(fitted, again, class_weight, like), held, seed
