"""How far ONNX models in onnxruntime are from the estimators, how large they are, and how fast they answer.

    OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 python benchmarks/onnx_export.py [--small]
        [agreement] [times]

Agreement: fitted on one half of the rows, asked for the other half, whose values float32 holds exactly. The
largest difference of a probability, or of a value in units of its standard deviation, over all rows and
datasets: iris, wine and breast cancer, for regressors diabetes, for frames a made-up one with text,
categories, gaps and values never seen. Labels are counted where they differ although the two largest
probabilities are further apart than the bound. A kernel voter of more than 1,000 rows computes in float32
itself: there the model is also compared with the same records in float64.

Times: one row, and 10,000 rows in one call (kernels in calls of 1,000), on one thread, the best of several.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy is imported
os.environ.setdefault("OMP_NUM_THREADS", "1")

import copy
import dataclasses
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from common import SMALL, need
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, load_wine

need("onnx", "onnxruntime")
sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import onnxruntime
from runtime import TOLERANCE, feeds_of, session

from edrvfl import (
    EDRVFLClassifier,
    EDRVFLPortfolioClassifier,
    EDRVFLPortfolioRegressor,
    EDRVFLRegressor,
    KernelRidgeClassifier,
    KernelRidgeRegressor,
    TabularEncoder,
    to_onnx,
    variant,
)

VARIANTS = ("RVFL", "edRVFL_O", "edRVFL_N", "dRVFL", "WedRVFL", "PedRVFL", "WPedRVFL")
ENCODERS = ("standard", "robust", "bins", None)
if SMALL:
    VARIANTS, ENCODERS = ("WPedRVFL",), ("bins",)


def compare(model: Any, X: Any, dtype: str, truth: Any = None) -> tuple[float, int, float]:
    """Return the largest difference, how many labels differ without need, and the size in MB."""
    proto = to_onnx(model, dtype=dtype)
    *labels, found = session(proto).run(None, feeds_of(proto, X))
    truth = model if truth is None else truth
    if not labels:
        values = truth.predict(X)
        return float(np.max(np.abs(found - values) / values.std(axis=0))), 0, proto.ByteSize() / 1e6
    P = truth.predict_proba(X)
    first, second = np.sort(P, axis=1)[:, :-3:-1].T
    differ = (labels[0] != truth.predict(X)) & (first - second > TOLERANCE[dtype])
    return float(np.max(np.abs(found - P))), int(differ.sum()), proto.ByteSize() / 1e6


def datasets() -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Return training rows, labels, and rows to be asked for."""
    found = []
    for load in (load_iris,) if SMALL else (load_iris, load_wine, load_breast_cancer):
        X, y = load(return_X_y=True)
        X = X.astype(np.float32).astype(float)
        found.append((X[::2], y[::2], X[1::2]))
    return found


def frame(rng: np.random.Generator, m: int, new: bool = False) -> pd.DataFrame:
    X = pd.DataFrame(
        {
            "town": rng.choice(["a", "b", "c", "never" if new else "once"], m, p=[0.5, 0.3, 0.18, 0.02]),
            "age": rng.normal(40, 10, m).astype(np.float32),
            "income": np.exp(rng.normal(10, 1, m)).astype(np.float32),
            "member": rng.random(m) < 0.5,
            "grade": pd.Categorical(rng.choice([1.5, 2.0, 7.0 if new else 3.0], m)),
            "rooms": rng.integers(0, 5, m),
        }
    )
    for name in ("town", "age", "grade", *(("income",) if new else ())):
        X.loc[rng.random(m) < 0.1, name] = None
    return X


def frames() -> tuple[pd.DataFrame, np.ndarray, pd.DataFrame]:
    rng = np.random.default_rng(0)
    X, new = frame(rng, 600), frame(rng, 300, new=True)
    y = X["age"].fillna(40) + 8 * (X["town"] == "a") + 3 * X["rooms"] + rng.normal(0, 5, 600)
    return X, y.to_numpy(), new


def in_double(model: Any) -> Any:
    """Return a kernel voter with its records in float64."""
    exact, voter = copy.copy(model), model.model_.voter
    doubled = {name: getattr(voter, name).astype(float) for name in ("landmarks", "alpha")}
    exact.model_ = dataclasses.replace(model.model_, voter=dataclasses.replace(voter, **doubled))
    return exact


def report(what: str, cases: list[tuple[Any, Any]], truths: list[Any] | None = None) -> None:
    """Print a line of the table: the worst of several fitted models."""
    line = f"{what:60}"
    for dtype in TOLERANCE:
        found = [
            compare(m, X, dtype, t) for (m, X), t in zip(cases, truths or [None] * len(cases), strict=True)
        ]
        worst, labels, size = (max(column) for column in zip(*found, strict=True))
        verdict = " " if worst < TOLERANCE[dtype] and not labels else "!"
        line += f"  {worst:8.1e}{verdict} {labels:3d} {size:6.1f} MB"
    print(line, flush=True)


