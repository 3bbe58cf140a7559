"""Draw the study's figures: a table goes in, a matplotlib `Figure` comes out.

The colours are those of Okabe and Ito, which colour-blind readers can tell apart. Markers and dashes differ
too, so the figures can be read in grey.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
import scikit_posthocs
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, NullFormatter, ScalarFormatter

INK = "#1b1b1f"  # of lines and letters; `svg.to_inline_svg` replaces it by the page's text colour
GRID = "#8c8c94"
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7f7f87")
MARKERS = "osD^vPX<>p*h"
DASHES: tuple[Any, ...] = ("-", (0, (5, 1.5)), (0, (1, 1)), (0, (4, 1.2, 1, 1.2)), (0, (3, 1, 1, 1, 1, 1)))
LONGEST = 34  # letters of a name in a figure
# These methods look the same in every figure, whichever other methods are beside them.
KNOWN = ("edRVFL_O", "edRVFL_N", "WedRVFL", "PedRVFL", "WPedRVFL", "SNN", "ResNet", "SCN", "BLS", "H-ELM")
MISSING = "missing"  # the word for a cell without a result, here and in the report

STYLE: Any = {  # Any, because matplotlib types every key of its own
    "font.family": "sans-serif",
    "font.size": 9.5,
    "axes.titlesize": 10,
    "axes.labelsize": 9.5,
    "legend.fontsize": 9,
    "legend.frameon": False,
    "lines.linewidth": 1.6,
    "lines.markersize": 5.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": GRID,
    "grid.alpha": 0.3,
    "grid.linewidth": 0.6,
    "text.color": INK,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.facecolor": "none",
    "text.parse_math": False,  # a dollar sign in a name is a dollar sign
    "svg.fonttype": "none",  # letters stay letters: files are small, can be searched and read aloud
    "svg.hashsalt": "edrvfl",  # fixed ids: the same figure gives the same file
}


@contextmanager
def style() -> Iterator[None]:
    """Draw with the study's style, and without matplotlib's warnings about letters its own font lacks.

    The letters of a name go into the SVG as text, so the reader's fonts draw them; that matplotlib's font
    has no Chinese letters only makes the space it keeps for such a name a guess.
    """
    with matplotlib.rc_context(STYLE), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=r"Glyph .* missing from font", category=UserWarning)
        yield


# --- section 5.5 -----------------------------------------------------------------------------------------

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
    looks = _looks(activations)
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


# --- the study -------------------------------------------------------------------------------------------


@style()
def depth_figure(table: pd.DataFrame) -> Figure:
    """Draw validation accuracy by depth, a line for each method. Columns: method, depth, accuracy."""
    figure = Figure(figsize=(7, 3.8), layout="constrained")
    ax = figure.subplots()
    for method, look in _looks(table["method"].unique()).items():
        curve = table[table["method"] == method]
        ax.plot(
            curve["depth"].to_numpy(float), curve["accuracy"].to_numpy(), label=short_name(method), **look
        )
    ax.set_xlabel("hidden layers")
    ax.set_ylabel("validation accuracy in percent")
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    figure.legend(loc="outside right upper")
    return figure


@style()
def critical_difference_figure(table: pd.DataFrame) -> Figure:
    """Draw average ranks, with bars over methods that cannot be told apart.

    Columns: method, average_rank, critical_difference, then the p-value against each method.
    """
    labels = _distinct([short_name(method) for method in table["method"]])
    ranks = dict(zip(labels, table["average_rank"].to_numpy(float), strict=True))
    p = pd.DataFrame(table.iloc[:, 3:].to_numpy(float), index=labels, columns=labels)
    figure = Figure(figsize=(7.4, 1.9 + 0.26 * len(labels)), layout="constrained")
    ax = figure.subplots()
    ax.grid(visible=False)
    scikit_posthocs.critical_difference_diagram(
        ranks,
        p,
        ax=ax,
        label_fmt_left="{label}  {rank:.2f}",
        label_fmt_right="{rank:.2f}  {label}",
        color_palette=dict.fromkeys(labels, INK),
        crossbar_props={"color": COLOURS[1], "linewidth": 3.5, "solid_capstyle": "round"},
        label_props={"fontsize": 9.5},
        text_h_margin=0.03 * max(1.0, max(ranks.values()) - min(ranks.values())),
    )
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


@style()
def published_figure(table: pd.DataFrame) -> Figure:
    """Draw measured against published accuracy. Columns: dataset, method, published, measured."""
    figure = Figure(figsize=(7, 5), layout="constrained")
    ax = figure.subplots()
    points = {"ls": "", "ms": 6.5, "mec": "white", "mew": 0.5, "alpha": 0.85}
    for method, look in _looks(table["method"].unique()).items():
        mine = table[table["method"] == method]
        x, y = mine["published"].to_numpy(float), mine["measured"].to_numpy(float)
        ax.plot(x, y, label=short_name(method), **(look | points))
    both = table[["published", "measured"]].to_numpy(float)
    ends = np.array([np.floor(both.min() - 1), min(101.0, np.ceil(both.max() + 1))])
    ax.plot(ends, ends, color=INK, lw=1, zorder=1, label="equal")
    ax.set(xlim=ends, ylim=ends, aspect="equal")
    ax.set_xlabel("published accuracy in percent")
    ax.set_ylabel("measured accuracy in percent")
    figure.legend(loc="outside right upper")
    return figure


@style()
def time_figure(table: pd.DataFrame) -> Figure:
    """Draw time against accuracy, a point for each method. Columns: method, fit_seconds, accuracy."""
    figure = Figure(figsize=(7, 3.8), layout="constrained")
    ax = figure.subplots()
    looks = _looks(table["method"].unique())
    for row in table.itertuples():
        look = looks[row.method] | {"ls": "", "ms": 8}
        ax.plot([row.fit_seconds], [row.accuracy], label=short_name(row.method), **look)
    ax.set_xscale("log")
    ax.xaxis.set_major_formatter(ScalarFormatter())
    if table["fit_seconds"].max() / table["fit_seconds"].min() < 10:  # would show one power of ten or none
        ax.set_xscale("linear")
    else:
        ax.xaxis.set_minor_formatter(NullFormatter())
    ax.margins(0.12)
    ax.set_xlabel("seconds to fit, geometric mean over datasets")
    ax.set_ylabel("mean test accuracy in percent")
    figure.legend(loc="outside right upper")
    return figure


@style()
def heatmap_figure(table: pd.DataFrame) -> Figure:
    """Draw accuracy by dataset and method, coloured by the distance to the dataset's best method.

    Columns: dataset, method, accuracy (NaN where there is none).
    """
    datasets, methods = table["dataset"].unique(), table["method"].unique()
    accuracy = table.pivot(index="dataset", columns="method", values="accuracy").loc[datasets, methods]
    behind = accuracy.rsub(accuracy.max(axis=1), axis=0).to_numpy(float)
    size = (max(4.6, 2.6 + 0.72 * len(methods)), 1.5 + 0.27 * len(datasets))
    figure = Figure(figsize=size, layout="constrained")
    ax = figure.subplots()
    # The scale ends at the 95th percentile, so that one very bad cell does not bleach all others.
    top = max(1.0, float(np.nanquantile(behind, 0.95))) if np.isfinite(behind).any() else 1.0
    image = ax.imshow(behind, cmap="cividis_r", vmin=0, vmax=top, aspect="auto")
    for (i, j), value in np.ndenumerate(accuracy.to_numpy(float)):
        text, colour = f"{value:.2f}", "white" if behind[i, j] > 0.55 * top else "black"
        if math.isnan(value):
            text, colour = MISSING, INK
        ax.text(j, i, text, ha="center", va="center", fontsize=8, color=colour)
    ax.grid(visible=False)
    names = [short_name(method, 18) for method in methods]
    ax.set_xticks(range(len(methods)), names, rotation=30, ha="left", rotation_mode="anchor")
    ax.xaxis.tick_top()
    ax.set_yticks(range(len(datasets)), [short_name(dataset) for dataset in datasets])
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    bar = figure.colorbar(image, ax=ax, shrink=min(1.0, 0.3 + 2 / len(datasets)), extend="max")
    bar.set_label("points behind the best")
    bar.outline.set_visible(False)
    return figure


# --- names and looks -------------------------------------------------------------------------------------


def _looks(names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Choose a colour, a marker and dashes for each name. A known method keeps its own."""
    first = len(KNOWN) if any(name in KNOWN for name in names) else 0
    others = iter(range(first, first + len(names)))
    slots = {name: KNOWN.index(name) if name in KNOWN else next(others) for name in names}
    return {
        name: {
            "color": COLOURS[i % len(COLOURS)],
            "marker": MARKERS[i % len(MARKERS)],
            "ls": DASHES[i % len(DASHES)],
        }
        for name, i in slots.items()
    }


def one_line(text: str) -> str:
    """Replace line breaks and control characters, which XML and tables have no place for, by blanks."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def short_name(name: str, longest: int = LONGEST) -> str:
    """Write a name on one line and cut it where it is too long for a figure."""
    line = one_line(name)
    return line if len(line) <= longest else line[: longest - 1] + "…"


def _distinct(labels: Sequence[str]) -> list[str]:
    """Number labels that became equal when they were cut."""
    seen: dict[str, int] = {}
    found = []
    for label in labels:
        seen[label] = seen.get(label, 0) + 1
        found.append(label if seen[label] == 1 else f"{label} ({seen[label]})")
    return found
