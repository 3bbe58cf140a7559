"""Many rows in one iterated system and in parts, on validation rows: score, leave-one-out score, seconds.

    OPENBLAS_NUM_THREADS=1 EDRVFL_DATA=folder python benchmarks/iterated.py [--small] [table[:rows] ...]

Tables are datasets, frames, and two functions, "smooth" and "friedman". Fits are on the rows of the first
split that are neither validation nor test rows, or on as many of them as the number behind the colon says.
For classes the score is accuracy (%) and log-loss, for values R2. Seconds are those of the processor. The
last figure is what K takes.
"""

import sys
import time
from unittest.mock import patch

import numpy as np
from common import SMALL
from sklearn.datasets import make_friedman1
from sklearn.metrics import log_loss

from edrvfl import KernelRidgeClassifier, KernelRidgeRegressor
from edrvfl.bench.data import load_dataset, load_frame

TABLES = ["letter", "adult", "statlog-shuttle:12000", "smooth:36000", "friedman:24000", "diamonds"]
TABLES = ["iris", "smooth:300"] if SMALL else TABLES
FRAMES = ("diamonds",)
LEAST = 60 if SMALL else 5_000
PARTS = {"PART_ROWS": {False: LEAST, True: 20_000}, "LEAST_PART": min(LEAST, 1_000)}
WAYS = {"parts": {"LEAST_ITERATED": 10**9}, "iterated": {"LEAST_ITERATED": LEAST}}


def smooth(m):
    """A smooth function of eight columns, with hardly any noise."""
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(m, 8))
    bent = np.sin(3 * X[:, 0]) * np.cos(2 * X[:, 1]) + np.exp(-X[:, 4]) + X[:, 5] ** 2 * X[:, 6]
    return X, bent + X[:, 2] * X[:, 3] + 0.02 * rng.standard_normal(m)


def table(name: str, rows: int):
    """Return the rows to fit, those to validate, and the estimator's class."""
    if name in ("smooth", "friedman"):
        m = rows + min(4_000, rows)
        X, y = smooth(m) if name == "smooth" else make_friedman1(m, noise=1.0, random_state=0)
        return (X[:rows], y[:rows]), (X[rows:], y[rows:]), KernelRidgeRegressor
    data = load_frame(name) if name in FRAMES else load_dataset(name)
    take = data.X.iloc if name in FRAMES else data.X
    fit, new = (np.flatnonzero(getattr(data.splits[0], part)) for part in ("fit", "validation"))
    fit = np.random.default_rng(0).permutation(fit)[:rows]
    kind = KernelRidgeRegressor if name in FRAMES else KernelRidgeClassifier
    return (take[fit], data.y[fit]), (take[new], data.y[new]), kind


def measure(spec: str, kernel: str, way: str) -> str:
    name, _, rows = spec.partition(":")
    (X, y), (new, truth), kind = table(name, int(rows or 10**9))
    limits = patch.multiple("edrvfl._fitting.iterated", **WAYS[way])
    with limits, patch.multiple("edrvfl._fitting.kernel", **PARTS):
        start = time.process_time()
        model = kind(kernel=kernel, encoder="loo", random_state=0).fit(X, y)
        seconds = time.process_time() - start
    if kind is KernelRidgeRegressor:
        found = f"{model.score(new, truth):8.5f} loo {model.loo_r2_score_:8.5f}"
    else:
        P = model.predict_proba(new)
        right = np.mean(model.classes_[P.argmax(axis=1)] == truth)
        known = np.isin(truth, model.classes_)
        loss = log_loss(truth[known], P[known], labels=model.classes_)
        found = (
            f"{100 * right:6.2f} {loss:7.4f} loo {100 * model.loo_accuracy_:6.2f} {model.loo_log_loss_:7.4f}"
        )
    chosen = f"h {model.bandwidth_:6.3f} lambda 2^{np.log2(model.regularization_):+.0f}"
    size = 4e-9 * model.n_landmarks_**2 * (2 if kernel == "matern" else 1)
    held = f"{size:5.2f} GB" if way == "iterated" else "        "
    return f"{name:16s} {len(y):6d} {kernel:8s} {way:8s} {chosen} {found} {seconds:7.2f} s {held}"


if __name__ == "__main__":
    for spec in sys.argv[1:] or TABLES:
        for kernel in ("laplace",) if SMALL else ("laplace", "matern"):
            for way in WAYS:
                print(measure(spec, kernel, way), flush=True)
