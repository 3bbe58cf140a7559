"""Draw the pictures of the pages: `python docs/make_pictures.py [FOLDER]`, by default into docs/.

Those of method.md are drawn here from fitted networks, and so is the way of rows in blocks. The others are
figures of the examples, and of a block of the guide.
"""

from __future__ import annotations

import csv
import re
import runpy
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import FancyBboxPatch
from sklearn.datasets import make_moons

from edrvfl import EDRVFLClassifier, variant
from edrvfl._layers.layers import importance, next_weights, survivor_mask
from edrvfl._models.network import features_by_layer

HERE = Path(__file__).parent
EXAMPLES = HERE.parent / "examples"
BLUE, RED, GREY, GREEN, YELLOW = "#0072b2", "#d55e00", "0.6", "#dcefe6", "#fbeccb"
X, Y = make_moons(240, noise=0.25, random_state=1)
SIDE = 90
EXTENT = (-1.9, 2.9, -1.5, 2.0)
GRID = np.stack(np.meshgrid(np.linspace(*EXTENT[:2], SIDE), np.linspace(*EXTENT[2:], SIDE)), axis=-1).reshape(
    -1, 2
)


def features(model, rows):
    """Return a copy of [H, X, 1] of every layer."""
    return [D.copy() for D in features_by_layer(model.network_, rows)]


def panel(axes, values, title, limits=None, cmap="RdBu_r", points=True):
    """A map of the plane, with the rows of both classes."""
    low, high = limits or (values.min(), values.max())
    axes.imshow(
        values.reshape(SIDE, SIDE),
        origin="lower",
        extent=EXTENT,
        vmin=low,
        vmax=high,
        cmap=cmap,
        aspect="auto",
        alpha=0.5,
    )
    if points:
        axes.scatter(*X.T, c=np.where(Y == 1, RED, BLUE), s=7, edgecolor="white", linewidth=0.3)
    axes.set_title(title, fontsize=10)
    axes.set(xticks=[], yticks=[])


def box(axes, x, y, words, colour, width=1.0, height=0.62):
    style = "round,pad=0,rounding_size=0.08"
    axes.add_patch(FancyBboxPatch((x, y), width, height, boxstyle=style, fc=colour, ec="0.4"))
    axes.text(x + width / 2, y + height / 2, words, ha="center", va="center", fontsize=10, linespacing=1.3)


def arrow(axes, start, end, colour="0.3", bend=0.0):
    way = {"arrowstyle": "-|>", "color": colour, "connectionstyle": f"arc3,rad={bend}"}
    axes.annotate("", end, start, arrowprops={**way, "shrinkA": 0, "shrinkB": 0})


def draw_whole():
    """The whole network: layers from left to right, read-outs below, the vote at the end."""
    figure, axes = plt.subplots(figsize=(9, 3.5), layout="constrained")
    box(axes, 0, 1.4, "inputs X", "#f2f2f2", 0.9)
    for i in range(3):
        x = 1.7 + 1.75 * i
        box(axes, x, 1.4, f"layer {i + 1}\nrandom, fixed", "#dcebf5", 1.2)
        box(axes, x, 0.1, f"read-out {i + 1}\nridge", YELLOW, 1.2)
        arrow(axes, (x + 0.6, 1.4), (x + 0.6, 0.72))
        arrow(axes, (x - (0.8 if i == 0 else 0.55), 1.71), (x, 1.71))
        if i:
            arrow(axes, (0.45, 2.02), (x + 0.6, 2.02), RED, -0.2 - 0.03 * i)
        axes.plot([0.45, 0.45], [1.4, 0.98], color=RED, linewidth=1)
        axes.plot([0.45, x + 0.25], [0.98, 0.98], color=RED, linewidth=1)
        arrow(axes, (x + 0.25, 0.98), (x + 0.25, 0.72), RED)
        axes.plot([x + 0.6, x + 0.6], [0.1, -0.15], color="0.3", linewidth=1)
    axes.plot([2.3, 7.65], [-0.15, -0.15], color="0.3", linewidth=1)
    arrow(axes, (7.65, -0.15), (7.65, 0.1))
    box(axes, 7.05, 0.1, "vote, then\ncalibration", GREEN, 1.2)
    words = "direct links: the inputs feed every layer and every read-out"
    axes.text(0.45, 3.0, words, color=RED, fontsize=10)
    axes.set(xlim=(-0.1, 8.4), ylim=(-0.25, 3.2))
    axes.axis("off")
    return figure


