"""A fit on a Dask cluster of 1, 2, 4 workers with one thread each, and fits of which a worker is killed.

    OPENBLAS_NUM_THREADS=1 python benchmarks/dask_efficiency.py [--small] [--rows 40000] [--workers 1 2 4] ...

Workers are processes. Partitions are made on the workers and lie there when the clock starts. Efficiency is
t(1) / (w t(w)), of the best of some fits. "passes" is the share of a fit in which workers work; in the rest
the client does what does not grow with the rows: it solves for read-outs, and draws the next layer.

Then one fit for each pass over the rows, in which the worker that works on a partition in the middle is
killed by SIGKILL with all that it holds. Every network is compared with that of one worker.
"""

import argparse
import itertools
import os
import signal
import tempfile
import time
from pathlib import Path

from common import SMALL, need

need("dask", "distributed")

import dask
import dask.array
import numpy as np
from distributed import Client, LocalCluster, wait

from edrvfl import EDRVFLClassifier, RowBlocks, variant
from edrvfl._parts.cluster import DaskParts

PLAIN_TOTAL = DaskParts.total


def ask() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    sizes = {"rows": 40_000, "columns": 20, "hidden": 128, "layers": 3}
    for name, default in ({"rows": 200, "columns": 4, "hidden": 8, "layers": 1} if SMALL else sizes).items():
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--partitions", type=int, default=2 if SMALL else 16)
    parser.add_argument("--repeats", type=int, default=1 if SMALL else 2)
    parser.add_argument("--workers", type=int, nargs="+", default=[1] if SMALL else [1, 2, 4])
    parser.add_argument("--encoder", default="standard")
    parser.add_argument("--variant", default="WPedRVFL")
    help_of_kill = "workers of the cluster that loses some; 0: none"
    parser.add_argument("--kill", type=int, default=0 if SMALL else 2, help=help_of_kill)
    return parser.parse_args()


def make_block(number: int, rows: int, columns: int) -> np.ndarray:
    """Draw rows of three classes; the label is the last column."""
    rng = np.random.default_rng([number, rows])
    X = rng.standard_normal((rows, columns))
    y = np.digitize(X[:, 0] + X[:, 1] * X[:, 2] + 0.8 * rng.standard_normal(rows), [-0.6, 0.6])
    return np.column_stack([X, y])


def make_rows(asked: argparse.Namespace) -> tuple:
    """Return X and y, partitions that Dask computes wherever it likes, and again if they are lost."""
    sizes = np.diff(np.linspace(0, asked.rows, asked.partitions + 1).astype(int))
    blocks = [
        dask.array.from_delayed(
            dask.delayed(make_block)(i, int(size), asked.columns), (int(size), asked.columns + 1), float
        )
        for i, size in enumerate(sizes)
    ]
    table = dask.array.concatenate(blocks)
    return table[:, :-1], table[:, -1].astype(int)


def make_model(asked: argparse.Namespace) -> EDRVFLClassifier:
    encoder = None if asked.encoder == "None" else asked.encoder
    model = variant(asked.variant, n_hidden=asked.hidden, encoder=encoder, random_state=0)
    return model if asked.variant == "RVFL" else model.set_params(n_layers=asked.layers)


def processes(n_workers: int) -> LocalCluster:
    one = {"threads_per_worker": 1, "dashboard_address": ":0", "silence_logs": 50}
    return LocalCluster(n_workers=n_workers, processes=not SMALL, **one)


def fit_timed(model: EDRVFLClassifier, X, y) -> tuple[float, float]:
    """Return the seconds of a fit, and those of its passes."""
    passes = []

    def timed(self, function, heard=None):
        start = time.perf_counter()
        found = PLAIN_TOTAL(self, function, heard)
        passes.append(time.perf_counter() - start)
        return found

    DaskParts.total = timed
    start = time.perf_counter()
    try:
        model.fit(RowBlocks.from_dask(X, y))
    finally:
        DaskParts.total = PLAIN_TOTAL
    return time.perf_counter() - start, sum(passes)


