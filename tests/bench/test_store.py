import dataclasses
import json
import os
import resource
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import textwrap
import threading
from contextlib import contextmanager
from pathlib import Path

import pytest

from edrvfl.bench import store as store_module
from edrvfl.bench.protocol import Choice, RunRecord, key_of
from edrvfl.bench.store import STORE_VERSION, Store, StoreError, Worker

DESCRIPTION = {
    "protocol": 1,
    "method": "small",
    "dataset": "iris",
    "checksum": "c",
    "splits": 4,
    "trials": 3,
    "seeds": 1,
    "fixed": {},
    "together": [],
    "configurations": [{"x": 0.1 + 0.2}, {"x": 1.0}, {"x": 2.0}],
}
KEY = key_of(DESCRIPTION)
UNITS = ["search/0", "search/1", "search/2"]


def a_record(key=KEY, accuracy=1 / 3, status="ok", seconds=0.25):
    row = ((accuracy,),) * 4
    choice = Choice(
        (0,) * 4, ({"x": 0.1 + 0.2},) * 4, (1,) * 4, (0.5,) * 4, row, row, row, ((seconds,),) * 4, row
    )
    return RunRecord(
        key=key,
        method="small",
        dataset="iris",
        checksum="c",
        status=status,
        message=None if status == "ok" else "search/1: ValueError: no\nmore",
        n_configurations=3,
        seeds=1,
        choices={"paper": choice, "strict": choice} if status == "ok" else {},
        search_seconds=seconds,
        finished="2024-01-01T00:00:00+00:00",
        device="cpu",
        versions={"numpy": "2"},
        commit=None,
        protocol=1,
    )


@pytest.fixture
def path(tmp_path):
    return tmp_path / "study.db"


@pytest.fixture
def store(path):
    with Store(path) as opened:
        opened.add_cells({KEY: DESCRIPTION})
        yield opened


