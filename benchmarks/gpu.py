"""On a CUDA device: the same predictions as NumPy, and the time and memory of a large fit.

    SCIPY_ARRAY_API=1 python benchmarks/gpu.py

The bound is the matrix products alone, timed on the same device: XW at the pruned shapes and D'D, once
as the full product and once as the triangle that is needed.
"""

import os

os.environ["SCIPY_ARRAY_API"] = "1"

import importlib
import statistics
import sys
import time
from collections.abc import Callable

import numpy as np
import sklearn
import torch

from edrvfl import EDRVFLClassifier, to_numpy, variant
from edrvfl._seam.linalg import PANEL

sklearn.set_config(array_api_dispatch=True)


def problem(m: int, d: int = 50, k: int = 10) -> tuple[torch.Tensor, torch.Tensor]:
    """Classes cut from a smooth function of the inputs, with noise."""
    generator = torch.Generator("cuda").manual_seed(0)
    X = torch.randn((m, d), generator=generator, device="cuda", dtype=torch.float64)
    noise = torch.randn(m, generator=generator, device="cuda", dtype=torch.float64)
    hidden = X[:, :8].sum(dim=1) + 0.5 * X[:, 1] * X[:, 2] + 0.5 * noise
    shares = torch.linspace(0, 1, k + 1, device="cuda", dtype=torch.float64)[1:-1]
    edges = torch.quantile(hidden[:100_000], shares)
    return X, torch.bucketize(hidden, edges)


def seconds(task: Callable[[], object], repeats: int = 5) -> list[float]:
    """Time some repeats, sorted."""
    task()  # warm-up
    times = []
    for _ in range(repeats):
        torch.cuda.synchronize()
        start = time.perf_counter()
        task()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    return sorted(times)


def same_as_numpy(m: int = 20_000) -> None:
    """Scores on the device, in torch and in CuPy, beside those of NumPy."""
    X, y = (a.cpu().numpy() for a in problem(m))
    expected = EDRVFLClassifier(n_hidden=300, random_state=0).fit(X, y).decision_function(X)
    for library in ("torch", "cupy"):
        try:
            xp = importlib.import_module(library)
        except ImportError:
            print(f"{library} is not installed: not compared")
            continue
        on_device = {"device": "cuda"} if library == "torch" else {}
        rows, labels = xp.asarray(X, **on_device), xp.asarray(y, **on_device)
        model = EDRVFLClassifier(n_hidden=300, random_state=0).fit(rows, labels)
        scores = model.decision_function(rows)
        scores = scores.cpu().numpy() if library == "torch" else scores.get()
        home = to_numpy(model).decision_function(X)
        print(
            f"{library}, {m} rows: largest difference of scores from NumPy "
            f"{np.abs(scores - expected).max():.1e} (limit 1e-6), same labels "
            f"{np.mean(scores.argmax(1) == expected.argmax(1)):.4%}, "
            f"after to_numpy {np.abs(home - expected).max():.1e}"
        )


def products(m: int, n: int, d: int, layers: int, triangular: bool, dtype: torch.dtype) -> float:
    """Seconds of the products alone, with rows aligned and a fifth of the neurons pruned."""
    c = -(-(n + d + 1) // 16) * 16
    rows = 131_072
    D = torch.randn((rows, c), device="cuda", dtype=dtype)
    widths = [d] + [n - n // 5 + d] * (layers - 1)
    H = torch.empty((rows, n), device="cuda", dtype=dtype)
    Ws = [torch.randn((w, n), device="cuda", dtype=dtype) for w in widths]
    step = PANEL if triangular else c

    def one_block() -> None:
        for W in Ws:
            torch.matmul(D[:, : W.shape[0]], W, out=H)
            for j in range(0, c, step):
                D[:, j:].T @ D[:, j : j + step]

    return statistics.median(seconds(one_block)) * m / rows


def large(dtype: torch.dtype, m: int = 1_000_000, d: int = 50, n: int = 1000) -> None:
    X, y = problem(m, d)
    X = X.to(dtype)
    model = variant("WPedRVFL", n_hidden=n, random_state=0)
    torch.cuda.reset_peak_memory_stats()
    took = seconds(lambda: model.fit(X, y))
    gigabytes = torch.cuda.max_memory_allocated() / 1e9
    full, triangle = (products(m, n, d, 10, t, dtype) for t in (False, True))
    median, answered = statistics.median(took), statistics.median(seconds(lambda: model.predict(X)))
    accuracies = ", ".join(f"{a:.3f}" for a in model.train_accuracies_)
    print(
        f"fit {m} x {d} in {dtype}, 10 classes, n {n}, 10 layers: median {median:.3f} s of 5, "
        f"best {took[0]:.3f} (limit 0.8), {gigabytes:.1f} GB (limit 20); products alone {triangle:.3f} s "
        f"(triangle) to {full:.3f} s (full), ratio {median / triangle:.2f}; predict {answered:.3f} s; "
        f"training accuracies {accuracies}"
    )


def profile(m: int = 1_000_000, d: int = 50, n: int = 1000) -> None:
    """Where the time of the large fit goes, kernel by kernel."""
    X, y = problem(m, d)
    model = variant("WPedRVFL", n_hidden=n, random_state=0).fit(X, y)
    activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=activities) as result:
        model.fit(X, y)
        torch.cuda.synchronize()
    print(result.key_averages().table(sort_by="cuda_time_total", row_limit=25, max_name_column_width=60))


if __name__ == "__main__":
    print(torch.cuda.get_device_name(), "torch", torch.__version__)
    same_as_numpy()
    for dtype in (torch.float64, torch.float32):
        large(dtype)
    if "--profile" in sys.argv:
        profile()
