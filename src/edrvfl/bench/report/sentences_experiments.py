"""What sections 5.5 and 5.6 found, in words, beside what the paper's text says."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .. import paper
from ..sensitivity import Point, Sensitivity
from ..timing import DATASETS as TIMING_DATASETS
from ..timing import Timing

CLEAR = 2.0  # a change of so many standard errors over the seeds counts as one
HELPS, HARMS, INERT, UNCLEAR = "helps", "harms", "does nothing", "makes no clear change"
PEAK, RISES = "rises to a peak and ends below the start", "helps, also at the end"


# --- section 5.5 -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Effect:
    """What a curve shows. The best and the last value are compared with the neutral one, paired by seed."""

    dataset: str
    activation: str
    best_value: float
    gain: float  # of the best value over the neutral one, in points
    gain_error: float | None  # its standard error over the seeds
    last_change: float  # of the value farthest from the neutral one
    last_error: float | None
    train_accuracy: float  # at the neutral value
    verdict: str
    paper: str | None  # what the paper's text says; None: not among its datasets
    agrees: bool | None


def effects(result: Sensitivity, parameter: str) -> tuple[Effect, ...]:
    """Put every curve of a parameter into words, beside what the paper says of it."""
    found = []
    for (dataset, activation), points in result.curves(parameter).items():
        if len(points) < 2:
            continue
        start, last = points[0], points[-1]
        best = max(points[1:], key=lambda p: float(np.mean(p.by_seed)))
        gain, gain_error = _change(best, start)
        change, change_error = _change(last, start)
        verdict = _verdict(parameter, points, (gain, gain_error), (change, change_error))
        papers = _papers_verdict(parameter, dataset)
        found.append(
            Effect(
                dataset,
                activation,
                best.value,
                gain,
                gain_error,
                change,
                change_error,
                start.train_accuracy,
                verdict,
                papers,
                None if papers is None else verdict == papers,
            )
        )
    return tuple(found)


def _change(point: Point, start: Point) -> tuple[float, float | None]:
    """Return the mean difference over the seeds and its standard error."""
    difference = point.by_seed - start.by_seed
    n = len(difference)
    return float(np.mean(difference)), float(np.std(difference, ddof=1)) / math.sqrt(n) if n > 1 else None


def _verdict(
    parameter: str,
    points: Sequence[Point],
    gain: tuple[float, float | None],
    last: tuple[float, float | None],
) -> str:
    # A difference of 1e-9 is rounding, also where one seed gives no standard error.
    def clear(change: tuple[float, float | None]) -> bool:
        return abs(change[0]) > max(CLEAR * (change[1] or 0.0), 1e-9)

    if all(p.test_accuracy == points[0].test_accuracy for p in points):
        return INERT
    if gain[0] > 0 and clear(gain):
        if parameter == "correct_weight":
            return HELPS
        return PEAK if last[0] < 0 else RISES
    return HARMS if last[0] < 0 and clear(last) else UNCLEAR


def _papers_verdict(parameter: str, dataset: str) -> str | None:
    if parameter == "prune_rate":
        return PEAK if dataset in paper.PRUNING_PEAKS else None
    helps = paper.WEIGHTING_HELPS.get(dataset)
    return None if helps is None else HELPS if helps else HARMS


def sensitivity_sentences(result: Sensitivity, parameter: str) -> tuple[str, str]:
    """Say where a parameter's curves agree with the paper's text, and where they do not."""
    what = {"correct_weight": "Weighting", "prune_rate": "Pruning"}[parameter]
    found = [e for e in effects(result, parameter) if e.paper is not None]
    if not found:
        return f"{what} was not measured on any of the paper's four datasets.", "So nothing can be compared."
    agree, differ = ([e for e in found if e.agrees is side] for side in (True, False))
    first = f"{what} agrees with the paper's text in {len(agree)} of {len(found)} curves"
    first += f": {_in_words(agree)}." if agree else "."
    if not differ:
        return first, "It differs in none."
    claims = {e.paper: tuple(dict.fromkeys(d.dataset for d in differ if d.paper == e.paper)) for e in differ}
    papers = "; ".join(f"it {claim} on {', '.join(datasets)}" for claim, datasets in claims.items())
    return first, f"It differs in {len(differ)}: {_in_words(differ)}; the paper says {papers}."


def _in_words(some: Sequence[Effect]) -> str:
    """List curves by what they show: "it helps on glass (relu, sigmoid); it harms on wine (relu)"."""
    found: dict[str, dict[str, list[str]]] = {}
    for e in some:
        found.setdefault(e.verdict, {}).setdefault(e.dataset, []).append(e.activation)
    return "; ".join(
        f"it {verdict} on " + ", ".join(f"{d} ({', '.join(activations)})" for d, activations in where.items())
        for verdict, where in found.items()
    )


# --- section 5.6 -------------------------------------------------------------------------------------


def timing_sentences(result: Timing) -> tuple[str, str]:
    """Compare the seconds with Table 8, and the ratio of the two methods with the paper's ratio."""
    printed = paper.training_seconds()
    shared = [t for t in result.timed if (t.dataset, t.method) in printed]
    if not shared:
        return "None of the measured pairs is in the paper's Table 8.", "So nothing can be compared."
    slower = [t.median / printed[t.dataset, t.method] for t in shared if t.method == paper.BEST]
    first = "WPedRVFL was not timed on the paper's datasets."
    if slower:
        first = (
            f"WPedRVFL took {min(slower):.2g} to {max(slower):.2g} times the seconds that Table 8 prints, on "
            f"{len(slower)} of its datasets; the machine is another, and the paper does not say which "
            "settings its Table 8 has."
        )
    medians = {(t.dataset, t.method): t.median for t in shared}
    both = [d for d in TIMING_DATASETS if (d, "SNN") in medians and (d, paper.BEST) in medians]
    if not both:
        return first, "SNN was not timed here, so the ratio of the two methods is not compared."
    here = [medians[d, "SNN"] / medians[d, paper.BEST] for d in both]
    there = [printed[d, "SNN"] / printed[d, paper.BEST] for d in both]
    second = (
        f"SNN takes {min(here):.2g} to {max(here):.2g} times as long as WPedRVFL here and "
        f"{min(there):.2g} to {max(there):.2g} times in Table 8, so the order of the two "
        f"{'agrees' if min(here) > 1 else 'does not agree on every dataset'}."
    )
    return first, second
