"""Kill a study with SIGKILL at random moments, restart it each time, and compare with one left in peace.

    python benchmarks/kill_study.py [--kills 20] [--trials 120] [--jobs 1] [--seed 0]

Prints whether the records are equal, what the kills hit, and the work done over the work needed (bound
1.3) in two measures: units begun over units; and seconds in units, those that kills took included, over
seconds in units that were kept. With one job also the processor time of all processes over that in
peace, for the record: every restart adds a second or two of imports there, which a longer study does not
feel. Exit status 1 if records differ or a measure of the work is over the bound.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from edrvfl.bench.protocol import RunRecord
from edrvfl.bench.store import Held, Store

BOUND = 1.3
STUDY = (
    "--methods",
    "edrvfl",
    "--datasets",
    "iris",
    "wine",
    "breast_cancer",
    "--trials",
    "20",
    "--seeds",
    "3",
)


def start(store: Path, options: argparse.Namespace, **streams: int) -> subprocess.Popen[bytes]:
    size = ["--trials", str(options.trials), "--jobs", str(options.jobs), "--store", str(store)]
    command = [sys.executable, "-m", "edrvfl.cli", "bench", "run", *STUDY, *size, "--quiet"]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, **streams)


def run_to_the_end(store: Path, options: argparse.Namespace) -> float:
    begin = time.monotonic()
    if start(store, options).wait() != 0:
        sys.exit("a run that was not killed failed")
    return time.monotonic() - begin


def kill_after(delay: float, store: Path, options: argparse.Namespace) -> tuple[str, float]:
    """Start the study and kill it: what was hit, and the seconds of work that were lost."""
    began, process = time.time(), start(store, options, stderr=subprocess.DEVNULL)
    time.sleep(delay)
    if process.poll() is not None:
        sys.exit("the study was over before all kills were done; give it more --trials")
    process.send_signal(signal.SIGKILL)
    process.wait()
    while True:
        now, held = time.time(), held_since(began, store)
        if not any(lease.live for lease in held):  # with more jobs, workers notice within a second or two
            break
        time.sleep(0.1)
    stages = {lease.unit.split("/")[0] for lease in held} or {"no unit"}
    return "+".join(sorted(stages)), sum(now - lease.taken for lease in held)


def held_since(began: float, store: Path) -> list[Held]:
    if not store.exists():
        return []
    with Store(store) as opened:
        return [lease for lease in opened.held() if lease.taken > began]


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
        needed_cpu = children_seconds()
        with Store(peaceful) as store:
            needed = sum(state.seconds for state in store.states())
        idle = whole - needed / options.jobs  # imports and the like, the same for each start
        print(f"in peace: {whole:.1f} s, of which {needed:.1f} s of work and {idle:.1f} s to start")

        hits: Counter[str] = Counter()
        lost = 0.0
        for number in range(1, options.kills + 1):
            # Some die while they start; on the whole the kills spread over the study.
            delay = rng.uniform(0.5 * idle, idle + 1.6 * (whole - idle) / (options.kills + 1))
            hit, seconds = kill_after(delay, killed, options)
            hits[hit] += 1
            lost += seconds
            print(
                f"  kill {number:2d} after {delay:5.2f} s, hit: {hit}, {seconds:.2f} s of work lost",
                flush=True,
            )
        run_to_the_end(killed, options)

        with Store(peaceful) as one, Store(killed) as two:
            expected, found = ([r.without_times() for r in store.records()] for store in (one, two))
            done = sum(state.seconds for state in two.states())
            began = sum(two.attempts().values())
            units = sum(two.counts().values())
        same = expected == found
        verdict = "all equal bit for bit" if same else f"NOT EQUAL in {differences(expected, found)}"
        print(f"{len(found)} records, {verdict}; kills hit {dict(hits)}")
        measures = {"units begun": began / units, "seconds in units": (done + lost) / done}
        for name, ratio in measures.items():
            print(f"{name}: {ratio:.3f} times what was needed (bound {BOUND})")
        if options.jobs == 1:  # the workers of a killed parent are nobody's children to count
            ratio = (children_seconds() - needed_cpu) / needed_cpu
            print(f"processor time, {options.kills + 1} starts included: {ratio:.2f} times that in peace")
        sys.exit(0 if same and max(measures.values()) <= BOUND else 1)


def differences(expected: list[RunRecord], found: list[RunRecord]) -> set[str]:
    pairs = zip(map(dataclasses.asdict, expected), map(dataclasses.asdict, found), strict=False)
    fields = {key for one, two in pairs for key in one if one[key] != two[key]}
    return fields if len(expected) == len(found) else fields | {"number"}


def children_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    main()