def difference(a: EDRVFLClassifier, b: EDRVFLClassifier) -> str:
    """Say how the arrays of two networks differ."""
    networks = (a.network_, b.network_)
    masks = all(
        np.array_equal(np.r_[p.inputs], np.r_[q.inputs])
        for p, q in zip(*(n.layers for n in networks), strict=True)
    )
    if not masks:
        return "other neurons were pruned"
    of_both = list(zip(*([*n.readouts, *(l.shift for l in n.layers)] for n in networks), strict=True))
    if all(np.array_equal(p, q) for p, q in of_both):
        return "equal bit for bit"
    return f"equal to {max(np.abs(p - q).max() / np.abs(p).max() for p, q in of_both):.1e}"


def measure_efficiency(asked: argparse.Namespace) -> EDRVFLClassifier:
    first, of_first = None, 0.0
    for w in asked.workers:
        with processes(w) as cluster, Client(cluster) as client:
            X, y = client.persist(make_rows(asked))
            wait([X, y])
            model = make_model(asked)
            fit_timed(model, X, y)  # workers import what they need
            best, passes = min(fit_timed(model, X, y) for _ in range(asked.repeats))
            if first is None:
                first, of_first = model, best * w
            print(
                f"{w:3d} workers {best:8.2f} s, efficiency {of_first / (w * best):5.2f}, passes "
                f"{passes / best:4.0%}, network {difference(first, model)}",
                flush=True,
            )
    return first


def name_of(function) -> str:
    """Return what a pass over the rows computes."""
    inner = function
    while hasattr(inner, "function"):
        inner = inner.function
    depth = getattr(inner, "depth", None)
    layers = "" if depth is None else f" of layer {len(depth.layers)}" if depth.layers else " of inputs"
    return f"{getattr(inner, '__name__', type(inner).__name__)}{layers}"


def fit_with_a_death(model: EDRVFLClassifier, rows: tuple, at: int, folder: Path) -> tuple[str, bool]:
    """Fit while a worker dies in a pass. Return what the pass computes, and whether there was such a pass."""
    passes, names, mark = itertools.count(), {}, folder / f"pass {at}"

    def deadly(self, function, heard=None):
        this = next(passes)
        names[this] = name_of(function)
        middle = len(self._parts) // 2

        def dies_once(part):
            if this == at and part.number == middle and not mark.exists():
                mark.touch()
                os.kill(os.getpid(), signal.SIGKILL)
            return function(part)

        return PLAIN_TOTAL(self, dies_once, heard)

    DaskParts.total = deadly
    try:
        model.fit(RowBlocks.from_dask(*rows))
    finally:
        DaskParts.total = PLAIN_TOTAL
    return names.get(at, ""), mark.exists()


def measure_deaths(asked: argparse.Namespace, undisturbed: EDRVFLClassifier) -> None:
    with processes(asked.kill) as cluster, Client(cluster) as client, tempfile.TemporaryDirectory() as folder:
        rows, model = make_rows(asked), make_model(asked)
        for at in itertools.count():
            client.wait_for_workers(asked.kill)
            start = time.perf_counter()
            name, died = fit_with_a_death(model, rows, at, Path(folder))
            if not died:
                return
            seconds = time.perf_counter() - start
            told = difference(undisturbed, model)
            print(f"killed in pass {at + 1:2d}, {name:24s} {seconds:7.2f} s, network {told}", flush=True)


def main() -> None:
    asked = ask()
    # a cluster gives up a worker that is dead so long after a death: here it may be the next death
    dask.config.set({"distributed.deploy.lost-worker-timeout": "1 hour"})
    print(
        f"{asked.variant}, {asked.rows} x {asked.columns}, n {asked.hidden}, {asked.layers} layers, encoder "
        f"{asked.encoder}, {asked.partitions} partitions, {os.cpu_count()} cores",
        flush=True,
    )
    undisturbed = measure_efficiency(asked)
    if asked.kill:
        measure_deaths(asked, undisturbed)


if __name__ == "__main__":  # workers import this file
    main()
