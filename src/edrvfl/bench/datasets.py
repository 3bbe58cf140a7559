"""The datasets of the study: by name, from a folder, the cache or the archive; or a user's own table."""

from __future__ import annotations

import csv
import difflib
import gzip
import hashlib
import http.client
import io
import json
import math
import os
import re
import stat
import struct
import sys
import time
import urllib.error
import urllib.request
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import Any

import numpy as np
from sklearn import datasets as shipped
from sklearn.model_selection import train_test_split

ARCHIVE_URL = "http://www.bioinf.jku.at/people/klambauer/data_py.zip"
ARCHIVE_LIMIT = 512 * 2**20  # bytes of the archive
UNPACKED_LIMIT = 2 * 2**30  # bytes it may declare to unpack to; what we read of it is bounded by its shape
CHUNK = 2**18
# What zipfile and the parsers of numbers raise on damaged input; OSError: it seeks before the file's start.
ZIP_ERRORS = (zipfile.BadZipFile, zlib.error, struct.error, EOFError, OSError, ValueError, RuntimeError)

FOLDS = tuple(f"{part}{i}" for part in ("test", "val") for i in range(4))  # columns of a partition file
SPLIT_SEED = 0  # of the partitions we draw ourselves; a dataset's checksum depends on it
MISSING = frozenset({"", "?", "na", "n/a", "nan", "null", "none"})


class DataError(ValueError):
    """Data that are absent, damaged, or not what they should be."""


@dataclass(frozen=True, slots=True, eq=False)
class Split:
    """Masks over the rows: fit, choose on validation, refit on train (both of them), score on test."""

    fit: np.ndarray
    validation: np.ndarray
    test: np.ndarray

    @property
    def train(self) -> np.ndarray:
        return self.fit | self.validation


@dataclass(frozen=True, slots=True, eq=False)
class Dataset:
    """Inputs (m, d), codes 0..k-1 and four splits; `checksum` identifies the values and partitions."""

    name: str
    X: np.ndarray
    y: np.ndarray
    splits: tuple[Split, ...]
    checksum: str
    classes: tuple[str, ...]  # what the codes stand for


@dataclass(frozen=True, slots=True)
class Published:
    """What is known of a dataset of the paper: its name in the archive, its shape, its two SHA-256."""

    name: str
    archive_name: str
    rows: int
    features: int
    classes: int
    csv_sha256: str
    folds_sha256: str


@dataclass(frozen=True, slots=True)
class Description:
    """A row of the table of datasets; `source` is empty and `state` tells why where there is none."""

    name: str
    group: str
    rows: int
    features: int
    classes: int
    source: str
    state: str


def read_checksums(text: str) -> Mapping[str, Published]:
    """The table of published datasets, by the paper's names in the paper's order, from its CSV text."""
    entries = [
        Published(
            name=row["name"],
            archive_name=row["archive_name"],
            rows=int(row["rows"]),
            features=int(row["features"]),
            classes=int(row["classes"]),
            csv_sha256=row["csv_sha256"],
            folds_sha256=row["folds_sha256"],
        )
        for row in csv.DictReader(io.StringIO(text))
    ]
    return MappingProxyType({entry.name: entry for entry in entries})


UCI24 = read_checksums(files(__package__).joinpath("checksums.csv").read_text(encoding="utf-8"))

DEMO: Mapping[str, Any] = MappingProxyType(
    {
        "iris": shipped.load_iris,
        "wine": shipped.load_wine,
        "breast_cancer": shipped.load_breast_cancer,
        "digits": shipped.load_digits,
    }
)

GROUPS: Mapping[str, tuple[str, ...]] = MappingProxyType({"uci24": tuple(UCI24), "demo": tuple(DEMO)})