def dead_worker():
    """The lease holder left behind by a process that has ended."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    born = store_module._born(process.pid)
    process.wait()
    return dataclasses.replace(Worker.here(), pid=process.pid, born=born)


# --- units and leases ------------------------------------------------------------------------------------


def test_units_are_handed_out_once_and_values_come_back(store):
    one, two = Worker.here(), Worker.here()
    assert store.take(KEY, UNITS, one) == "search/0"
    assert store.take(KEY, UNITS, two) == "search/1"
    store.finish(KEY, "search/0", {"scores": [[0.1 + 0.2]]})
    assert store.take(KEY, UNITS, one) == "search/2"
    assert store.take(KEY, UNITS, one) is None
    values, mark = store.values(KEY)
    assert values == {"search/0": {"scores": [[0.1 + 0.2]]}}
    assert store.values(KEY, mark) == ({}, mark)
    assert set(store.attempts().values()) == {1}


def test_values_outlive_the_process(path):
    with Store(path) as first:
        first.finish(KEY, "search/0", {"scores": []})
        first.add_record(a_record())
    with Store(path) as second:
        assert second.values(KEY)[0] == {"search/0": {"scores": []}}
        assert second.record(KEY) == a_record()
        assert second.record("another") is None


def test_the_first_value_and_the_first_record_stay(store):
    store.finish(KEY, "search/0", {"scores": [1]})
    store.finish(KEY, "search/0", {"scores": [2]})
    assert store.values(KEY)[0] == {"search/0": {"scores": [1]}}
    store.add_record(a_record())
    store.add_record(a_record(accuracy=0.9))
    assert store.records() == [a_record()]


def test_a_lease_given_back_is_free(store):
    one, two = Worker.here(), Worker.here()
    store.take(KEY, UNITS, one)
    store.release(one)
    assert store.held() == []
    assert store.take(KEY, UNITS, two) == "search/0"
    assert store.attempts() == {(KEY, "search/0"): 2}


def test_a_lease_expires_unless_it_is_renewed(store, monkeypatch):
    elsewhere = dataclasses.replace(Worker.here(), host="another host", pid=1)
    store.take(KEY, UNITS[:1], elsewhere)
    now = store_module.time.time()
    monkeypatch.setattr(store_module.time, "time", lambda: now + 50)
    assert store.take(KEY, UNITS[:1], Worker.here()) is None
    store.renew(elsewhere)
    monkeypatch.setattr(store_module.time, "time", lambda: now + 100)
    assert store.take(KEY, UNITS[:1], Worker.here()) is None
    monkeypatch.setattr(store_module.time, "time", lambda: now + 111)
    assert store.take(KEY, UNITS[:1], Worker.here()) == "search/0"


def test_a_dead_process_s_lease_is_free_at_once_on_its_own_host_only(store):
    dead = dead_worker()
    assert store.take(KEY, UNITS, dataclasses.replace(dead, host="another host")) == "search/0"
    assert store.take(KEY, UNITS, dead) == "search/1"
    assert {held.unit: held.live for held in store.held()} == {"search/0": True, "search/1": False}
    assert store.take(KEY, UNITS, Worker.here()) == "search/1"


@pytest.mark.skipif(
    not Path("/proc/self/stat").exists(), reason="the system does not tell when a process began"
)
def test_a_process_number_used_again_is_not_the_old_process(store):
    store.take(KEY, UNITS, dataclasses.replace(Worker.here(), born="0"))
    assert store.take(KEY, UNITS, Worker.here()) == "search/0"


def test_many_threads_share_a_new_store_without_taking_a_unit_twice(path):
    units = [f"search/{i}" for i in range(60)]
    taken = []

    def work():
        with Store(path) as own:
            worker = Worker.here()
            while (unit := own.take(KEY, units, worker)) is not None:
                taken.append(unit)
                own.finish(KEY, unit, {"scores": []})

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(taken) == sorted(units)


def test_states_tell_what_is_done_and_left(store):
    (waiting,) = store.states()
    assert (waiting.status, waiting.done, waiting.units, waiting.finished) == ("waiting", 0, 3 + 8, False)
    store.finish(KEY, "search/0", {"scores": [], "seconds": 1.5})
    store.finish(KEY, "search/1", {"scores": [], "seconds": 0.5})
    (started,) = store.states()
    assert (started.status, started.done, started.seconds) == ("started", 2, 2.0)
    store.add_record(a_record())
    (over,) = store.states()
    assert (over.status, over.units, over.finished) == ("ok", 2, True)
    assert store.counts() == {KEY: 2}
    assert store.finished() == {KEY}


def test_retry_forgets_failures_and_keeps_what_was_done(store):
    store.finish(KEY, "search/0", {"scores": []})
    store.finish(KEY, "search/1", {"error": "ValueError: no"})
    store.add_record(a_record(status="failed"))
    assert store.retry() == 1
    assert store.values(KEY)[0] == {"search/0": {"scores": []}}
    assert store.records() == []
    assert store.retry() == 0
    assert store.take(KEY, UNITS, Worker.here()) == "search/1"


# --- JSON lines ------------------------------------------------------------------------------------------


def filled(path):
    store = Store(path)
    other = DESCRIPTION | {"dataset": "wine"}
    store.add_cells({KEY: DESCRIPTION, key_of(other): other})
    for i in (11, 2, 0):
        store.finish(KEY, f"search/{i}", {"scores": [[0.1 + 0.2, 1 / 3]], "seconds": 0.1})
    store.finish(KEY, "refit/0/1/0/0", {"test_accuracy": 2 / 3, "seconds": 0.1})
    store.add_record(a_record())
    return store


def test_export_and_import_round_trip_exactly(tmp_path):
    with filled(tmp_path / "a.db") as one, Store(tmp_path / "b.db") as two:
        lines = list(one.export_lines())
        report = two.import_lines(lines)
        assert (report.new_records, report.new_units, report.conflicts) == (1, 4, [])
        assert list(two.export_lines()) == lines
        assert two.records() == one.records()
        assert two.values(KEY)[0] == one.values(KEY)[0]
        units = [json.loads(line)["unit"] for line in lines if json.loads(line)["kind"] == "unit"]
        assert units == ["search/0", "search/2", "search/11", "refit/0/1/0/0"]


def test_importing_twice_is_harmless(tmp_path):
    with filled(tmp_path / "a.db") as store:
        lines = list(store.export_lines())
        report = store.import_lines(lines)
        assert (report.new_records, report.known_records, report.new_units, report.known_units) == (
            0,
            1,
            0,
            4,
        )
        assert report.conflicts == []
        assert list(store.export_lines()) == lines


def test_other_times_and_another_machine_s_last_bits_are_no_conflict(tmp_path):
    with filled(tmp_path / "a.db") as store:
        here = dataclasses.replace(a_record(accuracy=1 / 3 + 1e-12, seconds=9.0), versions={"numpy": "3"})
        assert (
            store.import_lines(
                [json.dumps({"kind": "record", "record": json.loads(here.to_json())})]
            ).conflicts
            == []
        )
        assert store.records() == [a_record()]


def test_a_contradiction_is_reported_and_what_is_here_stays(tmp_path):
    with filled(tmp_path / "a.db") as store:
        record = {"kind": "record", "record": json.loads(a_record(accuracy=0.9).to_json())}
        unit = {"kind": "unit", "cell": KEY, "unit": "search/0", "value": {"scores": [[0.5, 0.5]]}}
        report = store.import_lines([json.dumps(record), json.dumps(unit)])
        assert report.conflicts == [
            f"record of small on iris (cell {KEY[:12]})",
            f"unit search/0 of cell {KEY[:12]}",
        ]
        assert store.records() == [a_record()]


def test_a_success_takes_the_place_of_a_failure_and_not_the_reverse(tmp_path):
    good = {"kind": "record", "record": json.loads(a_record().to_json())}
    bad = {"kind": "record", "record": json.loads(a_record(status="failed").to_json())}
    with Store(tmp_path / "a.db") as store:
        for line, status in ((bad, "failed"), (good, "ok"), (bad, "ok")):
            assert store.import_lines([json.dumps(line)]).conflicts == []
            assert [r.status for r in store.records()] == [status]


@pytest.mark.parametrize(
    ("line", "phrase"),
    [
        ('{"kind": "record", "rec', "line 2"),
        ('{"kind": "party"}', "unknown kind 'party'"),
        ('{"kind": "cell", "key": "0", "description": {}}', "not the hash"),
        ('{"kind": "store", "format": 99}', "newer edrvfl"),
        ("[]", "line 2"),
    ],
)
def test_a_line_that_cannot_be_read_is_named_and_nothing_is_imported(store, line, phrase):
    good = json.dumps({"kind": "record", "record": json.loads(a_record().to_json())})
    with pytest.raises(ValueError, match=phrase) as caught:
        store.import_lines([good, line], "that.jsonl")
    assert "that.jsonl" in str(caught.value)
    assert "Nothing was imported" in str(caught.value)
    assert store.records() == []


# --- trouble ---------------------------------------------------------------------------------------------


def test_a_store_from_a_newer_version_is_left_alone(path):
    filled(path).close()
    with sqlite3.connect(path) as db:
        db.execute(f"PRAGMA user_version = {STORE_VERSION + 1}")
    db.close()
    before = path.read_bytes()
    with pytest.raises(
        StoreError, match=f"newer edrvfl wrote this store.*{STORE_VERSION + 1}.*upgrade edrvfl"
    ):
        Store(path)
    assert path.read_bytes() == before


def test_what_is_not_a_database_is_left_alone(path):
    path.write_text("dear diary, " * 1000)
    with pytest.raises(StoreError, match=r"not a study store.*left as it is; choose another --store"):
        Store(path)
    assert path.read_text().startswith("dear diary")


def test_another_program_s_database_is_left_alone(path):
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE songs (title TEXT)")
    db.close()
    with pytest.raises(StoreError, match="a SQLite file of another program"):
        Store(path)


@pytest.mark.parametrize("share", [0.3, 0.6, 0.95])
def test_a_store_cut_short_is_reported_and_left_alone(path, share):
    with filled(path) as store:
        for i in range(300):
            store.finish(KEY, f"search/{100 + i}", {"scores": [[0.5] * 30] * 4})
    whole = path.stat().st_size
    os.truncate(path, int(share * whole))
    before = path.read_bytes()
    with pytest.raises(
        StoreError, match=r"damaged, cut short or overwritten.*left as it is.*import an export"
    ):
        Store(path)
    assert path.read_bytes() == before


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
    import json, sys
    from edrvfl.bench.store import Store, StoreError
    path, done = sys.argv[1], 0
    store = Store(path)
    try:
        for done in range(10_000):
            store.finish("cell", f"search/{done}", {"scores": [[0.5] * 100] * 4})
    except StoreError as error:
        print(json.dumps({"done": done, "message": str(error)}))
"""


