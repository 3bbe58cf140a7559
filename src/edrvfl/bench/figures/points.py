"""Figures with a point for each method or dataset, and names beside the points."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter, NullLocator

from ..methods import KINDS, kind_of, subject_first
from .labels import write_labels
from .look import GRID, INK, KIND_LOOKS, KIND_NAMES, SMALLEST, number_equals, short_name, style

FAR = 5.0  # points of accuracy: what is farther from the published figure carries its dataset's name
ACROSS = 4  # panels in a row
HOLLOW: dict[str, Any] = {"mfc": "none", "mew": 1.5}


@style()
def time_figure(table: pd.DataFrame) -> Figure:
    """Draw seconds against accuracy, with every name beside its point and the frontier as a light line.

    Columns: method, fit_seconds (positive), accuracy, kind, gpu. Points of a GPU are hollow; the frontier is
    of the others, because seconds of a GPU and of a processor are not on equal terms.
    """
    rows = table.sort_values(["fit_seconds", "accuracy", "method"], ascending=[True, False, True])
    names = number_equals([short_name(name) for name in rows["method"]])
    at, gpu = rows[["fit_seconds", "accuracy"]].to_numpy(float), rows["gpu"].to_numpy(bool)
    figure = Figure(figsize=(5.8, 3.3 + 0.06 * len(rows)))
    figure.subplots_adjust(left=0.11, right=0.985, bottom=0.55 / figure.get_figheight(), top=0.9)
    ax = figure.subplots()
    frontier = _frontier(at if gpu.all() else at[~gpu], at[:, 0].max())
    ax.plot(*frontier.T, color=GRID, lw=1.4, alpha=0.6, zorder=1)
    _points(ax, at, rows["kind"].to_numpy(), gpu)
    _seconds_axis(ax, at[:, 0])
    spread = max(0.5, float(np.ptp(at[:, 1])))
    ax.set_ylim(at[:, 1].min() - 0.09 * spread, at[:, 1].max() + 0.09 * spread)
    ax.yaxis.set_major_locator(MaxNLocator(6))
    ax.set_xlabel("seconds of one fit, geometric mean over datasets")
    ax.set_ylabel("mean test accuracy in percent")
    write_labels(ax, at, names, 8.5, np.clip(frontier, None, [ax.get_xlim()[1], np.inf]), at[:0])
    return figure


def _points(ax: Axes, at: np.ndarray, kinds: np.ndarray, gpu: np.ndarray) -> None:
    """Draw the points, hollow those of a GPU, and say above the axes what they are."""
    for kind in KINDS:
        for hollow in (False, True):
            mine = at[(kinds == kind) & (gpu == hollow)]
            ax.plot(*mine.T, ls="", ms=7, **KIND_LOOKS[kind] | (HOLLOW if hollow else {}))
    looks = {KIND_NAMES[kind]: KIND_LOOKS[kind] for kind in KINDS if kind in kinds}
    if gpu.any():
        looks["hollow: GPU"] = {"color": INK, "marker": "o"} | HOLLOW
    handles = [Line2D([], [], ls="", ms=7, label=word, **look) for word, look in looks.items()]
    handles.insert(0, Line2D([], [], color=GRID, lw=1.4, alpha=0.6, label="best so far"))
    tight: Any = {"fontsize": 8.5, "handletextpad": 0.4, "columnspacing": 1.1, "borderaxespad": 0.2}
    ax.figure.legend(handles=handles, loc="upper center", ncols=len(handles), **tight)


def _frontier(at: np.ndarray, end: float) -> np.ndarray:
    """Return the corners of the best accuracy up to each time, of points in the order of seconds."""
    best = np.maximum.accumulate(at[:, 1])
    x, y = np.append(at[:, 0], end * 10), np.append(best, best[-1])
    return np.column_stack([np.repeat(x, 2)[1:], np.repeat(y, 2)[:-1]])


def _seconds_axis(ax: Axes, seconds: np.ndarray) -> None:
    """Make the axis logarithmic, with plain numbers and room for names at the right."""
    low, high = float(seconds.min()), float(seconds.max())
    ax.set_xscale("log")
    room = max(math.log10(high / low), 0.5)
    ax.set_xlim(low / 10 ** (0.08 * room), high * 10 ** (0.16 * room))
    ax.xaxis.set_major_locator(LogLocator(subs=(1.0,) if room > 2 else (1.0, 2.0, 5.0)))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    ax.xaxis.set_minor_formatter(NullFormatter())
    ax.xaxis.set_minor_locator(NullLocator())


@style()
def published_figure(table: pd.DataFrame) -> Figure:
    """Draw measured against published accuracy, a panel for each method, outliers with their names.

    Columns: dataset, method, published, measured.
    """
    methods = subject_first(table["method"].unique(), {})
    across = min(ACROSS, len(methods))
    down = math.ceil(len(methods) / across)
    side = 2.28 if across == ACROSS else 2.9
    left, right, bottom, top, gap = 0.65, 0.1, 0.6, 0.35, 0.32
    width = left + right + across * side + (across - 1) * gap / 2
    height = bottom + top + down * side + (down - 1) * gap
    figure = Figure(figsize=(width, height))
    figure.subplots_adjust(left / width, bottom / height, 1 - right / width, 1 - top / height)
    figure.subplots_adjust(wspace=gap / 2 / side, hspace=gap / side)
    axes = figure.subplots(down, across, squeeze=False, sharex=True, sharey=True).ravel()
    both = table[["published", "measured"]].to_numpy(float)
    ends = np.array([np.floor(both.min() - 2), min(102.0, np.ceil(both.max() + 2))])
    axes[0].set(xlim=ends, ylim=ends)
    ticks = MaxNLocator(4, steps=[1, 2, 5, 10]).tick_values(*ends)
    # A number in the left corner of a panel would touch the last one of the panel beside it.
    axes[0].set_xticks([tick for tick in ticks if ends[0] + 0.1 * np.ptp(ends) < tick <= 100])
    for ax, method in zip(axes, methods, strict=False):
        _published_panel(ax, table[table["method"] == method], str(method), most=3 if down > 1 else 8)
    for ax in axes[len(methods) :]:
        ax.remove()
    for ax in axes[max(0, len(methods) - across) : len(methods)]:
        ax.xaxis.set_tick_params(labelbottom=True)  # below an incomplete row, too
    figure.supxlabel("published accuracy in percent", fontsize=9.5, y=0.08 / height)
    figure.supylabel("measured accuracy in percent", fontsize=9.5, x=0.08 / width)
    return figure


def _published_panel(ax: Axes, mine: pd.DataFrame, method: str, most: int) -> None:
    at = mine[["published", "measured"]].to_numpy(float)
    ax.axline((50, 50), slope=1, color=INK, lw=0.9, zorder=1)
    ax.plot(*at.T, ls="", ms=5, alpha=0.85, **KIND_LOOKS[kind_of(method)])
    ax.set_title(short_name(method))
    far = outliers(mine, most)
    names = [short_name(str(mine["dataset"].iloc[i]), 30) for i in far]
    equal = np.tile(np.asarray(ax.get_xlim()), (2, 1)).T
    write_labels(ax, at[far], names, SMALLEST, equal, np.delete(at, far, axis=0))


def outliers(table: pd.DataFrame, most: int) -> list[int]:
    """Return the rows that are farther apart than `FAR`, the farthest first, at most as many as asked for."""
    apart = (table["measured"] - table["published"]).abs().to_numpy(float)
    order = np.argsort(-apart, kind="stable")[:most]
    return [int(i) for i in order if apart[i] > FAR]