def draw_random_layer():
    """What six neurons of the first layer answer over the plane."""
    model = variant("edRVFL_N", n_layers=1, n_hidden=60, norm_scale=2.0, random_state=3).fit(X, Y)
    H = features(model, GRID)[0]
    figure, panels = plt.subplots(1, 5, figsize=(10, 2.3), layout="constrained")
    for j, axes in enumerate(panels):
        panel(axes, H[:, j], f"neuron {j + 1}", cmap="Greys")
    return figure


def draw_readout():
    """The sum of neurons that ridge regression finds, for three penalties."""
    figure, panels = plt.subplots(1, 3, figsize=(9, 2.8), layout="constrained")
    words = ("too small", "about right", "too large")
    for axes, lam, word in zip(panels, (1e-6, 1.0, 1e4), words, strict=True):
        model = variant(
            "edRVFL_N", n_layers=1, n_hidden=200, norm_scale=2.0, regularization=lam, random_state=0
        ).fit(X, Y)
        D = features(model, GRID)[0]
        score = D @ np.asarray(model.network_.readouts[0])
        panel(axes, np.clip(score[:, 1] - score[:, 0], -1.2, 1.2), f"penalty {lam:g}: {word}", (-1.2, 1.2))
    return figure


def draw_renormalisation():
    """The size of features by layer, with and without re-normalisation."""
    figure, axes = plt.subplots(figsize=(7, 3), layout="constrained")
    for name, colour in (("edRVFL_O", RED), ("edRVFL_N", BLUE)):
        model = variant(name, n_layers=8, n_hidden=200, random_state=0).fit(X, Y)
        spread = [np.mean(D[:, :200].std(axis=0)) for D in features(model, X)]
        label = {"edRVFL_O": "without (edRVFL_O)", "edRVFL_N": "with (edRVFL_N)"}[name]
        axes.plot(range(1, 9), spread, "o-", color=colour, label=label)
    axes.set(yscale="log", xlabel="layer", ylabel="standard deviation\nof a neuron's answer")
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.25)
    return figure


def draw_weighting():
    """What layer 1 got wrong, and the weights of layer 2."""
    model = variant("WedRVFL", n_layers=2, n_hidden=30, correct_weight=0.6, random_state=0).fit(X, Y)
    D, at_rows = features(model, GRID)[0], features(model, X)[0]
    beta = np.asarray(model.network_.readouts[0])
    score = D @ beta
    right = (at_rows @ beta).argmax(axis=1) == Y
    omega = next_weights(right, np.ones(len(Y)), 0.6)
    figure, axes = plt.subplots(figsize=(6.2, 3.2), layout="constrained")
    panel(axes, np.clip(score[:, 1] - score[:, 0], -1, 1), "", (-1, 1), points=False)
    axes.scatter(
        *X.T,
        c=np.where(Y == 1, RED, BLUE),
        s=14 * omega**1.4,
        edgecolor=np.where(right, "white", "black"),
        linewidth=0.7,
    )
    wrong = omega[~right][0]
    axes.set_title(f"right: weight 0.6; wrong (black ring): weight {wrong:.1f}", fontsize=10)
    return figure


def draw_pruning():
    """The importance of each neuron of a layer, in order."""
    model = variant("PedRVFL", n_layers=2, n_hidden=100, prune_rate=0.3, random_state=0).fit(X, Y)
    theta = np.asarray(importance(np.asarray(model.network_.readouts[0])[:100, :]))
    kept = np.asarray(survivor_mask(theta, 0.3)) > 0
    order = np.argsort(theta)
    figure, axes = plt.subplots(figsize=(7, 2.8), layout="constrained")
    axes.bar(np.arange(100), theta[order], color=np.where(kept[order], BLUE, "0.75"), width=0.9)
    axes.set(xlabel="neurons of layer 1, in order", ylabel="importance θ")
    axes.text(15, theta.max() * 0.45, "these 30 do not\nfeed layer 2", ha="center", color="0.4")
    axes.text(60, theta.max() * 0.6, "these 70 do", ha="center", color=BLUE)
    axes.spines[["top", "right"]].set_visible(False)
    return figure


def draw_vote():
    """What layers say alone, and together."""
    model = variant("WPedRVFL", n_layers=6, n_hidden=30, regularization=0.1, random_state=0).fit(X, Y)
    figure, panels = plt.subplots(1, 4, figsize=(10, 2.5), layout="constrained")
    for l, axes in zip((0, 2, 5), panels, strict=False):
        D = features(model, GRID)[l]
        score = D @ np.asarray(model.network_.readouts[l])
        alone = 1 / (1 + np.exp(-(score[:, 1] - score[:, 0])))
        panel(axes, alone, f"layer {l + 1} alone", (0.25, 0.75))
    panel(panels[3], model.predict_proba(GRID)[:, 1], "all six vote", (0.25, 0.75))
    return figure


