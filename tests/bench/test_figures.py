import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from matplotlib.figure import Figure

from edrvfl.bench import figures, published
from edrvfl.bench.published import Table
from edrvfl.bench.statistics import critical_difference

HOSTILE = "<script>alert(1)</script> $x_1$ & {rank} \x07" + "long " * 20
DATASETS = ("glass", HOSTILE, "wine")
METHODS = ("edRVFL_O", "WPedRVFL", HOSTILE)


def sensitivity(parameter):
    rows = [
        (d, a, v, 90 + v, sd)
        for d in DATASETS
        for a, sd in (("relu", 0.5), ("sigmoid", None))
        for v in (0.0, 0.4, 0.8)
    ]
    return Table(
        f"by_{parameter}", "T", ("dataset", "activation", parameter, "test_accuracy", "sd"), tuple(rows)
    )


def ranks():
    cd = critical_difference(published.accuracies())
    rows = tuple((m, r, cd.difference, *p) for m, r, p in zip(cd.methods, cd.ranks, cd.p_values, strict=True))
    columns = ("method", "average_rank", "critical_difference", *(f"p_{m}" for m in cd.methods))
    return Table("critical_difference", "T", columns, rows)


PAIRS = tuple((d, m) for d in DATASETS for m in METHODS)
TABLES = {
    "weighting": (figures.sensitivity_figure, sensitivity("omega_r")),
    "pruning": (figures.sensitivity_figure, sensitivity("p")),
    "depth": (
        figures.depth_figure,
        Table(
            "depth",
            "T",
            ("method", "depth", "accuracy"),
            tuple((m, l, 80.0 + l) for m in METHODS for l in (1, 2)),
        ),
    ),
    "ranks": (figures.critical_difference_figure, ranks()),
    "published": (
        figures.published_figure,
        Table(
            "pub",
            "T",
            ("dataset", "method", "published", "measured"),
            tuple((d, m, 80.0, 82.5) for d, m in PAIRS),
        ),
    ),
    "time": (
        figures.time_figure,
        Table(
            "time",
            "T",
            ("method", "fit_seconds", "accuracy"),
            tuple((m, 0.1**i, 80.0 + i) for i, m in enumerate(METHODS)),
        ),
    ),
    "one time": (
        figures.time_figure,
        Table("time", "T", ("method", "fit_seconds", "accuracy"), (("a", 1.0, 80.0),)),
    ),
    "heat map": (
        figures.heatmap_figure,
        Table(
            "heat",
            "T",
            ("dataset", "method", "accuracy"),
            tuple((d, m, None if m == HOSTILE else 80.0) for d, m in PAIRS),
        ),
    ),
    "one cell": (
        figures.heatmap_figure,
        Table("heat", "T", ("dataset", "method", "accuracy"), (("d", "m", 80.0),)),
    ),
    "two methods": (
        figures.critical_difference_figure,
        Table(
            "cd",
            "T",
            ("method", "average_rank", "critical_difference", "p_a", "p_b"),
            ((HOSTILE, 1.5, 1.0, 1.0, 1.0), (HOSTILE + "!", 1.5, 1.0, 1.0, 1.0)),
        ),
    ),
}


@pytest.mark.parametrize("name", TABLES)
def test_table_in_figure_out(name, tmp_path):
    draw, table = TABLES[name]
    figure = draw(table)
    assert isinstance(figure, Figure)
    svg, data = figures.save(figure, table, tmp_path)
    ET.fromstring(svg.read_text(encoding="utf-8"))
    assert data.read_text(encoding="utf-8").count("\n") > len(table.rows) - 1
    inline = figures.to_inline_svg(figure, "key", 'A "name" <b>', "About & so on")
    root = ET.fromstring(inline)
    assert root.get("role") == "img"
    assert root.get("aria-label") == 'A "name" <b>. About & so on'
    ids = [e.get("id") for e in root.iter() if e.get("id")]
    assert len(ids) == len(set(ids))
    assert all(i.startswith("key-") for i in ids)
    used = re.findall(r'(?:href="#|url\(#)([^")]+)', inline)
    assert set(used) <= set(ids)
    assert "<script" not in inline
    assert figures.INK not in inline
    assert "currentColor" in inline


def test_a_figure_is_the_same_file_every_time():
    draw, table = TABLES["depth"]
    assert figures.to_svg(draw(table)) == figures.to_svg(draw(table))


def test_curves_are_told_apart_without_colour():
    looks = figures._looks([f"m{i}" for i in range(20)])
    assert len({(look["marker"], str(look["ls"])) for look in looks.values()}) == 20
    assert len({(look["marker"], look["color"]) for look in looks.values()}) == 20


def test_a_known_method_looks_the_same_in_any_company():
    assert figures._looks(["x", "WPedRVFL"])["WPedRVFL"] == figures._looks(["WPedRVFL", "SNN"])["WPedRVFL"]
    assert len({str(v) for v in figures._looks(published.accuracies().methods).values()}) == 12


def test_the_sensitivity_figure_draws_its_table():
    table = sensitivity("omega_r")
    figure = figures.sensitivity_figure(table)
    assert len(figure.axes) == 3
    ax = figure.axes[0]
    assert ax.xaxis_inverted()
    assert [len(line.get_xdata()) for line in ax.lines] == [3, 3]
    assert list(ax.lines[0].get_ydata()) == [90.0, 90.4, 90.8]
    low, high = ax.collections[0].get_paths()[0].get_extents().intervaly
    assert (low, high) == pytest.approx((89.5, 91.3))


def test_bars_join_what_is_not_told_apart():
    """In the published table the best group is WPedRVFL, PedRVFL, WedRVFL."""
    figure = figures.critical_difference_figure(ranks())
    bars = [line for line in figure.axes[0].lines if line.get_color() == figures.COLOURS[1]]
    spans = {(round(min(line.get_xdata()), 2), round(max(line.get_xdata()), 2)) for line in bars}
    assert len(spans) == len(critical_difference(published.accuracies()).groups)
    assert (1.42, 3.04) in spans


def test_the_bars_of_the_ranks_are_drawn_in_order():
    lines = figures.critical_difference_figure(ranks()).axes[0].get_lines()
    bars = [np.asarray(line.get_xdata()) for line in lines if len(set(line.get_ydata())) == 1]
    assert max(len(x) for x in bars) > 2
    assert all((np.diff(x) >= 0).all() for x in bars)
