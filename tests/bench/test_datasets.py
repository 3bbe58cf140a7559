"""Datasets: the 24 as published, the demo group, a user's table, a download from a server that misbehaves."""

from __future__ import annotations

import contextlib
import functools
import gzip
import hashlib
import http.server
import io
import os
import pickle
import re
import threading
import warnings
import zipfile
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from sklearn import datasets as shipped

from edrvfl.bench import datasets as module
from edrvfl.bench.datasets import (
    GROUPS,
    UCI24,
    DataError,
    Published,
    csv_dataset,
    dataset_names,
    describe_datasets,
    fetch,
    fetch_datasets,
    load_dataset,
)

# Rows, features, classes and test rows of a split, as the provenance of the files states them.
STATED = """
abalone 4177 8 3 1044
adult 48842 14 2 16281
arrhythmia 452 262 13 113
bank 4521 16 2 1130
cardio-10 2126 21 10 531
cardio-3 2126 21 3 531
chess-krvkp 3196 36 2 799
congressional-voting 435 16 2 109
contrac 1473 9 3 368
glass 214 9 6 53
letter 20000 16 26 5000
molec-biol-splice 3190 60 3 797
monks-3 554 6 2 432
musk-2 6598 166 2 1649
oocytes_trisopterus_states_5b 912 32 3 228
pendigits 10992 16 10 3498
spambase 4601 57 2 1150
statlog-image 2310 18 7 577
statlog-landsat 6435 36 6 2000
statlog-shuttle 58000 9 7 14500
wall-following 5456 24 4 1364
waveform 5000 21 3 1250
waveform-noise 5000 40 3 1250
wine-quality-white 4898 11 7 1224
"""
SHAPES = {name: tuple(map(int, rest)) for name, *rest in map(str.split, STATED.strip().splitlines())}
SEPARATE = ("adult", "monks-3", "pendigits", "statlog-landsat", "statlog-shuttle")
SINGLE = tuple(name for name in SHAPES if name not in SEPARATE)
SMALL = ("glass", "monks-3", "cardio-3", "congressional-voting")


# The 24 as published


