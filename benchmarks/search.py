"""EDRVFLSearchCV against GridSearchCV over the same networks, in the same order, on two processes.

    EDRVFL_DATA=folder OPENBLAS_NUM_THREADS=1 python benchmarks/search.py [--small] [dataset ...]

200 configurations of the paper's box, the fit and validation part of one published split, one BLAS thread
for each process. GridSearchCV scores ten layers; ours scores every depth from one to ten. The last columns
take the sharing apart, in one process on a quarter of the configurations: a search of each configuration by
itself, then one search of them all, which share random layers, features and Gram matrices.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import sys
import time
import warnings

import numpy as np
from common import SMALL
from scipy.linalg import LinAlgWarning
from sklearn.model_selection import GridSearchCV

from edrvfl import EDRVFLSearchCV, paper_configurations, variant
from edrvfl.bench.data import load_dataset

LIMITS = {"edRVFL_N": 3.0, "WedRVFL": 3.0, "PedRVFL": 1.0, "WPedRVFL": 1.0}
N_CONFIGURATIONS, N_JOBS = (8, 1) if SMALL else (200, 2)


def seconds(task):
    start = time.perf_counter()
    result = task()
    return time.perf_counter() - start, result


def exactly(configurations):
    """Parameter lists of which n_iter=None makes these configurations, in this order."""
    return [{name: [value] for name, value in one.items()} for one in configurations]


def compare(dataset, method):
    """Return seconds of both, the best score at ten layers of both, and the seconds alone and shared."""
    network, split = variant(method, random_state=0), dataset.splits[0]
    fixed = {"cv": [(np.flatnonzero(split.fit), np.flatnonzero(split.validation))], "refit": False}
    tried = paper_configurations(N_CONFIGURATIONS, 0, network)

    def ours(tried, n_jobs=N_JOBS):
        search = EDRVFLSearchCV(network, exactly(tried), n_iter=None, n_jobs=n_jobs, **fixed)
        return search.fit(dataset.X, dataset.y)

    def theirs():
        return GridSearchCV(network, exactly(tried), n_jobs=N_JOBS, **fixed).fit(dataset.X, dataset.y)

    ours(tried[:2])  # starts the processes
    times, searches = zip(*(seconds(task) for task in (lambda: ours(tried), theirs)), strict=True)
    at_ten = np.asarray(searches[0].cv_results_["param_n_layers"]) == 10
    best = searches[0].cv_results_["mean_test_score"][at_ten].max(), searches[1].best_score_
    some = tried[: N_CONFIGURATIONS // 4]
    alone, _ = seconds(lambda: [ours([one], n_jobs=1) for one in some])
    shared, _ = seconds(lambda: ours(some, n_jobs=1))
    return times, best, (alone, shared)


def main():
    warnings.simplefilter("ignore", LinAlgWarning)
    print(
        f"{'dataset':20s} {'method':10s} {'GridSearchCV':>13s} {'ours':>9s} {'ratio':>6s} {'limit':>6s} "
        f"{'best at ten layers':>20s}   alone / shared (s)"
    )
    names = ["iris"] if SMALL else ["contrac", "cardio-10", "wine-quality-white"]
    for name in sys.argv[1:] or names:
        for method, limit in list(LIMITS.items())[-1 if SMALL else 0 :]:
            (mine, theirs), best, parts = compare(load_dataset(name), method)
            print(
                f"{name:20s} {method:10s} {theirs:11.1f} s {mine:7.1f} s {theirs / mine:6.2f} {limit:6.1f} "
                f"{best[0]:9.4f} = {best[1]:.4f}   {' / '.join(f'{p:.1f}' for p in parts)}",
                flush=True,
            )


if __name__ == "__main__":
    main()