def draw_leave_one_out():
    """What leave-one-out says of each depth, beside many new rows."""
    X_new, y_new = make_moons(20_000, noise=0.25, random_state=2)
    model = EDRVFLClassifier(n_layers=8, n_hidden=100, random_state=0).fit(X, Y)
    figure, axes = plt.subplots(figsize=(7, 3), layout="constrained")
    depths = range(1, 9)
    new = [np.mean(labels == y_new) for labels in model.staged_predict(X_new)]
    axes.plot(depths, model.train_accuracies_, "o-", color="0.75", label="training rows, each layer alone")
    axes.plot(depths, model.loo_accuracies_, "o-", color=RED, label="training rows, by leave-one-out")
    axes.plot(depths, new, "o-", color=BLUE, label="20,000 new rows")
    axes.set(xlabel="layers", ylabel="accuracy")
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.25)
    return figure


def flops_of_passes(n: int, d: int, depth: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return, for each layer's pass, the flops of one row: Gram, its own projection, earlier ones again."""
    c = n + d + 1
    first, deeper = 2 * (d + 1) * n, 2 * c * n
    own = np.asarray([first] + [deeper] * (depth - 1))
    return np.full(depth, c * c), own, np.cumsum(own) - own


def draw_way(axes):
    """The way of rows in blocks from the source to a layer, and back for the next layer."""
    boxes = [
        ("source", "files, memory maps,\na function, or parts\non a cluster", "#f2f2f2"),
        ("blocks", "a few in memory;\nthe next is read\nmeanwhile", "#f2f2f2"),
        ("features", "of one block,\nfrom its rows and\nthe layers so far", "#dcebf5"),
        ("sums", "D'D and D'Y, right\nand wrong rows apart:\n$(n+d+1)^2$ numbers", YELLOW),
        ("solve", "read-out, weights,\npruning, and the next\nlayer's moments", YELLOW),
    ]
    step = 1.16
    for i, (title, words, colour) in enumerate(boxes):
        box(axes, i * step, 0, f"$\\bf{{{title}}}$\n{words}", colour, 1, 1)
        if i:
            arrow(axes, (i * step - 0.16, 0.5), (i * step, 0.5))
    last = (len(boxes) - 1) * step + 0.5
    style = {"arrowstyle": "-|>", "color": BLUE, "connectionstyle": "bar,fraction=-0.05", "linewidth": 1.6}
    axes.annotate("", (0.5, -0.02), (last, -0.02), arrowprops=style)
    words = "once for every layer, and a few times before the first: the rows are read again"
    axes.text((last + 0.5) / 2, -0.2, words, ha="center", va="center", fontsize=11.5, color=BLUE)
    axes.set(xlim=(-0.05, last + 0.55), ylim=(-0.42, 1.05))
    axes.axis("off")


def draw_blocks(n=256, d=30, depth=5):
    """The way of rows in blocks, and the work of each pass by the formulas of out_of_core.md."""
    figure, (upper, axes) = plt.subplots(
        2, 1, figsize=(10.4, 5.6), layout="constrained", height_ratios=(1, 1.15)
    )
    draw_way(upper)
    passes = np.arange(1, depth + 1)
    gram, own, again = (part / 1e3 for part in flops_of_passes(n, d, depth))
    axes.bar(passes, gram, color="#e69f00", label="Gram, a triangle of it")
    axes.bar(passes, own, bottom=gram, color=BLUE, label="the layer itself")
    axes.bar(passes, again, bottom=gram + own, color="#b8b8b8", label="layers before it, again")
    axes.set(xlabel="pass for layer", ylabel="thousand flops a row", xticks=passes)
    axes.set_title(f"What a pass costs: {d} columns, {n} neurons", fontsize=12)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, loc="upper left")
    return figure


