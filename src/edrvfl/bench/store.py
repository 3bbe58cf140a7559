"""The study's memory: one SQLite file that any number of processes share and that any of them may leave at
any moment. Values of units, leases on units in work, and records; export to JSON lines and back.
"""

from __future__ import annotations

import json
import os
import platform
import sqlite3
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .protocol import RunRecord, expected_units, key_of, same_results

STORE_VERSION = 1  # PRAGMA user_version; raise it when the tables change
APPLICATION_ID = 0x6564_5256  # "edRV": tells our files from other programs' databases
EXPORT_FORMAT = 1
LEASE_SECONDS = 60.0  # a lease not renewed is free after this; one of a dead process on this host, at once
BUSY_SECONDS = 60.0  # how long a write waits for other processes

_TABLES = """
CREATE TABLE cells (key TEXT PRIMARY KEY, description TEXT NOT NULL);
CREATE TABLE results (  -- a unit's value, written once; id tells the order of writing
  id INTEGER PRIMARY KEY, cell TEXT NOT NULL, unit TEXT NOT NULL, value TEXT NOT NULL, UNIQUE (cell, unit));
CREATE TABLE leases (  -- a unit's worker; the row outlives the work so that attempts are counted
  cell TEXT NOT NULL, unit TEXT NOT NULL, attempts INTEGER NOT NULL, owner TEXT, host TEXT, pid INTEGER,
  born TEXT, taken REAL NOT NULL, expires REAL NOT NULL, PRIMARY KEY (cell, unit)) WITHOUT ROWID;
CREATE INDEX leases_of_owners ON leases (owner) WHERE owner IS NOT NULL;
CREATE TABLE records (cell TEXT PRIMARY KEY, status TEXT NOT NULL, record TEXT NOT NULL);
"""

_KEPT = "What was stored before is intact"
_LEFT = "It was left as it is"
_ELSE = "choose another --store"
# SQLite's primary result code -> what it means here and what to do.
_TROUBLE: Mapping[int, str] = {
    sqlite3.SQLITE_FULL: f"the disk is full. {_KEPT}; free some space and run again",
    sqlite3.SQLITE_IOERR: "the disk cannot be written or read: full, over a quota or a limit, or failing. "
    f"{_KEPT}; make room or {_ELSE}, and run again",
    sqlite3.SQLITE_READONLY: f"the file or its folder is read-only. {_LEFT}; make both writable or {_ELSE}",
    sqlite3.SQLITE_CANTOPEN: f"the file cannot be opened. Make it and its folder writable or {_ELSE}",
    sqlite3.SQLITE_PERM: f"access is denied. Make the file and its folder writable or {_ELSE}",
    sqlite3.SQLITE_CORRUPT: f"the store is damaged, cut short or overwritten. {_LEFT}: restore a copy, "
    "import an export into a new store, or salvage it with the sqlite3 shell's .recover",
    sqlite3.SQLITE_NOTADB: f"not a study store: not a SQLite file, or overwritten. {_LEFT}; {_ELSE}",
    sqlite3.SQLITE_BUSY: f"other processes keep the store locked for {BUSY_SECONDS:.0f} s or more. {_KEPT}; "
    "look for a process that hangs, and run again",
}


class StoreError(RuntimeError):
    """A store that cannot be used; the message says why, what is safe and what to do."""


@dataclass(frozen=True, slots=True)
class Worker:
    """Who holds a lease: enough to know, on the same host, whether that process still lives."""

    owner: str
    host: str
    pid: int
    born: str | None  # the process's start, where the system tells; process numbers are used again

    @classmethod
    def here(cls) -> Worker:
        """A new owner in this process."""
        return cls(uuid.uuid4().hex, platform.node(), os.getpid(), _born(os.getpid()))


@dataclass(frozen=True, slots=True)
class Held:
    """A unit in work, since when and by whom."""

    cell: str
    unit: str
    pid: int
    taken: float
    live: bool  # False: its process is dead or silent, and the unit free


