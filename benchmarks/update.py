"""What it costs to let rows come and go, beside a fit of all rows: processor seconds, and memory of the sums.

    OPENBLAS_NUM_THREADS=1 python benchmarks/update.py [--small]

1,000 rows come to 100,000 and go again, in a network of values and one of classes, and 100 to 4,000 of a
kernel, whose system is solved again. The last figure says how far answers are then from those of the fit.
"""

import pickle
import time

import numpy as np
from common import SMALL
from sklearn.base import clone
from sklearn.datasets import make_friedman1

from edrvfl import EDRVFLClassifier, EDRVFLRegressor, KernelRidgeRegressor

ROWS, NEW = (600, 20) if SMALL else (100_000, 1_000)
FEW, FEW_NEW = (200, 10) if SMALL else (4_000, 100)
NETWORK = {"n_layers": 2, "n_hidden": 40 if SMALL else 512, "remember": "sums", "random_state": 0}
MODELS = {
    "network of values": (EDRVFLRegressor(**NETWORK), ROWS, NEW),
    "network of classes": (EDRVFLClassifier(**NETWORK), ROWS, NEW),
    "kernel of values": (KernelRidgeRegressor(remember="rows", random_state=0), FEW, FEW_NEW),
}


def seconds(work) -> float:
    """Return the processor seconds of some work."""
    began = time.process_time()
    work()
    return time.process_time() - began


def measure(name: str) -> str:
    estimator, m, new = MODELS[name]
    X, y = make_friedman1(m + new, n_features=20, noise=1.0, random_state=0)
    y = np.digitize(y, [10, 15, 20]) if "classes" in name else y
    model = clone(estimator)
    plain = seconds(lambda: clone(estimator).set_params(remember=None).fit(X[:m], y[:m]))
    fit = seconds(lambda: model.fit(X[:m], y[:m]))
    answer = getattr(model, "predict_proba", model.predict)
    before = answer(X[-1000:])
    update = seconds(lambda: model.update(X[m:], y[m:]))
    one = seconds(lambda: model.update(X[:1], y[:1]))
    forget = seconds(lambda: model.forget(X[m:], y[m:]))
    model.forget(X[:1], y[:1])
    apart = np.abs(answer(X[-1000:]) - before).max()
    kept = sum(
        part.nbytes
        for voter in model.memory_.voters
        for one_sum in getattr(voter, "sums", ())
        for part in (one_sum.G, one_sum.R)
    )
    rows = len(pickle.dumps(model.memory_)) - kept
    return (
        f"{name:18s} {m:7d} + {new:5d} rows: fit {plain:6.2f} s, remembering {fit:6.2f} s, "
        f"update {update:6.3f} s, of one {one:6.3f} s, forget {forget:6.3f} s; sums {kept / 1e6:5.1f} MB, "
        f"{rows / m:4.0f} bytes a row, as before within {apart:.0e}"
    )


if __name__ == "__main__":
    for name in MODELS:
        print(measure(name), flush=True)
