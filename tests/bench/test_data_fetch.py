"""The download of the paper's datasets, from a server of our own."""

import gzip
import hashlib
import http.server
import io
import os
import re
import signal
import subprocess
import sys
import threading
import time
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pytest

from edrvfl.bench.data import (
    ARCHIVE_URL,
    UCI24,
    DataError,
    Published,
    cache_folder,
    fetch_datasets,
    load_dataset,
)
from edrvfl.bench.data.fetch import fetch_missing


class Served:
    """A server of one file: what it sends, how many requests it saw, and where it misbehaves."""

    def __init__(self, content=b""):
        self.content, self.requests = content, 0
        self.status = 200
        self.stop = None  # break off after so many bytes
        self.stall = threading.Event()  # wait here instead of breaking off, if it is set up
        self.stall.set()


@pytest.fixture
def served(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    state = Served()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            state.requests += 1
            self.send_response(state.status)
            self.send_header("Content-Length", str(len(state.content)))
            self.end_headers()
            self.wfile.write(state.content[: state.stop])
            self.wfile.flush()
            state.stall.wait(60)

        def log_message(self, *args):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    state.url = f"http://127.0.0.1:{server.server_port}/data_py.zip"
    yield state
    state.stall.set()
    server.shutdown()
    thread.join()
    server.server_close()


def toy(name, rows=40, features=3, seed=0):
    """Write a dataset in the archive's form, four texts, and its line of the table, both by hand."""
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


def zipped(files, root="data/", **options):
    buffer = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as bundle:
        warnings.filterwarnings("ignore", "Duplicate name")
        for name, text in files.items() if isinstance(files, dict) else files:
            bundle.writestr(root + name, text, **options)
    return buffer.getvalue()


ONE, ONE_ENTRY = toy("one")
TWO, TWO_ENTRY = toy("two", seed=1)
ENTRIES = (ONE_ENTRY, TWO_ENTRY)
ARCHIVE = zipped(ONE | TWO)
FILES = ["one.csv.gz", "one.folds.csv.gz", "two.csv.gz", "two.folds.csv.gz"]


def get(served, folder, entries=ENTRIES):
    fetch_missing(entries, folder, served.url, progress=True)


def kept(folder):
    return sorted(path.name for path in folder.iterdir())


def test_archive_becomes_verified_files_and_nothing_else(served, tmp_path, capfd):
    served.content = ARCHIVE
    folder = tmp_path / "new" / "cache"
    get(served, folder)
    assert kept(folder) == FILES
    text = gzip.decompress((folder / "one.csv.gz").read_bytes())
    assert hashlib.sha256(text).hexdigest() == ONE_ENTRY.csv_sha256
    get(served, folder)
    assert served.requests == 1  # everything is there: no second request
    assert capfd.readouterr() == ("", "")  # a progress bar is drawn on a terminal only


def test_progress_bar_on_a_terminal(served, tmp_path, monkeypatch):
    pty, termios = pytest.importorskip("pty"), pytest.importorskip("termios")
    served.content = ARCHIVE
    master, slave = pty.openpty()
    termios.tcsetwinsize(slave, (24, 80))  # a new terminal has no lines, and so no place for a bar
    with os.fdopen(slave, "w") as terminal, monkeypatch.context() as patch:
        patch.setattr(sys, "stderr", terminal)
        get(served, tmp_path)
        terminal.flush()
        assert b"100%" in os.read(master, 10_000)
    os.close(master)


@pytest.mark.parametrize("root", ["", "a/b/c/"])
def test_folders_may_lie_at_any_depth_and_numbers_be_written_as_floats(root, served, tmp_path):
    files = {name: re.sub("([01])", r"\1.0", text) for name, text in ONE.items() if "one_py" not in name}
    files = {name: text.replace("\n", " \r\n") + "\n" for name, text in (ONE | files).items()}
    served.content = zipped(files | {"one_py.dat": "misplaced", "../one_py.dat": "outside"}, root=root)
    get(served, tmp_path, [ONE_ENTRY])
    assert kept(tmp_path) == FILES[:2]


def with_damage(content):
    """Turn one bit of the first member's packed bytes."""
    return content[:80] + bytes([content[80] ^ 1]) + content[81:]


WRONG = {
    "bit": (with_damage(zipped(ONE)), "not the published one: one is damaged"),
    "truncated": (zipped(ONE)[:-50], "the archive is damaged .*; download it again"),
    "tail only": (zipped(ONE)[300:], "one is damaged"),
    "page": (b"<html>moved</html>", "the archive is damaged"),
    "empty": (b"", "the archive is damaged"),
    "bomb": (zipped({**ONE, "one/one_py.dat": "0" * 2_000_000}), "of one unpacks to more than 3840 bytes"),
    "no folder": (zipped(TWO), "one lacks the file one_py.dat"),
    "no labels": (zipped({k: v for k, v in ONE.items() if "labels" not in k}), "lacks the file labels"),
    "twice": (zipped([*ONE.items(), ("one/labels_py.dat", "1\n" * 40)]), "values of one must have SHA-256"),
    "values": (zipped({**ONE, "one/one_py.dat": ONE["one/one_py.dat"].replace("1", "2")}), "values of one"),
    "words": (zipped({**ONE, "one/labels_py.dat": "x\n" * 40}), "one is damaged .*could not convert"),
    "rows": (zipped({**ONE, "one/labels_py.dat": "1\n" * 39}), "one is damaged"),
    "partitions": (zipped({**ONE, "one/folds_py.dat": "1,1,1,1\n" * 40}), "the partitions of one must have"),
    "no partitions": (zipped({**ONE, "one/folds_py.dat": "\n"}), "one is damaged .there are no rows"),
    "2 is no mark": (zipped({**ONE, "one/folds_py.dat": "2,1,1,1\n" * 40}), "other values than 0 and 1"),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_wrong_archive_is_refused_and_the_cache_stays(case, served, tmp_path):
    served.content = zipped(TWO)
    get(served, tmp_path, [TWO_ENTRY])
    before = {name: (tmp_path / name).read_bytes() for name in kept(tmp_path)}
    served.content, phrase = WRONG[case]
    with pytest.raises(DataError, match=phrase):
        get(served, tmp_path)
    assert {name: (tmp_path / name).read_bytes() for name in kept(tmp_path)} == before
    served.content = ARCHIVE
    get(served, tmp_path)  # and the right archive repairs it
    assert kept(tmp_path) == FILES


def test_good_datasets_of_a_partly_wrong_archive_are_kept(served, tmp_path):
    served.content = zipped({**ONE, **TWO, "one/labels_py.dat": "1\n" * 40})
    with pytest.raises(DataError, match="not the published one: the values of one"):
        get(served, tmp_path)
    assert kept(tmp_path) == FILES[2:]


def test_damaged_cache_is_repaired(served, tmp_path):
    served.content = ARCHIVE
    get(served, tmp_path)
    good = (tmp_path / "one.csv.gz").read_bytes()
    (tmp_path / "one.csv.gz").write_bytes(good[:-9])
    get(served, tmp_path)
    assert (tmp_path / "one.csv.gz").read_bytes() == good


@pytest.mark.parametrize(("status", "stop"), [(200, 100), (404, None), (503, None)])
def test_failed_download_leaves_nothing(status, stop, served, tmp_path):
    served.content, served.status, served.stop = ARCHIVE, status, stop
    with pytest.raises(DataError, match=r"the download of http://127.* failed .*check the address"):
        get(served, tmp_path)
    assert kept(tmp_path) == []


def test_interrupted_download_leaves_nothing(served, tmp_path):
    served.content, served.stop = b"x" * 100_000, 50_000
    served.stall.clear()
    code = "import sys; from edrvfl.bench.data import fetch_datasets; fetch_datasets(*sys.argv[1:])"
    with subprocess.Popen(
        [sys.executable, "-c", code, served.url, tmp_path], stderr=subprocess.PIPE
    ) as child:
        while not any(path.is_file() and path.stat().st_size for path in tmp_path.rglob("*")):
            assert child.poll() is None
            time.sleep(0.05)
        child.send_signal(signal.SIGINT)
        assert b"KeyboardInterrupt" in child.communicate(timeout=30)[1]
    assert kept(tmp_path) == []


def test_callers_at_the_same_time_do_not_meet(served, tmp_path):
    served.content = ARCHIVE
    threads = [threading.Thread(target=get, args=(served, tmp_path)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert kept(tmp_path) == FILES
    get(served, tmp_path)
    assert served.requests <= 4


def test_cache_that_cannot_be_written(served, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match=r"cannot write datasets to .*file.*name another cache"):
        get(served, tmp_path / "file")
    assert served.requests == 0


def test_missing_pooch_is_named_with_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(DataError, match="needs the package pooch, which comes with the extra `bench`"):
        cache_folder()


def test_archive_comes_by_https():
    assert ARCHIVE_URL.startswith("https://")


# The whole way, with the published data


@pytest.fixture
def uci(monkeypatch):
    folder = os.environ.get("EDRVFL_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("needs the 24 published datasets: set EDRVFL_DATA to their folder")
    monkeypatch.delenv("EDRVFL_DATA")
    return Path(folder)


def published_archive(uci, names):
    """Write the archive's form of the delivered files: labels apart, test and validation apart."""
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
    return zipped(files, compresslevel=1)


def test_published_data_by_download_equal_those_of_the_folder(uci, served, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    served.content = published_archive(uci, UCI24)
    folder = fetch_datasets(served.url, progress=False)
    assert folder == cache_folder()
    assert len(kept(folder)) == 2 * len(UCI24)
    for name in ("glass", "cardio-3", "monks-3"):  # from the user's cache, without a request
        assert load_dataset(name).checksum == load_dataset(name, uci).checksum
    assert served.requests == 1


def test_load_takes_what_it_needs_of_an_archive_that_lacks_others(uci, served, tmp_path):
    served.content = published_archive(uci, ["glass"])
    data = load_dataset("glass", cache=tmp_path, url=served.url, progress=False)
    assert data.checksum == load_dataset("glass", uci).checksum
    with pytest.raises(DataError, match=r"monks-3 is not at hand.*monks-3 lacks the file monks-3_py\.dat"):
        load_dataset("monks-3", cache=tmp_path, url=served.url, progress=False)


def test_without_folder_or_network_the_error_says_what_to_do(served, tmp_path, monkeypatch):
    monkeypatch.delenv("EDRVFL_DATA", raising=False)
    closed = re.sub(r":\d+/", ":9/", served.url)  # the discard port: nobody listens
    with pytest.raises(DataError, match="cardio-3 is not at hand and could not be fetched") as caught:
        load_dataset("cardio-3", cache=tmp_path, url=closed)
    message = str(caught.value)
    assert "Run `edrvfl bench data --fetch` where there is a network" in message
    assert "set EDRVFL_DATA to a folder with cardiotocography-3clases.csv.gz and" in message
    assert kept(tmp_path) == []
