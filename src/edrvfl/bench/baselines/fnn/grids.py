"""What the search of the four networks tries."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.model_selection import ParameterGrid

from .networks import FORMS

# Depths, widths and learning rates are those of a public re-run of the SNN study on these data. Dropout,
# forms, bottlenecks and the blocks of ResNet have not been verified against that study's appendix.
_DEPTHS, _WIDTHS, _RATES = (2, 3, 4, 8, 16, 32), (1024, 512, 256), (0.01, 0.1, 1.0)
WITHIN_A_KIND = ("n_layers", "learning_rate", "dropout")  # networks that differ in these are of one kind
_PLAIN = {"n_layers": _DEPTHS, "n_units": _WIDTHS, "learning_rate": _RATES, "form": FORMS["snn"]}
_BLOCKS = {
    "n_layers": (2, 3, 4, 8, 16),
    "n_units": _WIDTHS,
    "learning_rate": _RATES,
    "dropout": (0.0, 0.5),
    "block_layers": (2, 3),
}
GRIDS: Mapping[str, tuple[Mapping[str, Sequence[Any]], ...]] = {
    "snn": ({**_PLAIN, "dropout": (0.0, 0.05)},),
    "msra": ({**_PLAIN, "dropout": (0.0, 0.5)},),
    "highway": ({"n_layers": _DEPTHS, "n_units": _WIDTHS, "learning_rate": _RATES, "dropout": (0.0, 0.5)},),
    "resnet": (
        {**_BLOCKS, "form": ("rectangular",)},
        {**_BLOCKS, "form": ("diavolo",), "bottleneck": (0.25, 0.5)},
    ),
}


def _four(*rows: tuple[int, int, float, float]) -> tuple[Mapping[str, Any], ...]:
    keys = ("n_layers", "n_units", "learning_rate", "dropout")
    return tuple(dict(zip(keys, row, strict=True)) for row in rows)


# Four points of each grid, at most 16 layers deep and 512 wide, for a study that cannot afford them all.
REDUCED: Mapping[str, tuple[Mapping[str, Any], ...]] = {
    "snn": _four((4, 256, 0.1, 0.0), (2, 512, 0.01, 0.05), (8, 256, 0.01, 0.05), (16, 256, 0.01, 0.0)),
    "msra": _four((4, 256, 0.1, 0.0), (2, 512, 0.1, 0.5), (8, 256, 0.01, 0.0), (16, 256, 0.01, 0.0)),
    "highway": _four((4, 256, 0.1, 0.0), (2, 512, 0.1, 0.5), (8, 256, 0.1, 0.0), (16, 256, 0.01, 0.0)),
    "resnet": _four((4, 256, 0.1, 0.0), (2, 512, 0.1, 0.5), (8, 256, 0.1, 0.0), (8, 256, 0.01, 0.0)),
}


KINDS = 4  # so many kinds of networks are tried on a dataset, and more only if they have too few points


def configurations(architecture: str, trials: int = 4, seed: int = 0) -> list[dict[str, Any]]:
    """List what the search tries: the reduced grid for up to four trials, else draws from the whole grid.

    A kind is a width, a form and blocks. Four kinds are drawn first (Highway has only three), more only if
    the trials exceed their points. Each kind gets the same number of trials. Of the widths, forms, depths,
    learning rates and dropout rates each comes about as often as the others. No configuration is drawn twice,
    so there are never more of them than the grid has points.
    """
    if architecture not in GRIDS:
        raise ValueError(f"Unknown architecture {architecture!r}; choose one of {', '.join(GRIDS)}.")
    if trials < 1:
        raise ValueError(f"trials must be at least 1, got {trials}.")
    if trials <= len(REDUCED[architecture]):
        return [dict(configuration) for configuration in REDUCED[architecture][:trials]]
    rng = np.random.default_rng(seed)
    grids = GRIDS[architecture]
    kinds = [kind for grid in grids for kind in _points(grid, lambda name: name not in WITHIN_A_KIND)]
    points = _points(grids[0], lambda name: name in WITHIN_A_KIND)  # the same for all kinds
    n_kinds = min(len(kinds), max(KINDS, math.ceil(trials / len(points))))
    chosen = _spread(kinds, n_kinds, Counter(), rng)
    shares = [len(part) for part in np.array_split(range(min(trials, len(kinds) * len(points))), n_kinds)]
    used: Counter[Any] = Counter()
    return [
        {**point, **kind}
        for kind, share in zip(chosen, shares, strict=True)
        for point in _spread(points, share, used, rng)
    ]


def _points(grid: Mapping[str, Sequence[Any]], which: Callable[[str], bool]) -> list[dict[str, Any]]:
    """List all points of a grid in some of its parameters."""
    return list(ParameterGrid({name: list(values) for name, values in grid.items() if which(name)}))


def _spread(
    points: Sequence[dict[str, Any]], n: int, used: Counter[Any], rng: np.random.Generator
) -> list[dict[str, Any]]:
    """Draw n points, each time one whose values were used least: among them, then in `used`."""
    left = [points[i] for i in rng.permutation(len(points))]
    here: Counter[Any] = Counter()
    drawn = []
    for _ in range(n):
        point = min(left, key=lambda p: (_frequency(p, points, here), _frequency(p, points, used)))
        left.remove(point)
        drawn.append(point)
        here.update(point.items())
        used.update([*point.items(), tuple(point.items())])
    return drawn


def _frequency(point: Mapping[str, Any], points: Sequence[Mapping[str, Any]], used: Counter[Any]) -> float:
    """Say how often the point and its values were used, the rarer values counting for more."""
    return used[tuple(point.items())] + sum(
        used[item] * len({p.get(item[0]) for p in points}) for item in point.items()
    )
