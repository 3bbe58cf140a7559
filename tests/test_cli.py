import json
import os
import signal
import subprocess
import sys
import time

import pytest

from edrvfl import cli
from edrvfl.bench.store import CellState, Store

TINY = ["--methods", "edRVFL_O", "--datasets", "iris", "--trials", "2", "--seeds", "2", "--jobs", "1"]


@pytest.fixture
def in_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def bench(in_folder, capsys):
    """Call `edrvfl bench ...` here: exit status, output, errors."""

    def call(*arguments):
        status = cli.main(["bench", *arguments])
        return (status, *capsys.readouterr())

    return call


def test_a_run_ends_in_a_table_and_is_remembered(bench, in_folder):
    status, out, err = bench("run", *TINY)
    assert status == 0
    header, rule, row = out.splitlines()
    assert header.split() == ["dataset", "method", "paper", "choice", "strict", "choice", "search"]
    assert set(rule) == {"-", " "}
    assert row.startswith("iris     edRVFL_O  9")
    assert row.count("±") == 2
    assert "1 cells (methods: 1, datasets: 1) of 2 configurations and 2 seeds, in study.db" in err
    assert "[1/1] iris" in err
    assert (in_folder / "study.db").exists()
    status, again, err = bench("run", *TINY, "--quiet")
    assert (status, again, err) == (0, out, "")


def test_defaults(monkeypatch, in_folder):
    asked = {}
    monkeypatch.setattr(
        cli, "run", lambda cells, store, **how: asked.update(how, cells=list(cells), store=store) or []
    )
    cli.main(["bench", "run", "--quiet"])
    assert len(asked["cells"]) == 5 * 4
    assert {cell.dataset.name for cell in asked["cells"]} == {"iris", "wine", "breast_cancer", "digits"}
    assert {(len(cell.configurations), cell.seeds, cell.device) for cell in asked["cells"]} == {
        (10, 3, "cpu")
    }
    assert str(asked["store"]) == "study.db"
    assert asked["jobs"] >= 1
    cli.main(["bench", "run", "--quiet", "--paper", "--datasets", "iris"])
    assert {(len(cell.configurations), cell.seeds) for cell in asked["cells"]} == {(200, 10)}
    cli.main(["bench", "run", "--quiet", "--paper", "--seeds", "4", "--datasets", "iris"])
    assert {(len(cell.configurations), cell.seeds) for cell in asked["cells"]} == {(200, 4)}


def test_a_table_of_one_s_own(bench, in_folder):
    lines = ["height,weight,kind"] + [f"{i % 7},{i * i % 11},{'ab'[i % 7 > 3]}" for i in range(60)]
    (in_folder / "mine.csv").write_text("\n".join(lines))
    options = ["--methods", "edRVFL_O", "--trials", "1", "--seeds", "1", "--jobs", "1", "--quiet"]
    status, out, _ = bench("run", "--csv", "mine.csv", "--target", "kind", *options)
    assert status == 0
    assert out.splitlines()[-1].startswith("mine")
    status, _, err = bench("run", "--csv", "mine.csv", *options)
    assert status == 2
    assert "--csv and --target go together" in err


@pytest.mark.parametrize(
    ("option", "phrase"),
    [
        (
            ["--methods", "WPedRVLF"],
            "no method 'WPedRVLF'; did you mean 'WPedRVFL'? Methods and groups: SNN",
        ),
        (["--datasets", "iriss"], "no dataset 'iriss'; did you mean 'iris'?"),
    ],
)
def test_wrong_names_get_the_right_ones_and_the_nearest(bench, option, phrase):
    status, out, err = bench("run", *option)
    assert (status, out) == (2, "")
    assert phrase in err
    assert "Traceback" not in err


def test_wrong_numbers_are_refused(bench):
    with pytest.raises(SystemExit) as caught:
        bench("run", "--trials", "0")
    assert caught.value.code == 2


def test_status_export_import_and_retry(bench, in_folder):
    bench("run", *TINY, "--quiet")
    status, out, _ = bench("status")
    assert status == 0
    assert "1 cells: 1 done, 0 failed, 0 started, 0 waiting." in out
    status, out, _ = bench("export", "study.jsonl")
    assert (status, out) == (0, "1 records with their units: study.jsonl\n")
    status, text, _ = bench("export")
    assert text == (in_folder / "study.jsonl").read_text()
    assert {json.loads(line)["kind"] for line in text.splitlines()} == {"store", "cell", "unit", "record"}
    status, out, _ = bench("import", "--store", "other.db", "study.jsonl")
    assert status == 0
    assert out.startswith("study.jsonl: 1 new records, 0 known;")
    assert bench("export", "--store", "other.db")[1] == text
    assert bench("retry")[1].startswith("0 failed cells")


