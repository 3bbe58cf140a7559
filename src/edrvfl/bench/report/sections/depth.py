"""Accuracy by depth. Time against accuracy is on the first screen."""

from __future__ import annotations

import numpy as np
import pandas as pd

from ...figures import depth_figure
from ...names import plural
from ..page import Picture, Section
from ..summary import Summary


def show_depth(s: Summary) -> Section | None:
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
    picture = Picture(
        "accuracy_by_depth",
        f"Validation accuracy in percent by depth, mean over {plural(len(common), 'dataset')}",
        "Each depth with its own best configuration, so these are choices, not test figures.",
        pd.DataFrame(rows, columns=["method", "depth", "accuracy", "datasets"]),
        depth_figure,
    )
    return Section("depth", "Depth", pictures=(picture,))
