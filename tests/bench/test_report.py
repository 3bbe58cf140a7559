import csv
import dataclasses
import html.parser
import io
import json
import re
import zlib

import numpy as np
import pytest

from edrvfl.bench import published
from edrvfl.bench.datasets import load_dataset
from edrvfl.bench.experiments import Point, Sensitivity, Timed, Timing
from edrvfl.bench.methods import METHODS
from edrvfl.bench.protocol import Choice, RunRecord
from edrvfl.bench.report import read_study, render, report_command, summarise
from edrvfl.bench.report.render import FORMATS, latex_text, markdown_text, save_figures, sections
from edrvfl.bench.schedule import grid, run
from edrvfl.bench.statistics import Scores, average_ranks, means
from edrvfl.bench.store import CellState, Store, StoreError

FAMILY, DATASETS = published.accuracies().methods[7:], published.accuracies().datasets
HOSTILE = "<script>alert(1)</script>|$x_1$ & \\end{document} `*_[a](b)\n\"'\x07"


def choice(accuracies, seconds=0.5, depth=3):
    rows = tuple(tuple(row) for row in accuracies)
    times = tuple((seconds,) * len(row) for row in rows)
    splits = len(rows)
    return Choice(
        (0,) * splits,
        ({"x": 1},) * splits,
        (depth,) * splits,
        (0.5,) * splits,
        rows,
        rows,
        rows,
        times,
        times,
    )


def a_record(method, dataset, accuracy=0.8, *, status="ok", message=None, trials=10, seeds=2, key=None):
    rng = np.random.default_rng(zlib.crc32(f"{method} {dataset}".encode()) if key is None else 0)
    noise = rng.normal(0, 0.003, (4, seeds))
    found = {"paper": choice(accuracy + noise), "strict": choice(accuracy - 0.002 + noise)}
    return RunRecord(
        key=key or f"{method} {dataset} {trials}",
        method=method,
        dataset=dataset,
        checksum="ab" * 32,
        status=status,
        message=message,
        n_configurations=trials,
        seeds=seeds,
        choices=found if status == "ok" else {},
        search_seconds=2.0,
        finished="2024-01-01T10:00:00+00:00",
        device="cpu",
        versions={"numpy": "2.0"},
        commit=None,
        protocol=1,
    )


def a_study(methods=FAMILY, datasets=DATASETS):
    table = published.accuracies()
    return [a_record(m, d, (table.get(d, m) or 80) / 100 - 0.01) for d in datasets for m in methods]


def a_depth(methods=FAMILY, datasets=DATASETS):
    return {(d, m): (80.0, 82.0, 83.0) for d in datasets for m in methods}


def a_sensitivity():
    points = [
        Point(parameter, value, dataset, activation, ((90 + value, 91 + value),) * 4, 99.0)
        for parameter, grid in (("correct_weight", (1.0, 0.6, 0.2)), ("prune_rate", (0.0, 0.4, 0.8)))
        for dataset in ("arrhythmia", "waveform-noise")
        for activation in ("relu", "sigmoid")
        for value in grid
    ]
    return Sensitivity({"n_hidden": 500}, 2, tuple(points), {"numpy": "2"}, 1.0)


def a_timing():
    timed = [
        Timed(d, m, 10, 3, f"{m}()", (s, 2 * s, s))
        for d in ("contrac", "glass")
        for m, s in (("SNN", 2.0), ("WPedRVFL", 0.1))
    ]
    return Timing(tuple(timed), 1, 3, 1, ("openblas 0.3",), "a processor", {"numpy": "2"})


@pytest.fixture(scope="module")
def whole():
    return summarise(a_study(), depth_accuracies=a_depth(), sensitivity=a_sensitivity(), timing=a_timing())


@pytest.fixture(scope="module")
def page(whole):
    return render(whole)


