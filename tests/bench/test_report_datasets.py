"""The panels of the report, dataset by dataset, beside the shipped records read without the library."""

import gzip
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from report_samples import a_result, some_results

from edrvfl.bench.exchange import import_files
from edrvfl.bench.report.formats import html_text, markdown_text
from edrvfl.bench.report.page import Front, Page, panel_key
from edrvfl.bench.report.sections.datasets import show_datasets
from edrvfl.bench.report.sections.run import show_missing
from edrvfl.bench.report.study import Study, read_study
from edrvfl.bench.report.summary import summarise

SHIPPED = Path(__file__).parents[2] / "results" / "study.jsonl.gz"


@pytest.fixture(scope="module")
def lines():
    """The lines of two datasets, one of classes and one of values; searches have more, and are not needed."""
    with gzip.open(SHIPPED, "rt") as text:
        wanted = ('"dataset": "abalone"', '"dataset": "laser"')
        return [line for line in text if any(name in line for name in wanted)]


@pytest.fixture(scope="module")
def records(lines):
    rows = [row for row in map(json.loads, lines) if row["line"] == "record"]
    return [(row["kind"], row["record"]) for row in rows if row["record"]["status"] == "ok"]


@pytest.fixture(scope="module")
def panels(lines, tmp_path_factory):
    folder = tmp_path_factory.mktemp("two")
    (folder / "two.jsonl").write_text("".join(lines))
    import_files(folder / "two.db", [folder / "two.jsonl"])
    return {grid.key: grid for grid in show_datasets(summarise(read_study(folder / "two.db"))).grids}


def test_every_dataset_has_a_panel_with_all_methods(panels, records):
    assert set(panels) == {"dataset-abalone", "dataset-laser"}
    by_kind = {
        kind: {r["method"] for k, r in records if (k, r["dataset"]) == (kind, "abalone")}
        for kind, _ in records
    }
    heads = {
        row.head.removesuffix(", tuned").removesuffix(", default") for row in panels["dataset-abalone"].rows
    }
    assert heads == by_kind["study"] | by_kind["defaults"]


@pytest.mark.parametrize(
    ("dataset", "kind", "method", "metric", "scale"),
    [
        ("abalone", "study", "WPedRVFL", "test_accuracy", 100),
        ("abalone", "defaults", "edRVFL portfolio", "test_accuracy", 100),
        ("laser", "values", "edRVFL portfolio", "r2", 1),
    ],
)
def test_its_figures_and_dots_are_those_of_the_records(panels, records, dataset, kind, method, metric, scale):
    known = [r for k, r in records if (k, r["dataset"], r["method"]) == (kind, dataset, method)]
    found = max(known, key=lambda r: (r["seeds"], r["finished"]))
    table = np.array((found["choices"]["strict"] if kind == "study" else found)[metric]) * scale
    seeds = table.mean(axis=0)
    grid = panels[panel_key(dataset)]
    row = next(row for row in grid.rows if row.head == method)
    assert row.cells[0].value == pytest.approx(seeds.mean())
    every = [cell for other in grid.rows for cell in other.cells[1].dots]
    assert (min(every), max(every)) == (0, 1)
    inside = [(dot, seed) for dot, seed in zip(row.cells[1].dots, seeds, strict=True) if 0 < dot < 1]
    if len(inside) > 1:  # places are linear in the figures
        assert abs(np.corrcoef(*zip(*inside, strict=True))[0, 1]) > 0.999999
    scores = [row.cells[0].value for row in grid.rows if row.cells[0].value is not None]
    assert scores == sorted(scores, reverse=True)


def test_odd_names_and_failures_have_their_place():
    odd = 'a b"<i>&'
    results = [*some_results(datasets=["abalone"]), a_result("RVFL", odd), a_result("WPedRVFL", odd, seeds=1)]
    results.append(a_result("dRVFL", odd, status="failed", message="no"))
    summary = summarise(Study(tuple(results)))
    sections = (show_datasets(summary), show_missing(summary))  # whose table names the dataset too
    page = Page(Front("", (), None, None), (), (), sections, pd.DataFrame())
    key = page.panels[odd]
    assert key == "dataset-a-20b-22-3ci-3e-26"
    grid = next(grid for section in page.sections for grid in section.grids if grid.key == key)
    cells = {row.head: row.cells for row in grid.rows}
    assert cells["dRVFL"][0].text == "failed"
    assert (len(cells["RVFL"][1].dots), len(cells["WPedRVFL"][1].dots)) == (2, 1)
    html = html_text(page)
    assert f'<a href="#caption-{key}">a b&#34;&lt;i&gt;&amp;</a>' in html
    assert html.count(f'id="caption-{key}"') == 1
    assert " to " in markdown_text(page).partition("Dataset by dataset")[2]
