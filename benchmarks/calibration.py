"""What calibration by leave-one-out gives, on validation rows, and what it costs.

    EDRVFL_DATA=folder OPENBLAS_NUM_THREADS=1 python benchmarks/calibration.py --cache folder [--splits 4]
        [--tables rules choices lambda layers rows time] [dataset ...]

The default network on the fit part of the published splits, scored on the validation part; no test row is
touched. The layers' scores, leave-one-out and validation, are kept in the folder --cache. Figures are
log-loss and, below it, accuracy and calibration error (15 bins of the largest probability), means over splits
and datasets. "mean" and "vote" are the other ensemble rules with the matrix. Networks are read out with
lambda 64, or with the best of 25 by leave-one-out: by accuracy, squared error, or log-loss after a
temperature. The judged rows calibrate, as in the library, but in the table "rows".
"""

import os

os.environ["SCIPY_ARRAY_API"] = "1"

import argparse
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
from scipy.optimize import minimize, minimize_scalar
from scipy.special import log_softmax, softmax

import edrvfl._layers.grow as growing
import edrvfl._loo.calibrate as kernel
from edrvfl import EDRVFLClassifier
from edrvfl._inputs.encoding import EncoderSettings, learn_inputs
from edrvfl._inputs.judged import judge_some
from edrvfl._inputs.rows import prepare_rows
from edrvfl._inputs.targets import Classes
from edrvfl._layers.draws import Draws, Recipe
from edrvfl._layers.layers import fill_inputs, new_features
from edrvfl._layers.records import Settings
from edrvfl._loo.calibrate import calibrate, log_loss
from edrvfl._loo.combine import combine
from edrvfl._ridge.choose import LAMBDAS
from edrvfl._ridge.equations import linear_system, output_weights
from edrvfl._ridge.leave_one_out import from_dual, from_leverage
from edrvfl._ridge.solve import ReadOut, ridge
from edrvfl._seam.arrays import ignore_overflow
from edrvfl.bench.data import dataset_names, load_dataset

LAMBDA_RULES = ["64", "accuracy", "squares", "log-loss"]
LARGE = {"adult", "letter", "musk-2", "statlog-shuttle"}  # one split is enough
TEMPERATURES = 2.0 ** np.arange(-2, 7, 0.5)  # inverse ones, to choose lambda by log-loss


# ---- scores -----------------------------------------------------------------------------------------------


def badness(scores, codes, by, weights):
    """How bad leave-one-out scores are. Accuracy counts the layer's weights, as the library does."""
    own = scores[np.arange(len(codes)), codes]
    if by == "accuracy":
        return round(-np.average(scores.argmax(axis=1) == codes, weights=weights), 12)
    if by == "squares":
        return np.sum(scores**2) - np.sum(own**2) + np.sum((1 - own) ** 2)
    return min(-np.mean(log_softmax(a * scores, axis=1)[np.arange(len(codes)), codes]) for a in TEMPERATURES)


def read_out(problem, lam, stacked, want_loo, by):  # noqa: ARG001, as the library calls it
    """Fit one read-out with its leave-one-out scores; without lam choose it among 25."""
    D, codes = problem.D, np.asarray(problem.targets.codes)
    omega = None if problem.omega is None else problem.omega[0]
    problem = replace(problem, omega=omega, shares=np.ones(len(codes)), judged=None)
    if lam is not None:
        found = ridge(problem, float(lam[0]))
        return ReadOut(found.beta[None], np.atleast_1d(found.fell_back), found.loo[None], float(lam[0]))
    system = linear_system(problem)
    values, V = np.linalg.eigh(system.G)
    values = np.maximum(values, 0)
    B, P = V.T @ system.R, D @ V if problem.primal else V
    squares, Y, best = P * P, problem.Y, None
    scale = np.ones(len(codes)) if problem.weights is None else problem.weights
    for lam in LAMBDAS[LAMBDAS + values.min() > np.finfo(float).eps * len(values) * values.max()]:
        inverse = 1 / (values + lam)
        answers, forms = P @ (inverse[:, None] * B), squares @ inverse
        if problem.primal:
            loo = from_leverage(answers, Y, forms * scale)
        else:
            loo = from_dual(answers / np.sqrt(scale)[:, None], Y, forms, problem.shares, lam)
        bad = badness(loo, codes, by, scale)
        if best is None or bad <= best[0]:  # of equal ones the larger
            best = bad, lam, inverse, loo
    _, lam, inverse, loo = best
    beta = output_weights(problem, V @ (inverse[:, None] * B))
    return ReadOut(beta[None], np.zeros(1, bool), loo[None], float(lam))


