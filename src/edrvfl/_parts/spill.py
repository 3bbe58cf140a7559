"""Features of the layer before, kept in files or on a device instead of being computed again."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import numpy

from .._inputs.rows import to_host
from .._seam.arrays import Array, array_namespace, device, free_bytes, from_numpy, itemsize, on_accelerator
from .._seam.threads import one_blas_thread

PROBE_BYTES = 32 * 2**20  # that are written to know how fast the disk is
ROOM = 0.8  # of the free disk, that features may take
DEVICE_ROOM = 0.7  # of a device's free memory
MOUNTS = Path("/proc/self/mounts")  # where Linux tells which file system is where


class Kept(Protocol):
    """Somewhere to keep the hidden features of each part from one pass to the next."""

    def part(self, number: int, depth: int, rows: Array, keep: bool) -> AbstractContextManager[KeptPart]:
        """Open the features of a part, whose rows are given, for a network of some depth.

        The features of the layer before are read. Those of the newest layer are written, if `keep` says so.
        """


class KeptPart(Protocol):
    """The features of a part's rows in the layer before, and a place for those of the newest layer."""

    def read(self, n_rows: int) -> Array | None:
        """Return the features of the next rows; None if there is no layer before."""

    def write(self, H: Array) -> None:
        """Take the features of as many rows as were read last."""


@dataclass(frozen=True, slots=True)
class InFiles:
    """Features in files of a folder."""

    folder: Path
    n_hidden: int

    @contextmanager
    def part(self, number: int, depth: int, rows: Array, keep: bool) -> Iterator[KeptPart]:
        """Open the files of a part. What is written takes the place of what is read when the part is done."""
        before, after = (self.folder / f"{number}-{layers}" for layers in (depth - 1, depth))
        with ExitStack() as files:
            old = files.enter_context(before.open("rb")) if depth > 1 else None
            new = files.enter_context(after.open("wb")) if keep else None
            yield PartFile(old, new, self.n_hidden, rows[:0, :])
        before.unlink(missing_ok=True)


@dataclass(frozen=True, slots=True, eq=False)
class PartFile:
    """The features of a part in two files: of the layer before, and of the newest layer."""

    old: BinaryIO | None
    new: BinaryIO | None
    n_hidden: int
    like: Array  # an array in the precision, of the library and on the device of the features

    def read(self, n_rows: int) -> Array | None:
        """Return the features of the next rows; None if there is no layer before."""
        if self.old is None:
            return None
        H = numpy.empty((n_rows, self.n_hidden), dtype=to_host(self.like).dtype)
        if self.old.readinto(H.data.cast("B")) != H.nbytes:  # type: ignore[attr-defined]
            raise OSError(f"The features in {self.old.name} ended early.")
        return from_numpy(H, self.like)

    def write(self, H: Array) -> None:
        """Append the features of some rows."""
        if self.new is not None:
            self.new.write(numpy.ascontiguousarray(to_host(H)).data)


class OnDevice:
    """Features in the memory of the device that computes them."""

    def __init__(self, n_hidden: int) -> None:
        self._n, self._parts = n_hidden, dict[int, Array]()

    @contextmanager
    def part(self, number: int, depth: int, rows: Array, keep: bool) -> Iterator[KeptPart]:  # noqa: ARG002
        """Open the features of a part: the newest take the place of those before."""
        if number not in self._parts:
            shape = (rows.shape[0], self._n)
            self._parts[number] = array_namespace(rows).empty(shape, dtype=rows.dtype, device=device(rows))
        yield PartArray(self._parts[number], depth > 1)


class PartArray:
    """The features of a part in an array, which is read and written block by block."""

    def __init__(self, features: Array, filled: bool) -> None:
        self._features, self._filled, self._end = features, filled, 0

    def read(self, n_rows: int) -> Array | None:
        """Return the features of the next rows; None if there is no layer before."""
        self._end += n_rows
        return self._features[self._end - n_rows : self._end, :] if self._filled else None

    def write(self, H: Array) -> None:
        """Put the newest features in the place of those that were read last."""
        self._features[self._end - H.shape[0] : self._end, :] = H


