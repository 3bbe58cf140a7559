"""Fit, predict, memory and accuracy as the rows grow, beside HistGradientBoosting and LightGBM.

    [OMP_NUM_THREADS=2] python benchmarks/rows.py [--small] [--most 1000000] [--repeats 3] [--seed 0]
        [--shapes] [--figure docs/rows.png] [--portfolio]

All methods have one thread, or as many as OMP_NUM_THREADS says.

`make_classification(rows, 20, n_informative=10, random_state=seed)`, three quarters of it to train, for 1,000
to --most rows. Every method is at its defaults. Each fit has a process of its own, whose peak memory is
measured above what the rows and the libraries take (Linux); a small table is fitted before. Times are the
best of the repeats; a fit of more than a minute is not repeated. Ratios are those to HistGradientBoosting.

--shapes adds networks of other widths and depths, up to 100,000 rows: the curve from which the default takes
its shape. The figure shows accuracy by fit time, a panel for each number of rows. --portfolio measures the
portfolio with each effort, and CatBoost, in place of the network, and draws nothing.

Limits at 100,000 rows and seed 0: the default takes at most 6 times as long to fit as HistGradientBoosting,
and has an accuracy of 0.925 or more.
"""

import os

THREADS = int(os.environ.setdefault("OMP_NUM_THREADS", "1"))  # before NumPy is imported
os.environ["OPENBLAS_NUM_THREADS"] = os.environ["MKL_NUM_THREADS"] = str(THREADS)

import argparse
import multiprocessing
import re
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from common import SMALL
from sklearn.datasets import make_classification
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import train_test_split

from edrvfl import EDRVFLClassifier, EDRVFLPortfolioClassifier
from edrvfl.bench.methods import CONTENDERS, METHODS

mpl.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.ticker import NullFormatter

ROWS = (600,) if SMALL else (1_000, 10_000, 100_000, 1_000_000)
MOST_OF_SHAPES = 100_000
LONG = 60.0  # seconds; a fit that takes longer is not repeated
OURS, REFERENCE, LIGHT = "edRVFL default", "HistGradientBoosting", "LightGBM"
OF_THREADS = {LIGHT: "n_jobs", "CatBoost": "estimator__thread_count"}  # the parameter that says how many
PAPER = "512 x 10, the paper's"
LINES = {
    "one layer": [(n, 1, "gradient") for n in (256, 512, 1024)],
    "two layers": [(n, 2, "gradient") for n in (256, 512, 896, 1280)],
    "four layers": [(n, 4, "gradient") for n in (256, 512, 768)],
    "two layers, inputs not scaled": [(n, 2, None) for n in (256, 512, 896, 1280)],
    PAPER: [(512, 10, None)],
}
LINE_COLOURS = ("0.75", "0.1", "0.5", "#cc79a7", "0.0")
COLOURS = {OURS: "#d55e00", REFERENCE: "#0072b2", LIGHT: "#009e73"}


@dataclass(frozen=True)
class Result:
    """What one method did on one number of rows."""

    rows: int
    method: str
    fit_seconds: float
    predict_seconds: float
    mebibytes: float
    accuracy: float
    log_loss: float


# --- measuring ---------------------------------------------------------------------------------------


def shape_name(n: int, layers: int, scaling: str | None) -> str:
    return f"{n} x {layers}{'' if scaling else ', not scaled'}"


def make_network(shape: tuple[int, int, str | None]) -> EDRVFLClassifier:
    n, layers, scaling = shape
    return EDRVFLClassifier(n_hidden=n, n_layers=layers, input_scaling=scaling, random_state=0)


def make_peer(name: str) -> Any:
    contender = CONTENDERS["classification"][name].estimator(random_state=0)
    return contender.set_params(**{OF_THREADS[name]: THREADS})


def methods(portfolio: bool) -> dict[str, Callable[[], Any]]:
    found: dict[str, Callable[[], Any]] = {
        REFERENCE: partial(HistGradientBoostingClassifier, random_state=0),
        OURS: partial(EDRVFLClassifier, random_state=0),
    }
    if portfolio:
        del found[OURS]
        for effort in ("usual", "quick"):
            found[f"portfolio, {effort}"] = partial(EDRVFLPortfolioClassifier, effort=effort, random_state=0)
    for name in OF_THREADS if portfolio else (LIGHT,):
        if (message := METHODS[name].missing()) is None:
            found[name] = partial(make_peer, name)
        else:
            print(f"SKIPPED {message}")
    return found


def resident_bytes(which: str) -> int:
    """VmRSS, the size now, or VmHWM, the largest since the last reset."""
    return 1024 * int(re.search(rf"{which}:\s+(\d+) kB", Path("/proc/self/status").read_text())[1])


def seconds_of(task: Callable[[], object]) -> float:
    start = time.perf_counter()
    task()
    return time.perf_counter() - start


