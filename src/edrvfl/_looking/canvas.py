"""What the pictures share: colours, panels, and matplotlib, which is imported when something is drawn."""

from __future__ import annotations

import math
from types import ModuleType
from typing import Any, Self

import numpy

from .._inputs.rows import to_host

# Blue and vermillion can be told apart by everyone, and so can grey from both by its lightness.
FIRST, SECOND, PALE = "#0072b2", "#d55e00", "0.75"
SERIES = (FIRST, SECOND, "#009e73", "#cc79a7", "#56b4e9")


class Display:
    """A picture of a model, with its axes and its figure once it is drawn. Subclasses draw it."""

    ax_: Any  # one panel, or a tuple of them
    figure_: Any

    def plot(self, ax: Any = None) -> Self:
        """Draw the picture.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw. Its place is divided if there are several panels. None makes a new figure.

        Returns
        -------
        display : display
            The display, with the axes and the figure.
        """
        self.ax_ = self._drawn(ax)
        self.figure_ = (self.ax_[0] if isinstance(self.ax_, tuple) else self.ax_).figure
        return self

    def _drawn(self, ax: Any) -> Any:
        """Draw into these axes, or into a new figure; return the panels."""
        raise NotImplementedError


def new_axes(ax: Any, width: float, height: float) -> Any:
    """Return the axes that were given, or those of a new figure of a size in inches."""
    if ax is not None:
        return ax
    _, made = pyplot().subplots(figsize=(width, height), layout="constrained")
    return made


def divided(ax: Any, n: int, n_columns: int, across: float = 0.48, down: float = 0.62) -> tuple[Any, ...]:
    """Divide the place of axes into n panels, row by row, with inches between them."""
    ax.set_axis_off()
    n_rows = math.ceil(n / n_columns)
    dpi = ax.figure.dpi
    across, down = across * dpi / ax.bbox.width, down * dpi / ax.bbox.height
    width, height = (1 - across * (n_columns - 1)) / n_columns, (1 - down * (n_rows - 1)) / n_rows
    corners = [((i % n_columns) * (width + across), 1 - (i // n_columns) * (height + down)) for i in range(n)]
    return tuple(ax.inset_axes((left, top - height, width, height)) for left, top in corners)


def tidy(panel: Any, grid: str, hidden: tuple[str, ...] = ("top", "right")) -> None:
    """Leave only the lines that are needed."""
    panel.spines[list(hidden)].set_visible(False)
    panel.grid(axis=grid, alpha=0.25)
    panel.set_axisbelow(True)


def legend_above(panel: Any, n_columns: int) -> None:
    """Put the legend above the panel, where no line can be."""
    panel.legend(
        frameon=False, loc="lower left", bbox_to_anchor=(-0.02, 1.0), ncols=n_columns, borderaxespad=0.2
    )


def whole_numbers(panel: Any) -> None:
    """Name only whole numbers on the horizontal axis."""
    panel.xaxis.get_major_locator().set_params(integer=True, min_n_ticks=1)


def bars_from_the_top(panel: Any, n: int) -> None:
    """Put the first of n horizontal bars on top."""
    panel.set_ylim(n - 0.4, -0.6)
    tidy(panel, "x", ("top", "right", "left"))
    panel.tick_params(axis="y", length=0)
    panel.locator_params(axis="x", nbins=5)


def pyplot() -> ModuleType:
    """Import matplotlib, or say how to get it."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            "Displays need matplotlib, which edrvfl does not install by itself: "
            "pip install 'edrvfl[demo]', or pip install matplotlib."
        ) from error
    found: ModuleType = plt
    return found


def plain(words: Any, longest: int = 30) -> str:
    """Return words that are drawn as they are, without their middle if they would take too much room."""
    text, half = str(words), longest // 2
    if len(text) > longest:  # names often differ at their end
        text = f"{text[: half - 1]}…{text[-half:]}"
    return text.replace("$", r"\$")  # which would begin a formula


def on_host(values: Any) -> numpy.ndarray:
    """Return an array of any library, a series or a list in NumPy."""
    return to_host(values) if hasattr(values, "__dlpack__") else numpy.asarray(values)
