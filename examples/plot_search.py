"""What a search sees: validation accuracy by penalty and width, and by depth. Draws docs/search.png.

python examples/plot_search.py [file]
"""

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer

from edrvfl import EDRVFLClassifier, EDRVFLSearchCV

N_ITER, N_JOBS = 40, 2


def draw(search: EDRVFLSearchCV) -> plt.Figure:
    """A point for each configuration at its best depth; a line for each of the twenty best."""
    depths = max(search.cv_results_["param_n_layers"])
    scores = np.reshape(search.cv_results_["mean_test_score"], (-1, depths))
    first = search.cv_results_["params"][::depths]
    penalties, widths = ([params[name] for params in first] for name in ("regularization", "n_hidden"))
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
    points = left.scatter(penalties, scores.max(axis=1), c=np.log2(widths), cmap="viridis", s=28)
    left.set(xscale="log", xlabel="regularization (lambda)", ylabel="validation accuracy, best depth")
    bar = figure.colorbar(points, ax=left)
    bar.ax.set_title("n_hidden", fontsize="medium")
    ticks = sorted(set(widths))
    bar.set_ticks(np.log2(ticks), labels=[str(width) for width in ticks])
    best = np.argsort(-scores.max(axis=1))[:20]
    right.plot(np.arange(1, depths + 1), scores[best].T, color="0.75", linewidth=1)
    winner = search.best_index_ // depths
    right.plot(
        np.arange(1, depths + 1), scores[winner], color="C0", linewidth=2.2, label="chosen configuration"
    )
    chosen = search.best_params_["n_layers"]
    right.plot(chosen, search.best_score_, "o", color="C0", markersize=8, label=f"chosen depth, {chosen}")
    right.set(xlabel="layers (n_layers)", ylabel="validation accuracy", xticks=range(1, depths + 1))
    right.legend(loc="lower right", frameon=False)
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(alpha=0.25)
    return figure


def main() -> None:
    X, y = load_breast_cancer(return_X_y=True)
    network = EDRVFLClassifier(random_state=0)
    search = EDRVFLSearchCV(network, n_iter=N_ITER, cv=4, n_jobs=N_JOBS, random_state=0).fit(X, y)
    file = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parents[1] / "docs" / "search.png")
    draw(search).savefig(file, dpi=130)
    print(f"{file}: {search.best_params_}, validation accuracy {search.best_score_:.4f}")


if __name__ == "__main__":
    main()
