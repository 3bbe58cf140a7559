"""What calibration by leave-one-out gives, on validation rows, and what it costs.

    EDRVFL_DATA=folder OPENBLAS_NUM_THREADS=1 python benchmarks/calibration.py [--small] [--splits 4]
        [dataset ...]
    OPENBLAS_NUM_THREADS=1 python benchmarks/calibration.py [--small] --cost [--rows 1000 ...]

The first fits the default network on the fit part of the published splits and scores it on the validation
part; no test row is touched. Figures are log-loss, accuracy and calibration error (15 bins of the largest
probability), means over splits and datasets; of the four large datasets one split is enough.

The second times fits on make_classification(rows, 20) with two and with four classes. Times are medians of
several fits, taken in turns; what counts is the ratio to the fit without calibration.
"""

import argparse
import itertools
import time

import numpy as np
from common import SMALL
from sklearn.datasets import make_classification
from sklearn.metrics import log_loss

from edrvfl import EDRVFLClassifier
from edrvfl.bench.data import dataset_names, load_dataset

LARGE = {"adult", "letter", "musk-2", "statlog-shuttle"}
SETTINGS = {
    "None": {"calibration": None},
    "temperature": {"calibration": "temperature"},
    "matrix": {"calibration": "matrix"},
    'matrix, ensemble="mean"': {"ensemble": "mean"},
    'matrix, ensemble="vote"': {"ensemble": "vote"},
    'matrix, layer_votes="prefix"': {"layer_votes": "prefix"},
    'matrix, layer_votes="weighted"': {"layer_votes": "weighted"},
    'temperature, regularization="loo"': {"calibration": "temperature", "regularization": "loo"},
    'matrix, regularization="loo"': {"regularization": "loo"},
}
SHAPE = {"n_hidden": 16, "n_layers": 3} if SMALL else {"n_hidden": 512, "n_layers": 10}


def figures(P: np.ndarray, y: np.ndarray, classes: np.ndarray) -> tuple[float, float, float]:
    """Return log-loss, accuracy in percent and calibration error."""
    confidence, hit = P.max(axis=1), classes[P.argmax(axis=1)] == y
    bins = np.minimum((15 * confidence).astype(int), 14)
    error = np.abs(np.bincount(bins, confidence - hit, 15)).sum() / len(hit)
    return log_loss(y, P, labels=classes), 100 * hit.mean(), error


def measure(name: str, splits: int) -> np.ndarray:
    """Return the figures of every setting, means over splits."""
    dataset, found = load_dataset(name), []
    for i, split in enumerate(dataset.splits[: 1 if name in LARGE else splits]):
        X, y = dataset.X[split.fit], dataset.y[split.fit]
        asked = split.validation & np.isin(dataset.y, y)
        models = [EDRVFLClassifier(**SHAPE, **s, random_state=i).fit(X, y) for s in SETTINGS.values()]
        found.append(
            [figures(m.predict_proba(dataset.X[asked]), dataset.y[asked], m.classes_) for m in models]
        )
    return np.mean(found, axis=0)


def show_quality(names: list[str], splits: int) -> None:
    found = []
    for name in names:
        found.append(measure(name, splits))
        print(f"{name:32s}" + "".join(f"{loss:9.4f}" for loss, *_ in found[-1]), flush=True)
    print(f"\n{'means':36s}{'log-loss':>9s}{'accuracy':>10s}{'calibration error':>19s}")
    for setting, (loss, accuracy, error) in zip(SETTINGS, np.mean(found, axis=0), strict=True):
        print(f"{setting:36s}{loss:9.4f}{accuracy:10.2f}{error:19.3f}")


def seconds(model: EDRVFLClassifier, X: np.ndarray, y: np.ndarray) -> float:
    begin = time.perf_counter()
    model.fit(X, y)
    return time.perf_counter() - begin


def show_cost(sizes: list[int]) -> None:
    for m, k in itertools.product(sizes, (2, 4)):
        X, y = make_classification(m, 20, n_informative=10, n_classes=k, random_state=0)
        times = {calibration: [] for calibration in (None, "temperature", "loo")}
        for _ in range(1 if SMALL else 3 if m > 20_000 else 7):
            for calibration, taken in times.items():
                taken.append(seconds(EDRVFLClassifier(calibration=calibration, random_state=0), X, y))
        median = {calibration: np.median(taken) for calibration, taken in times.items()}
        adds = {calibration: value / median[None] - 1 for calibration, value in median.items()}
        print(
            f"{m:>8d} rows, {k} classes: fit without calibration {median[None]:.3f} s; temperature adds "
            f"{adds['temperature']:.1%}, the default {adds['loo']:.1%}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--splits", type=int, default=1 if SMALL else 4)
    parser.add_argument("--cost", action="store_true")
    parser.add_argument("--rows", type=int, nargs="+", default=[100] if SMALL else [1_000, 10_000, 100_000])
    parser.add_argument("datasets", nargs="*", default=["iris"] if SMALL else ["uci24"])
    options = parser.parse_args()
    if options.cost or SMALL:
        show_cost(options.rows)
    if not options.cost:
        show_quality(dataset_names(options.datasets), options.splits)


if __name__ == "__main__":
    main()
