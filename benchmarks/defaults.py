"""How the default parameters were chosen: validation parts only, mean over the 24 datasets.

    EDRVFL_DATA=folder python benchmarks/defaults.py [stage ...]

Networks are fitted on the fit part of two of the published splits and scored on the validation part;
no test row is touched. Stage 1 compares activation, width and lambda, stage 2 omega_r and p, stage 3
gamma, alpha and lambda, each at the choices of the stage before. Uses a CUDA device if torch finds one.
"""

import itertools
import sys
import time

import numpy as np

from edrvfl import _network
from edrvfl._ensemble import combine_staged
from edrvfl.bench.datasets import GROUPS, load_dataset

CHOSEN = {
    "n_layers": 10, "n_hidden": 512, "activation": "relu", "renormalize": True,
    "lam": 64.0, "gamma": 1.0, "alpha": 0.0, "omega_r": 0.8, "p": 0.2,
}  # fmt: skip
STAGES = {
    "1": {
        "activation": ["relu", "selu", "sigmoid", "tanh", "swish"],
        "n_hidden": [256, 512, 1024],
        "lam": 2.0 ** np.arange(-6, 11, 2),
    },
    "2": {"omega_r": [1.0, 0.9, 0.8, 0.65, 0.5, 0.3], "p": [0.0, 0.1, 0.2, 0.4, 0.6]},
    "3": {"gamma": [0.5, 1.0, 2.0], "alpha": [-1.0, -0.5, 0.0, 0.5], "lam": [16.0, 32.0, 64.0, 128.0]},
}  # fmt: skip
SHARED = ("activation", "n_hidden")  # not an axis of a stack


def on_device(array):
    try:
        import torch
    except ImportError:
        return array
    return torch.asarray(array).cuda() if torch.cuda.is_available() else array


def accuracies(dataset, split, settings):
    """Validation accuracy (depth, network) of a stack."""
    X, y = dataset.X, dataset.y
    k = int(y.max()) + 1
    fitted = _network.fit(on_device(X[split.fit]), on_device(y[split.fit]), k, settings, seed=0)
    scores = _network.layer_scores(fitted.network, on_device(X[split.validation]))
    labels = combine_staged(scores, "softmax").argmax(-1)
    right = labels == on_device(y[split.validation])
    return np.asarray(right.cpu() if hasattr(right, "cpu") else right).mean(axis=-1)


def run(stage):
    space = STAGES[stage]
    axes = {name: values for name, values in space.items() if name not in SHARED}
    points = list(itertools.product(*axes.values()))
    stacked = {name: np.array([p[i] for p in points]) for i, name in enumerate(axes)}
    shared = {name: space[name] for name in SHARED if name in space}
    table = {}
    for values in itertools.product(*shared.values()):
        settings = {**CHOSEN, **stacked, **dict(zip(shared, values, strict=True))}
        for name in ("lam", "gamma", "alpha", "omega_r", "p"):
            settings[name] = np.broadcast_to(np.asarray(settings[name], dtype=float), len(points))
        start, per_dataset = time.perf_counter(), []
        for name in GROUPS["uci24"]:
            dataset = load_dataset(name)
            parts = [
                accuracies(dataset, split, _network.Settings(**settings)) for split in dataset.splits[:2]
            ]
            per_dataset.append(np.mean(parts, axis=0))
        mean = 100 * np.mean(per_dataset, axis=0)  # (depth, network)
        for i, point in enumerate(points):
            table[(*values, *point)] = (mean[-1, i], mean[:, i].max())
        print(f"stage {stage} {values}: {time.perf_counter() - start:.0f} s", flush=True)
    print(f"stage {stage}: {', '.join([*shared, *axes])} -> accuracy at ten layers; at the best depth")
    for key, (last, best) in sorted(table.items(), key=lambda item: -item[1][0]):
        print("  ", *key, f"{last:.2f} {best:.2f}")


if __name__ == "__main__":
    for stage in sys.argv[1:] or STAGES:
        run(stage)
