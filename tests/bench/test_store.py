import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import textwrap
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from stored import KEY, OTHER_KEY, SEARCHES, a_record, fill, note

from edrvfl.bench import store as store_module
from edrvfl.bench.cell import RefitUnit, SearchUnit
from edrvfl.bench.exchange import export_lines
from edrvfl.bench.record import SensitivityRecord
from edrvfl.bench.store import STORE_VERSION, Store, StoreError


@pytest.fixture
def path(tmp_path):
    return tmp_path / "study.db"


@pytest.fixture
def store(path):
    with Store(path) as opened:
        note(opened)
        yield opened


# --- units and records -----------------------------------------------------------------------------------


def test_values_outlive_the_process(path):
    refit = RefitUnit(0, 1, 0, 0, epochs=12)
    with Store(path) as first:
        first.finish(KEY, SEARCHES[0], {"scores": [[0.1 + 0.2]]})
        first.finish(KEY, refit, {"test_accuracy": 1 / 3})
        first.add_record(a_record())
    with Store(path) as second:
        assert second.values(KEY) == {SEARCHES[0]: {"scores": [[0.1 + 0.2]]}, refit: {"test_accuracy": 1 / 3}}
        assert second.value(KEY, refit) == {"test_accuracy": 1 / 3}
        assert second.value(KEY, SEARCHES[1]) is None
        assert second.record(KEY) == a_record()
        assert second.record("another") is None


def test_the_first_value_and_the_first_record_stay(store):
    store.finish(KEY, SEARCHES[0], {"scores": [1]})
    store.finish(KEY, SEARCHES[0], {"scores": [2]})
    assert store.values(KEY) == {SEARCHES[0]: {"scores": [1]}}
    store.add_record(a_record())
    store.add_record(a_record(accuracy=0.9))
    assert store.records() == [a_record()]
    assert store.records_of(SensitivityRecord) == []


def test_a_cell_waits_until_a_unit_is_done(store):
    (waiting,) = store.states()
    assert (waiting.status, waiting.done, waiting.units, waiting.finished) == ("waiting", 0, 3 + 8, False)
    store.finish(KEY, SEARCHES[0], {"scores": [], "seconds": 1.5})
    store.finish(KEY, SEARCHES[1], {"scores": [], "seconds": 0.5})
    (started,) = store.states()
    assert (started.status, started.done, started.seconds) == ("started", 2, 2.0)
    store.add_record(a_record())
    (over,) = store.states()
    assert (over.status, over.units, over.finished, over.message) == ("ok", 2, True, None)
    assert store.counts() == {KEY: 2}
    assert store.finished() == {KEY}
    assert store.states("timing") == []
    assert store.states(kind=None) == [over]


def test_retry_forgets_failures_and_keeps_what_was_done(store):
    store.finish(KEY, SEARCHES[0], {"scores": []})
    store.finish(KEY, SEARCHES[1], {"error": "ValueError: no"})
    store.add_record(a_record(status="failed"))
    assert store.states()[0].message == a_record(status="failed").message
    assert store.retry() == 1
    assert store.values(KEY) == {SEARCHES[0]: {"scores": []}}
    assert store.records() == []
    assert store.retry() == 0


# --- one owner -------------------------------------------------------------------------------------------


def test_one_owner_at_a_time_and_any_number_of_readers(path):
    with Store(path, own=True) as owner:
        owner.finish(KEY, SEARCHES[0], {"scores": []})
        with pytest.raises(StoreError, match=r"another run works on this store.*choose another --store"):
            Store(path, own=True)
        with Store(path, create=False) as reader:
            assert reader.values(KEY) == {SEARCHES[0]: {"scores": []}}
    Store(path, own=True).close()


HOLD = """
    import sys, time
    from edrvfl.bench.store import Store
    store = Store(sys.argv[1], own=True)
    print("mine", flush=True)
    time.sleep(60)
"""


def test_a_killed_owner_leaves_the_store_free(path):
    command = [sys.executable, "-c", textwrap.dedent(HOLD), path]
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    process.stdout.readline()
    with pytest.raises(StoreError, match="another run works"):
        Store(path, own=True)
    process.kill()
    process.communicate()
    Store(path, own=True).close()


# --- trouble ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "phrase"),
    [
        (+1, f"A newer edrvfl wrote this store .version {STORE_VERSION + 1}.*upgrade edrvfl"),
        (-1, f"An older edrvfl wrote this store .version {STORE_VERSION - 1}.*choose another --store"),
    ],
)
def test_a_store_of_another_version_is_left_alone(path, change, phrase):
    fill(path).close()
    with sqlite3.connect(path) as db:
        db.execute(f"PRAGMA user_version = {STORE_VERSION + change}")
    db.close()
    before = path.read_bytes()
    with pytest.raises(StoreError, match=phrase):
        Store(path)
    assert path.read_bytes() == before


def test_what_is_not_a_database_is_left_alone(path):
    path.write_text("dear diary, " * 1000)
    for _ in range(2):  # what cannot be opened is not owned
        with pytest.raises(StoreError, match=r"not a study store.*left as it is; choose another --store"):
            Store(path, own=True)
    assert path.read_text().startswith("dear diary")


def test_another_program_s_database_is_left_alone(path):
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE songs (title TEXT)")
    db.close()
    with pytest.raises(StoreError, match="a SQLite file of another program"):
        Store(path)


