"""Section 5.5 of the paper: what weighting and pruning do to accuracy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from ... import paper
from ...figures.charts import sensitivity_figure
from ...names import plural
from ...record import SensitivityRecord
from ...sensitivity import NEUTRAL, SYMBOLS, Sensitivity
from ..page import EMPTY, Grid, Picture, Section, make_row, signed_cell, verdict_cell
from ..summary import Summary

CLEAR = 2.0  # a change of so many standard errors over the seeds counts as one
HELPS, HARMS, INERT, UNCLEAR = "helps", "harms", "does nothing", "makes no clear change"
PEAK, RISES = "rises to a peak and ends below the start", "helps, also at the end"
NAMES = {"correct_weight": "Weighting", "prune_rate": "Pruning"}


@dataclass(frozen=True, slots=True)
class Change:
    """The mean difference of two values of a parameter, paired by seed, in points."""

    mean: float
    error: float | None  # its standard error over the seeds; None with one seed

    @classmethod
    def of(cls, point: SensitivityRecord, start: SensitivityRecord) -> Change:
        """Subtract one point of a curve from another."""
        difference = point.by_seed - start.by_seed
        n = len(difference)
        error = float(np.std(difference, ddof=1)) / math.sqrt(n) if n > 1 else None
        return cls(float(np.mean(difference)), error)

    @property
    def is_clear(self) -> bool:
        # A difference of 1e-9 is rounding, also where one seed gives no standard error.
        return abs(self.mean) > max(CLEAR * (self.error or 0.0), 1e-9)


@dataclass(frozen=True, slots=True)
class Effect:
    """What a curve shows. The best and the last value are compared with the neutral one."""

    curve: tuple[str, str]  # dataset and activation
    best_value: float
    gain: Change  # of the best value
    last: Change  # of the value farthest from the neutral one
    train_accuracy: float | None  # at the neutral value
    verdict: str
    paper: str | None  # what the paper's text says; None: not among its datasets


def effects(result: Sensitivity, parameter: str) -> list[Effect]:
    """Put every curve of a parameter into words, beside what the paper says of it."""
    found = []
    for curve, points in result.curves(parameter).items():
        if len(points) < 2:
            continue
        start, best = points[0], max(points[1:], key=lambda p: float(np.mean(p.by_seed)))
        gain, last = Change.of(best, start), Change.of(points[-1], start)
        verdict = _verdict(parameter, points, gain, last)
        papers = _papers_verdict(parameter, curve[0])
        value = getattr(best, parameter)
        found.append(Effect(curve, value, gain, last, start.train_accuracy, verdict, papers))
    return found


def _verdict(parameter: str, points: Sequence[SensitivityRecord], gain: Change, last: Change) -> str:
    if all(p.test_accuracy == points[0].test_accuracy for p in points):
        return INERT
    if gain.mean > 0 and gain.is_clear:
        return HELPS if parameter == "correct_weight" else PEAK if last.mean < 0 else RISES
    return HARMS if last.mean < 0 and last.is_clear else UNCLEAR


def _papers_verdict(parameter: str, dataset: str) -> str | None:
    if parameter == "prune_rate":
        return PEAK if dataset in paper.PRUNING_PEAKS else None
    helps = paper.WEIGHTING_HELPS.get(dataset)
    return None if helps is None else HELPS if helps else HARMS


def show_sensitivity(s: Summary) -> Section | None:
    """Show the curves of omega_r and of p, and compare them with the paper's text."""
    result = s.study.sensitivity
    if result is None:
        return None
    one = result.records[0]
    settings = ", ".join(f"{key} = {value}" for key, value in one.settings.items())
    text = (
        f"Section 5.5 of the paper, with its fixed settings ({settings}) and "
        f"{plural(one.seeds, 'hidden seed')}; mean over the splits, bands of one standard deviation over "
        "the seeds. The paper does not name its activation; where training accuracy is 100 %, weighting has "
        "nothing to act on. The paper's figures are not in its source, so the comparison is with its text. A "
        "change is called clear beyond two standard errors, paired by seed; the best value is found on test "
        "rows, so gains are flattered."
    )
    found = {parameter: effects(result, parameter) for parameter in NEUTRAL if result.curves(parameter)}
    return Section(
        "sensitivity",
        "Effects of weighting and pruning (section 5.5)",
        (text, *(agreement(parameter, some) for parameter, some in found.items())),
        pictures=tuple(_curves(result, parameter) for parameter in found),
        grids=tuple(_effects_grid(parameter, some) for parameter, some in found.items()),
    )


def agreement(parameter: str, found: Sequence[Effect]) -> str:
    """Say in how many curves the paper's text is met, and what the others show."""
    known = [e for e in found if e.paper is not None]
    differ = [f"it {e.verdict} on {e.curve[0]} ({e.curve[1]})" for e in known if e.verdict != e.paper]
    agree = f"{len(known) - len(differ)} of {len(known)}"
    text = f"{NAMES[parameter]} agrees with the paper's text in {agree} curves"
    return f"{text}. It differs in the others: {'; '.join(differ)}." if differ else f"{text}."


def _curves(result: Sensitivity, parameter: str) -> Picture:
    rows = []
    for curve, points in result.curves(parameter).items():
        for point in points:
            by_seed = point.by_seed
            sd = float(np.std(by_seed, ddof=1)) if len(by_seed) > 1 else np.nan
            assert point.train_accuracy is not None  # only a failed record has none
            scores = (float(np.mean(by_seed)), sd, point.train_accuracy)
            rows.append((*curve, getattr(point, parameter), *(round(score, 4) for score in scores)))
    columns = ["dataset", "activation", SYMBOLS[parameter], "test_accuracy", "sd", "train_accuracy"]
    return Picture(
        f"sensitivity_{parameter}",
        f"Test accuracy in percent as {SYMBOLS[parameter]} varies",
        "Bands of one standard deviation over the seeds; a panel for each dataset.",
        pd.DataFrame(rows, columns=columns),
        sensitivity_figure,
    )


def _effects_grid(parameter: str, found: Sequence[Effect]) -> Grid:
    rows = tuple(
        make_row(
            *(*e.curve, e.best_value),
            *(signed_cell(change.mean, change.error) for change in (e.gain, e.last)),
            *(e.train_accuracy, e.verdict, e.paper or EMPTY),
            EMPTY if e.paper is None else verdict_cell(differs=e.verdict != e.paper),
        )
        for e in found
    )
    symbol = SYMBOLS[parameter]
    columns = (
        *("dataset", "activation", f"best {symbol}", "gain in points ± standard error"),
        *("change at the last value", "training accuracy", "measured", "paper's text", "verdict"),
    )
    return Grid(f"effects-{parameter}", f"What {symbol} does", columns, rows)
