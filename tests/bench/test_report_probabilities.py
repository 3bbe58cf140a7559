"""The section on log-loss and calibration, and the letters of every figure of a whole study."""

import dataclasses
import itertools
import re

import numpy as np
import pandas as pd
import pytest
from report_samples import DATASETS, a_result, cells, full_page
from scipy import stats
from statsmodels.stats.multitest import multipletests

from edrvfl.bench import paper
from edrvfl.bench.report.sections.probabilities import show_probabilities
from edrvfl.bench.report.sections.published import show_published
from edrvfl.bench.report.study import Study
from edrvfl.bench.report.summary import summarise

PAPERS = tuple(paper.accuracies())
CONTENT = 1016  # pixels of the page's content where the window has 1280


def with_losses(result, log_loss, calibration_error):
    """The same result with other probabilities in the strict choice."""
    tables = {"log_loss": log_loss, "calibration_error": calibration_error}
    rows = {name: None if value is None else ((value,) * 2,) * 4 for name, value in tables.items()}
    strict = dataclasses.replace(result.scored["strict"], **rows)
    return dataclasses.replace(result, scored={**result.scored, "strict": strict})


def losses_of(methods, datasets, seed=0):
    """Log-losses by dataset and method, of four digits; the first method is best almost everywhere."""
    drawn = np.random.default_rng(seed).uniform(0.2, 0.9, (len(datasets), len(methods)))
    drawn[:, 0] /= 4
    return pd.DataFrame(drawn.round(4), index=list(datasets), columns=list(methods))


@pytest.fixture(scope="module")
def losses():
    return losses_of(("WPedRVFL", "SNN", "edRVFL_O", "BLS"), DATASETS[:12])


@pytest.fixture(scope="module")
def section(losses):
    printed = paper.accuracies()
    results = [
        with_losses(a_result(m, d, printed.loc[d, m]), losses.loc[d, m], losses.loc[d, m] / 8)
        for d in losses.index
        for m in losses
    ]
    return show_probabilities(summarise(Study(tuple(results))))


def test_log_losses_their_means_and_ranks(section, losses):
    grid = next(grid for grid in section.grids if grid.key == "strict-log-loss")
    for dataset, row in cells(grid).items():
        for method, cell in row.items():
            assert cell.text == f"{losses.loc[dataset, method]:.4f}"
            assert (cell.mark == "best") == (losses.loc[dataset, method] == losses.loc[dataset].min())
    means, ranks = (dict(zip(grid.columns[1:], row.cells, strict=True)) for row in grid.foot)
    for method in losses:
        assert means[method].value == pytest.approx(losses[method].mean(), abs=6e-5)
        assert ranks[method].value == pytest.approx(losses.rank(axis=1)[method].mean(), abs=6e-3)
    assert grid.columns == ("dataset", "WPedRVFL", "edRVFL_O", *grid.columns[3:])  # the subject first


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


def test_the_sentences_say_who_is_best_and_who_moves(section, losses):
    said = " ".join(section.text)
    best = f"{losses['WPedRVFL'].mean():.4f}"[:5]
    assert "WPedRVFL has the best average rank by log-loss" in said
    assert f"with a mean of {best}" in said
    assert "The least mean calibration error is that of WPedRVFL" in said
    assert "falls most" in said


def test_pictures_hold_their_data(section, losses):
    dots, diagram = section.pictures
    assert list(dots.table["log_loss"]) == sorted(dots.table["log_loss"])
    assert dict(zip(dots.table["method"], dots.table["log_loss"], strict=True)) == pytest.approx(
        losses.mean().to_dict(), abs=6e-5
    )
    ranks = losses.rank(axis=1).mean().sort_values()
    assert list(diagram.table["method"]) == list(ranks.index)


def test_old_records_have_no_calibration_error():
    results = [with_losses(a_result("a", d), 0.5, 0.1) for d in ("iris", "wine", "digits")]
    results += [with_losses(a_result("b", d), 0.25, None) for d in ("iris", "wine", "digits")]
    section = show_probabilities(summarise(Study(tuple(results))))
    found = {grid.key: grid for grid in section.grids}
    overview = cells(found["probabilities-overview"])
    assert overview["a"]["mean calibration error"].text == "0.1000"
    assert overview["b"]["mean calibration error"].text == "missing"
    assert found["probabilities-overview"].notes == (
        "Ranks by calibration error are among the 1 method with one.",
    )
    assert set(found["strict-calibration-error"].columns) == {"dataset", "a"}


# --- published beside measured ---------------------------------------------------------------------------


def test_twelve_methods_measured_beside_published():
    """If the paper's own figures are measured, the measured tests are those of its own Table 3."""
    printed = paper.accuracies()
    results = [a_result(m, d, printed.loc[d, m], noise=0) for d in DATASETS for m in PAPERS]
    results += [a_result("dRVFL", d, 99.0) for d in DATASETS[:3]]  # another method changes nothing
    section = show_published(summarise(Study(tuple(results))))
    found = {grid.key: grid for grid in section.grids}
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
    assert set(signs) == set(PAPERS)
    differ = sum(cell.mark == "differs" for row in signs.values() for cell in row.values())
    assert differ == sum(sign.differs for sign in paper.printed_signs()) == 34
    assert "98 of the 132 signs of Table 5 between the 12 methods compared" in " ".join(section.text)


# --- letters ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def drawn():
    """The pictures of a study of full size as they are in the page: 17 methods on 24 datasets."""
    return {key: drawing.inline for key, drawing in full_page().drawings.items()}


def test_no_letter_is_below_ten_pixels_at_1280(drawn):
    assert len(drawn) >= 9
    for key, svg in drawn.items():
        width = float(re.search(r'viewBox="0 0 ([\d.]+)', svg)[1])  # in typographic points
        assert width * 4 / 3 <= CONTENT, key
        sizes = [float(size) for size in re.findall(r"font(?:-size)?:[^;\"]*?([\d.]+)px", svg)]
        assert sizes, key
        assert min(sizes) * 4 / 3 >= 10, key


def test_no_name_is_cut(drawn):
    for key in ("accuracy_by_dataset", "critical_difference", "critical_difference_log_loss"):
        assert "HistGradientBoosting" in drawn[key], key
        assert "…" not in drawn[key].partition("</desc>")[2], key
