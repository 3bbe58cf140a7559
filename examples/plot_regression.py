"""
Numbers, with intervals
=======================

Predict numbers from a frame of mixed columns, and say how far off each prediction may be.
``python examples/plot_regression.py [file]`` draws docs/regression.png.
"""

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from customers import make_spenders
from sklearn.metrics import r2_score

from edrvfl import EDRVFLPortfolioRegressor, EDRVFLRegressor

N_TRAIN, N_NEW = 2_000, 10_000
COVERAGE, N_SHOWN = 0.9, 70
# Blue and vermillion can be told apart by everyone.
BLUE, RED = "#0072b2", "#d55e00"


def draw_intervals(axes, values, lower, upper, y):
    """A bar for the interval of some new rows, and a dot for what came true."""
    some = np.random.default_rng(0).permutation(len(y))[:N_SHOWN]
    held = (lower <= y) & (y <= upper)
    axes.vlines(values[some], lower[some], upper[some], color="0.72", linewidth=2.2)
    for inside, colour, words in ((True, BLUE, "inside"), (False, RED, "outside")):
        rows = some[held[some] == inside]
        axes.plot(values[rows], y[rows], "o", color=colour, markersize=4, label=words)
    ends = [values[some].min(), values[some].max()]
    axes.plot(ends, ends, color="0.4", linewidth=1)
    share = f"{100 * held.mean():.1f} % of {len(y):,} new customers are inside"
    axes.set(xlabel="predicted, per year", ylabel="spent", title=f"{100 * COVERAGE:.0f} % intervals: {share}")
    axes.legend(frameon=False, loc="upper left")


def draw_depths(axes, network, staged, y, common):
    """R^2 of a network layer by layer, as leave-one-out and as new rows see it."""
    depths = np.arange(1, len(staged) + 1)
    axes.plot(depths, network.loo_r2_scores_, "o-", color="0.6", label="one network, by leave-one-out")
    axes.plot(depths, [r2_score(y, values) for values in staged], "o-", color=BLUE, label="on new customers")
    axes.axhline(common, color=RED, label="the portfolio on new customers")
    axes.set(xlabel="layers", ylabel="R²", title="How good each depth is", xticks=depths)
    axes.legend(frameon=False)


def main():
    X, y, _ = make_spenders(N_TRAIN, seed=0)
    X_new, y_new, expected = make_spenders(N_NEW, seed=1)
    portfolio = EDRVFLPortfolioRegressor(n_jobs=2, random_state=0).fit(X, y)
    network = EDRVFLRegressor(random_state=0).fit(X, y)
    values, staged = portfolio.predict(X_new), list(network.staged_predict(X_new))
    lower, upper = portfolio.predict_interval(X_new, coverage=COVERAGE)
    answers = {"portfolio": values, "one network": staged[-1], "the truth, without gaps": expected}
    for name, answer in answers.items():
        print(f"{name}: R^2 {r2_score(y_new, answer):.3f}")
    figure, (left, right) = plt.subplots(1, 2, figsize=(12, 4.2), layout="constrained", width_ratios=(1.5, 1))
    draw_intervals(left, values, lower, upper, y_new)
    draw_depths(right, network, staged, y_new, r2_score(y_new, values))
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(alpha=0.25)
    file = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parents[1] / "docs" / "regression.png")
    figure.savefig(file, dpi=130)
    print(file)


if __name__ == "__main__":
    main()
