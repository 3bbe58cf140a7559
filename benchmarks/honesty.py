"""How honest leave-one-out is: the figures that a fit tells, against those of fresh rows.

    python benchmarks/honesty.py [--small] [--jobs 1] [--draws N] [--task classes|values] [--size 80x10 ...]
        [--model network|kernel|portfolio|"kernel by leave-one-out" ...] [--ablation WAY ...] [--csv FILE]
        [--table FILE]

Problems of standard normal columns, of 20 to 600 rows, five kinds with classes and four with values: pure
noise, two columns that matter or all of them, straight and not. The best accuracy is 86 to 89 %, the best
R^2 0.7. --draws is how many problems there are of each kind and size, 10 with classes and 13 with values if
it is not given. Every model is as it comes, fitted on the rows and measured on 1,000 fresh ones, on one
thread.

A table has one row for each size, the mean over all kinds and draws. For each model: "flatter" is
leave-one-out minus test, in points of accuracy or of R^2; "by loss" is the log-loss of test minus that of
leave-one-out; then come the shares of test rows inside the sets or intervals of 80, 90 and 95 %, the test
log-loss of the kind `noise` ("noise", where a coin has 0.693), and the seconds of a fit. Aims, for the means:
"flatter" at most 2 points, below 80 rows 4; at 90 %, 87 % of the rows or more, with 20 rows 85; "noise" at
most 0.72.

--ablation takes a part away, or changes it, from models that have no `portfolio`. "neither": factors,
weighting and pruning are used, and one fit judges itself. "proof": what proved itself is used, and one fit
judges itself. "folds": all is used, and folds judge. "both" is the default; "2 folds", "5 folds" and "10
folds" are both with other numbers of folds.

--csv appends each fit to a file when it is done, and takes from there what it has, so that a run can be
stopped and goes on later. The file does not know which code was fitted: give each its own. --table writes
the means to a small file.
"""

import os

for library in ("OMP", "OPENBLAS", "MKL"):
    os.environ[f"{library}_NUM_THREADS"] = "1"  # before NumPy is imported; joblib's processes inherit it

import argparse
import csv
import io
import sys
import time
from collections import Counter
from contextlib import contextmanager, nullcontext
from functools import partial
from itertools import product
from pathlib import Path
from typing import NamedTuple

import joblib
import numpy as np
from common import SMALL
from sklearn.metrics import log_loss

import edrvfl
from edrvfl._fitting import folds

SIZES = (
    *("20x2", "20x10", "40x2", "40x10", "40x30", "80x2", "80x10", "80x30", "80x100"),
    *("150x10", "150x30", "150x500", "300x10", "300x30", "300x100", "600x10", "600x100"),
)
DRAWS = {"classes": 10, "values": 13}
TEST_ROWS = 100 if SMALL else 1_000
COVERAGES = (80, 90, 95)
MODELS = {"network": "EDRVFL", "kernel": "KernelRidge", "portfolio": "EDRVFLPortfolio"}
CHOSEN = "kernel by leave-one-out"  # a further model, if it is asked for: the best of four kernels
ENDINGS = {"classes": "Classifier", "values": "Regressor"}
# Of an ablation: whether what sees labels must prove itself, and how many folds judge; None is the default.
WAYS = {
    "neither": (False, 0),
    "proof": (True, 0),
    "folds": (False, None),
    "both": (True, None),
    **{f"{n} folds": (True, n) for n in (2, 5, 10)},
}
USED = {"input_scaling": "gradient", "correct_weight": 0.8, "prune_rate": 0.2}
N_FOLDS = folds.n_folds


# --- problems ----------------------------------------------------------------------------------------


def noisy(signal, scale, rng):
    return signal + scale * rng.standard_normal(signal.shape)


def third_of_circle(points):
    turns = np.arctan2(points[:, 1], points[:, 0]) / (2 * np.pi) + 0.5
    return np.minimum(3 * turns, 2).astype(int)


