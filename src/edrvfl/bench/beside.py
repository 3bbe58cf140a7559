"""The portfolio beside other packages, each as it comes, on a table of one's own and on the same splits."""

from __future__ import annotations

import importlib
import itertools
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from typing import Any, Literal

import numpy as np
from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

from .contenders import Contender, check_packages
from .data import Dataset, Split, Task
from .defaults import measure
from .difference import Compared
from .methods import CONTENDERS, TABLE, contender_names
from .splits import check_splits, split_rows
from .targets import are_classes

SUBJECT = "edRVFL portfolio"
ALWAYS = ("linear model", "RandomForest", "HistGradientBoosting")
IF_INSTALLED = ("LightGBM", "XGBoost", "CatBoost")
DATES = ("date", "datetime", "datetime64", "period")  # as pandas calls them
ISO = "2026-12-31 or 2026-12-31T23:59"

Found = dict[str, float] | str  # what a fit scored, or why it failed


# The signature is long because it is what the command offers too.
def compare(
    X: Any,
    y: Any,
    *,
    methods: Sequence[str] | None = None,
    task: Literal["auto", "classification", "regression"] = "auto",
    groups: Any = None,
    time: Any = None,
    cv: Any = 5,
    random_state: int = 0,
    n_jobs: int | None = None,
    verbose: bool | Literal["auto"] = "auto",
) -> Compared:
    """Compare the portfolio with other packages on a table, every one at its defaults, on the same splits.

    A linear model, scikit-learn's random forest and its histogram gradient boosting are always there, and
    LightGBM, XGBoost and CatBoost if they are installed. Columns of text or categories and gaps reach each
    package as it wants them; dates reach the others as days. Every fit has one thread.

    Parameters
    ----------
    X : array of numbers, or frame of shape (n_samples, n_features)
        The inputs. Frames need pandas.
    y : array-like of shape (n_samples,)
        Classes or values.
    methods : sequence of str, default=None
        The others, by their names in the study. By default those above.
    task : {"auto", "classification", "regression"}, default="auto"
        Whether y holds classes or values. "auto" takes texts, truth values and up to ten different whole
        numbers for classes.
    groups : array-like of shape (n_samples,) or name of a column, default=None
        Rows that belong together, such as visits of one patient: no group is on both sides of a split, and a
        fit that takes groups gets them. A column that is named is no input.
    time : array-like of shape (n_samples,) or name of a column, default=None
        When a row was seen, as numbers, dates or texts such as 2026-12-31. Every split is then tested on rows
        that are later than its training rows. A column that is named is no input.
    cv : int or splitter of scikit-learn, default=5
        How many splits there are, or what draws them: `RepeatedStratifiedKFold()` for narrower intervals.
    random_state : int, default=0
        The seed of splits and fits.
    n_jobs : int, default=None
        How many fits are done at once.
    verbose : bool or "auto", default="auto"
        Whether a line says how far it is; "auto" shows it on a terminal.

    Returns
    -------
    compared : Compared
        It prints as a table: scores, differences from the portfolio with their intervals, and seconds, below
        a sentence that says who is better. `compared.table()` is a frame, `compared.plot()` a picture,
        `compared.better()` names the packages that are clearly better than the portfolio.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> compared = compare(X, y, methods=["linear model"], cv=3)
    >>> list(compared.scores)
    ['edRVFL portfolio', 'linear model']
    """
    X, together = _named_column(_as_rows(X), groups, "groups")
    X, when = _named_column(X, time, "time")
    answers, n_rows = np.asarray(y), len(X)
    if not n_rows:
        raise ValueError("X has no rows, so there is nothing to compare on.")
    if answers.ndim != 1 or len(answers) != n_rows:
        raise ValueError(f"y must have one target for each of the {n_rows} rows, got shape {answers.shape}.")
    if task not in ("auto", *CONTENDERS):
        raise ValueError(f"task must be 'auto', 'classification' or 'regression', got {task!r}.")
    kind: Task = task if task != "auto" else "classification" if are_classes(answers) else "regression"
    contenders = _find_contenders(methods, kind)
    codes, classes = _coded(answers, kind)
    if when is not None:
        when = _as_moments(when)
    parts = split_rows(codes, kind, cv, together, when, random_state)
    if kind == "classification":
        check_splits(parts, codes, classes)
    splits = tuple(
        Split(_mask(train, n_rows), _mask([], n_rows), _mask(test, n_rows)) for train, test in parts
    )
    ours, plain = (Dataset("own", rows, codes, splits, "", classes) for rows in (X, _plain_frame(X)))
    jobs = [
        (name, i, (contender, ours if name == SUBJECT else plain, split, random_state, together))
        for i, split in enumerate(splits)
        for name, contender in contenders.items()
    ]
    found = _run(jobs, n_jobs, sys.stderr.isatty() if verbose == "auto" else verbose)
    shares = [len(test) / len(train) for train, test in parts]
    absent = [name for name in IF_INSTALLED if methods is None and name not in contenders]
    return Compared.of(kind, found, list(contenders), shares, absent, n_rows)


