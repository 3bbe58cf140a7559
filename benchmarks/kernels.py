"""Which kernels a portfolio should have: rosters on validation rows, accuracy, log-loss or R^2, seconds.

    OPENBLAS_NUM_THREADS=1 EDRVFL_DATA=folder python benchmarks/kernels.py [--small] [--jobs 1]
        [--groups uci24 frames values common common-values] [--rosters laplace two kernels] [--rows 2000]

Fits are on rows of the first split that are neither validation nor test rows, and the validation rows answer;
frames, which have none, give 30 % of their training rows for it. At most --rows rows are fitted, drawn by
chance, and at most 3,000 answer. "laplace" is the portfolio as it comes. "two" has four kernel voters, each
with the inputs that suit it, of which the best two are fitted. "kernels" is that without networks.
"""

import os

for library in ("OMP", "OPENBLAS", "MKL"):
    os.environ[f"{library}_NUM_THREADS"] = "1"  # before NumPy is imported; joblib's processes inherit it

import argparse
import time

import joblib
import numpy as np
from common import SMALL
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

import edrvfl
from edrvfl._fitting.settings import SUITED
from edrvfl.bench.data import FRAME_GROUPS, UCI24, load_dataset, load_frame

GROUPS = ("uci24", "frames", "values", "common", "common-values")
ROSTERS = ("laplace", "two", "kernels")
ENDINGS = {"classification": "Classifier", "regression": "Regressor"}


def split_of(data, in_24):
    """Return the rows to fit and the rows to answer: no test row is among them."""
    split = data.splits[0]
    if in_24:
        return np.flatnonzero(split.fit), np.flatnonzero(split.validation)
    train = np.flatnonzero(split.train)
    classes = data.y[train] if data.task == "classification" else None
    alone = classes is not None and np.unique(classes, return_counts=True)[1].min() < 2
    return train_test_split(train, test_size=0.3, random_state=0, stratify=None if alone else classes)


def members_of(portfolio, kernel, roster):
    """Return the members of a roster."""
    default = portfolio.default_members()
    if roster == "laplace":
        return default
    kernels = [(name, kernel(kernel=name, encoder="loo")) for name in SUITED]
    return kernels if roster == "kernels" else kernels + default[1:]


def measure(group, name, roster, most):
    """Return what one roster has on one table: scores, the greater the better, and seconds."""
    data = load_dataset(name) if group == "uci24" else load_frame(name)
    rng = np.random.default_rng(0)
    fit, new = split_of(data, group == "uci24")
    fit, new = (np.sort(rng.choice(r, min(len(r), n), replace=False)) for r, n in ((fit, most), (new, 3_000)))
    table = data.X.iloc if hasattr(data.X, "iloc") else data.X
    ending = ENDINGS[data.task]
    portfolio, kernel = (getattr(edrvfl, kind + ending) for kind in ("EDRVFLPortfolio", "KernelRidge"))
    model = portfolio(members=members_of(portfolio, kernel, roster), random_state=0)
    start = time.perf_counter()
    model.fit(table[fit], data.y[fit])
    seconds = time.perf_counter() - start
    kept = [one for one in model.members_["member"] if one in (*SUITED, "kernel")]
    if data.task == "regression":
        return model.score(table[new], data.y[new]), np.nan, seconds, kept
    P = np.full((len(new), int(data.y.max()) + 1), 1e-15)
    P[:, model.classes_.astype(int)] = model.predict_proba(table[new])
    accuracy = 100 * np.mean(P.argmax(axis=1) == data.y[new])
    return (
        accuracy,
        -log_loss(data.y[new], P / P.sum(axis=1, keepdims=True), labels=range(P.shape[1])),
        seconds,
        kept,
    )


def main():
    parser = argparse.ArgumentParser(description="Rosters of kernels on validation rows.")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--groups", nargs="+", choices=GROUPS, default=GROUPS)
    parser.add_argument("--rosters", nargs="+", choices=ROSTERS, default=ROSTERS[:2])
    parser.add_argument("--rows", type=int, default=2_000, help="rows that are fitted at most")
    given = parser.parse_args()
    tables = {
        group: tuple(UCI24) if group == "uci24" else tuple(FRAME_GROUPS[group]) for group in given.groups
    }
    if SMALL:
        tables, given.rows = {"values": ("friedman1",)}, 60
    work = [
        (group, name, roster) for group, names in tables.items() for name in names for roster in given.rosters
    ]
    run = joblib.Parallel(given.jobs, return_as="generator")
    found = {}
    for key, one in zip(work, run(joblib.delayed(measure)(*key, given.rows) for key in work), strict=True):
        found[key] = one
        score, loss, seconds, kept = one
        figures = f"{score:8.4f} {loss:8.4f} {seconds:6.1f} s"
        print(f"{key[0]:14s} {key[1]:32s} {key[2]:8s} {figures}  {' '.join(kept)}", flush=True)
    print("\nmeans: R^2 or accuracy (%), minus log-loss, seconds; on how many tables better than the first")
    for group, names in tables.items():
        first = [found[group, name, given.rosters[0]] for name in names]
        for roster in given.rosters:
            rows = [found[group, name, roster] for name in names]
            means = np.mean([row[:3] for row in rows], axis=0)
            place = int(not np.isnan(means[1]))  # log-loss, where there is one
            better = sum(row[place] > before[place] for row, before in zip(rows, first, strict=True))
            figures = f"{means[0]:8.4f} {means[1]:8.4f} {means[2]:6.1f} s"
            print(f"{group:14s} {roster:8s} {figures}  {better} of {len(rows)}")


if __name__ == "__main__":
    main()
