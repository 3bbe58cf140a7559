"""Accuracy by depth, and accuracy against the time to fit."""

from __future__ import annotations

import statistics

import numpy as np
import pandas as pd

from ...comparison import kind_of
from ...figures import depth_figure, time_figure
from ..page import Picture, Section
from ..sentences import count
from ..summary import Summary


def show_depth_and_time(s: Summary) -> Section | None:
    """Show both figures, or say why one cannot be shown."""
    if not s.strict.methods:
        return None
    depth, time = _depth(s), _time(s)
    text = []
    if depth is None:
        text.append("Accuracy by depth is not shown: the validation scores of the searches are not at hand.")
    if time is None:
        text.append("Time against accuracy is not shown: there is no dataset that all methods have.")
    pictures = tuple(picture for picture in (depth, time) if picture is not None)
    return Section("depth-time", "Depth and time", tuple(text), pictures=pictures)


def _depth(s: Summary) -> Picture | None:
    """Average each depth over the datasets that all methods with several depths have."""
    curves = {pair: c for pair, c in s.study.depth_accuracies.items() if len(c) > 1}
    deep = [m for m in s.methods if any(m == method for _, method in curves)]
    common = [d for d in s.datasets if deep and all((d, m) in curves for m in deep)]
    if not common:
        return None
    rows = []
    for method in deep:
        deepest = min(len(curves[d, method]) for d in common)
        by_depth = np.mean([curves[d, method][:deepest] for d in common], axis=0)
        rows += [(method, l, round(float(value), 4), len(common)) for l, value in enumerate(by_depth, 1)]
    return Picture(
        "accuracy_by_depth",
        f"Validation accuracy in percent by depth, mean over {count(len(common), 'dataset')}",
        "Each depth with its own best configuration, so these are choices, not test figures.",
        pd.DataFrame(rows, columns=["method", "depth", "accuracy", "datasets"]),
        depth_figure,
    )


def _time(s: Summary) -> Picture | None:
    common = s.strict.common
    rows = []
    for method in s.strict.compared:
        seconds = [s.results[d, method].fit_seconds for d in common]
        known = [value for value in seconds if value is not None and value > 0]  # a logarithm is taken
        if known and len(known) == len(common):
            seconds_of_one = round(statistics.geometric_mean(known), 6)
            rows.append((method, seconds_of_one, s.strict.means[method], kind_of(method)))
    if not rows:
        return None
    return Picture(
        "time_against_accuracy",
        f"Time to fit against accuracy over {count(len(common), 'dataset')} (strict choice)",
        "Seconds of one fit on training rows: the median over splits and seeds, then the geometric mean.",
        pd.DataFrame(rows, columns=["method", "fit_seconds", "accuracy", "kind"]),
        time_figure,
    )
