"""The commands of `edrvfl bench`, one by one."""

import gzip
import importlib
import json
import os
import re
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from edrvfl import cli
from edrvfl.bench.methods import METHOD_GROUPS
from edrvfl.bench.record import RECORDS
from edrvfl.bench.store import CellState, Store
from edrvfl.cli.run import equal_methods
from edrvfl.cli.store import overview, seconds_left

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


# --- run ---------------------------------------------------------------------------------------------


def test_a_run_ends_in_a_table_and_is_remembered(bench, in_folder):
    status, out, err = bench("run", *TINY)
    assert status == 0
    header, _, row = out.splitlines()
    assert header.split() == ["dataset", "method", "paper", "choice", "strict", "choice", "search"]
    assert row.split()[:2] == ["iris", "edRVFL_O"]
    assert row.count("±") == 2
    assert "1 method on 1 dataset: 1 cell (a cell is one method on one dataset)" in err
    assert "each of 2 configurations and 2 seeds, in study.db" in err
    assert re.search(r"\[1/1\] iris  edRVFL_O  paper choice [\d.]+ ± [\d.]+  strict choice [\d.]+ ± ", err)
    assert "strict choice: each split chooses its own configuration" in err
    assert "`make demo` draws other splits" in err
    assert (in_folder / "study.db").exists()
    status, again, err = bench("run", *TINY, "--quiet")
    assert (status, again, err) == (0, out, "")


def test_defaults(monkeypatch, in_folder):
    asked = {}
    module = importlib.import_module("edrvfl.bench.schedule")
    monkeypatch.setattr(
        module, "run", lambda cells, store, **how: asked.update(how, cells=list(cells), store=store) or []
    )
    cli.main(["bench", "run", "--quiet"])
    assert {cell.method.name for cell in asked["cells"]} == set(METHOD_GROUPS["edrvfl"])
    assert {cell.dataset.name for cell in asked["cells"]} == {"iris", "wine", "breast_cancer", "digits"}
    assert {(len(c.configurations), c.seeds, c.device) for c in asked["cells"]} == {(10, 3, "cpu")}
    assert str(asked["store"]) == "study.db"
    assert asked["jobs"] >= 1
    cli.main(["bench", "run", "--quiet", "--paper", "--datasets", "iris"])
    assert {(len(cell.configurations), cell.seeds) for cell in asked["cells"]} == {(200, 10)}
    cli.main(["bench", "run", "--quiet", "--paper", "--seeds", "4", "--datasets", "iris,wine"])
    assert {(len(cell.configurations), cell.seeds) for cell in asked["cells"]} == {(200, 4)}
    assert {cell.dataset.name for cell in asked["cells"]} == {"iris", "wine"}


def test_methods_at_their_defaults(bench, in_folder):
    asked = ["defaults", "--datasets", "OJ", "iris", "--methods", "LightGBM", "--seeds", "1", "--jobs", "1"]
    status, out, err = bench(*asked)
    assert status == 0
    header, _, *rows = out.splitlines()
    assert " ".join(header.split()) == "dataset method test accuracy log-loss, calibration error fit"
    assert [row.split()[:2] for row in rows] == [["OJ", "LightGBM"], ["iris", "LightGBM"]]
    assert "[2/2] iris" in err
    assert bench(*asked, "--quiet") == (0, out, "")
    bench("report", "--out", "report.md")
    assert "Test accuracy in percent, mixed frames" in (in_folder / "report.md").read_text()
    status, _, err = bench("defaults", "--datasets", "OJ", "--methods", "RBF-SVM")
    assert (status, "RBF-SVM takes no frames" in err) == (2, True)


def test_equal_figures_are_explained(bench):
    # The first configuration is the neutral one, omega_r = 1 and p = 0, so these are the same networks.
    options = ["--datasets", "iris", "--jobs", "1", "--trials", "1", "--seeds", "2"]
    status, out, err = bench("run", *options, "--methods", "edRVFL_N", "WPedRVFL,edRVFL_O")
    assert status == 0
    rows = {line.split()[1]: line.split()[2:8] for line in out.splitlines()[2:]}
    assert rows["edRVFL_N"] == rows["WPedRVFL"]
    assert "The same figures: edRVFL_N and WPedRVFL on iris.\n" in err
    assert "networks in which weighting and pruning change nothing" in err


def test_figures_that_differ_need_no_explanation(bench):
    bench("run", *TINY, "--quiet")
    with Store("study.db") as store:
        assert equal_methods(store.records()) == {}


