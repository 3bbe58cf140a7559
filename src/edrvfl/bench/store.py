"""The study's memory: one SQLite file with the cells, the values of their finished units, and their records.

One process at a time writes: a run owns the store by a lock that the operating system releases when the
process ends, however it ends. Anyone may read at any time. Every row has a checksum: a bit that turned on a
disk is told, and never read as another figure.
"""

from __future__ import annotations

import json
import math
import os
import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from filelock import FileLock, Timeout

from .cell import Cell, Unit, Value, unit_from_dict, unit_to_dict
from .record import RECORDS, Record, RunRecord

R = TypeVar("R", bound=Record)

STORE_VERSION = 3  # PRAGMA user_version; raise it when the tables change
APPLICATION_ID = 0x6564_5256  # "edRV": tells our files from other programs' databases
BUSY_SECONDS = 60.0  # how long a write waits for other processes

_TABLES = """
CREATE TABLE cells (key TEXT PRIMARY KEY, description TEXT NOT NULL, checksum INTEGER);
CREATE TABLE results (  -- a unit's value, written once; the unit is JSON of its fields
  cell TEXT NOT NULL, unit TEXT NOT NULL, value TEXT NOT NULL, checksum INTEGER, PRIMARY KEY (cell, unit));
CREATE TABLE records (
  cell TEXT PRIMARY KEY, kind TEXT NOT NULL, status TEXT NOT NULL, record TEXT NOT NULL, checksum INTEGER);
"""
_COLUMNS: Mapping[str, tuple[str, ...]] = {  # what a row's checksum is of, the cell's key first
    "cells": ("key", "description"),
    "results": ("cell", "unit", "value"),
    "records": ("cell", "kind", "status", "record"),
}

_KEPT = "What was stored before is intact"
_LEFT = "It was left as it is"
_ELSE = "choose another --store"
_FORGET = "`edrvfl bench retry --cell {}` forgets that cell, and the next run does it again"
# SQLite's primary result code -> what it means here and what to do.
_TROUBLE: Mapping[int, str] = {
    sqlite3.SQLITE_FULL: f"the disk is full. {_KEPT}; free some space and run again",
    sqlite3.SQLITE_IOERR: "the disk cannot be written or read: full, over a quota or limit, or failing. "
    f"{_KEPT}; make room or {_ELSE}, and run again",
    sqlite3.SQLITE_READONLY: f"the file or its folder is read-only. {_LEFT}; make both writable or {_ELSE}",
    sqlite3.SQLITE_CANTOPEN: f"the file cannot be opened. Make it and its folder writable or {_ELSE}",
    sqlite3.SQLITE_PERM: f"access is denied. Make the file and its folder writable or {_ELSE}",
    sqlite3.SQLITE_CORRUPT: f"the store is damaged, cut short or overwritten. {_LEFT}: restore a copy, "
    "import an export into a new store, or salvage it with the sqlite3 shell's .recover",
    sqlite3.SQLITE_NOTADB: f"not a study store: not a SQLite file, or overwritten. {_LEFT}; {_ELSE}",
    sqlite3.SQLITE_BUSY: f"other processes keep the store locked. {_KEPT}; look for a process that hangs, "
    "and run again",
}


class StoreError(RuntimeError):
    """A store cannot be used. The message says why, what is safe and what to do."""


@dataclass(frozen=True, slots=True)
class CellState:
    """How far a cell is."""

    key: str
    kind: str  # a kind of `record.RECORDS`
    method: str
    dataset: str
    trials: int
    seeds: int
    status: str  # "ok", "failed", "started" (some unit is done) or "waiting" (none is)
    done: int
    units: int  # the most units it can need
    seconds: float  # what its stored units took
    message: str | None

    @property
    def finished(self) -> bool:
        return self.status in ("ok", "failed")


