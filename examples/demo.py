"""The edRVFL family beside what one would use today, on the datasets that scikit-learn ships.

Three stratified splits (75 % train, 25 % test) of each dataset, every model at its default parameters.
Prints accuracy, log-loss, fit time and predict time, and draws the accuracy of the networks layer by layer.
The paper's variants have the paper's probabilities. EDRVFLClassifier() is WPedRVFL with calibrated ones.
"""

import time
import warnings
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from scipy.linalg import LinAlgWarning
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from edrvfl import EDRVFLClassifier, variant

DATASETS = {"iris": load_iris, "wine": load_wine, "breast cancer": load_breast_cancer, "digits": load_digits}
NETWORKS = ("RVFL", "edRVFL_O", "edRVFL_N", "WedRVFL", "PedRVFL", "WPedRVFL")
MODELS = {name: variant(name) for name in NETWORKS} | {
    "EDRVFLClassifier()": EDRVFLClassifier(),
    "logistic regression": make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)),
    "random forest": RandomForestClassifier(),
    "gradient boosting": HistGradientBoostingClassifier(),
}
SPLITS = 3
PICTURE = Path("demo") / "accuracy_by_layer.png"


def measure(load):
    """Accuracy, log-loss, fit and predict seconds of each model on each split; accuracy by layer; notes."""
    X, y = load(return_X_y=True)
    figures = {name: [] for name in MODELS}
    notes = {}
    by_layer = {name: [] for name in NETWORKS if name != "RVFL"}
    for seed in range(SPLITS):
        X_train, X_test, y_train, y_test = train_test_split(
            X, y, test_size=0.25, stratify=y, random_state=seed
        )
        for name, prototype in MODELS.items():
            model = clone(prototype)
            if "random_state" in model.get_params():
                model.set_params(random_state=seed)
            start = time.perf_counter()
            model.fit(X_train, y_train)
            fitted = time.perf_counter()
            labels = model.predict(X_test)
            predicted = time.perf_counter()
            loss = log_loss(y_test, model.predict_proba(X_test))
            figures[name].append((np.mean(labels == y_test), loss, fitted - start, predicted - fitted))
            if name in by_layer:
                stages = model.staged_predict(X_test)
                by_layer[name].append([np.mean(stage == y_test) for stage in stages])
                if layers := model.fallback_layers_:
                    notes[name] = f"features diverge, the Gram matrix is singular in layers {layers}"
    return figures, by_layer, notes


def print_table(title, shape, figures, notes):
    print(f"\n{title} ({shape[0]} rows, {shape[1]} columns)")
    print(f"  {'':22s} {'accuracy %':>14s} {'log-loss':>9s} {'fit':>10s} {'predict':>10s}")
    means = {name: np.mean([row[0] for row in rows]) for name, rows in figures.items()}
    best = max(means.values())
    for name, rows in figures.items():
        accuracy, loss, fit, predict = np.array(rows).T
        mark = "*" if np.isclose(means[name], best) else " "
        spread = f"{100 * accuracy.mean():6.2f} ± {100 * accuracy.std():4.2f}{mark}"
        note = f"   {notes[name]}" if name in notes else ""
        times = f"{1e3 * fit.mean():7.1f} ms {1e3 * predict.mean():7.1f} ms"
        print(f"  {name:22s} {spread:>14s} {loss.mean():9.3f} {times}{note}")


def draw(curves):
    figure, panels = plt.subplots(
        1, len(curves), figsize=(3.2 * len(curves), 3.6), layout="constrained", sharey=True
    )
    styles = dict(zip(NETWORKS[1:], ("o:", "s--", "^-.", "D-", "v-"), strict=True))
    colours = dict(zip(NETWORKS[1:], ("#999999", "#000000", "#0072b2", "#d55e00", "#009e73"), strict=True))
    for panel, (title, by_layer) in zip(panels, curves.items(), strict=True):
        for name, runs in by_layer.items():
            accuracy = 100 * np.mean(runs, axis=0)
            layers = range(1, len(accuracy) + 1)
            panel.plot(layers, accuracy, styles[name], color=colours[name], label=name, markersize=4)
        panel.set(title=title, xlabel="layers in the ensemble", xticks=range(1, 11))
        panel.grid(alpha=0.25)
    panels[0].set_ylabel(f"test accuracy, mean of {SPLITS} splits (%)")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=5, frameon=False)
    PICTURE.parent.mkdir(exist_ok=True)
    figure.savefig(PICTURE, dpi=150)


def main():
    warnings.simplefilter("ignore", LinAlgWarning)  # the tables tell
    print(f"Mean and sd over {SPLITS} splits, * the best mean; default parameters, one BLAS thread.")
    curves = {}
    for title, load in DATASETS.items():
        figures, curves[title], notes = measure(load)
        print_table(title, load(return_X_y=True)[0].shape, figures, notes)
    draw(curves)
    print(f"\nAccuracy by layer: {PICTURE.resolve()}")


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
