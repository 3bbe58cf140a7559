"""Users' tables in files, read in blocks of rows: CSV by Python's own reader, Parquet by pyarrow."""

from __future__ import annotations

import atexit
import csv
import gzip
import itertools
import operator
import re
import shutil
import sys
import tempfile
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, TypeAlias

from .names import did_you_mean, plural, quoted

BLOCK_ROWS, BLOCK_CELLS = 10_000, 1_000_000  # a block has no more of either
LONGEST_LINE = 2**25  # bytes; a packed file may hold a line that no memory can
LONGEST_CELL = 2**17  # characters
PARQUET = (".parquet", ".pq")
PANDAS_INDEX = re.compile(r"__index_level_\d+__")  # row labels that pandas writes beside the columns
NEEDS_ARROW = "Parquet files need pyarrow: pip install 'edrvfl[cli,arrow]', or save the table as CSV."
AS_UTF8 = "as UTF-8; Excel calls it 'CSV UTF-8'."

Column: TypeAlias = Any  # the texts of a CSV file's cells in a list, or a Series of a Parquet file


@dataclass(frozen=True, slots=True)
class Block:
    """Some rows of a table."""

    start: int  # how many rows come before
    columns: dict[str, Column]
    kept: list[Any]  # columns that nobody looks at: lists of texts, or arrays of pyarrow
    done: float  # how much of the file is read, from 0 to 1


@dataclass(frozen=True, slots=True)
class Source:
    """Where the bytes of a table are, and what messages call it."""

    path: Path
    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class CsvFile:
    """Comma-separated text with a header, in UTF-8, maybe packed by gzip."""

    source: Source
    separator: str
    names: list[str]

    def blocks(self, wanted: Sequence[str], kept: Sequence[str] = ()) -> Iterator[Block]:
        """Read the wanted columns, block by block, and some that are passed on as they stand."""
        place = {name: j for j, name in enumerate(self.names)}
        size, most, start = self.source.path.stat().st_size, block_rows(len(self.names)), 0
        with _rows_of(self.source, self.separator) as (raw, lines):
            rows = filter(None, lines)  # an empty line is no row
            next(rows)
            while some := list(itertools.islice(rows, most)):
                self._check_lengths(some, start)
                cells = {name: list(map(operator.itemgetter(place[name]), some)) for name in (*wanted, *kept)}
                columns = {name: cells[name] for name in wanted}
                yield Block(start, columns, [cells[name] for name in kept], raw.tell() / size)
                start += len(some)

    def _check_lengths(self, rows: list[list[str]], start: int) -> None:
        """Refuse a row that has more or fewer cells than the header."""
        d = len(self.names)
        if set(map(len, rows)) != {d}:
            i = next(i for i, row in enumerate(rows) if len(row) != d)
            raise ValueError(
                f"{self.source}: {self.where(start + i)} has {plural(len(rows[i]), 'cell')}, but the header "
                f"has {plural(d, 'cell')}. Put quotation marks around cells that hold a {self.separator!r}."
            )

    def where(self, row: int) -> str:
        """Say where a row is, counted from 0: which row, and on which line of the file it begins."""
        at, begin = -1, 1  # the header is the row before the first
        with _rows_of(self.source, self.separator) as (_, lines):
            for cells in lines:
                if cells and at == row:
                    break
                at, begin = at + bool(cells), lines.line_num + 1
        return f"row {row + 1} (line {begin})"