class Store:
    """One file. Every write is one transaction, so a process killed at any moment leaves a whole store.

    `create` says whether a file that does not exist is made, `own` whether to keep all other owners out until
    `close`: then a store that somebody owns is an error at once.
    """

    def __init__(self, path: str | Path, *, create: bool = True, own: bool = False) -> None:
        self.path = Path(path)
        if self.path.is_dir():
            raise StoreError(f"{self.path}: this is a folder; a store is a file in one.")
        if not self.path.parent.is_dir():
            raise StoreError(f"{self.path}: its folder does not exist; create it or choose another --store.")
        if not create and not self.path.exists():
            raise StoreError(f"{self.path}: no such store; `edrvfl bench run --store FILE` makes one.")
        # The lock is a file beside the store, because SQLite loses its own locks if others open its file.
        self._lock = FileLock(f"{self.path}.lock")
        if own:
            self._take_lock()
        with self._closed_on_error(), self._explained():
            self._db = sqlite3.connect(self._address(), timeout=BUSY_SECONDS, isolation_level=None, uri=True)
            self._prepare()

    def _take_lock(self) -> None:
        try:
            self._lock.acquire(timeout=0)
        except Timeout as error:
            if not Path(self._lock.lock_file).exists():  # it could not be made, so nobody holds it
                raise StoreError(f"{self.path}: {_TROUBLE[sqlite3.SQLITE_CANTOPEN]}.") from error
            raise StoreError(
                f"{self.path}: another run works on this store. Wait until it ends, stop it, or choose "
                "another --store; `edrvfl bench status` and `edrvfl bench report` work meanwhile."
            ) from error
        except OSError as error:
            raise StoreError(f"{self.path}: {_TROUBLE[sqlite3.SQLITE_CANTOPEN]}. ({error})") from error

    def _address(self) -> str:
        """SQLite has to be told if a store at rest is read where nothing can be written."""
        at_rest = not self.path.with_name(self.path.name + "-wal").exists()
        effective = os.access in os.supports_effective_ids
        writable = os.access(self.path.parent, os.W_OK, effective_ids=effective)
        immutable = self.path.exists() and at_rest and not writable
        return self.path.absolute().as_uri() + ("?immutable=1" if immutable else "")

    def _prepare(self) -> None:
        if not self._has_tables():
            self._db.execute("PRAGMA journal_mode = WAL")  # lets others read while we write
            with self.writing():
                if not self._has_tables():  # a reader who finds an empty file may be quicker than its owner
                    for statement in _TABLES.split(";\n"):
                        self._db.execute(statement)
                    self._db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                    self._db.execute(f"PRAGMA user_version = {STORE_VERSION}")
        self._db.execute("PRAGMA synchronous = NORMAL")  # with WAL: whole after any kill or power cut
        problem = self._db.execute("PRAGMA integrity_check(1)").fetchone()[0]  # the indices as well
        if problem != "ok":
            raise StoreError(f"{self.path}: {_TROUBLE[sqlite3.SQLITE_CORRUPT]}. ({problem})")

    def _has_tables(self) -> bool:
        """Tell a new file (False) from a store (True); a file that is neither is an error."""
        version, application, tables = (
            self._db.execute(  # in one statement, so that the three belong together
                "SELECT (SELECT user_version FROM pragma_user_version), "
                "(SELECT application_id FROM pragma_application_id), (SELECT count(*) FROM sqlite_master)"
            ).fetchone()
        )
        if not tables and not version:
            return False
        if application != APPLICATION_ID:
            raise StoreError(f"{self.path}: a SQLite file of another program; choose another --store.")
        if version != STORE_VERSION:
            age, cure = ("A newer", "upgrade") if version > STORE_VERSION else ("An older", "use that")
            raise StoreError(
                f"{self.path}: {age} edrvfl wrote this store (version {version}, this one reads version "
                f"{STORE_VERSION}). It was left as it is; {cure} edrvfl, or choose another --store."
            )
        return True

    def close(self) -> None:
        """Close the file, and give up ownership."""
        self._db.close()
        self._lock.release()

    @contextmanager
    def _closed_on_error(self) -> Iterator[None]:
        try:
            yield
        except BaseException:
            if hasattr(self, "_db"):
                self._db.close()
            self._lock.release()
            raise

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    # --- cells and units -----------------------------------------------------------------------------

    def add_cells(self, cells: Iterable[Cell[Any]]) -> None:
        """Note cells as work to do. Cells that are known already stay as they are."""
        with self.writing():
            for cell in cells:
                self.add_description(cell.key, cell.describe())

    def add_description(self, key: str, description: Mapping[str, Any]) -> None:
        """Note a cell. One that is known already stays as it is."""
        self._put("cells", (key, json.dumps(description)))

    def descriptions(self) -> dict[str, dict[str, Any]]:
        """Return what decides each cell's figures, by key."""
        return {key: json.loads(text) for key, text in self._rows("cells")}

    def values(self, cell: str) -> dict[Unit, Value]:
        """Return the values of a cell's finished units."""
        rows = self._rows("results", "WHERE cell = ? ORDER BY rowid", cell)
        return {unit_from_dict(json.loads(unit)): json.loads(value) for _, unit, value in rows}

    def value(self, cell: str, unit: Unit) -> Value | None:
        """Return the value of a unit, if it is finished."""
        rows = self._rows("results", "WHERE cell = ? AND unit = ?", cell, _to_text(unit))
        return json.loads(rows[0][-1]) if rows else None

    def finish(self, cell: str, unit: Unit, value: Value, *, replace: bool = False) -> None:
        """Store the value of a unit. The first value stays, unless it is to be replaced."""
        self._put("results", (cell, _to_text(unit), json.dumps(value, allow_nan=False)), replace=replace)

    def counts(self) -> dict[str, int]:
        """Return how many units of each cell are stored."""
        return dict(self._read("SELECT cell, count(*) FROM results GROUP BY cell"))

    def finished(self) -> set[str]:
        """Return the keys of the cells that have a record."""
        return {key for (key,) in self._read("SELECT cell FROM records")}

    # --- records -------------------------------------------------------------------------------------

    def add_record(self, record: Record, *, replace: bool = False) -> None:
        """Store a cell's record. The first one stays, unless it is to be replaced."""
        self._put("records", (record.key, record.kind, record.status, record.to_json()), replace=replace)

    def record(self, cell: str) -> Record | None:
        """Return the record of a cell, if it has one."""
        found = [self._record(row) for row in self._rows("records", "WHERE cell = ?", cell)]
        return found[0] if found else None

    def records(self) -> list[RunRecord]:
        """Return the records of methods on datasets, by dataset, method and key."""
        return self.records_of(RunRecord)

    def records_of(self, record_type: type[R]) -> list[R]:
        """Return all records of a type, by dataset, method and key."""
        rows = self._rows("records", "WHERE kind = ?", record_type.kind)
        found = [record for row in rows if isinstance(record := self._record(row), record_type)]
        return sorted(found, key=lambda r: (r.dataset, r.method, r.key))

    def _record(self, row: Sequence[str]) -> Record:
        cell, kind, _, text = row
        try:
            return RECORDS[kind].from_json(text)
        except (KeyError, ValueError) as error:
            raise StoreError(
                f"{self.path}: the record of cell {cell[:12]} is none that edrvfl writes ({error}). "
                f"{_FORGET.format(cell[:12])}."
            ) from error

    def retry(self) -> int:
        """Forget failures, so that the next run tries them again; return how many cells had failed."""
        with self.writing():
            failed = [key for key, _, status, _ in self._rows("records") if status == "failed"]
            for key in failed:
                error = "json_type(value, '$.error') IS NOT NULL"
                self._db.execute(f"DELETE FROM results WHERE cell = ? AND {error}", (key,))
                self._db.execute("DELETE FROM records WHERE cell = ?", (key,))
            return len(failed)

    def forget(self, start: str) -> int:
        """Forget all that is stored of the cells whose keys begin so; return how many there were."""
        with self.writing():
            keys = [key for (key,) in self._db.execute("SELECT key FROM cells") if key.startswith(start)]
            keys += [key for key in self.finished().difference(keys) if key.startswith(start)]
            for table, columns in _COLUMNS.items():
                delete = f"DELETE FROM {table} WHERE {columns[0]} = ?"
                self._db.executemany(delete, [(key,) for key in keys])
            return len(keys)

    def states(self, kind: str | None = "study") -> list[CellState]:
        """Return how far every cell of a kind is, or of all kinds, by dataset and method."""
        took: dict[str, list[float]] = {}
        for key, _, value in self._rows("results"):
            took.setdefault(key, []).append(json.loads(value).get("seconds", 0.0))
        ended = {key: (status, json.loads(text)) for key, _, status, text in self._rows("records")}
        states = []
        for key, description in self.descriptions().items():
            names = {name: description[name] for name in ("kind", "method", "dataset", "trials", "seeds")}
            seconds, begun = took.get(key, []), "started" if key in took else "waiting"
            status, record = ended.get(key, (begun, {}))
            units = len(seconds) if key in ended else description["most_units"]
            now: dict[str, Any] = {"status": status, "done": len(seconds), "units": units}
            message = record.get("message")
            states.append(CellState(key=key, **names, **now, seconds=math.fsum(seconds), message=message))
        chosen = [state for state in states if kind is None or state.kind == kind]
        return sorted(chosen, key=lambda s: (s.dataset, s.method, s.key))

    def _put(self, table: str, row: tuple[str, ...], *, replace: bool = False) -> None:
        places = ", ".join("?" * (len(row) + 1))
        verb = "REPLACE" if replace else "IGNORE"
        with self.writing():
            self._db.execute(f"INSERT OR {verb} INTO {table} VALUES ({places})", (*row, _checksum(row)))

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Make one transaction of several writes: any error undoes all of them."""
        part_of_another = self._db.in_transaction
        if part_of_another:
            yield
            return
        with self._explained():
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._db.execute("COMMIT")
            except BaseException:
                if self._db.in_transaction:  # SQLite undoes it by itself when the disk is full
                    self._db.execute("ROLLBACK")
                raise

    def _read(self, query: str, *values: Any) -> list[Any]:
        with self._explained():
            return self._db.execute(query, values).fetchall()

    def _rows(self, table: str, which: str = "", *values: Any) -> list[list[str]]:
        """Read rows of a table; one whose checksum is not that of its content is an error."""
        columns = ", ".join((*_COLUMNS[table], "checksum"))
        found = []
        for *row, stored in self._read(f"SELECT {columns} FROM {table} {which}", *values):
            if stored != _checksum(row):
                cell = str(row[0])[:12]
                raise StoreError(
                    f"{self.path}: the store is damaged: a row of {table}, of cell {cell}, is not what was "
                    f"written. {_LEFT}: restore a copy, or import an export into a new store. "
                    f"{_FORGET.format(cell)}."
                )
            found.append(row)
        return found

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Put SQLite's errors into words."""
        try:
            yield
        except (sqlite3.Error, UnicodeDecodeError) as error:  # the latter of a message that quotes the file
            if isinstance(error, sqlite3.ProgrammingError):  # a fault of this file, not of the store
                raise
            # Where SQLite has no word for it, tables or texts are not as they were made.
            code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF
            trouble = _TROUBLE.get(code, _TROUBLE[sqlite3.SQLITE_CORRUPT])
            raise StoreError(f"{self.path}: {trouble}. (SQLite: {error})") from error


def _to_text(unit: Unit) -> str:
    """Write a unit as the text that identifies it in the table of results."""
    return json.dumps(unit_to_dict(unit))


def _checksum(row: Sequence[Any]) -> int:
    """Compute the CRC-32 of a row. A damaged row may hold bytes or numbers instead of texts."""
    return zlib.crc32(json.dumps(list(row), default=repr).encode())
