"""Table in, Figure out. Colours of Okabe and Ito, with markers and dashes that tell as much in grey."""

from __future__ import annotations

import importlib
import io
import math
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, NullFormatter, ScalarFormatter

from .published import Table, Value

INK = "#1b1b1f"  # lines and letters; a page may give them its own colour
GRID = "#8c8c94"
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7f7f87")
MARKERS = "osD^vPX<>p*h"
DASHES: tuple[Any, ...] = ("-", (0, (5, 1.5)), (0, (1, 1)), (0, (4, 1.2, 1, 1.2)), (0, (3, 1, 1, 1, 1, 1)))
LONGEST = 34  # letters of a name
# A known method looks the same in every figure, whoever is beside it.
KNOWN = ("edRVFL_O", "edRVFL_N", "WedRVFL", "PedRVFL", "WPedRVFL", "SNN", "ResNet", "SCN", "BLS", "H-ELM")

STYLE: Any = {  # Any: matplotlib types its keys one by one
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
    "text.parse_math": False,  # names are text, dollar signs and all
    "svg.fonttype": "none",  # letters stay letters: small files that can be searched and read aloud
    "svg.hashsalt": "edrvfl",  # the same figure is the same file
}


def _styled(draw: Callable[[Table], Figure]) -> Callable[[Table], Figure]:
    def figure(table: Table) -> Figure:
        with matplotlib.rc_context(STYLE):
            return draw(table)

    figure.__doc__, figure.__name__ = draw.__doc__, draw.__name__
    return figure


# --- section 5.5 -----------------------------------------------------------------------------------------

AXES: Mapping[str, str] = {
    "omega_r": "ωᵣ, weight of samples predicted correctly (1: no weighting)",
    "p": "p, share of neurons pruned (0: no pruning)",
}


@_styled
def sensitivity_figure(table: Table) -> Figure:
    """Test accuracy as omega_r or p varies: a panel for each dataset, a curve for each activation.

    Columns: dataset, activation, omega_r or p, test_accuracy, sd (may be empty).
    """
    parameter = table.columns[2]
    rows = table.records()
    datasets, activations = _unique(table, "dataset"), _unique(table, "activation")
    values = sorted(set(_floats(table.column(parameter)).tolist()))
    across = min(2, len(datasets))
    down = math.ceil(len(datasets) / across)
    figure = Figure(figsize=(3.6 * across + 0.4, 2.5 * down + 0.6), layout="constrained")
    axes = figure.subplots(down, across, squeeze=False).ravel()
    looks = _looks(activations)
    for ax, dataset in zip(axes, datasets, strict=False):
        for activation in activations:
            mine = [r for r in rows if (r["dataset"], r["activation"]) == (dataset, activation)]
            x, y, sd = (_floats(r[c] for r in mine) for c in (parameter, "test_accuracy", "sd"))
            ax.plot(x, y, label=_short(activation), **looks[activation])
            ax.fill_between(
                x,
                y - np.nan_to_num(sd),
                y + np.nan_to_num(sd),
                alpha=0.2,
                lw=0,
                color=looks[activation]["color"],
            )
        ax.set_title(_short(dataset))
        if len(values) <= 8:
            ax.set_xticks(values)
        if parameter == "omega_r":
            ax.invert_xaxis()  # from no weighting, on the left, to more
    for ax in axes[len(datasets) :]:
        ax.remove()
    figure.supxlabel(AXES.get(parameter, parameter), fontsize=9.5)
    figure.supylabel("test accuracy in percent", fontsize=9.5)
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=len(activations))
    return figure


# --- the study -------------------------------------------------------------------------------------------


@_styled
def depth_figure(table: Table) -> Figure:
    """Validation accuracy by depth, a line for each method. Columns: method, depth, accuracy."""
    figure = Figure(figsize=(7, 3.8), layout="constrained")
    ax = figure.subplots()
    looks = _looks(_unique(table, "method"))
    for method, look in looks.items():
        mine = [r for r in table.records() if r["method"] == method]
        ax.plot(*(_floats(r[c] for r in mine) for c in ("depth", "accuracy")), label=_short(method), **look)
    ax.set_xlabel("hidden layers")
    ax.set_ylabel("validation accuracy in percent")
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    figure.legend(loc="outside right upper")
    return figure


