"""Real processes, real SIGKILL, a real Dask cluster: the records are always those of a quiet run."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections import Counter
from functools import partial
from pathlib import Path

import pytest
from scipy import stats
from threadpoolctl import threadpool_info, threadpool_limits

from edrvfl import draw_configurations, variant
from edrvfl.bench import schedule
from edrvfl.bench.datasets import load_dataset
from edrvfl.bench.methods import Method
from edrvfl.bench.protocol import run_cell
from edrvfl.bench.schedule import Progress, StudyError, grid, run
from edrvfl.bench.store import Store, StoreError, _born

HERE = Path(__file__).parent


def readouts(trials, seed):
    space = {"regularization": stats.loguniform(0.01, 100), "correct_weight": [0.4, 0.7, 1.0]}
    return draw_configurations(trials, seed, space=space)


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


METHODS = {
    "weighted": Method("weighted", partial(narrow, "WPedRVFL"), readouts, depth="n_layers"),
    "plain": Method("plain", partial(narrow, "edRVFL_O"), readouts, depth="n_layers"),
    "slow": Method("slow", partial(slow, "WPedRVFL"), readouts, depth="n_layers"),
    "one thread": Method("one thread", one_thread_only, readouts, depth="n_layers"),
    "broken": Method("broken", partial(variant, "WPedRVFL", n_layers=-1), readouts),
    "deadly": Method("deadly", deadly, readouts),
}


def cells(*names, trials=5, seeds=2, datasets=("iris", "wine")):
    return list(grid([METHODS[n] for n in names], map(load_dataset, datasets), trials, seeds))


def timeless(records):
    return [record.without_times() for record in records]


@pytest.fixture(scope="module")
def quiet_run():
    """Records of the slow method, made without a store."""
    return timeless(run_cell(cell) for cell in cells("slow"))


def begun(path):
    """How often units were begun, and by how many processes."""
    with Store(path) as store:
        pids = {pid for (pid,) in store._read("SELECT pid FROM leases")}
        return Counter(store.attempts().values()), len(pids)


def finished_units(path):
    if not path.exists():
        return 0
    with Store(path) as store:
        return sum(store.counts().values())


def workers_of(path):
    with Store(path) as store:
        return {held.pid for held in store.held() if held.live}


def wait_for(condition, seconds=120.0):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.01)


RUN = """
    import sys
    sys.path.insert(0, sys.argv[1])
    from test_schedule import cells, run
    if __name__ == "__main__":
        run(cells("slow"), sys.argv[2], jobs=int(sys.argv[3]))
