"""From a store that was really run to a report: what is read, and files that are whole or not there."""

import csv

import numpy as np
import pytest

from edrvfl.bench import sensitivity, timing
from edrvfl.bench.cell import SearchUnit
from edrvfl.bench.data import load_dataset
from edrvfl.bench.methods import METHODS
from edrvfl.bench.record import SensitivityRecord, TimingRecord
from edrvfl.bench.report import write_report
from edrvfl.bench.report.study import Result, choose_results, dataset_facts, read_study
from edrvfl.bench.schedule import grid, run
from edrvfl.bench.store import Store, StoreError


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """Two methods on wine and both experiments, done; one cell on iris that was noted but not begun."""
    path = tmp_path_factory.mktemp("study") / "study.db"
    both, iris = [METHODS["edRVFL_O"], METHODS["WPedRVFL"]], [load_dataset("iris")]
    run(list(grid(both, [load_dataset("wine")], 2, 2)), path, jobs=1)
    with Store(path) as opened:
        opened.add_cells(list(grid([METHODS["WPedRVFL"]], iris, 2, 2)))
    settings = {"n_layers": 2, "n_hidden": 8, "regularization": 1.0}
    run(sensitivity.make_cells(iris, weights=[0.5], rates=[0.5], seeds=2, settings=settings), path)
    run(timing.make_cells([METHODS["RVFL"], METHODS["WPedRVFL"]], iris, warmups=0, repeats=1), path)
    return path


# --- reading ---------------------------------------------------------------------------------------------


def test_results_are_those_of_the_records(store):
    study = read_study(store)
    with Store(store) as opened:
        record = next(r for r in opened.records() if r.method == "WPedRVFL")
        values = opened.values(record.key)
    result = choose_results(study.results)["wine", "WPedRVFL"]
    assert result.scored == record.choices
    assert result.fit_seconds == np.median(record.choices["strict"].fit_seconds)
    assert (result.status, result.configurations, result.seeds) == ("ok", 2, 2)
    assert result.origins["numpy"] == np.__version__

    searched = [c for unit, v in values.items() if isinstance(unit, SearchUnit) for c in v["scores"]]
    by_hand = [max(100 * np.mean([split[l] for split in c]) for c in searched) for l in range(10)]
    assert len(searched) == 2
    assert study.depth_accuracies["wine", "WPedRVFL"] == pytest.approx(by_hand)
    noted = choose_results(study.results)["iris", "WPedRVFL"]
    assert noted.status == "missing"
    assert noted.message.startswith("0 of at most ")


def test_the_farthest_then_the_largest_then_the_latest_is_chosen():
    results = [
        Result("iris", "a", "ok", configurations=10, finished="2024"),
        Result("iris", "a", "ok", configurations=200, finished="2023"),
        Result("iris", "a", "ok", configurations=200, finished="2024", key="this one"),
        Result("iris", "a", "failed", configurations=500),
        Result("iris", "a", "missing", configurations=900),
    ]
    for some in (results, results[::-1]):
        assert choose_results(some)["iris", "a"].key == "this one"
    assert choose_results(results[3:])["iris", "a"].status == "failed"


def test_experiments_are_read(store):
    study = read_study(store)
    with Store(store) as opened:
        points, times = opened.records_of(SensitivityRecord), opened.records_of(TimingRecord)
    assert len(points) == 6  # two activations; both parameters neutral, and each of them not
    curves = study.sensitivity.curves("correct_weight")
    assert {r.key for some in curves.values() for r in some} == {p.key for p in points if p.prune_rate == 0}
    assert {t.method: t.seconds for t in study.timing.timed} == {t.method: t.seconds for t in times}


def test_facts_of_datasets():
    assert dataset_facts("glass")[0].startswith("214 / 9 / ")
    assert dataset_facts("adult")[2] == "published: one fixed test file"
    assert dataset_facts("iris")[2].endswith("drawn by edrvfl")
    assert dataset_facts("mine.csv")[2].endswith("(own table)")


# --- writing ---------------------------------------------------------------------------------------------


def test_a_real_study_with_everything(store, tmp_path):
    page, *figures = write_report(
        store, tmp_path / "report.html", figures_folder=tmp_path / "new" / "figures"
    )
    text = page.read_text(encoding="utf-8")
    assert "Over the 1 dataset that all 2 compared methods have" in text
    assert len(figures) == 12  # one dataset, not in the paper: no scatter and no ranks with bars
    for svg, data in zip(figures[::2], figures[1::2], strict=True):
        assert svg.read_text(encoding="utf-8").startswith("<?xml")
        with data.open(encoding="utf-8") as file:
            assert len(list(csv.DictReader(file))) > 0
        assert f'download="{data.name}"' in text
    assert sorted(path.name for path in tmp_path.iterdir()) == ["new", "report.html"]


@pytest.mark.parametrize(("name", "start"), [("r.md", "# edRVFL"), ("r.csv", "dataset,")])
def test_the_ending_tells_the_format(store, tmp_path, name, start):
    (path,) = write_report(store, tmp_path / name)
    assert path.read_text(encoding="utf-8").startswith(start)


def test_an_unknown_format_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"'report\.pdf' does not tell the format; choose one of html"):
        write_report("none.db", tmp_path / "report.pdf")
    with pytest.raises(ValueError, match="there is no format 'pdf'; choose one of html"):
        write_report("none.db", tmp_path / "report.pdf", "pdf")


@pytest.mark.parametrize(
    ("out", "figures"),
    [
        ("/dev/null/x.html", None),
        ("/proc/x.html", None),
        ("report.html", "/dev/null/f"),
        ("report.html", "/proc/f"),
    ],
)
def test_a_place_that_cannot_be_written_is_named_before_the_work(out, figures, tmp_path):
    """There is no store at all, so an error about the place comes before the store is read."""
    with pytest.raises(OSError, match=f"^{figures or out}: cannot be written"):
        write_report(tmp_path / "none.db", tmp_path / out, figures_folder=figures)
    assert not list(tmp_path.iterdir())


def test_a_failure_leaves_the_old_report(tmp_path):
    (tmp_path / "report.html").write_text("old")
    with pytest.raises(StoreError, match="no such store"):
        write_report(tmp_path / "none.db", tmp_path / "report.html")
    assert (tmp_path / "report.html").read_text() == "old"