def measure(make: Callable[[], Any], rows: int, seed: int, repeats: int) -> tuple[float, ...]:
    """Return fit and predict seconds, the peak memory of the first fit, accuracy and log-loss."""
    X, y = make_classification(rows, 20, n_informative=10, random_state=seed)
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.25, random_state=0)
    make().fit(X[:500], y[:500]).predict_proba(X[:500])  # libraries are loaded, work space is taken
    Path("/proc/self/clear_refs").write_text("5")
    before, model, fits = resident_bytes("VmRSS"), make(), list[float]()
    fits.append(seconds_of(lambda: model.fit(X, y)))
    peak = resident_bytes("VmHWM") - before
    while len(fits) < repeats and max(fits) < LONG:
        fits.append(seconds_of(lambda: make().fit(X, y)))
    asked = min(seconds_of(lambda: model.predict_proba(X_test)) for _ in range(repeats))
    P = model.predict_proba(X_test)
    nats = -np.log(np.clip(P[np.arange(len(y_test)), y_test], 1e-15, None)).mean()
    return min(fits), asked, peak / 2**20, float(np.mean(P.argmax(axis=1) == y_test)), float(nats)


def measured(method: str, make: Callable[[], Any], rows: int, seed: int, repeats: int) -> Result:
    """Measure in a process of its own, or, if it is to be quick, in this one."""
    if SMALL:
        return Result(rows, method, *measure(make, rows, seed, repeats))
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        figures = pool.submit(measure, make, rows, seed, repeats).result()
    return Result(rows, method, *figures)


# --- showing -----------------------------------------------------------------------------------------

HEADER = (
    f"{'rows':>9s}  {'method':<26s}{'fit s':>9s}{'ratio':>8s}{'predict s':>11s}{'ratio':>8s}"
    f"{'MiB':>9s}{'ratio':>8s}{'accuracy':>10s}{'log-loss':>10s}"
)


def line(r: Result, of: Result) -> str:
    return (
        f"{r.rows:9d}  {r.method:<26s}{r.fit_seconds:9.2f}{r.fit_seconds / of.fit_seconds:7.2f}x"
        f"{r.predict_seconds:11.3f}{r.predict_seconds / of.predict_seconds:7.2f}x"
        f"{r.mebibytes:9.0f}{r.mebibytes / max(of.mebibytes, 1):7.2f}x{r.accuracy:10.4f}{r.log_loss:10.4f}"
    )


def draw(results: list[Result], file: Path) -> None:
    """Plot accuracy by fit time, a panel for each number of rows; a line is a depth with several widths."""
    sizes = sorted({r.rows for r in results})
    figure, axes = plt.subplots(1, len(sizes), figsize=(3.6 * len(sizes), 4.2), squeeze=False)
    for axis, rows in zip(axes[0], sizes, strict=True):
        here = {r.method: r for r in results if r.rows == rows}
        for colour, (label, shapes) in zip(LINE_COLOURS, LINES.items(), strict=True):
            points = [here[name] for shape in shapes if (name := shape_name(*shape)) in here]
            if points:
                x, y = [p.fit_seconds for p in points], [100 * p.accuracy for p in points]
                axis.plot(x, y, "x" if label == PAPER else ".-", color=colour, linewidth=1, label=label)
        for method, colour in COLOURS.items():
            if method in here:
                r, marker = here[method], "*" if method == OURS else "o"
                size = 140 if method == OURS else 45
                axis.scatter(
                    r.fit_seconds, 100 * r.accuracy, size, colour, marker=marker, label=method, zorder=3
                )
        axis.axvline(6 * here[REFERENCE].fit_seconds, color="0.6", linewidth=0.8, linestyle=(0, (4, 3)))
        axis.set(title=f"{rows:,} rows", xscale="log", xlabel="fit time (s)")
        axis.xaxis.set_minor_formatter(NullFormatter())  # in a narrow range labels would collide
        axis.grid(alpha=0.25)
        axis.spines[["top", "right"]].set_visible(False)
    axes[0, 0].set_ylabel("test accuracy (%)")
    pairs = [zip(*axis.get_legend_handles_labels(), strict=True) for axis in axes[0]]
    labels = {label: handle for pair in pairs for handle, label in pair}
    figure.legend(labels.values(), labels, loc="lower center", ncols=4, frameon=False, fontsize=9)
    figure.suptitle("One thread. Dashed: six times the fit of HistGradientBoosting", fontsize=11)
    figure.tight_layout(rect=(0, 0.13, 1, 1))
    figure.savefig(file, dpi=130)
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--most", type=int, default=ROWS[-1])
    parser.add_argument("--repeats", type=int, default=1 if SMALL else 3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--shapes", action="store_true")
    folder = Path(tempfile.mkdtemp()) if SMALL else Path(__file__).parents[1] / "docs"
    parser.add_argument("--figure", type=Path, default=folder / "rows.png")
    parser.add_argument("--portfolio", action="store_true")
    arguments = parser.parse_args()
    found, results = methods(arguments.portfolio), list[Result]()
    if SMALL:
        del found[LIGHT]  # a process less
    shapes = {shape_name(*shape): partial(make_network, shape) for row in LINES.values() for shape in row}
    print(HEADER)
    for rows in (rows for rows in ROWS if rows <= arguments.most):
        reference = measured(REFERENCE, found[REFERENCE], rows, arguments.seed, arguments.repeats)
        results.append(reference)
        print(line(reference, reference), flush=True)
        others = found | (shapes if arguments.shapes and rows <= MOST_OF_SHAPES else {})
        for method, make in others.items():
            if method != REFERENCE:
                results.append(measured(method, make, rows, arguments.seed, arguments.repeats))
                print(line(results[-1], reference), flush=True)
    if not arguments.portfolio:
        draw(results, arguments.figure)
        print(f"figure: {arguments.figure}")


if __name__ == "__main__":
    main()