class Reader(html.parser.HTMLParser):
    """Tags, texts, and whether what is opened is closed."""

    VOID = frozenset({"meta", "link", "input", "br", "hr", "img"})

    def __init__(self, text):
        super().__init__()
        self.tags, self.open, self.ids, self.text = [], [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        self.ids += [value for name, value in attributes if name == "id"]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        self.ids += [value for name, value in attributes if name == "id"]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def grids(summary):
    return {grid.key: grid for section in sections(summary) for grid in section.grids}


def cells(grid):
    return {row.head: dict(zip(grid.columns[1:], row.cells, strict=True)) for row in grid.rows}


# --- the summary -----------------------------------------------------------------------------------------


def test_figures_are_those_of_the_records(whole):
    record = next(r for r in a_study() if (r.dataset, r.method) == ("glass", "PedRVFL"))
    for name in ("paper", "strict"):
        mean, sd = record.choices[name].mean_and_sd()
        result = whole.result("glass", "PedRVFL")
        assert (result.accuracy[name], result.sd[name]) == pytest.approx((100 * mean, 100 * sd))
        assert whole.choices[name].scores.get("glass", "PedRVFL") == pytest.approx(100 * mean, abs=0.00501)
    assert whole.methods == FAMILY
    assert whole.datasets == published.accuracies().datasets


def test_ranks_and_means_are_those_of_the_printed_table(whole):
    scores = whole.strict.scores
    assert whole.strict.ranks == average_ranks(scores)
    assert whole.strict.means == means(scores)
    assert len(whole.strict.common) == 24


def test_the_answer_is_three_sentences_from_the_data(whole):
    first, second, third = whole.answer
    best = whole.strict.by_rank()[0]
    assert first.startswith(f"Over the 24 datasets that all 5 methods have, {best} has the best average rank")
    assert f"{whole.strict.means[best]:.2f} %" in first
    assert "Wilcoxon p" in second
    assert "120 cells" in third
    assert "points below the published" in third


def test_of_several_records_the_larger_study_is_shown_and_a_note_says_so():
    small, large = a_record("a", "iris", 0.9, trials=10), a_record("a", "iris", 0.7, trials=200)
    failed = a_record("a", "iris", status="failed", message="no", trials=500)
    summary = summarise([large, failed, small, a_record("a", "wine")])
    assert summary.result("iris", "a").trials == 200
    assert "2 records not shown" in summary.notes[0]
    assert "different extents" in summary.notes[1]


def test_different_data_of_one_name_are_told():
    other = dataclasses.replace(a_record("b", "iris"), checksum="cd" * 32)
    summary = summarise([a_record("a", "iris"), other])
    assert "different data or partitions of the same name: iris" in summary.notes[0]
    assert len(summary.facts[0].checksums) == 2


def test_a_method_that_ran_on_few_datasets_does_not_narrow_the_comparison():
    names = ("iris", "wine", "digits", "breast_cancer")
    records = [a_record(m, d, 0.8 + 0.01 * i) for i, d in enumerate(names) for m in ("a", "b", "c")]
    summary = summarise([*records, a_record("few", "iris", 0.99)])
    assert summary.strict.compared.methods == ("a", "b", "c")
    assert len(summary.strict.common) == 4
    assert summary.answer[0].startswith("Over the 4 datasets that 3 of the 4 methods have, ")
    grid = grids(summary)["accuracy-strict"]
    assert "that the other methods have. Not compared, for they have fewer: few." in grid.notes[0]
    assert cells(grid)["iris"]["few"].mark == "best"  # shown all the same
    two = summarise([*(r for r in records if r.method == "a"), a_record("few", "iris", 0.99)])
    assert two.strict.compared.methods == ("a", "few")  # there must be something to compare with
    assert two.strict.common == ("iris",)


def test_missing_cells_are_open_about_ranks():
    records = [a_record("a", "iris"), a_record("b", "iris"), a_record("a", "wine"), a_record("b", "wine")]
    records[3] = a_record("b", "wine", status="failed", message="it broke")
    state = CellState("k", "b", "digits", 10, 2, "started", 3, 26, 1.0, None)
    summary = summarise(records, states=[state])
    assert summary.strict.common == ("iris",)
    assert [(r.dataset, r.method, r.status) for r in summary.results if r.status != "ok"] == [
        ("digits", "a", "missing"),
        ("digits", "b", "started"),
        ("wine", "b", "failed"),
    ]
    grid = grids(summary)["accuracy-strict"]
    assert "over the 1 dataset that all methods shown have (iris); left out: wine." in grid.notes[0]
    assert cells(grid)["wine"]["b"].text == "failed"
    assert cells(grids(summary)["missing"])["wine"]["message"].text == "it broke"


def test_methods_and_datasets_on_request():
    summary = summarise(a_study(), methods=["WPedRVFL", "edRVFL_O"], datasets=["glass", "iris"])
    assert summary.methods == ("WPedRVFL", "edRVFL_O")
    assert [r.status for r in summary.results] == ["ok", "ok", "missing", "missing"]


def test_depth_is_over_datasets_that_all_methods_have():
    depth = a_depth(["a", "b"], ["iris", "wine"]) | {("iris", "c"): (70.0,)}  # no depth axis
    del depth["wine", "b"]
    records = [a_record(m, d) for m in "abc" for d in ("iris", "wine")]
    table = summarise(records, depth_accuracies=depth).depth
    assert set(table.column("method")) == {"a", "b"}
    assert set(table.column("datasets")) == {1}
    assert table.column("accuracy")[:3] == (80.0, 82.0, 83.0)


# --- published beside measured ---------------------------------------------------------------------------


def test_the_report_of_nothing_shows_what_follows_from_the_published_table():
    found = grids(summarise([]))
    rows = cells(found["published-means"])
    assert len(rows) == 12
    for foot in published.feet():
        row = rows[foot.method]
        assert row["mean, published"].text == row["mean, recomputed"].text == f"{foot.mean:.2f}"
        assert row["rank, published"].text == row["rank, recomputed"].text == f"{foot.rank:.2f}"
        assert row["verdict"].text == "agrees"
    p = cells(found["published-p"])
    assert [p["PedRVFL"][c].text for c in ("p, published", "p, recomputed (normal)", "verdict")] == [
        "1.7e-1",
        "3.4e-4",
        "differs",
    ]
    for method in ("ResNet", "SCN", "BLS"):
        assert [p[method][c].text for c in ("p, recomputed (normal)", "verdict")] == ["1.8e-5", "agrees"]
    assert sum(row["verdict"].text == "differs" for row in p.values()) == 8
    signs = cells(found["published-signs"])
    assert signs["WPedRVFL"]["PedRVFL"].text == "· differs: +"


def test_measured_stands_beside_published(whole):
    row = cells(grids(whole)["published-means"])["WPedRVFL"]
    scores = whole.paper.scores.only(["WPedRVFL"])
    assert row["mean, measured"].value == means(scores)["WPedRVFL"]
    assert row["mean, published, same datasets"].text == "85.89"
    assert row["datasets"].value == 24
    assert cells(grids(whole)["published-p"])["SNN"]["p, measured (normal)"].text == ""


def test_signs_show_both_with_and_without_holm():
    values = [[90.0 + i, 89.0 + i - 0.1 * i, 88.0 + 2 * (i % 2)] for i in range(6)]
    datasets = [f"d{i}" for i in range(6)]
    records = [
        a_record(m, d, v / 100, key=m + d)
        for d, row in zip(datasets, values, strict=True)
        for m, v in zip("abc", row, strict=True)
    ]
    summary = summarise(records)
    assert isinstance(summary.strict.scores, Scores)
    assert summary.strict.pairs.sign("a", "b", adjust=False) == "+"
    assert summary.strict.pairs.sign("a", "b", adjust=True) == ""
    assert cells(grids(summary)["signs-strict"])["a"]["b"].text == "(+)"


# --- degenerate stores -----------------------------------------------------------------------------------

FAILED = [a_record("a", "iris", status="failed", message="MemoryError"), a_record("b", "iris")]
STORES = {
    "none": [],
    "one cell": [a_record("a", "iris")],
    "one dataset": a_study(datasets=["glass"]),
    "one method": a_study(methods=["PedRVFL"], datasets=DATASETS[:4]),
    "one seed": [a_record(m, d, seeds=1) for m in "ab" for d in ("iris", "wine")],
    "some failed": FAILED,
    "all failed": FAILED[:1],
    "nothing in common": [a_record("a", "iris"), a_record("b", "wine")],
    "two methods, two datasets": [a_record(m, d) for m in "ab" for d in ("iris", "wine")],
    "all equal": [a_record(m, d, 0.8, key="x") for m in "abc" for d in ("iris", "wine", "digits")],
    "no message": [a_record("a", "iris", status="failed")],
}


@pytest.mark.parametrize("name", STORES)
@pytest.mark.parametrize("format", FORMATS)
def test_every_store_has_a_report(name, format):
    records = STORES[name]
    summary = summarise([dataclasses.replace(r, key=f"{r.method}{r.dataset}") for r in records])
    text = render(summary, format)
    if format != "csv":
        assert all(len(sentence) > 20 for sentence in summary.answer)
        assert "Failed and missing cells" in text
    if format == "html":
        Reader(text)


@pytest.mark.parametrize(
    ("name", "phrase"),
    [
        ("none", "There is no finished cell to report on. The store holds no cells at all."),
        ("all failed", "The store holds 1 failed."),
        ("one method", "With one method there is nothing to rank or to test."),
        ("one dataset", "Over the 1 dataset that all 5 methods have"),
        ("nothing in common", "No dataset has a figure for all 2 methods"),
    ],
)
def test_it_says_so(name, phrase):
    assert phrase in " ".join(summarise(STORES[name]).answer)


def test_unknown_formats_are_named():
    with pytest.raises(ValueError, match="one of html, md, latex, csv"):
        render(summarise([]), "pdf")


# --- hostile names ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def hostile():
    records = [a_record(m, d) for m in (HOSTILE, "b") for d in (HOSTILE, "iris", "wine")]
    records.append(a_record("b", "digits", status="failed", message=HOSTILE))
    curves = {(d, m): (80.0, 81.0) for m in (HOSTILE, "b") for d in (HOSTILE, "iris")}
    return summarise(records, depth_accuracies=curves, title=HOSTILE)


def test_hostile_names_are_text_in_html(hostile):
    reader = Reader(render(hostile))
    assert [tag for tag, _ in reader.tags].count("script") == 1
    assert HOSTILE.splitlines()[0] in "".join(reader.text)
    assert not [a for _, attributes in reader.tags for a in attributes if a.startswith("on")]


def test_hostile_names_are_text_in_markdown(hostile):
    text = render(hostile, "md")
    assert "<script" not in text
    lines = [line for line in text.splitlines() if line.startswith("|")]
    widths = [len(re.findall(r"(?<!\\)\|", line)) for line in lines]
    for rule in (i for i, line in enumerate(lines) if set(line) <= set("| -")):
        assert widths[rule - 1] == widths[rule] == widths[rule + 1]
    assert markdown_text("a|b\n<i>") == r"a\|b &lt;i&gt;"


def test_hostile_names_are_text_in_latex(hostile):
    text = render(hostile, "latex")
    assert text.count(r"\end{document}") == 1
    assert latex_text("a_b & 5 %\n{x} \\y $z$") == r"a\_b \& 5 \% \{x\} \textbackslash{}y \$z\$"
    body = text.replace(r"\{", "").replace(r"\}", "")
    assert body.count("{") == body.count("}")
    assert sorted(re.findall(r"\\begin\{(\w+)\}", text)) == sorted(re.findall(r"\\end\{(\w+)\}", text))


def test_hostile_names_are_text_in_csv(hostile):
    rows = list(csv.DictReader(io.StringIO(render(hostile, "csv"))))
    assert {row["method"] for row in rows} == {HOSTILE, "b"}
    assert HOSTILE in {row["message"] for row in rows}


# --- the page --------------------------------------------------------------------------------------------


def test_the_page_is_one_file_that_asks_for_nothing(page):
    assert len(page.encode()) < 3_000_000
    reader = Reader(page)
    assert not reader.open
    assert len(reader.ids) == len(set(reader.ids))
    for tag, attributes in reader.tags:
        for name in ("src", "href", "action", "xlink:href"):
            assert attributes.get(name, "#").startswith(("#", "data:")), (tag, attributes)
    policy = next(a["content"] for t, a in reader.tags if a.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none'")
    assert "script-src 'sha256-" in policy
    assert not re.search(r"url\((?!#)|@import", page)


def test_everything_has_a_name(page):
    reader = Reader(page)
    pictures = [a for t, a in reader.tags if t == "svg"]
    assert len(pictures) == 7
    assert all(a["role"] == "img" and len(a["aria-label"]) > 20 for a in pictures)
    tags = [t for t, _ in reader.tags]
    assert tags.count("caption") == tags.count("table")
    assert tags.count("figcaption") == tags.count("figure") == 7
    downloads = [a for t, a in reader.tags if t == "a" and "download" in a]
    assert len(downloads) == 14
    assert all(a["href"].startswith("data:") for a in downloads)


def test_the_page_is_the_same_every_time(whole, page):
    assert render(whole) == page


def test_what_a_report_must_state(page):
    text = " ".join("".join(Reader(page).text).split())
    for phrase in (
        "not a partition",
        "one fixed test file",
        "about 50 to 65",
        "61 % is the rate of the larger class",
        "32 features and 3 classes",
        "counts the label",
        "quoted from Klambauer",
        "97 to 99 %",
        "Each split chooses its configuration",
        "Weighting agrees with the paper's text in",
        "WPedRVFL took 0.2 to 0.2 times the seconds",
        "10 configurations in each search",
    ):
        assert phrase in text, phrase


def test_csv_has_every_cell_twice(whole):
    rows = list(csv.DictReader(io.StringIO(render(whole, "csv"))))
    assert len(rows) == 2 * 24 * 5
    row = next(r for r in rows if (r["dataset"], r["method"], r["choice"]) == ("glass", "PedRVFL", "strict"))
    assert float(row["accuracy"]) == whole.strict.scores.get("glass", "PedRVFL")
    assert row["depth"] == "3/3/3/3"
    assert float(row["published"]) == 71.19


# --- from a store ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    path = tmp_path_factory.mktemp("study") / "study.db"
    methods = [METHODS[name] for name in ("edRVFL_O", "WPedRVFL")]
    datasets = [load_dataset(name) for name in ("iris", "wine")]
    run(list(grid(methods, datasets, 2, 2)), path, jobs=1)
    return path


def test_a_real_study(store, tmp_path):
    study = read_study(store)
    assert len(study.records) == 4
    with Store(store) as opened:
        record = next(r for r in study.records if (r.dataset, r.method) == ("wine", "WPedRVFL"))
        values = opened.values(record.key)[0]
    searched = [c for unit, v in values.items() if unit.startswith("search/") for c in v["scores"]]
    assert len(searched) == 2
    by_hand = [max(100 * np.mean([split[l] for split in c]) for c in searched) for l in range(10)]
    assert study.depth_accuracies["wine", "WPedRVFL"] == pytest.approx(by_hand)
    (tmp_path / "sensitivity.json").write_text(a_sensitivity().to_json())
    (tmp_path / "timing.json").write_text(a_timing().to_json())
    files = report_command(
        store,
        tmp_path / "report.html",
        sensitivity=tmp_path / "sensitivity.json",
        timing=tmp_path / "timing.json",
        figures_folder=tmp_path / "figures",
    )
    text = files[0].read_text(encoding="utf-8")
    assert "Over the 2 datasets that all 2 methods have" in text
    assert "accuracy_by_depth.svg" in {path.name for path in files}
    assert not list(tmp_path.glob("*.part"))


@pytest.mark.parametrize(
    ("name", "start"), [("r.md", "# edRVFL"), ("r.tex", r"\documentclass"), ("r.csv", "dataset,")]
)
def test_the_ending_tells_the_format(store, tmp_path, name, start):
    (path,) = report_command(store, tmp_path / name)
    assert path.read_text(encoding="utf-8").startswith(start)


def test_mistakes_are_explained(store, tmp_path):
    with pytest.raises(ValueError, match=r"'report\.pdf' does not tell the format; choose one of html"):
        report_command(store, tmp_path / "report.pdf")
    with pytest.raises(ValueError, match="there is no format 'pdf'"):
        report_command(store, tmp_path / "report.pdf", "pdf")
    with pytest.raises(StoreError, match="no such store"):
        report_command(tmp_path / "none.db", tmp_path / "report.html")
    with pytest.raises(ValueError, match=r"cannot be written \(No such file"):
        report_command(store, tmp_path / "nowhere" / "report.html")
    with pytest.raises(ValueError, match=r"cannot be read \(No such file"):
        report_command(store, tmp_path / "report.html", timing=tmp_path / "timing.json")
    (tmp_path / "timing.json").write_text(json.dumps({"a": 1}))
    with pytest.raises(ValueError, match="not a result of that experiment"):
        report_command(store, tmp_path / "report.html", timing=tmp_path / "timing.json")


def test_an_empty_store(tmp_path):
    with Store(tmp_path / "empty.db"):
        pass
    (path,) = report_command(tmp_path / "empty.db", tmp_path / "report.html")
    assert "There is no finished cell to report on." in path.read_text(encoding="utf-8")


def test_figures_are_saved_with_their_data(whole, tmp_path):
    files = save_figures(whole, tmp_path / "figures")
    assert len(files) == 14
    assert all(path.stat().st_size > 50 for path in files)
