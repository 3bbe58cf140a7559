"""How the table of the portfolio's members was found, and what each part of the portfolio gives.

    OPENBLAS_NUM_THREADS=1 EDRVFL_DATA=folder python benchmarks/portfolio.py fit CACHE [dataset:split ...]
    python benchmarks/portfolio.py choose CACHE     # a table of members, cross-validated over the datasets
    python benchmarks/portfolio.py parts CACHE      # the portfolio without each of its parts
    python benchmarks/portfolio.py --small          # some of the candidates on iris: fit, choose

`fit` fits every candidate to the fit rows of a split and keeps its leave-one-out answers and its answers for
the validation rows, by depth. Everything else is arithmetic on these. No test row is touched: fit rows and
validation rows are disjoint from the test rows.
"""

import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from common import SMALL

from edrvfl import EDRVFLClassifier, KernelRidgeClassifier, TabularEncoder
from edrvfl._doors.members import MEMBERS, NEUTRAL, PAIRS, SHARED, SIGMOID, SPARSE
from edrvfl._fitting.data import InMemory
from edrvfl._fitting.portfolio import prepare_members
from edrvfl._fitting.race import fit_member
from edrvfl._fitting.settings import voter_settings
from edrvfl._inputs.rows import prepare_rows
from edrvfl._inputs.table import learn_table, open_table
from edrvfl._loo.jury import Jury
from edrvfl._loo.pool import equal_kinds, keep_heavy, pool_weights, pooled
from edrvfl.bench.data import dataset_names, load_dataset

BINS, RAW, SCALED = {"encoder": "bins"}, {"encoder": "robust"}, {"input_scaling": "gradient"}
FINE = {"encoder": TabularEncoder("bins", n_bins=32)}
RADIAL = {"activation": "radbas", "norm_scale": (0.5, 3.0), "norm_shift": (-2.0, 2.0)}


def network(**settings):
    return EDRVFLClassifier(**{**SHARED, **settings})


CANDIDATES = {
    "kernel": KernelRidgeClassifier(),
    "kernel unscaled": KernelRidgeClassifier(input_scaling=None),
    "kernel raw": KernelRidgeClassifier(encoder="robust"),
    "dense": network(**BINS, **PAIRS, **SCALED),
    "dense, no pairs": network(**BINS, **SCALED),
    "dense unscaled": network(**BINS, **PAIRS),
    "dense neutral": network(**BINS, **PAIRS, **SCALED, **NEUTRAL),
    "dense sigmoid": network(**BINS, **PAIRS, **SCALED, **SIGMOID),
    "sparse": network(**BINS, **SCALED, inputs_per_neuron=3),
    "sparse fine": network(**FINE, **SCALED, inputs_per_neuron=2),
    "sparse sigmoid": network(**BINS, **SPARSE, **SIGMOID),
    "sparse sigmoid scaled": network(**BINS, **SPARSE, **SIGMOID, **SCALED),
    "raw dense": network(**RAW, **PAIRS, **SCALED),
    "raw dense sigmoid": network(**RAW, **PAIRS, **SCALED, **SIGMOID),
    "raw sparse": network(**RAW, **SPARSE, **SCALED),
    "raw sparse unscaled": network(**RAW, **SPARSE),
    "raw radial": network(**RAW, **RADIAL, inputs_per_neuron=3),
    "raw radial scaled": network(**RAW, **RADIAL, **SCALED, inputs_per_neuron=3),
    "radial": network(**BINS, **RADIAL, inputs_per_neuron=3),
    "dense sigmoid neutral": network(**BINS, **PAIRS, **SCALED, **SIGMOID, **NEUTRAL),
    "sparse neutral": network(**BINS, **SCALED, **NEUTRAL, inputs_per_neuron=3),
    "sparse sigmoid neutral": network(**BINS, **SPARSE, **SIGMOID, **SCALED, **NEUTRAL),
    "raw sparse neutral": network(**RAW, **SPARSE, **SCALED, **NEUTRAL),
    "raw radial neutral": network(**RAW, **RADIAL, **SCALED, **NEUTRAL, inputs_per_neuron=3),
    "raw dense neutral": network(**RAW, **PAIRS, **SCALED, **NEUTRAL),
}

