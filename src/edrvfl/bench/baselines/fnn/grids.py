"""What the search of the four networks tries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from sklearn.model_selection import ParameterGrid

from ..randomised import sample_configurations
from .networks import FORMS

# Depths, widths and learning rates are those of a public re-run of the SNN study on these data. Dropout,
# forms, bottlenecks and the blocks of ResNet have not been verified against that study's appendix.
_DEPTHS, _WIDTHS, _RATES = (2, 3, 4, 8, 16, 32), (1024, 512, 256), (0.01, 0.1, 1.0)
_PLAIN = {"n_layers": _DEPTHS, "n_units": _WIDTHS, "learning_rate": _RATES, "form": FORMS["snn"]}
_BLOCKS = {
    "n_layers": (2, 3, 4, 8, 16),
    "n_units": _WIDTHS,
    "learning_rate": _RATES,
    "dropout": (0.0, 0.5),
    "block_layers": (2, 3),
}
GRIDS: Mapping[str, tuple[Mapping[str, Sequence[Any]], ...]] = MappingProxyType(
    {
        "snn": ({**_PLAIN, "dropout": (0.0, 0.05)},),
        "msra": ({**_PLAIN, "dropout": (0.0, 0.5)},),
        "highway": (
            {"n_layers": _DEPTHS, "n_units": _WIDTHS, "learning_rate": _RATES, "dropout": (0.0, 0.5)},
        ),
        "resnet": (
            {**_BLOCKS, "form": ("rectangular",)},
            {**_BLOCKS, "form": ("diavolo",), "bottleneck": (0.25, 0.5)},
        ),
    }
)


def _four(*rows: tuple[int, int, float, float]) -> tuple[Mapping[str, Any], ...]:
    keys = ("n_layers", "n_units", "learning_rate", "dropout")
    return tuple(dict(zip(keys, row, strict=True)) for row in rows)


# Four points of each grid, at most 16 layers deep and 512 wide, for a study that cannot afford them all.
REDUCED: Mapping[str, tuple[Mapping[str, Any], ...]] = MappingProxyType(
    {
        "snn": _four((4, 256, 0.1, 0.0), (2, 512, 0.01, 0.05), (8, 256, 0.01, 0.05), (16, 256, 0.01, 0.0)),
        "msra": _four((4, 256, 0.1, 0.0), (2, 512, 0.1, 0.5), (8, 256, 0.01, 0.0), (16, 256, 0.01, 0.0)),
        "highway": _four((4, 256, 0.1, 0.0), (2, 512, 0.1, 0.5), (8, 256, 0.1, 0.0), (16, 256, 0.01, 0.0)),
        "resnet": _four((4, 256, 0.1, 0.0), (2, 512, 0.1, 0.5), (8, 256, 0.1, 0.0), (8, 256, 0.01, 0.0)),
    }
)


def configurations(architecture: str, trials: int = 4, seed: int = 0) -> list[dict[str, Any]]:
    """List what the search tries: the reduced grid for up to four trials, else draws from the whole grid.

    No configuration is drawn twice, so there are never more of them than the grid has points.

    Examples
    --------
    >>> configurations("snn")[0]
    {'n_layers': 4, 'n_units': 256, 'learning_rate': 0.1, 'dropout': 0.0}
    >>> len(configurations("snn", 50, seed=1)), len(configurations("snn", 1000, seed=1))
    (50, 216)
    """
    if architecture not in GRIDS:
        raise ValueError(f"Unknown architecture {architecture!r}; choose one of {', '.join(GRIDS)}.")
    if trials < 1:
        raise ValueError(f"trials must be at least 1, got {trials}.")
    if trials <= len(REDUCED[architecture]):
        return [dict(configuration) for configuration in REDUCED[architecture][:trials]]
    grids = GRIDS[architecture]
    return sample_configurations(grids, min(trials, len(ParameterGrid(grids))), seed)
