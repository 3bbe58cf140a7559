"""Real processes, real SIGKILL, a real Dask cluster: the records are always those of a quiet run."""

import dataclasses
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from functools import partial
from pathlib import Path

import numpy as np
import psutil
import pytest
from quiet import assert_same_records, run_cell
from scipy import stats
from sklearn.model_selection import ParameterSampler
from threadpoolctl import threadpool_info, threadpool_limits

from edrvfl import variant
from edrvfl.bench import schedule
from edrvfl.bench.cell import RefitUnit, SearchUnit
from edrvfl.bench.data import load_dataset
from edrvfl.bench.schedule import Progress, StudyError, grid, run
from edrvfl.bench.searching import Method
from edrvfl.bench.store import Store, StoreError

HERE = Path(__file__).parent


def readouts(trials, seed):
    space = {"regularization": stats.loguniform(0.01, 100), "correct_weight": [0.4, 0.7, 1.0]}
    return list(ParameterSampler(space, trials, random_state=seed))


narrow = partial(variant, n_layers=3, n_hidden=16)


def slow(name, random_state, **params):
    time.sleep(0.01)
    return narrow(name, random_state=random_state, **params)


def one_thread_only(random_state, **params):
    threads = {pool["num_threads"] for pool in threadpool_info()}
    if threads != {1}:
        raise RuntimeError(f"worked on {threads} threads")
    return narrow("edRVFL_N", random_state=random_state, **params)


def deadly(random_state, **params):
    os.kill(os.getpid(), signal.SIGKILL)


def sleepy(random_state, **params):
    time.sleep(60)


METHODS = {
    "weighted": Method("weighted", partial(narrow, "WPedRVFL"), readouts, depth="n_layers"),
    "plain": Method("plain", partial(narrow, "edRVFL_O"), readouts, depth="n_layers"),
    "slow": Method("slow", partial(slow, "WPedRVFL"), readouts, depth="n_layers"),
    "one thread": Method("one thread", one_thread_only, readouts, depth="n_layers"),
    "broken": Method("broken", partial(variant, "WPedRVFL", n_layers=-1), readouts),
    "deadly": Method("deadly", deadly, readouts),
    "sleepy": Method("sleepy", sleepy, readouts),
}


def cells(*names, trials=5, seeds=2, datasets=("iris", "wine")):
    return list(grid([METHODS[n] for n in names], map(load_dataset, datasets), trials, seeds))


@pytest.fixture(scope="module")
def quiet_run():
    """Records of the slow method, made without a store."""
    return [run_cell(cell) for cell in cells("slow")]


def finished_units(path):
    if not path.exists():
        return 0
    try:
        with Store(path, create=False) as store:
            return sum(store.counts().values())
    except StoreError:  # it is being made
        return 0


def wait_for(condition, seconds=120.0):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.05)


def workers_of(process):
    """The worker processes that a run has started."""
    children = psutil.Process(process.pid).children()
    return [child for child in children if "popen_loky" in " ".join(child.cmdline())]


def is_alive(process):
    return process.is_running() and process.status() != psutil.STATUS_ZOMBIE


RUN = """
    import signal, sys
    # a shell may have told the tests to ignore Ctrl-C, which their children inherit
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.path.insert(0, sys.argv[1])
    from test_schedule import cells, run
    if __name__ == "__main__":
        run(cells(sys.argv[4]), sys.argv[2], jobs=int(sys.argv[3]))
"""


@pytest.fixture
def start(tmp_path):
    """Start a study in a process group of its own; whatever is left of it ends with the test."""
    script = tmp_path / "study.py"
    script.write_text(textwrap.dedent(RUN))
    started = []

    def start_one(path, jobs=1, method="slow"):
        command = [sys.executable, script, HERE, path, str(jobs), method]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        started.append(subprocess.Popen(command, start_new_session=True, **pipes))
        return started[-1]

    yield start_one
    for process in started:
        process.kill()
        process.communicate()


# --- who works does not matter ---------------------------------------------------------------------------


def test_the_grid_goes_dataset_by_dataset():
    names = [(cell.dataset.name, cell.method.name) for cell in cells("weighted", "plain")]
    assert names == [("iris", "weighted"), ("iris", "plain"), ("wine", "weighted"), ("wine", "plain")]


def missing_oracle():
    return "plain needs the package oracle"


def test_a_method_without_its_package_is_refused_before_any_data_are_loaded():
    absent = dataclasses.replace(METHODS["plain"], missing=missing_oracle)
    with pytest.raises(ValueError, match="plain needs the package oracle"):
        grid([absent], map(load_dataset, ["no such dataset"]), 1, 1)


@pytest.fixture(scope="module")
def studied(tmp_path_factory):
    """The records of two methods, made by two processes."""
    with threadpool_limits(2):
        return run(cells("slow", "one thread"), tmp_path_factory.mktemp("studied") / "study.db", jobs=2)


def test_two_processes_give_the_records_of_a_quiet_run(studied, quiet_run):
    assert_same_records(studied[::2], quiet_run)


def test_a_finished_study_is_not_done_again(tmp_path, monkeypatch):
    path = tmp_path / "study.db"
    first = run(cells("slow"), path)
    monkeypatch.setattr(schedule, "attempt", None)
    assert run(cells("slow"), path) == first


def test_every_unit_is_done_on_one_thread(studied):
    for record in studied:
        assert record.status == "ok", record.message


def test_a_study_grows(tmp_path):
    path = tmp_path / "study.db"
    (first,) = run(cells("plain", datasets=["iris"]), path)
    assert run(cells("weighted", "plain", datasets=["iris"]), path)[1] == first
    with Store(path) as store:
        assert len(store.records()) == 2


