"""Sections 5.5 and 5.6 of the paper: what omega_r and p do to accuracy, and how long training takes."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import statistics as median_of
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.linalg import LinAlgWarning
from threadpoolctl import threadpool_info, threadpool_limits

from edrvfl import EDRVFLClassifier

from . import published
from .datasets import Dataset, dataset_names, load_dataset
from .methods import METHODS, method_names
from .protocol import seed_of, versions
from .published import Table, Value

WEIGHTS = (1.0, 0.8, 0.6, 0.4, 0.2)  # omega_r, of the samples predicted correctly
RATES = (0.0, 0.2, 0.4, 0.6, 0.8)  # p
ACTIVATIONS = ("relu", "sigmoid")
SENSITIVITY_DATASETS = tuple(published.WEIGHTING_HELPS)
TIMING_DATASETS = tuple(dict.fromkeys(dataset for dataset, _ in published.training_seconds()))
SEEDS = 10

NEUTRAL: Mapping[str, float] = {"correct_weight": 1.0, "prune_rate": 0.0}
SYMBOLS: Mapping[str, str] = {"correct_weight": "omega_r", "prune_rate": "p"}
CLEAR = 2.0  # a change of so many standard errors over the seeds counts as one

Factory = Callable[[int], Any]  # seed -> classifier, not fitted
Progress = Callable[[int, int, str], None]  # done, of, what


# --- section 5.5 -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Point:
    """One setting on one dataset: test accuracy in percent by split and seed."""

    parameter: str  # "correct_weight" or "prune_rate"
    value: float
    dataset: str
    activation: str
    test_accuracy: tuple[tuple[float, ...], ...]
    train_accuracy: float  # mean over layers, splits and seeds

    @property
    def by_seed(self) -> np.ndarray:
        return np.mean(self.test_accuracy, axis=0)


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """Test accuracy as omega_r or p varies and all else stays. Plain values: JSON and back."""

    settings: Mapping[str, Any]
    seeds: int
    points: tuple[Point, ...]
    versions: Mapping[str, str]
    seconds: float

    def to_json(self) -> str:
        return json.dumps(dataclasses.asdict(self), allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Sensitivity:
        """The result that `to_json` wrote."""
        fields = json.loads(text)
        points = tuple(
            Point(**(p | {"test_accuracy": tuple(map(tuple, p["test_accuracy"]))})) for p in fields["points"]
        )
        return cls(**(fields | {"points": points}))

    def curves(self, parameter: str) -> dict[tuple[str, str], tuple[Point, ...]]:
        """The points of one parameter by (dataset, activation), from the neutral value on."""
        found: dict[tuple[str, str], list[Point]] = {}
        for point in self.points:
            if point.parameter == parameter:
                found.setdefault((point.dataset, point.activation), []).append(point)
        away = NEUTRAL[parameter]
        return {
            key: tuple(sorted(points, key=lambda p: abs(p.value - away))) for key, points in found.items()
        }

    def table(self, parameter: str) -> Table:
        """One row for each point: mean and standard deviation of test accuracy over the seeds."""
        rows: list[tuple[Value, ...]] = []
        for (dataset, activation), points in self.curves(parameter).items():
            for p in points:
                sd = float(np.std(p.by_seed, ddof=1)) if len(p.by_seed) > 1 else None
                values = (p.value, round(float(np.mean(p.by_seed)), 4), None if sd is None else round(sd, 4))
                rows.append((dataset, activation, *values, round(p.train_accuracy, 4)))
        columns = ("dataset", "activation", SYMBOLS[parameter], "test_accuracy", "sd", "train_accuracy")
        title = f"Test accuracy in percent as {SYMBOLS[parameter]} varies"
        return Table(f"sensitivity_{parameter}", title, columns, tuple(rows))


def fixed_settings() -> dict[str, Any]:
    """Table 7 in the estimator's words."""
    paper = published.sensitivity_settings()
    return {
        "regularization": paper["lambda"],
        "n_hidden": int(paper["n"]),
        "n_layers": int(paper["l"]),
        "norm_scale": paper["gamma"],
        "norm_shift": paper["alpha"],
    }


