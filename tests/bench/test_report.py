"""Writing a report: one file or several, whole or not at all."""

import csv

import pytest

from edrvfl.bench import sensitivity, timing
from edrvfl.bench.data import load_dataset
from edrvfl.bench.methods import METHODS
from edrvfl.bench.report import write_report
from edrvfl.bench.schedule import grid, run
from edrvfl.bench.store import Store, StoreError


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    path = tmp_path_factory.mktemp("study") / "study.db"
    methods = [METHODS[name] for name in ("edRVFL_O", "WPedRVFL")]
    run(list(grid(methods, [load_dataset(name) for name in ("iris", "wine")], 2, 2)), path, jobs=1)
    iris = [load_dataset("iris")]
    settings = {"n_layers": 2, "n_hidden": 8, "regularization": 1.0}
    run(sensitivity.make_cells(iris, weights=[0.5], rates=[0.5], seeds=2, settings=settings), path)
    run(timing.make_cells([METHODS["RVFL"], METHODS["WPedRVFL"]], iris, warmups=0, repeats=1), path)
    return path


@pytest.fixture(scope="module")
def empty(tmp_path_factory):
    path = tmp_path_factory.mktemp("empty") / "empty.db"
    Store(path).close()
    return path


def test_a_real_study_with_everything(store, tmp_path):
    page, *figures = write_report(
        store, tmp_path / "report.html", figures_folder=tmp_path / "new" / "figures"
    )
    text = page.read_text(encoding="utf-8")
    assert "Over the 2 datasets that all 2 compared methods have" in text
    assert len(figures) == 16  # no scatter: iris and wine are not in the paper
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


def test_an_empty_store(empty, tmp_path):
    (path,) = write_report(empty, tmp_path / "report", "html")
    assert "There is no finished cell of a search to report on." in path.read_text(encoding="utf-8")


def test_an_unknown_format_is_refused(empty, tmp_path):
    with pytest.raises(ValueError, match=r"'report\.pdf' does not tell the format; choose one of html"):
        write_report(empty, tmp_path / "report.pdf")
    with pytest.raises(ValueError, match="there is no format 'pdf'; choose one of html"):
        write_report(empty, tmp_path / "report.pdf", "pdf")


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