@dataclass(frozen=True, slots=True, eq=False)
class Load:
    """How much work it is to keep features, or to compute them again."""

    like: Array  # some rows, in the precision, of the library and on the device of the features
    n_rows: int
    n_hidden: int
    n_layers: int
    width: int  # how many columns the inputs have
    threads: int  # that compute at once

    @property
    def n_bytes(self) -> int:
        """How many bytes the hidden features of all rows take."""
        return self.n_rows * self.n_hidden * itemsize(self.like)

    @property
    def projections_saved(self) -> float:
        """How many projections of a deep layer files save each row.

        The pass of layer l reads layer l - 1, and need not compute layers 1 to l - 1. The first of them sees
        the inputs alone, and takes that part of the work of a deeper one.
        """
        before = self.n_layers - 1
        return before * (before - 1) / 2 + before * (self.width + 1) / (self.n_hidden + self.width + 1)

    def files_pay(self, folder: Path) -> bool:
        """Tell whether writing and reading features is faster than computing them again for every layer."""
        if self.n_layers < 3 or in_memory(folder):
            return False
        files = seconds_of_files(folder, self.n_bytes, self.like) * (self.n_layers - 1)
        return files < self._seconds_of_projection() * self.n_rows * self.projections_saved / self.threads

    def _seconds_of_projection(self) -> float:
        """Return how long a row takes in one thread to go through a deep layer."""
        xp, like = array_namespace(self.like), self.like
        some, c = min(1000, like.shape[0]), self.n_hidden + self.width + 1
        shapes = ((some, c), (c, self.n_hidden))
        A, W = (xp.ones(shape, dtype=like.dtype, device=device(like)) for shape in shapes)
        with one_blas_thread() if self.threads > 1 else nullcontext():  # as the passes will compute
            return min(_seconds(lambda: A @ W) for _ in range(3)) / some


def _seconds(function: Callable[[], Any]) -> float:
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


@contextmanager
def kept_features(wanted: Any, load: Load) -> Iterator[Kept | None]:
    """Find the place where features are kept during a fit; None if they are computed again.

    A device keeps them in its own memory, if there is room: a file would be slower than computing.
    """
    if on_accelerator(load.like):
        fits = load.n_bytes < DEVICE_ROOM * free_bytes(load.like)
        yield OnDevice(load.n_hidden) if wanted and fits else None
        return
    with spill_folder(wanted, load.files_pay, load.n_hidden) as kept:
        yield kept


@contextmanager
def spill_folder(wanted: Any, pays: Callable[[Path], bool], n_hidden: int) -> Iterator[Kept | None]:
    """Make a folder for features, which goes away at the end; None if they are computed again.

    `wanted` is True, False, "auto" or a folder in which to make it; "auto" asks whether a folder in the given
    one `pays`.
    """
    if isinstance(wanted, str) and wanted == "auto":
        try:
            wanted = pays(Path(tempfile.gettempdir()))
        except OSError:  # nothing can be written there
            wanted = False
    if wanted is False:
        yield None
        return
    if not (wanted is True or (isinstance(wanted, (str, os.PathLike)) and Path(wanted).is_dir())):
        raise ValueError(f'spill must be True, False, "auto" or a folder that exists, got {wanted!r}.')
    folder = Path(tempfile.mkdtemp(prefix="edrvfl-", dir=None if wanted is True else wanted))
    try:
        yield InFiles(folder, n_hidden)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def seconds_of_files(folder: Path, n_bytes: int, like: Array) -> float:
    """Return how long it takes to write and to read so many bytes; infinite if there is no room for them.

    Bytes that fit into memory stay in the system's cache, which is as fast as writing without waiting.
    """
    if n_bytes > ROOM * shutil.disk_usage(folder).free:
        return float("inf")
    data = numpy.random.default_rng(0).bytes(PROBE_BYTES)
    with tempfile.TemporaryFile(dir=folder) as probe:
        start = time.perf_counter()
        probe.write(data)
        if n_bytes > free_bytes(like) / 4:
            probe.flush()
            os.fsync(probe.fileno())
        seconds = time.perf_counter() - start
    return 2 * seconds * n_bytes / PROBE_BYTES


def in_memory(folder: Path, mounts: Path = MOUNTS) -> bool:
    """Tell whether the files of a folder lie in memory, where the system says what is mounted."""
    try:
        lines = mounts.read_text(errors="surrogateescape").splitlines()
    except OSError:  # not on Linux
        return False
    folder, depth, found = folder.resolve(), 0, ""
    for _, escaped, kind, *_ in map(str.split, lines):
        point = Path(re.sub(r"\\([0-7]{3})", lambda code: chr(int(code[1], 8)), escaped))
        # the longest prefix; what is mounted later covers what is there
        if folder.is_relative_to(point) and len(point.parts) >= depth:
            depth, found = len(point.parts), kind
    return found in {"tmpfs", "ramfs"}