def dataset_names(names_or_groups: Sequence[str]) -> tuple[str, ...]:
    """Names in the order asked for, each once: groups expanded, the archive's names made the paper's.

    Examples
    --------
    >>> dataset_names(["demo", "cardiotocography-3clases", "iris"])
    ('iris', 'wine', 'breast_cancer', 'digits', 'cardio-3')
    """
    if isinstance(names_or_groups, str):
        raise TypeError(f"expected a list of names, got the text {names_or_groups!r}: put it in a list")
    meaning: dict[str, tuple[str, ...]] = {entry.archive_name: (entry.name,) for entry in UCI24.values()}
    meaning |= {name: (name,) for group in GROUPS.values() for name in group} | dict(GROUPS)
    found: dict[str, None] = {}
    for name in names_or_groups:
        if name not in meaning:
            groups = "; ".join(f"{group} ({', '.join(members)})" for group, members in GROUPS.items())
            raise ValueError(f"no dataset {name!r}{_nearest(name, meaning)} Groups and datasets: {groups}")
        found |= dict.fromkeys(meaning[name])
    return tuple(found)


def _nearest(word: str, words: Iterable[str]) -> str:
    """The end of a sentence about an unknown word."""
    near = difflib.get_close_matches(word, list(words), n=1, cutoff=0.5)
    return f"; did you mean {near[0]!r}?" if near else "."


def load_dataset(
    name: str,
    folder: str | Path | None = None,
    *,
    cache: str | Path | None = None,
    url: str = ARCHIVE_URL,
    progress: bool = True,
) -> Dataset:
    """A dataset of the study by its name.

    Parameters
    ----------
    name : str
        A name of `GROUPS`. The demo group comes with scikit-learn and needs no download.

    folder : path, optional
        Where to look first for NAME.csv.gz and NAME.folds.csv.gz; by default the environment variable
        EDRVFL_DATA. What is not there is taken from the cache, and what is not there is downloaded.

    cache : path, optional
        By default the user's cache folder.

    url : str
        The archive that holds the paper's datasets.

    progress : bool
        Whether a download shows a progress bar.

    Returns
    -------
    Dataset
        With checked values and partitions; its arrays are read-only.

    Examples
    --------
    >>> iris = load_dataset("iris")
    >>> iris.X.shape, [int(split.test.sum()) for split in iris.splits]
    ((150, 4), [38, 38, 38, 38])
    """
    names = dataset_names([name])
    if len(names) > 1:
        raise ValueError(f"{name!r} is a group; load its datasets one by one: {', '.join(names)}")
    name = names[0]
    if name in DEMO:
        bunch = DEMO[name]()
        return _with_drawn_splits(name, bunch.data, bunch.target, tuple(map(str, bunch.target_names)))
    place = cache_folder() if cache is None else Path(cache)
    return _load_published(UCI24[name], _named_folder(folder), place, url, progress)


def describe_datasets(
    folder: str | Path | None = None, *, cache: str | Path | None = None, verify: bool = False
) -> list[Description]:
    """Every dataset with its shape and where it was found; `verify` reads them and checks their sums."""
    named, place = _named_folder(folder), cache_folder() if cache is None else Path(cache)
    rows = []
    for entry in UCI24.values():
        source, state = next((str(p) for p in (named, place) if p and _present(entry, p)), ""), "found"
        if not source:
            state = "missing"
        elif verify:
            try:
                _read_published(entry, Path(source))
                state = "verified"
            except DataError as error:
                state = f"damaged: {error}"
        rows.append(
            Description(entry.name, "uci24", entry.rows, entry.features, entry.classes, source, state)
        )
    for name in DEMO:
        data = load_dataset(name)
        m, d = data.X.shape
        rows.append(Description(name, "demo", m, d, len(data.classes), "scikit-learn", "found"))
    return rows


# Identity and partitions


def _dataset(name: str, X: Any, y: Any, masks: Any, classes: tuple[str, ...]) -> Dataset:
    """The record, from inputs, codes and the eight 0/1 columns test0..val3."""
    X, y = np.ascontiguousarray(X, dtype=np.float64), np.ascontiguousarray(y, dtype=np.int64)
    test, validation = np.split(np.asarray(masks, dtype=bool).T.copy(), 2)
    splits = tuple(Split(~(t | v), v, t) for t, v in zip(test, validation, strict=True))
    digest = hashlib.sha256(repr(X.shape).encode())
    for part in (X.astype("<f8", copy=False), y.astype("<i8", copy=False), test, validation):
        digest.update(part.tobytes())
    for array in (X, y, *(mask for s in splits for mask in (s.fit, s.validation, s.test))):
        array.flags.writeable = False  # the cells of a study share them
    return Dataset(name, X, y, splits, digest.hexdigest(), classes)