def along_some_direction(X, rng):
    direction = rng.standard_normal(X.shape[1])
    return X @ direction / np.linalg.norm(direction)


KINDS = {  # a kind's place here is a part of its seeds
    "classes": {
        "noise": lambda X, rng: rng.integers(2, size=len(X)),
        "linear": lambda X, rng: noisy(X[:, 0] + X[:, 1], 0.5, rng) > 0,
        "three classes": lambda X, rng: third_of_circle(noisy(X[:, :2], 0.25, rng)),
        "xor": lambda X, rng: noisy(X[:, 0] * X[:, 1], 0.2, rng) > 0,
        "dense": lambda X, rng: noisy(along_some_direction(X, rng), 0.4, rng) > 0,
    },
    "values": {
        "noise": lambda X, rng: rng.standard_normal(len(X)),
        "linear": lambda X, rng: noisy(X[:, 0] + X[:, 1], 0.93, rng),
        "sine": lambda X, rng: noisy(np.sin(2 * X[:, 0]) + X[:, 1], 0.8, rng),
        "dense": lambda X, rng: noisy(X.sum(axis=1) / np.sqrt(X.shape[1]), 0.65, rng),
    },
}


class Fit(NamedTuple):
    """What one fit is called, and the first columns of its line in a file."""

    task: str
    kind: str
    rows: int
    columns: int
    draw: int
    model: str

    @property
    def size(self):
        return self.task, self.rows, self.columns


def make_problem(fit):
    """Return X and y, the rows to fit before those of the test. All models get the same."""
    kinds = KINDS[fit.task]
    numbers = [list(KINDS).index(fit.task), list(kinds).index(fit.kind), fit.rows, fit.columns, fit.draw]
    rng = np.random.default_rng(np.random.SeedSequence(numbers))
    classes = 3 if fit.kind == "three classes" else 2
    while True:  # until each class has two rows to fit
        X = rng.standard_normal((fit.rows + TEST_ROWS, fit.columns))
        y = kinds[fit.kind](X, rng)
        if fit.task == "values":
            return X, y
        y = y.astype(int)
        if np.bincount(y[: fit.rows], minlength=classes).min() >= 2:
            return X, y


# --- measuring ---------------------------------------------------------------------------------------

MEASURED = ("loo", "test", "loo_log_loss", "test_log_loss", *(f"covered_{c}" for c in COVERAGES), "seconds")


def told(model, by_layer, alone):
    """Return a figure of leave-one-out: a network has one for each of its layers, the others have one."""
    return getattr(model, by_layer)[-1] if hasattr(model, by_layer) else getattr(model, alone)


def figures(task, model, X, y):
    """Return what is MEASURED, but for the seconds, with NaN for a task that has no such figure."""
    if task == "values":
        ends = [model.predict_interval(X, coverage=c / 100) for c in COVERAGES]
        covered = [np.mean((lower <= y) & (y <= upper)) for lower, upper in ends]
        return [told(model, "loo_r2_scores_", "loo_r2_score_"), model.score(X, y), np.nan, np.nan, *covered]
    loo = told(model, "loo_accuracies_", "loo_accuracy_")
    P = model.predict_proba(X)
    losses = told(model, "loo_log_losses_", "loo_log_loss_"), log_loss(y, P, labels=model.classes_)
    sets = [model.predict_set(X, coverage=c / 100) for c in COVERAGES]  # their columns are classes 0, 1, ...
    return [loo, model.score(X, y), *losses, *(np.mean(chosen[np.arange(len(y)), y]) for chosen in sets)]


@contextmanager
def going(way, model, X, y):
    """Fit in one of the WAYS: set the parameters of a model, and the number of folds."""
    proves, n = WAYS[way]
    if not proves:
        mine = model.get_params()
        model.set_params(**{name: value for name, value in USED.items() if name in mine})
    elif n == 0:
        model.set_params(**model.fit(X, y).proven_)
    if n is not None:
        folds.n_folds = lambda *_: n
    try:
        yield
    finally:
        folds.n_folds = N_FOLDS


