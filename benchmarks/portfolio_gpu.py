"""The portfolio on a CUDA device: seconds and memory of a fit on the 24 datasets and on a large table.

    SCIPY_ARRAY_API=1 EDRVFL_DATA=folder python benchmarks/portfolio_gpu.py [dataset ...]

Training rows (fit and validation rows) of the first split; the time is that of the second of two fits, whose
first one has loaded the device's libraries. The limits are 1 s up to 7,000 rows, 5 s for adult, letter and
statlog-shuttle, and 10 s for 500,000 x 50 in float32. On the smaller half of the datasets leave-one-out
figures are compared with those of NumPy.
"""

import os

os.environ["SCIPY_ARRAY_API"] = "1"

import sys
import time

import numpy as np
import sklearn
import torch

from edrvfl import EDRVFLPortfolioClassifier
from edrvfl.bench.data import dataset_names, load_dataset

sklearn.set_config(array_api_dispatch=True)
LARGE = (500_000, 50)


def large() -> tuple[torch.Tensor, torch.Tensor]:
    """Three classes cut from a smooth function of ten of the columns, with noise."""
    generator = torch.Generator("cuda").manual_seed(0)
    X = torch.randn(LARGE, generator=generator, device="cuda")
    weights, noise = (
        torch.randn(shape, generator=generator, device="cuda") for shape in ((10, 3), (LARGE[0], 3))
    )
    return X, (X[:, :10] @ weights + 2 * torch.sin(2 * X[:, :3]) * X[:, 3:6] + noise).argmax(dim=1)


def measure(name: str, X: torch.Tensor, y: torch.Tensor, limit: float, repeats: int = 2) -> None:
    for _ in range(repeats):
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        held, began = torch.cuda.memory_allocated(), time.perf_counter()
        model = EDRVFLPortfolioClassifier(random_state=0).fit(X, y)
        torch.cuda.synchronize()
        seconds = time.perf_counter() - began
        peak = torch.cuda.max_memory_allocated() - held
    of_data = peak / (X.numel() * X.element_size())
    numpy = ""
    if X.shape[0] < 1_500:
        host = EDRVFLPortfolioClassifier(random_state=0).fit(X.cpu().numpy(), y.cpu().numpy())
        numpy = f", NumPy's log-loss differs by {abs(host.loo_log_loss_ - model.loo_log_loss_):.1e}"
    print(
        f"{name:30s} {X.shape[0]:6d} x {X.shape[1]:3d}  {seconds:6.2f} s (limit {limit:g}), peak "
        f"{peak / 2**20:6.0f} MiB = {of_data:5.0f} times the data, leave-one-out accuracy "
        f"{100 * model.loo_accuracy_:.2f}, log-loss {model.loo_log_loss_:.4f}{numpy}",
        flush=True,
    )


if __name__ == "__main__":
    for name in sys.argv[1:] or [*dataset_names(["uci24"]), "large"]:
        if name == "large":
            measure("large, float32", *large(), limit=10.0)
            continue
        dataset = load_dataset(name)
        train = dataset.splits[0].train
        X = torch.as_tensor(np.ascontiguousarray(dataset.X[train]), device="cuda")
        y = torch.as_tensor(dataset.y[train], device="cuda")
        measure(name, X, y, 1.0 if X.shape[0] <= 7_500 else 5.0)