def sensitivity(
    datasets: Sequence[Dataset],
    *,
    weights: Sequence[float] = WEIGHTS,
    rates: Sequence[float] = RATES,
    activations: Sequence[str] = ACTIVATIONS,
    seeds: int = SEEDS,
    settings: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
) -> Sensitivity:
    """Section 5.5: WPedRVFL with omega_r varied and p = 0, and with p varied and omega_r = 1.

    Networks are fitted on the training rows of each split and scored on its test rows, with one BLAS
    thread. Hidden seeds are those of the study: the same random layers for every value, so that values
    are compared in pairs. Each grid gets its neutral value, which both share.

    Parameters
    ----------
    datasets : sequence of Dataset
        The paper's four are `SENSITIVITY_DATASETS`.

    weights, rates : sequences of float
        Values of omega_r in (0, 1] and of p in [0, 1).

    activations : sequence of str
        One curve for each.

    seeds : int
        Hidden layers are redrawn so often.

    settings : mapping, optional
        Everything else; by default the paper's Table 7.

    progress : callable, optional
        Called with (done, of, what) after each setting.

    Returns
    -------
    Sensitivity
        The points, with every split's and seed's accuracy.
    """
    if seeds < 1:
        raise ValueError(f"seeds must be at least 1, got {seeds}.")
    fixed = fixed_settings() if settings is None else dict(settings)
    start, points = time.perf_counter(), []
    grids = {"correct_weight": weights, "prune_rate": rates}
    grids = {name: tuple(dict.fromkeys((NEUTRAL[name], *grid))) for name, grid in grids.items() if grid}
    of = len(datasets) * len(activations) * sum(map(len, grids.values()))
    with threadpool_limits(1):
        for dataset, activation in ((d, a) for d in datasets for a in activations):
            scored: dict[tuple[float, float], tuple[tuple[tuple[float, ...], ...], float]] = {}
            for name, grid in grids.items():
                for value in grid:
                    params = {**NEUTRAL, name: float(value)}
                    at = (params["correct_weight"], params["prune_rate"])
                    if at not in scored:
                        model = partial(EDRVFLClassifier, activation=activation, **(fixed | params))
                        scored[at] = _accuracies(model, dataset, seeds)
                    points.append(Point(name, float(value), dataset.name, activation, *scored[at]))
                    if progress is not None:
                        what = f"{dataset.name}, {activation}, {SYMBOLS[name]} = {value:g}"
                        progress(len(points), of, what)
    return Sensitivity(fixed, seeds, tuple(points), dict(versions()), time.perf_counter() - start)


def _accuracies(
    model: Callable[..., Any], d: Dataset, seeds: int
) -> tuple[tuple[tuple[float, ...], ...], float]:
    """Test accuracy in percent by split and seed, and the mean training accuracy of the layers."""
    train: list[float] = []

    def score(split: int, repeat: int) -> float:
        part = d.splits[split]
        fitted = model(random_state=seed_of("hidden", d.name, repeat))
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore", LinAlgWarning
            )  # of a singular Gram the least-norm answer is taken
            fitted.fit(d.X[part.train], d.y[part.train])
        train.extend(fitted.train_accuracies_)
        return 100 * float(np.mean(fitted.predict(d.X[part.test]) == d.y[part.test]))

    test = tuple(tuple(score(split, r) for r in range(seeds)) for split in range(len(d.splits)))
    return test, 100 * float(np.mean(train))


# --- what the curves say, beside what the paper says -------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Effect:
    """A curve in words: the best value against the neutral one, paired by seed, and the last value."""

    dataset: str
    activation: str
    best_value: float
    gain: float  # of the best value over the neutral one, in points
    gain_error: float | None  # its standard error over the seeds
    last_change: float  # of the value farthest from the neutral one
    last_error: float | None
    train_accuracy: float  # at the neutral value
    verdict: str
    paper: str | None  # what the paper's text says; None: not among its datasets
    agrees: bool | None


