"""The first screen as data, where figures differ from the published ones, and what the records took."""

import dataclasses

import pytest
from report_samples import (
    DATASETS,
    a_default,
    a_result,
    cells,
    full_page,
    full_summary,
    grids,
    page_of,
    some_results,
)

from edrvfl.bench.record import Choice, RunRecord, TimingRecord
from edrvfl.bench.report.costs import add_costs
from edrvfl.bench.report.sections.origins import show_origins
from edrvfl.bench.report.sections.published import show_differences
from edrvfl.bench.report.study import Study
from edrvfl.bench.report.summary import summarise


@pytest.fixture(scope="module")
def summary():
    return full_summary()


@pytest.fixture(scope="module")
def page():
    return full_page()


def test_the_table_has_a_row_for_each_line_best_rank_first(page, summary):
    grid, standing = page.front.grid, summary.standing
    assert [row.head for row in grid.rows] == list(standing.entries)
    rows = cells(grid)
    portfolio = rows["edRVFL portfolio"]
    assert {column: cell.text for column, cell in portfolio.items()} == {
        "accuracy %": f"{standing.means['edRVFL portfolio']:.2f}",
        "average rank": f"{standing.ranks['edRVFL portfolio']:.2f}",
        "log-loss": "0.300",
        "calibration error": "0.030",
        "seconds of a fit": "1.0",
        "configurations tried": "1",
    }
    marks = {row.head: row.mark for row in grid.rows}
    assert (marks["WPedRVFL"], marks["SNN"], marks["XGBoost, tuned"]) == ("ours", "paper", "peer")
    assert rows["WPedRVFL"]["calibration error"].text == "missing", "records of old did not measure it"
    assert rows["XGBoost, tuned"]["configurations tried"].value == 10


def test_what_is_not_complete_says_how_much_it_has_and_a_gpu_is_named():
    results = [a_result(m, d) for m in "ab" for d in DATASETS[:3]] + [a_result("few", DATASETS[0], 99)]
    gpu = {"device": "cuda (a GPU)"}
    page = page_of([dataclasses.replace(r, origins=gpu) if r.method == "b" else r for r in results])
    rows = cells(page.front.grid)
    assert page.front.grid.rows[-1].head == "few"
    assert [cell.text for cell in rows["few"].values()] == ["1 of 3", *["missing"] * 4, "10"]
    assert (rows["a"]["seconds of a fit"].text, rows["b"]["seconds of a fit"].text) == ("0.50", "0.50 GPU")
    table = page.front.picture.table
    assert dict(zip(table["method"], table["gpu"], strict=True)) == {"a": False, "b": True}
    assert "1 of the 2 methods ran on a GPU" in page.front.picture.description


def test_wide_tables_put_the_subject_first(page, summary):
    ours = ("WPedRVFL", "PedRVFL", "WedRVFL", "edRVFL_N", "edRVFL_O")
    found = grids(page)
    assert found["accuracy-strict"].columns[1:7] == ("edRVFL portfolio", *ours)
    assert found["accuracy-paper"].columns[1:6] == ours
    peers = [name for name in found["accuracy-strict"].columns[7:10]]
    assert peers == sorted(peers, key=summary.standing.ranks.get)
    assert page.subject == ("edRVFL portfolio", *ours)
    assert set(page.methods) == set(summary.standing.entries)


def test_means_far_from_the_published_ones_are_listed():
    results = some_results(("WPedRVFL",), DATASETS)
    results += [a_result("SNN", d, 50, noise=0) for d in DATASETS[:2]]
    section = show_differences(summarise(Study(tuple(results))))
    rows = cells(section.grids[0])
    assert list(rows) == ["SNN"]
    assert rows["SNN"]["mean, measured"].text == "50.00"


COMMON = {
    **{"key": "k", "dataset": "glass", "method": "SNN", "status": "ok", "message": None, "finished": None},
    **{"versions": {}, "commit": None},
}


def a_run(strict, device="cpu"):
    """Two splits and one seed; the paper's choice is configuration 0 in both, and every refit takes 1.5 s."""

    def choice(configurations):
        ones, halves = ((1.0,), (1.0,)), ((0.5,), (0.5,))
        return Choice(configurations, ({}, {}), (1, 1), (0.5, 0.5), ones, ones, ones, ones, halves)

    choices = {"paper": choice((0, 0)), "strict": choice(strict)}
    sizes = {"checksum": "c", "n_configurations": 2, "seeds": 1, "protocol": 1}
    return RunRecord(**COMMON, **sizes, choices=choices, search_seconds=10.0, device=device)


def test_refits_that_both_choices_share_are_counted_once():
    (shared,) = add_costs([a_run((0, 0))])
    assert shared.seconds == 10 + 2 * 1.5
    (one,) = add_costs([a_run((0, 1))])
    assert one.seconds == 10 + 3 * 1.5


def test_seconds_are_added_by_kind_and_device():
    timing = {"rows": 1, "features": 1, "parameters": "", "seconds": (2.0, 3.0), "warmups": 0, "repeats": 2}
    timing |= {"threads": 1, "blas": (), "processor": "a processor"}
    gpu = a_run((0, 0), "cuda (a GPU)")
    costs = add_costs(
        [gpu, gpu, a_run((0, 0)), TimingRecord(**COMMON, **timing), a_default("glass", "LightGBM")]
    )
    assert [(c.kind, c.device, c.records) for c in costs] == [
        ("study", "cuda (a GPU)", 2),
        ("study", "processor", 1),
        ("timing", "a processor", 1),
        ("defaults", "a processor", 1),
    ]
    assert [c.seconds for c in costs] == pytest.approx([26, 13, 5, 8.8])
    section = show_origins(summarise(Study(costs=costs)))
    assert section.text == (
        "5 records took 27 seconds of processors and 26 seconds of processes on GPUs; 0 of "
        "them do not say what they took.",
    )
