"""Reliability is counted as by hand, and drawn as counted."""

import matplotlib
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.stats import binomtest
from sklearn.calibration import calibration_curve
from small_models import numbers, small_model

from edrvfl import ReliabilityDisplay

matplotlib.use("Agg")
import matplotlib.pyplot as plt


def test_dots_are_the_groups():
    model, X = small_model("classifier")
    codes = numbers()[1]
    display = ReliabilityDisplay.from_estimator(model, X, codes, n_bins=4)
    P = model.predict_proba(X)
    right = model.predict(X) == codes
    # scikit-learn's groups by quantiles, of the event that the most probable class is right
    share, confidence = calibration_curve(right, P.max(axis=1), n_bins=4, strategy="quantile")
    dots = next(line for line in display.ax_.lines if len(line.get_xdata()) == 4)
    assert_allclose(dots.get_xdata(), confidence)
    assert_allclose(dots.get_ydata(), share)
    assert display.counts == [15] * 4
    assert display.calibration_error == pytest.approx(np.mean(np.abs(share - confidence)))
    assert f"EDRVFLClassifier: calibration error {display.calibration_error:.3f}" in dots.get_label()
    (spans,) = display.ax_.collections
    for path, count in zip(spans.get_paths(), np.round(15 * share).astype(int), strict=True):
        interval = binomtest(int(count), 15).proportion_ci(0.95, method="wilson")
        assert_allclose(path.vertices[:, 1], (interval.low, interval.high), atol=1e-9)


@settings(max_examples=20)
@given(m=st.integers(1, 40), n_bins=st.integers(1, 12), seed=st.integers(0, 99))
def test_groups_hold_all_rows_and_are_nearly_equal(m, n_bins, seed):
    rng = np.random.default_rng(seed)
    P = rng.dirichlet([1, 1, 1], size=m)
    y = rng.integers(0, 3, m)
    ax = plt.gca()  # the same for all examples: axes take longer than what is drawn into them
    ax.clear()
    display = ReliabilityDisplay.from_predictions(y, P, classes=[0, 1, 2], n_bins=n_bins, ax=ax)
    counts = np.array(display.counts)
    assert counts.sum() == m
    assert np.ptp(counts) <= 1
    assert np.dot(counts, display.shares) == pytest.approx(np.sum(P.argmax(axis=1) == y))
    assert np.dot(counts, display.confidences) == pytest.approx(P.max(axis=1).sum())
    assert list(display.confidences) == sorted(display.confidences)


def test_two_displays_share_axes_and_differ_in_colour():
    y, P = np.array([0, 1, 1, 0]), np.array([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4], [0.7, 0.3]])
    sharp = ReliabilityDisplay.from_predictions(y, P, classes=[0, 1], n_bins=2, name="sharp")
    flat = ReliabilityDisplay.from_predictions(y, P**0.2, classes=[0, 1], n_bins=2, ax=sharp.ax_)
    assert flat.ax_ is sharp.ax_
    named = [line for line in sharp.ax_.lines if not line.get_label().startswith("_")]
    assert len({line.get_color() for line in named}) == 2
    assert len(sharp.ax_.lines) == 3  # one diagonal
    texts = [text.get_text() for text in sharp.ax_.get_legend().get_texts()]
    assert texts[0].startswith("sharp: calibration error")
    assert texts[1].startswith("calibration error")


def test_labels_in_a_column_are_labels():
    y, P = np.array([0, 1, 1, 0]), np.array([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4], [0.7, 0.3]])
    flat = ReliabilityDisplay.from_predictions(y, P, classes=[0, 1], n_bins=2)
    column = ReliabilityDisplay.from_predictions(y[:, None], P, classes=[0, 1], n_bins=2)
    assert column.shares == flat.shares == [0.5, 1.0]
    with pytest.raises(ValueError, match="y should be a 1d array"):
        ReliabilityDisplay.from_predictions(np.eye(4)[:, :2], P, classes=[0, 1])


def test_a_long_name_leaves_room_for_the_error():
    name = r"$\frac$ and a name that goes on and on"  # not a formula
    display = ReliabilityDisplay(confidences=[0.7], shares=[0.6], counts=[9], name=name).plot()
    display.figure_.draw_without_rendering()
    assert display.ax_.get_legend().get_window_extent().x1 <= display.figure_.bbox.x1


def test_a_label_that_the_model_does_not_know_is_never_right():
    P = np.array([[0.9, 0.1], [0.8, 0.2]])
    display = ReliabilityDisplay.from_predictions(["a", "z"], P, classes=["a", "b"], n_bins=1)
    assert display.shares == [0.5]


def test_what_cannot_be_drawn_is_refused():
    with pytest.raises(TypeError, match="but got EDRVFLRegressor"):
        ReliabilityDisplay.from_estimator(small_model("regressor")[0], [[0]], [0])
    with pytest.raises(ValueError, match=r"each of 3 classes, but its shape is \(2, 2\)"):
        ReliabilityDisplay.from_predictions([0, 1], np.eye(2), classes=[0, 1, 2])
    with pytest.raises(ValueError, match="at least 1, got 0"):
        ReliabilityDisplay.from_predictions([0, 1], np.eye(2), classes=[0, 1], n_bins=0)
