"""Accuracy by dataset and method, as numbers on colours."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import AxesImage

from .look import INK, MISSING, SMALLEST, WIDEST, short_name, style


@style()
def heatmap_figure(table: pd.DataFrame) -> Figure:
    """Draw accuracy by dataset and method, coloured by the distance to the dataset's best method.

    Columns: dataset, method, accuracy (NaN where there is none). Rows and columns are in the table's order.
    Fifteen methods are the most whose figures can be read.
    """
    order = table["method"].unique()
    accuracy = table.pivot(index="dataset", columns="method", values="accuracy")
    accuracy = accuracy.loc[table["dataset"].unique(), order]
    names = [short_name(name, 30) for name in accuracy.index]
    heads = [short_name(method) for method in order]
    margin = 0.3 + 0.075 * max(map(len, names))
    width = min(WIDEST, margin + 0.7 + 0.6 * len(heads))
    figure = Figure(figsize=(width, 2.1 + 0.27 * len(names)), layout="constrained")
    ax = figure.subplots()
    image = _cells(ax, accuracy.to_numpy(float))
    ax.grid(visible=False)
    ax.set_xticks(range(len(heads)), heads, rotation=40, ha="left", rotation_mode="anchor")
    ax.xaxis.tick_top()
    ax.set_yticks(range(len(names)), names)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    looks: Any = {"orientation": "horizontal", "extend": "max", "aspect": 40, "shrink": 0.6, "pad": 0.02}
    bar = figure.colorbar(image, ax=ax, **looks)
    bar.set_label("points behind the best of its row")
    bar.outline.set_visible(False)
    return figure


def _cells(ax: Axes, accuracy: np.ndarray) -> AxesImage:
    """Colour the cells and write into each its accuracy, or that it is missing."""
    best = np.nanmax(np.where(np.isnan(accuracy), -np.inf, accuracy), axis=1, keepdims=True)
    behind = np.where(np.isnan(accuracy), np.nan, best - accuracy)
    # The scale ends at the 95th percentile, so that one very bad cell does not bleach all others.
    top = max(1.0, float(np.nanquantile(behind, 0.95))) if np.isfinite(behind).any() else 1.0
    for (i, j), value in np.ndenumerate(accuracy):
        text, colour = f"{value:.2f}", "white" if behind[i, j] > 0.55 * top else "black"
        if math.isnan(value):
            text, colour = MISSING, INK
        ax.text(j, i, text, ha="center", va="center", fontsize=SMALLEST, color=colour)
    return ax.imshow(behind, cmap="cividis_r", vmin=0, vmax=top, aspect="auto")