@pytest.mark.parametrize("share", [0.3, 0.6, 0.95])
def test_a_store_cut_short_is_reported_and_left_alone(path, share):
    with fill(path) as store:
        for i in range(300):
            store.finish(KEY, SearchUnit((100 + i,)), {"scores": [[0.5] * 30] * 4})
    whole = path.stat().st_size
    os.truncate(path, int(share * whole))
    before = path.read_bytes()
    with pytest.raises(
        StoreError, match=r"damaged, cut short or overwritten.*left as it is.*import an export"
    ):
        Store(path)
    assert path.read_bytes() == before


def everything(path):
    with Store(path, create=False) as store:
        values = {key: store.values(key) for key in store.descriptions()}
        return store.descriptions(), values, store.records(), store.states(kind=None), store.finished()


def test_a_turned_bit_is_told_and_never_other_figures(path):
    fill(path).close()
    whole, before = path.read_bytes(), everything(path)
    rng, told = np.random.default_rng(0), 0
    for bit in rng.choice(8 * len(whole), 400, replace=False):
        spoilt = bytearray(whole)
        spoilt[bit // 8] ^= 1 << (bit % 8)
        path.write_bytes(spoilt)
        try:
            assert everything(path) == before
        except StoreError:
            told += 1
    assert told > 20  # most of a small file is empty
    path.write_bytes(whole.replace(b"CREATE TABLE cells", b"CREA\xd4E TABLE cells"))
    with pytest.raises(StoreError, match="damaged"):  # SQLite's message quotes what is no text
        everything(path)


def test_a_damaged_cell_can_be_forgotten(path):
    fill(path).close()
    path.write_bytes(path.read_bytes().replace(b'"test_accuracy": 0.66', b'"test_accuracy": 0.65'))
    with pytest.raises(StoreError, match=r"damaged: a row of results, of cell (\w+).*retry --cell \1"):
        everything(path)
    with Store(path, own=True) as store:
        assert [store.forget(key[:12]) for key in (KEY, OTHER_KEY, "none")] == [1, 1, 0]
    assert everything(path) == ({}, {}, [], [], set())


def test_an_empty_file_is_a_new_store(path):
    path.touch()  # what a process killed in its first moment leaves behind
    with Store(path) as store:
        assert store.records() == []


def test_missing_places_are_named(tmp_path):
    with pytest.raises(StoreError, match="its folder does not exist"):
        Store(tmp_path / "no" / "study.db")
    with pytest.raises(StoreError, match="this is a folder"):
        Store(tmp_path)
    with pytest.raises(StoreError, match="no such store; `edrvfl bench run"):
        Store(tmp_path / "study.db", create=False)
    assert not (tmp_path / "study.db").exists()


WRITE_UNTIL_IT_FAILS = """
    import json, resource, sys
    from edrvfl.bench.cell import SearchUnit
    from edrvfl.bench.store import Store, StoreError
    resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))
    store = Store(sys.argv[1])
    try:
        for done in range(10_000):
            store.finish("cell", SearchUnit((done,)), {"scores": [[0.5] * 100] * 4})
    except StoreError as error:
        print(json.dumps({"done": done, "message": str(error)}))
"""


def test_no_room_for_another_record_leaves_the_earlier_ones_intact(path):
    with fill(path) as store:
        lines = list(export_lines(store))
    command = [sys.executable, "-c", textwrap.dedent(WRITE_UNTIL_IT_FAILS), path]
    answer = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    assert "disk cannot be written" in answer["message"]
    assert "What was stored before is intact" in answer["message"]
    assert answer["done"] > 10
    with Store(path) as store:
        assert len(store.values("cell")) == answer["done"]
        assert list(export_lines(store)) == lines
        store.finish("cell", SearchUnit((99999,)), {"scores": []})  # and with room again it goes on


def test_a_full_disk_leaves_the_earlier_records_intact(path):
    with fill(path) as store:
        store._db.execute("PRAGMA max_page_count = 1")  # SQLite takes the file's size: there is no more room
        with pytest.raises(StoreError, match=r"the disk is full. What was stored before is intact"):
            store.finish("cell", SearchUnit((0,)), {"scores": [[0.5] * 10_000]})
        assert store.values("cell") == {}
        assert store.records() == [a_record()]


@contextmanager
def as_an_ordinary_user():
    """Root may write anywhere; so, for a moment, we are nobody."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def read_only_folder():
    folder = Path(tempfile.mkdtemp(prefix="edrvfl"))  # pytest's own folders are closed to other users
    fill(folder / "study.db").close()
    (folder / "study.db").chmod(0o444)
    folder.chmod(0o555)
    with as_an_ordinary_user():
        yield folder
    folder.chmod(0o755)
    shutil.rmtree(folder)


def test_a_read_only_store_can_be_read_and_says_so_when_it_should_be_written(read_only_folder):
    with Store(read_only_folder / "study.db", create=False) as store:
        assert store.records() == [a_record()]
        with pytest.raises(
            StoreError, match=r"read-only. It was left as it is; make both writable or choose"
        ):
            store.finish("cell", SEARCHES[0], {})


def test_a_new_store_in_a_read_only_folder_is_explained(read_only_folder):
    with pytest.raises(StoreError, match=r"cannot be opened. Make it and its folder writable"):
        Store(read_only_folder / "new.db")


def test_a_locked_store_is_waited_for_and_then_explained(path, monkeypatch):
    monkeypatch.setattr(store_module, "BUSY_SECONDS", 0.1)
    with Store(path) as one, Store(path) as two:
        one._db.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError, match="keep the store locked"):
            two.finish(KEY, SEARCHES[0], {})
        one._db.execute("ROLLBACK")
        two.finish(KEY, SEARCHES[0], {})


def test_a_lock_that_cannot_be_made_is_not_another_run():
    with pytest.raises(StoreError) as refused:
        Store("/proc/study.db", own=True)
    assert "another run" not in str(refused.value)