HELPS, HARMS, INERT, UNCLEAR = "helps", "harms", "does nothing", "makes no clear change"
PEAK, RISES = "rises to a peak and ends below the start", "helps, also at the end"


def effects(result: Sensitivity, parameter: str) -> tuple[Effect, ...]:
    """Every curve of a parameter in words, beside the paper's."""
    found = []
    for (dataset, activation), points in result.curves(parameter).items():
        if len(points) < 2:
            continue
        start, last = points[0], points[-1]
        best = max(points[1:], key=lambda p: float(np.mean(p.by_seed)))
        gain, gain_error = _change(best, start)
        change, change_error = _change(last, start)
        verdict = _verdict(parameter, points, (gain, gain_error), (change, change_error))
        paper = _papers_verdict(parameter, dataset)
        found.append(
            Effect(
                dataset,
                activation,
                best.value,
                gain,
                gain_error,
                change,
                change_error,
                start.train_accuracy,
                verdict,
                paper,
                None if paper is None else verdict == paper,
            )
        )
    return tuple(found)


def _change(point: Point, start: Point) -> tuple[float, float | None]:
    """Mean difference over the seeds and its standard error."""
    difference = point.by_seed - start.by_seed
    n = len(difference)
    return float(np.mean(difference)), float(np.std(difference, ddof=1)) / math.sqrt(n) if n > 1 else None


def _verdict(
    parameter: str,
    points: Sequence[Point],
    gain: tuple[float, float | None],
    last: tuple[float, float | None],
) -> str:
    def clear(change: tuple[float, float | None]) -> bool:
        return abs(change[0]) > max(CLEAR * (change[1] or 0.0), 1e-9)

    if all(p.test_accuracy == points[0].test_accuracy for p in points):
        return INERT
    if gain[0] > 0 and clear(gain):
        if parameter == "correct_weight":
            return HELPS
        return PEAK if last[0] < 0 else RISES
    return HARMS if last[0] < 0 and clear(last) else UNCLEAR


def _papers_verdict(parameter: str, dataset: str) -> str | None:
    if parameter == "prune_rate":
        return PEAK if dataset in published.PRUNING_PEAKS else None
    helps = published.WEIGHTING_HELPS.get(dataset)
    return None if helps is None else HELPS if helps else HARMS


def sensitivity_sentences(result: Sensitivity, parameter: str) -> tuple[str, str]:
    """Where a parameter's curves agree with the paper's text, and where not."""
    what = {"correct_weight": "Weighting", "prune_rate": "Pruning"}[parameter]
    found = [e for e in effects(result, parameter) if e.paper is not None]
    if not found:
        return f"{what} was not measured on any of the paper's four datasets.", "So nothing can be compared."
    agree, differ = ([e for e in found if e.agrees is side] for side in (True, False))
    first = f"{what} agrees with the paper's text in {len(agree)} of {len(found)} curves"
    first += f": {_in_words(agree)}." if agree else "."
    if not differ:
        return first, "It differs in none."
    claims = {e.paper: tuple(dict.fromkeys(d.dataset for d in differ if d.paper == e.paper)) for e in differ}
    papers = "; ".join(f"it {claim} on {', '.join(datasets)}" for claim, datasets in claims.items())
    return first, f"It differs in {len(differ)}: {_in_words(differ)}; the paper says {papers}."


def _in_words(some: Sequence[Effect]) -> str:
    """Curves by what they show: it helps on glass (relu, sigmoid); it harms on wine (relu)."""
    found: dict[str, dict[str, list[str]]] = {}
    for e in some:
        found.setdefault(e.verdict, {}).setdefault(e.dataset, []).append(e.activation)
    return "; ".join(
        f"it {verdict} on " + ", ".join(f"{d} ({', '.join(activations)})" for d, activations in where.items())
        for verdict, where in found.items()
    )


