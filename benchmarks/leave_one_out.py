"""What leave-one-out gives without any search, and what it costs.

    EDRVFL_DATA=folder OPENBLAS_NUM_THREADS=1 python benchmarks/leave_one_out.py [--small] [--device cuda]
        [dataset ...]

The default network on the fit part of two published splits of the 24 datasets, scored on the validation part;
no test row is touched. Columns: lambda, given or by leave-one-out; then which predictions decide the weights:
none, those of training, or leave-one-out with omega_r 0.8 and 0.5.
"""

import os

os.environ["SCIPY_ARRAY_API"] = "1"

import argparse
import time
import warnings

import numpy as np
import sklearn
from common import SMALL, need_gpu
from scipy.linalg import LinAlgWarning

from edrvfl import EDRVFLClassifier
from edrvfl.bench.data import dataset_names, load_dataset

WEIGHTS = {
    "none": {"correct_weight": 1.0},
    "train": {"correct_weight": 0.8},
    "loo": {"correct_weight": 0.8, "weight_from": "loo"},
    "loo 0.5": {"correct_weight": 0.5, "weight_from": "loo"},
}
SETTINGS = {
    f"{lam}, {weights}": {**params, "regularization": lam}
    for lam in (64.0, "loo")
    for weights, params in WEIGHTS.items()
}


def accuracy_and_seconds(dataset, params, device):
    """Mean of two splits' validation accuracies in percent, and the seconds of their fits."""
    accuracies, seconds = [], 0.0
    for split in dataset.splits[:2]:
        arrays = dataset.X[split.fit], dataset.X[split.validation]
        if device != "cpu":
            import torch

            arrays = tuple(torch.asarray(a, device=device) for a in arrays)
        model = EDRVFLClassifier(**params, random_state=0)
        start = time.perf_counter()
        model.fit(arrays[0], dataset.y[split.fit])
        seconds += time.perf_counter() - start
        labels = model.predict(arrays[1])
        labels = labels.cpu().numpy() if hasattr(labels, "cpu") else labels
        accuracies.append(100 * np.mean(labels == dataset.y[split.validation]))
    return np.mean(accuracies), seconds


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cpu")
    parser.add_argument("datasets", nargs="*", default=["iris"] if SMALL else ["uci24"])
    options = parser.parse_args()
    if options.device == "cuda":
        need_gpu()
    warnings.simplefilter("ignore", LinAlgWarning)
    sklearn.set_config(array_api_dispatch=options.device != "cpu")
    print(f"{'dataset':30s}" + "".join(f"{name:>14s}" for name in SETTINGS))
    table = []
    for name in dataset_names(options.datasets):
        dataset = load_dataset(name)
        accuracy_and_seconds(dataset, SETTINGS["loo, loo"], options.device)  # warms up
        row = [accuracy_and_seconds(dataset, params, options.device) for params in SETTINGS.values()]
        table.append(row)
        print(f"{name:30s}" + "".join(f"{accuracy:14.1f}" for accuracy, _ in row), flush=True)
    accuracies, seconds = np.moveaxis(np.array(table), 2, 0)
    print(f"{'mean':30s}" + "".join(f"{value:14.2f}" for value in accuracies.mean(axis=0)))
    ratios = np.exp(np.log(seconds / seconds[:, 1:2]).mean(axis=0))
    print(f"{'fit time, ratio to 64, train':30s}" + "".join(f"{value:14.2f}" for value in ratios))


if __name__ == "__main__":
    main()