def agreement() -> None:
    print(f"{'':60}  float32  labels  size    float64  labels  size")
    for name in VARIANTS:
        for encoder in ENCODERS:
            models = [variant(name, calibration="loo", encoder=encoder, random_state=0) for _ in datasets()]
            cases = [(m.fit(X, y), new) for m, (X, y, new) in zip(models, datasets(), strict=True)]
            report(f"{name}, encoder={encoder!r}", cases)
    if SMALL:
        return
    options: list[dict[str, Any]] = [
        {"activation": a} for a in ("selu", "sigmoid", "tanh", "sin", "radbas", "swish")
    ]
    options += [{"calibration": c} for c in (None, "temperature")]
    options += [{"ensemble": e} for e in ("mean", "vote")]
    options += [{"layer_votes": v} for v in ("prefix", "weighted")]
    options += [{"input_scaling": "gradient"}, {"pair_share": 0.5}, {"regularization": "loo"}]
    for option in options:
        cases = [(EDRVFLClassifier(random_state=0, **option).fit(X, y), new) for X, y, new in datasets()]
        report(f"EDRVFLClassifier {option}", cases)
    for make in (KernelRidgeClassifier, EDRVFLPortfolioClassifier):
        report(make.__name__, [(make(random_state=0).fit(X, y), new) for X, y, new in datasets()])
    X, y = load_diabetes(return_X_y=True)
    X = X.astype(np.float32).astype(float)
    two = np.column_stack([y, y**2])
    for make in (EDRVFLRegressor, KernelRidgeRegressor, EDRVFLPortfolioRegressor):
        report(make.__name__, [(make(random_state=0).fit(X[::2], y[::2]), X[1::2])])
        report(f"{make.__name__}, two outputs", [(make(random_state=0).fit(X[::2], two[::2]), X[1::2])])
    agreement_of_frames()
    agreement_of_many_rows()


def agreement_of_frames() -> None:
    X, y, new = frames()
    labels = np.where(y > np.median(y), "yes", "no")
    for encoder in ("standard", "robust", "bins", TabularEncoder("bins", categorical_features=["rooms"])):
        for make in (EDRVFLClassifier, KernelRidgeClassifier):
            what = encoder if isinstance(encoder, str) else "TabularEncoder, numbers as categories"
            report(
                f"{make.__name__}, frame, {what}",
                [(make(encoder=encoder, random_state=0).fit(X, labels), new)],
            )
    for make in (EDRVFLRegressor, EDRVFLPortfolioRegressor):
        report(f"{make.__name__}, frame", [(make(random_state=0).fit(X, y), new)])
    report(
        "EDRVFLPortfolioClassifier, frame", [(EDRVFLPortfolioClassifier(random_state=0).fit(X, labels), new)]
    )


def many_rows(m: int, d: int = 20) -> tuple[np.ndarray, np.ndarray]:
    X = np.random.default_rng(0).standard_normal((m, d)).astype(np.float32).astype(float)
    return X, X[:, 0] + X[:, 1] * X[:, 2]


def agreement_of_many_rows() -> None:
    """Kernel voters of more than 1,000 rows, and of parts, above 5,000 or 8,000."""
    X, y = many_rows(11_000)
    for make, sizes in ((KernelRidgeClassifier, (2_000, 6_000)), (KernelRidgeRegressor, (2_000, 9_000))):
        targets = np.digitize(y, [-0.5, 0.5]) if make is KernelRidgeClassifier else y
        for m in sizes:
            model = make(random_state=0).fit(X[:m], targets[:m])
            case = [(model, X[10_000:])]
            report(f"{make.__name__}, {m} rows", case)
            report(f"{make.__name__}, {m} rows, records in float64", case, [in_double(model)])


def best(task: Any, repeats: int) -> float:
    """Return the seconds of the fastest of several runs."""
    found = []
    for _ in range(repeats):
        start = time.perf_counter()
        task()
        found.append(time.perf_counter() - start)
    return min(found)


def times() -> None:
    X, y = many_rows(2_000 if SMALL else 10_000)
    classes = np.digitize(y, [-0.5, 0.5])
    few, some = slice(1000), slice(2000)
    rows = {
        "EDRVFLRegressor": (EDRVFLRegressor, few),
        "EDRVFLClassifier, 10 x 512": (EDRVFLClassifier, few),
        "KernelRidgeClassifier, 2,000 rows": (KernelRidgeClassifier, some),
        "EDRVFLPortfolioClassifier": (EDRVFLPortfolioClassifier, few),
    }
    models = {
        name: make(random_state=0).fit(X[part], (classes if "Classifier" in name else y)[part])
        for name, (make, part) in list(rows.items())[: 1 if SMALL else None]
    }
    print(f"\n{'seconds':46}    MB   load   one row: ours     onnx ratio   10,000: ours   onnx  ratio")
    for name, model in models.items():
        for dtype in TOLERANCE:
            print(f"{name + ', ' + dtype:46}" + time_one(model, X, dtype, "Classifier" in name), flush=True)


def time_one(model: Any, X: np.ndarray, dtype: str, classifies: bool) -> str:
    proto = to_onnx(model, dtype=dtype)
    load = best(lambda: session(proto), 1)
    run, ask = session(proto).run, model.predict_proba if classifies else model.predict
    step = len(X) if hasattr(model, "network_") else 1_000  # a kernel holds rows x landmarks numbers
    given = X.astype(dtype)
    parts = [given[start : start + step] for start in range(0, len(X), step)]
    one = best(lambda: ask(X[:1]), 30), best(lambda: run(None, {"X": given[:1]}), 30)
    all_rows = best(lambda: ask(X), 3), best(lambda: [run(None, {"X": part}) for part in parts], 3)
    size = proto.ByteSize() / 1e6
    return (
        f"{size:6.1f} {load:6.2f} {one[0]:15.5f} {one[1]:8.5f} {one[0] / one[1]:5.1f}"
        f" {all_rows[0]:14.2f} {all_rows[1]:6.2f} {all_rows[0] / all_rows[1]:6.2f}"
    )


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    print(f"onnxruntime {onnxruntime.__version__}")
    wanted = sys.argv[1:] or ["agreement", "times"]
    if "agreement" in wanted:
        agreement()
    if "times" in wanted:
        times()
