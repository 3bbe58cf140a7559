"""Peak memory of the search beside its budget, on the CPU or, with --device cuda, on a GPU.

    EDRVFL_DATA=folder OPENBLAS_NUM_THREADS=1 python benchmarks/search_memory.py [--device cuda]

Ten read-outs of one hidden setting of 100 and one of 1000 neurons, three layers, on the fit and validation
part of one published split.
CPU: the resident size above what it was with the data loaded, in a process of its own for each line (Linux).
GPU: the bytes that torch allocated above the data.
"""

import os

os.environ["SCIPY_ARRAY_API"] = "1"

import argparse
import multiprocessing
import warnings

import numpy as np
import sklearn
from fit_memory import peak
from scipy.linalg import LinAlgWarning

from edrvfl import EDRVFLClassifierCV, draw_configurations
from edrvfl.bench.datasets import load_dataset

LIMIT = 1.2
BUDGETS = {  # MiB
    "cpu": {"contrac": (100, 150), "letter": (400, 550)},
    "cuda": {"contrac": (512, 2048), "letter": (2048, 16384)},
}
SETTINGS = (("edRVFL_N", "train"), ("WedRVFL", "train"), ("WPedRVFL", "train"), ("WPedRVFL", "loo"))


def search(name, variant, weight_from, memory, widths=(100, 1000)):
    """The search, not fitted, with the rows and labels it takes."""
    dataset = load_dataset(name)
    split = dataset.splits[0]
    model = EDRVFLClassifierCV(
        variant=variant,
        space=[{**c, "n_hidden": n} for n in widths for c in draw_configurations(200, 0, variant)[10:20]],
        n_layers=3,
        weight_from=weight_from,
        cv=[(np.flatnonzero(split.fit), np.flatnonzero(split.validation))],
        refit=False,
        memory=memory,
        random_state=0,
    )
    return model, dataset.X, dataset.y


def held_on_cpu(*args):
    """Bytes, measured in a process of its own."""
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    process = context.Process(target=_held_here, args=(queue, *args))
    process.start()
    held = queue.get()
    process.join()
    return held


def _held_here(queue, *args):
    warnings.simplefilter("ignore", LinAlgWarning)
    model, X, y = search("iris", *args[1:], widths=(10,))
    model.fit(X, y)  # libraries loaded
    model, X, y = search(*args)
    queue.put(peak(lambda: model.fit(X, y)))


def held_on_gpu(*args):
    import torch

    model, X, y = search(*args)
    X = torch.asarray(X, device="cuda")
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    with sklearn.config_context(array_api_dispatch=True):
        model.fit(X, y)
    return torch.cuda.max_memory_allocated() - before


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    device = parser.parse_args().device
    held_on = {"cpu": held_on_cpu, "cuda": held_on_gpu}[device]
    warnings.simplefilter("ignore", LinAlgWarning)
    heads = f"{'dataset':10s} {'method':10s} {'weights':8s} {'budget':>12s} {'peak':>12s} {'ratio':>6s}"
    print(f"{heads}   limit {LIMIT}")
    for name, budgets in BUDGETS[device].items():
        for variant, weight_from in SETTINGS:
            for memory in budgets:
                held = held_on(name, variant, weight_from, memory) / 2**20
                figures = f"{memory:8d} MiB {held:8.0f} MiB {held / memory:6.2f}"
                print(f"{name:10s} {variant:10s} {weight_from:8s} {figures}", flush=True)


if __name__ == "__main__":
    main()
