"""Draw the study's figures: a table goes in, a matplotlib `Figure` comes out.

A figure is at most `WIDEST` inches wide and has no letters below `SMALLEST` points, so that nothing is
below ten pixels on a page of 1016.
"""

from .charts import (
    critical_difference_figure,
    depth_figure,
    heatmap_figure,
    probabilities_figure,
    sensitivity_figure,
)
from .look import INK, MISSING, SMALLEST, WIDEST, one_line, short_name, style
from .points import published_figure, time_figure

__all__ = [
    "INK",
    "MISSING",
    "SMALLEST",
    "WIDEST",
    "critical_difference_figure",
    "depth_figure",
    "heatmap_figure",
    "one_line",
    "probabilities_figure",
    "published_figure",
    "sensitivity_figure",
    "short_name",
    "style",
    "time_figure",
]
