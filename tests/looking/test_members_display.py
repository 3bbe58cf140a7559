"""The picture of a portfolio shows what its table of members says."""

import sys
from itertools import pairwise

import matplotlib
import numpy as np
import pytest
from helpers import noisy_values
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.exceptions import NotFittedError

from edrvfl import (
    EDRVFLClassifier,
    EDRVFLPortfolioClassifier,
    EDRVFLPortfolioRegressor,
    EDRVFLRegressor,
    KernelRidgeClassifier,
    KernelRidgeRegressor,
    MembersDisplay,
)

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.colors import to_rgb


@pytest.fixture(scope="module")
def model():
    X, y = load_breast_cancer(return_X_y=True)
    return EDRVFLPortfolioClassifier(finalists=3, random_state=0).fit(X[::4], y[::4])


def lightness(colour):
    return np.mean(to_rgb(colour))


def test_bars_and_dots_are_those_of_the_table(model):
    weights, losses = MembersDisplay.from_estimator(model).ax_
    names = [label.get_text() for label in weights.get_yticklabels()]
    places = [names.index(name) for name in model.members_["member"]]
    bars = np.array([bar.get_width() for bar in weights.patches])
    dots = np.asarray(losses.collections[0].get_offsets())
    assert bars[places] == pytest.approx(model.members_["weight"])
    assert dots[places, 0] == pytest.approx(model.members_["loo_log_loss"])
    assert dots[:, 1] == pytest.approx([bar.get_y() + bar.get_height() / 2 for bar in weights.patches])
    assert losses.lines[0].get_xdata()[0] == model.loo_log_loss_
    assert list(bars) == sorted(bars, reverse=True)
    assert weights.get_ylim() == losses.get_ylim()  # a bar and its dot are at the same height
    assert weights.yaxis_inverted()  # the heaviest is on top


def test_a_regressor_shows_its_r2(rng):
    networks = [(g, EDRVFLRegressor(n_layers=1, n_hidden=8, activation=g)) for g in ("relu", "sin", "tanh")]
    members = [("kernel", KernelRidgeRegressor()), *networks]
    model = EDRVFLPortfolioRegressor(members=members, finalists=1, random_state=0).fit(
        *noisy_values(rng, 60, 3)
    )
    weights, figures = MembersDisplay.from_estimator(model).ax_
    names = [label.get_text() for label in weights.get_yticklabels()]
    places = [names.index(name) for name in model.members_["member"]]
    dots = np.asarray(figures.collections[0].get_offsets())[:, 0]
    assert dots[places] == pytest.approx(model.members_["loo_r2_score"])
    assert dots[2] > dots[3]  # of two without a say the better is above
    assert figures.lines[0].get_xdata()[0] == model.loo_r2_score_
    assert figures.get_xlabel() == "leave-one-out R^2"


def test_members_without_a_say_are_pale(model):
    weights, losses = MembersDisplay.from_estimator(model).ax_
    bars = [bar.get_width() for bar in weights.patches]
    assert 0 in bars
    dots = [lightness(colour[:3]) for colour in losses.collections[0].get_facecolors()]
    n_heavy = sum(bar > 0 for bar in bars)  # they come first
    assert max(dots[:n_heavy]) + 0.3 < min(dots[n_heavy:])
    words = [text.get_text() for text in weights.texts]
    assert [word == "no say" for word in words] == [bar == 0 for bar in bars]


def test_names_do_not_overlap_and_stay_inside_with_twelve_members():
    names = [f"network {i} of this table" for i in range(11)]
    members = [(name, EDRVFLClassifier(n_hidden=8, n_layers=1)) for name in names]
    members.append(("kernel", KernelRidgeClassifier(bandwidth=1.0, regularization=1.0)))
    model = EDRVFLPortfolioClassifier(members=members, random_state=0).fit(*load_wine(return_X_y=True))
    display = MembersDisplay.from_estimator(model)
    display.figure_.draw_without_rendering()
    boxes = [label.get_window_extent() for label in display.ax_[0].get_yticklabels()]
    assert len(boxes) == 12
    assert all(low.y1 < high.y0 for high, low in pairwise(boxes))
    assert min(box.x0 for box in boxes) >= 0


def test_given_axes_are_divided(model):
    figure, panels = plt.subplots(1, 2, layout="constrained", figsize=(14, 3))
    display = MembersDisplay.from_estimator(model, ax=panels[0])
    assert display.figure_ is figure
    assert len(plt.get_fignums()) == 1
    figure.draw_without_rendering()
    room, free = panels[0].get_window_extent(), panels[1].get_window_extent()
    for panel in display.ax_:
        box = panel.get_window_extent()
        assert room.x0 - 1 <= box.x0 < box.x1 <= room.x1 + 1 < free.x0
    again = display.plot()
    assert again is display
    assert again.figure_ is not figure


def test_one_member_alone():
    members = [("only", EDRVFLClassifier(n_hidden=8, n_layers=1))]
    model = EDRVFLPortfolioClassifier(members=members, random_state=0).fit(*load_wine(return_X_y=True))
    weights, _ = MembersDisplay.from_estimator(model).ax_
    assert [bar.get_width() for bar in weights.patches] == [1.0]


def test_names_are_no_formulas():
    names = [r"$\frac$", "$"]  # the first is none that could be set
    display = MembersDisplay(names=names, weights=[0.6, 0.4], figures=[0.1, 0.2], common_figure=0.1).plot()
    display.figure_.draw_without_rendering()
    assert [label.get_text() for label in display.ax_[0].get_yticklabels()] == [r"\$\frac\$", r"\$"]


def test_what_cannot_be_drawn_is_refused():
    with pytest.raises(NotFittedError):
        MembersDisplay.from_estimator(EDRVFLPortfolioClassifier())
    with pytest.raises(TypeError, match=r"EDRVFLPortfolioRegressor, but got EDRVFLClassifier"):
        MembersDisplay.from_estimator(EDRVFLClassifier())


def test_without_matplotlib_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)  # importing it fails
    display = MembersDisplay(names=["a"], weights=[1.0], figures=[0.1], common_figure=0.1)
    with pytest.raises(ImportError, match=r"pip install 'edrvfl\[demo\]'"):
        display.plot()
