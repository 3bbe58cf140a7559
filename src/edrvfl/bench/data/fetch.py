"""Download the paper's datasets once, verify them, and keep them in the user's cache folder."""

from __future__ import annotations

import gzip
import logging
import struct
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath

import numpy as np

from .catalogue import UCI24, Published
from .published import check_sha256, file_paths, is_intact, parse_matrix, write_folds
from .records import DataError, import_extra

ARCHIVE_URL = "https://www.bioinf.jku.at/people/klambauer/data_py.zip"  # of Klambauer et al. 2017
TIMEOUT = 60  # seconds without a byte
CELL_BYTES = 32  # no number of the archive is written with more characters, its comma included
# What zipfile and the parsers of numbers raise on damaged input; OSError: zipfile seeks before the start.
DAMAGE = (zipfile.BadZipFile, zlib.error, struct.error, EOFError, OSError, ValueError, RuntimeError)

Members = Mapping[tuple[str, ...], zipfile.ZipInfo]


def cache_folder(given: str | Path | None = None) -> Path:
    """Return the folder that keeps downloads: the given one, or `edrvfl` in the user's cache folder."""
    if given is not None:
        return Path(given)
    return Path(import_extra("pooch", "the cache of downloaded datasets").os_cache("edrvfl"))


def fetch_datasets(url: str = ARCHIVE_URL, cache: str | Path | None = None, progress: bool = True) -> Path:
    """Download the paper's datasets that the cache folder lacks, and return that folder."""
    folder = cache_folder(cache)
    fetch_missing(UCI24.values(), folder, url, progress)
    return folder


def fetch_missing(entries: Iterable[Published], folder: Path, url: str, progress: bool) -> None:
    """Bring these datasets into the folder; the ones that are intact there stay as they are."""
    missing = [entry for entry in entries if not is_intact(entry, folder)]
    if not missing:
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # New files are made in a folder of their own and then renamed: whatever interrupts the download,
        # no half-written file has a name that is read, and processes that fetch at once do not meet.
        with tempfile.TemporaryDirectory(dir=folder, prefix="download-") as scratch:
            archive = _download(url, Path(scratch), progress)
            _unpack(archive, missing, folder)
    except OSError as error:
        raise DataError(
            f"cannot write datasets to {folder} ({error}); make room there or name another cache folder"
        ) from error


def _download(url: str, scratch: Path, progress: bool) -> Path:
    """Download the archive. Its own SHA-256 was never published: each dataset in it is verified instead."""
    pooch = import_extra("pooch", "the download of the paper's datasets")
    requests = import_extra("requests", "the download of the paper's datasets")
    pooch.get_logger().setLevel(logging.WARNING)  # it would advise to pin the SHA-256 of the archive
    # A bar belongs on a terminal, not into the log of a batch job.
    downloader = pooch.HTTPDownloader(progressbar=progress and sys.stderr.isatty(), timeout=TIMEOUT)
    try:
        return Path(pooch.retrieve(url, None, fname="archive.zip", path=scratch, downloader=downloader))
    except requests.exceptions.RequestException as error:
        raise DataError(f"the download of {url} failed ({error}); check the address and try again") from error


def _unpack(archive: Path, entries: Iterable[Published], folder: Path) -> None:
    """Write the datasets of the archive that are what was published, then report the ones that are not.

    No path of the archive is ever used as a path, so a hostile member has nowhere to go.
    """
    problems = []
    try:
        bundle = zipfile.ZipFile(archive)
    except DAMAGE as error:
        raise DataError(f"the archive is damaged ({error}); download it again") from error
    with bundle:
        # The folders may lie at any depth. Of two members with one name the last counts: SHA-256 decides.
        members = {PurePosixPath(info.filename).parts[-2:]: info for info in bundle.infolist()}
        for entry in entries:
            try:
                texts = _published_texts(bundle, members, entry)
            except DataError as error:
                problems.append(str(error))
            except DAMAGE as error:
                problems.append(f"{entry.archive_name} is damaged ({error})")
            else:
                for path, text in zip(file_paths(entry, folder), texts, strict=True):
                    part = archive.parent / path.name
                    part.write_bytes(gzip.compress(text, compresslevel=6, mtime=0))
                    part.replace(path)
    if problems:
        raise DataError("the archive is not the published one: " + "; ".join(problems))


def _published_texts(bundle: zipfile.ZipFile, members: Members, entry: Published) -> tuple[bytes, bytes]:
    """Turn the four members of a dataset into our two texts, values and partitions, and verify them."""
    name = entry.archive_name

    def read(file: str, columns: int) -> bytes:
        if (name, file) not in members:
            raise DataError(f"{name} lacks the file {file}")
        limit = CELL_BYTES * entry.rows * columns
        with bundle.open(members[name, file]) as stream:
            text = stream.read(limit + 1)
        if len(text) > limit:
            raise DataError(f"{file} of {name} unpacks to more than {limit} bytes")
        return text

    values = read(f"{name}_py.dat", entry.features).decode("ascii").split()
    labels = read("labels_py.dat", 1).decode("ascii").split()
    header = ",".join([*(f"f{i}" for i in range(entry.features)), "label"])
    rows = (f"{row},{float(label):.0f}" for row, label in zip(values, labels, strict=True))
    csv_text = "\n".join([header, *rows, ""]).encode()
    folds = [parse_matrix(read(file, 4)) for file in ("folds_py.dat", "validation_folds_py.dat")]
    folds_text = write_folds(np.hstack(folds))
    check_sha256(csv_text, entry.csv_sha256, f"the values of {name}")
    check_sha256(folds_text, entry.folds_sha256, f"the partitions of {name}")
    return csv_text, folds_text
