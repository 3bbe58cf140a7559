"""On a CUDA device: the same predictions as NumPy, and the time and memory of large fits.

    SCIPY_ARRAY_API=1 EDRVFL_DATA=folder python benchmarks/gpu.py [--small] [network portfolio search stream]

network   one network: its scores beside NumPy's, then a million rows. The bound is the matrix products alone,
          timed on the same device: XW at the pruned shapes and D'D, once as the full product and once as the
          triangle that is needed. The default.
portfolio seconds and memory of a fit on the 24 datasets and on a large table. The time is that of the second
          of two fits, whose first one has loaded the device's libraries. The limits are 1 s up to 7,500 rows,
          5 s for adult, letter and statlog-shuttle, and 10 s for 500,000 x 50 in float32.
search    200 configurations of the paper's box at every depth, beside the same search with NumPy in as many
          processes as there are cores, one BLAS thread each.
stream    a fit of rows that are streamed from the host's memory, block by block, beside its products alone.
"""

import os

os.environ["SCIPY_ARRAY_API"] = "1"
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from common import SMALL, need_gpu

need_gpu()

import importlib
import statistics
import sys
import time
import warnings
from collections.abc import Callable

import numpy as np
import sklearn
import torch
from scipy.linalg import LinAlgWarning

from edrvfl import (
    EDRVFLClassifier,
    EDRVFLPortfolioClassifier,
    EDRVFLSearchCV,
    RowBlocks,
    paper_configurations,
    to_numpy,
    variant,
)
from edrvfl._seam.linalg import PANEL
from edrvfl.bench.data import dataset_names, load_dataset

sklearn.set_config(array_api_dispatch=True)
D, N, LAYERS, CLASSES = 50, 1000, 10, 10


def problem(m: int, d: int = D, k: int = CLASSES) -> tuple[torch.Tensor, torch.Tensor]:
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


# --- one network -------------------------------------------------------------------------------------


def same_as_numpy(m: int) -> None:
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


