"""Time of the encoding beside scikit-learn's ColumnTransformer of the same columns.

    OPENBLAS_NUM_THREADS=1 python benchmarks/encoding.py

100,000 rows of 20 numbers, five of them with gaps, and 10 columns of category codes, as one matrix. Each
contender is a function that returns the task "fit" and the task "transform", the latter of a fitted
encoder. The shortest of five runs, one thread, one process.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import sys
import time
from collections.abc import Callable

import numpy as np
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

from edrvfl._inputs.encoding import EncoderSettings, learn_inputs

N_NUMBERS, N_CATEGORICAL, N_BINS, REPEATS = 20, 10, 16, 5
NUMBERS = list(range(N_NUMBERS))
CODES = list(range(N_NUMBERS, N_NUMBERS + N_CATEGORICAL))
Tasks = tuple[Callable[[], object], Callable[[], np.ndarray]]


def problem(m: int) -> np.ndarray:
    """Draw numbers, some skewed, some with gaps, and codes of 2 to 100 categories, some with gaps."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((m, N_NUMBERS + N_CATEGORICAL))
    X[:, 5:10] = np.exp(X[:, 5:10])
    for j, q in zip(CODES, [2, 3, 4, 5, 8, 12, 20, 30, 50, 100], strict=True):
        X[:, j] = np.floor(q * rng.random(m) ** 2)
    for j in (0, 4, 8, 12, 16, 22, 26):
        X[rng.random(m) < 0.1, j] = np.nan
    return X


def ours(X: np.ndarray, numbers: str) -> Tasks:
    settings = EncoderSettings(numbers, n_bins=N_BINS)
    categorical = [j in CODES for j in range(X.shape[1])]
    inputs = learn_inputs(X, None, settings, categorical)

    def transform() -> np.ndarray:
        out = np.empty((X.shape[0], inputs.width))
        inputs.write(X, out)
        return out

    return lambda: learn_inputs(X, None, settings, categorical), transform


def column_transformer(X: np.ndarray, numbers: Pipeline) -> Tasks:
    onehot = OneHotEncoder(max_categories=32, min_frequency=2, handle_unknown="ignore", sparse_output=False)
    encoder = ColumnTransformer([("numbers", numbers, NUMBERS), ("categories", onehot, CODES)])
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


def main(m: int = 100_000) -> None:
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
