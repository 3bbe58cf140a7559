"""Test accuracy in float32 beside float64, at default parameters, on the 24 datasets.

    EDRVFL_DATA=folder python benchmarks/float32.py [--small] [dataset ...]

Every published split is fitted once in each precision with the same seed. Uses a CUDA device if torch
finds one. Where the four test sets are the same file, one split is enough.
"""

import os

os.environ["SCIPY_ARRAY_API"] = "1"

import sys
import warnings

import numpy as np
import sklearn
from common import SMALL
from scipy.linalg import LinAlgWarning

from edrvfl import variant
from edrvfl.bench.data import GROUPS, load_dataset

warnings.simplefilter("ignore", LinAlgWarning)  # the table counts the fall-backs


def on_device(array):
    try:
        import torch
    except ImportError:
        return array
    return torch.asarray(array).cuda() if torch.cuda.is_available() else array


def main() -> None:
    names = sys.argv[1:] or (["iris"] if SMALL else GROUPS["uci24"])
    for method in ("WPedRVFL", "edRVFL_O"):
        print(f"{method:30s} {'float64':>8s} {'float32':>8s} {'difference':>11s} {'fall-backs in each':>22s}")
        means = []
        for name in names:
            dataset = load_dataset(name)
            splits = dataset.splits
            if all(np.array_equal(s.test, splits[0].test) for s in splits):
                splits = splits[:1]
            accuracies, fallbacks = {}, {}
            for dtype in (np.float64, np.float32):
                X, scores, fell = dataset.X.astype(dtype), [], 0
                for split in splits:
                    model = variant(method, random_state=0)
                    model.fit(on_device(X[split.train]), on_device(dataset.y[split.train]))
                    labels = model.predict(on_device(X[split.test]))
                    labels = labels.cpu().numpy() if hasattr(labels, "cpu") else labels
                    scores.append(100 * np.mean(labels == dataset.y[split.test]))
                    fell += len(model.fallback_layers_)
                accuracies[dtype], fallbacks[dtype] = np.mean(scores), fell
            double, single = accuracies.values()
            means.append((double, single))
            counts = " and ".join(f"{f}/{10 * len(splits)}" for f in fallbacks.values())
            print(
                f"{name:30s} {double:8.2f} {single:8.2f} {single - double:+11.2f} {counts:>22s}", flush=True
            )
        double, single = np.mean(means, axis=0)
        print(f"{'mean':30s} {double:8.2f} {single:8.2f} {single - double:+11.2f}")


if __name__ == "__main__":
    with sklearn.config_context(array_api_dispatch=True):
        main()
