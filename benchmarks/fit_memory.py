"""Peak memory of fit and predict above their input.

    OPENBLAS_NUM_THREADS=1 python benchmarks/fit_memory.py [--small] [network] [portfolio]

Of a network, the default, in units of one m x (n + d) float64 matrix. Of a portfolio in multiples of the
data, and of the largest feature matrix of a member: the kernel voter's systems take most of it, at 5,000 rows
a part four matrices of 5,000 x 5,000 in float32, 400 MB whatever the number of rows; beside them a network
holds one matrix of n_samples x (512 + encoded columns + 1).

Each measurement runs in a process of its own, resets the kernel's record of the peak resident size, and
reads it after the task (Linux).
"""

import multiprocessing
import queue
import re
import sys
from pathlib import Path

import numpy as np
from common import SMALL

from edrvfl import EDRVFLClassifier, EDRVFLPortfolioClassifier

D, N, MIB = 30, 500, 2**20


def resident_bytes(which: str) -> int:
    """VmRSS, the size now, or VmHWM, the largest since the last reset."""
    return 1024 * int(re.search(rf"{which}:\s+(\d+) kB", Path("/proc/self/status").read_text())[1])


def problem(m: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((m, D))
    return X, ((X[:, :3].sum(axis=1) + rng.standard_normal(m)) > 0).astype(int)


def make(kind: str) -> EDRVFLClassifier | EDRVFLPortfolioClassifier:
    if kind == "network":
        return EDRVFLClassifier(n_hidden=N, n_layers=3, random_state=0)
    return EDRVFLPortfolioClassifier(random_state=0)


def peak_of_fit(answer: multiprocessing.Queue, kind: str, m: int) -> None:
    make(kind).fit(*problem(300))  # libraries loaded, work space taken
    model, (X, y) = make(kind), problem(m)
    answer.put(peak(lambda: model.fit(X, y)))


def peak_of_predict(answer: multiprocessing.Queue, kind: str, m: int) -> None:
    model = make(kind).fit(*problem(300 if m < 2000 else 2000))
    X, _ = problem(m)
    answer.put(peak(lambda: model.predict_proba(X)))


def peak(task) -> int:
    Path("/proc/self/clear_refs").write_text("5")
    before = resident_bytes("VmRSS")
    task()
    return resident_bytes("VmHWM") - before


def measured(task, *args) -> int:
    """Run a task in a process of its own, or, if it is to be quick, in this one."""
    if SMALL:
        answer = queue.SimpleQueue()
        task(answer, *args)
        return answer.get()
    context = multiprocessing.get_context("spawn")
    answer = context.Queue()
    process = context.Process(target=task, args=(answer, *args))
    process.start()
    value = answer.get()
    process.join()
    return value


def of_network() -> None:
    m = 1_000 if SMALL else 100_000
    above = measured(peak_of_fit, "network", m)
    matrices = above / (m * (N + D) * 8)
    print(f"fit {m} x {D}, n {N}: {above / MIB:.0f} MiB above its input, {matrices:.2f} matrices (limit 1.6)")
    for rows in () if SMALL else (m, 2 * m, 4 * m):
        above, answer = measured(peak_of_predict, "network", rows), rows * 2 * 8
        print(
            f"predict_proba of {rows} rows: {above / MIB:.1f} MiB above its input, of which its answer "
            f"{answer / MIB:.1f} MiB"
        )


def of_portfolio() -> None:
    for m in () if SMALL else (1_000, 5_000, 20_000, 100_000):
        data = m * D * 8
        widest = m * (512 + 17 * D + 1) * 8  # the largest feature matrix of a network, with 16 bins
        used = measured(peak_of_fit, "portfolio", m)
        print(
            f"fit {m:7d} x {D}: {used / MIB:7.0f} MiB = {used / data:6.1f} times the data, "
            f"{used / widest:5.2f} times the largest feature matrix",
            flush=True,
        )
    # 0 where the memory that the fit had freed is enough
    for m in (500,) if SMALL else (50_000, 200_000):
        used = measured(peak_of_predict, "portfolio", m)
        print(f"predict_proba of {m:7d} rows: {used / MIB:6.0f} MiB more", flush=True)


if __name__ == "__main__":
    for kind in sys.argv[1:] or (("network", "portfolio") if SMALL else ("network",)):
        {"network": of_network, "portfolio": of_portfolio}[kind]()