def written_before_failure(path, **how):
    script = textwrap.dedent(WRITE_UNTIL_IT_FAILS)
    ran = subprocess.run(
        [sys.executable, "-c", script, path], capture_output=True, text=True, check=True, **how
    )
    return json.loads(ran.stdout)


def limit_file_size():
    resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))


def test_no_room_for_another_record_leaves_the_earlier_ones_intact(path):
    with filled(path) as store:
        lines = list(store.export_lines())
    answer = written_before_failure(path, preexec_fn=limit_file_size)
    assert "disk cannot be written" in answer["message"]
    assert "What was stored before is intact" in answer["message"]
    assert answer["done"] > 10
    with Store(path) as store:
        assert len(store.values("cell")[0]) == answer["done"]
        assert list(store.export_lines()) == lines
        store.finish("cell", "search/99999", {"scores": []})  # and with room again it goes on


@pytest.fixture
def small_disk(tmp_path):
    """A file system of one megabyte, where one may be mounted."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = shutil.which("mount") and subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", place], capture_output=True
    )
    if not mounted or mounted.returncode:
        pytest.skip("a small tmpfs cannot be mounted here")
    yield place
    subprocess.run(["umount", place], check=True)


def test_a_full_disk_leaves_the_earlier_records_intact(small_disk):
    path = small_disk / "study.db"
    filled(path).close()
    answer = written_before_failure(path)
    assert "the disk is full" in answer["message"]
    with Store(path) as store:
        assert len(store.values("cell")[0]) == answer["done"]
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
    filled(folder / "study.db").close()
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
            store.finish("cell", "search/0", {})


def test_a_new_store_in_a_read_only_folder_is_explained(read_only_folder):
    with pytest.raises(StoreError, match=r"cannot be opened. Make it and its folder writable"):
        Store(read_only_folder / "new.db")


def test_a_locked_store_is_waited_for_and_then_explained(path, monkeypatch):
    monkeypatch.setattr(store_module, "BUSY_SECONDS", 0.1)
    with Store(path) as one, Store(path) as two:
        one._db.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError, match="keep the store locked"):
            two.finish(KEY, "search/0", {})
        one._db.execute("ROLLBACK")
        two.finish(KEY, "search/0", {})
