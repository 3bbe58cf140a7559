"""Tables in files, read in blocks of rows: CSV by Python's own reader, Parquet by pyarrow."""

from __future__ import annotations

import csv
import difflib
import gzip
import io
import itertools
import operator
import re
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, TypeAlias

BLOCK_ROWS, BLOCK_CELLS = 10_000, 1_000_000  # a block has no more of either
PARQUET = (".parquet", ".pq")
PANDAS_INDEX = re.compile(r"__index_level_\d+__")  # row labels that pandas writes beside the columns
NEEDS_ARROW = "Parquet files need pyarrow: pip install 'edrvfl[cli,arrow]', or save the table as CSV."

Column: TypeAlias = Any  # the texts of a CSV file's cells in a list, or a Series of a Parquet file


@dataclass(frozen=True, slots=True)
class Block:
    """Some rows of a table."""

    start: int  # how many rows come before
    columns: dict[str, Column]
    done: float  # how much of the file is read, from 0 to 1


@dataclass(frozen=True, slots=True)
class CsvFile:
    """Comma-separated text with a header, in UTF-8, maybe packed by gzip."""

    path: Path
    separator: str
    names: list[str]

    def blocks(self, wanted: Sequence[str]) -> Iterator[Block]:
        """Read the wanted columns, block by block."""
        places = [self.names.index(name) for name in wanted]
        size, most, start = self.path.stat().st_size, block_rows(len(self.names)), 0
        with self.path.open("rb") as raw, _lines_of(self.path, raw, self.separator) as lines:
            rows = filter(None, lines)  # an empty line is no row
            next(rows)
            while kept := list(itertools.islice(rows, most)):
                self._check_lengths(kept, start)
                cells = [list(map(operator.itemgetter(j), kept)) for j in places]
                yield Block(start, dict(zip(wanted, cells, strict=True)), raw.tell() / size)
                start += len(kept)

    def _check_lengths(self, rows: list[list[str]], start: int) -> None:
        """Refuse a row that has more or fewer cells than the header."""
        d = len(self.names)
        if set(map(len, rows)) != {d}:
            i = next(i for i, row in enumerate(rows) if len(row) != d)
            raise ValueError(
                f"{self.path}: {self.where(start + i)} has {_cells(len(rows[i]))}, but the header has "
                f"{_cells(d)}. Put quotation marks around cells that hold a {self.separator!r}."
            )

    def where(self, row: int) -> str:
        """Say where a row is, counted from 0: which row, and on which line of the file it begins."""
        at, begin = -1, 1  # the header is the row before the first
        with self.path.open("rb") as raw, _lines_of(self.path, raw, self.separator) as lines:
            for cells in lines:
                if cells and at == row:
                    break
                at, begin = at + bool(cells), lines.line_num + 1
        return f"row {row + 1} (line {begin})"


@dataclass(frozen=True, slots=True)
class ParquetFile:
    """A Parquet file, whose columns have types."""

    path: Path
    names: list[str]

    def blocks(self, wanted: Sequence[str]) -> Iterator[Block]:
        """Read the wanted columns, block by block."""
        with _opened_parquet(self.path) as file:
            start, size = 0, file.metadata.num_rows
            most = block_rows(len(wanted))
            for batch in file.iter_batches(most, columns=list(wanted), use_threads=False):
                frame = batch.to_pandas(ignore_metadata=True)  # or pandas would hide an index
                start += len(frame)
                yield Block(start - len(frame), {name: frame[name] for name in wanted}, start / size)

    def where(self, row: int) -> str:
        """Say where a row is, counted from 0."""
        return f"row {row + 1}"


Table: TypeAlias = CsvFile | ParquetFile


