"""The study on a real Dask cluster, of which a worker is killed."""

import os
import signal
import sys

import pytest
from quiet import assert_same_records, run_cell
from test_schedule import cells, finished_units

from edrvfl.bench import schedule
from edrvfl.bench.schedule import StudyError, run


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


def test_on_a_dask_cluster_of_which_a_worker_is_killed(tmp_path, cluster, monkeypatch):
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
    assert_same_records(found, [run_cell(cell) for cell in cells("slow")])


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
