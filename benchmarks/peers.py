"""Compare the defaults of WPedRVFL with the defaults of what users would pick instead: one run, one thread.

    EDRVFL_DATA=folder python benchmarks/peers.py [--figure FILE] [dataset ...]

Each model is fitted once on the training part (fit and validation rows) of the first published split and
scored on its test part. Times and sizes (bytes of the pickle) are also printed as multiples of those of
WPedRVFL. Nothing is tuned: this compares what one gets without thinking. Packages that are not installed are
skipped.

The archive standardised the test files of some datasets separately from their training files (among these
five, that of adult), so that hardly any test value occurs in training. XGBoost's histograms split exactly at
training values, which sends such rows to the wrong side. On adult they score 83.2 %, and XGBoost's exact
splits, half way between values, 86.2 %. The output says for which datasets this happens.
"""

import os

os.environ["OMP_NUM_THREADS"] = "1"  # before NumPy is imported
os.environ["OPENBLAS_NUM_THREADS"] = "1"
os.environ["MKL_NUM_THREADS"] = "1"

import argparse
import pickle
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from sklearn.metrics import log_loss

from edrvfl import variant
from edrvfl.bench.data import Dataset, load_dataset
from edrvfl.bench.methods import METHOD_GROUPS, METHODS

mpl.use("Agg")
import matplotlib.pyplot as plt

DATASETS = ("glass", "cardio-10", "wine-quality-white", "letter", "adult")
OURS = "WPedRVFL"


@dataclass(frozen=True)
class Row:
    dataset: str
    method: str
    fit_seconds: float
    predict_seconds: float
    accuracy: float
    log_loss: float
    bytes: int


def methods() -> dict[str, Callable[..., Any]]:
    found = {OURS: partial(variant, OURS)}
    for name in METHOD_GROUPS["peers"]:
        if (message := METHODS[name].missing()) is None:
            found[name] = METHODS[name].estimator
        else:
            print(f"SKIPPED {message}")
    return found


def measure(name: str, make: Callable[..., Any], d: Dataset) -> Row:
    part, every = d.splits[0], np.arange(int(d.y.max()) + 1)
    X_train, X_test, y_train, y_test = d.X[part.train], d.X[part.test], d.y[part.train], d.y[part.test]
    make(random_state=0).fit(X_train[:50], np.arange(50) % 2)  # so that imports are not timed
    model = make(random_state=0)
    start = time.perf_counter()
    model.fit(X_train, y_train)
    fitted = time.perf_counter()
    P = model.predict_proba(X_test)
    predicted = time.perf_counter()
    probabilities = np.zeros((len(y_test), len(every)))  # stays 0 for a class that is not in training
    probabilities[:, np.asarray(model.classes_, dtype=int)] = P
    return Row(
        dataset=d.name,
        method=name,
        fit_seconds=fitted - start,
        predict_seconds=predicted - fitted,
        accuracy=float(np.mean(model.predict(X_test) == y_test)),
        log_loss=float(log_loss(y_test, probabilities, labels=every)),
        bytes=len(pickle.dumps(model)),
    )


def shared_values(d: Dataset) -> float:
    """Compute the share of test values that also occur in the same column of the training rows."""
    part = d.splits[0]
    return float(np.mean([np.isin(column[part.test], column[part.train]).mean() for column in d.X.T]))


def lines(rows: list[Row]) -> list[str]:
    """Format the table of one dataset, whose first row is ours."""
    ours = rows[0]
    made = []
    for r in rows:
        ratios = [
            getattr(r, name) / getattr(ours, name) for name in ("fit_seconds", "predict_seconds", "bytes")
        ]
        made.append(
            f"  {r.method:<21}{r.fit_seconds:10.3f}{ratios[0]:9.2f}x{1000 * r.predict_seconds:12.1f}"
            f"{ratios[1]:9.2f}x{100 * r.accuracy:10.2f}{r.log_loss:10.3f}"
            f"{r.bytes / 1e6:10.2f}{ratios[2]:9.2f}x"
        )
    return made


HEADER = (
    f"  {'':<21}{'fit s':>10}{'ratio':>10}{'predict ms':>12}{'ratio':>10}"
    f"{'accuracy':>10}{'log-loss':>10}{'MB':>10}{'ratio':>10}"
)


def draw(rows: list[Row], file: Path) -> None:
    """Plot accuracy against fit time, one panel per dataset; larger points are larger models."""
    names = list(dict.fromkeys(r.dataset for r in rows))
    colours = {m: f"C{i}" for i, m in enumerate(dict.fromkeys(r.method for r in rows))}
    figure, axes = plt.subplots(1, len(names), figsize=(3.4 * len(names), 3.9), squeeze=False)
    for axis, name in zip(axes[0], names, strict=True):
        for r in (r for r in rows if r.dataset == name):
            size = 25 + 12 * np.log2(max(1.0, r.bytes / 1e4))
            axis.scatter(
                r.fit_seconds, 100 * r.accuracy, s=size, color=colours[r.method],
                marker="*" if r.method == OURS else "o", label=r.method,
            )  # fmt: skip
        axis.set(title=name, xscale="log", xlabel="fit time (s)")
        axis.grid(alpha=0.3)
    axes[0, 0].set_ylabel("test accuracy (%)")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncols=len(labels), frameon=False, fontsize=9)
    figure.suptitle("Defaults, one thread, one run; larger points are larger models")
    figure.tight_layout(rect=(0, 0.08, 1, 1))
    figure.savefig(file, dpi=130)
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("datasets", nargs="*", default=DATASETS)
    parser.add_argument("--figure", type=Path, default=Path(tempfile.gettempdir()) / "edrvfl-peers.png")
    arguments = parser.parse_args()
    found, rows = methods(), []
    print(HEADER)
    for name in arguments.datasets:
        d = load_dataset(name)
        part = d.splits[0]
        print(
            f"{name}: {part.train.sum()} rows to train, {part.test.sum()} to test, {d.X.shape[1]} columns, "
            f"{d.y.max() + 1} classes"
        )
        if (share := shared_values(d)) < 0.1:
            print(f"  NOTE {share:.1%} of the test values occur in training: see the top of this script")
        group: list[Row] = []
        for method, make in found.items():
            group.append(measure(method, make, d))
            print(lines(group)[-1], flush=True)
        rows += group
    draw(rows, arguments.figure)
    print(f"figure: {arguments.figure}")


if __name__ == "__main__":
    main()