def block_rows(n_columns: int) -> int:
    """Return how many rows of so many columns are held at once."""
    return max(1, min(BLOCK_ROWS, BLOCK_CELLS // max(1, n_columns)))


def open_table(path: Path, separator: str) -> Table:
    """Return a table whose columns have different names and that has rows."""
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise ValueError(f"{path}: is no file, but a pipe or a device. Save the table to a file first.")
    if is_parquet(path):
        with _opened_parquet(path) as file:
            names = [name for name in file.schema_arrow.names if not PANDAS_INDEX.fullmatch(name)]
            n_rows = file.metadata.num_rows
        if not n_rows:
            raise ValueError(f"{path}: there are no rows.")
        table: Table = ParquetFile(path, names)
    else:
        table = _open_csv(path, separator)
    if repeated := [name for name, count in Counter(table.names).items() if name and count > 1]:
        raise ValueError(
            f"{path}: columns must have different names, but these come twice: {names_of(repeated)}."
        )
    return table


def is_parquet(path: Path) -> bool:
    """Tell whether the ending of a name is that of Parquet files."""
    return path.suffix.lower() in PARQUET


def need_column(table: Table, name: str, option: str) -> str:
    """Return the name of a column that an option asks for, if the table has it."""
    if name not in table.names or not name:
        raise ValueError(f"{table.path}: there is no column {name!r} ({option}). {said(name, table.names)}")
    return name


def said(name: str, names: Sequence[str]) -> str:
    """Say which columns there are, and which one may have been meant."""
    lowered = {name.lower(): name for name in names}
    near = difflib.get_close_matches(name.lower(), lowered, n=1)
    hint = f"Did you mean {lowered[near[0]]!r}? " if near else ""
    return f"{hint}Its columns are {names_of(names)}."


def column_names(table: Table, given: Sequence[str] | None, option: str) -> list[str]:
    """Return the columns that an option names: repeated, or separated by commas."""
    found = []
    for text in given or ():
        found += [text] if text in table.names else [part.strip() for part in text.split(",") if part.strip()]
    return [need_column(table, name, option) for name in found]


def names_of(names: Sequence[str], most: int = 20) -> str:
    """List names, each in quotation marks, and count the rest of many."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(repr(name) for name in names[:most]) + more


# --- CSV ---------------------------------------------------------------------------------------------


def _open_csv(path: Path, separator: str) -> CsvFile:
    with path.open("rb") as raw, _lines_of(path, raw, separator) as lines:
        rows = filter(None, lines)
        header = next(rows, None)
        if header is None:
            raise ValueError(f"{path}: it is empty. Expected a header and rows below it.")
        other = next((mark for mark in ";\t," if mark != separator and mark in header[0]), None)
        if len(header) == 1 and other is not None:
            raise ValueError(
                f"{path}: its header has one column, {header[0]!r}. If cells are separated by {other!r}, say "
                f"so: --separator {'tab' if other == chr(9) else repr(other)}"
            )
        if next(rows, None) is None:
            raise ValueError(f"{path}: there is a header, but there are no rows below it.")
    return CsvFile(path, separator, header)


@contextmanager
def _lines_of(path: Path, raw: IO[bytes], separator: str) -> Iterator[Any]:
    """Give a reader of lists of cells, and make errors name the file and the line."""
    text = io.TextIOWrapper(_unpacked(path, raw), encoding="utf-8-sig", newline="")
    reader = csv.reader(text, delimiter=separator, strict=True)
    try:
        yield reader
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{path}: line {_undecodable_line(path)} holds characters that are not UTF-8. Save the file as "
            "UTF-8; Excel calls it 'CSV UTF-8'."
        ) from error
    except csv.Error as error:
        raise ValueError(
            f"{path}: line {reader.line_num} cannot be read as CSV ({error}). Look there and above for a "
            "quotation mark that is missing, or one too many."
        ) from error
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise ValueError(f"{path}: it is not a whole gzip file ({error}).") from error


def _unpacked(path: Path, raw: IO[bytes]) -> Any:
    """Return the bytes of a file's text: gzip is known by how it begins, and so is an Excel workbook."""
    begin = raw.read(4)
    raw.seek(0)
    if begin == b"PK\x03\x04":
        raise ValueError(
            f"{path}: it is an Excel workbook or another packed file. Save it as CSV; Excel calls it "
            "'CSV UTF-8'."
        )
    return gzip.GzipFile(fileobj=raw) if begin.startswith(b"\x1f\x8b") else raw


def _undecodable_line(path: Path) -> int:
    """Return the first line that is not UTF-8. The text is decoded in large pieces, so it is looked for."""
    with path.open("rb") as raw:
        lines = _unpacked(path, raw)
        return 1 + sum(1 for _ in itertools.takewhile(_is_utf8, lines))


def _is_utf8(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True


def _cells(count: int) -> str:
    return "1 cell" if count == 1 else f"{count} cells"


# --- Parquet -----------------------------------------------------------------------------------------


@contextmanager
def _opened_parquet(path: Path) -> Iterator[Any]:
    """Open a Parquet file, and make pyarrow's errors name it."""
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        raise ValueError(NEEDS_ARROW) from error
    try:
        with path.open("rb") as raw, parquet.ParquetFile(raw, pre_buffer=False) as file:
            yield file
    except pyarrow.ArrowException as error:
        raise ValueError(f"{path}: it cannot be read as Parquet ({error}).") from error
