"""The datasets that the study knows by name, and their groups."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from sklearn import datasets as shipped

from ..names import resolve_names
from .frames import ADDED, ALL_FRAMES, FRAME_GROUPS


@dataclass(frozen=True, slots=True)
class Published:
    """A dataset of the paper: its name in the archive, its shape, and the SHA-256 of its two texts."""

    name: str
    archive_name: str
    rows: int
    features: int
    classes: int
    csv_sha256: str
    folds_sha256: str


def _read_checksums() -> Mapping[str, Published]:
    """Read the table of the published datasets; names and order are those of the paper's Table 1."""
    lines = files(__package__).joinpath("checksums.csv").read_text(encoding="utf-8").splitlines()
    rows = [line.split(",") for line in lines[1:]]
    entries = [Published(n, a, int(m), int(d), int(k), *sums) for n, a, m, d, k, *sums in rows]
    return {entry.name: entry for entry in entries}


UCI24 = _read_checksums()

DEMO: Mapping[str, Callable[[], Any]] = {
    "iris": shipped.load_iris,
    "wine": shipped.load_wine,
    "breast_cancer": shipped.load_breast_cancer,
    "digits": shipped.load_digits,
}

GROUPS: Mapping[str, tuple[str, ...]] = {"uci24": tuple(UCI24), "demo": tuple(DEMO)}

# The paper shortens two names of the archive; both spellings are understood.
ALIASES: Mapping[str, tuple[str, ...]] = {
    entry.archive_name: (name,) for name, entry in UCI24.items() if entry.archive_name != name
}


def dataset_names(names_or_groups: Sequence[str], *, frames: bool = False) -> tuple[str, ...]:
    """Return the names asked for, each once, with groups expanded and in the paper's spelling.

    `frames` says whether real frames may be named too, and their groups. What searches takes arrays alone.
    """
    groups = {**ALIASES, **GROUPS}
    if frames:
        groups |= {group: tuple(rows) for group, rows in FRAME_GROUPS.items()}
    known = [*UCI24, *DEMO, *((*ALL_FRAMES, *ADDED) if frames else ())]
    return resolve_names(names_or_groups, known, groups, "dataset")