@pytest.fixture(scope="module")
def uci() -> Path:
    folder = os.environ.get("EDRVFL_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("needs the 24 published datasets: set EDRVFL_DATA to their folder")
    return Path(folder)


@functools.cache
def loaded(name, folder):
    return load_dataset(name, folder)


@functools.cache
def fold_columns(name, folder):
    """Every column of the partition file, also those that the library leaves alone."""
    path = folder / f"{UCI24[name].archive_name}.folds.csv.gz"
    header, *lines = gzip.decompress(path.read_bytes()).decode().split()
    return dict(zip(header.split(","), np.loadtxt(lines, delimiter=",", dtype=int).T, strict=True))


def masks(data, part):
    return np.array([getattr(split, part) for split in data.splits])


def test_the_group_is_table_1_in_its_order():
    assert GROUPS["uci24"] == tuple(SHAPES)
    assert {name: (e.rows, e.features, e.classes) for name, e in UCI24.items()} == {
        name: shape[:3] for name, shape in SHAPES.items()
    }


def test_checksums_are_those_of_the_index(uci):
    header, *lines = (line.split(",") for line in (uci / "INDEX.csv").read_text().split())
    index = {row["name"]: row for row in (dict(zip(header, line, strict=True)) for line in lines)}
    assert len(index) == len(UCI24)
    for entry in UCI24.values():
        row = index[entry.archive_name]
        assert (entry.csv_sha256, entry.folds_sha256) == (row["csv_sha256"], row["folds_sha256"])


@pytest.mark.parametrize("name", SHAPES)
def test_loads_from_the_environment_with_its_checksums(name, uci):
    data = load_dataset(name)
    rows, features, classes, tested = SHAPES[name]
    assert (data.name, data.X.shape, data.y.shape) == (name, (rows, features), (rows,))
    assert (data.X.dtype, data.y.dtype, data.X.flags.c_contiguous) == (np.float64, np.int64, True)
    assert np.isfinite(data.X).all()
    assert (np.ptp(data.X, axis=0) > 0).all()
    assert np.unique(data.y).tolist() == list(range(classes))
    assert data.classes == tuple(map(str, range(classes)))
    assert [int(split.test.sum()) for split in data.splits] == [tested] * 4


@pytest.mark.parametrize("name", SHAPES)
def test_splits_are_the_columns_of_the_file(name, uci):
    data, columns = loaded(name, uci), fold_columns(name, uci)
    for i, split in enumerate(data.splits):
        np.testing.assert_array_equal(split.test, columns[f"test{i}"] == 1)
        np.testing.assert_array_equal(split.validation, columns[f"val{i}"] == 1)
        np.testing.assert_array_equal(split.fit, (columns[f"test{i}"] == 0) & (columns[f"val{i}"] == 0))
        np.testing.assert_array_equal(split.train, ~split.test)
        assert not (split.validation & split.test).any()  # validation lies inside the training rows


@pytest.mark.parametrize("name", SHAPES)
def test_validation_is_about_a_fifth_of_the_training_rows(name, uci):
    data = loaded(name, uci)
    train = masks(data, "train").sum(axis=1)
    share = masks(data, "validation").sum(axis=1) / train
    assert (np.abs(share - 0.2) < 4 * np.sqrt(0.2 * 0.8 / train)).all()
    assert len({row.tobytes() for row in masks(data, "validation")}) == 4
    if name == "monks-3":
        assert (np.round(100 * share.min()), np.round(100 * share.max())) == (15, 26)


@pytest.mark.parametrize("name", SHAPES)
def test_no_class_is_absent_from_what_is_fitted(name, uci):
    data = loaded(name, uci)
    for split in data.splits:
        assert len(np.unique(data.y[split.fit])) == SHAPES[name][2]


def test_a_rare_class_may_be_absent_from_validation_or_test(uci):
    def lacking(name):
        data = loaded(name, uci)
        parts = [*masks(data, "validation"), *masks(data, "test")]
        return any(len(np.unique(data.y[part])) < SHAPES[name][2] for part in parts)

    assert [name for name in SHAPES if lacking(name)] == ["arrhythmia", "wine-quality-white"]


@pytest.mark.parametrize("name", SINGLE)
def test_single_file_has_four_overlapping_draws(name, uci):
    data, columns = loaded(name, uci), fold_columns(name, uci)
    test = masks(data, "test")
    assert (columns["part"] == 0).all()
    for i in range(4):
        np.testing.assert_array_equal(columns[f"test{i}"], columns[f"kf{i}"])
        elsewhere = np.any([data.splits[j].train for j in range(4) if j != i], axis=0)
        assert 0.965 < elsewhere[test[i]].mean() < 0.995  # other splits learn from its test rows
    assert test.sum(axis=0).max() > 1  # not a partition
    assert 0.66 < test.any(axis=0).mean() < 0.70


@pytest.mark.parametrize("name", SEPARATE)
def test_separate_file_is_the_test_part_of_every_split(name, uci):
    data, columns = loaded(name, uci), fold_columns(name, uci)
    for mask in masks(data, "test"):
        np.testing.assert_array_equal(mask, columns["part"] == 1)
    for i in range(4):  # these concern the training file alone
        np.testing.assert_array_equal(columns[f"kf{i}"] == -1, columns["part"] == 1)


@pytest.mark.parametrize("name", SHAPES)
def test_tuning_halves_cover_the_training_file(name, uci):
    columns = fold_columns(name, uci)
    np.testing.assert_array_equal(columns["tune"] == -1, columns["part"] == 1)
    halves = [int((columns["tune"] == half).sum()) for half in (0, 1)]
    assert abs(halves[0] - halves[1]) <= 1


@pytest.mark.parametrize("name", SHAPES)
def test_each_file_was_standardised_on_all_its_rows(name, uci):
    data, part = loaded(name, uci), fold_columns(name, uci)["part"]
    for file in np.unique(part):
        X = data.X[part == file]
        if (name, file) == ("monks-3", 0):  # standardised as if padded with zeros
            assert ((X.mean(axis=0) > 1.35) & (X.mean(axis=0) < 1.5)).all()
            continue
        np.testing.assert_allclose(X.mean(axis=0), 0, atol=2e-5)
        np.testing.assert_allclose(X.std(axis=0, ddof=1), 1, atol=2e-5)


@pytest.mark.parametrize(
    ("name", "rows"),
    [("arrhythmia", 2), ("wine-quality-white", 5), ("glass", 9), ("statlog-shuttle", 10),
     ("oocytes_trisopterus_states_5b", 14)],
)  # fmt: skip
def test_smallest_class(name, rows, uci):
    assert np.bincount(loaded(name, uci).y).min() == rows


def test_congressional_voting_keeps_only_missingness(uci):
    data = loaded("congressional-voting", uci)
    assert all(len(np.unique(column)) == 2 for column in data.X.T)
    assert len(data.y) - len(np.unique(np.column_stack([data.X, data.y]), axis=0)) == 347
    assert round(100 * np.bincount(data.y).max() / len(data.y)) == 61


@pytest.mark.parametrize("name", SMALL)
def test_values_have_six_significant_digits(name, uci):
    text = gzip.decompress((uci / f"{UCI24[name].archive_name}.csv.gz").read_bytes()).decode()
    cells = [cell for line in text.split()[1:] for cell in line.split(",")]
    assert all(cell == f"{float(cell):.6g}" for cell in cells)
    values = np.array(cells, dtype=float).reshape(SHAPES[name][0], -1)
    np.testing.assert_array_equal(values[:, :-1], loaded(name, uci).X)


def test_wrong_values_or_partitions_in_the_folder_are_refused(uci, tmp_path):
    for file in ("glass.csv.gz", "glass.folds.csv.gz"):
        (tmp_path / file).write_bytes((uci / file).read_bytes())
    assert load_dataset("glass", tmp_path).checksum == loaded("glass", uci).checksum
    values = gzip.decompress((uci / "glass.csv.gz").read_bytes())
    (tmp_path / "glass.csv.gz").write_bytes(gzip.compress(values.replace(b"0.870826", b"0.870827")))
    with pytest.raises(DataError, match=r"the values of glass must have SHA-256 6e286d.*replace"):
        load_dataset("glass", tmp_path)
    (tmp_path / "glass.csv.gz").write_bytes(gzip.compress(values))
    folds = gzip.decompress((uci / "glass.folds.csv.gz").read_bytes())
    (tmp_path / "glass.folds.csv.gz").write_bytes(gzip.compress(folds.replace(b"\n0,1,", b"\n0,0,", 1)))
    with pytest.raises(DataError, match="the partitions of glass must have SHA-256"):
        load_dataset("glass", tmp_path)
    (tmp_path / "glass.folds.csv.gz").write_bytes(gzip.compress(folds)[:-20])
    with pytest.raises(DataError, match=r"glass\.folds\.csv\.gz cannot be read"):
        load_dataset("glass", tmp_path)
    (tmp_path / "glass.folds.csv.gz").write_bytes(gzip.compress(b"test0,test1\n1,0\n"))
    with pytest.raises(DataError, match="expected 0/1 columns test0"):
        load_dataset("glass", tmp_path)


def test_description_tells_what_is_there(uci, tmp_path):
    for file in ("glass.csv.gz", "glass.folds.csv.gz", "monks-3.csv.gz", "monks-3.folds.csv.gz"):
        (tmp_path / file).write_bytes((uci / file).read_bytes())
    (tmp_path / "monks-3.csv.gz").write_bytes(b"no gzip")
    table = {row.name: row for row in describe_datasets(tmp_path, cache=tmp_path / "none", verify=True)}
    assert tuple(table) == GROUPS["uci24"] + GROUPS["demo"]
    assert (table["glass"].source, table["glass"].state) == (str(tmp_path), "verified")
    assert (table["glass"].rows, table["glass"].features, table["glass"].classes) == SHAPES["glass"][:3]
    assert table["monks-3"].state.startswith("damaged: ")
    assert (table["adult"].source, table["adult"].state) == ("", "missing")
    assert (table["digits"].source, table["digits"].rows) == ("scikit-learn", 1797)
    assert {row.name: row.state for row in describe_datasets(tmp_path)}["monks-3"] == "found"


# Names


def test_names_are_expanded_once_each_and_in_order():
    assert dataset_names(["wine", "demo", "wine"]) == ("wine", "iris", "breast_cancer", "digits")
    assert dataset_names(["uci24"]) == tuple(SHAPES)
    assert dataset_names(["cardiotocography-10clases"]) == ("cardio-10",)
    assert dataset_names([]) == ()


@pytest.mark.parametrize(("name", "near"), [("irys", "iris"), ("monks3", "monks-3"), ("uci", "uci24")])
def test_wrong_name_gets_the_nearest_and_the_list(name, near):
    with pytest.raises(ValueError, match=rf"no dataset '{name}'; did you mean '{near}'\?.*demo \(iris, wine"):
        dataset_names([name])


def test_a_text_is_no_list_of_names_and_a_group_is_no_dataset():
    with pytest.raises(TypeError, match="put it in a list"):
        dataset_names("iris")
    with pytest.raises(ValueError, match="'demo' is a group; load its datasets one by one: iris, wine"):
        load_dataset("demo")


# The demo group


def check_drawn(data):
    """What holds for every partition of ours."""
    overall = np.bincount(data.y) / len(data.y)
    for split in data.splits:
        assert (split.fit.astype(int) + split.validation + split.test == 1).all()
        assert split.test.mean() == pytest.approx(0.25, abs=2 / len(data.y))
        assert split.validation.sum() / split.train.sum() == pytest.approx(0.2, abs=2 / len(data.y))
        for part in (split.fit, split.validation, split.test):
            counts = np.bincount(data.y[part], minlength=len(overall))
            np.testing.assert_allclose(counts, overall * part.sum(), atol=1.5)
    assert len({split.test.tobytes() for split in data.splits}) == 4


@pytest.mark.parametrize(
    ("name", "checksum"),
    [
        ("iris", "c9bdf43e1221dd93"),
        ("wine", "bee634652b39ae94"),
        ("breast_cancer", "4b657bac1f68013b"),
        ("digits", "7df0ffc4898fe06d"),
    ],
)
def test_demo_needs_nothing_and_never_changes(name, checksum, monkeypatch):
    monkeypatch.setenv("EDRVFL_DATA", "/does/not/exist")
    data = load_dataset(name)
    X, y = getattr(shipped, f"load_{name}")(return_X_y=True)
    np.testing.assert_array_equal(data.X, X)
    np.testing.assert_array_equal(data.y, y)
    check_drawn(data)
    assert data.checksum == load_dataset(name).checksum
    assert data.checksum.startswith(checksum)  # stored records point at it
    assert not any(array.flags.writeable for array in (data.X, data.y, data.splits[0].fit))


def test_dataset_travels_to_another_process():
    data = load_dataset("iris")
    copy = pickle.loads(pickle.dumps(data))
    np.testing.assert_array_equal(copy.X, data.X)
    np.testing.assert_array_equal(copy.splits[3].train, data.splits[3].train)
    assert (copy.name, copy.checksum) == (data.name, data.checksum)


# A user's table


def write_table(folder, rows=60, name="mine.csv", header="a,b,kind", label="xyz".__getitem__, cell="0.5"):
    rng = np.random.default_rng(0)
    lines = [f"{rng.normal():.4f},{cell if i == 7 else i},{label(i % 3)}" for i in range(rows)]
    path = folder / name
    path.write_text("\n".join([header, *lines, ""]))
    return path


def test_own_table(tmp_path):
    data = csv_dataset(write_table(tmp_path), target="kind")
    assert (data.name, data.X.shape, data.classes) == ("mine", (60, 2), ("x", "y", "z"))
    assert data.X[:8, 1].tolist() == [0, 1, 2, 3, 4, 5, 6, 0.5]
    assert data.y[:6].tolist() == [0, 1, 2, 0, 1, 2]
    check_drawn(data)


def test_own_table_packed_with_a_mark_and_numeric_classes(tmp_path):
    plain = write_table(tmp_path, label=lambda c: (10, 9, 2.5)[c])
    packed = tmp_path / "other.csv.gz"
    packed.write_bytes(gzip.compress(b"\xef\xbb\xbf" + plain.read_bytes().replace(b"\n", b"\r\n")))
    data, same = csv_dataset(plain, "kind"), csv_dataset(packed, "kind")
    assert data.classes == ("2.5", "9", "10")
    assert (same.name, same.checksum) == ("other", data.checksum)


def test_checksum_sees_values_labels_and_rows(tmp_path):
    sums = [
        csv_dataset(write_table(tmp_path, **change), "kind").checksum
        for change in ({}, {"cell": "0.25"}, {"label": "xzy".__getitem__}, {"rows": 63})
    ]
    assert len(set(sums)) == 4


@pytest.mark.parametrize(
    ("change", "phrase"),
    [
        ({"cell": "red"}, r"finite numbers, not so 'b' \(row 8: 'red'\); encode or drop"),
        ({"cell": "inf"}, r"finite numbers, not so 'b' \(row 8: 'inf'\)"),
        ({"cell": "1_0"}, r"finite numbers, not so 'b'"),
        ({"cell": ""}, r"missing values in 'b' \(row 8: ''\); fill them in or drop"),
        ({"cell": "NaN"}, r"missing values in 'b' \(row 8: 'NaN'\)"),
        ({"cell": "1,2"}, "row 8 has 4 values, the header 3"),
        ({"label": ("x", "", "z").__getitem__}, r"missing values in 'kind' \(row 2: ''\)"),
        ({"label": lambda c: "x"}, "two or more classes, got only 'x'"),
        ({"rows": 8}, "need 3 rows of every class and 7 on average; 'kind' has 3 classes in 8 rows"),
        ({"header": "a,a,kind"}, "column names must differ, these do not: a; rename"),
        ({"header": ",b,kind"}, "column 1 has no name; name it, or drop it if it is an index"),
        ({"header": "a,b,kinds"}, r"no column 'kind'; did you mean 'kinds'\? Columns: a, b, kinds"),
        ({"rows": 0}, r"expected a header and rows below it, got 1 line"),
        ({"rows": 0, "header": ""}, r"expected a header and rows below it, got 0 line"),
        ({"name": "wine.csv"}, "'wine' already names a dataset of the study; rename the file"),
    ],
)
def test_own_table_refused(change, phrase, tmp_path):
    with pytest.raises(DataError, match=phrase):
        csv_dataset(write_table(tmp_path, **change), target="kind")


def test_own_table_that_is_no_table(tmp_path):
    with pytest.raises(DataError, match="cannot be read as comma-separated text in UTF-8"):
        csv_dataset(tmp_path / "absent.csv", "kind")
    (tmp_path / "picture.csv").write_bytes(b"\x89PNG\xff\xfe")
    with pytest.raises(DataError, match="cannot be read as comma-separated text in UTF-8"):
        csv_dataset(tmp_path / "picture.csv", "kind")
    (tmp_path / "only.csv").write_text("kind\nx\ny\n")
    with pytest.raises(DataError, match="'kind' is the only column"):
        csv_dataset(tmp_path / "only.csv", "kind")
    (tmp_path / "rare.csv").write_text("a,kind\n" + "1,x\n" * 20 + "1,y\n" * 2)
    with pytest.raises(DataError, match="2 of them of 'y'; merge or drop small classes"):
        csv_dataset(tmp_path / "rare.csv", "kind")


def test_smallest_table_that_can_be_split(tmp_path):
    (tmp_path / "tiny.csv").write_text("a,kind\n" + "1,x\n" * 11 + "2,y\n" * 3)
    data = csv_dataset(tmp_path / "tiny.csv", "kind")
    for split in data.splits:
        assert set(data.y[split.fit]) == {0, 1}


# The download


@dataclass
class Step:
    """How the server answers one request."""

    stop: int | None = None  # breaks off after so many bytes of the body
    claim: int | None = None  # says another Content-Length
    length: bool = True  # says a Content-Length at all
    ranges: bool = True  # knows Range
    shift: int = 0  # sends another part than was asked for
    status: int | None = None


@dataclass
class Served:
    content: bytes = b""
    etag: str | None = '"one"'
    plan: list[Step] = field(default_factory=list)
    seen: list[str | None] = field(default_factory=list)  # the Range of each request
    url: str = ""


@pytest.fixture
def served(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    state = Served()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            step = state.plan.pop(0) if state.plan else Step()
            asked = self.headers["Range"]
            state.seen.append(asked)
            if step.status:
                self.send_error(step.status)
                return
            start = 0
            if asked and step.ranges and self.headers["If-Range"] in (None, state.etag):
                start = int(asked.removeprefix("bytes=").removesuffix("-"))
                if start >= len(state.content):
                    self.send_response(416)
                    self.send_header("Content-Range", f"bytes */{len(state.content)}")
                    self.end_headers()
                    return
                start += step.shift
                self.send_response(206)
                end, total = len(state.content) - 1, len(state.content)
                self.send_header("Content-Range", f"bytes {start}-{end}/{total}")
            else:
                self.send_response(200)
            body = state.content[start:]
            if step.length:
                self.send_header("Content-Length", str(len(body) if step.claim is None else step.claim))
            if state.etag:
                self.send_header("ETag", state.etag)
            self.end_headers()
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                self.wfile.write(body[: step.stop])

        def log_message(self, *args):
            pass

    server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    state.url = f"http://127.0.0.1:{server.server_port}/data_py.zip"
    yield state
    server.shutdown()
    thread.join()
    server.server_close()


def toy(name, rows=40, features=3, seed=0):
    """A dataset in the archive's form (four texts) and its line of the table, both written by hand."""
    rng = np.random.default_rng(seed)
    values = [",".join(f"{x:.6g}" for x in row) for row in rng.normal(size=(rows, features))]
    labels = [str(i % 2) for i in range(rows)]
    test = rng.integers(0, 2, size=(rows, 4))
    val = (1 - test) * rng.integers(0, 2, size=(rows, 4))
    lines = [",".join(f"f{i}" for i in range(features)) + ",label"]
    lines += [f"{v},{label}" for v, label in zip(values, labels, strict=True)]
    parts = ["test0,test1,test2,test3,val0,val1,val2,val3"]
    parts += [",".join(map(str, [*t, *v])) for t, v in zip(test, val, strict=True)]
    sums = [hashlib.sha256(("\n".join(text) + "\n").encode()).hexdigest() for text in (lines, parts)]
    texts = {
        f"{name}_py.dat": values,
        "labels_py.dat": labels,
        "folds_py.dat": [",".join(map(str, row)) for row in test],
        "validation_folds_py.dat": [",".join(map(str, row)) for row in val],
    }
    files = {f"{name}/{file}": "\n".join(text) + "\n" for file, text in texts.items()}
    return files, Published(name, name, rows, features, 2, *sums)


def zipped(files, root="some/data/", **options):
    buffer = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as bundle:
        warnings.filterwarnings("ignore", "Duplicate name")
        for name, text in files.items() if isinstance(files, dict) else files:
            bundle.writestr(name if isinstance(name, zipfile.ZipInfo) else root + name, text, **options)
    return buffer.getvalue()


ONE, ONE_ENTRY = toy("one")
TWO, TWO_ENTRY = toy("two", seed=1)
TABLE = {"one": ONE_ENTRY, "two": TWO_ENTRY}
ARCHIVE = zipped(ONE | TWO)
FILES = ["one.csv.gz", "one.folds.csv.gz", "two.csv.gz", "two.folds.csv.gz"]


def get(served, place, table=TABLE, **options):
    fetch(served.url, place, table, **{"pause": 0, **options})


def kept(place):
    return sorted(path.name for path in place.iterdir() if path.name != "fetch.lock")


def test_archive_becomes_verified_files_and_nothing_else(served, tmp_path):
    served.content = ARCHIVE
    get(served, tmp_path / "new" / "cache")
    assert kept(tmp_path / "new" / "cache") == FILES
    text = gzip.decompress((tmp_path / "new" / "cache" / "one.csv.gz").read_bytes())
    assert hashlib.sha256(text).hexdigest() == ONE_ENTRY.csv_sha256
    get(served, tmp_path / "new" / "cache")
    assert len(served.seen) == 1  # all there: no second request


@pytest.mark.parametrize("root", ["", "data_py/", "a/b/c/"])
def test_folders_may_lie_at_any_depth_and_numbers_be_written_as_floats(root, served, tmp_path):
    files = {name: re.sub("([01])", r"\1.0", text) for name, text in ONE.items() if "one_py" not in name}
    files = {name: text.replace("\n", " \r\n") + "\n" for name, text in (ONE | files).items()}
    served.content = zipped(files | {"readme.txt": "x", "three/one_py.dat": "1"}, root=root)
    get(served, tmp_path, {"one": ONE_ENTRY})
    assert kept(tmp_path) == FILES[:2]


def test_broken_transfer_is_resumed_within_a_call(served, tmp_path):
    served.content = ARCHIVE
    served.plan = [Step(stop=100), Step(stop=200), Step(status=503)]
    get(served, tmp_path)
    assert served.seen == [None, "bytes=100-", "bytes=300-", "bytes=300-"]
    assert kept(tmp_path) == FILES


def test_broken_transfer_is_resumed_by_the_next_call(served, tmp_path):
    served.content = ARCHIVE
    served.plan = [Step(stop=100)]
    with pytest.raises(DataError, match=rf"\(100 of {len(ARCHIVE)} bytes came\); what came is kept"):
        get(served, tmp_path, attempts=1)
    assert "archive.zip.part" in kept(tmp_path)
    get(served, tmp_path)
    assert served.seen == [None, "bytes=100-"]
    assert kept(tmp_path) == FILES


def test_server_without_ranges_sends_it_all_again(served, tmp_path):
    served.content = ARCHIVE
    served.plan = [Step(stop=100), Step(ranges=False)]
    get(served, tmp_path)
    assert served.seen == [None, "bytes=100-"]
    assert kept(tmp_path) == FILES


@pytest.mark.parametrize("etag", ['"one"', None])
def test_file_that_changed_meanwhile_is_not_mixed(etag, served, tmp_path):
    served.content, served.etag = zipped(ONE | TWO | {"padding": "x"}), etag
    served.plan = [Step(stop=100)]
    with pytest.raises(DataError, match="broke off"):
        get(served, tmp_path, attempts=1)
    served.content, served.etag = ARCHIVE, etag and '"two"'
    get(served, tmp_path)
    assert kept(tmp_path) == FILES


def test_other_part_than_asked_for_starts_over(served, tmp_path):
    served.content = ARCHIVE
    served.plan = [Step(stop=100), Step(shift=-50)]
    get(served, tmp_path)
    assert served.seen == [None, "bytes=100-", None]
    assert kept(tmp_path) == FILES


def test_part_that_nobody_asked_for_is_asked_for_again(served, tmp_path):
    served.content = ARCHIVE
    served.plan = [Step(status=206)]
    get(served, tmp_path)
    assert served.seen == [None, None]
    assert kept(tmp_path) == FILES


def test_whole_part_needs_only_the_servers_word(served, tmp_path):
    served.content = ARCHIVE
    served.plan = [Step(claim=len(ARCHIVE) + 10)]  # nothing is lacking, but the length was a lie
    get(served, tmp_path)
    assert served.seen == [None, f"bytes={len(ARCHIVE)}-"]
    assert kept(tmp_path) == FILES


def test_length_that_is_always_too_long(served, tmp_path):
    served.content = ARCHIVE
    served.plan = [Step(claim=len(ARCHIVE) + 10, ranges=False) for _ in range(3)]
    with pytest.raises(DataError, match="broke off 3 times"):
        get(served, tmp_path, attempts=3)
    assert not any(name.endswith(".gz") for name in kept(tmp_path))


def test_length_that_is_too_short_leaves_nothing(served, tmp_path):
    served.content = ARCHIVE
    served.plan = [Step(claim=len(ARCHIVE) - 200)]
    with pytest.raises(DataError, match="the archive is damaged"):
        get(served, tmp_path)
    assert kept(tmp_path) == []
    get(served, tmp_path)
    assert kept(tmp_path) == FILES


def test_unknown_length(served, tmp_path):
    served.content = ARCHIVE
    served.plan = [Step(length=False)]
    get(served, tmp_path)
    assert kept(tmp_path) == FILES


@pytest.mark.parametrize("says_so", [True, False])
def test_size_limit(says_so, served, tmp_path):
    served.content = b"x" * 3_000_000
    served.plan = [Step(length=says_so)]
    with pytest.raises(DataError, match="limit is 1000000" if says_so else "sent more than 1000000 bytes"):
        get(served, tmp_path, limit=1_000_000)
    assert not [name for name in kept(tmp_path) if not name.endswith(".json")]


def test_missing_page_is_not_tried_again(served, tmp_path):
    served.plan = [Step(status=404)]
    with pytest.raises(DataError, match="answered 404 Not Found; check the address"):
        get(served, tmp_path)
    assert len(served.seen) == 1


def test_address_must_be_http(tmp_path):
    with pytest.raises(DataError, match="must begin with http"):
        fetch("file:///etc/hostname", tmp_path, TABLE)


def test_cache_that_cannot_be_written(served, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match=r"cannot keep datasets in .*file.*name another cache"):
        get(served, tmp_path / "file")


def test_callers_at_the_same_time_download_once(served, tmp_path):
    served.content = ARCHIVE
    threads = [threading.Thread(target=get, args=(served, tmp_path)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(served.seen) == 1
    assert kept(tmp_path) == FILES


def test_progress_bar_is_drawn_only_on_a_terminal(served, tmp_path, capsys):
    pytest.importorskip("tqdm")
    served.content = ARCHIVE
    get(served, tmp_path, progress=True)
    assert capsys.readouterr().err == ""


# Archives that are not what they should be


def info(name, mode=0o100644):
    member = zipfile.ZipInfo(name)
    member.external_attr = mode << 16
    return member


def with_flag(content, bit):
    """Set a flag of the last member's entry in the central directory."""
    at = content.rindex(b"PK\x01\x02") + 8
    return content[:at] + bytes([content[at] | bit]) + content[at + 1 :]


def with_declared_size(content, size):
    """Let the first member's entry in the central directory declare another size."""
    at = content.index(b"PK\x01\x02") + 24
    return content[:at] + size.to_bytes(4, "little") + content[at + 4 :]


def with_damage(content):
    """One bit of the first member's packed bytes."""
    return content[:80] + bytes([content[80] ^ 1]) + content[81:]


BOMB = {**ONE, "one/one_py.dat": "0" * 2_000_000}
HOSTILE = {
    "parent": (zipped([*ONE.items(), (info("../../escape"), "x")]), "'../../escape' leads out of its folder"),
    "inner parent": (zipped([*ONE.items(), (info("a/../../escape"), "x")]), "leads out of its folder"),
    "backslash": (zipped([*ONE.items(), (info("a\\..\\..\\escape"), "x")]), "leads out of its folder"),
    "absolute": (zipped([*ONE.items(), (info("/tmp/escape"), "x")]), "has an absolute path"),
    "drive": (zipped([*ONE.items(), (info("C:escape"), "x")]), "has an absolute path"),
    "link": (zipped([*ONE.items(), (info("link", 0o120777), "/etc/passwd")]), "'link' is a link or device"),
    "device": (zipped([*ONE.items(), (info("null", 0o020666), "")]), "is a link or device"),
    "twice": (zipped([*ONE.items(), ("one/labels_py.dat", "1\n")]), "is there twice"),
    "encrypted": (with_flag(zipped(ONE), 1), "is encrypted"),
    "bomb": (zipped(BOMB), "declares 2000000 bytes, at most 3840 are possible"),
    "lying bomb": (with_declared_size(zipped(BOMB), 1000), "one in the archive is damaged|declares 1000"),
    "huge": (with_declared_size(zipped(ONE), 2**32 - 2), "it unpacks to 4294.* bytes, limit"),
    "two homes": (zipped({**ONE, **{f"x/{k}": v for k, v in ONE.items()}}), "expected one folder"),
    "no home": (zipped(TWO), "expected one folder of that name with one_py.dat, got 0"),
    "no labels": (zipped({k: v for k, v in ONE.items() if "labels" not in k}), "labels_py.dat is absent"),
    "bit": (with_damage(zipped(ONE)), "one in the archive is damaged"),
    "truncated": (zipped(ONE)[:-50], "the archive is damaged"),
    "tail only": (zipped(ONE)[300:], "the archive is damaged|one in the archive is damaged"),
    "page": (b"<html>moved</html>", "the archive is damaged"),
    "empty": (b"", "the archive is damaged"),
    "other packing": (zipped(ONE, compress_type=zipfile.ZIP_LZMA), "packed in another way"),
    "values": (zipped({**ONE, "one/one_py.dat": ONE["one/one_py.dat"].replace("1", "2")}), "values of one"),
    "label": (zipped({**ONE, "one/labels_py.dat": "1\n" * 40}), "the values of one must have SHA-256"),
    "words": (zipped({**ONE, "one/labels_py.dat": "x\n" * 40}), "one in the archive is damaged"),
    "rows": (zipped({**ONE, "one/labels_py.dat": "1\n" * 39}), "expected 40 rows, got 40 and 39 labels"),
    "partitions": (zipped({**ONE, "one/folds_py.dat": "1,1,1,1\n" * 40}), "the partitions of one must"),
    "narrow": (zipped({**ONE, "one/folds_py.dat": "1,1\n" * 40}), r"shape \(40, 4\), got \(40, 2\)"),
    "no partitions": (zipped({**ONE, "one/folds_py.dat": "\n"}), "one in the archive is damaged"),
    "2 is no mark": (zipped({**ONE, "one/folds_py.dat": "2,1,1,1\n" * 40}), "other values than 0 and 1"),
}  # fmt: skip


@pytest.mark.parametrize("case", HOSTILE)
def test_bad_archive_is_refused_and_the_cache_stays(case, served, tmp_path):
    place = tmp_path / "deep" / "er" / "cache"
    served.content = zipped(TWO)
    get(served, place, {"two": TWO_ENTRY})
    before = {name: (place / name).read_bytes() for name in kept(place)}
    served.content, phrase = HOSTILE[case]
    with pytest.raises(DataError, match=phrase):
        get(served, place)
    assert {name: (place / name).read_bytes() for name in kept(place)} == before
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()].count("escape") == 0
    served.content = ARCHIVE
    get(served, place)  # and a good one mends it
    assert kept(place) == FILES


def test_good_datasets_of_a_partly_wrong_archive_are_kept(served, tmp_path):
    served.content = zipped({**ONE, **TWO, "one/labels_py.dat": "1\n" * 40})
    with pytest.raises(DataError, match="not the published one: the values of one"):
        get(served, tmp_path)
    assert kept(tmp_path) == FILES[2:]


def test_damaged_cache_is_mended(served, tmp_path):
    served.content = ARCHIVE
    get(served, tmp_path)
    good = (tmp_path / "one.csv.gz").read_bytes()
    (tmp_path / "one.csv.gz").write_bytes(good[:-9])
    get(served, tmp_path)
    assert (tmp_path / "one.csv.gz").read_bytes() == good


def test_archive_outlives_a_cache_that_cannot_be_written(served, tmp_path):
    served.content = ARCHIVE
    (tmp_path / "one.csv.gz").mkdir()
    with pytest.raises(DataError, match="cannot keep datasets in"):
        get(served, tmp_path)
    (tmp_path / "one.csv.gz").rmdir()
    get(served, tmp_path)
    assert len(served.seen) == 1
    assert kept(tmp_path) == FILES


# The whole way, with the published data


def published_archive(uci, names):
    """The archive's form of the delivered files: the label column apart, test and validation apart."""
    files = {}
    for name in (UCI24[name].archive_name for name in names):
        rows = gzip.decompress((uci / f"{name}.csv.gz").read_bytes()).decode().split()[1:]
        folds = gzip.decompress((uci / f"{name}.folds.csv.gz").read_bytes()).decode().split()[1:]
        texts = {
            f"{name}_py.dat": [row.rpartition(",")[0] for row in rows],
            "labels_py.dat": [row.rpartition(",")[2] for row in rows],
            "folds_py.dat": [",".join(row.split(",")[1:5]) for row in folds],
            "validation_folds_py.dat": [",".join(row.split(",")[5:9]) for row in folds],
        }
        files |= {f"{name}/{file}": "\n".join(text) + "\n" for file, text in texts.items()}
    return zipped(files, root="data/", compresslevel=1)


def test_published_data_by_download_equal_those_of_the_folder(uci, served, tmp_path, monkeypatch):
    monkeypatch.delenv("EDRVFL_DATA")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    served.content = published_archive(uci, UCI24)
    served.plan = [Step(stop=5_000_000)]
    assert fetch_datasets(served.url, progress=False) == tmp_path / "edrvfl"
    assert served.seen == [None, "bytes=5000000-"]
    for name in UCI24:
        data = load_dataset(name)  # from the user's cache, without a request
        assert data.checksum == loaded(name, uci).checksum


def test_load_takes_what_it_needs_of_an_archive_that_lacks_others(uci, served, tmp_path, monkeypatch):
    monkeypatch.delenv("EDRVFL_DATA")
    served.content = published_archive(uci, ["glass"])
    data = load_dataset("glass", cache=tmp_path, url=served.url, progress=False)
    assert data.checksum == loaded("glass", uci).checksum
    with pytest.raises(DataError, match=r"monks-3 is not at hand.*expected one folder.*EDRVFL_DATA"):
        load_dataset("monks-3", cache=tmp_path, url=served.url, progress=False)
    with pytest.raises(DataError, match="monks-3: expected one folder"):
        fetch_datasets(served.url, cache=tmp_path, progress=False)


def test_without_folder_or_network_the_error_says_what_to_do(served, tmp_path, monkeypatch):
    monkeypatch.delenv("EDRVFL_DATA", raising=False)
    closed = re.sub(r":\d+/", ":9/", served.url)  # the discard port: nobody listens
    with pytest.raises(DataError, match="cannot be reached") as caught:
        load_dataset("cardio-3", cache=tmp_path, url=closed)
    message = str(caught.value)
    assert "Set EDRVFL_DATA to a folder with cardiotocography-3clases.csv.gz and" in message
    assert "run `edrvfl bench data`" in message


def test_named_folder_must_exist(tmp_path, monkeypatch):
    with pytest.raises(DataError, match="folder must name a folder with NAME"):
        load_dataset("glass", tmp_path / "absent")
    monkeypatch.setenv("EDRVFL_DATA", str(tmp_path / "absent"))
    with pytest.raises(DataError, match="EDRVFL_DATA must name a folder with NAME"):
        load_dataset("glass")


def test_cache_folder_follows_the_platform(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "local"))
    monkeypatch.setattr(module.sys, "platform", "linux")
    assert module.cache_folder() == tmp_path / "edrvfl"
    monkeypatch.setattr(module.sys, "platform", "win32")
    assert module.cache_folder() == tmp_path / "local" / "edrvfl"
    monkeypatch.setattr(module.sys, "platform", "linux")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert module.cache_folder() == Path.home() / ".cache" / "edrvfl"