def _with_drawn_splits(name: str, X: Any, y: Any, classes: tuple[str, ...]) -> Dataset:
    """Four stratified draws of a quarter for test, and of a fifth of the other rows for validation."""
    masks = np.zeros((len(y), 8), dtype=bool)
    for i in range(4):
        seed = SPLIT_SEED + i
        train, test = train_test_split(np.arange(len(y)), test_size=0.25, stratify=y, random_state=seed)
        _, held = train_test_split(train, test_size=0.2, stratify=y[train], random_state=seed)
        masks[test, i] = masks[held, 4 + i] = True
    return _dataset(name, X, y, masks, classes)


# A table of one's own


def csv_dataset(path: str | Path, target: str) -> Dataset:
    """A user's table: comma-separated, with a header, numeric columns, and the classes in `target`.

    The dataset is named after the file. Its partitions are drawn as those of the demo group are.
    """
    path = Path(path)
    name = path.name.removesuffix(".gz").removesuffix(".csv")
    if name in (*UCI24, *DEMO, *GROUPS):
        raise DataError(f"{path}: {name!r} already names a dataset of the study; rename the file")
    header, rows = _read_table(path)
    if target not in header:
        raise DataError(
            f"{path}: no column {target!r}{_nearest(target, header)} Columns: {', '.join(header)}"
        )
    columns = dict(zip(header, zip(*rows, strict=True), strict=True))
    gaps = _first_cells(columns, lambda cell: cell.strip().lower() in MISSING)
    if gaps:
        raise DataError(f"{path}: missing values in {gaps}; fill them in or drop those rows or columns")
    labels = [label.strip() for label in columns.pop(target)]
    if not columns:
        raise DataError(f"{path}: {target!r} is the only column; add at least one numeric column")
    others = _first_cells(columns, lambda cell: not _is_number(cell))
    if others:
        raise DataError(f"{path}: columns must hold finite numbers, not so {others}; encode or drop them")
    classes = _ordered_classes(path, target, labels)
    code = {label: i for i, label in enumerate(classes)}
    X = np.array([[float(cell) for cell in column] for column in columns.values()]).T
    return _with_drawn_splits(name, X, np.array([code[label] for label in labels]), classes)


