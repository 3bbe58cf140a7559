"""Names beside points: they do not lie on each other, as matplotlib itself measures them."""

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.backends.backend_agg import FigureCanvasAgg

from edrvfl.bench import figures
from edrvfl.bench.figures.labels import CLEAR, boxes_around, overlaps, place_labels

FRAME = (0.0, 0.0, 400.0, 300.0)


def written(figure):
    """The boxes of the names in the first axes, in pixels, by their text."""
    renderer = FigureCanvasAgg(figure).get_renderer()
    figure.draw(renderer)
    named = [text for text in figure.axes[0].texts if text.get_text()]
    return {text.get_text(): text.get_window_extent(renderer) for text in named}


def some_points(n, seed=0):
    """Points with clusters, and two at the same place if there are more than five."""
    rng = np.random.default_rng(seed)
    at = np.column_stack([10 ** rng.normal(0, 0.6, n), 82 + 2 * rng.normal(size=n)])
    at[5:6] = at[4:5]
    kinds = itertools.cycle(("ours", "peer", "paper"))
    rows = [(f"method {i}", x, y, next(kinds), i % 3 == 2) for i, (x, y) in enumerate(at)]
    return pd.DataFrame(rows, columns=["method", "fit_seconds", "accuracy", "kind", "gpu"])


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.floats(5, 395), st.floats(5, 295)), min_size=1, max_size=12))
def test_names_lie_apart_and_inside_and_off_the_points(points):
    points, sizes = np.array(points), np.tile([55.0, 9.0], (len(points), 1))
    places = place_labels(points, sizes, FRAME)
    boxes = boxes_around(points + [(place.x, place.y) for place in places], sizes)
    assert overlaps(boxes, boxes).sum() == len(boxes)  # each on itself alone
    assert (boxes[:, :2] >= 0).all()
    assert (boxes[:, 2:] <= FRAME[2:]).all()
    assert not overlaps(boxes, boxes_around(points, np.full((len(points), 2), 2 * CLEAR))).any()


def test_the_first_choice_is_the_right_side_then_the_left():
    free, edge = place_labels(np.array([[50.0, 50.0], [390.0, 200.0]]), np.full((2, 2), [40.0, 9.0]), FRAME)
    assert (free.x > 20, free.y, free.led) == (True, 0.0, False)
    assert (edge.x < -20, edge.y, edge.led) == (True, 0.0, False)


def test_what_should_be_avoided_is_avoided_if_there_is_another_place():
    at, size = np.array([[200.0, 150.0]]), np.array([[40.0, 9.0]])
    right = boxes_around(np.array([[230.0, 150.0]]), np.array([[10.0, 10.0]]))
    (place,) = place_labels(at, size, FRAME, avoid=right)
    assert place.x < 0
    (place,) = place_labels(at, size, FRAME, avoid=np.array([FRAME]))
    assert place.x > 0


@pytest.mark.parametrize("n", [1, 2, 25])
def test_every_method_is_named_beside_its_point(n):
    points = some_points(n)
    figure = figures.time_figure(points)
    boxes, ax = written(figure), figure.axes[0]
    assert set(boxes) == set(points["method"])
    for (a, first), (b, second) in itertools.combinations(boxes.items(), 2):
        assert not first.overlaps(second), (a, b)
    page = figure.bbox
    assert all(page.x0 <= box.x0 and box.x1 <= page.x1 for box in boxes.values())
    assert ax.get_xscale() == "log"


def test_the_frontier_is_the_best_up_to_a_time():
    points = some_points(25)
    ax = figures.time_figure(points).axes[0]
    (line,) = (each for each in ax.lines if each.get_linestyle() == "-")
    x, y = np.asarray(line.get_xdata()), np.asarray(line.get_ydata())
    processor = points[~points["gpu"]]
    for seconds in processor["fit_seconds"]:
        best = processor["accuracy"][processor["fit_seconds"] <= seconds].max()
        assert y[x <= seconds].max() == best, "seconds of a GPU are not on equal terms"
    assert (np.diff(y) >= 0).all()


def test_kinds_differ_in_colour_and_marker_and_points_of_a_gpu_are_hollow():
    figure = figures.time_figure(some_points(6))
    words = [text.get_text() for text in figure.legends[0].get_texts()]
    assert words == ["best so far", "this package", "peers", "the paper's others", "hollow: GPU"]
    box = figure.legends[0].get_window_extent(FigureCanvasAgg(figure).get_renderer())
    assert figure.bbox.x0 <= box.x0
    assert box.x1 <= figure.bbox.x1
    drawn = [
        line for line in figure.axes[0].lines if len(line.get_xdata()) and line.get_linestyle() == "None"
    ]
    assert len({line.get_color() for line in drawn}) == len({line.get_marker() for line in drawn}) == 3
    assert [line.get_markerfacecolor() == "none" for line in drawn] == [False, False, True]
