"""Which kernels a portfolio should have: rosters on validation rows, accuracy, log-loss or R^2, seconds.

    OPENBLAS_NUM_THREADS=1 EDRVFL_DATA=folder python benchmarks/kernels.py [--small] [--jobs 1]
        [--groups uci24 frames values common common-values] [--rosters laplace default kernels] [--rows 2000]

Fits are on rows of the first split that are neither validation nor test rows, and the validation rows answer;
frames, which have none, give 30 % of their training rows for it. At most --rows rows are fitted, drawn by
chance, and at most 3,000 answer. "default" is the portfolio as it comes: three kernel voters, each with the
inputs that suit it, of which the best two are fitted, and networks. In the other rosters one thing differs:

    quick                      the effort of that name
    laplace                    the Laplace kernel on bins alone, with its factors found once
    additive                   the additive kernel is the fourth
    without KERNEL             one of the three is missing
    one round                  factors are found at most once
    bins, standard, ranks      all kernels see these inputs
    one, all                   one kernel is fitted, or all
    kernels                    no networks
    trees                      with extra trees and gradient boosting as guests
    deep                       networks of up to four layers, of which three go beyond the first
"""

import os

for library in ("OMP", "OPENBLAS", "MKL"):
    os.environ[f"{library}_NUM_THREADS"] = "1"  # before NumPy is imported; joblib's processes inherit it

import argparse
import time
from contextlib import contextmanager
from dataclasses import replace

import joblib
import numpy as np
from common import SMALL
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

import edrvfl
from edrvfl._fitting import settings
from edrvfl._fitting.settings import EFFORTS, SUITED
from edrvfl.bench.data import FRAME_GROUPS, UCI24, load_dataset, load_frame

GROUPS = ("uci24", "frames", "values", "common", "common-values")
ENCODERS = ("bins", "standard", "ranks")
WITHOUT = tuple(f"without {kernel}" for kernel in EFFORTS["usual"].kernels)
ROSTERS = (
    *("laplace", "default", "quick", "additive", *WITHOUT, "one round", *ENCODERS),
    *("one", "all", "kernels", "trees", "deep"),
)
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


def members_of(ending, roster):
    """Return the members of a roster."""
    kind = getattr(edrvfl, f"EDRVFLPortfolio{ending}")
    effort = roster if roster in EFFORTS else "usual"
    members = kind.default_members(trees=roster == "trees", effort=effort)
    kernels = {f"{kernel} kernel": kernel for kernel in SUITED}
    networks = [(name, one) for name, one in members if name not in kernels]
    if roster == "laplace":
        return [("laplace kernel", getattr(edrvfl, f"KernelRidge{ending}")()), *networks]
    if roster == "deep":
        networks = [(name, one.set_params(n_layers=4)) for name, one in networks]
    kept = [(name, one) for name, one in members if name in kernels]
    if roster == "additive":
        kept.append(
            ("additive kernel", getattr(edrvfl, f"KernelRidge{ending}")(kernel=roster, encoder="ranks"))
        )
    if roster in ENCODERS:
        kept = [(name, one.set_params(encoder=roster)) for name, one in kept]
    kept = [(name, one) for name, one in kept if f"without {kernels[name]}" != roster]
    return kept if roster == "kernels" else kept + networks


@contextmanager
def going(roster):
    """Change what no parameter says."""
    before = dict(settings.EFFORTS)
    usual = before.get(roster, before["usual"])
    kept = {"one": 1, "all": len(SUITED)}.get(roster, usual.kept)
    changed = replace(usual, kept=kept, rounds=1 if roster == "one round" else usual.rounds)
    settings.EFFORTS["usual"] = changed
    try:
        yield
    finally:
        settings.EFFORTS.update(before)


def measure(group, name, roster, most):
    """Return what one roster has on one table: scores, the greater the better, and seconds."""
    data = load_dataset(name) if group == "uci24" else load_frame(name)
    rng = np.random.default_rng(0)
    fit, new = split_of(data, group == "uci24")
    fit, new = (np.sort(rng.choice(r, min(len(r), n), replace=False)) for r, n in ((fit, most), (new, 3_000)))
    table = data.X.iloc if hasattr(data.X, "iloc") else data.X
    ending = ENDINGS[data.task]
    model = getattr(edrvfl, f"EDRVFLPortfolio{ending}")(members=members_of(ending, roster), random_state=0)
    if roster == "deep" and ending == "Classifier":
        model.set_params(finalists=3)
    start = time.process_time()
    with going(roster):
        model.fit(table[fit], data.y[fit])
    seconds = time.process_time() - start
    kept = [one for one in model.members_["member"] if one.endswith("kernel")]
    if data.task == "regression":
        return model.score(table[new], data.y[new]), np.nan, seconds, kept
    P = np.full((len(new), int(data.y.max()) + 1), 1e-15)
    P[:, model.classes_.astype(int)] = model.predict_proba(table[new])
    accuracy = 100 * np.mean(P.argmax(axis=1) == data.y[new])
    loss = log_loss(data.y[new], P / P.sum(axis=1, keepdims=True), labels=range(P.shape[1]))
    return accuracy, -loss, seconds, kept


def show(group, names, found, rosters):
    """Print the means of a group: of each roster beside the first."""
    first = np.array([found[group, name, rosters[0]][:3] for name in names])
    place = int(not np.isnan(first[:, 1]).any())  # log-loss, where there is one
    for roster in rosters:
        rows = np.array([found[group, name, roster][:3] for name in names])
        better, worse = (int((sign * (rows - first)[:, place] > 0).sum()) for sign in (1, -1))
        ratio = np.exp(np.log(rows[:, 2] / first[:, 2]).mean())
        figures = "".join(f"{mean:9.4f}" for mean in rows[:, :2].mean(axis=0))
        print(f"{group:14s} {roster:16s} {figures}  {better:2d} better, {worse:2d} worse, time {ratio:.2f}")


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
        print(f"{key[0]:14s} {key[1]:32s} {key[2]:16s} {figures}  {', '.join(kept)}", flush=True)
    print("\nmeans of R^2 or accuracy (%), of minus log-loss; tables better and worse than the first roster,")
    print("by log-loss where there is one; geometric mean of a processor's seconds over those of the first")
    for group, names in tables.items():
        show(group, names, found, given.rosters)


if __name__ == "__main__":
    main()
