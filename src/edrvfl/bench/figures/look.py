"""How the figures look: colours, markers, dashes, letters, and names that fit.

The colours are those of Okabe and Ito, which colour-blind readers can tell apart. Markers and dashes differ
too, so the figures can be read in grey.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import matplotlib

INK = "#1b1b1f"  # of lines and letters; `svg.to_inline_svg` replaces it by the page's text colour
GRID = "#8c8c94"
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7f7f87")
MARKERS = "osD^vPX<>p*h"
DASHES: tuple[Any, ...] = ("-", (0, (5, 1.5)), (0, (1, 1)), (0, (4, 1.2, 1, 1.2)), (0, (3, 1, 1, 1, 1, 1)))
WIDEST = 10.5  # inches; 1008 pixels where a point is 4/3 of a pixel, as on the page
SMALLEST = 7.8  # typographic points, 10.4 pixels
LONGEST = 34  # letters of a name in a figure
# These methods look the same in every figure, whichever other methods are beside them.
KNOWN = (
    *("edRVFL_O", "edRVFL_N", "WedRVFL", "PedRVFL", "WPedRVFL", "dRVFL", "RVFL"),
    *("SNN", "ResNet", "SCN", "BLS", "H-ELM"),
)
# Where a figure is about whose a method is, not about which it is.
KIND_LOOKS: dict[str, dict[str, Any]] = {
    "ours": {"color": COLOURS[0], "marker": "o"},
    "peer": {"color": COLOURS[1], "marker": "D"},
    "paper": {"color": COLOURS[2], "marker": "^"},
}
KIND_NAMES = {"ours": "this package", "peer": "peers", "paper": "the paper's others"}

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


def choose_looks(names: Sequence[str]) -> dict[str, dict[str, Any]]:
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


def number_equals(labels: Sequence[str]) -> list[str]:
    """Number labels that became equal when they were cut."""
    seen: dict[str, int] = {}
    found = []
    for label in labels:
        seen[label] = seen.get(label, 0) + 1
        found.append(label if seen[label] == 1 else f"{label} ({seen[label]})")
    return found
