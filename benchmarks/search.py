"""EDRVFLSearchCV against GridSearchCV over the same networks, in the same order, on two processes.

    EDRVFL_DATA=folder OPENBLAS_NUM_THREADS=1 python benchmarks/search.py [dataset ...]

200 configurations of the paper's box, the fit and validation part of one published split, one BLAS thread
for each process. GridSearchCV scores ten layers; ours scores every depth from one to ten. The last columns
take the sharing apart, in one process on a quarter of the configurations: each network alone, then with
shared random layers, then with shared features and Gram matrices too.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import sys
import time
import warnings

import numpy as np
from scipy.linalg import LinAlgWarning
from sklearn.model_selection import GridSearchCV

from edrvfl import EDRVFLSearchCV, paper_configurations, variant
from edrvfl._search.candidates import result_rows
from edrvfl._search.metrics import metric_of
from edrvfl._search.plan import bytes_needed, groups
from edrvfl._search.run import score_split
from edrvfl._search.scorer import Sample, Scoring, Search
from edrvfl.bench.data import load_dataset

LIMITS = {"edRVFL_N": 3.0, "WedRVFL": 3.0, "PedRVFL": 1.0, "WPedRVFL": 1.0}


def seconds(task):
    start = time.perf_counter()
    result = task()
    return time.perf_counter() - start, result


def exactly(configurations):
    """Parameter lists of which n_iter=None makes these configurations, in this order."""
    return [{name: [value] for name, value in one.items()} for one in configurations]


def sharing(dataset, network, tried, split):
    """Seconds with nothing shared, with the random layers, and with features and Gram matrices too."""
    scoring = Scoring(np.unique(dataset.y), metric_of(None, classifies=True))
    search = Search(Sample(dataset.X, dataset.y, None), None, scoring)
    candidates = list(dict.fromkeys(row.candidate for row in result_rows(network, tried)))
    alike = groups(candidates, lambda c: c.stack)

    def of_one_network(some):  # a budget that has no room for a second network
        size = search.size(split, some[0].inputs)
        return max(bytes_needed([[c]], size) for c in some)

    ways = (
        lambda: [score_split(search, [c], split, 2**30) for c in candidates],
        lambda: [score_split(search, some, split, of_one_network(some)) for some in alike],
        lambda: [score_split(search, some, split, 2**30) for some in alike],
    )
    return [seconds(way)[0] for way in ways]


def compare(dataset, method):
    """Return seconds of both, the best score at ten layers of both, and the sharing taken apart."""
    network, split = variant(method, random_state=0), dataset.splits[0]
    split = np.flatnonzero(split.fit), np.flatnonzero(split.validation)
    tried = paper_configurations(200, 0, network)

    def ours(tried):
        search = EDRVFLSearchCV(network, exactly(tried), n_iter=None, n_jobs=2, cv=[split], refit=False)
        return search.fit(dataset.X, dataset.y)

    def theirs():
        search = GridSearchCV(network, exactly(tried), n_jobs=2, cv=[split], refit=False)
        return search.fit(dataset.X, dataset.y)

    ours(tried[:2])  # starts the processes
    times, searches = zip(*(seconds(task) for task in (lambda: ours(tried), theirs)), strict=True)
    at_ten = np.asarray(searches[0].cv_results_["param_n_layers"]) == 10
    best = searches[0].cv_results_["mean_test_score"][at_ten].max(), searches[1].best_score_
    return times, best, sharing(dataset, network, tried[:50], split)


def main():
    warnings.simplefilter("ignore", LinAlgWarning)
    print(
        f"{'dataset':20s} {'method':10s} {'GridSearchCV':>13s} {'ours':>9s} {'ratio':>6s} {'limit':>6s} "
        f"{'best at ten layers':>20s}   alone / + draws / + features and Grams shared (s)"
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