@dataclass(frozen=True, slots=True)
class ParquetFile:
    """A Parquet file, whose columns have types."""

    source: Source
    names: list[str]

    def blocks(self, wanted: Sequence[str], kept: Sequence[str] = ()) -> Iterator[Block]:
        """Read the wanted columns, block by block, and some that are passed on as they stand."""
        columns = list(dict.fromkeys([*wanted, *kept]))
        with _opened_parquet(self.source) as file:
            self._check_types(file.schema_arrow, wanted)
            start, size = 0, file.metadata.num_rows
            for batch in file.iter_batches(block_rows(len(columns)), columns=columns, use_threads=False):
                # without the metadata, or pandas would hide an index
                frame = batch.select(list(wanted)).to_pandas(ignore_metadata=True)
                start += len(frame)
                cells = {name: frame[name] for name in wanted}
                yield Block(start - len(frame), cells, [batch[name] for name in kept], start / size)
            if start != size:
                raise ValueError(f"{self.source}: it is damaged: {start} of {plural(size, 'row')} are there.")

    def _check_types(self, schema: Any, names: Sequence[str]) -> None:
        """Refuse columns whose cells are neither numbers nor texts nor times."""
        from pyarrow import types

        for name in names:
            kind = schema.field(name).type
            kind = kind.value_type if types.is_dictionary(kind) else kind
            if types.is_nested(kind) or "binary" in str(kind):
                raise ValueError(
                    f"{self.source}: column {name!r} holds lists, records or bytes ({kind}). Turn it into "
                    "numbers or text, or leave it out."
                )

    def empty(self, names: Sequence[str]) -> Any:
        """Return some columns as a frame without rows, which tells their types."""
        with _opened_parquet(self.source) as file:
            return file.schema_arrow.empty_table().select(list(names)).to_pandas(ignore_metadata=True)

    def where(self, row: int) -> str:
        """Say where a row is, counted from 0."""
        return f"row {row + 1}"


Table: TypeAlias = CsvFile | ParquetFile