# --- the fits ----------------------------------------------------------------------------------------


def _run(jobs: list[Any], n_jobs: int | None, shown: bool) -> dict[tuple[str, int], Found]:
    """Do all fits, and say how many are done."""
    work = Parallel(n_jobs=n_jobs, return_as="generator_unordered")
    results: Iterable[tuple[str, int, Found]] = work(delayed(_attempt)(*job) for job in jobs)
    found = {}
    with _line(len(jobs), shown) as tell:
        for name, i, scores in results:
            found[name, i] = scores
            tell(name)
    return found


def _attempt(name: str, i: int, job: tuple[Any, ...]) -> tuple[str, int, Found]:
    """Fit and score. That another package fails is a finding; that ours does is an error."""
    try:
        with threadpool_limits(1):
            return name, i, measure(*job)
    except Exception as error:
        if name == SUBJECT:
            raise
        return name, i, f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0]}"


@contextmanager
def _line(n: int, shown: bool) -> Iterator[Callable[[str], None]]:
    """Keep a line on standard error that says how many fits are done."""
    done = itertools.count(1)

    def tell(name: str) -> None:
        i = next(done)
        text = f"\rcomparing [{'#' * (30 * i // n):30}] {i} of {n}, {name:24}"
        print(text if shown else "", end="", file=sys.stderr)

    yield tell
    print(f"\r{'':90}\r" if shown else "", end="", file=sys.stderr, flush=True)


def _find_contenders(methods: Sequence[str] | None, task: Task) -> dict[str, Contender]:
    """Return the portfolio and the others. A method that is asked for must be installed."""
    known = CONTENDERS[task]
    if methods is None:
        names = [SUBJECT, *ALWAYS, *(name for name in IF_INSTALLED if find_spec(TABLE[name].package))]
    else:
        names = [SUBJECT, *(name for name in contender_names(methods) if name != SUBJECT)]
        if unable := [name for name in names if name not in known]:
            raise ValueError(f"{', '.join(unable)} cannot do {task}; these can: {', '.join(known)}.")
        check_packages(known[name] for name in names)
    found = {name: known[name] for name in names}
    quiet = partial(found[SUBJECT].estimator, verbose=0)  # one line says how far all fits are
    return {**found, SUBJECT: replace(found[SUBJECT], estimator=quiet)}


# --- rows --------------------------------------------------------------------------------------------


def _as_rows(X: Any) -> Any:
    """Return an array of numbers, or a pandas frame whose rows are numbered."""
    if hasattr(X, "columns"):
        X = X if hasattr(X, "iloc") else X.to_pandas()
        return X.reset_index(drop=True)
    rows = np.asarray(X)
    if rows.ndim != 2:
        raise ValueError(f"X must have rows and columns, got shape {rows.shape}.")
    if rows.dtype.kind in "biuf":
        return rows
    return importlib.import_module("pandas").DataFrame(rows).infer_objects().rename(columns=str)


