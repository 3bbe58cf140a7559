"""Time of TabularEncoder beside scikit-learn's ColumnTransformer of the same columns.

    OPENBLAS_NUM_THREADS=1 python benchmarks/encoding.py [--small] [rows]

A pandas frame of 100,000 rows: 20 numbers, five of them with gaps, and 10 columns of text, two of them with
gaps. Each contender is a function that returns the task "fit" and the task "transform", the latter of a
fitted encoder. The shortest of five runs, one thread, one process.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import sys
import time
from collections.abc import Callable

import numpy as np
import pandas as pd
from common import SMALL
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    OneHotEncoder,
    RobustScaler,
    SplineTransformer,
    StandardScaler,
)
from threadpoolctl import threadpool_limits

from edrvfl import TabularEncoder

N_NUMBERS, N_CATEGORICAL, N_BINS, REPEATS = 20, 10, 16, 1 if SMALL else 5
NUMBERS = [f"number{j}" for j in range(N_NUMBERS)]
TEXTS = [f"text{j}" for j in range(N_CATEGORICAL)]
Tasks = tuple[Callable[[], object], Callable[[], np.ndarray]]


def problem(m: int) -> pd.DataFrame:
    """Draw numbers, some skewed, some with gaps, and texts of 2 to 100 categories, some with gaps."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.standard_normal((m, N_NUMBERS)), columns=NUMBERS)
    X[NUMBERS[5:10]] = np.exp(X[NUMBERS[5:10]])
    for name, q in zip(TEXTS, [2, 3, 4, 5, 8, 12, 20, 30, 50, 100], strict=True):
        X[name] = np.array([f"category {i}" for i in range(q)])[(q * rng.random(m) ** 2).astype(int)]
    for name in (*NUMBERS[::4], TEXTS[2], TEXTS[6]):
        X.loc[rng.random(m) < 0.1, name] = None
    return X


def ours(X: pd.DataFrame, numbers: str) -> Tasks:
    encoder = TabularEncoder(numbers, n_bins=N_BINS).fit(X)
    return lambda: encoder.fit(X), lambda: encoder.transform(X)


def column_transformer(X: pd.DataFrame, numbers: Pipeline) -> Tasks:
    onehot = OneHotEncoder(max_categories=32, min_frequency=2, handle_unknown="ignore", sparse_output=False)
    encoder = ColumnTransformer([("numbers", numbers, NUMBERS), ("categories", onehot, TEXTS)])
    encoder.fit(X)
    return lambda: encoder.fit(X), lambda: encoder.transform(X)


def standard_columns() -> Pipeline:
    return make_pipeline(StandardScaler(), SimpleImputer(add_indicator=True))


def robust_columns() -> Pipeline:
    smooth = FunctionTransformer(lambda Z: Z / np.sqrt(1 + (Z / 3) ** 2))
    imputer = SimpleImputer(strategy="median", add_indicator=True)
    return make_pipeline(imputer, RobustScaler(), smooth, StandardScaler())


def bin_columns(bins: SplineTransformer | KBinsDiscretizer) -> Pipeline:
    beside = FeatureUnion([("robust", RobustScaler()), ("bins", bins)])
    return make_pipeline(SimpleImputer(strategy="median"), beside, StandardScaler())


def seconds(task: Callable[[], object]) -> float:
    best = float("inf")
    for _ in range(REPEATS):
        start = time.perf_counter()
        task()
        best = min(best, time.perf_counter() - start)
    return best


def main(m: int = 1_000 if SMALL else 100_000) -> None:
    X = problem(m)
    spline = SplineTransformer(n_knots=N_BINS + 1, degree=1, knots="quantile")
    kbins = KBinsDiscretizer(
        N_BINS, encode="onehot-dense", strategy="quantile", quantile_method="averaged_inverted_cdf"
    )
    rivals = {
        "standard": {"StandardScaler": standard_columns()},
        "robust": {"RobustScaler": robust_columns()},
        "bins": {"SplineTransformer": bin_columns(spline), "KBinsDiscretizer": bin_columns(kbins)},
    }
    print(f"{m:,} x {X.shape[1]}; seconds, and how many times ours")
    for numbers, pipelines in rivals.items():
        fit, transform = ours(X, numbers)
        base = seconds(fit), seconds(transform)
        ours_line = f"fit {base[0]:.3f}        transform {base[1]:.3f}"
        print(f"{numbers:9} {'edrvfl':18} {transform().shape[1]:4} columns  {ours_line}", flush=True)
        for name, pipeline in pipelines.items():
            fit, transform = column_transformer(X, pipeline)
            times = seconds(fit), seconds(transform)
            ratios = [t / b for t, b in zip(times, base, strict=True)]
            print(
                f"{numbers:9} {name:18} {transform().shape[1]:4} columns  "
                f"fit {times[0]:.3f} x{ratios[0]:4.1f}  transform {times[1]:.3f} x{ratios[1]:4.1f}",
                flush=True,
            )


if __name__ == "__main__":
    with threadpool_limits(1):
        main(*map(int, sys.argv[1:]))
