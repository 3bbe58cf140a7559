"""What the regressors cost: seconds to fit and to answer on the group `values`, all on one thread.

    OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 python benchmarks/values_cost.py [dataset ...]

Every method at its defaults on the training rows of the first split, one after the other in one process with
nothing else running; answers are for its test rows. One fit each, after one fit of a small table that is not
counted. Nothing is scored. Prints seconds, and the geometric mean of the portfolio's time over that of each.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy is imported
os.environ.setdefault("OMP_NUM_THREADS", "1")

import sys
import time
from typing import Any

import numpy as np
import pandas as pd
from sklearn.datasets import load_diabetes
from threadpoolctl import threadpool_limits

from edrvfl.bench.data import VALUES, load_frame
from edrvfl.bench.methods import CONTENDERS

PORTFOLIO = "edRVFL portfolio"
REGRESSORS = CONTENDERS["regression"]
THREADS = {"RandomForest": "n_jobs", "LightGBM": "n_jobs", "XGBoost": "n_jobs", "CatBoost": "thread_count"}


def make_model(method: str, params: dict[str, Any]) -> Any:
    more = {THREADS[method]: 1} if method in THREADS else {}
    model = REGRESSORS[method].estimator(random_state=0, **params)
    return model.set_params(**{name: value for name, value in more.items() if name in model.get_params()})


def seconds(task: Any) -> float:
    start = time.perf_counter()
    task()
    return time.perf_counter() - start


def measure(method: str, dataset: Any) -> tuple[float, float]:
    """Return the seconds of a fit and of its answers."""
    part = dataset.splits[0]
    y = np.asarray(dataset.y)[part.train]
    X, asked, params = REGRESSORS[method].prepare(dataset.X[part.train], dataset.X[part.test])
    model = make_model(method, params)
    fit = seconds(lambda: model.fit(X, y))
    return fit, seconds(lambda: model.predict(asked))


def main() -> None:
    small, fits, answers = load_diabetes(return_X_y=True), {}, {}
    for method in REGRESSORS:
        make_model(method, {}).fit(*small).predict(small[0])
    for name in sys.argv[1:] or VALUES:
        dataset = load_frame(name)
        found = {method: measure(method, dataset) for method in REGRESSORS}
        fits[name] = {method: fit for method, (fit, _) in found.items()}
        answers[name] = {method: answer for method, (_, answer) in found.items()}
        print(name, {method: round(fit, 2) for method, fit in fits[name].items()}, flush=True)
    for what, table in (("fit", pd.DataFrame(fits).T), ("answer", pd.DataFrame(answers).T)):
        print(f"\nSeconds to {what}\n{table.round(3).to_string()}")
        over = np.exp(np.log(table.rdiv(table[PORTFOLIO], axis=0)).mean())
        print(f"the portfolio over the others, geometric mean: {over.round(2).to_dict()}")


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
