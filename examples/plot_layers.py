"""
The paper's networks, layer by layer
====================================

One fit of ten layers is ten networks. Without re-normalisation (edRVFL_O) accuracy can fall as layers are
added. ``python examples/plot_layers.py [file]`` draws docs/accuracy_by_layer.png.
"""

import sys
import warnings
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from scipy.linalg import LinAlgWarning
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.model_selection import train_test_split

from edrvfl import variant

DATASETS = {"iris": load_iris, "wine": load_wine, "breast cancer": load_breast_cancer, "digits": load_digits}
# The paper's names, with line and colour.
NETWORKS = {
    "edRVFL_O": ("o:", "#999999"),
    "edRVFL_N": ("s--", "#000000"),
    "WedRVFL": ("^-.", "#0072b2"),
    "PedRVFL": ("D-", "#d55e00"),
    "WPedRVFL": ("v-", "#009e73"),
}
SPLITS = 3  # stratified, 75 % of the rows for training


def accuracy_by_layer(load):
    """Return for each network the test accuracies of 1, 2, ... 10 layers, a row for each split."""
    X, y = load(return_X_y=True)
    found = {name: [] for name in NETWORKS}
    for seed in range(SPLITS):
        X_train, X_test, y_train, y_test = train_test_split(
            X, y, test_size=0.25, stratify=y, random_state=seed
        )
        for name, runs in found.items():
            model = variant(name, random_state=seed).fit(X_train, y_train)
            runs.append([np.mean(labels == y_test) for labels in model.staged_predict(X_test)])
            if layers := model.fallback_layers_:
                print(f"{name}: features diverge, the Gram matrix is singular in layers {layers}")
    return found


def draw():
    figure, panels = plt.subplots(
        1, len(DATASETS), figsize=(3.2 * len(DATASETS), 3.6), layout="constrained", sharey=True, squeeze=False
    )
    for panel, (title, load) in zip(panels[0], DATASETS.items(), strict=True):
        for name, runs in accuracy_by_layer(load).items():
            accuracy = 100 * np.mean(runs, axis=0)
            style, colour = NETWORKS[name]
            panel.plot(range(1, 1 + len(accuracy)), accuracy, style, color=colour, label=name, markersize=4)
        panel.set(title=title, xlabel="layers in the ensemble", xticks=range(1, 11))
        panel.grid(alpha=0.25)
    panels[0, 0].set_ylabel(f"test accuracy, mean of {SPLITS} splits (%)")
    handles = panels[0, 0].get_legend_handles_labels()
    figure.legend(*handles, loc="outside upper center", ncols=5, frameon=False)
    return figure


def main():
    warnings.simplefilter("ignore", LinAlgWarning)  # it is printed
    name = "accuracy_by_layer.png"
    file = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parents[1] / "docs" / name)
    draw().savefig(file, dpi=150)
    print(file)


if __name__ == "__main__":
    main()