if SMALL:
    CANDIDATES = {label: CANDIDATES[label] for label in ("kernel", "raw sparse", "raw dense")}


# --- fit ---------------------------------------------------------------------------------------------


def fit(cache: Path, job: str) -> None:
    """Fit all candidates on the fit rows of a split, as far as the cache does not have them."""
    name, i = job.split(":")
    dataset = load_dataset(name)
    split = dataset.splits[int(i)]
    file = cache / f"{name}.{i}.npz"
    found = dict(np.load(file)) if file.exists() else {}
    X, columns = learn_table(open_table(dataset.X), "from_dtype")
    rows = prepare_rows(X[split.fit], dataset.y[split.fit])
    seen = split.validation & np.isin(dataset.y, rows.classes)
    data = InMemory(rows, columns)
    jury = data.jury
    found |= {"codes": jury.codes, "weights": jury.weights, "honest": jury.honest}
    found["y"] = np.searchsorted(rows.classes, dataset.y[seen])
    tried = {label: voter_settings(one) for label, one in CANDIDATES.items() if f"{label}|loo" not in found}
    for member in prepare_members(data, tried, int(i)):
        label = member.name
        began = time.process_time()
        done = fit_member(data, member, None, member.settings.depth)
        seconds = time.process_time() - began
        depths, voter = range(1, 1 + len(done.stages)), done.voter
        prefixes = [voter.prefix(l) for l in depths] if member.settings.grows else [voter]
        found[f"{label}|loo"] = np.stack([stage.P for stage in done.stages]).astype(np.float32)
        found[f"{label}|val"] = np.stack([voter.answer(X[seen]) for voter in prefixes]).astype(np.float32)
        found[f"{label}|s"] = np.array(seconds)
    np.savez_compressed(file, **found)
    print(f"{job}: {sum(float(v) for k, v in found.items() if k.endswith('|s')):.0f} s", flush=True)


# --- arithmetic --------------------------------------------------------------------------------------


class Case:
    """What was kept of one split of one dataset."""

    def __init__(self, file: Path) -> None:
        self.dataset = file.name.rsplit(".", 2)[0]
        self.of = {key: value.astype(float) if "|" in key else value for key, value in np.load(file).items()}
        self.jury = Jury(self.of["codes"], self.of["weights"], self.of["honest"])
        self.y = self.of["y"]

    def depths(self, label: str, most: int) -> list[float]:
        return [self.jury.loss(P) for P in self.of[f"{label}|loo"][:most]]

    def score(self, labels, finalists=3, weights="loo", rule="matrix", most=4) -> tuple[float, float]:
        """Return the accuracy and the log-loss of a portfolio of these candidates on the validation rows."""
        networks = [label for label in labels if "kernel" not in label]
        first = sorted(networks, key=lambda label: self.depths(label, 1)[0])
        kept = [label for label in labels if label not in networks] + first[:finalists]
        depth = {label: int(np.argmin(self.depths(label, most))) for label in kept}
        loo, val = ([self.of[f"{label}|{part}"][depth[label]] for label in kept] for part in ("loo", "val"))
        w = equal_kinds([label in networks for label in kept])
        if weights == "loo":
            w = keep_heavy(pool_weights(loo, self.jury, w))
        P = self.jury.calibration(pooled(loo, w), rule)(pooled(val, w))
        own = P[np.arange(len(self.y)), self.y]
        return 100 * np.mean(P.argmax(axis=1) == self.y), -np.mean(np.log(np.maximum(own, 1e-15)))


def load(cache: Path) -> list[Case]:
    return [Case(file) for file in sorted(cache.glob("*.npz"))]


def by_dataset(cases: list[Case], labels, **options) -> dict[str, np.ndarray]:
    """Return accuracy and log-loss for each dataset, the mean over its splits."""
    found: dict[str, list] = {}
    for case in cases:
        found.setdefault(case.dataset, []).append(case.score(labels, **options))
    return {name: np.mean(scores, axis=0) for name, scores in found.items()}


def line(label: str, scores: dict[str, np.ndarray]) -> str:
    accuracy, loss = np.mean(list(scores.values()), axis=0)
    return f"{label:44s} accuracy {accuracy:6.2f}  log-loss {loss:.4f}"


