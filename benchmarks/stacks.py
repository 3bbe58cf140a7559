"""Networks trained in stacks beside the same networks trained alone: how many a second, and with TF32.

    EDRVFL_DATA=folder python benchmarks/stacks.py [--small] [--device cuda] [--trials 24] [--tf32]
        [dataset ...]

The configurations of a search of each of the four networks, on the fit part of all splits of a dataset, for a
few epochs without early stopping. Of those trained alone a sample is taken, one of each depth. Both are warm.
With --tf32 there follow the validation accuracies of a whole search in float32 and in TF32, on three
datasets, and its seconds.
"""

import argparse
import os
import time
import warnings

os.environ["SCIPY_ARRAY_API"] = "1"
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from common import SMALL, need, need_gpu

need("torch")

import torch
from sklearn.exceptions import ConvergenceWarning

from edrvfl.bench.baselines.fnn import FNNClassifier, configurations, fit_together, stack
from edrvfl.bench.data import load_dataset

ARCHITECTURES = ("snn",) if SMALL else ("snn", "msra", "highway", "resnet")


def fit(models, rows, device):
    """Return the seconds of a fit of all models."""
    start = time.perf_counter()
    fit_together(models, rows, device)
    return time.perf_counter() - start


def compare(dataset, architecture, arguments):
    """Print networks a second, alone and in stacks."""
    parts = [(dataset.X[s.fit], dataset.y[s.fit]) for s in dataset.splits]
    tried = [
        c | {"n_units": min(c["n_units"], arguments.width)}
        for c in configurations(architecture, arguments.trials, 0)
    ]

    def models(some):
        epochs = {"max_epochs": arguments.epochs, "patience": arguments.epochs}
        return [FNNClassifier(architecture, random_state=0, **epochs, **c) for c in some]

    sample = list({c["n_layers"]: c for c in tried}.values())
    fit(models(sample[:1]), parts[:1], arguments.device)
    alone = sum(fit([model], parts[:1], arguments.device) for model in models(sample)) / len(sample)
    networks = [(c, part) for part in parts for c in tried]
    seconds = fit(models([c for c, _ in networks]), [part for _, part in networks], arguments.device)
    rate = len(networks) / seconds
    print(
        f"{dataset.name:20s} {architecture:8s} {len(networks):4d} networks, {arguments.epochs} epochs: "
        f"{1 / alone:8.2f}/s alone {rate:8.2f}/s in stacks, ratio {rate * alone:6.1f}",
        flush=True,
    )


def search(dataset, architecture, arguments):
    """Return the validation accuracies (split, configuration) of a search, and its seconds."""
    tried = configurations(architecture, arguments.trials, 0)
    models = [FNNClassifier(architecture, random_state=0, **c) for _ in dataset.splits for c in tried]
    parts = [(dataset.X[s.fit], dataset.y[s.fit]) for s in dataset.splits]
    seconds = fit(models, [part for part in parts for _ in tried], arguments.device)
    held = [s.validation for s in dataset.splits for _ in tried]
    scores = [m.score(dataset.X[v], dataset.y[v]) for m, v in zip(models, held, strict=True)]
    return np.reshape(scores, (len(parts), len(tried))), seconds


def compare_precisions(dataset, architecture, arguments):
    """Print what a search finds in float32 and in TF32."""
    found, usual = {}, stack.PRECISION
    for precision in ("highest", "high"):
        stack.PRECISION = precision
        found[precision] = search(dataset, architecture, arguments)
    stack.PRECISION = usual
    (full, slow), (short, quick) = found["highest"], found["high"]
    print(
        f"{dataset.name:20s} {architecture:8s} mean {full.mean():.4f} and {short.mean():.4f} with TF32, "
        f"best {full.max(1).mean():.4f} and {short.max(1).mean():.4f}; {slow:.1f} s and {quick:.1f} s",
        flush=True,
    )


def main():
    parser = argparse.ArgumentParser()
    names = ["iris"] if SMALL else ["glass", "contrac", "wine-quality-white"]
    parser.add_argument("datasets", nargs="*", default=names)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--trials", type=int, default=2 if SMALL else 24)
    parser.add_argument("--epochs", type=int, default=1 if SMALL else 10)
    width = 16 if SMALL else 1024
    parser.add_argument("--width", type=int, default=width, help="narrow wider networks to this width")
    parser.add_argument("--tf32", action="store_true")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    if arguments.device == "cuda":
        need_gpu()
    if arguments.device == "cpu":
        torch.set_num_threads(1)
    print(torch.cuda.get_device_name() if arguments.device == "cuda" else "CPU, one thread")
    for name in arguments.datasets:
        dataset = load_dataset(name)
        for architecture in ARCHITECTURES:
            compare(dataset, architecture, arguments)
    if arguments.tf32:
        for name in arguments.datasets[:3]:
            for architecture in ARCHITECTURES:
                compare_precisions(load_dataset(name), architecture, arguments)


if __name__ == "__main__":
    main()
