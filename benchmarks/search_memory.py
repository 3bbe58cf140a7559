"""Peak memory of the search beside what it estimated, on the CPU or, with --device cuda, on a GPU.

    EDRVFL_DATA=folder OPENBLAS_NUM_THREADS=1 python benchmarks/search_memory.py [--small] [--device cuda]

Ten read-outs of one hidden setting of 100 and one of 1000 neurons, three layers, on the fit and validation
part of one published split.
CPU: the resident size above what it was with the data loaded, in a process of its own for each line (Linux).
GPU: the bytes that torch allocated above the data.
The ratio is that of the peak to the estimate of the stack that needs most; `bytes_needed` has the factors.
"""

import os

os.environ["SCIPY_ARRAY_API"] = "1"

import argparse
import warnings

import numpy as np
import sklearn
from common import SMALL, need_gpu
from fit_memory import measured, peak
from scipy.linalg import LinAlgWarning

from edrvfl import EDRVFLSearchCV, paper_configurations, variant
from edrvfl._search.plan import Size, bytes_needed, groups, stacks
from edrvfl.bench.data import load_dataset

BUDGETS = {  # MiB
    "cpu": {"contrac": (100, 150), "letter": (400, 550, 1100)},
    "cuda": {"contrac": (512, 2048), "letter": (2048, 16384)},
}
SETTINGS = {
    "edRVFL_N": ("edRVFL_N", {}),
    "WedRVFL": ("WedRVFL", {}),
    "WPedRVFL": ("WPedRVFL", {}),
    "  loo weights": ("WPedRVFL", {"weight_from": "loo"}),
    "  lambda by loo": ("WPedRVFL", {"regularization": "loo"}),
    "  lambda 0": ("WPedRVFL", {"regularization": 0.0}),
    "  both of these": ("WPedRVFL", {"weight_from": "loo", "regularization": 0.0}),
}

if SMALL:
    BUDGETS = {device: {"iris": (100,)} for device in BUDGETS}
    SETTINGS = {"WPedRVFL": SETTINGS["WPedRVFL"]}


def search(name, setting, memory, widths=(20, 40) if SMALL else (100, 1000)):
    """Return the search, not fitted, with the rows and labels it takes."""
    dataset = load_dataset(name)
    split = dataset.splits[0]
    method, fixed = SETTINGS[setting]
    network = variant(method, n_layers=3, random_state=0)
    drawn = paper_configurations(200, 0, network)[10:20]
    tried = [{**one, "n_hidden": n, **fixed} for n in widths for one in drawn]
    model = EDRVFLSearchCV(
        network,
        [{name: [value] for name, value in one.items()} for one in tried],
        n_iter=None,
        cv=[(np.flatnonzero(split.fit), np.flatnonzero(split.validation))],
        refit=False,
        memory=memory,
    )
    return model, dataset.X, dataset.y


def estimated(name, setting, memory, device):
    """Return the bytes of the largest stack that the search plans; None if one network does not fit."""
    model, X, y = search(name, setting, memory)
    ((train, test),) = model.cv
    size = Size(len(train), len(test), X.shape[1], len(np.unique(y)), 8, stacked=device != "cpu")
    candidates = list(dict.fromkeys(row.candidate for row in model._rows()))
    try:
        planned = [list(stacks(some, size, memory * 2**20)) for some in groups(candidates, lambda c: c.stack)]
    except MemoryError:
        return None
    return max(bytes_needed(stack, size) for several in planned for stack in several)


def held_on_cpu(*args):
    """Return bytes, measured in a process of its own."""
    return measured(_held_here, *args)


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
    if device == "cuda":
        need_gpu()
    held_on = {"cpu": held_on_cpu, "cuda": held_on_gpu}[device]
    warnings.simplefilter("ignore", LinAlgWarning)
    print(f"{'dataset':10s} {'method':16s} {'budget':>12s} {'estimate':>12s} {'peak':>12s} {'ratio':>6s}")
    for name, budgets in BUDGETS[device].items():
        for setting in SETTINGS:
            for memory in budgets:
                need, found = estimated(name, setting, memory, device), "refused"
                if need is not None:
                    held = held_on(name, setting, memory)
                    found = f"{need / 2**20:8.0f} MiB {held / 2**20:8.0f} MiB {held / need:6.2f}"
                print(f"{name:10s} {setting:16s} {memory:8d} MiB {found}", flush=True)


if __name__ == "__main__":
    main()
