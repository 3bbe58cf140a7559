"""
Probabilities before and after calibration
==========================================

How often what is said of new rows comes true, as the paper's network says it and after calibration.
``python examples/plot_calibration.py [file]`` draws docs/calibration.png.
"""

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from sklearn.calibration import calibration_curve
from sklearn.datasets import make_classification
from sklearn.metrics import accuracy_score, log_loss
from sklearn.model_selection import train_test_split

from edrvfl import EDRVFLClassifier

N_TRAIN, N_NEW = 4_000, 10_000
# The title of a panel, and the share of labels that are drawn at random.
PANELS = {"Two classes that overlap": 0.0, "The same with a tenth of the labels drawn at random": 0.1}
# What is said of a setting, where, in which colour and with which marker.
SETTINGS = {
    None: ("before (None)", (0.28, 0.72), "#b04a00", "o"),
    "loo": ('after ("loo")', (0.74, 0.53), "#0060a0", "s"),
}


def answers(flip_y):
    """Yield, for each setting, the probability of class 1 that new rows get, and their classes."""
    X, y = make_classification(
        N_TRAIN + N_NEW, n_informative=8, class_sep=0.5, flip_y=flip_y, weights=[0.65], random_state=0
    )
    X_train, X_test, y_train, y_test = train_test_split(X, y, train_size=N_TRAIN, stratify=y, random_state=0)
    for calibration in SETTINGS:
        model = EDRVFLClassifier(calibration=calibration, random_state=0).fit(X_train, y_train)
        yield calibration, model.predict_proba(X_test)[:, 1], y_test


def draw_panel(curve, counts, title, flip_y):
    """Draw calibration curves, 15 points of as many rows each, and below how often a probability is given."""
    curve.set_title(title, loc="left")
    curve.plot([0, 1], [0, 1], color="0.55", linewidth=1, linestyle=(0, (4, 3)), zorder=1)
    edges = np.linspace(0, 1, 51)
    for calibration, P, y in answers(flip_y):
        name, place, colour, marker = SETTINGS[calibration]
        observed, predicted = calibration_curve(y, P, n_bins=15, strategy="quantile")
        curve.plot(predicted, observed, marker=marker, color=colour, markersize=4.5, linewidth=1.8)
        counts.hist(P, edges, color=colour, histtype="stepfilled", alpha=0.25)
        counts.hist(P, edges, color=colour, histtype="step", linewidth=1.2)
        loss, accuracy = log_loss(y, P), accuracy_score(y, P > 0.5)
        print(f"{title}, {name}: log-loss {loss:.3f}, accuracy {100 * accuracy:.1f} %")
        words = {"color": colour, "weight": "bold", "ha": "center", "va": "center", "linespacing": 1.3}
        curve.text(*place, f"{name}\nlog-loss {loss:.2f}", **words)
    for axes in (curve, counts):
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(alpha=0.25)


def draw():
    figure, panels = plt.subplots(
        2, 2, figsize=(10, 5.8), layout="constrained", sharex=True, sharey="row", height_ratios=(4, 1)
    )
    for (title, flip_y), curve, counts in zip(PANELS.items(), *panels, strict=True):
        draw_panel(curve, counts, title, flip_y)
        counts.set(xlabel="predicted probability of class 1", yticks=[])
    panels[0, 0].set_ylabel("share of class 1 among these rows")
    panels[1, 0].set_ylabel("rows")
    line = {"arrowstyle": "-", "color": "0.6"}
    panels[0, 0].annotate("as predicted", (0.2, 0.2), (0.08, 0.4), color="0.35", arrowprops=line)
    return figure


def main():
    file = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parents[1] / "docs" / "calibration.png")
    draw().savefig(file, dpi=130)
    print(file)


if __name__ == "__main__":
    main()