def test_a_table_of_one_s_own(bench, in_folder):
    lines = ["height,weight,kind"] + [f"{i % 7},{i * i % 11},{'ab'[i % 7 > 3]}" for i in range(60)]
    (in_folder / "[red]mine.csv").write_text("\n".join(lines))
    options = ["--methods", "edRVFL_O", "--trials", "1", "--seeds", "1", "--jobs", "1"]
    status, out, err = bench("run", "--csv", "[red]mine.csv", "--target", "kind", *options)
    assert status == 0
    assert out.splitlines()[-1].startswith("[red]mine")  # brackets in a name are no markup
    assert "each of 1 configuration and 1 seed, in" in err
    assert "make demo" not in err
    status, _, err = bench("run", "--csv", "[red]mine.csv", *options)
    assert (status, "--csv and --target go together" in err) == (2, True)
    status, _, err = bench("run", "--csv", "no.csv", "--target", "kind", *options)
    assert (status, err) == (2, "edrvfl: no.csv: No such file or directory\n")


@pytest.mark.parametrize(
    ("target", "kind", "score"), [("kind", "defaults", "test accuracy"), ("weight", "values", "R²")]
)
def test_a_table_of_one_s_own_with_texts_and_gaps_at_the_defaults(bench, in_folder, target, kind, score):
    rows = [f"{['red', 'blue', ''][i % 3]},{i * i % 11 + i / 7},{'ab'[i % 3 > 0]}" for i in range(60)]
    (in_folder / "mine.csv").write_text("\n".join(["colour,weight,kind", *rows]))
    options = ["--methods", "edRVFL portfolio,LightGBM", "--seeds", "1", "--jobs", "1"]
    status, out, _ = bench("defaults", "--csv", "mine.csv", "--target", target, *options)
    assert status == 0
    assert score in out
    with Store("study.db") as store:
        found = store.records_of(RECORDS[kind])
    assert [(r.dataset, r.method, r.status) for r in found] == [
        ("mine", "LightGBM", "ok"),
        ("mine", "edRVFL portfolio", "ok"),
    ]
    if kind == "defaults":
        assert found[1].accuracy > 95, "the colour tells the kind"
    status, _, err = bench("defaults", "--csv", "mine.csv", *options)
    assert (status, "--csv and --target go together" in err) == (2, True)


def test_a_table_that_cannot_be_compared_at_the_defaults_is_refused(bench, in_folder):
    for name, text, phrase in (
        ("few.csv", "a,kind\n" + "1,x\n" * 20 + "2,y\n" * 2, "2 of them of 'y'; merge or drop small classes"),
        ("oj.csv", "a,kind\n1,x\n", "'oj' already names a dataset of the study; rename the file"),
        ("other.csv", "a,kinds\n1,x\n", "there is no column 'kind' (--target). Did you mean 'kinds'?"),
    ):
        (in_folder / name).write_text(text)
        status, _, err = bench("defaults", "--csv", name, "--target", "kind")
        assert (status, phrase in err) == (2, True), err


@pytest.mark.parametrize(
    ("option", "phrase"),
    [(["--methods", "WPedRVLF"], "no method 'WPedRVLF'"), (["--datasets", "iriss"], "no dataset 'iriss'")],
)
def test_wrong_names_are_told(bench, in_folder, option, phrase):
    status, out, err = bench("run", *option)
    assert (status, out) == (2, "")
    assert phrase in err
    assert "id you mean" in err
    assert not [*Path().iterdir()]


def test_a_method_whose_package_is_missing_is_refused_before_the_run(bench, monkeypatch):
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    status, _, err = bench("run", "--methods", "LightGBM", "--datasets", "iris")
    assert status == 2
    assert "LightGBM" in err
    assert "pip install 'edrvfl[peers]'" in err
    assert not [*Path().iterdir()]


def test_a_device_that_is_not_there_is_told_before_the_run(bench, in_folder):
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("there is a CUDA device here")
    status, _, err = bench("run", *TINY, "--device", "cuda")
    assert (status, "torch sees no CUDA device here" in err) == (2, True)
    assert not [*Path().iterdir()]


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_the_sign_falls_back_where_it_cannot_be_written(bench, encoding, monkeypatch, in_folder):
    bench("run", *TINY, "--quiet")
    with Path("out.txt").open("w", encoding=encoding) as stream:
        monkeypatch.setattr(sys, "stdout", stream)
        status = cli.main(["bench", "run", *TINY, "--quiet"])
    assert status == 0
    row = Path("out.txt").read_text(encoding).splitlines()[-1]
    assert row.count("+-" if encoding == "ascii" else "±") == 2