def grow_and_score(dataset, i, by):
    """Grow the default network on the fit rows; return leave-one-out and validation scores by layer."""
    split = dataset.splits[i]
    rows = prepare_rows(dataset.X[split.fit], dataset.y[split.fit])
    known = split.validation & np.isin(dataset.y, rows.classes)
    m, X = len(rows.X), np.concatenate([rows.X, dataset.X[known]])
    model = EDRVFLClassifier(regularization=64.0 if by == "64" else "loo")
    inputs = learn_inputs(rows.X, None, EncoderSettings())
    D = new_features(len(X), X, model.n_hidden, inputs)
    fill_inputs(D, X, inputs)
    problem = growing.Problem(rows.targets, rows.weights, Draws(Recipe(i, model.n_hidden, inputs.source), X))
    growing.read_outs = partial(read_out, by=by)  # the library's own keeps no leave-one-out scores
    loo, validation = [], []
    with ignore_overflow():
        for grown in growing.grow(growing.start(D, Settings.of(model)), problem):
            loo.append(grown.readout.loo[0].astype(np.float32))
            validation.append((grown.D[m:] @ grown.readout.beta[0]).astype(np.float32))
    return {
        "loo": np.stack(loo),
        "validation": np.stack(validation),
        "codes": np.asarray(rows.targets.codes),
        "validation_codes": np.searchsorted(rows.classes, dataset.y[known]),
    }


class Scores:
    """Scores by layer of one network, and their layers' softmax; the judged rows calibrate, or all."""

    def __init__(self, folder, name, i, by, every=False):
        file = folder / f"{name}.{i}.{by}.npz"
        if not file.exists():
            np.savez(file, **grow_and_score(load_dataset(name), i, by))
        with np.load(file) as found:
            self.loo, self.validation, self.codes, self.validation_codes = (
                found[key] for key in ("loo", "validation", "codes", "validation_codes")
            )
        judged = None if every else judge_some(Classes(self.codes, self.loo.shape[-1], np.zeros(0)))
        self.weights = None
        if judged is not None:
            self.loo, self.codes = self.loo[:, judged.rows], self.codes[judged.rows]
            self.weights = judged.stand_for * (len(judged.rows) / judged.stand_for.sum())
        self.loo, self.validation = self.loo.astype(float), self.validation.astype(float)
        self.L, self.V = softmax(self.loo, axis=-1), softmax(self.validation, axis=-1)

    def figures(self, Q):
        """Log-loss, accuracy in percent and calibration error of probabilities of the validation rows."""
        confidence, hit = Q.max(axis=1), Q.argmax(axis=1) == self.validation_codes
        bins = np.minimum((15 * confidence).astype(int), 14)
        error = np.abs(np.bincount(bins, confidence - hit, 15)).sum() / len(hit)
        return log_loss(Q, self.validation_codes, None), 100 * hit.mean(), error

    def calibrated(self, weights=None, rule="matrix"):
        """The figures of layers with these weights after calibration."""
        weights = np.full(len(self.L), 1 / len(self.L)) if weights is None else weights
        P, Q = np.tensordot(weights, self.L, 1), np.tensordot(weights, self.V, 1)
        return self.figures(calibrate(P, self.codes, self.weights, rule)(Q))


# ---- tables -----------------------------------------------------------------------------------------------


class Published(kernel._Scaling):
    """The published penalty, which is k times ours."""

    def __init__(self, Z, sample):
        super().__init__(Z, sample)
        self.penalty *= Z.shape[1]


def with_kernel(scores, part, value, rule="matrix"):
    """The figures with another part of the kernel."""
    owner = kernel if hasattr(kernel, part) else kernel._Sample
    ours = getattr(owner, part)
    setattr(owner, part, value)
    try:
        return scores.calibrated(rule=rule)
    finally:
        setattr(owner, part, ours)


def affine_curve(z, low, high):  # noqa: ARG001, in the place of `bow`
    """Half the slope everywhere: the two slopes of the curve act as one."""
    return z / 2


def rules(scores):
    return {
        "none": scores.figures(scores.V.mean(axis=0)),
        "temperature": scores.calibrated(rule="temperature"),
        "matrix": scores.calibrated(),
        "affine": with_kernel(scores, "bow", affine_curve),
        "mean": combined_by(scores, "mean"),
        "vote": combined_by(scores, "vote"),
    }


