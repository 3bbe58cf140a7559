"""The study's memory: one SQLite file with the cells, the values of their finished units, and their records.

One process at a time writes: a run owns the store by a lock that the operating system releases when the
process ends, however it ends. Anyone may read at any time.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from filelock import FileLock, Timeout

from .cell import Cell, Unit, Value, unit_from_dict, unit_to_dict
from .record import RECORDS, Record, RunRecord

R = TypeVar("R", bound=Record)

STORE_VERSION = 2  # PRAGMA user_version; raise it when the tables change
APPLICATION_ID = 0x6564_5256  # "edRV": tells our files from other programs' databases
BUSY_SECONDS = 60.0  # how long a write waits for other processes

_TABLES = """
CREATE TABLE cells (key TEXT PRIMARY KEY, description TEXT NOT NULL);
CREATE TABLE results (  -- a unit's value, written once; the unit is JSON of its fields
  cell TEXT NOT NULL, unit TEXT NOT NULL, value TEXT NOT NULL, PRIMARY KEY (cell, unit));
CREATE TABLE records (cell TEXT PRIMARY KEY, kind TEXT NOT NULL, status TEXT NOT NULL, record TEXT NOT NULL);
"""

_KEPT = "What was stored before is intact"
_LEFT = "It was left as it is"
_ELSE = "choose another --store"
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

    Parameters
    ----------
    path : path
        The SQLite file.

    create : bool, default=True
        Whether a file that does not exist is made.

    own : bool, default=False
        Whether to keep all other owners out until `close`. A store that somebody owns is an error at once.
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
        problem = self._db.execute("PRAGMA quick_check(1)").fetchone()[0]
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
                self.put_description(cell.key, cell.describe())

    def descriptions(self) -> dict[str, dict[str, Any]]:
        """Return what decides each cell's figures, by key."""
        rows = self._read("SELECT key, description FROM cells")
        return {key: json.loads(text) for key, text in rows}

    def values(self, cell: str) -> dict[Unit, Value]:
        """Return the values of a cell's finished units."""
        rows = self._read("SELECT unit, value FROM results WHERE cell = ? ORDER BY rowid", cell)
        return {unit_from_dict(json.loads(unit)): json.loads(value) for unit, value in rows}

    def value(self, cell: str, unit: Unit) -> Value | None:
        """Return the value of a unit, if it is finished."""
        query = "SELECT value FROM results WHERE cell = ? AND unit = ?"
        rows = self._read(query, cell, _to_text(unit))
        return json.loads(rows[0][0]) if rows else None

    def finish(self, cell: str, unit: Unit, value: Value) -> None:
        """Store the value of a unit. The first value stays."""
        self.finish_all(cell, {unit: value})

    def finish_all(self, cell: str, values: Mapping[Unit, Value]) -> None:
        """Store the values of several units, all or none."""
        with self.writing():
            for unit, value in values.items():
                self.put_value(cell, unit, value)

    def counts(self) -> dict[str, int]:
        """Return how many units of each cell are stored."""
        return dict(self._read("SELECT cell, count(*) FROM results GROUP BY cell"))

    def finished(self) -> set[str]:
        """Return the keys of the cells that have a record."""
        return {key for (key,) in self._read("SELECT cell FROM records")}

    # --- records -------------------------------------------------------------------------------------

    def add_record(self, record: Record) -> None:
        """Store a cell's record. The first one stays."""
        with self.writing():
            self.put_record(record)

    def record(self, cell: str) -> Record | None:
        """Return the record of a cell, if it has one."""
        rows = self._read("SELECT kind, record FROM records WHERE cell = ?", cell)
        return RECORDS[rows[0][0]].from_json(rows[0][1]) if rows else None

    def records(self) -> list[RunRecord]:
        """Return the records of methods on datasets, by dataset, method and key."""
        return self.records_of(RunRecord)

    def records_of(self, record_type: type[R]) -> list[R]:
        """Return all records of a type, by dataset, method and key."""
        rows = self._read("SELECT record FROM records WHERE kind = ?", record_type.kind)
        found = [record_type.from_json(text) for (text,) in rows]
        return sorted(found, key=lambda r: (r.dataset, r.method, r.key))

    def retry(self) -> int:
        """Forget failures, so that the next run tries them again; return how many cells had failed."""
        with self.writing():
            failed = [key for (key,) in self._db.execute("SELECT cell FROM records WHERE status = 'failed'")]
            for key in failed:
                error = "json_type(value, '$.error') IS NOT NULL"
                self._db.execute(f"DELETE FROM results WHERE cell = ? AND {error}", (key,))
                self._db.execute("DELETE FROM records WHERE cell = ?", (key,))
            return len(failed)

    def states(self, kind: str | None = "study") -> list[CellState]:
        """Return how far every cell of a kind is, or of all kinds, by dataset and method."""
        cells = self._read(
            "SELECT c.key, c.description, r.status, json_extract(r.record, '$.message'), count(u.cell), "
            "  coalesce(sum(coalesce(json_extract(u.value, '$.seconds'), 0)), 0) "
            "FROM cells c LEFT JOIN records r ON r.cell = c.key LEFT JOIN results u ON u.cell = c.key "
            "GROUP BY c.key"
        )
        states = []
        for key, text, recorded, message, done, seconds in cells:
            description = json.loads(text)
            names = {name: description[name] for name in ("kind", "method", "dataset", "trials", "seeds")}
            status = recorded or ("started" if done else "waiting")
            units = done if recorded else description["most_units"]
            now = {"status": status, "done": done, "units": units, "seconds": seconds, "message": message}
            states.append(CellState(key=key, **names, **now))
        chosen = [state for state in states if kind is None or state.kind == kind]
        return sorted(chosen, key=lambda s: (s.dataset, s.method, s.key))

    # --- single rows, for one transaction of many ------------------------------------------------------

    def put_description(self, key: str, description: Mapping[str, Any]) -> None:
        """Note a cell, inside `writing`."""
        self._db.execute("INSERT OR IGNORE INTO cells VALUES (?, ?)", (key, json.dumps(description)))

    def put_value(self, cell: str, unit: Unit, value: Value, *, replace: bool = False) -> None:
        """Store the value of a unit, inside `writing`."""
        row = (cell, _to_text(unit), json.dumps(value, allow_nan=False))
        self._db.execute(f"INSERT OR {'REPLACE' if replace else 'IGNORE'} INTO results VALUES (?, ?, ?)", row)

    def put_record(self, record: Record, *, replace: bool = False) -> None:
        """Store the record of a cell, inside `writing`."""
        row = (record.key, record.kind, record.status, record.to_json())
        self._db.execute(
            f"INSERT OR {'REPLACE' if replace else 'IGNORE'} INTO records VALUES (?, ?, ?, ?)", row
        )

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Make one transaction of several writes: any error undoes all of them."""
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

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Put SQLite's errors into words."""
        try:
            yield
        except sqlite3.Error as error:
            code = getattr(error, "sqlite_errorcode", None)
            if code is None or code & 0xFF not in _TROUBLE:
                raise
            raise StoreError(f"{self.path}: {_TROUBLE[code & 0xFF]}. (SQLite: {error})") from error


def _to_text(unit: Unit) -> str:
    """Write a unit as the text that identifies it in the table of results."""
    return json.dumps(unit_to_dict(unit))
