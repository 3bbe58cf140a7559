"""The picture by depth shows the figures of the model, and what other rows say."""

import matplotlib
import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.exceptions import NotFittedError
from sklearn.metrics import accuracy_score, log_loss, r2_score
from small_models import SMALL, numbers, small_model

from edrvfl import DepthDisplay, EDRVFLClassifier, EDRVFLSearchCV

matplotlib.use("Agg")
import matplotlib.pyplot as plt


def lines(panel):
    return {line.get_label(): np.asarray(line.get_ydata()) for line in panel.lines}


def test_a_classifier_shows_accuracy_and_log_loss():
    model, X = small_model("classifier_32")  # its labels are text
    texts = np.array(["no", "maybe", "yes"])[numbers()[1]]
    display = DepthDisplay.from_estimator(model, X[::2], texts[::2])
    accuracy, loss = display.ax_
    assert [panel.get_ylabel() for panel in display.ax_] == ["accuracy", "log-loss"]
    assert_allclose(lines(accuracy)["leave-one-out"], model.loo_accuracies_)
    assert_allclose(lines(loss)["leave-one-out"], model.loo_log_losses_)
    staged = list(model.staged_predict_proba(X[::2]))
    labels = list(model.staged_predict(X[::2]))
    assert_allclose(lines(accuracy)["test"], [accuracy_score(texts[::2], one) for one in labels])
    assert_allclose(lines(loss)["test"], [log_loss(texts[::2], P, labels=model.classes_) for P in staged])
    assert all(list(line.get_xdata()) == [1, 2, 3] for panel in display.ax_ for line in panel.lines)
    again = DepthDisplay.from_predictions(texts[::2], staged, classes=model.classes_)
    assert [set(lines(panel)) for panel in again.ax_] == [{"test"}] * 2
    assert_allclose(lines(again.ax_[1])["test"], lines(loss)["test"])


def test_a_regressor_shows_r2_and_the_depth_that_answers():
    model, X = small_model("regressor_several")  # votes of a prefix
    y = model.predict(X) + np.random.default_rng(0).standard_normal((60, 2))
    display = DepthDisplay.from_estimator(model, X, y)
    (panel,) = display.ax_
    assert panel.get_ylabel() == "R^2"
    drawn = lines(panel)
    assert_allclose(drawn["leave-one-out"], model.loo_r2_scores_)
    assert_allclose(drawn["test"], [r2_score(y, values) for values in model.staged_predict(X)])
    assert len(drawn["leave-one-out"]) > model.n_layers_
    (answers,) = (line for line in panel.lines if line.get_label() == "answers")
    assert list(answers.get_xdata()) == [model.n_layers_] * 2


def test_the_depth_that_answers_is_not_marked_if_it_is_the_deepest():
    model, _ = small_model("regressor")
    assert set(lines(DepthDisplay.from_estimator(model).ax_[0])) == {"leave-one-out"}


def test_one_layer_is_drawn_at_a_whole_number():
    display = DepthDisplay(loo={"R^2": [0.5]}, test={}).plot()
    (panel,) = display.ax_
    low, high = panel.get_xlim()
    assert [place for place in panel.get_xticks() if low <= place <= high] == [1]


def test_the_network_of_a_search_is_drawn():
    X, codes, _ = numbers()
    search = EDRVFLSearchCV(EDRVFLClassifier(**SMALL), {"n_hidden": [4, 6]}, n_iter=None, cv=2)
    search.fit(X, codes)
    display = DepthDisplay.from_estimator(search)
    assert_allclose(lines(display.ax_[1])["leave-one-out"], search.best_estimator_.loo_log_losses_)
    with pytest.raises(TypeError, match="a search that refitted one, but got EDRVFLSearchCV"):
        DepthDisplay.from_estimator(search.set_params(refit=False).fit(X, codes))


def test_given_axes_are_divided_and_the_legend_is_outside_the_lines():
    figure, panels = plt.subplots(1, 2, layout="constrained", figsize=(12, 4))
    display = DepthDisplay.from_estimator(small_model("classifier")[0], ax=panels[1])
    assert display.figure_ is figure
    figure.draw_without_rendering()
    room = panels[1].get_window_extent()
    first, second = (panel.get_window_extent() for panel in display.ax_)
    assert room.x0 - 1 <= first.x0 < first.x1 < second.x0 < second.x1 <= room.x1 + 1
    assert display.ax_[0].get_legend().get_window_extent().y0 >= first.y1 - 1
    assert second.x0 > first.x1 + 0.5 * figure.dpi  # room for the ticks
    part = figure.subfigures(2, 1)[0]  # a part of a figure is a figure too
    assert DepthDisplay.from_estimator(small_model("classifier")[0], ax=part.subplots()).figure_ is part


def test_what_cannot_be_drawn_is_refused():
    with pytest.raises(NotFittedError):
        DepthDisplay.from_estimator(EDRVFLClassifier())
    with pytest.raises(
        TypeError, match=r"but got EDRVFLPortfolioClassifier. MembersDisplay draws portfolios"
    ):
        DepthDisplay.from_estimator(small_model("portfolio")[0])
    model, X = small_model("classifier_plain")
    with pytest.raises(ValueError, match="no leave-one-out figures"):
        DepthDisplay.from_estimator(model)
    assert set(lines(DepthDisplay.from_estimator(model, X, numbers()[1]).ax_[0])) == {"test"}
    with pytest.raises(ValueError, match="only one was given"):
        DepthDisplay.from_estimator(model, X)