# --- the store ---------------------------------------------------------------------------------------


def test_status_export_import_and_retry(bench, in_folder):
    bench("run", *TINY, "--quiet")
    status, out, err = bench("status")
    assert status == 0
    assert "1 cell: 1 done, 0 failed, 0 started, 0 waiting." in out
    assert "a unit is one step of its search, or one refit" in err
    assert bench("export", "study.jsonl")[:2] == (0, "1 record with all searches: study.jsonl\n")
    text = bench("export")[1]
    assert text == (in_folder / "study.jsonl").read_text()
    bench("export", "study.jsonl.gz")
    assert gzip.decompress(Path("study.jsonl.gz").read_bytes()).decode() == text
    for number, file in enumerate(("study.jsonl", "study.jsonl.gz")):
        status, out, _ = bench("import", "--store", f"other{number}.db", file)
        assert (status, out.startswith(f"{file}: 1 new record, 0 known;")) == (0, True)
        assert bench("export", "--store", f"other{number}.db")[1] == text
    assert bench("import", "study.jsonl")[1].startswith("study.jsonl: 0 new records, 1 known;")
    assert bench("retry")[1].startswith("0 failed cells open again")


def test_an_import_that_contradicts_is_reported(bench, in_folder):
    bench("run", *TINY, "--quiet")
    record = json.loads(bench("export")[1].splitlines()[-1])
    record["record"]["choices"]["paper"]["test_accuracy"][0][0] += 0.25
    (in_folder / "other.jsonl").write_text(json.dumps(record))
    status, _, err = bench("import", "other.jsonl")
    assert status == 1
    assert "differs from what is stored, which was kept: record of edRVFL_O on iris" in err


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("missing.jsonl", None, "No such file"),
        ("cut.jsonl.gz", gzip.compress(b"x" * 10**5)[:-20], "end-of-stream"),
        ("block.jsonl.gz", gzip.compress(os.urandom(10**4))[:500] + b"\xff" * 500, "block.jsonl.gz"),
        ("plain.jsonl.gz", b"no gzip at all", "gzip"),
        ("latin.jsonl", "Größe".encode("latin-1"), "UTF-8"),
        ("wrong.jsonl", b"[1, 2]\n", "line 1: not a line of a study export"),
        ("half.jsonl", b'{"kind": ', "line 1: not a line of a study export"),
    ],
)
def test_an_import_that_fails_names_the_file_and_leaves_no_store(bench, name, content, reason):
    if content is not None:
        Path(name).write_bytes(content)
    status, out, err = bench("import", name)
    assert (status, out) == (2, "")
    assert err.startswith(f"edrvfl: {name}")
    assert reason in err
    assert "Nothing was" in err
    assert [path.name for path in Path().iterdir()] == ([] if content is None else [name])


