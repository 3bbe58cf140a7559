"""Write names beside the points of a figure, so that no name lies on another or on a point."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import text_to_path

from .look import GRID

CLEAR = 5.0  # half the side of the square that is kept free around a point, in typographic points
FARTHEST = 150.0  # from the point to a name, where there is no room beside the point
LEADER = {"arrowstyle": "-", "color": GRID, "lw": 0.7, "shrinkA": 0, "shrinkB": 0}


def write_labels(
    ax: Axes, points: np.ndarray, texts: Sequence[str], size: float, line: np.ndarray, others: np.ndarray
) -> None:
    """Write a name beside each point of the axes, whose position and limits must not change any more.

    From the top down, each name takes the first place that is free: right, left, above, below, or farther
    away with a line that leads there. Names keep off each other and all points, and off the corners of
    `line` and what is between them, if they can.
    """
    scale = 72 / ax.figure.dpi
    frame = scale * ax.bbox.get_points()
    at, corners, rest = (scale * ax.transData.transform(each) for each in (points, line, others))
    along = [np.linspace(a, b, 60) for a, b in itertools.pairwise(corners)]
    avoid = np.vstack([_boxes(np.vstack([at, rest]), 2 * CLEAR), _boxes(np.vstack(along), 2.0)])
    names = np.empty((0, 4))
    for i in np.lexsort((at[:, 0], -at[:, 1])):
        box = measure(texts[i], size)
        shifts, n_near = _places(box)
        boxes = _boxes(at[i] + shifts, box)
        inside = ((boxes[:, :2] >= frame[0]) & (boxes[:, 2:] <= frame[1])).all(axis=1)
        apart = inside & ~overlaps(boxes, names).any(axis=1)
        free = apart & ~overlaps(boxes, avoid).any(axis=1)
        best = int((free if free.any() else apart).argmax())
        names = np.vstack([names, boxes[best]])
        x, y = shifts[best]
        # The edge next to the point is fixed, because the reader's letters may be narrower than these.
        side = 0 if abs(x) < box[0] / 2 else int(np.sign(x))
        ax.annotate(
            texts[i],
            points[i],
            (x - side * box[0] / 2, y),
            textcoords="offset points",
            ha=("right", "center", "left")[side + 1],
            va="center_baseline",
            fontsize=size,
            annotation_clip=False,
            arrowprops=LEADER if best >= n_near else None,
        )


def measure(text: str, size: float) -> np.ndarray:
    """Return width and height of a text in typographic points."""
    font = FontProperties(family="sans-serif", size=size)
    width = text_to_path.get_text_width_height_descent(text, font, False)[0]
    return np.array([width + 2.0, 1.15 * size])


def _places(box: np.ndarray) -> tuple[np.ndarray, int]:
    """List the middles of a name as seen from its point, best first, and how many of them need no line."""
    x, y = box / 2 + CLEAR + 0.5
    near = [(x, 0), (-x, 0), (0, y), (0, -y), (x, y), (-x, y), (x, -y), (-x, -y)]
    across = np.linspace(-1, 1, 21) * (box[0] + FARTHEST) / 2
    far = np.stack(np.meshgrid(across, np.arange(-FARTHEST, FARTHEST + 1, 5.0)), axis=-1).reshape(-1, 2)
    distance = np.linalg.norm(np.maximum(np.abs(far) - box / 2, 0), axis=1)  # from the point to the name
    order = np.argsort(distance, kind="stable")
    return np.vstack([near, far[order[distance[order] > CLEAR + 2]]]), len(near)


def _boxes(middles: np.ndarray, sizes: np.ndarray | float) -> np.ndarray:
    """Return left, bottom, right, top of boxes around points."""
    half = np.broadcast_to(sizes, middles.shape) / 2
    return np.hstack([middles - half, middles + half])


def overlaps(some: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Tell which of some boxes lie on which of the others."""
    a, b = some[:, None], others[None]
    return np.asarray(((a[..., :2] < b[..., 2:]) & (b[..., :2] < a[..., 2:])).all(axis=-1))