@dataclass(frozen=True, slots=True)
class CellState:
    """How far a cell is. `units` is the most it can need; `seconds` what its units took so far."""

    key: str
    method: str
    dataset: str
    trials: int
    seeds: int
    status: str  # "ok", "failed", "started" or "waiting"
    done: int
    units: int
    seconds: float
    message: str | None

    @property
    def finished(self) -> bool:
        return self.status in ("ok", "failed")


@dataclass(slots=True)
class ImportReport:
    """What an import brought: how many were new and how many known, and which contradict what is here."""

    new_records: int = 0
    known_records: int = 0
    new_units: int = 0
    known_units: int = 0
    conflicts: list[str] = field(default_factory=list)


class Store:
    """One file. Every write is one transaction; a process killed at any moment leaves a whole store."""

    def __init__(self, path: str | Path, *, create: bool = True) -> None:
        self.path = Path(path)
        if self.path.is_dir():
            raise StoreError(f"{self.path}: this is a folder; a store is a file in one.")
        if not self.path.parent.is_dir():
            raise StoreError(f"{self.path}: its folder does not exist; create it or choose another --store.")
        if not create and not self.path.exists():
            raise StoreError(f"{self.path}: no such store; `edrvfl bench run --store FILE` makes one.")
        with self._explained():
            self._db = sqlite3.connect(self._address(), timeout=BUSY_SECONDS, isolation_level=None, uri=True)
            try:
                self._prepare()
            except BaseException:
                self._db.close()
                raise

    def _address(self) -> str:
        """A finished store can be read where nothing can be written, which WAL needs to be told."""
        at_rest = not self.path.with_name(self.path.name + "-wal").exists()
        effective = os.access in os.supports_effective_ids
        writable = os.access(self.path.parent, os.W_OK, effective_ids=effective)
        immutable = self.path.exists() and at_rest and not writable
        return self.path.absolute().as_uri() + ("?immutable=1" if immutable else "")

    def _prepare(self) -> None:
        if not self._known_version():
            self._use_wal()
            with self._writing():
                if not self._known_version():  # or another process was quicker
                    for statement in _TABLES.split(";\n"):
                        self._db.execute(statement)
                    self._db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                    self._db.execute(f"PRAGMA user_version = {STORE_VERSION}")
        self._db.execute("PRAGMA synchronous = NORMAL")  # with WAL: whole after any kill or power cut
        problem = self._db.execute("PRAGMA quick_check(1)").fetchone()[0]
        if problem != "ok":
            raise StoreError(f"{self.path}: {_TROUBLE[sqlite3.SQLITE_CORRUPT]}. ({problem})")

    def _known_version(self) -> bool:
        """Whether the tables are there; False for a new file, an error for a file that is not ours."""
        version, application, tables = self._db.execute(  # in one statement: others may be creating it
            "SELECT (SELECT user_version FROM pragma_user_version), "
            "(SELECT application_id FROM pragma_application_id), (SELECT count(*) FROM sqlite_master)"
        ).fetchone()
        if not tables and not version:
            return False
        if application != APPLICATION_ID:
            raise StoreError(f"{self.path}: a SQLite file of another program; choose another --store.")
        if version > STORE_VERSION:
            raise StoreError(
                f"{self.path}: a newer edrvfl wrote this store (version {version}, this one reads up to "
                f"{STORE_VERSION}). It was left as it is; upgrade edrvfl or choose another --store."
            )
        return True

    def _use_wal(self) -> None:
        """Readers and a writer at once. The switch itself does not wait for others, so we do."""
        deadline = time.monotonic() + BUSY_SECONDS
        while True:
            try:
                self._db.execute("PRAGMA journal_mode = WAL")
                return
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                    raise
                time.sleep(0.05)

    def close(self) -> None:
        self._db.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    # --- cells and units -----------------------------------------------------------------------------

    def add_cells(self, descriptions: Mapping[str, Mapping[str, Any]]) -> None:
        """Note cells, key -> description, as work to do; known ones stay as they are."""
        with self._writing():
            self._add_cells(descriptions)

    def _add_cells(self, descriptions: Mapping[str, Mapping[str, Any]]) -> None:
        rows = [(key, json.dumps(description)) for key, description in descriptions.items()]
        self._db.executemany("INSERT OR IGNORE INTO cells VALUES (?, ?)", rows)

    def values(self, cell: str, after: int = 0) -> tuple[dict[str, Any], int]:
        """Values of a cell's finished units, of those written after the mark `after`; and the new mark."""
        query = "SELECT id, unit, value FROM results WHERE cell = ? AND id > ? ORDER BY id"
        rows = self._read(query, cell, after)
        return {unit: json.loads(value) for _, unit, value in rows}, rows[-1][0] if rows else after

    def take(self, cell: str, units: Sequence[str], worker: Worker) -> str | None:
        """Lease the first of the units that is neither done nor in the hands of another."""
        with self._writing():
            now = time.time()
            done = {unit for (unit,) in self._db.execute("SELECT unit FROM results WHERE cell = ?", (cell,))}
            query = "SELECT unit, host, pid, born, expires FROM leases WHERE cell = ? AND owner IS NOT NULL"
            held = {
                unit
                for unit, host, pid, born, expires in self._db.execute(query, (cell,))
                if _is_live(host, pid, born, expires)
            }
            unit = next((unit for unit in units if unit not in done and unit not in held), None)
            if unit is not None:
                self._db.execute(
                    "INSERT INTO leases VALUES (?, ?, 1, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET "
                    "attempts = attempts + 1, owner = excluded.owner, host = excluded.host, "
                    "pid = excluded.pid, born = excluded.born, taken = excluded.taken, "
                    "expires = excluded.expires",
                    (cell, unit, *_fields(worker), now, now + LEASE_SECONDS),
                )
            return unit

    def finish(self, cell: str, unit: str, value: Mapping[str, Any]) -> None:
        """Store a unit's value and end its lease. The first value stays: all are equal."""
        with self._writing():
            self._add_result(cell, unit, value)
            self._db.execute("UPDATE leases SET owner = NULL WHERE cell = ? AND unit = ?", (cell, unit))

    def _add_result(self, cell: str, unit: str, value: Mapping[str, Any]) -> None:
        row = (cell, unit, json.dumps(value, allow_nan=False))
        self._db.execute("INSERT OR IGNORE INTO results (cell, unit, value) VALUES (?, ?, ?)", row)

    def renew(self, worker: Worker) -> None:
        """Push the expiry of a worker's leases."""
        with self._writing():
            expires = time.time() + LEASE_SECONDS
            self._db.execute("UPDATE leases SET expires = ? WHERE owner = ?", (expires, worker.owner))

    def release(self, worker: Worker) -> None:
        """Give back what a worker holds."""
        with self._writing():
            self._db.execute("UPDATE leases SET owner = NULL WHERE owner = ?", (worker.owner,))

    def attempts(self) -> dict[tuple[str, str], int]:
        """How often each unit was begun: 1 unless a process died over it."""
        rows = self._read("SELECT cell, unit, attempts FROM leases")
        return {(cell, unit): attempts for cell, unit, attempts in rows}

    def held(self) -> list[Held]:
        """The leases that nobody has given back; those of dead processes among them."""
        query = "SELECT cell, unit, host, pid, born, taken, expires FROM leases WHERE owner IS NOT NULL"
        return [
            Held(cell, unit, pid, taken, live=_is_live(host, pid, born, expires))
            for cell, unit, host, pid, born, taken, expires in self._read(query)
        ]

    def counts(self) -> dict[str, int]:
        """How many units of each cell are done."""
        return dict(self._read("SELECT cell, count(*) FROM results GROUP BY cell"))

    def finished(self) -> set[str]:
        """Keys of the cells that have a record."""
        return {key for (key,) in self._read("SELECT cell FROM records")}

    # --- records -------------------------------------------------------------------------------------

    def add_record(self, record: RunRecord) -> None:
        """Store a cell's record; the first one stays."""
        with self._writing():
            self._add_record(record)

    def _add_record(self, record: RunRecord) -> None:
        row = (record.key, record.status, record.to_json())
        self._db.execute("INSERT OR IGNORE INTO records VALUES (?, ?, ?)", row)

    def record(self, cell: str) -> RunRecord | None:
        rows = self._read("SELECT record FROM records WHERE cell = ?", cell)
        return RunRecord.from_json(rows[0][0]) if rows else None

    def records(self) -> list[RunRecord]:
        """All records, by dataset, method and key."""
        found = [RunRecord.from_json(text) for (text,) in self._read("SELECT record FROM records")]
        return sorted(found, key=lambda r: (r.dataset, r.method, r.key))

    def retry(self) -> int:
        """Forget failures, so that the next run tries them again; how many cells had failed."""
        with self._writing():
            failed = [key for (key,) in self._db.execute("SELECT cell FROM records WHERE status = 'failed'")]
            for key in failed:
                done = self._db.execute("SELECT id, value FROM results WHERE cell = ?", (key,)).fetchall()
                errors = [(row,) for row, value in done if "error" in json.loads(value)]
                self._db.executemany("DELETE FROM results WHERE id = ?", errors)
                self._db.execute("DELETE FROM records WHERE cell = ?", (key,))
            return len(failed)

    def states(self) -> list[CellState]:
        """How far every cell is, by dataset and method."""
        cells = self._read(
            "SELECT c.key, c.description, r.record, count(u.id), "
            "  coalesce(sum(coalesce(json_extract(u.value, '$.seconds'), 0)), 0) "
            "FROM cells c LEFT JOIN records r ON r.cell = c.key LEFT JOIN results u ON u.cell = c.key "
            "GROUP BY c.key"
        )
        states = []
        for key, text, record_text, done, seconds in cells:
            description = json.loads(text)
            record = RunRecord.from_json(record_text) if record_text else None
            status = record.status if record else "started" if done else "waiting"
            units = done if record else expected_units(description)
            names = {name: description[name] for name in ("method", "dataset", "trials", "seeds")}
            message = record.message if record else None
            now = {"status": status, "done": done, "units": units, "seconds": seconds, "message": message}
            states.append(CellState(key=key, **names, **now))
        return sorted(states, key=lambda s: (s.dataset, s.method, s.key))

    # --- JSON lines ----------------------------------------------------------------------------------

    def export_lines(self) -> Iterator[str]:
        """The store as lines of JSON, always in the same order: its cells, their units, their records."""
        yield json.dumps({"kind": "store", "format": EXPORT_FORMAT})
        cells = sorted(
            (description["dataset"], description["method"], key, description)
            for key, description in ((k, json.loads(d)) for k, d in self._read("SELECT * FROM cells"))
        )
        for *_, key, description in cells:
            yield json.dumps({"kind": "cell", "key": key, "description": description})
            values, _ = self.values(key)
            for unit in sorted(values, key=_unit_order):
                yield json.dumps({"kind": "unit", "cell": key, "unit": unit, "value": values[unit]})
            for (text,) in self._read("SELECT record FROM records WHERE cell = ?", key):
                yield json.dumps({"kind": "record", "record": json.loads(text)})

    def import_lines(self, lines: Iterable[str], name: str = "import") -> ImportReport:
        """Add exported lines; all or, if a line cannot be read, none. What is here is never overwritten,
        but a success takes the place of a failure.
        """
        report = ImportReport()
        with self._writing():
            for number, line in enumerate(lines, 1):
                if not line.strip():
                    continue
                try:
                    self._import_line(json.loads(line), report)
                except (ValueError, KeyError, TypeError, AttributeError) as error:
                    raise ValueError(
                        f"{name}, line {number}: not a line of a study export ({error}). Nothing was "
                        "imported; export the study again, or mend or drop that line."
                    ) from error
        return report

    def _import_line(self, line: Mapping[str, Any], report: ImportReport) -> None:
        match line["kind"]:
            case "store":
                if line["format"] > EXPORT_FORMAT:
                    raise ValueError(f"format {line['format']} of a newer edrvfl; upgrade edrvfl")
            case "cell":
                if key_of(line["description"]) != line["key"]:
                    raise ValueError("the key is not the hash of the description")
                self._add_cells({line["key"]: line["description"]})
            case "unit":
                self._import_unit(line["cell"], line["unit"], line["value"], report)
            case "record":
                self._import_record(RunRecord.from_json(json.dumps(line["record"])), report)
            case other:
                raise ValueError(f"unknown kind {other!r}")

    def _import_unit(self, cell: str, unit: str, value: Mapping[str, Any], report: ImportReport) -> None:
        query = "SELECT value FROM results WHERE cell = ? AND unit = ?"
        here = [json.loads(text) for (text,) in self._db.execute(query, (cell, unit))]
        if not here:
            report.new_units += 1
        elif "error" in here[0] and "error" not in value:
            report.new_units += 1
            self._db.execute("DELETE FROM results WHERE cell = ? AND unit = ?", (cell, unit))
        else:
            report.known_units += 1
            if not same_results(here[0], value) and "error" not in value:
                report.conflicts.append(f"unit {unit} of cell {cell[:12]}")
        self._add_result(cell, unit, value)

    def _import_record(self, record: RunRecord, report: ImportReport) -> None:
        query = "SELECT record FROM records WHERE cell = ?"
        here = [RunRecord.from_json(text) for (text,) in self._db.execute(query, (record.key,))]
        if not here:
            report.new_records += 1
        elif here[0].status == "failed" and record.status == "ok":
            report.new_records += 1
            self._db.execute("DELETE FROM records WHERE cell = ?", (record.key,))
        else:
            report.known_records += 1
            if record.status == "ok" and not same_results(here[0].results(), record.results()):
                what = f"record of {record.method} on {record.dataset} (cell {record.key[:12]})"
                report.conflicts.append(what)
        self._add_record(record)

    # --- SQLite --------------------------------------------------------------------------------------

    def _read(self, query: str, *values: Any) -> list[Any]:
        with self._explained():
            return self._db.execute(query, values).fetchall()

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """One transaction, which waits for those of other processes and is undone by any error."""
        with self._explained():
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._db.execute("COMMIT")
            except BaseException:
                if self._db.in_transaction:  # SQLite undoes it by itself when the disk is full
                    self._db.execute("ROLLBACK")
                raise

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """SQLite's errors in words."""
        try:
            yield
        except sqlite3.Error as error:
            code = getattr(error, "sqlite_errorcode", None)
            if code is None or code & 0xFF not in _TROUBLE:
                raise
            raise StoreError(f"{self.path}: {_TROUBLE[code & 0xFF]}. (SQLite: {error})") from error


def _fields(worker: Worker) -> tuple[str, str, int, str | None]:
    return worker.owner, worker.host, worker.pid, worker.born


def _unit_order(unit: str) -> tuple[bool, list[int]]:
    stage, *numbers = unit.split("/")
    return stage != "search", [int(n) for n in numbers]


def _born(pid: int) -> str | None:
    """When a process started, in the kernel's count; None where the system does not tell or it has ended."""
    try:
        state, *fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if state in "ZX" else fields[18]


def _is_live(host: str, pid: int, born: str | None, expires: float) -> bool:
    """Whether a lease holds: not expired and, if this host can know, of a process that has not ended."""
    if expires <= time.time():
        return False
    if host != platform.node() or os.name != "posix":
        return True
    try:
        os.kill(pid, 0)  # sends nothing
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return born is None or _born(pid) == born
