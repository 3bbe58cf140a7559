"""Write names beside the points of a figure, so that no name lies on another or on a point."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import text_to_path

from .look import GRID

CLEAR = 5.0  # half the side of the square that is kept free around a point, in typographic points
PADDING = 1.0  # around a name
FARTHEST = 150.0  # from the point to a name, where there is no room beside the point


@dataclass(frozen=True, slots=True)
class Place:
    """Where a name goes: the middle of its box, seen from its point, and whether a line leads there."""

    x: float
    y: float
    led: bool


def place_labels(
    points: np.ndarray, sizes: np.ndarray, frame: Sequence[float], avoid: np.ndarray | None = None
) -> list[Place]:
    """Find a place for the name of each point: right, left, above, below, then farther away.

    Parameters
    ----------
    points : array of shape (n, 2)
        Where the points are, in typographic points.

    sizes : array of shape (n, 2)
        Width and height of the names.

    frame : left, bottom, right, top
        Where names may be.

    avoid : array of shape (m, 4), optional
        Boxes on which a name lies only if it has no other place: other points, or places on a line.

    Returns
    -------
    list of Place
        The same for the same input. A name for which there is no room at all stands right of its point.
    """
    markers = boxes_around(points, np.full((len(points), 2), 2 * CLEAR))
    soft = np.empty((0, 4)) if avoid is None else avoid
    names, found = np.empty((0, 4)), dict[int, Place]()
    for i in np.lexsort((points[:, 0], -points[:, 1])):  # from the top down
        shifts, led = _candidates(sizes[i])
        boxes = boxes_around(points[i] + shifts, np.broadcast_to(sizes[i], shifts.shape))
        apart = _inside(boxes, frame) & ~_hits(boxes, names)
        free = apart & ~_hits(boxes, markers)
        wishes = (free & ~_hits(boxes, soft), free, apart)  # from what is wanted to what is borne
        best = next((int(may.argmax()) for may in wishes if may.any()), 0)
        found[int(i)] = Place(float(shifts[best, 0]), float(shifts[best, 1]), bool(led[best]))
        names = np.vstack([names, boxes[best : best + 1]])
    return [found[i] for i in range(len(points))]


def _hits(boxes: np.ndarray, others: np.ndarray) -> np.ndarray:
    return np.asarray(overlaps(boxes, others).any(axis=1))


def _candidates(size: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """List the middles of a name as seen from its point, best first, and which of them need a line."""
    x, y = size / 2 + CLEAR + 0.5
    near = [(x, 0), (-x, 0), (0, y), (0, -y), (x, y), (-x, y), (x, -y), (-x, -y)]
    half = size / 2
    across = np.linspace(-1, 1, 21) * (half[0] + FARTHEST / 2)
    far = np.stack(np.meshgrid(across, np.arange(-FARTHEST, FARTHEST + 1, 5.0)), axis=-1).reshape(-1, 2)
    distance = np.linalg.norm(np.maximum(np.abs(far) - half, 0), axis=1)  # from the point to the name's edge
    order = np.argsort(distance, kind="stable")
    shifts = np.vstack([near, far[order[distance[order] > CLEAR + 2]]])
    return shifts, np.arange(len(shifts)) >= len(near)


def boxes_around(middles: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Return left, bottom, right, top of boxes."""
    return np.hstack([middles - sizes / 2, middles + sizes / 2])


def overlaps(some: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Tell which of some boxes lie on which of the others."""
    a, b = some[:, None], others[None]
    return np.asarray(((a[..., :2] < b[..., 2:]) & (b[..., :2] < a[..., 2:])).all(axis=-1))


def _inside(boxes: np.ndarray, frame: Sequence[float]) -> np.ndarray:
    left, bottom, right, top = frame
    low, high = boxes[:, :2] >= (left, bottom), boxes[:, 2:] <= (right, top)
    return np.asarray(low.all(axis=1) & high.all(axis=1))


# --- on axes ---------------------------------------------------------------------------------------------


def measure(texts: Sequence[str], size: float) -> np.ndarray:
    """Return width and height of texts in typographic points."""
    font = FontProperties(family="sans-serif", size=size)
    found = [text_to_path.get_text_width_height_descent(text, font, False)[:2] for text in texts]
    widths = np.array([width for width, _ in found])
    return np.column_stack([widths + 2 * PADDING, np.full(len(texts), 1.15 * size)])


@dataclass(frozen=True, slots=True, eq=False)
class Around:
    """What names should not lie on, in the units of the axes: points without a name, and a line."""

    points: np.ndarray
    line: np.ndarray

    def boxes(self, ax: Axes, scale: float) -> np.ndarray:
        """Return boxes around the points and along the line, in typographic points."""
        points, line = (scale * ax.transData.transform(each) for each in (self.points, self.line))
        along = [
            np.linspace(a, b, 2 + int(np.linalg.norm(b - a) / 3)) for a, b in itertools.pairwise(line)
        ]  # every three points of length
        middles = np.vstack([points, *along])
        sides = np.repeat([2 * CLEAR - 2, 2.0], [len(points), len(middles) - len(points)])
        return boxes_around(middles, np.column_stack([sides, sides]))


def write_labels(ax: Axes, points: np.ndarray, texts: Sequence[str], size: float, around: Around) -> None:
    """Write a name beside each point of the axes, whose position and limits must not change any more."""
    if not texts:
        return
    scale, frame = 72 / ax.figure.dpi, ax.bbox.get_points().ravel()
    at, sizes = scale * ax.transData.transform(points), measure(texts, size)
    places = place_labels(at, sizes, list(scale * frame), around.boxes(ax, scale))
    for point, text, place, (width, height) in zip(points, texts, places, sizes, strict=True):
        # The edge next to the point is fixed, because the reader's letters may be narrower than these.
        side = 0 if abs(place.x) < width / 2 else int(np.sign(place.x))
        edge = place.x - side * (width / 2 - PADDING)
        ax.annotate(
            text,
            point,
            (edge, place.y),
            textcoords="offset points",
            ha=("right", "center", "left")[side + 1],
            va="center_baseline",
            fontsize=size,
            annotation_clip=False,
        )
        if place.led:
            middle, half = np.array([place.x, place.y]), np.array([width, height]) / 2
            end = np.clip(0, middle - half, middle + half)
            line = {"arrowstyle": "-", "color": GRID, "lw": 0.7, "shrinkA": 0, "shrinkB": 0}
            ax.annotate("", point, end, textcoords="offset points", arrowprops=line, zorder=1.5)