def measure(fit):
    """Return the fit, and its figures, or in a sentence how it failed."""
    X, y = make_problem(fit)
    name, _, way = fit.model.partition(": ")
    model = getattr(edrvfl, MODELS[name.split(" by ")[0]] + ENDINGS[fit.task])(random_state=fit.draw)
    if name == CHOSEN:
        model.set_params(kernel="loo", encoder="loo")
    start = time.perf_counter()
    try:
        with going(way or "both", model, X[: fit.rows], y[: fit.rows]):
            model.fit(X[: fit.rows], y[: fit.rows])
        seconds = time.perf_counter() - start
        found = figures(fit.task, model, X[fit.rows :], y[fit.rows :])
        return fit, [*map(float, found), seconds]
    except Exception as error:  # the others are still worth their time
        return fit, f"{type(error).__name__}: {error}"


def read(file):
    """Return the fits of a file with their figures."""
    with file.open(newline="") as lines:
        cells = list(csv.reader(lines))[1:]
    names = [Fit(c[0], c[1], int(c[2]), int(c[3]), int(c[4]), c[5]) for c in cells]
    return {fit: [float(value) for value in c[6:]] for fit, c in zip(names, cells, strict=True)}


def measure_all(fits, jobs, file):
    """Return the figures of each fit that did not fail; what the file has not is added to it."""
    found = read(file) if file and file.exists() else {}
    missing = [fit for fit in fits if fit not in found]
    left = Counter(fit.size for fit in missing)
    say = partial(print, file=sys.stderr, flush=True)
    say(f"edrvfl of {Path(edrvfl.__file__).parent}: {len(missing)} of {len(fits)} fits are to do")
    start = time.perf_counter()
    with file.open("a", newline="") if file else nullcontext(io.StringIO()) as lines:
        writer = csv.writer(lines)
        if not lines.tell():
            writer.writerow([*Fit._fields, *MEASURED])
        run = joblib.Parallel(jobs, return_as="generator_unordered")
        for fit, measured in run(joblib.delayed(measure)(fit) for fit in missing):
            if isinstance(measured, str):
                say(f"{fit} failed: {measured}")
            else:
                found[fit] = measured
                writer.writerow([*fit, *measured])
                lines.flush()
            left[fit.size] -= 1
            if not left[fit.size]:
                say(f"{fit.task} {fit.rows}x{fit.columns} is done after {time.perf_counter() - start:.0f} s")
    return {fit: found[fit] for fit in fits if fit in found}


# --- telling -----------------------------------------------------------------------------------------


def average(found):
    """Return by task and size, and then by model, the means of all kinds and draws."""
    table = {}
    for fit in found:
        table.setdefault(fit.size, {}).setdefault(fit.model, []).append(fit)
    for models in table.values():
        for model, fits in models.items():
            means = dict(zip(MEASURED, np.mean([found[fit] for fit in fits], axis=0).tolist(), strict=True))
            noise = [found[fit][MEASURED.index("test_log_loss")] for fit in fits if fit.kind == "noise"]
            flattery = [100 * (found[fit][0] - found[fit][1]) for fit in fits]
            means["noise_log_loss"] = float(np.mean(noise)) if noise else np.nan
            means["flattery"] = float(np.mean(flattery))
            means["error"] = float(np.std(flattery, ddof=1) / len(fits) ** 0.5) if len(fits) > 1 else np.nan
            models[model] = means
    return table


COLUMNS = {  # of the tables: which figure, and how it is written
    "flatter": lambda m: f"{m['flattery']:8.1f}",
    "by loss": lambda m: f"{m['test_log_loss'] - m['loo_log_loss']:8.3f}",
    **{f"at {c} %": lambda m, c=c: f"{100 * m[f'covered_{c}']:8.1f}" for c in COVERAGES},
    "noise": lambda m: f"{m['noise_log_loss']:8.3f}",
    "seconds": lambda m: f"{m['seconds']:8.2f}",
}


