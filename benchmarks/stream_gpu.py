"""On a CUDA device: a fit of rows that are streamed from the host's memory, block by block.

    SCIPY_ARRAY_API=1 python benchmarks/stream_gpu.py --rows 20000000

WPedRVFL with n 1000, ten layers, 50 columns in float32, ten classes. The features of a layer are kept on the
device until the next one if there is room, else computed again from the rows. The bounds are the products
alone, timed on the same device: each layer's projection once, or through all layers before it, and a
triangular Gram.
"""

import argparse
import os

os.environ["SCIPY_ARRAY_API"] = "1"

import time

import numpy as np
import torch
from gpu import products, seconds

from edrvfl import RowBlocks, variant

D, N, LAYERS, CLASSES = 50, 1000, 10, 10


def problem(m: int) -> tuple[np.ndarray, np.ndarray]:
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


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--block", type=int, default=500_000)
    parser.add_argument("--threads", type=int, default=4)
    args = parser.parse_args()
    X, y = problem(args.rows)
    once = products(args.rows, N, D, LAYERS, True, torch.float32)
    again = once + one_projection(args.rows) * LAYERS * (LAYERS - 1) / 2
    blocks = RowBlocks.from_arrays(X, y, rows=args.block, device="cuda", threads=args.threads)
    model = variant("WPedRVFL", n_hidden=N, n_layers=LAYERS, random_state=0)
    torch.cuda.synchronize()
    start = time.perf_counter()
    model.fit(blocks)
    torch.cuda.synchronize()
    took = time.perf_counter() - start
    print(
        f"{args.rows} x {D} streamed to {torch.cuda.get_device_name()}: {took:.2f} s, "
        f"{torch.cuda.max_memory_allocated() / 1e9:.1f} GB on the device; products {once:.2f} s if features "
        f"are kept there, {again:.2f} s if they are computed again; accuracy of the last layer "
        f"{model.train_accuracies_[-1]:.3f}"
    )


if __name__ == "__main__":
    main()