def test_an_import_that_contradicts_is_reported(bench, in_folder):
    bench("run", *TINY, "--quiet")
    lines = bench("export")[1].splitlines()
    record = json.loads(lines[-1])
    record["record"]["choices"]["paper"]["test_accuracy"][0][0] += 0.25
    (in_folder / "other.jsonl").write_text(json.dumps(record))
    status, _, err = bench("import", "other.jsonl")
    assert status == 1
    assert "differs from what is stored, which was kept: record of edRVFL_O on iris" in err
    (in_folder / "broken.jsonl").write_text(lines[0] + "\n" + lines[1][:50])
    status, _, err = bench("import", "broken.jsonl")
    assert status == 2
    assert "broken.jsonl, line 2: not a line of a study export" in err
    status, _, err = bench("import", "missing.jsonl")
    assert (status, "cannot be read" in err) == (2, True)


def test_a_failed_cell_is_shown_and_told_how_to_retry(bench, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr("edrvfl.bench.schedule.compute", lambda cell, unit: 1 / 0)
        status, out, err = bench("run", *TINY)
    assert status == 1
    assert "failed" in out
    assert "search/0: ZeroDivisionError: division by zero" in out
    assert "`edrvfl bench retry --store study.db`" in err
    assert "failed: search/0: ZeroDivisionError" in bench("status")[1]
    assert bench("retry")[1].startswith("1 failed cells are open again")
    assert bench("run", *TINY, "--quiet")[0] == 0


def test_trouble_with_the_store_is_a_message(bench, in_folder):
    (in_folder / "study.db").write_text("no store " * 100)
    for command in (["run", *TINY], ["status"], ["export"], ["retry"]):
        status, _, err = bench(*command)
        assert status == 1
        assert err.splitlines()[-1].startswith("edrvfl: study.db: not a study store")
    status, _, err = bench("status", "--store", "missing.db")
    assert (status, "no such store" in err) == (1, True)


def test_an_export_that_cannot_be_written_leaves_the_last_one(bench, in_folder):
    bench("run", *TINY, "--quiet")
    status, _, err = bench("export", "nowhere/study.jsonl")
    assert status == 1
    assert "cannot be written" in err


def test_data_lists_the_datasets(bench):
    status, out, _ = bench("data")
    assert status == 0
    rows = [line.split() for line in out.splitlines()]
    assert ["iris", "demo", "150", "4", "3"] in [row[:5] for row in rows]
    assert ["abalone", "uci24"] in [row[:2] for row in rows]


def test_a_device_that_is_not_there_is_said_before_the_run(bench, in_folder):
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("there is a CUDA device here")
    status, _, err = bench("run", *TINY, "--device", "cuda")
    assert (status, "torch sees no CUDA device here" in err) == (2, True)
    assert not (in_folder / "study.db").exists()


def a_state(**values):
    known = {
        "key": "k",
        "method": "m",
        "dataset": "d",
        "trials": 1,
        "seeds": 1,
        "status": "waiting",
        "done": 0,
        "units": 10,
        "seconds": 0.0,
        "message": None,
    }
    return CellState(**known | values)


def test_time_left_is_units_left_at_the_pace_of_the_dataset():
    fast = a_state(dataset="fast", status="started", done=5, seconds=5.0)
    slow = a_state(dataset="slow", status="ok", done=10, seconds=100.0)
    assert cli.seconds_left([fast, slow]) == pytest.approx(5 * 1.0)
    assert cli.seconds_left([fast, slow, a_state(dataset="slow")]) == pytest.approx(5 + 10 * 10)
    assert cli.seconds_left([fast, slow, a_state(dataset="new")]) == pytest.approx(5 + 10 * 7)
    assert cli.seconds_left([slow]) == 0
    assert cli.seconds_left([a_state()]) is None
    assert "not known" in cli.overview([a_state()])
    assert "At most 5 s of one worker's time left" in cli.overview([fast, slow])


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_ctrl_c_ends_cleanly_and_says_how_to_go_on(tmp_path, jobs):
    path = tmp_path / "study.db"
    options = ["bench", "run", "--datasets", "iris", "--trials", "50", "--store", str(path), "--jobs", jobs]
    process = subprocess.Popen(
        [sys.executable, "-m", "edrvfl.cli", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        time.sleep(0.05)
        if path.exists():
            with Store(path) as store:
                if store.counts():
                    break
    os.killpg(process.pid, signal.SIGINT)  # a terminal tells the whole group
    out, err = process.communicate(timeout=120)
    assert process.returncode == 130
    assert out == ""
    assert "Interrupted. What was done is stored; go on with\n  edrvfl bench run --datasets iris" in err
    assert "Traceback" not in err
    with Store(path) as store:
        assert not any(held.live for held in store.held())