def print_table(task, table, models):
    columns = {k: c for k, c in COLUMNS.items() if task == "classes" or k not in ("by loss", "noise")}
    print(f"\n{task:8s}" + "".join(f" | {model:{8 * len(columns)}s}" for model in models))
    print(" " * 8 + (" | " + "".join(f"{head:>8s}" for head in columns)) * len(models))
    for (_, rows, width), means in table.items():
        print(f"{f'{rows}x{width}':8s}", end="")
        for model in models:
            written = [write(means[model]) if model in means else " " * 8 for write in columns.values()]
            print(" | " + "".join(written), end="")
        print()


def misses(task, rows, m):
    """Yield a part of a sentence for each aim that some means miss."""
    most, least = (2 if rows >= 80 else 4), (87 if rows > 20 else 85)
    if not m["flattery"] <= most:
        error = f"standard error {m['error']:.1f}"
        yield f"leave-one-out flatters by {m['flattery']:.1f} points ({error}), the aim is at most {most}"
    if not 100 * m["covered_90"] >= least:
        yield f"{100 * m['covered_90']:.1f} % of the rows are covered at 90 %, the aim is at least {least}"
    if task == "classes" and not m["noise_log_loss"] <= 0.72:
        yield f"the log-loss of noise is {m['noise_log_loss']:.3f}, the aim is at most 0.72"


def write_table(table, file):
    names = (*MEASURED[:-1], "noise_log_loss", "seconds")
    with file.open("w", newline="") as lines:
        writer = csv.writer(lines)
        writer.writerow(["task", "rows", "columns", "model", *names])
        for size, models in table.items():
            for model, m in models.items():
                cells = ["" if np.isnan(m[name]) else f"{m[name]:.4f}" for name in names]
                writer.writerow([*size, model, *cells])


def main():
    parser = argparse.ArgumentParser(description="Leave-one-out against fresh rows.")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--draws", type=int, help="problems of each kind and size")
    parser.add_argument("--task", choices=list(KINDS), action="append")
    parser.add_argument("--size", action="append", help="rows and columns, as 80x10; can be repeated")
    parser.add_argument("--model", choices=[*MODELS, CHOSEN], action="append")
    parser.add_argument("--ablation", choices=list(WAYS), action="append")
    parser.add_argument("--csv", type=Path, help="file of all fits, to go on with")
    parser.add_argument("--table", type=Path, help="file for the means")
    given = parser.parse_args()
    if SMALL and given.csv:
        parser.error("--small measures on fewer test rows, and its figures belong in no file")
    tasks, models = given.task or list(KINDS), given.model or list(MODELS)
    if given.ablation:
        models = [f"{model}: {way}" for model in models for way in given.ablation if model != "portfolio"]
    sizes = [tuple(map(int, size.split("x"))) for size in given.size or (["20x2"] if SMALL else SIZES)]
    fits = [
        Fit(task, kind, rows, columns, draw, model)
        for (rows, columns), task in product(sizes, tasks)
        for draw in range(given.draws or (1 if SMALL else DRAWS[task]))
        for kind, model in product(KINDS[task], models)
    ]
    found = measure_all(fits, given.jobs, given.csv)
    table = average(found)
    for task in tasks:
        print_table(task, {size: means for size, means in table.items() if size[0] == task}, models)
    missed = [
        f"{task}, {rows}x{columns}, {model}: {miss}"
        for (task, rows, columns), means in table.items()
        for model, m in means.items()
        for miss in misses(task, rows, m)
    ]
    print("\nAims that are missed:", *(missed or ["none"]), sep="\n")
    if given.table:
        write_table(table, given.table)
    if len(found) < len(fits):
        print(f"\n{len(fits) - len(found)} of {len(fits)} fits failed, and are in no mean.")
        sys.exit(1)


if __name__ == "__main__":
    main()