def _read_table(path: Path) -> tuple[list[str], list[list[str]]]:
    """Header and rows of a CSV file: a rectangle, every column with a name of its own."""
    try:
        raw = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        text = io.StringIO(raw.decode("utf-8-sig"), newline="")
        lines = [line for line in csv.reader(text) if line]
    except (OSError, EOFError, zlib.error, UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{path}: cannot be read as comma-separated text in UTF-8 ({error})") from error
    if len(lines) < 2:
        raise DataError(f"{path}: expected a header and rows below it, got {len(lines)} line(s)")
    header, rows = [key.strip() for key in lines[0]], lines[1:]
    if "" in header:
        at = header.index("") + 1
        raise DataError(f"{path}: column {at} has no name; name it, or drop it if it is an index")
    twice = [key for key, count in Counter(header).items() if count > 1]
    if twice:
        raise DataError(f"{path}: column names must differ, these do not: {', '.join(twice)}; rename them")
    for i, row in enumerate(rows, 1):
        if len(row) != len(header):
            raise DataError(f"{path}: row {i} has {len(row)} values, the header {len(header)}; mend that row")
    return header, rows


def _first_cells(columns: Mapping[str, Sequence[str]], wrong: Any) -> str:
    """The columns with a wrong cell and the first such cell of each, as text; empty if none."""
    firsts = {key: next((i for i, cell in enumerate(c) if wrong(cell)), None) for key, c in columns.items()}
    listed = (f"{key!r} (row {i + 1}: {columns[key][i]!r})" for key, i in firsts.items() if i is not None)
    return ", ".join(listed)


def _is_number(cell: str) -> bool:
    try:
        return "_" not in cell and math.isfinite(float(cell))  # float reads 1_000
    except ValueError:
        return False


def _ordered_classes(path: Path, target: str, labels: list[str]) -> tuple[str, ...]:
    """The distinct labels, numbers by value and words by letter, if each has rows enough to be split."""
    counts = Counter(labels)
    smallest = min(counts, key=lambda label: counts[label])
    if len(counts) < 2:
        raise DataError(f"{path}: {target!r} must have two or more classes, got only {smallest!r}")
    # From these numbers on a stratified 75/25 and then 80/20 leave every class in the fit part.
    if counts[smallest] < 3 or len(labels) < 7 * len(counts):
        raise DataError(
            f"{path}: stratified partitions need 3 rows of every class and 7 on average; {target!r} has "
            f"{len(counts)} classes in {len(labels)} rows, {counts[smallest]} of them of {smallest!r}; "
            "merge or drop small classes, and check that this column holds classes"
        )
    return tuple(sorted(counts, key=float if all(map(_is_number, counts)) else str))


# The 24 of the paper, on disk


def cache_folder() -> Path:
    """Where downloaded datasets are kept: edrvfl in the user's cache folder."""
    if sys.platform == "win32" and os.environ.get("LOCALAPPDATA"):
        return Path(os.environ["LOCALAPPDATA"]) / "edrvfl"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "edrvfl"


def _named_folder(folder: str | Path | None) -> Path | None:
    """The folder of the argument, or else of EDRVFL_DATA; it must exist if it is named."""
    given, by = (os.environ.get("EDRVFL_DATA"), "EDRVFL_DATA") if folder is None else (folder, "folder")
    if not given:
        return None
    if not Path(given).is_dir():
        raise DataError(f"{by} must name a folder with NAME.csv.gz and NAME.folds.csv.gz, got '{given}'")
    return Path(given)


def _load_published(entry: Published, named: Path | None, cache: Path, url: str, progress: bool) -> Dataset:
    """From the named folder, which must be right; or from the cache, which is mended by a download."""
    if named and _present(entry, named):
        return _read_published(entry, named)
    try:
        return _read_published(entry, cache)
    except DataError:
        pass
    failure = None
    try:
        fetch(url, cache, UCI24, progress=progress)
    except DataError as error:
        failure = error  # of this dataset or of another
    try:
        return _read_published(entry, cache)
    except DataError as error:
        raise DataError(
            f"{entry.name} is not at hand and could not be fetched: {failure or error}. Set EDRVFL_DATA "
            f"to a folder with {' and '.join(path.name for path in _paths(entry, cache))}, or run "
            "`edrvfl bench data` where there is a network"
        ) from failure


def _paths(entry: Published, place: Path) -> tuple[Path, Path]:
    return place / f"{entry.archive_name}.csv.gz", place / f"{entry.archive_name}.folds.csv.gz"


def _present(entry: Published, place: Path) -> bool:
    return all(path.is_file() for path in _paths(entry, place))


def _read_published(entry: Published, place: Path) -> Dataset:
    """A dataset from its two files, if its values and partitions are the published ones."""
    values_path, folds_path = _paths(entry, place)
    values, folds = _gunzip(values_path), _gunzip(folds_path)
    _check_sha256(values, entry.csv_sha256, f"{values_path}: the values of {entry.name}")
    names = folds.partition(b"\n")[0].decode("ascii", "replace").strip().split(",")
    try:
        masks = _matrix(folds, [names.index(key) for key in FOLDS], skip=1)
        text = _folds_text(masks)
    except ValueError as error:
        raise DataError(f"{folds_path}: expected 0/1 columns {', '.join(FOLDS)} ({error})") from error
    _check_sha256(text, entry.folds_sha256, f"{folds_path}: the partitions of {entry.name}")
    table = _matrix(values, None, skip=1)
    return _dataset(entry.name, table[:, :-1], table[:, -1], masks, tuple(map(str, range(entry.classes))))


def _gunzip(path: Path) -> bytes:
    try:
        return gzip.decompress(path.read_bytes())
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{path} cannot be read ({error}); replace it") from error


def _check_sha256(text: bytes, expected: str, what: str) -> None:
    found = hashlib.sha256(text).hexdigest()
    if found != expected:
        raise DataError(f"{what} must have SHA-256 {expected}, got {found}; replace them by the published")


def _matrix(text: bytes, columns: Sequence[int] | None = None, skip: int = 0) -> np.ndarray:
    """Comma-separated numbers as a matrix; ValueError if they are anything else."""
    lines = text.decode("ascii").split()[skip:]
    if not lines:
        raise ValueError("no rows")
    return np.loadtxt(lines, delimiter=",", usecols=columns, ndmin=2, comments=None)


def _folds_text(masks: np.ndarray) -> bytes:
    """The text whose SHA-256 identifies the partitions: test0..val3, and eight 0/1 for every row."""
    if not np.isin(masks, (0, 1)).all():
        raise ValueError("other values than 0 and 1")
    cells = np.full((len(masks), 2 * len(FOLDS)), ord(","), dtype=np.uint8)
    cells[:, ::2] = masks + ord("0")
    cells[:, -1] = ord("\n")
    return ",".join(FOLDS).encode() + b"\n" + cells.tobytes()


# The 24 of the paper, from the archive


def fetch_datasets(url: str = ARCHIVE_URL, cache: str | Path | None = None, progress: bool = True) -> Path:
    """Download what the cache lacks of the paper's datasets; returns the cache's folder."""
    place = cache_folder() if cache is None else Path(cache)
    fetch(url, place, UCI24, progress=progress)
    return place


def fetch(
    url: str,
    place: Path,
    table: Mapping[str, Published],
    *,
    progress: bool = False,
    limit: int = ARCHIVE_LIMIT,
    attempts: int = 5,
    pause: float = 1.0,
) -> None:
    """Bring the datasets of `table` into the folder `place`; those that are whole there stay."""
    try:
        place.mkdir(parents=True, exist_ok=True)
        with _locked(place / "fetch.lock"):
            lacking = [entry for entry in table.values() if not _intact(entry, place)]
            archive = place / "archive.zip"
            if lacking and not archive.is_file():
                download(url, archive, progress=progress, limit=limit, attempts=attempts, pause=pause)
            if lacking:
                try:
                    unpack(archive, place, lacking)
                except DataError:
                    archive.unlink()  # another copy may be better; this one never will
                    raise
                archive.unlink()
    except OSError as error:
        raise DataError(
            f"cannot keep datasets in {place} ({error}); make room there or name another cache folder"
        ) from error


def _intact(entry: Published, place: Path) -> bool:
    try:
        _read_published(entry, place)
    except DataError:
        return False
    return True


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """One process at a time; the system releases the lock when its holder ends, however it ends."""
    with path.open("a") as handle:
        if sys.platform == "win32":
            import msvcrt

            while True:
                try:
                    msvcrt.locking(handle.fileno(), msvcrt.LK_LOCK, 1)
                    break
                except OSError:  # it gives up after ten seconds
                    continue
        else:
            import fcntl

            fcntl.flock(handle, fcntl.LOCK_EX)
        yield


class _BrokenOffError(Exception):
    """A transfer that ended early; what came is kept and the next attempt goes on from there."""


def download(
    url: str, target: Path, *, progress: bool, limit: int, attempts: int = 5, pause: float = 1.0
) -> None:
    """A file by HTTP, resumed where an earlier attempt or an earlier process left off."""
    if not url.startswith(("http://", "https://")):
        raise DataError(f"the archive's address must begin with http:// or https://, got {url!r}")
    part, note = target.with_name(target.name + ".part"), target.with_name(target.name + ".json")
    for attempt in range(attempts):
        try:
            _transfer(url, part, note, limit, progress)
            break
        except _BrokenOffError as error:
            if attempt + 1 == attempts:
                raise DataError(
                    f"the download of {url} broke off {attempts} times ({error}); what came is kept, "
                    "run it again to go on from there"
                ) from error
            time.sleep(pause * 2**attempt)
    part.replace(target)
    note.unlink(missing_ok=True)


def _transfer(url: str, part: Path, note: Path, limit: int, progress: bool) -> None:
    """One request: append to `part` what it lacks, or start over where the server cannot go on."""
    known = _read_note(note, url) if part.is_file() else {}
    have = part.stat().st_size if known else 0
    request = urllib.request.Request(url, headers={"User-Agent": "edrvfl", "Accept-Encoding": "identity"})
    if have:
        request.add_header("Range", f"bytes={have}-")
        if known["validator"]:
            request.add_header("If-Range", known["validator"])
    try:
        response = urllib.request.urlopen(request, timeout=60)
    except urllib.error.HTTPError as error:
        with error:
            if error.code == 416 and have:
                if error.headers.get("Content-Range", "").strip() == f"bytes */{have}":
                    return  # it was all there
                part.unlink()
                raise _BrokenOffError("the server's file has changed") from error
            if error.code in (408, 429) or error.code >= 500:
                raise _BrokenOffError(f"the server answered {error.code} {error.reason}") from error
            raise DataError(f"{url} answered {error.code} {error.reason}; check the address") from error
    except urllib.error.URLError as error:
        raise DataError(f"{url} cannot be reached ({error.reason})") from error
    except (OSError, http.client.HTTPException) as error:
        raise _BrokenOffError(repr(error)) from error
    with response:
        start, total = 0, response.length  # the length may be unknown
        if response.status == 206:
            found = re.fullmatch(r"bytes (\d+)-\d+/(\d+)", response.headers.get("Content-Range", "").strip())
            start, total = (int(found[1]), int(found[2])) if found else (-1, None)
            if start != have or total != (known.get("total") or total):
                part.unlink(missing_ok=True)
                raise _BrokenOffError("the server sent another part than was asked for")
        if total is not None and total > limit:
            part.unlink(missing_ok=True)
            raise DataError(f"{url} has {total} bytes, the limit is {limit}; check the address")
        note.write_text(json.dumps({"url": url, "validator": _validator(response.headers), "total": total}))
        have = _append(response, part, start, total, limit, progress)
    if have > limit or (total is not None and have > total):
        part.unlink()
        raise DataError(f"{url} sent more than {min(limit, total or limit)} bytes; check the address")
    if total is not None and have < total:
        raise _BrokenOffError(f"{have} of {total} bytes came")


def _append(response: Any, part: Path, start: int, total: int | None, limit: int, progress: bool) -> int:
    """Write the body after byte `start`; the size reached, at most one chunk above the limit."""
    have = start
    with part.open("ab" if start else "wb") as file, _bar(total, start, progress) as advance:
        while have <= limit:
            try:
                chunk = response.read(CHUNK)
            except (OSError, http.client.HTTPException) as error:
                raise _BrokenOffError(repr(error)) from error
            if not chunk:
                break
            file.write(chunk)
            have += len(chunk)
            advance(len(chunk))
    return have


def _read_note(note: Path, url: str) -> dict[str, Any]:
    """What the last attempt noted of the server's file; empty where it was another file."""
    try:
        known = json.loads(note.read_text())
        return {key: known[key] for key in ("validator", "total")} if known["url"] == url else {}
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def _validator(headers: Mapping[str, str]) -> str | None:
    """What If-Range may compare: a strong ETag, or else the date."""
    etag = headers.get("ETag")
    return etag if etag and not etag.startswith("W/") else headers.get("Last-Modified")


@contextmanager
def _bar(total: int | None, start: int, progress: bool) -> Iterator[Any]:
    """A function to tell of bytes that came; it draws a bar if that is wanted and tqdm is there."""
    try:
        from tqdm import tqdm
    except ImportError:
        yield lambda _: None
        return
    with tqdm(
        desc="datasets",
        total=total,
        initial=start,
        unit="B",
        unit_scale=True,
        disable=None if progress else True,
    ) as bar:
        yield bar.update


def unpack(archive: Path, place: Path, entries: Iterable[Published]) -> None:
    """Read the members of these datasets, and write those that are what was published in our own form.

    No path of the archive is ever used as a path. A wrong dataset is not written; the others are.
    """
    problems = []
    with ExitStack() as stack:
        with _zip_errors("the archive"):
            bundle = stack.enter_context(zipfile.ZipFile(archive))
        members = _checked_members(bundle)
        for entry in entries:
            try:
                with _zip_errors(f"{entry.archive_name} in the archive"):
                    texts = _published_texts(bundle, members, entry)
            except DataError as error:
                problems.append(str(error))
                continue
            for path, text in zip(_paths(entry, place), texts, strict=True):
                _replace(path, gzip.compress(text, compresslevel=6, mtime=0))
    if problems:
        raise DataError("the archive is not the published one: " + "; ".join(problems))


@contextmanager
def _zip_errors(what: str) -> Iterator[None]:
    """Turn what damaged input raises into a DataError."""
    try:
        yield
    except DataError:
        raise
    except ZIP_ERRORS as error:
        raise DataError(f"{what} is damaged ({error}); fetch it again") from error


def _checked_members(bundle: zipfile.ZipFile) -> dict[PurePosixPath, zipfile.ZipInfo]:
    """The members by path, if none of them is of the kind that only a hostile archive holds."""
    members: dict[PurePosixPath, zipfile.ZipInfo] = {}
    for info in bundle.infolist():
        name = info.orig_filename
        parts = re.split(r"[/\\]", name)
        kind = stat.S_IFMT(info.external_attr >> 16)
        path = PurePosixPath(info.filename)
        wrong = {
            "has an absolute path": parts[0] == "" or re.match("[A-Za-z]:", name),
            "leads out of its folder": ".." in parts,
            "has a name with a NUL": "\0" in name,
            "is a link or device": kind not in (0, stat.S_IFREG, stat.S_IFDIR),
            "is encrypted": info.flag_bits & 1,
            "is there twice": path in members,
        }
        for what, holds in wrong.items():
            if holds:
                raise DataError(f"the archive is refused: its member {name!r} {what}")
        members[path] = info
    declared = sum(info.file_size for info in members.values())
    if declared > UNPACKED_LIMIT:
        raise DataError(f"the archive is refused: it unpacks to {declared} bytes, limit {UNPACKED_LIMIT}")
    return members


def _published_texts(
    bundle: zipfile.ZipFile, members: Mapping[PurePosixPath, zipfile.ZipInfo], entry: Published
) -> tuple[bytes, bytes]:
    """Values and partitions of a dataset as our two CSV texts, from the four files of the archive."""
    name = entry.archive_name
    homes = [path.parent for path in members if path.parts[-2:] == (name, f"{name}_py.dat")]
    if len(homes) != 1:
        raise DataError(f"{name}: expected one folder of that name with {name}_py.dat, got {len(homes)}")

    def read(file: str, columns: int) -> bytes:
        info = members.get(homes[0] / file)
        if info is None:
            raise DataError(f"{name}: {file} is absent")
        return _read_member(bundle, info, limit=32 * entry.rows * columns)  # no number is that long

    values = read(f"{name}_py.dat", entry.features).decode("ascii").split()
    labels = read("labels_py.dat", 1).decode("ascii").split()
    if not len(values) == len(labels) == entry.rows:
        raise DataError(f"{name}: expected {entry.rows} rows, got {len(values)} and {len(labels)} labels")
    header = ",".join([*(f"f{i}" for i in range(entry.features)), "label"])
    rows = (f"{row},{float(label):.0f}" for row, label in zip(values, labels, strict=True))
    csv_text = "\n".join([header, *rows, ""]).encode()
    folds = [_matrix(read(file, 4)) for file in ("folds_py.dat", "validation_folds_py.dat")]
    if any(fold.shape != (entry.rows, 4) for fold in folds):
        raise DataError(f"{name}: expected partitions of shape {(entry.rows, 4)}, got {folds[0].shape}")
    folds_text = _folds_text(np.hstack(folds))
    _check_sha256(csv_text, entry.csv_sha256, f"the values of {name}")
    _check_sha256(folds_text, entry.folds_sha256, f"the partitions of {name}")
    return csv_text, folds_text


def _read_member(bundle: zipfile.ZipFile, info: zipfile.ZipInfo, limit: int) -> bytes:
    """A member's bytes, bounded by what it declares and by what arrives."""
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise DataError(f"{info.filename} is packed in another way than by deflate")
    if info.file_size > limit:
        raise DataError(f"{info.filename} declares {info.file_size} bytes, at most {limit} are possible")
    with bundle.open(info) as stream:
        text = stream.read(limit + 1)
    if len(text) != info.file_size:
        raise DataError(f"{info.filename} declares {info.file_size} bytes and holds {len(text)}")
    return text


def _replace(path: Path, content: bytes) -> None:
    """Write a file whole or not at all."""
    temporary = path.with_name(path.name + ".tmp")
    try:
        temporary.write_bytes(content)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