def draw_honesty():
    """What leave-one-out says beside what new rows say: a point for each size of tables and model."""
    with (HERE.parent / "results" / "honesty.csv").open(newline="") as lines:
        rows = list(csv.DictReader(lines))
    figure, axes = plt.subplots(1, 3, figsize=(11, 3.9), layout="constrained")
    colours = {"before": RED, "after": BLUE}
    names = {"before": "one fit judges itself", "after": "folds, and proof"}
    sides = (("classes", "accuracy"), ("values", "R²"))
    for axis, (task, figure_name) in zip(axes, sides, strict=False):
        for code, colour in colours.items():
            some = [row for row in rows if row["task"] == task and row["code"] == code]
            x, y = ([float(row[side]) for row in some] for side in ("test", "loo"))
            axis.plot(x, y, "o", color=colour, alpha=0.8, label=names[code])
        low, high = axis.get_xlim()
        axis.plot([low, high], [low, high], color=GREY, zorder=0)
        axis.set(xlabel=f"{figure_name} on new rows", ylabel=f"{figure_name} by leave-one-out", title=task)
    axes[0].legend(frameon=False)
    bins = np.arange(60, 101, 2.5)
    for code, colour in colours.items():
        covered = [100 * float(row["covered_90"]) for row in rows if row["code"] == code]
        axes[2].hist(covered, bins, color=colour, alpha=0.6)
    axes[2].axvline(90, color="0.2", linewidth=1)
    words = "% of new rows in sets and intervals of 90 %"
    axes[2].set(xlabel=words, ylabel="sizes and models", title="covered")
    for axis in axes:
        axis.spines[["top", "right"]].set_visible(False)
    return figure


def draw_groups():
    """What leave-one-out says of new groups, with groups and without: a point for each table and way."""
    with (HERE.parent / "results" / "groups.csv").open(newline="") as lines:
        rows = list(csv.DictReader(lines))
    figure, (axes, held) = plt.subplots(1, 2, figsize=(9.6, 4.2), layout="constrained")
    ways = {"rows": (RED, "a row is left out"), "groups": (BLUE, "its whole group is left out")}
    for place, (way, (colour, words)) in enumerate(ways.items()):
        x, y, covered = (
            [float(row[f"{figure_name}_{way}"]) for row in rows] for figure_name in ("new", "loo", "covered")
        )
        axes.plot(x, y, "o", color=colour, label=words)
        heights = [i + 0.36 * (place - 0.5) for i in range(len(rows))]
        held.barh(heights, [100 * share for share in covered], 0.34, color=colour, alpha=0.8)
    axes.plot([-0.12, 1], [-0.12, 1], color=GREY, zorder=0)
    axes.set(xlabel="on new groups", ylabel="by leave-one-out", title="R² or accuracy")
    axes.legend(frameon=False, loc="lower right")
    held.axvline(90, color="0.2", linewidth=1)
    held.set_yticks(range(len(rows)), [row["table"] for row in rows])
    held.invert_yaxis()
    held.set(xlabel="% of rows of new groups", title="in intervals or sets of 90 %", xlim=(0, 100))
    for axis in (axes, held):
        axis.spines[["top", "right"]].set_visible(False)
    return figure


def figures_of(run) -> list[plt.Figure]:
    """Return the figures that a script leaves."""
    plt.close("all")
    run()
    return [plt.figure(number) for number in plt.get_fignums()]


def looking():
    """Run the first block of the page on looking at a model."""
    page = (HERE / "guide" / "looking.md").read_text()
    exec(re.search(r"```python\n(.*?)```", page, re.DOTALL)[1], {})


PICTURES = {
    "whole": draw_whole,
    "random_layer": draw_random_layer,
    "read_out": draw_readout,
    "renormalisation": draw_renormalisation,
    "weighting": draw_weighting,
    "pruning": draw_pruning,
    "vote": draw_vote,
    "leave_one_out": draw_leave_one_out,
}
# the figures of an example, in order, and what their files are called
OF_EXAMPLES = {
    "plot_portfolio": ("portfolio_members", "portfolio_calibration"),
    "plot_calibration": ("calibration",),
    "plot_regression": ("regression", "regression_depth"),
    "plot_layers": ("accuracy_by_layer",),
    "plot_tuning": ("search",),
}


def main(folder: Path = HERE) -> None:
    """Draw all."""
    (folder / "method").mkdir(exist_ok=True)
    for name, draw in PICTURES.items():
        draw().savefig(folder / "method" / f"{name}.png", dpi=130)
    draw_blocks().savefig(folder / "out_of_core.png", dpi=130)
    draw_honesty().savefig(folder / "honesty.png", dpi=130)
    draw_groups().savefig(folder / "groups.png", dpi=130)
    figures_of(looking)[0].savefig(folder / "looking.png", dpi=130)
    for example, names in OF_EXAMPLES.items():
        figures = figures_of(lambda example=example: runpy.run_path(str(EXAMPLES / f"{example}.py")))
        for name, figure in zip(names, figures, strict=False):
            figure.savefig(folder / f"{name}.png", dpi=130)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:2]))
