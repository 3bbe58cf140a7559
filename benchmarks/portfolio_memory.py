"""Peak memory of a fit and of predictions of the portfolio above their input, in multiples of the data.

    OPENBLAS_NUM_THREADS=1 python benchmarks/portfolio_memory.py

Each measurement runs in a process of its own (see fit_memory.py). The kernel voter's systems take most of it:
at 5,000 rows a part, four matrices of 5,000 x 5,000 in float32, 400 MB whatever the number of rows; beside
them a network holds one matrix of n_samples x (512 + encoded columns + 1).
"""

import multiprocessing
import sys

import numpy as np
from fit_memory import measured, peak

from edrvfl import EDRVFLPortfolioClassifier

D = 30


def problem(m: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((m, D))
    return X, ((X[:, :3].sum(axis=1) + rng.standard_normal(m)) > 0).astype(int)


def peak_of_fit(queue: multiprocessing.Queue, m: int) -> None:
    EDRVFLPortfolioClassifier(random_state=0).fit(*problem(300))  # libraries loaded, work space taken
    X, y = problem(m)
    queue.put(peak(lambda: EDRVFLPortfolioClassifier(random_state=0).fit(X, y)))


def peak_of_predict(queue: multiprocessing.Queue, m: int) -> None:
    model = EDRVFLPortfolioClassifier(random_state=0).fit(*problem(2_000))
    X, _ = problem(m)
    queue.put(peak(lambda: model.predict_proba(X)))


if __name__ == "__main__":
    for m in map(int, sys.argv[1:] or (1_000, 5_000, 20_000, 100_000)):
        data = m * D * 8
        widest = m * (512 + 17 * D + 1) * 8  # the largest feature matrix of a network, with 16 bins
        used = measured(peak_of_fit, m)
        print(
            f"fit {m:7d} x {D}: {used / 2**20:7.0f} MiB = {used / data:6.1f} times the data, "
            f"{used / widest:5.2f} times the largest feature matrix",
            flush=True,
        )
    # 0 where the memory that the fit had freed is enough
    for m in (50_000, 200_000):
        print(
            f"predict_proba of {m:7d} rows: {measured(peak_of_predict, m) / 2**20:6.0f} MiB more", flush=True
        )