def block_rows(n_columns: int) -> int:
    """Return how many rows of so many columns are held at once."""
    return max(1, min(BLOCK_ROWS, BLOCK_CELLS // max(1, n_columns)))


def open_table(path: Path, separator: str) -> Table:
    """Return a table whose columns have different names and that has rows; `-` is standard input."""
    source = _find(path)
    with source.path.open("rb") as raw:
        parquet = is_parquet(path) or raw.read(4) == b"PAR1"
    table = _open_parquet(source) if parquet else _open_csv(source, separator)
    check_names(table)
    return table


def _find(path: Path) -> Source:
    """Return where a table is; standard input is copied, because tables are read more than once."""
    if str(path) == "-":
        with tempfile.NamedTemporaryFile(delete=False) as copy:
            atexit.register(Path(copy.name).unlink, missing_ok=True)
            shutil.copyfileobj(sys.stdin.buffer, copy)
        return Source(Path(copy.name), "standard input")
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise ValueError(
            f"{path}: is no file, but a pipe or a device. Save the table to a file first, or take - for "
            "standard input."
        )
    return Source(path, str(path))


def is_parquet(path: Path) -> bool:
    """Tell whether the ending of a name is that of Parquet files."""
    return path.suffix.lower() in PARQUET


def check_names(table: Table) -> None:
    """Refuse a table in which two columns have the same name."""
    if repeated := [name for name, count in Counter(table.names).items() if name and count > 1]:
        raise ValueError(
            f"{table.source}: columns must have different names, but these come twice: {quoted(repeated)}."
        )


def need_column(table: Table, name: str, option: str) -> str:
    """Return the name of a column that an option asks for, if the table has it."""
    if name not in table.names or not name:
        raise ValueError(f"{table.source}: there is no column {name!r} ({option}).{said(name, table.names)}")
    return name


def said(name: str, names: Sequence[str]) -> str:
    """Say which columns there are, and which one may have been meant."""
    return f"{did_you_mean(name, names)} Its columns are {quoted(names)}."


def column_names(table: Table, given: Sequence[str] | None, option: str) -> list[str]:
    """Return the columns that an option names, each once: repeated, or separated by commas."""
    found = []
    for text in given or ():
        found += [text] if text in table.names else [part.strip() for part in text.split(",") if part.strip()]
    return list(dict.fromkeys(need_column(table, name, option) for name in found))


# --- CSV ---------------------------------------------------------------------------------------------


def _open_csv(source: Source, separator: str) -> CsvFile:
    with _rows_of(source, separator) as (_, lines):
        rows = filter(None, lines)
        header = next(rows, None)
        if header is None:
            raise ValueError(f"{source}: it is empty. Expected a header and rows below it.")
        other = next((mark for mark in ";\t," if mark != separator and mark in header[0]), None)
        if len(header) == 1 and other is not None:
            raise ValueError(
                f"{source}: its header has one column, {header[0]!r}. If cells are separated by {other!r}, "
                f"say so: --separator {'tab' if other == chr(9) else repr(other)}"
            )
        if next(rows, None) is None:
            raise ValueError(f"{source}: there is a header, but there are no rows below it.")
    return CsvFile(source, separator, header)


@contextmanager
def _rows_of(source: Source, separator: str) -> Iterator[tuple[IO[bytes], Any]]:
    """Give the open file and a reader of lists of cells, and make errors name the file and the line."""
    with source.path.open("rb") as raw:
        reader = csv.reader(_lines_of(source, raw), delimiter=separator, strict=True)
        before = csv.field_size_limit(LONGEST_CELL)  # others in the process may have set another
        try:
            yield raw, reader
        except csv.Error as error:
            long = f"has a cell of more than {LONGEST_CELL} characters. Shorten it, or look"
            what = long if "field limit" in str(error) else f"cannot be read as CSV ({error}). Look"
            raise ValueError(
                f"{source}: line {reader.line_num} {what} there and above for a quotation mark that is "
                "missing, or one too many."
            ) from error
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise ValueError(f"{source}: it is not a whole gzip file ({error}).") from error
        finally:
            csv.field_size_limit(before)


def _lines_of(source: Source, raw: IO[bytes]) -> Iterator[str]:
    """Read lines as text. A line that is too long is refused before it is held."""
    file, number = _unpacked(source, raw), 0
    while piece := file.readline(LONGEST_LINE):
        if len(piece) == LONGEST_LINE and not piece.endswith(b"\n"):
            raise ValueError(
                f"{source}: line {number + 1} is longer than {LONGEST_LINE} bytes. Is it a table in CSV?"
            )
        for line in piece.splitlines(keepends=True):  # some programs end lines by \r alone
            number += 1
            try:
                yield line.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError as error:
                raise ValueError(
                    f"{source}: line {number} holds characters that are not UTF-8. Save the file {AS_UTF8}"
                ) from error


def _unpacked(source: Source, raw: IO[bytes]) -> Any:
    """Return the bytes of a file's text: gzip is known by how it begins, and so is an Excel workbook."""
    begin = raw.read(4)
    raw.seek(0)
    if begin == b"PK\x03\x04":
        raise ValueError(
            f"{source}: it is an Excel workbook or another packed file. Save it as CSV, {AS_UTF8}"
        )
    return gzip.GzipFile(fileobj=raw) if begin.startswith(b"\x1f\x8b") else raw


# --- Parquet -----------------------------------------------------------------------------------------


def _open_parquet(source: Source) -> ParquetFile:
    with _opened_parquet(source) as file:
        if not file.metadata.num_rows:
            raise ValueError(f"{source}: there are no rows.")
        names = [name for name in file.schema_arrow.names if not PANDAS_INDEX.fullmatch(name)]
    return ParquetFile(source, names)


@contextmanager
def _opened_parquet(source: Source) -> Iterator[Any]:
    """Open a Parquet file, and make pyarrow's errors name it."""
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        raise ValueError(NEEDS_ARROW) from error
    with source.path.open("rb") as raw:
        try:
            with parquet.ParquetFile(raw, pre_buffer=False) as file:
                yield file
        except (pyarrow.ArrowException, OSError) as error:
            what = " ".join(str(error).split())
            raise ValueError(f"{source}: it cannot be read as Parquet ({what}).") from error
