"""Time of fit and predict over the matrix operations they cannot avoid.

    OPENBLAS_NUM_THREADS=1 python benchmarks/fit_bound.py [--small]

WPedRVFL with relu, omega_r 0.5 and p 0.2, without calibration; and EDRVFLRegressor with p 0.2 and the same
penalty, without intervals. The bound is the sum, layer by layer, of: the projection at the pruned shapes, D'D
and D_w'D_w of the misclassified rows by the call that `fit` uses, Cholesky with its solve, and D beta; for
predict, the projection and D beta. One BLAS thread, medians of repeats.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import time
from collections.abc import Callable

import numpy as np
from common import SMALL
from sklearn.datasets import make_classification, make_friedman1
from threadpoolctl import threadpool_limits

from edrvfl import EDRVFLClassifier, EDRVFLRegressor, variant
from edrvfl._seam.linalg import add_gram, factorise, solve

REPEATS = 1 if SMALL else 7
SIZES = ((200, 20, 32),) if SMALL else ((5000, 50, 1000), (1000, 20, 100))  # rows, columns, neurons
FIT_LIMITS = {1000: 1.35, 100: 3.0, 32: 9.0}  # by neurons
PREDICT_LIMIT, ONE_ROW_LIMIT = 1.35, 4.0


def median_seconds(task: Callable[[], object], repeats: int = REPEATS) -> float:
    task()
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        task()
        seconds.append(time.perf_counter() - start)
    return float(np.median(seconds))


def problem(m: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    return make_classification(
        m, d, n_informative=d // 2, n_classes=4, class_sep=0.7, flip_y=0.15, random_state=0
    )


def bound(model: EDRVFLClassifier | EDRVFLRegressor, m: int, d: int, fitting: bool) -> dict[str, float]:
    """Seconds of each unavoidable operation, summed over the layers."""
    rng = np.random.default_rng(0)
    n, k = model.n_hidden, model.network_.readouts[0].shape[1]
    c = n + d + 1
    D, R = rng.standard_normal((m, c)), rng.standard_normal((c, k))
    H, G = np.empty((m, n)), np.zeros((c, c))
    widths = [d, *(kept + d for kept in model.neurons_kept_[:-1])]
    weights = [rng.uniform(-1, 1, (width, n)) for width in widths]  # each layer reads its own
    inputs = {width: rng.standard_normal((m, width)) for width in set(widths)}
    betas = [rng.standard_normal((c, k)) for _ in widths]
    repeats = REPEATS if m > 1 else 201
    seconds = {
        "XW": median_seconds(lambda: [np.matmul(inputs[len(W)], W, out=H) for W in weights], repeats),
        "D beta": median_seconds(lambda: [D @ beta for beta in betas], repeats),
    }
    if not fitting:
        return seconds
    spd = D.T @ D + np.eye(c)
    accuracies = getattr(model, "train_accuracies_", ())[:-1]  # a regressor weighs nothing
    wrong = [round(m * (1 - accuracy)) for accuracy in accuracies]
    layers = len(widths)
    seconds["D'D"] = layers * median_seconds(lambda: add_gram(G, D))
    seconds["D_w'D_w"] = sum(median_seconds(lambda w=w: add_gram(G, D[:w]), 3) for w in wrong)
    seconds["Cholesky"] = layers * median_seconds(lambda: solve(factorise(spd), R))
    return seconds


def report(title: str, measured: float, parts: dict[str, float], limit: float) -> None:
    total = sum(parts.values())
    detail = ", ".join(f"{name} {1e3 * s:.1f}" for name, s in parts.items())
    print(
        f"{title:42s} {1e3 * measured:9.2f} ms   bound {1e3 * total:9.2f} ms ({detail})   "
        f"ratio {measured / total:.2f} (limit {limit})"
    )


def main() -> None:
    for m, d, n in SIZES:
        X, y = problem(m, d)
        model = variant("WPedRVFL", n_hidden=n, correct_weight=0.5, prune_rate=0.2, random_state=0)
        seconds = median_seconds(lambda X=X, y=y, model=model: model.fit(X, y))
        report(f"fit {m} x {d}, n {n}, 10 layers", seconds, bound(model, m, d, True), FIT_LIMITS[n])
        if n != 100:
            seconds = median_seconds(lambda X=X, model=model: model.predict(X))
            parts = bound(model, m, d, False)
            report(f"predict {m} rows, n {n}", seconds, parts, PREDICT_LIMIT)
    for m, d, n in SIZES:
        X, y = make_friedman1(m, d, noise=1.0, random_state=0)
        settings = {
            "n_layers": 10,
            "n_hidden": n,
            "regularization": 64.0,
            "prune_rate": 0.2,
            "coverage_from": None,
        }
        model = EDRVFLRegressor(**settings, random_state=0)
        seconds = median_seconds(lambda X=X, y=y, model=model: model.fit(X, y))
        report(f"fit values {m} x {d}, n {n}, 10 layers", seconds, bound(model, m, d, True), FIT_LIMITS[n])
    X, y = problem(SIZES[-1][0] * 2, 20)
    model = variant("WPedRVFL", n_hidden=512, random_state=0).fit(X, y)
    seconds = median_seconds(lambda: model.predict(X[:1]), REPEATS if SMALL else 201)
    report("predict 1 row, n 512", seconds, bound(model, 1, 20, False), ONE_ROW_LIMIT)


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
