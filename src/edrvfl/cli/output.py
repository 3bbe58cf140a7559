"""Tables that commands write: whole or not at all, and over no other file unasked."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, TypeAlias

from edrvfl.bench.files import check_writable, replacing
from edrvfl.bench.tables import NEEDS_ARROW, is_parquet

from .screen import pour

# Takes the columns of some rows: lists of texts, arrays of NumPy, or arrays of pyarrow.
Write: TypeAlias = Callable[[Sequence[Any]], None]

SCREEN = Path("-")  # stands for standard output


def check_output(path: Path, force: bool, inputs: Sequence[Path]) -> None:
    """Refuse, before the work, a file that cannot be written or that must not be."""
    if path.exists() and not (path.is_file() or path.is_dir()):  # to replace a device would do harm
        raise ValueError(f"{path}: is no file, but a pipe or a device. Write to a file.")
    check_writable(path)
    if not path.exists():
        return
    if any(source.exists() and path.samefile(source) for source in inputs):
        raise ValueError(f"{path}: is read by this command. Write to another file.")
    if not force:
        raise ValueError(f"{path}: exists already. Take another name, or --force to replace it.")


@contextmanager
def write_table(path: Path, names: Sequence[str], separator: str) -> Iterator[Write]:
    """Give a function that writes rows. The file has its name when all of them are there."""
    if path == SCREEN:
        yield _csv_writer(pour, names, separator)
        return
    with replacing(path) as part, ExitStack() as opened:
        if is_parquet(path):
            yield _parquet_writer(part, names, opened)
        else:
            file = opened.enter_context(part.open("x", encoding="utf-8", newline=""))
            yield _csv_writer(file.write, names, separator)


def _csv_writer(pour: Callable[[str], object], names: Sequence[str], separator: str) -> Write:
    def write_rows(rows: Any) -> None:
        text = io.StringIO(newline="")
        csv.writer(text, delimiter=separator, lineterminator="\n").writerows(rows)
        pour(text.getvalue())

    write_rows([names])
    # as Python writes floats: with all the digits that tell them apart
    return lambda columns: write_rows(
        zip(*(c if isinstance(c, list) else c.tolist() for c in columns), strict=True)
    )


def _parquet_writer(path: Path, names: Sequence[str], opened: ExitStack) -> Write:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        raise ValueError(NEEDS_ARROW) from error
    writers: list[Any] = []

    def write(columns: Sequence[Any]) -> None:
        arrays = [c if isinstance(c, pyarrow.Array) else pyarrow.array(c) for c in columns]
        table = pyarrow.table(arrays, names=list(names))
        if not writers:  # the types are those of the first rows: a column of a table has one type
            writers.append(opened.enter_context(parquet.ParquetWriter(path, table.schema)))
        writers[0].write_table(table)

    return write
