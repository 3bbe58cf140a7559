"""Files that commands write: whole or not at all, and over no other file unasked."""

from __future__ import annotations

import contextlib
import csv
import os
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

from .tables import NEEDS_ARROW, is_parquet

Write: TypeAlias = Callable[[Sequence[Any]], None]  # takes the columns of some rows, as arrays


def check_output(path: Path, force: bool, inputs: Sequence[Path]) -> None:
    """Refuse, before the work, a file that cannot be written or that must not be."""
    if path.is_dir() or not path.parent.is_dir():
        what = "it is a folder" if path.is_dir() else f"there is no folder {str(path.parent)!r}"
        raise ValueError(f"{path}: cannot be written, {what}.")
    if not os.access(path.parent, os.W_OK):
        raise ValueError(f"{path}: cannot be written, the folder {str(path.parent)!r} is read-only.")
    if not path.exists():
        return
    if not path.is_file():  # to put a file in the place of a device would do harm
        raise ValueError(f"{path}: is no file, but a pipe or a device. Write to a file.")
    if any(source.exists() and path.samefile(source) for source in inputs):
        raise ValueError(f"{path}: is read by this command. Write to another file.")
    if not force:
        raise ValueError(f"{path}: exists already. Take another name, or --force to replace it.")


@contextmanager
def write_table(path: Path, names: Sequence[str], separator: str) -> Iterator[Write]:
    """Give a function that writes rows. The file has its name when all of them are there."""
    beside = path.with_name(f".{path.name}.{uuid.uuid4().hex}.part")
    try:
        with (_write_parquet if is_parquet(path) else _write_csv)(beside, names, separator) as write:
            yield write
        beside.replace(path)
    except OSError as error:
        if error.filename in (None, str(beside)):  # nobody asked for the file beside
            raise OSError(error.errno, error.strerror or str(error), str(path)) from error
        raise
    finally:
        with contextlib.suppress(OSError):
            beside.unlink()


@contextmanager
def _write_csv(path: Path, names: Sequence[str], separator: str) -> Iterator[Write]:
    with path.open("x", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, delimiter=separator, lineterminator="\n")
        writer.writerow(names)
        # as Python writes floats: with all the digits that tell them apart
        yield lambda columns: writer.writerows(zip(*(c.tolist() for c in columns), strict=True))
        file.flush()
        os.fsync(file.fileno())


@contextmanager
def _write_parquet(path: Path, names: Sequence[str], separator: str) -> Iterator[Write]:  # noqa: ARG001
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        raise ValueError(NEEDS_ARROW) from error
    with contextlib.ExitStack() as opened:
        writers: list[Any] = []

        def write(columns: Sequence[Any]) -> None:
            table = pyarrow.table([c.tolist() for c in columns], names=list(names))
            if not writers:  # the first rows tell the types
                writers.append(opened.enter_context(parquet.ParquetWriter(path, table.schema)))
            writers[0].write_table(table)

        yield write
