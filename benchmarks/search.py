"""EDRVFLClassifierCV against GridSearchCV over the same networks, in the same order, on two processes.

    EDRVFL_DATA=folder OPENBLAS_NUM_THREADS=1 python benchmarks/search.py [dataset ...]

200 configurations of the paper's box, the fit and validation part of one published split, one BLAS thread
a process. GridSearchCV scores ten layers; ours scores every depth from one to ten. The last columns
take the sharing apart, in one process on a quarter of the configurations: each network alone, then the random
layers shared, then the features too, then the Gram matrices (one for all lambdas; of weighted networks the
part that the weights share).
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import sys
import time
import warnings
from unittest import mock

import numpy as np
from scipy.linalg import LinAlgWarning
from sklearn.model_selection import GridSearchCV

from edrvfl import EDRVFLClassifierCV, _paths, _search, draw_configurations, variant
from edrvfl._readout import Readout, ridge
from edrvfl.bench.datasets import load_dataset

LIMITS = {"edRVFL_N": 3.0, "WedRVFL": 3.0, "PedRVFL": 1.0, "WPedRVFL": 1.0}


def seconds(task):
    start = time.perf_counter()
    result = task()
    return time.perf_counter() - start, result


def one_gram_each(D, Y, lam, omega=None, base=None, left_out=None):
    """What ridge_path does, without sharing: every read-out sums its own Gram matrix."""
    each = []
    for i in range(lam.shape[-1]):
        weights = base if omega is None else omega[i] if base is None else omega[i] * base
        each.append(ridge(D, Y, lam[i], weights, left_out))
    return Readout(np.stack([r.beta for r in each]), np.stack([r.fell_back for r in each]))


def sharing(make, tried):
    """Seconds with nothing shared, with the draws, with the features too, and with Gram matrices too."""
    alone, _ = seconds(lambda: [make([c]) for c in tried])
    kept = {}

    def kept_draws(seed, d, n, like):
        return kept.setdefault((seed, d, n), _paths.Draws(seed, d, n, like))

    with mock.patch.object(_search, "Draws", kept_draws):
        draws, _ = seconds(lambda: [make([c]) for c in tried])
    with mock.patch.object(_paths, "ridge_path", one_gram_each):
        features, _ = seconds(lambda: make(tried))
    everything, _ = seconds(lambda: make(tried))
    return alone, draws, features, everything


def compare(dataset, method):
    """Seconds of both, the best score at ten layers of both, and the sharing taken apart."""
    split = dataset.splits[0]
    common = {"cv": [(np.flatnonzero(split.fit), np.flatnonzero(split.validation))], "refit": False}
    tried = draw_configurations(200, 0, method)

    def ours(tried, n_jobs=2):
        search = EDRVFLClassifierCV(variant=method, space=tried, n_jobs=n_jobs, random_state=0, **common)
        return search.fit(dataset.X, dataset.y)

    def theirs():
        grid = [{key: [value] for key, value in c.items()} for c in tried]
        return GridSearchCV(variant(method, random_state=0), grid, n_jobs=2, **common).fit(
            dataset.X, dataset.y
        )

    ours(tried[:2])  # starts the processes
    times, searches = zip(*(seconds(task) for task in (lambda: ours(tried), theirs)), strict=True)
    at_ten = np.asarray(searches[0].cv_results_["param_n_layers"]) == 10
    best = searches[0].cv_results_["mean_test_score"][at_ten].max(), searches[1].best_score_
    return times, best, sharing(lambda part: ours(part, n_jobs=1), tried[:50])


def main():
    warnings.simplefilter("ignore", LinAlgWarning)
    os.environ["PYTHONWARNINGS"] = "ignore"  # of the processes
    print(
        f"{'dataset':20s} {'method':10s} {'GridSearchCV':>13s} {'ours':>9s} {'ratio':>6s} {'limit':>6s} "
        f"{'best at ten layers':>20s}   alone / draws / + features / + Grams shared (s)"
    )
    for name in sys.argv[1:] or ["contrac", "cardio-10", "wine-quality-white"]:
        for method, limit in LIMITS.items():
            (mine, theirs), best, parts = compare(load_dataset(name), method)
            print(
                f"{name:20s} {method:10s} {theirs:11.1f} s {mine:7.1f} s {theirs / mine:6.2f} {limit:6.1f} "
                f"{best[0]:9.4f} = {best[1]:.4f}   {' / '.join(f'{p:.1f}' for p in parts)}",
                flush=True,
            )


if __name__ == "__main__":
    main()
