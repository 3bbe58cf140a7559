"""
A portfolio, and what is inside
===============================

Fit a portfolio to a frame of mixed columns, look at its members, and ask whether its probabilities come true.
``python examples/plot_portfolio.py [file]`` draws docs/portfolio.png.
"""

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import pandas as pd
from customers import make_customers
from sklearn.calibration import CalibrationDisplay
from sklearn.metrics import accuracy_score, log_loss

from edrvfl import EDRVFLClassifier, EDRVFLPortfolioClassifier, MembersDisplay

N_TRAIN, N_NEW = 2_000, 10_000
# What is compared, in which colour and with which marker.
MODELS = {
    "portfolio": (EDRVFLPortfolioClassifier(n_jobs=2, random_state=0), "#d55e00", "s"),
    "one network": (EDRVFLClassifier(random_state=0), "#0072b2", "o"),
}


def print_table(model):
    """Print what is inside a portfolio."""
    members = pd.DataFrame(model.members_).drop(columns="settings")
    print(members.round(3).to_string(index=False, na_rep=""))


def print_scores(answers, y):
    for name, P in answers.items():
        accuracy = accuracy_score(y == "leaves", P > 0.5)
        print(f"{name}: log-loss {log_loss(y == 'leaves', P):.3f}, accuracy {100 * accuracy:.1f} %")


def draw(model, answers, y):
    """The members on the left; on the right how often what was said came true."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(12, 3.8), layout="constrained", width_ratios=(1.9, 1))
    figure.get_layout_engine().set(wspace=0.06)
    MembersDisplay.from_estimator(model, ax=left)
    for name, P in answers.items():
        _, colour, marker = MODELS[name]
        look = {"color": colour, "marker": marker, "markersize": 4.5}
        CalibrationDisplay.from_predictions(
            y == "leaves", P, n_bins=15, strategy="quantile", name=name, ax=right, **look
        )
    right.set(xlabel="predicted probability to leave", ylabel="share that leaves")
    right.legend(frameon=False)
    right.spines[["top", "right"]].set_visible(False)
    right.grid(alpha=0.25)
    return figure


def main():
    X, y, _ = make_customers(N_TRAIN, seed=0)
    fitted = {name: model.fit(X, y) for name, (model, _, _) in MODELS.items()}
    X_new, y_new, truth = make_customers(N_NEW, seed=1)
    answers = {name: model.predict_proba(X_new)[:, 0] for name, model in fitted.items()}
    print_table(fitted["portfolio"])
    print_scores(answers | {"the truth, without gaps": truth}, y_new)
    file = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parents[1] / "docs" / "portfolio.png")
    draw(fitted["portfolio"], answers, y_new).savefig(file, dpi=130)
    print(file)


if __name__ == "__main__":
    main()
