"""The study's charts: curves, a heat map, dots with numbers, and the critical-difference diagram."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import scikit_posthocs
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from ..comparison import round_half_up
from ..methods import kind_of
from ..names import MISSING
from . import look
from .look import COLOURS, GRID, INK, KIND_LOOKS, KIND_NAMES, SMALLEST, number_equals, short_name, style

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
    looks = look.choose_looks(activations)
    for ax, dataset in zip(axes, datasets, strict=False):
        for activation in activations:
            curve = table[(table["dataset"] == dataset) & (table["activation"] == activation)]
            x, y, sd = (curve[c].to_numpy(float) for c in (parameter, "test_accuracy", "sd"))
            band, own = np.nan_to_num(sd), looks[activation]
            ax.plot(x, y, label=short_name(activation), **own)
            ax.fill_between(x, y - band, y + band, alpha=0.2, lw=0, color=own["color"])
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
    for method, own in look.choose_looks(table["method"].unique()).items():
        curve = table[table["method"] == method]
        ax.plot(curve["depth"].to_numpy(float), curve["accuracy"].to_numpy(), label=short_name(method), **own)
    ax.set_xlabel("hidden layers")
    ax.set_ylabel("validation accuracy in percent")
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    figure.legend(loc="outside upper center", ncols=4)
    return figure


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
    width = min(look.WIDEST, margin + 0.7 + 0.6 * len(heads))
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


# Spaces that do not break keep the letters off the lines: a browser drops others at the end of a text.
LEFT, RIGHT = "{label}  {rank:.2f}\u00a0", "\u00a0{rank:.2f}  {label}"


@style()
def critical_difference_figure(table: pd.DataFrame) -> Figure:
    """Draw average ranks, with bars over methods that cannot be told apart.

    Columns: method, average_rank, critical_difference, then the p-value against each method.
    """
    labels = number_equals([short_name(method) for method in table["method"]])
    # Half up, as in the tables: a rank of 11.125 is 11.13 on the whole page.
    ranks = dict(zip(labels, map(round_half_up, table["average_rank"]), strict=True))
    p = pd.DataFrame(table.iloc[:, 3:].to_numpy(float), index=labels, columns=labels)
    width = 7.4 if len(labels) <= 12 else 9.4
    figure = Figure(figsize=(width, 1.9 + 0.26 * len(labels)), layout="constrained")
    ax = figure.subplots()
    ax.grid(visible=False)
    scikit_posthocs.critical_difference_diagram(
        ranks,
        p,
        ax=ax,
        label_fmt_left=LEFT,
        label_fmt_right=RIGHT,
        color_palette=dict.fromkeys(labels, INK),
        elbow_props={"linewidth": 1.0},
        crossbar_props={"color": COLOURS[1], "linewidth": 3.5, "solid_capstyle": "round"},
        label_props={"fontsize": 9.5},
        text_h_margin=0.03 * max(1.0, max(ranks.values()) - min(ranks.values())),
    )
    ours = [name for name, m in zip(labels, table["method"], strict=True) if kind_of(m) == "ours"]
    words = {form.format(label=n, rank=ranks[n]) for n in ours for form in (LEFT, RIGHT)}
    for text in ax.texts:
        text.set_fontweight("bold" if text.get_text() in words else "normal")
    for line in ax.get_lines():  # the diagram takes a bar's points from a set, whose order is another
        x, y = np.asarray(line.get_xdata()), np.asarray(line.get_ydata())  # in every process
        if np.ptp(y) == 0:
            line.set_data(np.sort(x), y)
    # The diagram could draw the critical difference itself, but on top of the ranks' numbers.
    start, length = min(ranks.values()), float(table["critical_difference"].iloc[0])
    ax.plot([start, start + length], [1.5, 1.5], color=INK, lw=2, marker="|", markersize=8)
    ax.text(start, 2.1, f"critical difference {length:.2f}", va="center", fontsize=9.5)
    ax.set_ylim(top=2.6)
    return figure
