"""Studies made up for the tests of the report: results, curves, sensitivity, timing."""

import zlib
from functools import cache

import numpy as np
import pandas as pd

from edrvfl.bench import paper
from edrvfl.bench.comparison import critical_difference
from edrvfl.bench.defaults import Defaults
from edrvfl.bench.record import Choice, DefaultsRecord, SensitivityRecord, TimingRecord
from edrvfl.bench.report.sections import make_page
from edrvfl.bench.report.study import Result, Study
from edrvfl.bench.report.summary import summarise
from edrvfl.bench.sensitivity import Sensitivity
from edrvfl.bench.timing import Timing

TUNED = {"XGBoost": 3.0, "LightGBM": 1.5}  # points above WPedRVFL
FAMILY, DATASETS = tuple(paper.accuracies())[7:], tuple(paper.accuracies().index)
# What HTML, Markdown, LaTeX, matplotlib or str.format might take for their own; longer than a label may be.
HOSTILE = "<script>alert(1)</script>|$x_1$ & {rank} \\end{document} `*_[a](b)\n\"'\x07" + "long " * 20


def a_result(
    method, dataset, accuracy=80.0, *, status="ok", message=None, configurations=10, seeds=2, noise=0.3
):
    """A result whose accuracies differ a little from dataset to dataset, the same in every process."""
    rng = np.random.default_rng(zlib.crc32(f"{method} {dataset}".encode()))
    accuracy = accuracy + noise * rng.normal()

    def scored(accuracy):
        half = 0 if seeds == 1 else 0.25 / 2**0.5  # so that the standard deviation is 0.25
        accuracies = tuple((accuracy + sign * half) / 100 for sign in (1, -1)[:seeds])
        fours = {"configuration": (0,) * 4, "parameters": ({},) * 4, "validation_accuracy": (0.5,) * 4}
        tables = {"test_accuracy": accuracies, "balanced_accuracy": [a - 0.01 for a in accuracies]}
        tables |= {name: (0.5,) * seeds for name in ("log_loss", "fit_seconds", "predict_seconds")}
        return Choice(**fours, depth=(3,) * 4, **{name: (tuple(row),) * 4 for name, row in tables.items()})

    ok = status == "ok"
    return Result(
        dataset,
        method,
        status,
        message,
        configurations,
        seeds,
        scored={"paper": scored(accuracy), "strict": scored(accuracy - 0.2)} if ok else {},
        search_seconds=2.0 if ok else None,
        finished="2024-01-01T10:00:00+00:00",
        checksum="ab" * 32,
        origins={"numpy": "2.0", "commit": "unknown"},
        key=f"{method} {dataset} {configurations}",
    )


def some_results(methods=FAMILY, datasets=DATASETS):
    """The paper's accuracies less one point."""
    printed = paper.accuracies()
    return [a_result(m, d, printed.loc[d, m] - 1) for d in datasets for m in methods]


def some_curves(methods=FAMILY, datasets=DATASETS):
    return {(d, m): (80.0, 82.0, 83.0) for d in datasets for m in methods}


MADE = {"key": "k", "status": "ok", "message": None, "finished": None, "versions": {}, "commit": None}


def a_point(dataset, activation, table, settings={"n_hidden": 500}, **varied):  # noqa: B006
    """A record of omega_r or of p, the other one neutral."""
    values = {"correct_weight": 1.0, "prune_rate": 0.0, **varied}
    what = {"dataset": dataset, "activation": activation, "method": "WPedRVFL", "settings": settings}
    return SensitivityRecord(
        **MADE, **what, **values, seeds=len(table[0]), test_accuracy=table, train_accuracy=99.0
    )


def a_time(dataset, method, *seconds):
    how = {"warmups": 1, "repeats": 3, "threads": 1, "blas": ("openblas 0.3",), "processor": "a processor"}
    what = {"dataset": dataset, "method": method, "parameters": f"{method}()", "rows": 10, "features": 3}
    return TimingRecord(**MADE, **what, **how, seconds=seconds)


def a_sensitivity():
    # the point that is neutral in both is one record
    values = [{"correct_weight": v} for v in (1.0, 0.6, 0.2)] + [{"prune_rate": v} for v in (0.4, 0.8)]
    return Sensitivity(
        tuple(
            a_point(d, a, ((90 + value, 91 + value),) * 4, **{name: value})
            for d in ("arrhythmia", "waveform-noise")
            for a in ("relu", "sigmoid")
            for varied in values
            for name, value in varied.items()
        )
    )


