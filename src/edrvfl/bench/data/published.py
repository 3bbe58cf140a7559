"""Read the published files of a dataset from a folder, and verify them by SHA-256."""

from __future__ import annotations

import gzip
import hashlib
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from .catalogue import Published
from .records import N_SPLITS, DataError, Dataset, make_dataset

FOLDS = tuple(f"{part}{i}" for part in ("test", "val") for i in range(N_SPLITS))  # columns of a folds file


def file_paths(entry: Published, folder: Path) -> tuple[Path, Path]:
    """Return the paths of the values and of the partitions."""
    return folder / f"{entry.archive_name}.csv.gz", folder / f"{entry.archive_name}.folds.csv.gz"


def is_present(entry: Published, folder: Path) -> bool:
    """Say whether both files are in the folder; their content is not looked at."""
    return all(path.is_file() for path in file_paths(entry, folder))


def is_intact(entry: Published, folder: Path) -> bool:
    """Say whether both files are in the folder and hold what was published."""
    try:
        read_verified(entry, folder)
    except DataError:
        return False
    return True


def read_published(entry: Published, folder: Path) -> Dataset:
    """Read a dataset whose values and partitions are the published ones."""
    text, masks = read_verified(entry, folder)
    table = parse_matrix(text, skip=1)
    return make_dataset(entry.name, table[:, :-1], table[:, -1], masks, tuple(map(str, range(entry.classes))))


def read_verified(entry: Published, folder: Path) -> tuple[bytes, np.ndarray]:
    """Return the text of the values and the eight columns of the partitions, or raise a DataError."""
    values_path, folds_path = file_paths(entry, folder)
    values, folds = _gunzip(values_path), _gunzip(folds_path)
    check_sha256(values, entry.csv_sha256, f"{values_path}: the values of {entry.name}")
    header = folds.partition(b"\n")[0].decode("ascii", "replace").strip().split(",")
    try:
        masks = parse_matrix(folds, [header.index(key) for key in FOLDS], skip=1)
        text = write_folds(masks)
    except ValueError as error:
        raise DataError(f"{folds_path}: expected 0/1 columns {', '.join(FOLDS)} ({error})") from error
    check_sha256(text, entry.folds_sha256, f"{folds_path}: the partitions of {entry.name}")
    return values, masks


def check_sha256(text: bytes, expected: str, what: str) -> None:
    """Raise a DataError unless the text has the expected SHA-256."""
    found = hashlib.sha256(text).hexdigest()
    if found != expected:
        raise DataError(
            f"{what} must have SHA-256 {expected}, got {found}; replace the file with the published one"
        )


def parse_matrix(text: bytes, columns: Sequence[int] | None = None, skip: int = 0) -> np.ndarray:
    """Parse lines of comma-separated numbers; ValueError if the text is anything else."""
    lines = text.decode("ascii").split()[skip:]
    if not lines:
        raise ValueError("there are no rows")
    return np.loadtxt(lines, delimiter=",", usecols=columns, ndmin=2, comments=None)


def write_folds(masks: np.ndarray) -> bytes:
    """Write the text whose SHA-256 identifies the partitions: a header, then eight 0/1 for every row."""
    if not np.isin(masks, (0, 1)).all():
        raise ValueError("there are other values than 0 and 1")
    # Every row has the same width, so the text is a matrix of bytes: digits at even places, commas between.
    cells = np.full((len(masks), 2 * len(FOLDS)), ord(","), dtype=np.uint8)
    cells[:, ::2] = masks + ord("0")
    cells[:, -1] = ord("\n")
    return ",".join(FOLDS).encode() + b"\n" + cells.tobytes()


def _gunzip(path: Path) -> bytes:
    try:
        return gzip.decompress(path.read_bytes())
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{path} cannot be read ({error}); replace the file") from error
