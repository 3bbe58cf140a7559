"""The picture of a search shows the rows of its table."""

import matplotlib
import numpy as np
import pytest
from matplotlib.colors import to_hex
from numpy.testing import assert_allclose
from scipy.stats import loguniform
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
from small_models import SMALL, numbers

from edrvfl import EDRVFLClassifier, EDRVFLSearchCV, SearchDisplay

matplotlib.use("Agg")


@pytest.fixture(scope="module")
def search():
    X, codes, _ = numbers()
    space = {"regularization": loguniform(2**-8, 2**8), "activation": ["relu", "tanh"], "prune_rate": [0.1]}
    return EDRVFLSearchCV(
        EDRVFLClassifier(**SMALL), space, n_iter=8, cv=2, scoring="neg_log_loss", random_state=0
    ).fit(X, codes)


def dots(panel, *markers_of):
    return np.concatenate([np.asarray(panel.collections[i].get_offsets()) for i in markers_of])


def test_every_configuration_is_drawn_at_its_best_depth_and_every_depth_in_its_panel(search):
    display = SearchDisplay.from_estimator(search)
    panels = {panel.get_xlabel(): panel for panel in display.ax_}
    assert set(panels) == {"regularization", "activation", "n_layers"}  # prune_rate has one value
    table = search.cv_results_
    means, floor = table["mean_test_score"], np.quantile(table["mean_test_score"], 0.1)
    drawn = dots(panels["n_layers"], 0, 1)
    expected = np.column_stack([table["param_n_layers"].data.astype(float), np.maximum(means, floor)])
    assert_allclose(sorted(drawn.tolist()), sorted(expected.tolist()))
    best = {}
    for params, mean in zip(table["params"], means, strict=True):
        best[params["regularization"]] = max(mean, best.get(params["regularization"], -np.inf))
    drawn = dots(panels["regularization"], 0, 1)
    assert_allclose(sorted(drawn.tolist()), sorted((value, max(mean, floor)) for value, mean in best.items()))
    assert panels["regularization"].get_xscale() == "log"


def test_the_star_is_the_winner(search):
    for panel in SearchDisplay.from_estimator(search).ax_:
        star = panel.collections[-1]
        assert to_hex(star.get_facecolor()[0]) == "#d55e00"
        (x, y), name = star.get_offsets()[0], panel.get_xlabel()
        assert y == pytest.approx(search.best_score_)
        value = search.best_params_[name]
        if name == "activation":
            assert panel.get_xticklabels()[int(x)].get_text() == value
        else:
            assert x == pytest.approx(value)
        assert y == max(dots(panel, 0)[:, 1])


def test_one_may_choose_parameters(search):
    display = SearchDisplay.from_estimator(search, params=["activation"])
    assert [panel.get_xlabel() for panel in display.ax_] == ["activation"]
    with pytest.raises(ValueError, match=r"did not set n_hidden. It set .*regularization"):
        SearchDisplay.from_estimator(search, params=["n_hidden"])


def test_panels_do_not_overlap():
    rng = np.random.default_rng(0)
    values = {f"parameter {j}": rng.random(20).tolist() for j in range(5)}
    display = SearchDisplay(values=values, scores=rng.random(20), best_index=3).plot()
    display.figure_.draw_without_rendering()
    boxes = [panel.get_tightbbox() for panel in display.ax_]
    assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])
    assert min(box.x0 for box in boxes) >= 0
    assert min(box.y0 for box in boxes) >= 0


def test_scores_that_failed_are_left_out_and_words_are_places():
    values = {"encoder": ["a", np.ma.masked, "b", "a"], "alpha": [1, 2, 3, 4]}
    display = SearchDisplay(values=values, scores=[0.5, 0.6, np.nan, 0.7], best_index=3).plot()
    encoder, alpha = display.ax_
    assert [label.get_text() for label in encoder.get_xticklabels()] == ["a"]
    assert sorted(dots(alpha, 0, 1)[:, 0]) == [1, 2, 4]


def test_none_is_a_value_like_others():
    X, codes, _ = numbers()
    space = [{"class_weight": [None, "balanced"]}, {"n_hidden": [3]}]  # the last sets no class_weight
    search = EDRVFLSearchCV(EDRVFLClassifier(**SMALL), space, n_iter=None, cv=2).fit(X, codes)
    (panel,) = SearchDisplay.from_estimator(search, params=["class_weight"]).ax_
    assert sorted(label.get_text() for label in panel.get_xticklabels()) == ["None", "balanced"]
    assert len(dots(panel, 0, 1)) == 2


def test_long_words_do_not_reach_the_next_panel():
    words = [r"$\frac(numbers='bins', min_frequency=3)", "a word", "another word"]  # not a formula
    values = {"encoder": words, "a": [1, 2, 3], "b": [1, 2, 3], "c": [1, 2, 3]}
    display = SearchDisplay(values=values, scores=[0.1, 0.2, 0.3], best_index=2).plot()
    display.figure_.draw_without_rendering()
    above, below = display.ax_[0].get_tightbbox(), display.ax_[3].get_tightbbox()
    assert above.y0 > below.y1
    alike = ["a long word, 1, and its end", "a long word, 2, and its end"]  # shortened they are the same
    (panel,) = SearchDisplay(values={"a": alike}, scores=[0.1, 0.2], best_index=1).plot().ax_
    assert sorted(dots(panel, 0, 1)[:, 0]) == [0, 1]


def test_scikit_learns_searches_are_drawn_too():
    X, _, value = numbers()
    search = GridSearchCV(Ridge(), {"alpha": [0.1, 1.0, 10.0]}, cv=2).fit(X, value)
    (panel,) = SearchDisplay.from_estimator(search).ax_
    assert len(dots(panel, 0, 1)) == 3


def test_what_cannot_be_drawn_is_refused():
    with pytest.raises(NotFittedError):
        SearchDisplay.from_estimator(EDRVFLSearchCV())
    X, codes, _ = numbers()
    with pytest.raises(TypeError, match="but got EDRVFLClassifier"):
        SearchDisplay.from_estimator(EDRVFLClassifier(**SMALL).fit(X, codes))
    with pytest.raises(ValueError, match="nothing to draw"):
        SearchDisplay(values={}, scores=[1.0], best_index=0).plot()
    with pytest.raises(ValueError, match="Every score is missing"):
        SearchDisplay(values={"a": [1, 2]}, scores=[np.nan, np.nan], best_index=0).plot()
    several = GridSearchCV(Ridge(), {"alpha": [0.1, 1.0]}, scoring=["r2", "neg_max_error"], refit="r2", cv=2)
    with pytest.raises(TypeError, match=r"one metric, .* but got GridSearchCV with several"):
        SearchDisplay.from_estimator(several.fit(X, numbers()[2]))