def _named_column(X: Any, given: Any, option: str) -> tuple[Any, np.ndarray | None]:
    """Return the inputs and the values of `groups` or `time`, which may be a column's name."""
    if given is None:
        return X, None
    if isinstance(given, str):
        if given not in getattr(X, "columns", ()):
            raise ValueError(f"{option}={given!r} names no column of X.")
        X, given = X.drop(columns=given), X[given]
    missing = getattr(given, "isna", None)
    values = np.asarray(given)
    odd = np.asarray(missing()) if missing is not None else values != values
    if values.shape != (len(X),) or np.any(odd):
        raise ValueError(f"{option} must have a value for each of the {len(X)} rows, and no gaps.")
    return X, values


def _as_moments(values: np.ndarray) -> np.ndarray:
    """Return times that can be put in order."""
    if values.dtype.kind in "biufM":
        return values
    if all(hasattr(value, "timestamp") for value in values):  # with time zones
        return np.array([value.timestamp() for value in values])
    try:
        return np.array([np.datetime64(str(value)) for value in values])
    except ValueError as error:
        raise ValueError(f"time must hold numbers, dates, or texts such as {ISO}: {error}.") from error


def _coded(y: np.ndarray, task: Task) -> tuple[np.ndarray, tuple[str, ...]]:
    """Return what the study calls a target: codes and the names of the classes, or values."""
    gaps = np.array([value is None or value != value for value in y.tolist()])
    if gaps.any():
        raise ValueError(
            f"y is missing in {gaps.sum()} rows, the first is row {gaps.argmax()}; leave them out."
        )
    if task == "regression":
        if y.dtype.kind not in "biuf":
            raise ValueError(f"y holds {y.dtype} and regression needs numbers.")
        return y.astype(np.float64), ()
    classes, codes = np.unique(y.astype(str) if y.dtype == object else y, return_inverse=True)
    if len(classes) < 2:
        raise ValueError(f"y holds one class only, {str(classes[0])!r}; a comparison needs two or more.")
    return codes, tuple(map(str, classes))


def _plain_frame(X: Any) -> Any:
    """Return a frame of numbers and texts alone: what packages know that are told which columns are texts."""
    if not hasattr(X, "columns"):
        return X
    pandas = importlib.import_module("pandas")
    return pandas.DataFrame({str(name): _plain_column(X[name], pandas) for name in X.columns})


def _plain_column(column: Any, pandas: Any) -> Any:
    """Return numbers, days since 1970, or texts, with gaps."""
    kinds, categories = pandas.api.types, getattr(column.dtype, "categories", None)
    if categories is not None and kinds.infer_dtype(categories) in DATES:
        column = column.astype(categories.dtype)
    if isinstance(column.dtype, pandas.PeriodDtype):
        column = column.dt.to_timestamp()
    elif kinds.infer_dtype(column, skipna=True) in ("date", "datetime"):  # Python's own, or Arrow's
        column = pandas.to_datetime(column.astype(object), utc=True)
    for is_kind, unit in ((kinds.is_datetime64_any_dtype, "M8[ns]"), (kinds.is_timedelta64_dtype, "m8[ns]")):
        if is_kind(column.dtype):
            days = column.to_numpy(dtype=unit).astype("i8") / 86_400e9
            return pandas.Series(np.where(column.isna(), np.nan, days))
    if kinds.is_bool_dtype(column.dtype) or kinds.is_numeric_dtype(column.dtype):
        return pandas.Series(column.to_numpy(dtype=np.float64, na_value=np.nan))
    return column.astype(object).map(str, na_action="ignore").where(column.notna(), None)


def _mask(places: Any, n_rows: int) -> np.ndarray:
    mask = np.zeros(n_rows, dtype=bool)
    mask[places] = True
    return mask