def products(m: int, triangular: bool, dtype: torch.dtype) -> float:
    """Seconds of the products alone, with rows aligned and a fifth of the neurons pruned."""
    c = -(-(N + D + 1) // 16) * 16
    rows = 131_072
    features = torch.randn((rows, c), device="cuda", dtype=dtype)
    widths = [D] + [N - N // 5 + D] * (LAYERS - 1)
    H = torch.empty((rows, N), device="cuda", dtype=dtype)
    Ws = [torch.randn((w, N), device="cuda", dtype=dtype) for w in widths]
    step = PANEL if triangular else c

    def one_block() -> None:
        for W in Ws:
            torch.matmul(features[:, : W.shape[0]], W, out=H)
            for j in range(0, c, step):
                features[:, j:].T @ features[:, j : j + step]

    return statistics.median(seconds(one_block)) * m / rows


def large(dtype: torch.dtype, m: int) -> None:
    X, y = problem(m)
    X = X.to(dtype)
    model = variant("WPedRVFL", n_hidden=N, random_state=0)
    torch.cuda.reset_peak_memory_stats()
    took = seconds(lambda: model.fit(X, y))
    gigabytes = torch.cuda.max_memory_allocated() / 1e9
    full, triangle = (products(m, triangular, dtype) for triangular in (False, True))
    median, answered = statistics.median(took), statistics.median(seconds(lambda: model.predict(X)))
    accuracies = ", ".join(f"{a:.3f}" for a in model.train_accuracies_)
    print(
        f"fit {m} x {D} in {dtype}, 10 classes, n {N}, 10 layers: median {median:.3f} s of 5, "
        f"best {took[0]:.3f} (limit 0.8), {gigabytes:.1f} GB (limit 20); products alone {triangle:.3f} s "
        f"(triangle) to {full:.3f} s (full), ratio {median / triangle:.2f}; predict {answered:.3f} s; "
        f"training accuracies {accuracies}"
    )


def network() -> None:
    same_as_numpy(2_000 if SMALL else 20_000)
    for dtype in (torch.float64, torch.float32):
        large(dtype, 20_000 if SMALL else 1_000_000)


# --- the portfolio -----------------------------------------------------------------------------------


def large_table(m: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Three classes cut from a smooth function of ten of the columns, with noise."""
    generator = torch.Generator("cuda").manual_seed(0)
    X = torch.randn((m, D), generator=generator, device="cuda")
    weights, noise = (torch.randn(shape, generator=generator, device="cuda") for shape in ((10, 3), (m, 3)))
    return X, (X[:, :10] @ weights + 2 * torch.sin(2 * X[:, :3]) * X[:, 3:6] + noise).argmax(dim=1)


def measure(name: str, X: torch.Tensor, y: torch.Tensor, limit: float, repeats: int = 2) -> None:
    for _ in range(repeats):
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        held, began = torch.cuda.memory_allocated(), time.perf_counter()
        model = EDRVFLPortfolioClassifier(random_state=0).fit(X, y)
        torch.cuda.synchronize()
        took = time.perf_counter() - began
        peak = torch.cuda.max_memory_allocated() - held
    of_data = peak / (X.numel() * X.element_size())
    numpy = ""
    if X.shape[0] < 1_500:
        host = EDRVFLPortfolioClassifier(random_state=0).fit(X.cpu().numpy(), y.cpu().numpy())
        numpy = f", NumPy's log-loss differs by {abs(host.loo_log_loss_ - model.loo_log_loss_):.1e}"
    print(
        f"{name:30s} {X.shape[0]:6d} x {X.shape[1]:3d}  {took:6.2f} s (limit {limit:g}), peak "
        f"{peak / 2**20:6.0f} MiB = {of_data:5.0f} times the data, leave-one-out accuracy "
        f"{100 * model.loo_accuracy_:.2f}, log-loss {model.loo_log_loss_:.4f}{numpy}",
        flush=True,
    )


def portfolio() -> None:
    for name in ["iris"] if SMALL else dataset_names(["uci24"]):
        dataset = load_dataset(name)
        train = dataset.splits[0].train
        X = torch.as_tensor(np.ascontiguousarray(dataset.X[train]), device="cuda")
        y = torch.as_tensor(dataset.y[train], device="cuda")
        measure(name, X, y, 1.0 if X.shape[0] <= 7_500 else 5.0)
    measure("large, float32", *large_table(5_000 if SMALL else 500_000), limit=10.0)


# --- a search ----------------------------------------------------------------------------------------


def search_on(dataset, method, tried, device):
    """Return the seconds and the best score."""
    split = dataset.splits[0]
    model = EDRVFLSearchCV(
        variant(method, random_state=0),
        [{name: [value] for name, value in one.items()} for one in tried],
        n_iter=None,
        cv=[(np.flatnonzero(split.fit), np.flatnonzero(split.validation))],
        refit=False,
        n_jobs=1 if SMALL else -1,
    )
    X = dataset.X if device == "cpu" else torch.asarray(dataset.X, device=device)
    start = time.perf_counter()
    with sklearn.config_context(array_api_dispatch=device != "cpu"):
        model.fit(X, dataset.y)
    return time.perf_counter() - start, model.best_score_


def search() -> None:
    print(f"{'dataset':20s} {'method':10s} {'NumPy':>9s} {'GPU':>9s} {'ratio':>6s}   best at any depth")
    for name in ["iris"] if SMALL else ["contrac", "cardio-10", "wine-quality-white"]:
        dataset = load_dataset(name)
        for method in ("edRVFL_N", "WPedRVFL"):
            tried = paper_configurations(20 if SMALL else 200, 0, variant(method))
            narrow = [{**c, "n_hidden": 20} for c in tried]
            for device in ("cpu", "cuda"):
                search_on(dataset, method, narrow, device)  # warms up
            theirs, same = search_on(dataset, method, tried, "cpu")
            ours, best = search_on(dataset, method, tried, "cuda")
            figures = f"{theirs:7.1f} s {ours:7.2f} s {theirs / ours:6.1f}   {same:.4f}, {best:.4f}"
            print(f"{name:20s} {method:10s} {figures}", flush=True)


# --- rows that are streamed --------------------------------------------------------------------------


def rows_on_the_host(m: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = np.empty((m, D), dtype=np.float32)
    for start in range(0, m, 1_000_000):
        part = X[start : start + 1_000_000]
        part[...] = rng.standard_normal(part.shape, dtype=np.float32)
    hidden = X[:, :8].sum(axis=1) + 0.5 * X[:, 1] * X[:, 2]
    hidden += 0.5 * rng.standard_normal(m, dtype=np.float32)
    edges = np.quantile(hidden[:100_000], np.linspace(0, 1, CLASSES + 1)[1:-1])
    return X, np.searchsorted(edges, hidden).astype(np.int64)


def one_projection(m: int) -> float:
    A = torch.randn((131_072, 864), device="cuda")
    W = torch.randn((864, N), device="cuda")
    H = torch.empty((131_072, N), device="cuda")
    return min(seconds(lambda: torch.matmul(A, W, out=H))) * m / 131_072


def stream() -> None:
    m = 20_000 if SMALL else 20_000_000
    X, y = rows_on_the_host(m)
    # each layer's projection through all layers before it, and a triangular Gram
    bound = products(m, True, torch.float32) + one_projection(m) * LAYERS * (LAYERS - 1) / 2
    blocks = RowBlocks.from_arrays(X, y, rows=min(m, 500_000), device="cuda", threads=8)
    torch.cuda.reset_peak_memory_stats()
    torch.cuda.empty_cache()
    model = variant("WPedRVFL", n_hidden=N, n_layers=LAYERS, random_state=0)
    torch.cuda.synchronize()
    start = time.perf_counter()
    model.fit(blocks)
    torch.cuda.synchronize()
    took = time.perf_counter() - start
    print(
        f"{m} x {D} streamed: {took:.2f} s, {torch.cuda.max_memory_allocated() / 1e9:.1f} GB on the device; "
        f"products {bound:.2f} s with features computed again, share of the bound {bound / took:.2f}; "
        f"accuracy of the last layer {model.train_accuracies_[-1]:.3f}",
        flush=True,
    )


if __name__ == "__main__":
    print(torch.cuda.get_device_name(), "torch", torch.__version__)
    warnings.simplefilter("ignore", LinAlgWarning)
    parts = {"network": network, "portfolio": portfolio, "search": search, "stream": stream}
    for part in sys.argv[1:] or (parts if SMALL else ["network"]):
        parts[part]()