def ranked(losses: np.ndarray) -> np.ndarray:
    """Return the losses relative to the best of each dataset, so that hard datasets do not rule."""
    return losses / losses.min(axis=0)


def choose(cases: list[Case], most: int = 5) -> None:
    """Add the candidate that helps most, again and again. A dataset judges tables that it did not choose.

    Tables are compared after one temperature, which is much faster than matrix scaling.
    """
    for label in CANDIDATES:
        print(line(label, by_dataset(cases, [label], finalists=None)))
    names = sorted({case.dataset for case in cases})
    tables: dict[str, list[str]] = {name: ["kernel"] for name in (*names, "all")}
    scores: dict[tuple[str, ...], dict[str, np.ndarray]] = {}
    for size in range(2, most + 1):
        for left_out, table in tables.items():
            options = {}
            for label in CANDIDATES:
                if label in table:
                    continue
                key = tuple(sorted([*table, label]))
                if key not in scores:
                    scores[key] = by_dataset(cases, list(key), rule="temperature")
                options[label] = scores[key]
            used = [name for name in names if name != left_out]
            losses = np.array([[options[label][name][1] for name in used] for label in options])
            table.append(list(options)[int(np.argmin(ranked(losses + 1e-3).mean(axis=1)))])
        fair = {name: scores[tuple(sorted(tables[name]))][name] for name in names}
        chosen = tables["all"]
        print(line(f"{size} members, chosen on the other datasets", fair))
        print(
            line(f"  the same, chosen on all: {', '.join(chosen)}", scores[tuple(sorted(chosen))]), flush=True
        )
    for name, table in tables.items():
        print(f"  without {name:32s} {', '.join(table)}")


def parts(cases: list[Case]) -> None:
    """Print the portfolio of the library, and the portfolio without each of its parts."""
    names = {"dense": "dense neutral", "sparse": "sparse sigmoid scaled", "raw dense": "raw dense sigmoid"}
    table = [names.get(name, name) for name in MEMBERS]
    unscaled = ["kernel unscaled", "dense unscaled", "sparse sigmoid", "raw sparse unscaled"]
    without = {
        "the portfolio": (table, {}),
        "without the kernel voter": ([n for n in table if n != "kernel"], {}),
        "the kernel voter alone": (["kernel"], {}),
        "without racing: all networks go on": (table, {"finalists": None}),
        "equal weights": (table, {"weights": "equal"}),
        "one layer": (table, {"most": 1}),
        "one temperature instead of matrix scaling": (table, {"rule": "temperature"}),
        "no bins: raw inputs alone": (
            ["kernel raw", "raw dense sigmoid", "raw sparse", "raw radial scaled"],
            {},
        ),
        "no raw inputs: bins alone": ([n for n in table if "raw" not in n], {}),
        "no sparse neurons": (["kernel", "dense neutral", "dense sigmoid", "raw dense sigmoid"], {}),
        "no pairs": (["kernel", "dense, no pairs", "sparse sigmoid scaled", "raw sparse"], {}),
        "  beside it, with pairs": (["kernel", "dense", "sparse sigmoid scaled", "raw sparse"], {}),
        "no gradient scaling": (unscaled, {}),
        "no weighting, no pruning": (
            ["kernel", "dense neutral", "sparse sigmoid neutral", "raw dense neutral", "raw sparse neutral"],
            {},
        ),
    }
    for label, (members, options) in without.items():
        print(line(label, by_dataset(cases, members, **options)), flush=True)


if __name__ == "__main__":
    if SMALL:
        fit(Path(folder := tempfile.mkdtemp()), "iris:0")
        choose(load(Path(folder)), most=2)
        sys.exit()
    task, cache, *jobs = sys.argv[1], Path(sys.argv[2]), *sys.argv[3:]
    if task == "fit":
        cache.mkdir(parents=True, exist_ok=True)
        for job in jobs or [f"{name}:{i}" for i in (0, 1) for name in dataset_names(["uci24"])]:
            fit(cache, job)
    else:
        {"choose": choose, "parts": parts}[task](load(cache))
