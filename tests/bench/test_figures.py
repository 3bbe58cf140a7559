import itertools
import re

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from report_samples import HOSTILE, ranks_table

from edrvfl.bench import paper
from edrvfl.bench.comparison import critical_difference
from edrvfl.bench.figures import charts, look, points

DATASETS = ("glass", HOSTILE, "wine")
METHODS = ("edRVFL_O", "WPedRVFL", HOSTILE)
PAIRS = tuple(itertools.product(DATASETS, METHODS))


def sensitivity(parameter):
    rows = [
        (d, a, v, 90 + v, sd)
        for d in DATASETS
        for a, sd in (("relu", 0.5), ("sigmoid", None))
        for v in (0.0, 0.4, 0.8)
    ]
    return pd.DataFrame(rows, columns=["dataset", "activation", parameter, "test_accuracy", "sd"])


def frame(columns, rows):
    return pd.DataFrame(list(rows), columns=columns.split())


TABLES = {
    "weighting": (charts.sensitivity_figure, sensitivity("omega_r")),
    "pruning": (charts.sensitivity_figure, sensitivity("p")),
    "depth": (
        charts.depth_figure,
        frame("method depth accuracy", ((m, l, 80.0 + l) for m in METHODS for l in (1, 2))),
    ),
    "ranks": (charts.critical_difference_figure, ranks_table()),
    "two methods": (
        charts.critical_difference_figure,
        frame(
            "method average_rank critical_difference p_a p_b",
            ((HOSTILE + end, 1.5, 1.0, 1.0, 1.0) for end in ("", "!")),
        ),
    ),
    "published": (
        points.published_figure,
        frame("dataset method published measured", ((*pair, 80.0, 82.5) for pair in PAIRS)),
    ),
    "time": (
        points.time_figure,
        frame(
            "method fit_seconds accuracy kind gpu",
            ((m, 0.1**i, 80.0 + i, "ours", i % 2 == 0) for i, m in enumerate(METHODS)),
        ),
    ),
    "one time": (
        points.time_figure,
        frame("method fit_seconds accuracy kind gpu", [("a", 1.0, 80.0, "peer", True)]),
    ),
    "heat map": (
        charts.heatmap_figure,
        frame("dataset method accuracy", ((d, m, None if m == HOSTILE else 80.0) for d, m in PAIRS)),
    ),
    "probabilities": (
        charts.probabilities_figure,
        frame("method kind log_loss calibration_error", ((m, "ours", 0.5, None) for m in METHODS)),
    ),
    "one cell": (charts.heatmap_figure, frame("dataset method accuracy", [("d", "m", 80.0)])),
    "no cell": (charts.heatmap_figure, frame("dataset method accuracy", [("d", "m", np.nan)])),
    "Chinese": (charts.heatmap_figure, frame("dataset method accuracy", [("数据", "方法", 80.0)])),
}


@pytest.mark.parametrize("name", TABLES)
def test_table_in_figure_out(name):
    """Warnings are errors here, so this also covers letters that matplotlib's font does not have."""
    draw, table = TABLES[name]
    assert isinstance(draw(table), Figure)


def test_curves_are_told_apart_without_colour():
    looks = look.choose_looks([f"m{i}" for i in range(20)])
    assert len({(look["marker"], str(look["ls"])) for look in looks.values()}) == 20
    assert len({(look["marker"], look["color"]) for look in looks.values()}) == 20


def test_a_known_method_looks_the_same_in_any_company():
    assert (
        look.choose_looks(["x", "WPedRVFL"])["WPedRVFL"] == look.choose_looks(["WPedRVFL", "SNN"])["WPedRVFL"]
    )
    assert len({str(v) for v in look.choose_looks(list(paper.accuracies())).values()}) == 12


