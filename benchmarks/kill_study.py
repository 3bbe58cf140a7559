"""Kill a study with SIGKILL at random moments, restart it each time, and compare with one left in peace.

    python benchmarks/kill_study.py [--kills 20] [--trials 120] [--jobs 1] [--seed 0]

Prints whether the records are equal bit for bit, and the seconds in units over the seconds that were needed
(bound 1.3). The seconds of units that a kill cut off are unknown, so every second between the last stored
unit and the kill counts as lost, for each job; if no unit was stored, every second beyond the usual start.
Exit status 1 if records differ or the bound is broken.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

from edrvfl.bench.record import RunRecord, same_records
from edrvfl.bench.store import Store

BOUND = 1.3
POLL_SECONDS = 0.02
STUDY = ("--methods", "edrvfl", "--datasets", "iris", "wine", "breast_cancer", "--seeds", "3")


def start(store: Path, options: argparse.Namespace, **streams: int) -> subprocess.Popen[bytes]:
    size = ["--trials", str(options.trials), "--jobs", str(options.jobs), "--store", str(store)]
    command = [sys.executable, "-m", "edrvfl.cli", "bench", "run", *STUDY, *size, "--quiet"]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, **streams)


def run_to_the_end(store: Path, options: argparse.Namespace) -> float:
    begin = time.monotonic()
    if start(store, options).wait() != 0:
        sys.exit("a run that was not killed failed")
    return time.monotonic() - begin


def kill_after(delay: float, idle: float, store: Path, options: argparse.Namespace) -> tuple[int, float]:
    """Start the study and kill it; return the units it finished and the seconds of work that were lost."""
    process, began = start(store, options, stderr=subprocess.DEVNULL), time.monotonic()
    before = found = count_units(store)
    since = began + idle  # from when on the work in flight will be lost
    while time.monotonic() < began + delay:
        if process.poll() is not None:
            sys.exit("the study was over before all kills were done; give it more --trials")
        now = count_units(store)
        if now != found:
            found, since = now, time.monotonic()
        time.sleep(POLL_SECONDS)
    process.send_signal(signal.SIGKILL)
    process.wait()
    lost = max(0.0, time.monotonic() - since)
    return count_units(store) - before, lost * options.jobs


def count_units(store: Path) -> int:
    """Count the stored units; others may read while the study runs."""
    if not store.exists() or not store.stat().st_size:
        return 0
    with Store(store, create=False) as opened:
        return sum(opened.counts().values())


def seconds_of(store: Path) -> float:
    with Store(store, create=False) as opened:
        return sum(state.seconds for state in opened.states())


def differences(expected: Iterable[RunRecord], found: Iterable[RunRecord]) -> list[str]:
    pairs = zip(expected, found, strict=True)
    return [f"{a.method} on {a.dataset}" for a, b in pairs if not same_records(a, b, tolerance=0)]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--trials", type=int, default=120)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rng = random.Random(options.seed)

    with tempfile.TemporaryDirectory() as folder:
        peaceful, killed = Path(folder) / "peaceful.db", Path(folder) / "killed.db"
        whole = run_to_the_end(peaceful, options)
        needed = seconds_of(peaceful)
        idle = whole - needed / options.jobs  # imports and the like, the same for each start
        print(f"in peace: {whole:.1f} s, of which {needed:.1f} s of work and {idle:.1f} s to start")

        total = 0.0
        for number in range(1, options.kills + 1):
            # Some die while they start; on the whole the kills spread over the study.
            delay = rng.uniform(0.5 * idle, idle + 1.6 * (whole - idle) / (options.kills + 1))
            units, lost = kill_after(delay, idle, killed, options)
            total += lost
            what = f"{units:3d} units kept, {lost:.2f} s of work lost"
            print(f"  kill {number:2d} after {delay:5.2f} s: {what}", flush=True)
        run_to_the_end(killed, options)

        with Store(peaceful) as one, Store(killed) as two:
            expected, found = one.records(), two.records()
        different = differences(expected, found)
        verdict = f"NOT EQUAL: {', '.join(different)}" if different else "all equal bit for bit"
        print(f"{len(found)} records, {verdict}")
        done = seconds_of(killed)
        ratio = (done + total) / done
        print(f"seconds in units: {ratio:.3f} times what was needed (bound {BOUND})")
        sys.exit(1 if different or ratio > BOUND else 0)


if __name__ == "__main__":
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    main()
