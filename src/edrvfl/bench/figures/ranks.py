"""The critical-difference diagram: average ranks, and which of them cannot be told apart."""

from __future__ import annotations

import numpy as np
import pandas as pd
import scikit_posthocs
from matplotlib.figure import Figure

from ..comparison import round_half_up
from ..methods import kind_of
from .look import COLOURS, INK, number_equals, short_name, style

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
