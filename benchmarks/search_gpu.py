"""The search on a CUDA device beside the same search with NumPy on all cores of the same machine.

    EDRVFL_DATA=folder OPENBLAS_NUM_THREADS=1 python benchmarks/search_gpu.py [dataset ...]

200 configurations of the paper's box at every depth, the fit and validation part of one published split.
NumPy works in as many processes as there are cores, one BLAS thread each; both are warm when they are timed.
"""

import os

os.environ["SCIPY_ARRAY_API"] = "1"
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import sys
import time
import warnings

import numpy as np
import sklearn
import torch
from joblib import cpu_count
from scipy.linalg import LinAlgWarning

from edrvfl import EDRVFLSearchCV, paper_configurations, variant
from edrvfl.bench.data import load_dataset


def search(dataset, method, tried, device):
    """Return the seconds and the best score."""
    split = dataset.splits[0]
    model = EDRVFLSearchCV(
        variant(method, random_state=0),
        [{name: [value] for name, value in one.items()} for one in tried],
        n_iter=None,
        cv=[(np.flatnonzero(split.fit), np.flatnonzero(split.validation))],
        refit=False,
        n_jobs=-1,
    )
    X = dataset.X if device == "cpu" else torch.asarray(dataset.X, device=device)
    start = time.perf_counter()
    with sklearn.config_context(array_api_dispatch=device != "cpu"):
        model.fit(X, dataset.y)
    return time.perf_counter() - start, model.best_score_


def main():
    warnings.simplefilter("ignore", LinAlgWarning)
    print(f"{torch.cuda.get_device_name()}, {cpu_count()} cores")
    print(f"{'dataset':20s} {'method':10s} {'NumPy':>9s} {'GPU':>9s} {'ratio':>6s}   best at any depth")
    for name in sys.argv[1:] or ["contrac", "cardio-10", "wine-quality-white"]:
        dataset = load_dataset(name)
        for method in ("edRVFL_N", "WPedRVFL"):
            tried = paper_configurations(200, 0, variant(method))
            narrow = [{**c, "n_hidden": 20} for c in tried]
            for device in ("cpu", "cuda"):
                search(dataset, method, narrow, device)  # warms up
            theirs, same = search(dataset, method, tried, "cpu")
            ours, best = search(dataset, method, tried, "cuda")
            figures = f"{theirs:7.1f} s {ours:7.2f} s {theirs / ours:6.1f}   {same:.4f}, {best:.4f}"
            print(f"{name:20s} {method:10s} {figures}", flush=True)


if __name__ == "__main__":
    main()