def test_a_failed_cell_is_shown_and_told_how_to_retry(bench, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr("edrvfl.bench.protocol.StudyCell.compute", lambda cell, unit: 1 / 0)
        status, out, err = bench("run", *TINY)
    assert status == 1
    assert "failed" in out
    assert "ZeroDivisionError: division by zero" in out
    assert "1 cell failed; `edrvfl bench retry --store study.db`" in err
    status, out, _ = bench("status")
    rows = [line for line in out.splitlines() if line.startswith("iris")]
    assert len(rows) == 1
    assert "ZeroDivisionError" not in rows[0]  # a long message would make the table too wide
    assert "edRVFL_O on iris failed: " in out
    assert bench("retry")[1].startswith("1 failed cell open again")
    assert bench("run", *TINY, "--quiet")[0] == 0


def test_trouble_with_the_store_is_a_message(bench, in_folder):
    (in_folder / "study.db").write_text("no store " * 100)
    for command in (["run", *TINY], ["status"], ["export"], ["retry"]):
        status, _, err = bench(*command)
        assert status == 1
        assert err.splitlines()[-1].startswith("edrvfl: study.db: not a study store")
    status, _, err = bench("status", "--store", "missing.db")
    assert (status, "no such store" in err) == (1, True)


def test_an_export_that_cannot_be_written_is_told(bench, in_folder):
    bench("run", *TINY, "--quiet")
    status, _, err = bench("export", "nowhere/study.jsonl")
    assert (status, "nowhere/study.jsonl: cannot be written" in err) == (2, True)


# --- time left ---------------------------------------------------------------------------------------


def a_state(**values):
    names = {"key": "k", "kind": "study", "method": "m", "dataset": "d", "status": "waiting", "message": None}
    return CellState(**names | {"trials": 1, "seeds": 1, "done": 0, "units": 10, "seconds": 0.0} | values)


def test_time_left_is_units_left_at_the_pace_of_the_dataset():
    fast = a_state(dataset="fast", status="started", done=5, seconds=5.0)
    slow = a_state(dataset="slow", status="ok", done=10, seconds=100.0)
    assert seconds_left([fast, slow]) == pytest.approx(5 * 1.0)
    assert seconds_left([fast, slow, a_state(dataset="slow")]) == pytest.approx(5 + 10 * 10)
    assert seconds_left([fast, slow, a_state(dataset="new")]) == pytest.approx(5 + 10 * 7)
    assert seconds_left([slow]) == 0
    assert seconds_left([a_state()]) is None
    assert "not known" in overview([a_state()])
    assert "At most 5 s of one worker's time left" in overview([fast, slow])


# --- data, report ------------------------------------------------------------------------------------


def test_data_lists_the_datasets_and_says_how_to_get_the_missing_ones(bench, monkeypatch, tmp_path):
    monkeypatch.setenv("EDRVFL_DATA", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))  # where nothing was downloaded
    status, out, err = bench("data")
    assert status == 0
    rows = [line.split() for line in out.splitlines()]
    assert ["iris", "demo", "150", "4", "3"] in [row[:5] for row in rows]
    assert ["abalone", "uci24"] in [row[:2] for row in rows]
    assert "24 datasets not here: `edrvfl bench data --fetch` downloads the 24" in err


def test_report_writes_a_page(bench):
    bench("run", *TINY, "--quiet")
    status, out, _ = bench("report", "--out", "page.md")
    assert (status, out) == (0, "page.md\n")
    assert "edRVFL\\_O" in Path("page.md").read_text()


def test_sensitivity_and_timing_are_kept_in_the_store(bench):
    few = ["--weights", "0.5", "--rates", "0.5", "--activations", "relu", "--seeds", "1", "--jobs", "1"]
    status, out, err = bench("sensitivity", "--datasets", "iris", *few)
    assert status == 0
    header, _, *rows = out.splitlines()
    assert header.split() == ["dataset", "activation", "omega_r", "p", "test", "accuracy"]
    assert [row.split()[:4] for row in rows] == [
        ["iris", "relu", "1", "0"],
        ["iris", "relu", "0.5", "0"],
        ["iris", "relu", "1", "0.5"],
    ]
    assert "[3/3] iris  relu" in err
    assert bench("sensitivity", "--datasets", "iris", *few, "--quiet") == (0, out, "")
    status, out, _ = bench("timing", "--datasets", "iris", "--repeats", "1")
    assert (status, out.splitlines()[-1].split()[:4]) == (0, ["iris", "WPedRVFL", "112", "4"])
    assert "4 cells: 4 done" in bench("status")[1]


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="no terminals here")
def test_a_terminal_gets_a_bar_and_the_lines_above_it(in_folder, monkeypatch, capsys):
    for name, value in {"TERM": "xterm", "COLUMNS": "150", "NO_COLOR": "1"}.items():
        monkeypatch.setenv(name, value)
    terminal, inside = os.openpty()
    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit(read_terminal, terminal)  # a terminal that nobody reads stops who writes
        with os.fdopen(inside, "w") as screen, monkeypatch.context() as patch:
            patch.setattr(sys, "stderr", screen)
            assert cli.main(["bench", "run", *TINY]) == 0
        shown = reading.result()
    assert "[1/1] iris  edRVFL_O" in shown
    assert "cells 1/1, best on iris: edRVFL_O" in shown
    assert re.search(r"━ *(\d+)/\1 units", shown)
    assert capsys.readouterr().out.splitlines()[0].split()[0] == "dataset"


def read_terminal(terminal):
    """Read what a terminal shows until nobody writes any more."""
    shown = b""
    with os.fdopen(terminal, "rb", buffering=0) as screen, suppress(OSError):  # Linux ends it by an error
        while piece := screen.read(2**16):
            shown += piece
    return shown.decode(errors="replace")
