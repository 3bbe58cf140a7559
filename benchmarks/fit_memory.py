"""Peak memory of fit and predict above their input, in units of one m x (n + d) float64 matrix.

    python benchmarks/fit_memory.py

Each measurement runs in a process of its own, resets the kernel's record of the peak resident size, and
reads it after the task (Linux).
"""

import multiprocessing
import re
from pathlib import Path

import numpy as np

from edrvfl import EDRVFLClassifier

M, D, N = 100_000, 30, 500


def resident_bytes(which: str) -> int:
    """VmRSS, the size now, or VmHWM, the largest since the last reset."""
    return 1024 * int(re.search(rf"{which}:\s+(\d+) kB", Path("/proc/self/status").read_text())[1])


def problem(m: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((m, D))
    return X, ((X[:, :3].sum(axis=1) + rng.standard_normal(m)) > 0).astype(int)


def peak_of_fit(queue: multiprocessing.Queue) -> None:
    model = EDRVFLClassifier(n_hidden=N, n_layers=3, random_state=0)
    model.fit(*problem(2000))  # libraries loaded, work space taken
    X, y = problem(M)
    queue.put(peak(lambda: model.fit(X, y)))


def peak_of_predict(queue: multiprocessing.Queue, m: int) -> None:
    model = EDRVFLClassifier(n_hidden=N, n_layers=3, random_state=0).fit(*problem(2000))
    X, _ = problem(m)
    queue.put(peak(lambda: model.predict_proba(X)))


def peak(task) -> int:
    Path("/proc/self/clear_refs").write_text("5")
    before = resident_bytes("VmRSS")
    task()
    return resident_bytes("VmHWM") - before


def measured(task, *args) -> int:
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    process = context.Process(target=task, args=(queue, *args))
    process.start()
    value = queue.get()
    process.join()
    return value


if __name__ == "__main__":
    unit, mib = M * (N + D) * 8, 2**20
    above = measured(peak_of_fit)
    print(
        f"fit {M} x {D}, n {N}: {above / mib:.0f} MiB above its input, "
        f"{above / unit:.2f} matrices (limit 1.6)"
    )
    for m in (M, 2 * M, 4 * M):
        above, answer = measured(peak_of_predict, m), m * 2 * 8
        print(
            f"predict_proba of {m} rows: {above / mib:.1f} MiB above its input, of which its answer "
            f"{answer / mib:.1f} MiB"
        )