def test_the_sensitivity_figure_draws_its_table():
    figure = charts.sensitivity_figure(sensitivity("omega_r"))
    assert len(figure.axes) == 3
    ax = figure.axes[0]
    assert ax.xaxis_inverted()
    assert [len(line.get_xdata()) for line in ax.lines] == [3, 3]
    assert list(ax.lines[0].get_ydata()) == [90.0, 90.4, 90.8]
    low, high = ax.collections[0].get_paths()[0].get_extents().intervaly
    assert (low, high) == pytest.approx((89.5, 91.3))


def test_the_heat_map_writes_every_accuracy_and_says_what_is_missing():
    table = frame(
        "dataset method accuracy", [("d", "a", 80.0), ("d", "b", 82.5), ("e", "a", np.nan), ("e", "b", 1.0)]
    )
    ax = charts.heatmap_figure(table).axes[0]
    assert [text.get_text() for text in ax.texts] == ["80.00", "82.50", "missing", "1.00"]
    np.testing.assert_allclose(ax.images[0].get_array(), [[2.5, 0.0], [np.nan, 0.0]])


def test_bars_join_what_is_not_told_apart():
    """In the published table the best group is WPedRVFL, PedRVFL, WedRVFL."""
    figure = charts.critical_difference_figure(ranks_table())
    bars = [line for line in figure.axes[0].lines if line.get_color() == look.COLOURS[1]]
    spans = {(round(min(line.get_xdata()), 2), round(max(line.get_xdata()), 2)) for line in bars}
    assert (1.42, 3.04) in spans
    cd = critical_difference(paper.accuracies())
    for a, b in itertools.combinations(np.round(cd.ranks, 2), 2):
        assert any(low <= a and b <= high for low, high in spans) == (b - a < cd.difference)


def test_ranks_are_printed_as_in_the_tables():
    """Half up: formatting 1.125 would print 1.12."""
    rows = [("a", 1.125, 0.5, 1.0, 0.1), ("b", 1.875, 0.5, 0.1, 1.0)]
    figure = charts.critical_difference_figure(frame("method average_rank critical_difference a b", rows))
    said = " ".join(text.get_text() for text in figure.axes[0].texts)
    assert re.findall(r"\d\.\d\d", said.replace("critical difference 0.50", "")) == ["1.13", "1.88"]


def test_the_bars_of_the_ranks_are_drawn_in_order():
    """The diagram's own order is that of a set, so the file would differ from process to process."""
    lines = charts.critical_difference_figure(ranks_table()).axes[0].get_lines()
    bars = [np.asarray(line.get_xdata()) for line in lines if len(set(line.get_ydata())) == 1]
    assert max(len(x) for x in bars) > 2
    assert all((np.diff(x) >= 0).all() for x in bars)


def test_published_has_a_panel_for_each_method_and_names_what_is_far():
    gaps = enumerate((0, 4, -6, 9))
    rows = [(f"d{i}", m, 80.0, 80.0 + gap) for i, gap in gaps for m in ("SNN", "WPedRVFL")]
    figure = points.published_figure(frame("dataset method published measured", rows))
    assert [ax.get_title() for ax in figure.axes] == ["WPedRVFL", "SNN"]
    for ax in figure.axes:
        assert {text.get_text() for text in ax.texts} - {""} == {"d2", "d3"}


def test_dots_show_both_metrics_best_first():
    rows = [("b", "peer", 0.75, np.nan), ("a", "ours", 0.25, 0.0625)]
    left, right = charts.probabilities_figure(frame("method kind log_loss calibration_error", rows)).axes
    assert [label.get_text() for label in left.get_yticklabels()] == ["a", "b"]
    assert [text.get_text() for text in left.texts] == ["0.2500", "0.7500"]
    assert [text.get_text() for text in right.texts] == ["0.0625", "missing"]


def test_a_heat_map_is_no_wider_than_the_page():
    rows = [(d, f"method {i}", 90.26) for d in "ab" for i in range(15)]
    assert charts.heatmap_figure(frame("dataset method accuracy", rows)).get_figwidth() <= look.WIDEST
