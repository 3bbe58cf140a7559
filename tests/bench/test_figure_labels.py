"""Names beside points: they do not lie on each other, as matplotlib itself measures them."""

import itertools

import numpy as np
import pandas as pd
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text

from edrvfl.bench.figures.points import time_figure


def check_names_are_apart(figure):
    """Draw a figure, see that its names lie apart, in the figure and off all points, and return them."""
    renderer, found = FigureCanvasAgg(figure).get_renderer(), []
    figure.draw(renderer)
    for ax in figure.axes:
        named = [text for text in ax.texts if text.get_text()]
        boxes = [
            Text.get_window_extent(text, renderer) for text in named
        ]  # without the lines that lead there
        for first, second in itertools.combinations(boxes, 2):
            assert not first.overlaps(second)
        dots = [line for line in ax.lines if line.get_linestyle() == "None"]
        for at in ax.transData.transform(np.vstack([line.get_xydata() for line in dots])):
            assert not any(box.contains(*at) for box in boxes)
        assert all(figure.bbox.x0 <= box.x0 and box.x1 <= figure.bbox.x1 for box in boxes)
        found += [text.get_text() for text in named]
    return found


def some_points(n, seed=0):
    """Points with clusters, and two at the same place if there are more than five."""
    rng = np.random.default_rng(seed)
    at = np.column_stack([10 ** rng.normal(0, 0.6, n), 82 + 2 * rng.normal(size=n)])
    at[5:6] = at[4:5]
    kinds = itertools.cycle(("ours", "peer", "paper"))
    rows = [(f"method {i}", x, y, next(kinds), i % 3 == 2) for i, (x, y) in enumerate(at)]
    return pd.DataFrame(rows, columns=["method", "fit_seconds", "accuracy", "kind", "gpu"])


@pytest.mark.parametrize(("n", "seed"), [(1, 0), (2, 0), (25, 0), (25, 1), (30, 2)])
def test_every_method_is_named_beside_its_point(n, seed):
    points = some_points(n, seed)
    figure = time_figure(points)
    assert sorted(check_names_are_apart(figure)) == sorted(points["method"])
    assert figure.axes[0].get_xscale() == "log"


def test_a_name_is_right_of_its_point_or_left_of_it_at_the_edge():
    rows = [("left", 1.0, 80.0, "ours", True), ("right, with a long name", 100.0, 85.0, "ours", False)]
    columns = ["method", "fit_seconds", "accuracy", "kind", "gpu"]
    figure = time_figure(pd.DataFrame(rows, columns=columns))
    assert {text.get_text(): text.get_ha() for text in figure.axes[0].texts} == {
        "left": "left",
        "right, with a long name": "right",
    }


def test_the_frontier_is_the_best_up_to_a_time():
    points = some_points(25)
    ax = time_figure(points).axes[0]
    (line,) = (each for each in ax.lines if each.get_linestyle() == "-")
    x, y = np.asarray(line.get_xdata()), np.asarray(line.get_ydata())
    processor = points[~points["gpu"]]
    for seconds in processor["fit_seconds"]:
        best = processor["accuracy"][processor["fit_seconds"] <= seconds].max()
        assert y[x <= seconds].max() == best, "seconds of a GPU are not on equal terms"
    assert (np.diff(y) >= 0).all()


def test_kinds_differ_in_colour_and_marker_and_points_of_a_gpu_are_hollow():
    figure = time_figure(some_points(6))
    words = [text.get_text() for text in figure.legends[0].get_texts()]
    assert words == ["best so far", "this package", "peers", "the paper's others", "hollow: GPU"]
    box = figure.legends[0].get_window_extent(FigureCanvasAgg(figure).get_renderer())
    assert figure.bbox.x0 <= box.x0
    assert box.x1 <= figure.bbox.x1
    lines = figure.axes[0].lines
    drawn = [line for line in lines if len(line.get_xdata()) and line.get_linestyle() == "None"]
    assert len({line.get_color() for line in drawn}) == len({line.get_marker() for line in drawn}) == 3
    assert [line.get_markerfacecolor() == "none" for line in drawn] == [False, False, True]