# --- section 5.6 -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Timed:
    """Seconds to fit one method on one dataset's training rows, every repeat."""

    dataset: str
    method: str
    rows: int
    features: int
    parameters: str
    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        return median_of.median(self.seconds)


@dataclass(frozen=True, slots=True)
class Timing:
    """Training times and all that decides them. Plain values: JSON and back."""

    timed: tuple[Timed, ...]
    warmups: int
    repeats: int
    threads: int
    blas: tuple[str, ...]
    processor: str
    versions: Mapping[str, str]

    def to_json(self) -> str:
        return json.dumps(dataclasses.asdict(self), allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Timing:
        """The result that `to_json` wrote."""
        fields = json.loads(text)
        timed = tuple(Timed(**(t | {"seconds": tuple(t["seconds"])})) for t in fields["timed"])
        return cls(**(fields | {"timed": timed, "blas": tuple(fields["blas"])}))

    def table(self) -> Table:
        """One row for each method on each dataset, with the paper's seconds."""
        printed = published.training_seconds()
        rows = tuple(
            (
                t.dataset,
                t.method,
                t.rows,
                t.features,
                round(t.median, 4),
                round(min(t.seconds), 4),
                round(max(t.seconds), 4),
                printed.get((t.dataset, t.method)),
            )
            for t in self.timed
        )
        columns = ("dataset", "method", "rows", "features", "median_s", "least_s", "most_s", "published_s")
        return Table("timing", "Training time in seconds", columns, rows)


def timing(
    methods: Mapping[str, Factory],
    datasets: Sequence[Dataset],
    *,
    warmups: int = 1,
    repeats: int = 5,
    threads: int = 1,
    progress: Progress | None = None,
) -> Timing:
    """Section 5.6: how long a fit takes, on the training rows of the first split.

    Parameters
    ----------
    methods : mapping
        Name -> factory; a factory makes a classifier from a seed.

    datasets : sequence of Dataset
        The paper's five are `TIMING_DATASETS`.

    warmups, repeats : int
        Fits that are not counted, and fits whose median is.

    threads : int
        BLAS threads.

    progress : callable, optional
        Called with (done, of, what) after each method on each dataset.
    """
    if repeats < 1 or warmups < 0 or threads < 1:
        raise ValueError(
            f"repeats and threads must be at least 1 and warmups at least 0, got repeats={repeats}, "
            f"threads={threads} and warmups={warmups}."
        )
    timed: list[Timed] = []
    with threadpool_limits(threads):
        for d in datasets:
            train = d.splits[0].train
            X, y = d.X[train], d.y[train]
            for name, factory in methods.items():
                seconds = [
                    _fit_seconds(factory(seed_of("hidden", d.name, r)), X, y)
                    for r in _rounds(warmups, repeats)
                ]
                rows, features = X.shape
                shown = " ".join(repr(factory(0)).split())
                timed.append(Timed(d.name, name, rows, features, shown, tuple(seconds[warmups:])))
                if progress is not None:
                    progress(len(timed), len(datasets) * len(methods), f"{d.name}, {name}")
        blas = tuple(
            sorted(
                {
                    f"{i['internal_api']} {i.get('version')}"
                    for i in threadpool_info()
                    if i["user_api"] == "blas"
                }
            )
        )
    return Timing(tuple(timed), warmups, repeats, threads, blas, _processor(), dict(versions()))


def _rounds(warmups: int, repeats: int) -> Iterator[int]:
    """Which hidden seed each fit uses: a warm-up shares the first."""
    yield from [0] * warmups
    yield from range(repeats)


def _fit_seconds(model: Any, X: np.ndarray, y: np.ndarray) -> float:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LinAlgWarning)
        start = time.perf_counter()
        model.fit(X, y)
        return time.perf_counter() - start


