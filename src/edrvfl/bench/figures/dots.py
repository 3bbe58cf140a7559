"""A row for each method: two metrics as dots, with their numbers beside them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from .look import GRID, KIND_LOOKS, KIND_NAMES, MISSING, SMALLEST, number_equals, short_name, style

PANELS = {"log_loss": "mean log-loss", "calibration_error": "mean calibration error"}


@style()
def probabilities_figure(table: pd.DataFrame) -> Figure:
    """Draw log-loss and calibration error of each method; less is better, so the best row is the first.

    Columns: method, kind, log_loss, calibration_error (NaN where there is none).
    """
    rows = table.sort_values("log_loss", kind="stable")
    names = number_equals([short_name(method) for method in rows["method"]])
    figure = Figure(figsize=(8.6, 1.3 + 0.225 * len(rows)), layout="constrained")
    panels = figure.subplots(1, 2, sharey=True)
    for ax, (column, title) in zip(panels, PANELS.items(), strict=True):
        _panel(ax, rows, column)
        ax.set_title(title)
    panels[0].set_yticks(range(len(rows)), names)
    panels[0].set_ylim(len(rows) - 0.4, -0.6)
    kinds = [kind for kind in KIND_LOOKS if kind in set(rows["kind"])]
    handles = [Line2D([], [], ls="", ms=6.5, label=KIND_NAMES[kind], **KIND_LOOKS[kind]) for kind in kinds]
    figure.legend(handles=handles, loc="outside upper center", ncols=len(handles))
    return figure


def _panel(ax: Axes, rows: pd.DataFrame, column: str) -> None:
    values = rows[column].to_numpy(float)
    known = values[np.isfinite(values)]
    top = float(known.max()) if len(known) else 1.0
    for i, (value, kind) in enumerate(zip(values, rows["kind"], strict=True)):
        if not np.isfinite(value):
            ax.text(0.01 * top, i, MISSING, va="center", fontsize=SMALLEST, color=GRID, style="italic")
            continue
        ax.plot([0, value], [i, i], color=GRID, lw=0.8, alpha=0.6, zorder=1)
        ax.plot([value], [i], ms=6.5, **KIND_LOOKS[kind])
        beside: Any = {"textcoords": "offset points", "va": "center_baseline", "fontsize": 8.5}
        ax.annotate(f"{value:.4f}", (value, i), (7, 0), **beside)
    ax.set_xlim(0, 1.2 * top)
    ax.grid(visible=False, axis="y")
    ax.tick_params(axis="y", length=0)