@_styled
def critical_difference_figure(table: Table) -> Figure:
    """Average ranks, with bars over methods that are not told apart.

    Columns: method, average_rank, critical_difference, then the p-value against each method.
    """
    pandas: Any = importlib.import_module("pandas")  # here, since it takes seconds, and no types
    posthocs: Any = importlib.import_module("scikit_posthocs")
    methods = _unique(table, "method")
    labels = _distinct([_short(m) for m in methods])
    ranks = dict(zip(labels, _floats(table.column("average_rank")), strict=True))
    p = pandas.DataFrame(
        [[float(v or 0) for v in row[3:]] for row in table.rows], index=labels, columns=labels
    )
    figure = Figure(figsize=(7.4, 1.9 + 0.26 * len(methods)), layout="constrained")
    ax = figure.subplots()
    ax.grid(visible=False)
    posthocs.critical_difference_diagram(
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
    for line in ax.get_lines():  # a bar's points come in the order of a set, another in each process
        x, y = np.asarray(line.get_xdata()), np.asarray(line.get_ydata())
        if np.ptp(y) == 0:
            line.set_data(np.sort(x), y)
    start, length = min(ranks.values()), float(table.rows[0][2] or 0)  # its own bar would cover the numbers
    ax.plot([start, start + length], [1.5, 1.5], color=INK, lw=2, marker="|", markersize=8)
    ax.text(start, 2.1, f"critical difference {length:.2f}", va="center", fontsize=9.5)
    ax.set_ylim(top=2.6)
    return figure


@_styled
def published_figure(table: Table) -> Figure:
    """Ours against published, with the diagonal. Columns: dataset, method, published, measured."""
    figure = Figure(figsize=(7, 5), layout="constrained")
    ax = figure.subplots()
    looks = _looks(_unique(table, "method"))
    for method, look in looks.items():
        mine = [r for r in table.records() if r["method"] == method]
        x, y = (_floats(r[c] for r in mine) for c in ("published", "measured"))
        points = {"ls": "", "ms": 6.5, "mec": "white", "mew": 0.5, "alpha": 0.85}
        ax.plot(x, y, label=_short(method), **(look | points))
    both = _floats([*table.column("published"), *table.column("measured")])
    ends = np.array([np.floor(both.min() - 1), min(101.0, np.ceil(both.max() + 1))])
    ax.plot(ends, ends, color=INK, lw=1, zorder=1, label="equal")
    ax.set(xlim=ends, ylim=ends, aspect="equal")
    ax.set_xlabel("published accuracy in percent")
    ax.set_ylabel("measured accuracy in percent")
    figure.legend(loc="outside right upper")
    return figure


@_styled
def time_figure(table: Table) -> Figure:
    """Time against accuracy, a point for each method. Columns: method, fit_seconds, accuracy."""
    figure = Figure(figsize=(7, 3.8), layout="constrained")
    ax = figure.subplots()
    looks = _looks(_unique(table, "method"))
    for r in table.records():
        look = looks[str(r["method"])] | {"ls": "", "ms": 8}
        ax.plot(_floats([r["fit_seconds"]]), _floats([r["accuracy"]]), label=_short(str(r["method"])), **look)
    ax.set_xscale("log")
    ax.xaxis.set_major_formatter(ScalarFormatter())
    seconds = _floats(table.column("fit_seconds"))
    if seconds.max() / seconds.min() < 10:  # too narrow for powers of ten alone
        ax.set_xscale("linear")
    else:
        ax.xaxis.set_minor_formatter(NullFormatter())
    ax.margins(0.12)
    ax.set_xlabel("seconds to fit, geometric mean over datasets")
    ax.set_ylabel("mean test accuracy in percent")
    figure.legend(loc="outside right upper")
    return figure


@_styled
def heatmap_figure(table: Table) -> Figure:
    """Accuracy by dataset and method, coloured by how far it is behind the dataset's best.

    Columns: dataset, method, accuracy (empty where there is none).
    """
    datasets, methods = _unique(table, "dataset"), _unique(table, "method")
    cells = {(r["dataset"], r["method"]): r["accuracy"] for r in table.records()}
    A = np.array([_floats(cells.get((d, m)) for m in methods) for d in datasets])
    best = np.array([[np.nanmax(row) if np.isfinite(row).any() else np.nan] for row in A])
    behind = best - A
    figure = Figure(
        figsize=(max(4.6, 2.6 + 0.72 * len(methods)), 1.5 + 0.27 * len(datasets)), layout="constrained"
    )
    ax = figure.subplots()
    top = max(1.0, float(np.nanquantile(behind, 0.95))) if np.isfinite(behind).any() else 1.0
    image = ax.imshow(behind, cmap="cividis_r", vmin=0, vmax=top, aspect="auto")
    for i, j in np.ndindex(A.shape):
        dark = behind[i, j] > 0.55 * top
        text, colour = (
            (f"{A[i, j]:.2f}", "white" if dark else "black") if np.isfinite(A[i, j]) else ("none", INK)
        )
        ax.text(j, i, text, ha="center", va="center", fontsize=8, color=colour)
    ax.grid(visible=False)
    ax.set_xticks(
        range(len(methods)), [_short(m, 18) for m in methods], rotation=30, ha="left", rotation_mode="anchor"
    )
    ax.xaxis.tick_top()
    ax.set_yticks(range(len(datasets)), [_short(d) for d in datasets])
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    bar = figure.colorbar(image, ax=ax, shrink=min(1.0, 0.3 + 2 / len(datasets)), extend="max")
    bar.set_label("points behind the best")
    bar.outline.set_visible(False)
    return figure


# --- files -----------------------------------------------------------------------------------------------


def to_svg(figure: Figure) -> str:
    """The figure on white, as an SVG file's text."""
    return _svg(figure, "white")


def to_inline_svg(figure: Figure, key: str, name: str, description: str) -> str:
    """The figure for a page: an element with an accessible name, in the page's own ink, ids its own."""
    svg = _svg(figure, "none")
    svg = svg[svg.index("<svg") :].replace(INK, "currentColor")
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r"<defs>\s*<style.*?</style>\s*</defs>", "", svg, flags=re.DOTALL)  # it speaks of everything
    for mark in ('id="', 'href="#', "url(#"):
        svg = svg.replace(mark, f"{mark}{key}-")
    opening, _, body = svg.partition(">")
    opening = re.sub(r' (width|height)="[^"]*"', "", opening)
    width = float(re.search(r'viewBox="0 0 ([\d.]+)', opening).group(1))  # type: ignore[union-attr]
    style = f"stroke-linejoin:round;stroke-linecap:butt;max-width:{width * 4 / 3:.0f}px"
    names = f"<title>{_escape(name)}</title><desc>{_escape(description)}</desc>"
    label = f'role="img" aria-label="{_escape(name)}. {_escape(description)}" style="{style}"'
    return f"{opening} {label}>{names}{body}".strip()


