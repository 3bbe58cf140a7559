"""Bars are the importances, the largest on top."""

import sys

import matplotlib
import numpy as np
import pytest
from sklearn.inspection import permutation_importance
from small_models import numbers, small_model

from edrvfl import ImportanceDisplay, feature_importance

matplotlib.use("Agg")
import matplotlib.pyplot as plt


def test_bars_and_lines_are_the_importances():
    model, X = small_model("kernel")
    display = ImportanceDisplay.from_estimator(model, X, random_state=1)
    found = feature_importance(model, X, random_state=1)
    ax = display.ax_
    names = [label.get_text() for label in ax.get_yticklabels()]
    bars = [bar.get_width() for bar in ax.patches]
    assert dict(zip(names, bars, strict=True)) == pytest.approx(
        dict(zip(found.feature_names, found.importances_mean, strict=True))
    )
    assert bars == sorted(bars, reverse=True)
    assert ax.yaxis_inverted()
    (spans,) = ax.collections
    for path, name in zip(spans.get_paths(), names, strict=True):
        of_column = found.importances[found.feature_names.index(name)]
        assert path.vertices[:, 0] == pytest.approx([of_column.min(), of_column.max()])


def test_of_many_columns_the_largest_are_drawn_with_short_names():
    rng = np.random.default_rng(0)
    names = [f"a name of a column that never ends {j:02d}" for j in range(30)]
    display = ImportanceDisplay(importances=rng.random((30, 3)), feature_names=names, max_features=4).plot()
    display.figure_.draw_without_rendering()
    labels = display.ax_.get_yticklabels()
    largest = np.argsort(-display.importances.mean(axis=1))[:4]
    assert [bar.get_width() for bar in display.ax_.patches] == pytest.approx(
        display.importances.mean(axis=1)[largest]
    )
    assert all(len(label.get_text()) == 30 for label in labels)
    assert [label.get_text()[-2:] for label in labels] == [f"{j:02d}" for j in largest]  # they still differ
    assert min(label.get_window_extent().x0 for label in labels) >= 0
    assert "26 less important columns" in display.ax_.get_xlabel()


def test_permutation_importances_of_scikit_learn_can_be_drawn_beside_it():
    model, X = small_model("regressor")
    _, _, value = numbers()
    found = permutation_importance(model, X, value, n_repeats=2, random_state=0)
    figure, ax = plt.subplots()
    names = ["$1", "b", "c"]  # a dollar is not the beginning of a formula
    display = ImportanceDisplay(importances=found.importances, feature_names=names, measure="loss of R^2")
    assert display.plot(ax).figure_ is figure
    assert ax.get_xlabel() == "importance: loss of R^2"
    figure.draw_without_rendering()
    assert sorted(bar.get_width() for bar in ax.patches) == pytest.approx(sorted(found.importances_mean))


def test_without_matplotlib_nothing_is_computed(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)  # importing it fails
    model, X = small_model("kernel")
    with pytest.raises(ImportError, match=r"pip install 'edrvfl\[demo\]'"):
        ImportanceDisplay.from_estimator(model, X[:1])  # one row would be refused