def choices(scores):
    one = property(lambda sample: 1.0)  # noqa: ARG005
    nothing = property(lambda sample: 1e-12)  # noqa: ARG005
    return {
        "matrix": scores.calibrated(),
        "published": with_kernel(scores, "_Scaling", Published),
        "no shrinkage": with_kernel(scores, "shrinkage", one),
        "no uniform": with_kernel(scores, "uniform", nothing),
        "temperature": scores.calibrated(rule="temperature"),
        "T, no shrinkage": with_kernel(scores, "shrinkage", one, "temperature"),
        "T, no uniform": with_kernel(scores, "uniform", nothing, "temperature"),
    }


def combined_by(scores, rule):
    """The figures of another ensemble rule after calibration."""
    P, Q = (combine(iter([S]), rule, [1.0] * len(S)) for S in (scores.loo, scores.validation))
    floor = 0.5 / len(scores.loo) if rule == "vote" else kernel.SMALLEST
    return scores.figures(calibrate(P, scores.codes, scores.weights, "matrix", floor=floor)(Q))


def loo_loss(P, scores, rule="temperature"):
    """The leave-one-out log-loss after calibration."""
    calibration = calibrate(P, scores.codes, scores.weights, rule)
    return log_loss(calibration(P), scores.codes, scores.weights)


def layers(scores):
    L = scores.L
    prefixes = [np.append(np.full(l, 1 / l), np.zeros(len(L) - l)) for l in range(1, len(L) + 1)]
    losses = [loo_loss(np.tensordot(weights, L, 1), scores, "matrix") for weights in prefixes]
    return {
        "all": scores.calibrated(),
        "best prefix": scores.calibrated(prefixes[int(np.argmin(losses))]),
        "weights": scores.calibrated(layer_weights(scores, 0.0)),
        "pulled 20": scores.calibrated(layer_weights(scores, 20.0)),
        "pulled 100": scores.calibrated(layer_weights(scores, 100.0)),
        "stages": scores.calibrated(stage_weights(scores, 0.0)),
        "stages 100": scores.calibrated(stage_weights(scores, 100.0)),
    }


def layer_weights(scores, pull):
    """Weights of the layers and a temperature by leave-one-out log-loss, minus pull / n * mean log weight."""
    L, codes = scores.L, scores.codes
    m, every = len(codes), np.arange(len(codes))
    of_rows = np.ones(m) if scores.weights is None else scores.weights

    def value(theta):
        w, a = softmax(theta[:-1]), np.exp(theta[-1])
        P = np.tensordot(w, L, 1)
        log_Q = log_softmax(a * np.log(P), axis=1)
        rest = np.exp(log_Q)
        rest[every, codes] -= 1
        rest *= of_rows[:, None]
        by_weight = np.tensordot(L, a * rest / P, 2) / m
        gradient = w * (by_weight - w @ by_weight) - pull / m * (1 / len(w) - w)
        loss = -np.mean(of_rows * log_Q[every, codes]) - pull / m * np.mean(np.log(np.maximum(w, 1e-300)))
        return loss, np.append(gradient, a * np.sum(rest * np.log(P)) / m)

    return softmax(minimize(value, np.append(np.zeros(len(L)), 1.5), jac=True, method="L-BFGS-B").x[:-1])


def stage_weights(scores, pull):
    """Each layer's share of the running mean by leave-one-out log-loss, pulled to 1 / depth."""
    L = scores.L
    weights, running = np.zeros(len(L)), L[0]
    weights[0] = 1
    for l in range(1, len(L)):
        plain = 1 / (l + 1)

        def value(share, plain=plain, running=running, l=l):
            prior = plain * np.log(share) + (1 - plain) * np.log(1 - share)
            return loo_loss((1 - share) * running + share * L[l], scores) - pull / len(scores.codes) * prior

        share = minimize_scalar(value, bounds=(1e-3, 1 - 1e-3), method="bounded", options={"xatol": 1e-3}).x
        running = (1 - share) * running + share * L[l]
        weights *= 1 - share
        weights[l] = share
    return weights


def print_table(columns, rows):
    """Print log-losses by dataset, and means of all figures with and without monks-3."""
    print(f"{'':32s}{'rows':>6s}{'k':>4s}" + "".join(f"{name:>16s}" for name in columns))
    for name, shape, figures in rows:
        print(f"{name:32s}{shape[0]:6d}{shape[1]:4d}" + "".join(f"{loss:16.4f}" for loss, *_ in figures))
    for among, without in (("", None), (" without monks-3", "monks-3")):
        means = np.mean([figures for name, _, figures in rows if name != without], axis=0)
        for j, what in enumerate(("log-loss", "accuracy", "calibration error")):
            print(f"{what + among:42s}" + "".join(f"{value:16.4f}" for value in means[:, j]))


