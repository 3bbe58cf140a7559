"""The study as lines of JSON, to ship it, to join what several machines did, and to read it elsewhere.

Every line is an object whose entry "line" says what it holds: the format, a cell, a
unit's value, or a record.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from .cell import (
    SearchUnit,
    Unit,
    Value,
    check_description,
    check_value,
    key_of,
    unit_from_dict,
    unit_order,
    unit_to_dict,
)
from .files import replacing
from .record import RECORDS, Record, read_as, same_records, same_results
from .store import Store

EXPORT_FORMAT = 2


# --- out ---------------------------------------------------------------------------------------------


def export_lines(store: Store) -> Iterator[str]:
    """Yield the store as lines of JSON, always in the same order: each cell, its units and its record.

    Of a cell that succeeded only the searches are exported, because its record holds all other figures.
    """
    yield json.dumps({"line": "format", "format": EXPORT_FORMAT})
    kinds, descriptions = list(RECORDS), store.descriptions()

    def order(key: str) -> tuple[int, str, str, str]:
        of = descriptions[key]
        return kinds.index(of["kind"]), of["dataset"], of["method"], key

    for key in sorted(descriptions, key=order):
        yield json.dumps({"line": "cell", "key": key, "description": descriptions[key]})
        record, values = store.record(key), store.values(key)
        succeeded = record is not None and record.status == "ok"
        for unit in sorted(values, key=unit_order):
            if isinstance(unit, SearchUnit) or not succeeded:
                yield json.dumps(
                    {"line": "unit", "cell": key, "unit": unit_to_dict(unit), "value": values[unit]}
                )
        if record is not None:
            yield json.dumps({"line": "record", "kind": record.kind, "record": json.loads(record.to_json())})


def export_file(store: Store, file: str | Path) -> None:
    """Write the store into a file, packed if its name ends in .gz; a broken export replaces nothing."""
    packed = Path(file).suffix == ".gz"
    with replacing(file) as part, _open(part, "wt", packed=packed) as lines:
        lines.writelines(line + "\n" for line in export_lines(store))


# --- in ----------------------------------------------------------------------------------------------


@dataclass(slots=True)
class ImportReport:
    """What an import brought: how much was new, how much was known, and what contradicts the store."""

    new_records: int = 0
    known_records: int = 0
    new_units: int = 0
    known_units: int = 0
    conflicts: list[str] = field(default_factory=list)


_Entry = Callable[[Store, ImportReport], None]  # adds what a line holds, inside a transaction


def import_files(path: str | Path, files: Iterable[str | Path]) -> dict[str, ImportReport]:
    """Add exported files to the store at `path`, which is made if it does not exist.

    All files are read first, so if one of them cannot be read the store stays as it was, or is not made.
    """
    entries = {str(file): read_file(file) for file in files}
    for file, some in entries.items():
        if not some:
            raise ValueError(f"{file}: it holds nothing of a study. Nothing was imported.")
    with Store(path, own=True) as store:
        return {file: import_entries(store, some) for file, some in entries.items()}


def read_file(file: str | Path) -> list[_Entry]:
    """Read an export, and raise an error that names the file if it cannot be read to its end."""
    try:
        with _open(Path(file), "rt", packed=Path(file).suffix == ".gz") as lines:
            return read_lines(lines, str(file))
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise ValueError(
            f"{file}: not a whole gzip file ({error}). Nothing was imported; get the file again, or export "
            "the study again."
        ) from error
    except UnicodeDecodeError as error:
        raise ValueError(f"{file}: not a text file in UTF-8 ({error}). Nothing was imported.") from error
    except OSError as error:
        raise ValueError(
            f"{file}: cannot be read ({error.strerror or error}). Nothing was imported."
        ) from error


def read_records(file: str | Path) -> list[Record]:
    """Read the records of an export, and nothing else of it."""
    entries = [entry for entry in read_file(file) if isinstance(entry, partial)]
    return [entry.args[0] for entry in entries if entry.func is _import_record]


def read_lines(lines: Iterable[str], name: str = "import") -> list[_Entry]:
    """Read exported lines, and raise an error that names the line that cannot be read."""
    entries = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            entry = _read_entry(json.loads(line))
        except UnicodeDecodeError:
            raise
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ValueError(
                f"{name}, line {number}: not a line of a study export ({error}). Nothing was imported; "
                "export the study again, or drop that line."
            ) from error
        if entry is not None:
            entries.append(entry)
    return entries


def _read_entry(line: Any) -> _Entry | None:
    if not isinstance(line, dict):
        raise ValueError("it is no JSON object")
    match line.get("line"):
        case "format":
            if line["format"] != EXPORT_FORMAT:
                raise ValueError(f"its format is {line['format']}, this edrvfl reads format {EXPORT_FORMAT}")
            return None
        case "cell":
            if key_of(line["description"]) != line["key"]:
                raise ValueError("the key is not the hash of the description")
            return partial(_import_cell, line["key"], check_description(line["description"]))
        case "unit":
            cell, unit = read_as(str, line["cell"], "cell"), unit_from_dict(line["unit"])
            return partial(_import_unit, cell, unit, check_value(unit, line["value"]))
        case "record":
            return partial(_import_record, RECORDS[line["kind"]].from_json(json.dumps(line["record"])))
        case other:
            raise ValueError(f"a line of an unknown sort: {other!r}")


def import_entries(store: Store, entries: Iterable[_Entry]) -> ImportReport:
    """Add what `read_lines` returned, in one transaction.

    What the store holds is never overwritten, but a success takes the place of a failure.
    """
    report = ImportReport()
    with store.writing():
        for add in entries:
            add(store, report)
    return report


def _import_cell(key: str, description: Mapping[str, Any], store: Store, _: ImportReport) -> None:
    store.add_description(key, description)


def _import_unit(cell: str, unit: Unit, new: Value, store: Store, report: ImportReport) -> None:
    here, failed = store.value(cell, unit), "error" in new
    if here is None or ("error" in here and not failed):
        report.new_units += 1
        store.finish(cell, unit, new, replace=True)
    else:
        report.known_units += 1
        if not failed and not same_results(here, new):
            report.conflicts.append(f"{unit} of cell {cell[:12]}")


def _import_record(new: Record, store: Store, report: ImportReport) -> None:
    here, failed = store.record(new.key), new.status == "failed"
    if here is None or (here.status == "failed" and not failed):
        report.new_records += 1
        store.add_record(new, replace=True)
    else:
        report.known_records += 1
        if not failed and not same_records(here, new):
            report.conflicts.append(f"record of {new.method} on {new.dataset} (cell {new.key[:12]})")


def _open(path: Path, mode: str, *, packed: bool) -> Any:
    return gzip.open(path, mode, encoding="utf-8") if packed else path.open(mode, encoding="utf-8")