def a_timing():
    times = (("SNN", 2.0), ("WPedRVFL", 0.1))
    return Timing(tuple(a_time(d, m, s, 2 * s, s) for d in ("contrac", "glass") for m, s in times))


def whole_study():
    return Study(tuple(some_results()), some_curves(), a_sensitivity(), a_timing())


def a_default(dataset, method, accuracy=0.8, *, loss=0.5, seconds=1.0, status="ok"):
    """A record of a method as it comes; its two seeds differ by 0.02 in everything."""
    ok = status == "ok"

    def rows(value, half=0.01):
        return ((value - half, value + half),) * 4 if ok else ()

    return DefaultsRecord(
        key=f"{dataset} {method}",
        dataset=dataset,
        method=method,
        status=status,
        message=None if ok else "it broke",
        finished="2024-01-01T10:00:00+00:00",
        versions={},
        commit=None,
        checksum="c",
        settings={},
        seeds=2,
        test_accuracy=rows(accuracy),
        balanced_accuracy=rows(accuracy),
        log_loss=rows(loss),
        calibration_error=rows(loss / 10),
        fit_seconds=rows(seconds),
        predict_seconds=rows(0.1),
        processor="a processor",
    )


def full_study():
    """All the paper's methods, two tuned peers, and three methods as they come, on all datasets."""
    printed = paper.accuracies()
    results = some_results(tuple(printed))
    results += [
        a_result(m, d, printed.loc[d, "WPedRVFL"] + gap) for d in DATASETS for m, gap in TUNED.items()
    ]
    defaults = [
        a_default(d, m, (printed.loc[d, "WPedRVFL"] + gap) / 100, loss=loss)
        for d in DATASETS
        for m, gap, loss in (
            ("edRVFL portfolio", 2.0, 0.3),
            ("LightGBM", 1.0, 0.4),
            ("HistGradientBoosting", -3.0, 0.5),
        )
    ]
    return Study(tuple(results), some_curves(), a_sensitivity(), a_timing(), Defaults.of(defaults))


# Read-only, so that the tests of one process share them, and each page its drawings.


whole_summary = cache(lambda: summarise(whole_study()))
whole_page = cache(lambda: make_page(whole_summary()))
full_summary = cache(lambda: summarise(full_study()))
full_page = cache(lambda: make_page(full_summary()))


def hostile_study():
    results = [a_result(m, d) for m in (HOSTILE, "b") for d in (HOSTILE, "iris", "wine")]
    results.append(a_result("b", "digits", status="failed", message=HOSTILE))
    return Study(tuple(results), some_curves((HOSTILE, "b"), (HOSTILE, "iris")))


FAILED = a_result("a", "iris", status="failed", message="MemoryError")
# Studies with little or nothing in them. Every one of them must have a report.
SMALL_STUDIES = {
    "none": [],
    "one cell": [a_result("a", "iris")],
    "one dataset": some_results(datasets=["glass"]),
    "one method": some_results(methods=["PedRVFL"], datasets=DATASETS[:4]),
    "one seed": [a_result(m, d, seeds=1) for m in "ab" for d in ("iris", "wine")],
    "some failed": [FAILED, a_result("b", "iris")],
    "all failed": [FAILED],
    "nothing in common": [a_result("a", "iris"), a_result("b", "wine")],
    "two methods, two datasets": [a_result(m, d) for m in "ab" for d in ("iris", "wine")],
    "all equal": [a_result(m, d, noise=0) for m in "abc" for d in ("iris", "wine", "digits")],
    "nothing begun": [Result("iris", "a", "missing", "0 of at most 26 units done", 10, 2)],
}


def summary_of(*results, defaults=()):
    return summarise(Study(results, defaults=Defaults.of(defaults)))


def page_of(results):
    return make_page(summarise(Study(tuple(results))))


def grids(page):
    return {grid.key: grid for section in page.sections for grid in section.grids}


def cells(grid):
    """A grid's cells by row heading and column."""
    return {row.head: dict(zip(grid.columns[1:], row.cells, strict=True)) for row in grid.rows}


def texts(rows):
    """The texts of rows, of the body or the foot of a grid, by their heading."""
    return {row.head: [cell.text for cell in row.cells] for row in rows}


def ranks_table():
    """The table of the critical-difference figure, for the paper's Table 3."""
    cd = critical_difference(paper.accuracies())
    table = pd.DataFrame(
        {"method": cd.methods, "average_rank": cd.ranks, "critical_difference": cd.difference}
    )
    return pd.concat([table, cd.p_values.reset_index(drop=True)], axis="columns")
