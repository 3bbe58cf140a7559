"""Bars are influences, and dots are what doubtful rows say and what is said of them."""

import matplotlib
import numpy as np
import pandas as pd
import pytest
from helpers import noisy_rows, noisy_values

from edrvfl import DoubtfulRowsDisplay, EDRVFLClassifier, EDRVFLRegressor, InfluenceDisplay

matplotlib.use("Agg")
import matplotlib.pyplot as plt

SMALL = {"n_hidden": 12, "n_layers": 2, "remember": "rows", "random_state": 0}


@pytest.fixture(scope="module")
def model():
    X, y = noisy_rows(np.random.default_rng(0), 80, 3)
    frame = pd.DataFrame(X, columns=list("abc"), index=[f"$row {i}" for i in range(80)])
    return EDRVFLClassifier(**SMALL).fit(frame, np.array(["low", "mid", "high"])[y]), frame


@pytest.fixture(scope="module")
def values():
    X, y = noisy_values(np.random.default_rng(0), 80, 3)
    return EDRVFLRegressor(**SMALL).fit(X, y), X


def texts(ax):
    return [label.get_text() for label in ax.get_yticklabels()]


def test_bars_are_the_influences(model, values):
    model, frame = model
    display = InfluenceDisplay.from_estimator(model, frame[3:5], n=6, of="low")
    found = model.influence(frame[3:4], n=6, of="low")
    assert [bar.get_width() for bar in display.ax_.patches] == pytest.approx(found.change)
    assert texts(display.ax_) == [f"\\{r}: {g}" for r, g in zip(found.training_row, found.given, strict=True)]
    assert "probability of low" in display.ax_.get_xlabel()
    colours = {bar.get_width() > 0: bar.get_facecolor() for bar in display.ax_.patches}
    assert len(set(colours.values())) == len(colours)
    figure, ax = plt.subplots()
    assert InfluenceDisplay.from_estimator(values[0], values[1], ax=ax).figure_ is figure
    assert "value" in ax.get_xlabel()
    figure.draw_without_rendering()


def test_dots_are_what_doubtful_rows_say_and_what_is_said_of_them(model, values):
    display = DoubtfulRowsDisplay.from_estimator(model[0], n=7)
    found = model[0].doubtful_rows(n=7)
    _, given, said = display.ax_.collections
    np.testing.assert_allclose(given.get_offsets()[:, 0], found.given_probability)
    np.testing.assert_allclose(said.get_offsets()[:, 0], found.said_probability)
    assert texts(display.ax_)[0] == f"\\{found.row[0]}: {found.given[0]}, or {found.said[0]}?"
    display = DoubtfulRowsDisplay.from_estimator(values[0], n=5)
    found = values[0].doubtful_rows(n=5)
    np.testing.assert_allclose(display.ax_.collections[2].get_offsets()[:, 0], found.said)
    assert display.ax_.get_xlabel() == "value"
    assert texts(display.ax_) == [str(row) for row in found.row]
    display.figure_.draw_without_rendering()


def test_values_of_several_outputs_are_not_drawn():
    X, y = noisy_values(np.random.default_rng(0), 60, 3, 2)
    with pytest.raises(ValueError, match="this EDRVFLRegressor has 2"):
        DoubtfulRowsDisplay.from_estimator(EDRVFLRegressor(**SMALL).fit(X, y))
