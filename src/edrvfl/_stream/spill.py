"""Features of the layer before, kept in files instead of being computed again."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy

from .._arrays import Array, free_bytes

PROBE_BYTES = 32 * 2**20  # that are written to know how fast the disk is
ROOM = 0.8  # of the free disk, that features may take


@dataclass(frozen=True, slots=True)
class Spill:
    """A folder with the hidden features of each part."""

    folder: Path
    n_hidden: int

    @contextmanager
    def part(self, number: int, depth: int, keep: bool) -> Iterator[PartFile]:
        """Open the features of a part for a network of some depth: read those before, write those that come.

        What was written takes the place of what was read when the part is done.
        """
        before, after = (self.folder / f"{number}-{layers}" for layers in (depth - 1, depth))
        with ExitStack() as files:
            old = files.enter_context(before.open("rb")) if depth > 1 else None
            new = files.enter_context(after.open("wb")) if keep else None
            yield PartFile(old, new, self.n_hidden)
        before.unlink(missing_ok=True)


@dataclass(frozen=True, slots=True, eq=False)
class PartFile:
    """The features of a part's rows in the layer before, and a place for those of the newest layer."""

    old: BinaryIO | None
    new: BinaryIO | None
    n_hidden: int

    def read(self, n_rows: int, dtype: Any) -> Array | None:
        """Return the features of the next rows; None if there is no layer before."""
        if self.old is None:
            return None
        H = numpy.empty((n_rows, self.n_hidden), dtype=dtype)
        if self.old.readinto(H.data.cast("B")) != H.nbytes:  # type: ignore[attr-defined]
            raise OSError(f"The features in {self.old.name} ended early.")
        return H

    def write(self, H: Array) -> None:
        """Append the features of some rows."""
        if self.new is not None:
            self.new.write(numpy.ascontiguousarray(H).data)


@contextmanager
def spill_folder(wanted: Any, pays: Callable[[Path], bool], n_hidden: int) -> Iterator[Spill | None]:
    """Make a folder for features, which goes away at the end; None if they are computed again.

    `wanted` is True, False, "auto" or a folder in which to make it; "auto" asks `pays`.
    """
    if wanted is False:
        yield None
        return
    where = None if isinstance(wanted, bool) or wanted == "auto" else wanted
    folder = Path(tempfile.mkdtemp(prefix="edrvfl-", dir=where))
    try:
        yield Spill(folder, n_hidden) if wanted != "auto" or pays(folder) else None
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def seconds_of_files(folder: Path, n_bytes: int, like: Array) -> float:
    """Return how long it takes to write and to read so many bytes; infinite if there is no room for them.

    Bytes that fit into memory stay in the system's cache, which is as fast as writing without waiting.
    """
    if n_bytes > ROOM * shutil.disk_usage(folder).free:
        return float("inf")
    probe = folder / "probe"
    data = numpy.random.default_rng(0).bytes(PROBE_BYTES)
    start = time.perf_counter()
    with probe.open("wb") as file:
        file.write(data)
        if n_bytes > free_bytes(like) / 4:
            file.flush()
            os.fsync(file.fileno())
    seconds = time.perf_counter() - start
    probe.unlink()
    return 2 * seconds * n_bytes / PROBE_BYTES