def save(figure: Figure, table: Table, folder: str | Path) -> list[Path]:
    """Write NAME.svg and NAME.csv, after the table's name."""
    target = Path(folder)
    paths = [target / f"{table.name}.svg", target / f"{table.name}.csv"]
    for path, text in zip(paths, (to_svg(figure), table.to_csv()), strict=True):
        path.write_text(text, encoding="utf-8")
    return paths


def _svg(figure: Figure, background: str) -> str:
    text = io.BytesIO()
    with matplotlib.rc_context(STYLE):
        figure.savefig(text, format="svg", facecolor=background, metadata={"Date": None, "Creator": None})
    return text.getvalue().decode()


# --- names and looks -------------------------------------------------------------------------------------


def _looks(names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Colour, marker and dashes by name."""
    others = iter(range(len(KNOWN), len(KNOWN) + len(names)))
    slots = {name: KNOWN.index(name) if name in KNOWN else next(others) for name in names}
    if not any(name in KNOWN for name in names):
        slots = {name: i for i, name in enumerate(names)}
    return {
        name: {
            "color": COLOURS[i % len(COLOURS)],
            "marker": MARKERS[i % len(MARKERS)],
            "ls": DASHES[i % len(DASHES)],
        }
        for name, i in slots.items()
    }


def _unique(table: Table, column: str) -> list[str]:
    return list(dict.fromkeys(str(value) for value in table.column(column)))


def _floats(values: Any) -> np.ndarray:
    def number(value: Value) -> float:
        return math.nan if value is None else float(value)

    return np.array([number(value) for value in values])


def _short(name: str, longest: int = LONGEST) -> str:
    """A name on one line, not too long, without letters that XML has no place for."""
    line = " ".join("".join(c if c.isprintable() else " " for c in name).split())
    return line if len(line) <= longest else line[: longest - 1] + "…"


def _distinct(labels: Sequence[str]) -> list[str]:
    """Labels made different where shortening made them equal."""
    seen: dict[str, int] = {}
    found = []
    for label in labels:
        seen[label] = seen.get(label, 0) + 1
        found.append(label if seen[label] == 1 else f"{label} ({seen[label]})")
    return found


def _escape(text: str) -> str:
    for letter, entity in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ('"', "&quot;")):
        text = text.replace(letter, entity)
    return text