def compare(make, load, names, splits):
    """Print what `make` finds, a dictionary of figures, averaged over splits."""
    rows = []
    for name in names:
        networks = [load(name, i) for i in range(1 if name in LARGE else splits)]
        found = [make(network) for network in networks]
        shape = len(networks[0].codes), networks[0].L.shape[-1]
        rows.append((name, shape, np.mean([list(figures.values()) for figures in found], axis=0)))
    print_table(list(found[0]), rows)


def compare_lambdas(folder, names, splits):
    """Print how lambda by leave-one-out fares."""
    small = [name for name in names if name not in LARGE]

    def load(name, i):
        networks = {by: Scores(folder, name, i, by) for by in LAMBDA_RULES}
        networks["64"].figures_by_lambda = {by: network.calibrated() for by, network in networks.items()}
        return networks["64"]

    compare(lambda network: network.figures_by_lambda, load, small, splits)


def print_rows(folder, names):
    """Print the log-loss by the number of rows that calibrate, mean of five draws."""
    sizes = [500, 1000, 2000, 5000, 10_000, 20_000, 50_000]
    print(f"{'':42s}" + "".join(f"{size:>10d}" for size in sizes))
    for name in sorted(LARGE & set(names)):
        scores = Scores(folder, name, 0, "64", every=True)
        P, Q, m = scores.L.mean(axis=0), scores.V.mean(axis=0), len(scores.codes)
        for rule in ("temperature", "matrix"):
            losses = []
            for size in sizes[: int(np.searchsorted(sizes, m)) + 1]:
                parts = [np.random.default_rng(s).permutation(m)[:size] for s in range(5)]
                fitted = [calibrate(P[part], scores.codes[part], None, rule) for part in parts]
                losses.append(np.mean([log_loss(c(Q), scores.validation_codes, None) for c in fitted]))
            print(f"{name:24s}{m:6d} {rule:11s}" + "".join(f"{loss:10.4f}" for loss in losses))


def print_times(folder):
    """Print milliseconds for each depth at 10,000 rows: alone, and started from the depth before."""
    for name in ("adult", "waveform", "pendigits", "letter"):
        scores = Scores(folder, name, 0, "64")
        part = np.random.default_rng(0).integers(len(scores.codes), size=10_000)
        codes, depths = scores.codes[part], np.cumsum(scores.L[:, part], axis=0)
        depths /= np.arange(1, len(depths) + 1)[:, None, None]
        for rule in ("temperature", "matrix"):
            cold, warm, before = [], [], calibrate(depths[0], codes, None, rule)
            for P in depths[1:]:
                begin = time.perf_counter()
                calibrate(P, codes, None, rule)
                middle = time.perf_counter()
                before = calibrate(P, codes, None, rule, before)
                cold.append(1e3 * (middle - begin))
                warm.append(1e3 * (time.perf_counter() - middle))
            k = depths.shape[-1]
            print(
                f"{name:12s} k={k:<3d} {rule:12s} {np.median(cold):6.1f} ms, warm {np.median(warm):6.1f} ms"
            )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--splits", type=int, default=4)
    parser.add_argument("--cache", type=Path, required=True)
    tables = ["rules", "choices", "lambda", "layers", "rows", "time"]
    parser.add_argument("--tables", nargs="+", choices=tables, default=tables)
    parser.add_argument("datasets", nargs="*", default=["uci24"])
    options = parser.parse_args()
    options.cache.mkdir(parents=True, exist_ok=True)
    names = dataset_names(options.datasets)
    for make in (rules, choices, layers):
        for by in ("64", "accuracy"):
            if make.__name__ in options.tables:
                print(f"\n{make.__name__}, lambda {by}")
                compare(
                    make, lambda name, i, by=by: Scores(options.cache, name, i, by), names, options.splits
                )
    if "lambda" in options.tables:
        print("\nlambda")
        compare_lambdas(options.cache, names, options.splits)
    if "rows" in options.tables:
        print("\nrows")
        print_rows(options.cache, names)
    if "time" in options.tables:
        print("\ntime")
        print_times(options.cache)


if __name__ == "__main__":
    main()