class Holding:
    """A cell that tells how its array came."""

    def __init__(self, rows):
        self.X = np.ones((rows, 1000))

    def compute(self, unit):
        return {"type": type(self.X).__name__}


def test_a_large_array_reaches_the_workers_as_a_memory_map():
    """Copying it with every unit would cost more than many a unit."""
    with schedule._in_processes(1) as workers:
        found = [workers.submit(cell, SearchUnit((0,))).result() for cell in (Holding(1000), Holding(1))]
    assert [value["type"] for value in found] == ["memmap", "ndarray"]


# --- killed and taken up again ---------------------------------------------------------------------------


def test_killed_and_started_again(tmp_path, quiet_run, start):
    path = tmp_path / "study.db"
    process = start(path, jobs=2)
    wait_for(lambda: finished_units(path) > 7)
    process.kill()
    process.wait()
    with Store(path) as store:
        stored = {cell.key: store.values(cell.key) for cell in cells("slow")}
    assert_same_records(run(cells("slow"), path), quiet_run)
    with Store(path) as store:
        for key, values in stored.items():
            assert values.items() <= store.values(key).items(), "what was stored is not done again"


def test_the_workers_of_a_killed_run_end_by_themselves(tmp_path, start):
    path = tmp_path / "study.db"
    process = start(path, jobs=2, method="sleepy")
    wait_for(lambda: len(workers_of(process)) == 2)
    workers = workers_of(process)
    time.sleep(3)  # time to begin with a unit, which takes a minute
    process.kill()
    process.wait()
    wait_for(lambda: not any(map(is_alive, workers)), seconds=30)


def test_a_dead_worker_ends_the_run_with_the_name_of_its_unit_and_the_next_run_goes_on(tmp_path):
    path, size = tmp_path / "study.db", {"trials": 1, "seeds": 1, "datasets": ["iris"]}
    first = run(cells("plain", **size), path)
    with pytest.raises(StudyError, match=r"A worker process died.*deadly on iris, search of configuration 0"):
        run(cells("plain", "deadly", "weighted", **size), path, jobs=2)
    again = run(cells("plain", "weighted", **size), path, jobs=2)
    assert again[0] == first[0], "what was done is stored"
    assert again[1].status == "ok"


def test_ctrl_c_ends_the_run_at_once_and_what_was_done_stays(tmp_path, start):
    path = tmp_path / "study.db"
    process = start(path, jobs=2)
    wait_for(lambda: finished_units(path) > 3)
    workers = workers_of(process)
    before, began = finished_units(path), time.monotonic()
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert time.monotonic() - began < 30, "about a second where nothing else runs; a unit takes a minute"
    assert process.returncode == -signal.SIGINT
    assert errors.rstrip().endswith("KeyboardInterrupt"), "workers say nothing"
    assert errors.count("Traceback") == 1 or "another exception" in errors
    assert not any(map(is_alive, workers))
    assert finished_units(path) >= before


def test_workers_end_in_silence_even_where_work_has_not_been_sent_on(monkeypatch):
    """Work that the pool's own thread has not yet taken: this thread keeps Python's lock, so it cannot."""
    heard = []
    monkeypatch.setattr(threading, "excepthook", heard.append)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(5)
    try:
        for _ in range(3):
            with schedule._in_processes(2) as workers:
                time.sleep(0.1)  # until the thread waits
                workers.submit(None, None)
    finally:
        sys.setswitchinterval(interval)
    assert not heard


# --- failures --------------------------------------------------------------------------------------------


def test_a_failure_is_a_record_and_the_others_go_on(tmp_path):
    path = tmp_path / "study.db"
    found = run(cells("broken", "plain", datasets=["iris"]), path)
    assert [record.status for record in found] == ["failed", "ok"]
    assert found[0].message.startswith("search of configuration 0: ")
    assert "The 'n_layers' parameter" in found[0].message
    with Store(path) as store:
        values = store.values(found[0].key)
        assert list(values) == [SearchUnit((0,))], "after a failure the cell's other units are not begun"
        assert "Traceback" in values[SearchUnit((0,))]["traceback"]
        assert store.retry() == 1
    assert_same_records(run(cells("broken", "plain", datasets=["iris"]), path), found)


class NotFinite:
    def compute(self, unit):
        return {"log_loss": float("nan")}


def test_a_figure_that_is_not_finite_is_a_failure():
    value = schedule.attempt(NotFinite(), RefitUnit(0, 1, 0, 0))
    assert "not JSON compliant" in value["error"]


def test_jobs_must_be_a_number_of_processes(tmp_path):
    with pytest.raises(ValueError, match="jobs must be at least 1"):
        run(cells("plain"), tmp_path / "study.db", jobs=0)


# --- progress --------------------------------------------------------------------------------------------


def test_progress_tells_of_every_record_once_and_ends_complete(tmp_path, monkeypatch):
    monkeypatch.setattr(schedule, "REPORT_SECONDS", 0.05)
    reports: list[Progress] = []
    found = run(cells("slow", "plain"), tmp_path / "study.db", progress=reports.append)
    told = [record.key for report in reports for record in report.new]
    assert sorted(told) == sorted(record.key for record in found)
    assert len(reports) > 2
    last = reports[-1]
    assert (last.cells, last.cells_done) == (4, 4)
    assert last.units == last.units_done
    assert [r.units_done for r in reports] == sorted(r.units_done for r in reports)
    assert reports[0].units == 4 * (5 + 2 * 4 * 2)
