"""The first screen and the sections as data: tables, pictures, what the records took."""

import dataclasses
import itertools
import re

import numpy as np
import pandas as pd
import pytest
from report_samples import (
    DATASETS,
    a_default,
    a_result,
    a_time,
    cells,
    full_page,
    full_summary,
    grids,
    page_of,
    some_curves,
    some_results,
    summary_of,
    texts,
    whole_page,
    whole_summary,
)
from scipy import stats
from statsmodels.stats.multitest import multipletests

from edrvfl.bench import paper
from edrvfl.bench.comparison import means
from edrvfl.bench.record import Choice, RunRecord, TimingRecord
from edrvfl.bench.report.sections import make_page
from edrvfl.bench.report.sections.probabilities import show_probabilities
from edrvfl.bench.report.sections.run import show_origins
from edrvfl.bench.report.study import Study, add_costs
from edrvfl.bench.report.summary import summarise
from edrvfl.bench.timing import Timing

CONTENT = 1016  # pixels of the page's content where the window has 1280


def pictures(page):
    return {picture.key: picture for section in page.sections for picture in section.pictures}


# --- the first screen ------------------------------------------------------------------------------------


def test_the_table_has_a_row_for_each_line_best_rank_first():
    grid, standing = full_page().front.grid, full_summary().standing
    assert [row.head for row in grid.rows] == list(standing.entries)
    rows = cells(grid)
    assert {column: cell.text for column, cell in rows["edRVFL portfolio"].items()} == {
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


def test_wide_tables_put_the_subject_first():
    ours = ("WPedRVFL", "PedRVFL", "WedRVFL", "edRVFL_N", "edRVFL_O")
    page, standing = full_page(), full_summary().standing
    strict, papers = (grids(page)[f"accuracy-{choice}"].columns for choice in ("strict", "paper"))
    assert strict[1:7] == ("edRVFL portfolio", *ours)
    assert papers[1:6] == ours
    assert list(strict[7:10]) == sorted(strict[7:10], key=standing.ranks.get)
    assert page.subject == ("edRVFL portfolio", *ours)
    assert set(page.methods) == set(standing.entries)


# --- accuracy --------------------------------------------------------------------------------------------


def test_the_accuracies_and_their_foot():
    grid, standing = grids(whole_page())["accuracy-strict"], whole_summary().standing
    scores = standing.scores
    for dataset, row in cells(grid).items():
        for method, cell in row.items():
            assert cell.value == scores.loc[dataset, method]
            assert cell.text == f"{cell.value:.2f} ± 0.25"
            assert (cell.mark == "best") == (cell.value == scores.loc[dataset].max())
    expected = zip(("mean", "average rank"), (standing.means, standing.ranks), strict=True)
    assert texts(grid.foot) == {head: [f"{v:.2f}" for v in found.values()] for head, found in expected}


def test_failed_and_missing_cells_are_shown_as_such():
    failed = a_result("b", "iris", status="failed", message="it broke")
    page = page_of([a_result("a", "iris"), a_result("a", "wine"), failed, a_result("b", "digits")])
    shown = cells(grids(page)["accuracy-strict"])
    assert [(shown[d]["b"].text, shown[d]["b"].mark) for d in ("iris", "wine")] == [
        ("failed", "failed"),
        ("missing", "missing"),
    ]
    listed = cells(grids(page)["missing"])
    assert listed["iris"]["message"].text == "it broke"
    assert listed["wine"]["status"].text == "missing"


def test_signs_show_both_with_and_without_holm():
    values = [[90.0 + i, 89.0 + i - 0.1 * i, 88.0 + 2 * (i % 2)] for i in range(6)]
    scores = {(m, f"d{i}"): v for i, row in enumerate(values) for m, v in zip("abc", row, strict=True)}
    signs = cells(grids(page_of(a_result(*pair, v, noise=0) for pair, v in scores.items()))["signs-strict"])
    # of three pairs, six wins are too few
    assert [signs[a][b].text for a, b in ("ab", "ba", "aa")] == ["(+)", "(-)", ""]


# --- published -------------------------------------------------------------------------------------------


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


def test_measured_stands_beside_published():
    found = grids(whole_page())
    row = cells(found["published-means"])["WPedRVFL"]
    assert row["mean, measured"].value == means(whole_summary().paper.scores)["WPedRVFL"]
    assert row["mean, published, same datasets"].text == "85.89"
    assert row["datasets"].value == 24
    assert cells(found["published-p"])["SNN"]["p, measured (normal)"].text == "missing"
    assert cells(found["published-sd"])["WPedRVFL"]["measured"].text == "0.25"


def test_twelve_methods_measured_beside_published():
    """If the paper's own figures are measured, the measured tests are those of its own Table 3."""
    printed = paper.accuracies()
    results = [a_result(m, d, printed.loc[d, m], noise=0) for d in DATASETS for m in printed]
    page = page_of([*results, *(a_result("dRVFL", d, 99.0) for d in DATASETS[:3])])  # which changes nothing
    found = grids(page)
    for foot in paper.feet():
        row = cells(found["published-means"])[foot.method]
        assert row["rank, measured"].value == foot.recomputed_rank
        assert row["difference"].value == 0
    recomputed = paper.recomputed_pairs()
    for p in paper.printed_p_values():
        row, c = cells(found["published-p"])[p.method], p.comparison
        assert row["p, measured (normal)"].value == c.p_normal
        assert row["p, measured (Holm)"].value == recomputed.pair(paper.BEST, p.method).p_holm
        assert row["win / tie / loss, measured"].text == row["win / tie / loss, recomputed"].text
    signs = cells(found["measured-signs"])
    assert set(signs) == set(printed)
    differ = sum(cell.mark == "differs" for row in signs.values() for cell in row.values())
    assert differ == sum(sign.differs for sign in paper.printed_signs()) == 34
    said = " ".join(text for section in page.sections for text in section.text)
    assert "98 of the 132 signs of Table 5 between the 12 methods compared" in said


def test_means_far_from_the_published_ones_are_listed():
    far = [a_result("SNN", d, 50, noise=0) for d in DATASETS[:2]]
    rows = cells(grids(page_of([*some_results(("WPedRVFL",)), *far]))["differences"])
    assert list(rows) == ["SNN"]
    assert rows["SNN"]["mean, measured"].text == "50.00"


# --- probabilities ---------------------------------------------------------------------------------------


def with_losses(result, log_loss, calibration_error):
    """The same result with other probabilities in the strict choice."""
    tables = {"log_loss": log_loss, "calibration_error": calibration_error}
    rows = {name: None if value is None else ((value,) * 2,) * 4 for name, value in tables.items()}
    strict = dataclasses.replace(result.scored["strict"], **rows)
    return dataclasses.replace(result, scored={**result.scored, "strict": strict})


@pytest.fixture(scope="module")
def losses():
    """Log-losses by dataset and method, of four digits; the first method is best almost everywhere."""
    methods, datasets = ["WPedRVFL", "SNN", "edRVFL_O", "BLS"], list(DATASETS[:12])
    drawn = np.random.default_rng(0).uniform(0.2, 0.9, (len(datasets), len(methods)))
    drawn[:, 0] /= 4
    return pd.DataFrame(drawn.round(4), index=datasets, columns=methods)


@pytest.fixture(scope="module")
def section(losses):
    printed = paper.accuracies()
    return show_probabilities(
        summary_of(
            *(
                with_losses(a_result(m, d, printed.loc[d, m]), losses.loc[d, m], losses.loc[d, m] / 8)
                for d in losses.index
                for m in losses
            )
        )
    )


def test_log_losses_their_means_and_ranks(section, losses):
    grid = next(grid for grid in section.grids if grid.key == "strict-log-loss")
    for dataset, row in cells(grid).items():
        for method, cell in row.items():
            assert cell.text == f"{losses.loc[dataset, method]:.4f}"
            assert (cell.mark == "best") == (losses.loc[dataset, method] == losses.loc[dataset].min())
    ranks = losses.rank(axis=1).mean()
    for method, mean, rank in zip(grid.columns[1:], *(row.cells for row in grid.foot), strict=True):
        assert mean.value == pytest.approx(losses[method].mean(), abs=6e-5)
        assert rank.value == pytest.approx(ranks[method], abs=6e-3)
    assert grid.columns == ("dataset", "WPedRVFL", "edRVFL_O", *grid.columns[3:])  # the subject first
    dots, diagram = section.pictures
    assert list(dots.table["log_loss"]) == sorted(dots.table["log_loss"])
    assert list(diagram.table["method"]) == list(ranks.sort_values().index)
    said = " ".join(section.text)
    assert "WPedRVFL has the best average rank by log-loss" in said
    assert f"with a mean of {losses['WPedRVFL'].mean():.4f}"[:-1] in said
    assert "The least mean calibration error is that of WPedRVFL" in said
    assert "falls most" in said


def test_the_tests_of_log_loss_are_scipys(section, losses):
    found = stats.friedmanchisquare(*losses.to_numpy().T)
    assert f"chi-square {found.statistic:.2f}" in " ".join(section.text)
    pairs = next(grid for grid in section.grids if grid.key == "pairs-log-loss")
    names = [tuple(row.head.split(" against ")) for row in pairs.rows]
    assert {frozenset(pair) for pair in names} == set(map(frozenset, itertools.combinations(losses, 2)))
    asked = {"method": "asymptotic", "correction": False}
    p = [stats.wilcoxon(losses[a] - losses[b], **asked).pvalue for a, b in names]
    holm = multipletests(p, method="holm")[1]
    for row, (a, b), plain, adjusted in zip(pairs.rows, names, p, holm, strict=True):
        wins, difference, p_normal, _, p_holm = row.cells
        assert wins.text.startswith(f"{(losses[a] < losses[b]).sum()} / ")  # less is better
        assert difference.value == pytest.approx((losses[a] - losses[b]).mean(), abs=6e-5)
        assert (p_normal.value, p_holm.value) == pytest.approx((plain, adjusted))


def test_old_records_have_no_calibration_error():
    rows = {"a": (0.5, 0.1), "b": (0.25, None)}
    results = [with_losses(a_result(m, d), *rows[m]) for m in rows for d in ("iris", "wine", "digits")]
    found = grids(page_of(results))
    overview = cells(found["probabilities-overview"])
    assert [overview[m]["mean calibration error"].text for m in "ab"] == ["0.1000", "missing"]
    assert "among the 1 method with one" in found["probabilities-overview"].notes[0]
    assert set(found["strict-calibration-error"].columns) == {"dataset", "a"}


# --- depth, times, costs ---------------------------------------------------------------------------------


def test_depth_is_over_datasets_that_all_methods_have():
    curves = some_curves(["a", "b"], ["iris", "wine"]) | {("iris", "c"): (70.0,)}  # c has no depth
    del curves["wine", "b"]
    results = tuple(a_result(m, d) for m in "abc" for d in ("iris", "wine"))
    table = pictures(make_page(summarise(Study(results, curves))))["accuracy_by_depth"].table
    assert set(table["method"]) == {"a", "b"}
    assert set(table["datasets"]) == {1}
    assert list(table["accuracy"][:3]) == [80.0, 82.0, 83.0]


def test_times_stand_beside_table_8():
    found = grids(whole_page())
    shown = [[row.cells[i].text for i in (0, 3, 5)] for row in found["timing"].rows]
    assert shown == [  # glass is not in Table 8
        *(["SNN", "2.0000", "2.8705"], ["WPedRVFL", "0.1000", "0.4898"]),
        *(["SNN", "2.0000", ""], ["WPedRVFL", "0.1000", ""]),
    ]
    assert "timing-ratios" not in found  # two methods need no table of their own


def test_times_of_several_methods_are_multiples_of_wpedrvfls():
    seconds = {"slow": (4.0, 9.0), "WPedRVFL": (2.0, 3.0), "quick": (0.5, 0.75), "partial": (1.0,)}
    timed = [a_time(d, m, s) for m, some in seconds.items() for d, s in zip("ab", some, strict=False)]
    found = grids(make_page(summarise(Study(timing=Timing(tuple(timed))))))
    shown = texts(found["timing-ratios"].rows)
    assert list(shown) == ["quick", "WPedRVFL", "slow"]
    assert shown["slow"] == ["2.00", "3.00", "2.45"]
    assert shown["quick"] == ["0.25"] * 3
    assert found["timing"].folded


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


def test_seconds_are_added_by_kind_and_device_and_shared_refits_once():
    (shared,), (one,) = (add_costs([a_run(strict)]) for strict in ((0, 0), (0, 1)))
    assert (shared.seconds, one.seconds) == (10 + 2 * 1.5, 10 + 3 * 1.5)
    timing = {"rows": 1, "features": 1, "parameters": "", "seconds": (2.0, 3.0), "warmups": 0, "repeats": 2}
    timing |= {"threads": 1, "blas": (), "processor": "a processor"}
    others = [a_run((0, 0)), TimingRecord(**COMMON, **timing), a_default("glass", "LightGBM")]
    costs = add_costs([a_run((0, 0), "cuda (a GPU)")] * 2 + others)
    assert [(c.kind, c.device, c.records) for c in costs] == [
        ("study", "cuda (a GPU)", 2),
        ("study", "processor", 1),
        ("timing", "a processor", 1),
        ("defaults", "a processor", 1),
    ]
    assert [c.seconds for c in costs] == pytest.approx([26, 13, 5, 8.8])
    (said,) = show_origins(summarise(Study(costs=costs))).text
    assert said.startswith("5 records took 27 seconds of processors and 26 seconds of processes on GPUs;")


# --- pictures --------------------------------------------------------------------------------------------


def test_every_picture_has_its_data():
    page, found = whole_page(), pictures(whole_page())
    assert list(found) == [
        *("accuracy_by_dataset", "critical_difference", "log_loss_and_calibration"),
        *("critical_difference_log_loss", "ours_against_published", "accuracy_by_depth"),
        *("sensitivity_correct_weight", "sensitivity_prune_rate"),
    ]
    assert list(found["critical_difference"].table["method"]) == list(whole_summary().standing.entries)
    assert page.front.picture.table["fit_seconds"].unique() == [0.5]
    assert list(found["sensitivity_prune_rate"].table["p"][:3]) == [0.0, 0.4, 0.8]
    assert len(found["ours_against_published"].table) == 120


def test_no_letter_is_below_ten_pixels_at_1280_and_no_name_is_cut():
    """The pictures of a study of full size as they are in the page: 17 methods on 24 datasets."""
    drawn = {key: drawing.inline for key, drawing in full_page().drawings.items()}
    assert len(drawn) >= 9
    for key, svg in drawn.items():
        width = float(re.search(r'viewBox="0 0 ([\d.]+)', svg)[1])  # in typographic points
        assert width * 4 / 3 <= CONTENT, key
        sizes = [float(size) for size in re.findall(r"font(?:-size)?:[^;\"]*?([\d.]+)px", svg)]
        assert min(sizes) * 4 / 3 >= 10, key
    for key in ("accuracy_by_dataset", "critical_difference", "critical_difference_log_loss"):
        assert "HistGradientBoosting" in drawn[key], key
        assert "…" not in drawn[key].partition("</desc>")[2], key
