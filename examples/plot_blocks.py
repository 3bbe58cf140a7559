"""
Rows in blocks, and what a pass costs
=====================================

The way of rows that are read block by block, and by the formulas of docs/out_of_core.md the work of each
pass for one row. ``python examples/plot_blocks.py [file]`` draws docs/out_of_core.png.
"""

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import FancyBboxPatch

N_INPUTS, N_HIDDEN, N_LAYERS = 30, 256, 5
# Blue, orange and grey can be told apart by everyone.
BLUE, ORANGE, GREY = "#0072b2", "#e69f00", "#b8b8b8"
BOXES = [
    ("source", "files, memory maps,\na function, or parts\non a cluster", "#f2f2f2"),
    ("blocks", "a few in memory;\nthe next is read\nmeanwhile", "#f2f2f2"),
    ("features", "of one block,\nfrom its rows and\nthe layers so far", "#dcebf5"),
    ("sums", "D'D and D'Y, right\nand wrong rows apart:\n$(n+d+1)^2$ numbers", "#fbeccb"),
    ("solve", "read-out, weights,\npruning, and the next\nlayer's moments", "#fbeccb"),
]


def flops_of_passes(n, d, depth):
    """Return, for each layer's pass, the flops of one row: Gram, its own projection, earlier ones again."""
    c = n + d + 1
    first, deeper = 2 * (d + 1) * n, 2 * c * n
    own = np.asarray([first] + [deeper] * (depth - 1))
    return np.full(depth, c * c), own, np.cumsum(own) - own


def draw_way(axes):
    """The way of the rows from the source to a layer, and back for the next layer."""
    width, gap = 1.0, 0.16
    for i, (title, words, colour) in enumerate(BOXES):
        x = i * (width + gap)
        axes.add_patch(
            FancyBboxPatch((x, 0), width, 1, boxstyle="round,pad=0,rounding_size=0.06", fc=colour, ec="0.45")
        )
        axes.text(x + width / 2, 0.82, title, ha="center", va="center", fontsize=13, weight="bold")
        axes.text(x + width / 2, 0.36, words, ha="center", va="center", fontsize=10.5, linespacing=1.4)
        if i:
            axes.annotate("", (x, 0.5), (x - gap, 0.5), arrowprops={"arrowstyle": "-|>", "color": "0.25"})
    last, end = (len(BOXES) - 1) * (width + gap) + width / 2, width / 2
    style = {"arrowstyle": "-|>", "color": BLUE, "connectionstyle": "bar,fraction=-0.05", "linewidth": 1.6}
    axes.annotate("", (end, -0.02), (last, -0.02), arrowprops=style)
    words = "once for every layer, and a few times before the first: the rows are read again"
    axes.text((last + end) / 2, -0.2, words, ha="center", va="center", fontsize=11.5, color=BLUE)
    axes.set(xlim=(-0.05, last + width / 2 + 0.05), ylim=(-0.42, 1.05))
    axes.axis("off")


def draw_work(axes):
    """The flops of each pass for one row."""
    passes = np.arange(1, N_LAYERS + 1)
    gram, own, again = (part / 1e3 for part in flops_of_passes(N_HIDDEN, N_INPUTS, N_LAYERS))
    axes.bar(passes, gram, color=ORANGE, label="Gram, a triangle of it")
    axes.bar(passes, own, bottom=gram, color=BLUE, label="the layer itself")
    axes.bar(passes, again, bottom=gram + own, color=GREY, label="layers before it, again (not if kept)")
    axes.set(xlabel="pass for layer", ylabel="thousand flops a row", xticks=passes)
    axes.set_title(f"What a pass costs: {N_INPUTS} columns, {N_HIDDEN} neurons", fontsize=12)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, loc="upper left")


def main():
    figure, (upper, lower) = plt.subplots(
        2, 1, figsize=(10.4, 5.6), layout="constrained", height_ratios=(1, 1.15)
    )
    draw_way(upper)
    draw_work(lower)
    again, kept = (
        sum(part.sum() for part in flops_of_passes(N_HIDDEN, N_INPUTS, N_LAYERS)[:n]) for n in (3, 2)
    )
    print(f"flops a row: {again:,} if features are computed again, {kept:,} if a GPU keeps them")
    file = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parents[1] / "docs" / "out_of_core.png")
    figure.savefig(file, dpi=130)
    print(file)


if __name__ == "__main__":
    main()
