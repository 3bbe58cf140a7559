"""Load a dataset of the study by its name, and say which datasets are at hand."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from .catalogue import DEMO, UCI24, Published, dataset_names
from .fetch import ARCHIVE_URL, cache_folder, fetch_missing
from .frames import FRAME_GROUPS, load_frame, source_of
from .published import file_paths, is_intact, is_present, read_published, read_verified
from .records import DataError, Dataset, draw_dataset


@dataclass(frozen=True, slots=True)
class Description:
    """A row of the table of datasets; `source` is empty if the dataset is not at hand."""

    name: str
    group: str
    rows: int
    features: int
    classes: int
    source: str
    state: str  # "found", "verified", "missing", or "damaged: " and the reason


def load_dataset(
    name: str,
    folder: str | Path | None = None,
    *,
    cache: str | Path | None = None,
    url: str = ARCHIVE_URL,
    progress: bool = True,
) -> Dataset:
    """Load a dataset of `GROUPS` by its name, with verified values and partitions, in read-only arrays.

    The demo group comes with scikit-learn. For the others NAME.csv.gz and NAME.folds.csv.gz are looked for
    in `folder`, by default the environment variable EDRVFL_DATA, then in the folder `cache` that keeps
    downloads, by default the user's cache folder. What is in neither is downloaded from the archive at `url`,
    where `progress` shows a bar on a terminal.
    """
    names = dataset_names([name])
    if len(names) != 1:
        raise ValueError(
            f"load_dataset loads one dataset, but {name!r} names {len(names)}; "
            f"load them one by one: {', '.join(names) or 'none'}"
        )
    if names[0] in DEMO:
        bunch = DEMO[names[0]]()
        return draw_dataset(names[0], bunch.data, bunch.target, tuple(map(str, bunch.target_names)))
    entry, named = UCI24[names[0]], _named_folder(folder)
    # A folder that the user named must be right; the cache is repaired by a download.
    if named and is_present(entry, named):
        return read_published(entry, named)
    return _load_cached(entry, cache_folder(cache), url, progress)


def describe_datasets(
    folder: str | Path | None = None, *, cache: str | Path | None = None, verify: bool = False
) -> list[Description]:
    """List every dataset, its shape, and where it was found; `verify` also checks the files by SHA-256."""
    named = _named_folder(folder)
    places = [place for place in (named, cache_folder(cache)) if place]
    rows = []
    for entry in UCI24.values():
        place = next((place for place in places if is_present(entry, place)), None)
        state = _state(place is not None, verify, partial(read_verified, entry, place or Path()))
        shape = entry.rows, entry.features, entry.classes
        rows.append(Description(entry.name, "uci24", *shape, str(place or ""), state))
    for name in DEMO:
        data = load_dataset(name)
        m, d = data.X.shape
        rows.append(Description(name, "demo", m, d, len(data.classes), "scikit-learn", "found"))
    for group, frame in ((group, frame) for group, some in FRAME_GROUPS.items() for frame in some.values()):
        package = source_of(frame).package
        there = find_spec(package) is not None
        source = "" if not there else "scikit-learn" if package == "pandas" else package
        state = _state(there, verify, partial(load_frame, frame.name))
        shape = frame.rows, frame.features, frame.classes
        rows.append(Description(frame.name, group, *shape, source, state))
    return rows


def _state(there: bool, verify: bool, read: Callable[[], object]) -> str:
    """Say in a word how a dataset was found; to verify it is to read it."""
    if not there or not verify:
        return "found" if there else "missing"
    try:
        read()
    except DataError as error:
        return f"damaged: {error}"
    return "verified"


def _named_folder(folder: str | Path | None) -> Path | None:
    """Return the folder of the argument, or else of EDRVFL_DATA; a folder that is named must exist."""
    given, by = (os.environ.get("EDRVFL_DATA"), "EDRVFL_DATA") if folder is None else (folder, "folder")
    if not given:
        return None
    if not Path(given).is_dir():
        raise DataError(f"{by} must name a folder with NAME.csv.gz and NAME.folds.csv.gz, got '{given}'")
    return Path(given)


def _load_cached(entry: Published, cache: Path, url: str, progress: bool) -> Dataset:
    """Read a dataset from the cache, after a download if it is absent or damaged there."""
    try:
        return read_published(entry, cache)
    except DataError:
        pass  # a download repairs whatever is wrong in the cache
    try:
        fetch_missing(UCI24.values(), cache, url, progress)
    except DataError as error:
        # The archive may be wrong about other datasets only.
        if not is_intact(entry, cache):
            files = " and ".join(path.name for path in file_paths(entry, cache))
            raise DataError(
                f"{entry.name} is not at hand and could not be fetched: {error}. "
                "Run `edrvfl bench data --fetch` where there is a network, "
                f"or set EDRVFL_DATA to a folder with {files}"
            ) from error
    return read_published(entry, cache)
