"""The rows of the defaults: what a user types who takes a package as it comes, for classes and for values.

A method has one name. `CONTENDERS` says what it is where classes are predicted, `REGRESSORS` where values
are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import Any

import edrvfl

from .baselines import boosting, peers
from .data import Task
from .data.frames import text_columns
from .names import resolve_names

MOST_CATEGORIES = 255  # that scikit-learn's HistGradientBoosting takes in one column

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


def as_categories_or_codes(train: Any, test: Any, *, most: int = MOST_CATEGORIES) -> Prepared:
    """Do as `as_categories`, but make numbers of a column of too many texts for the method."""
    train, test, settings = as_categories(train, test)
    many = [name for name in text_columns(train) if len(train[name].cat.categories) > most]

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
    estimator: Callable[..., Any]  # (random_state=seed, **parameters) -> estimator, not fitted
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

_CLASSIFIERS = (
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
        boosting.hist_gradient_boosting,
        as_categories_or_codes,
    ),
    Contender(
        "LightGBM", f"LGBMClassifier().fit({_TEXTS}, y)", boosting.lightgbm, as_categories, package="lightgbm"
    ),
    Contender(
        "XGBoost",
        f"XGBClassifier(enable_categorical=True).fit({_TEXTS}, y)",
        boosting.xgboost,
        partial(as_categories, enable_categorical=True),
        package="xgboost",
    ),
    Contender(
        "CatBoost",
        'CatBoostClassifier(cat_features=texts).fit(X.fillna(dict.fromkeys(texts, "missing")), y)',
        boosting.catboost,
        as_named_texts,
        package="catboost",
    ),
)

_REGRESSORS = (
    *_ours("edRVFL portfolio", "EDRVFLPortfolioRegressor"),
    *_ours("edRVFL default", "EDRVFLRegressor"),
    *_ours("LaplaceRidge", "LaplaceRidgeRegressor"),
    Contender(
        "RandomForest",
        "RandomForestRegressor().fit(X.assign(**codes_of_texts), y)",
        partial(peers.random_forest, task="regression"),
        partial(as_categories_or_codes, most=0),
    ),
    Contender(
        "HistGradientBoosting",
        f"HistGradientBoostingRegressor().fit({_TEXTS}, y)",
        partial(boosting.hist_gradient_boosting, task="regression"),
        as_categories_or_codes,
    ),
    Contender(
        "LightGBM",
        f"LGBMRegressor().fit({_TEXTS}, y)",
        partial(boosting.lightgbm, task="regression"),
        as_categories,
        package="lightgbm",
    ),
    Contender(
        "XGBoost",
        f"XGBRegressor(enable_categorical=True).fit({_TEXTS}, y)",
        partial(boosting.xgboost, task="regression"),
        partial(as_categories, enable_categorical=True),
        package="xgboost",
    ),
    Contender(
        "CatBoost",
        'CatBoostRegressor(cat_features=texts).fit(X.fillna(dict.fromkeys(texts, "missing")), y)',
        partial(boosting.catboost, task="regression"),
        as_named_texts,
        package="catboost",
    ),
)

CONTENDERS: Mapping[str, Contender] = MappingProxyType({row.name: row for row in _CLASSIFIERS})
REGRESSORS: Mapping[str, Contender] = MappingProxyType({row.name: row for row in _REGRESSORS})
CONTENDERS_OF: Mapping[Task, Mapping[str, Contender]] = MappingProxyType(
    {"classification": CONTENDERS, "regression": REGRESSORS}
)
ALL_NAMES = tuple(dict.fromkeys((*CONTENDERS, *REGRESSORS)))


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


ON_VALUES = tuple(REGRESSORS)


def contender_names(names: Sequence[str]) -> tuple[str, ...]:
    """Return contenders in the order asked for, each once; the groups are `arrays`, `frames` and `values`.

    Examples
    --------
    >>> contender_names(["xgboost,EDRVFL bins"])
    ('XGBoost', 'edRVFL bins')
    """
    groups = {"arrays": ON_ARRAYS, "frames": ON_FRAMES, "values": ON_VALUES}
    return resolve_names(names, ALL_NAMES, groups, "method")
