"""How the default parameters were chosen: validation parts only, mean over the 24 datasets.

    EDRVFL_DATA=folder python benchmarks/defaults.py [--small] [stage ...]

Networks are fitted on the fit part of two of the published splits and scored on the validation part;
no test row is touched. Stage 1 compares activation, width and lambda, stage 2 omega_r and p, stage 3
gamma, alpha and lambda, each at the choices of the stage before. Uses a CUDA device if torch finds one.
"""

import os

os.environ["SCIPY_ARRAY_API"] = "1"

import sys
import time

import numpy as np
import sklearn
from common import SMALL

from edrvfl import EDRVFLSearchCV, variant
from edrvfl.bench.data import dataset_names, load_dataset

CHOSEN = variant("WPedRVFL", calibration="loo", random_state=0)  # the default up to 10,000 rows
STAGES = {
    "1": {
        "activation": ["relu", "selu", "sigmoid", "tanh", "swish"],
        "n_hidden": [256, 512, 1024],
        "regularization": (2.0 ** np.arange(-6, 11, 2)).tolist(),
    },
    "2": {"correct_weight": [1.0, 0.9, 0.8, 0.65, 0.5, 0.3], "prune_rate": [0.0, 0.1, 0.2, 0.4, 0.6]},
    "3": {
        "norm_scale": [0.5, 1.0, 2.0],
        "norm_shift": [-1.0, -0.5, 0.0, 0.5],
        "regularization": [16.0, 32.0, 64.0, 128.0],
    },
}


if SMALL:
    STAGES = {"1": {"activation": ["relu", "tanh"], "n_hidden": [16], "regularization": [1.0, 4.0]}}


def on_device(array):
    try:
        import torch
    except ImportError:
        return array
    return torch.asarray(array).cuda() if torch.cuda.is_available() else array


def accuracies(name, space):
    """Return validation accuracies (configuration, depth) in percent, and the configurations."""
    dataset = load_dataset(name)
    splits = [(np.flatnonzero(s.fit), np.flatnonzero(s.validation)) for s in dataset.splits[:2]]
    search = EDRVFLSearchCV(CHOSEN, space, n_iter=None, cv=splits, refit=False, n_jobs=1 if SMALL else -1)
    X = on_device(dataset.X)
    with sklearn.config_context(array_api_dispatch=X is not dataset.X):
        results = search.fit(X, dataset.y).cv_results_
    by_depth = 100 * results["mean_test_score"].reshape(-1, CHOSEN.n_layers)
    return by_depth, results["params"][:: CHOSEN.n_layers]


def run(stage):
    space, start = STAGES[stage], time.perf_counter()
    found = [accuracies(name, space) for name in dataset_names(["iris"] if SMALL else ["uci24"])]
    mean, tried = np.mean([by_depth for by_depth, _ in found], axis=0), found[0][1]
    print(
        f"stage {stage}, {time.perf_counter() - start:.0f} s: {', '.join(space)} -> accuracy at ten layers;"
    )
    print("at the best depth")
    for i in np.argsort(-mean[:, -1], kind="stable"):
        print("  ", *(tried[i][name] for name in space), f"{mean[i, -1]:.2f} {mean[i].max():.2f}")


if __name__ == "__main__":
    for stage in sys.argv[1:] or STAGES:
        run(stage)
