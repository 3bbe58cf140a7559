"""Curves: accuracy as a parameter or the depth varies."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from .look import choose_looks, short_name, style

AXES: Mapping[str, str] = {
    "omega_r": "ωᵣ, weight of samples predicted correctly (1: no weighting)",
    "p": "p, share of neurons pruned (0: no pruning)",
}


@style()
def sensitivity_figure(table: pd.DataFrame) -> Figure:
    """Draw test accuracy as omega_r or p varies: a panel for each dataset, a curve for each activation.

    Columns: dataset, activation, omega_r or p, test_accuracy, sd (NaN with one seed).
    """
    parameter = table.columns[2]
    datasets, activations = table["dataset"].unique(), table["activation"].unique()
    values = sorted(table[parameter].unique())
    across = min(2, len(datasets))
    down = math.ceil(len(datasets) / across)
    figure = Figure(figsize=(3.6 * across + 0.4, 2.5 * down + 0.6), layout="constrained")
    axes = figure.subplots(down, across, squeeze=False).ravel()
    looks = choose_looks(activations)
    for ax, dataset in zip(axes, datasets, strict=False):
        for activation in activations:
            curve = table[(table["dataset"] == dataset) & (table["activation"] == activation)]
            x, y, sd = (curve[c].to_numpy(float) for c in (parameter, "test_accuracy", "sd"))
            band, look = np.nan_to_num(sd), looks[activation]
            ax.plot(x, y, label=short_name(activation), **look)
            ax.fill_between(x, y - band, y + band, alpha=0.2, lw=0, color=look["color"])
        ax.set_title(short_name(dataset))
        if len(values) <= 8:
            ax.set_xticks(values)
        if parameter == "omega_r":
            ax.invert_xaxis()  # no weighting, 1, is on the left
    for ax in axes[len(datasets) :]:
        ax.remove()
    figure.supxlabel(AXES.get(parameter, parameter), fontsize=9.5)
    figure.supylabel("test accuracy in percent", fontsize=9.5)
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=len(activations))
    return figure


@style()
def depth_figure(table: pd.DataFrame) -> Figure:
    """Draw validation accuracy by depth, a line for each method. Columns: method, depth, accuracy."""
    figure = Figure(figsize=(7, 3.8), layout="constrained")
    ax = figure.subplots()
    for method, look in choose_looks(table["method"].unique()).items():
        curve = table[table["method"] == method]
        ax.plot(
            curve["depth"].to_numpy(float), curve["accuracy"].to_numpy(), label=short_name(method), **look
        )
    ax.set_xlabel("hidden layers")
    ax.set_ylabel("validation accuracy in percent")
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    figure.legend(loc="outside upper center", ncols=4)
    return figure