"""


@pytest.fixture
def start(tmp_path):
    """Start the slow study in a process of its own; whatever is left of it ends with the test."""
    script = tmp_path / "study.py"
    script.write_text(textwrap.dedent(RUN))
    started = []

    def start_one(path, jobs=1):
        command = [sys.executable, script, HERE, path, str(jobs)]
        started.append(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
        return started[-1]

    yield start_one
    for process in started:
        process.kill()
        process.communicate()


# --- who works does not matter ---------------------------------------------------------------------------


def test_the_grid_goes_dataset_by_dataset():
    names = [(cell.dataset.name, cell.method.name) for cell in cells("weighted", "plain")]
    assert names == [("iris", "weighted"), ("iris", "plain"), ("wine", "weighted"), ("wine", "plain")]


def test_in_this_process(tmp_path, quiet_run):
    path = tmp_path / "study.db"
    assert timeless(run(cells("slow"), path)) == quiet_run
    assert begun(path) == ({1: finished_units(path)}, 1)


def test_a_finished_study_is_not_done_again(tmp_path, quiet_run, monkeypatch):
    path = tmp_path / "study.db"
    first = run(cells("slow"), path)
    monkeypatch.setattr(schedule, "compute", None)
    assert run(cells("slow"), path) == first


def test_in_two_processes(tmp_path, quiet_run):
    path = tmp_path / "study.db"
    assert timeless(run(cells("slow"), path, jobs=2)) == quiet_run
    assert begun(path) == ({1: finished_units(path)}, 2)


def test_four_runs_at_once_share_the_work(tmp_path, quiet_run, start):
    path = tmp_path / "study.db"
    for process in [start(path) for _ in range(4)]:
        assert process.communicate(timeout=180)[1] == ""
        assert process.returncode == 0
    with Store(path) as store:
        assert timeless(store.records()) == quiet_run
    attempts, workers = begun(path)
    assert attempts == {1: finished_units(path)}, "nothing was done twice"
    assert workers > 1


@pytest.mark.parametrize("jobs", [1, 2])
def test_every_unit_is_done_on_one_thread(tmp_path, jobs):
    with threadpool_limits(2):
        (record,) = run(cells("one thread", datasets=["iris"]), tmp_path / "study.db", jobs=jobs)
    assert record.status == "ok", record.message


def test_a_study_grows(tmp_path):
    path = tmp_path / "study.db"
    (first,) = run(cells("plain", datasets=["iris"]), path)
    assert run(cells("weighted", "plain", datasets=["iris"]), path)[1] == first
    with Store(path) as store:
        assert len(store.records()) == 2


# --- killed and taken up again ---------------------------------------------------------------------------


@pytest.mark.parametrize("jobs", [1, 2])
def test_killed_and_started_again(tmp_path, quiet_run, start, jobs):
    path = tmp_path / "study.db"
    for after in (1, 12):
        process = start(path, jobs)
        wait_for(lambda after=after: finished_units(path) > after)
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert timeless(run(cells("slow"), path)) == quiet_run
    attempts, _ = begun(path)
    repeated = sum((n - 1) * count for n, count in attempts.items())
    assert repeated <= 2 * jobs, "a kill costs at most the units in work"


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="cannot see whether a process lives")
def test_the_workers_of_a_killed_run_end_by_themselves(tmp_path, start):
    path = tmp_path / "study.db"
    process = start(path, jobs=2)
    wait_for(lambda: finished_units(path) > 2 and workers_of(path))
    workers = workers_of(path)
    process.kill()
    process.wait()
    wait_for(lambda: not any(_born(pid) for pid in workers), seconds=30 * schedule.BEAT_SECONDS)


def test_a_dead_worker_is_replaced(tmp_path, quiet_run, start):
    path = tmp_path / "study.db"
    process = start(path, jobs=2)
    wait_for(lambda: finished_units(path) > 2 and workers_of(path))
    os.kill(workers_of(path).pop(), signal.SIGKILL)
    assert process.communicate(timeout=180)[1] == ""
    assert process.returncode == 0
    with Store(path) as store:
        assert timeless(store.records()) == quiet_run


def test_a_unit_over_which_workers_die_is_given_up_and_the_rest_goes_on(tmp_path):
    found = run(cells("deadly", "plain", trials=1, seeds=1, datasets=["iris"]), tmp_path / "study.db", jobs=2)
    assert [record.status for record in found] == ["failed", "ok"]
    assert "3 worker processes died over it (exit code -9)" in found[0].message


# --- failures --------------------------------------------------------------------------------------------


def test_a_failure_is_a_record_and_the_others_go_on(tmp_path):
    path = tmp_path / "study.db"
    found = run(cells("broken", "plain", datasets=["iris"]), path)
    assert [record.status for record in found] == ["failed", "ok"]
    assert found[0].message.startswith("search/0: ")
    assert "The 'n_layers' parameter" in found[0].message
    with Store(path) as store:
        assert "Traceback" in store.values(found[0].key)[0]["search/0"]["traceback"]
        assert store.retry() == 1
    (again, _) = run(cells("broken", "plain", datasets=["iris"]), path)
    assert again.without_times() == found[0].without_times()


def test_a_figure_that_is_not_finite_is_a_failure(monkeypatch):
    monkeypatch.setattr(schedule, "compute", lambda cell, unit: {"log_loss": float("nan")})
    assert "not JSON compliant" in schedule.attempt(None, "refit/0/1/0/0")["error"]


def test_trouble_with_the_store_ends_the_run_with_its_message(tmp_path):
    path = tmp_path / "study.db"
    path.write_text("not a store " * 100)
    with pytest.raises(StoreError, match="not a study store"):
        run(cells("plain"), path)


def test_trouble_in_a_worker_reaches_the_parent(tmp_path):
    path = tmp_path / "study.db"
    path.write_text("not a store " * 100)
    with pytest.raises(StudyError, match="not a study store"):
        schedule._in_processes(tuple(cells("plain")), path, 2)


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


# --- Dask ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def distributed():
    pytest.importorskip("dask")
    return pytest.importorskip("distributed")


@pytest.fixture(scope="module")
def cluster(distributed):
    import dask

    with (
        dask.config.set({"distributed.comm.timeouts.connect": "2s"}),
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            dashboard_address="127.0.0.1:0",  # any free port: two clusters may run at a time
            silence_logs=50,
        ) as running,
    ):
        yield running


def test_on_a_dask_cluster_of_which_a_worker_is_killed(tmp_path, quiet_run, cluster, monkeypatch):
    monkeypatch.setattr(schedule, "REPORT_SECONDS", 0.02)
    path = tmp_path / "study.db"
    victim = next(iter(cluster.workers.values())).pid
    killed = []

    def kill_in_the_middle(progress):
        if not killed and progress.units_done > 5:
            os.kill(victim, signal.SIGKILL)
            killed.append(progress.units_done)

    found = run(cells("slow"), path, scheduler=cluster.scheduler_address, progress=kill_in_the_middle)
    assert killed
    assert killed[0] < finished_units(path)
    assert timeless(found) == quiet_run
    assert begun(path) == ({1: finished_units(path)}, 1), "the coordinator alone holds leases"


def test_a_failure_on_a_dask_cluster_is_a_record(tmp_path, cluster):
    found = run(
        cells("broken", "one thread", datasets=["iris"]),
        tmp_path / "study.db",
        scheduler=cluster.scheduler_address,
    )
    assert [record.status for record in found] == ["failed", "ok"], found[1].message
    assert "The 'n_layers' parameter" in found[0].message


def test_no_scheduler_answers(tmp_path, distributed):
    import dask

    with (
        dask.config.set({"distributed.comm.timeouts.connect": "0.2s"}),
        pytest.raises(StudyError, match=r"No Dask scheduler answers at 'tcp://127\.0\.0\.1:9'"),
    ):
        run(cells("plain"), tmp_path / "study.db", scheduler="tcp://127.0.0.1:9")


def test_dask_is_asked_for_by_name(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(StudyError, match=r"pip install 'edrvfl\[dask\]'"):
        run(cells("plain"), tmp_path / "study.db", scheduler="tcp://127.0.0.1:9")
