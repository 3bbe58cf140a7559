"""A fit from Parquet that does not fit into memory: peak memory, time, and the ratio to its matrix products.

    python benchmarks/out_of_core.py [--small] --rows 10000000 --folder /somewhere/with/room

WPedRVFL, 30 columns in float64, two classes, n 256, five layers, without calibration. The fit runs in a
process of its own, whose largest resident size (VmHWM, Linux) counts, interpreter and libraries included.

Bounds, timed in the same process on blocks that stay in cache, one thread for each core: the products of the
fit as it is done (each layer's projection through all layers before it if features are computed again, and
a triangular Gram for each layer), and those of a fit in memory, which projects each layer once.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from common import SMALL, need

D, N, LAYERS, PRUNED = 30, 256, 5, 0.2


def write(folder: Path, rows: int, per_file: int = 1_000_000) -> None:
    """Write rows whose two classes depend on four of the columns, file by file."""
    import pyarrow
    import pyarrow.parquet

    folder.mkdir(parents=True, exist_ok=True)
    for number, start in enumerate(range(0, rows, per_file)):
        rng = np.random.default_rng(number)
        X = rng.standard_normal((min(per_file, rows - start), D))
        hidden = X[:, 0] + X[:, 1] * X[:, 2] + np.abs(X[:, 3]) + rng.standard_normal(len(X))
        columns = {f"x{j}": X[:, j] for j in range(D)} | {"label": (hidden > 0.8).astype(np.int8)}
        table = pyarrow.table(columns)
        pyarrow.parquet.write_table(table, folder / f"{number:04d}.parquet", compression="none")


def product_seconds(threads: int) -> tuple[float, float]:
    """Seconds a row of one projection at the pruned shape and of one triangular Gram, all threads busy."""
    from threadpoolctl import threadpool_limits

    from edrvfl._seam.linalg import add_gram

    c, rows, repeats = N + D + 1, 512, 2 if SMALL else 400

    def projections(_: int) -> None:
        A, W = np.ones((rows, c - int(PRUNED * N))), np.ones((c - int(PRUNED * N), N))
        H = np.empty((rows, N))
        for _ in range(repeats):
            np.matmul(A, W, out=H)

    def grams(_: int) -> None:
        S, G = np.ones((rows, c)), np.zeros((c, c))
        for _ in range(repeats):
            add_gram(G, S)

    found = []
    with threadpool_limits(1), ThreadPoolExecutor(threads) as pool:
        for task in (projections, grams):
            list(pool.map(task, range(threads)))
            start = time.perf_counter()
            list(pool.map(task, range(threads)))
            found.append((time.perf_counter() - start) / (threads * rows * repeats))
    return found[0], found[1]


def fit(folder: Path, threads: int | None) -> None:
    """Fit in this process and print what it took, as JSON."""
    from edrvfl import RowBlocks, variant

    blocks = RowBlocks.from_parquet(folder, target="label", threads=threads)
    model = variant("WPedRVFL", n_hidden=N, n_layers=LAYERS, random_state=0)
    start, cpu = time.perf_counter(), time.process_time()
    model.fit(blocks)
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    peak = int(re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())[1]) / 2**20
    projection, gram = product_seconds(blocks.threads)
    print(
        json.dumps(
            {
                "seconds": seconds,
                "cpu": cpu,
                "peak": peak,
                "threads": blocks.threads,
                "projection": projection,
                "gram": gram,
                "accuracy": model.train_accuracies_[-1],
            }
        )
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=500 if SMALL else 500_000)
    parser.add_argument("--folder", type=Path, required=not SMALL, default=Path(tempfile.mkdtemp()))
    parser.add_argument("--threads", type=int)
    parser.add_argument("--child", action="store_true")
    args = parser.parse_args()
    need("pyarrow")
    if args.child:
        fit(args.folder, args.threads)
        return
    if not list(args.folder.glob("*.parquet")):
        write(args.folder, args.rows)
    size = sum(path.stat().st_size for path in args.folder.glob("*.parquet")) / 2**30
    command = [sys.executable, __file__, "--child", "--folder", str(args.folder)]
    command += [] if args.threads is None else ["--threads", str(args.threads)]
    command += ["--small"] if SMALL else []
    found = json.loads(subprocess.run(command, check=True, capture_output=True, env=os.environ).stdout)
    m, layers = args.rows, LAYERS
    again = m * (found["projection"] * layers * (layers + 1) / 2 + found["gram"] * layers)
    once = m * layers * (found["projection"] + found["gram"])
    print(
        f"{m} x {D} from {size:.1f} GiB of Parquet, n {N}, {layers} layers, {found['threads']} threads: "
        f"{found['seconds']:.0f} s ({found['cpu']:.0f} s of processors), peak memory "
        f"{found['peak']:.2f} GiB; products {again:.0f} s with features computed again (ratio "
        f"{found['seconds'] / again:.2f}), {once:.0f} s with features kept (ratio "
        f"{found['seconds'] / once:.2f}); accuracy of the last layer {found['accuracy']:.4f}"
    )


if __name__ == "__main__":
    main()
