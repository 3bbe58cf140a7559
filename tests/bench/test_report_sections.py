"""The sections' tables and pictures, as data."""

import pytest
from report_samples import a_result, cells, grids, page_of, some_curves, whole_page, whole_summary

from edrvfl.bench import paper
from edrvfl.bench.comparison import means
from edrvfl.bench.report.sections import make_page
from edrvfl.bench.report.study import Study
from edrvfl.bench.report.summary import summarise
from edrvfl.bench.timing import Timed, Timing


@pytest.fixture(scope="module")
def summary():
    return whole_summary()


@pytest.fixture(scope="module")
def page():
    return whole_page()


def pictures(page):
    return {picture.key: picture for section in page.sections for picture in section.pictures}


def test_the_accuracies_and_their_foot(page, summary):
    grid = grids(page)["accuracy-strict"]
    scores = summary.standing.scores
    for dataset, row in cells(grid).items():
        for method, cell in row.items():
            assert cell.value == scores.loc[dataset, method]
            assert cell.text == f"{cell.value:.2f} ± 0.25"
            assert (cell.mark == "best") == (cell.value == scores.loc[dataset].max())
    foot = [[cell.text for cell in row.cells] for row in grid.foot]
    assert foot == [
        [f"{v:.2f}" for v in found.values()] for found in (summary.standing.means, summary.standing.ranks)
    ]


def test_failed_and_missing_cells_are_shown_as_such():
    failed = a_result("b", "iris", status="failed", message="it broke")
    page = page_of([a_result("a", "iris"), a_result("a", "wine"), failed, a_result("b", "digits")])
    shown = cells(grids(page)["accuracy-strict"])
    assert [shown[d]["b"].text for d in ("iris", "wine")] == ["failed", "missing"]
    assert [shown[d]["b"].mark for d in ("iris", "wine")] == ["failed", "missing"]
    listed = cells(grids(page)["missing"])
    assert listed["iris"]["message"].text == "it broke"
    assert listed["wine"]["status"].text == "missing"


def test_the_report_of_nothing_shows_what_follows_from_the_published_table():
    found = grids(page_of([]))
    rows = cells(found["published-means"])
    assert len(rows) == 12
    for foot in paper.feet():
        row = rows[foot.method]
        assert row["mean, published"].text == row["mean, recomputed"].text == f"{foot.mean:.2f}"
        assert row["rank, published"].text == row["rank, recomputed"].text == f"{foot.rank:.2f}"
        assert row["verdict"].text == "agrees"
    p = cells(found["published-p"])
    shown = [p["PedRVFL"][c].text for c in ("p, published", "p, recomputed (normal)", "verdict")]
    assert shown == ["1.7e-1", "3.4e-4", "differs"]
    assert sum(row["verdict"].text == "differs" for row in p.values()) == 8
    assert cells(found["published-signs"])["WPedRVFL"]["PedRVFL"].text == "· differs: +"


def test_measured_stands_beside_published(page, summary):
    row = cells(grids(page)["published-means"])["WPedRVFL"]
    assert row["mean, measured"].value == means(summary.paper.scores)["WPedRVFL"]
    assert row["mean, published, same datasets"].text == "85.89"
    assert row["datasets"].value == 24
    p = cells(grids(page)["published-p"])
    assert p["SNN"]["p, measured (normal)"].text == "missing"
    assert (
        p["PedRVFL"]["p, measured (normal)"].value == summary.paper.pairs.pair("WPedRVFL", "PedRVFL").p_normal
    )
    assert cells(grids(page)["published-sd"])["WPedRVFL"]["measured"].text == "0.25"


def test_signs_show_both_with_and_without_holm():
    values = [[90.0 + i, 89.0 + i - 0.1 * i, 88.0 + 2 * (i % 2)] for i in range(6)]
    results = [
        a_result(m, f"d{i}", v, noise=0)
        for i, row in enumerate(values)
        for m, v in zip("abc", row, strict=True)
    ]
    signs = cells(grids(page_of(results))["signs-strict"])
    assert (signs["a"]["b"].text, signs["b"]["a"].text) == (
        "(+)",
        "(-)",
    )  # of three pairs, six wins are too few
    assert signs["a"]["a"].text == ""


def test_depth_is_over_datasets_that_all_methods_have():
    curves = some_curves(["a", "b"], ["iris", "wine"]) | {("iris", "c"): (70.0,)}  # c has no depth
    del curves["wine", "b"]
    results = tuple(a_result(m, d) for m in "abc" for d in ("iris", "wine"))
    table = pictures(make_page(summarise(Study(results, curves))))["accuracy_by_depth"].table
    assert set(table["method"]) == {"a", "b"}
    assert set(table["datasets"]) == {1}
    assert list(table["accuracy"][:3]) == [80.0, 82.0, 83.0]


def test_every_picture_has_its_data(page, summary):
    found = pictures(page)
    assert list(found) == [
        "accuracy_by_dataset",
        "critical_difference",
        "log_loss_and_calibration",
        "critical_difference_log_loss",
        "ours_against_published",
        "accuracy_by_depth",
        "sensitivity_correct_weight",
        "sensitivity_prune_rate",
    ]
    assert list(found["critical_difference"].table["method"]) == list(summary.standing.entries)
    assert page.front.picture.table["fit_seconds"].unique() == [0.5]
    assert list(found["sensitivity_prune_rate"].table["p"][:3]) == [0.0, 0.4, 0.8]
    assert len(found["ours_against_published"].table) == 120


def test_times_stand_beside_table_8(page):
    grid = grids(page)["timing"]
    assert [row.cells[0].text for row in grid.rows] == ["SNN", "WPedRVFL"] * 2
    assert [row.cells[3].text for row in grid.rows[:2]] == ["2.0000", "0.1000"]
    assert [row.cells[5].text for row in grid.rows] == ["2.8705", "0.4898", "", ""]  # glass is not in Table 8
    assert "timing-ratios" not in grids(page)  # two methods need no table of their own


def test_times_of_several_methods_are_multiples_of_wpedrvfls():
    seconds = {"slow": (4.0, 9.0), "WPedRVFL": (2.0, 3.0), "quick": (0.5, 0.75), "partial": (1.0,)}
    timed = tuple(
        Timed(dataset, m, 1, 1, "", (s,))
        for m, all_s in seconds.items()
        for dataset, s in zip("ab", all_s, strict=False)
    )
    study = Study((), {}, timing=Timing(timed, 1, 1, 1, (), "a processor", {}))
    found = grids(make_page(summarise(study)))
    grid = found["timing-ratios"]
    assert [(row.head, *(cell.text for cell in row.cells)) for row in grid.rows] == [
        ("quick", "0.25", "0.25", "0.25"),
        ("WPedRVFL", "1.00", "1.00", "1.00"),
        ("slow", "2.00", "3.00", "2.45"),
    ]
    assert found["timing"].folded
