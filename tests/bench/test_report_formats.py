"""The page as HTML, Markdown and CSV."""

import csv
import html.parser
import io
import re
import subprocess
import sys
from pathlib import Path

import pytest
from report_samples import HOSTILE, SMALL_STUDIES, cells, full_page, grids, hostile_study, page_of

from edrvfl.bench.report import FORMATS
from edrvfl.bench.report.formats import PAPER_LINK, csv_text, escape_markdown, html_text, markdown_text
from edrvfl.bench.report.sections import make_page
from edrvfl.bench.report.summary import summarise


class Reader(html.parser.HTMLParser):
    """Collect tags, ids and texts; fail if what is opened is not closed."""

    VOID = frozenset({"meta", "link", "input", "br", "hr", "img"})

    def __init__(self, text):
        super().__init__()
        self.tags, self.open, self.ids, self.text = [], [], [], []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attributes):
        self.handle_startendtag(tag, attributes)
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        self.ids += [value for name, value in attributes if name == "id"]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


@pytest.fixture(scope="module")
def full():
    return full_page()


@pytest.fixture(scope="module")
def page(full):
    return html_text(full)


@pytest.fixture(scope="module")
def hostile():
    return make_page(summarise(hostile_study()))


@pytest.mark.parametrize("name", SMALL_STUDIES)
def test_every_study_has_a_report(name):
    page = page_of(SMALL_STUDIES[name])
    texts = {format: write(page) for format, write in FORMATS.items()}
    assert all("Failed and missing cells" in texts[format] for format in ("html", "md"))
    Reader(texts["html"])


# --- hostile names ---------------------------------------------------------------------------------------


def test_hostile_names_are_text_in_html(hostile):
    reader = Reader(html_text(hostile))
    assert [tag for tag, _ in reader.tags].count("script") == 1
    assert HOSTILE.splitlines()[0] in "".join(reader.text)
    assert not [a for _, attributes in reader.tags for a in attributes if a.startswith("on")]


def test_hostile_names_are_text_in_markdown(hostile):
    text = markdown_text(hostile)
    assert "<script" not in text
    lines = [line for line in text.splitlines() if line.startswith("|")]
    widths = [len(re.findall(r"(?<!\\)\|", line)) for line in lines]
    for rule in (i for i, line in enumerate(lines) if set(line) <= set("| -")):
        assert widths[rule - 1] == widths[rule] == widths[rule + 1]
    assert escape_markdown("a|b\n<i>") == r"a\|b &lt;i&gt;"


def test_hostile_names_are_text_in_csv(hostile):
    rows = list(csv.DictReader(io.StringIO(csv_text(hostile))))
    assert {row["method"] for row in rows} == {HOSTILE, "b"}
    assert HOSTILE in {row["message"] for row in rows}


# --- the page --------------------------------------------------------------------------------------------


def test_the_page_is_one_file_that_asks_for_nothing(page):
    assert len(page.encode()) < 3_000_000
    reader = Reader(page)
    assert len(reader.ids) == len(set(reader.ids))
    for tag, attributes in reader.tags:
        for name in ("src", "href", "action", "xlink:href"):
            here = ("#", "data:", *([PAPER_LINK] if tag == "a" else []))  # a link asks when it is followed
            assert attributes.get(name, "#").startswith(here), (tag, attributes)
    policy = next(a["content"] for t, a in reader.tags if a.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none'")
    assert "script-src 'sha256-" in policy
    assert not re.search(r"url\((?!#)|@import", page)


def test_everything_has_a_name(page, full):
    n = len(full.drawings)
    reader = Reader(page)
    drawn = [a for t, a in reader.tags if t == "svg"]
    assert all(a["aria-label"] for a in drawn)
    pictures = [a for a in drawn if a.get("class") != "dots"]  # these stand in a table
    assert len(pictures) == n
    assert all(a["role"] == "img" and len(a["aria-label"]) > 20 for a in pictures)
    tags = [t for t, _ in reader.tags]
    assert all(a["aria-labelledby"] in reader.ids for t, a in reader.tags if t == "table")
    assert tags.count("figcaption") == tags.count("figure") == n
    downloads = [a for t, a in reader.tags if t == "a" and "download" in a]
    assert len(downloads) == 2 * n
    assert all(a["href"].startswith("data:") for a in downloads)


SAME = """
import sys
from report_samples import full_page
from edrvfl.bench.report.formats import markdown_text
page = full_page()
(diagram,) = (p for s in page.sections for p in s.pictures if p.key == "critical_difference")
sys.stdout.buffer.write((markdown_text(page) + diagram.drawing().svg).encode())
"""


def test_the_page_is_the_same_in_every_process(full):
    """Another process has other hashes, so that the order of a set would show, as in the diagram of ranks."""
    command = [sys.executable, "-c", SAME]
    found = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, check=True)
    assert found.stdout.decode() == markdown_text(full) + full.drawings["critical_difference"].svg


def test_what_a_report_must_state(page):
    text = " ".join("".join(Reader(page).text).split())
    for phrase in (
        "not a partition",
        "one fixed test file",
        "37 to 69",
        "61 % is the rate of the larger class",
        "32 features and 3 classes",
        "counts the label",
        "quoted from Klambauer",
        "97 to 99 %",
        "Each split chooses its configuration",
        "Weighting agrees with the paper's text in",
        "WPedRVFL took 0.2 to 0.2 times the seconds",
        "10 configurations and 2 seeds",
    ):
        assert phrase in text, phrase


def test_the_summary_comes_first_in_markdown(full):
    text = markdown_text(full)
    parts = (PAPER_LINK, full.front.grid.caption, full.front.grid.rows[-1].head, "Test accuracy in percent, ")
    places = [text.index(part) for part in parts]
    assert places == sorted(places)


def test_csv_has_the_summary_then_every_cell_twice_then_the_defaults(full):
    rows = list(csv.DictReader(io.StringIO(csv_text(full))))
    assert len(rows) == 17 + 2 * 24 * 14 + 24 * 3
    assert {r["dataset"] for r in rows[:17]} == {"all 24"}
    shown = [(row.head, row.cells[1].value) for row in full.front.grid.rows]
    assert [(r["method"], float(r["average_rank"])) for r in rows[:17]] == shown
    assert {r["choice"] for r in rows[-72:]} == {"default"}
    row = next(r for r in rows if (r["dataset"], r["method"], r["choice"]) == ("glass", "PedRVFL", "strict"))
    assert (row["depth"], row["published"], row["configurations"]) == ("3/3/3/3", "71.19", "10")
    assert float(row["accuracy"]) == cells(grids(full)["accuracy-strict"])["glass"]["PedRVFL"].value