def _processor() -> str:
    """The processor's name where the system tells, and how many of its threads there are."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{names[0] if names else 'processor not named'}, {os.cpu_count()} logical cores"


def timing_sentences(result: Timing) -> tuple[str, str]:
    """What was measured beside Table 8, and by how much the ratio of the two methods differs."""
    printed = published.training_seconds()
    shared = [t for t in result.timed if (t.dataset, t.method) in printed]
    if not shared:
        return "None of the measured pairs is in the paper's Table 8.", "So nothing can be compared."
    slower = [t.median / printed[t.dataset, t.method] for t in shared if t.method == published.BEST]
    first = "WPedRVFL was not timed on the paper's datasets."
    if slower:
        first = (
            f"WPedRVFL took {min(slower):.2g} to {max(slower):.2g} times the seconds that Table 8 prints, on "
            f"{len(slower)} of its datasets; the machine is another, and the settings are ours, since the "
            "paper does not give its."
        )
    medians = {(t.dataset, t.method): t.median for t in shared}
    both = [d for d in TIMING_DATASETS if (d, "SNN") in medians and (d, published.BEST) in medians]
    if not both:
        return first, "SNN was not timed here, so the ratio of the two methods is not compared."
    here = [medians[d, "SNN"] / medians[d, published.BEST] for d in both]
    there = [printed[d, "SNN"] / printed[d, published.BEST] for d in both]
    second = (
        f"SNN takes {min(here):.2g} to {max(here):.2g} times as long as WPedRVFL here and "
        f"{min(there):.2g} to {max(there):.2g} times in Table 8, so the order of the two "
        f"{'agrees' if min(here) > 1 else 'does not agree on every dataset'}."
    )
    return first, second


# --- commands --------------------------------------------------------------------------------------------


def sensitivity_command(
    out: str | Path,
    *,
    datasets: Sequence[str] = SENSITIVITY_DATASETS,
    folder: str | Path | None = None,
    weights: Sequence[float] = WEIGHTS,
    rates: Sequence[float] = RATES,
    activations: Sequence[str] = ACTIVATIONS,
    seeds: int = SEEDS,
    progress: Progress | None = None,
) -> list[Path]:
    """Measure section 5.5 and write sensitivity.json, and each figure as SVG and CSV, into a folder."""
    loaded = [load_dataset(name, folder) for name in dataset_names(datasets)]
    result = sensitivity(
        loaded, weights=weights, rates=rates, activations=activations, seeds=seeds, progress=progress
    )
    from . import figures  # matplotlib is slow to import

    target = Path(out)
    target.mkdir(parents=True, exist_ok=True)
    written = [_write(target / "sensitivity.json", result.to_json())]
    for parameter in NEUTRAL:
        if result.curves(parameter):
            written += figures.save(
                figures.sensitivity_figure(result.table(parameter)), result.table(parameter), target
            )
    return written


def timing_command(
    out: str | Path,
    *,
    methods: Sequence[str] = (published.BEST,),
    datasets: Sequence[str] = TIMING_DATASETS,
    folder: str | Path | None = None,
    warmups: int = 1,
    repeats: int = 5,
    threads: int = 1,
    progress: Progress | None = None,
) -> list[Path]:
    """Measure section 5.6 and write timing.json and timing.csv into a folder."""
    loaded = [load_dataset(name, folder) for name in dataset_names(datasets)]
    factories = {name: timed_method(name) for name in method_names(methods)}
    result = timing(factories, loaded, warmups=warmups, repeats=repeats, threads=threads, progress=progress)
    target = Path(out)
    target.mkdir(parents=True, exist_ok=True)
    return [
        _write(target / "timing.json", result.to_json()),
        _write(target / "timing.csv", result.table().to_csv()),
    ]


def timed_method(name: str) -> Factory:
    """A row of METHODS as a factory. The edRVFL family gets n and lambda of Table 7, and ten layers."""
    method = METHODS[name]
    paper = fixed_settings()
    settings = (
        {key: paper[key] for key in ("n_hidden", "regularization")} if method.depth == "n_layers" else {}
    )
    return lambda seed: method.estimator(random_state=seed, **settings)


def _write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path
