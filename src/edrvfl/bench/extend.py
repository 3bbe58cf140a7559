"""A study of one's own: methods, datasets and metrics from files of a user's, which `--plugin` names."""

from __future__ import annotations

import importlib.util
import os
import sys
import traceback
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from .contenders import Contender, Prepared, as_categories_or_codes
from .data import Dataset, Task, dataset_names
from .data.frames import ADDED, frame_dataset
from .methods import TASKS, Row, add_row
from .scores import METRICS_OF, MORE
from .targets import are_classes

AS_NUMBERS = partial(as_categories_or_codes, most=0)
PLUGINS = "EDRVFL_PLUGINS"  # the environment variable that tells worker processes which files to run


def add_method(
    name: str,
    classifier: Callable[..., Any] | None = None,
    regressor: Callable[..., Any] | None = None,
    *,
    prepare: Callable[[Any, Any], Prepared] | None = AS_NUMBERS,
    **settings: Any,
) -> None:
    """Add a method to `edrvfl bench defaults` and `edrvfl.compare`.

    `classifier` and `regressor` make estimators of scikit-learn's kind, with `settings`; a `random_state`
    is given to those that have one. `prepare` takes the training and the test rows of a frame and returns
    both as the method wants them, with parameters that follow from them: one of the functions of
    `edrvfl.bench.contenders`, by default numbers for texts, or None for a method that takes arrays alone.
    """
    made = {task: kind for task, kind in zip(TASKS, (classifier, regressor), strict=True) if kind is not None}
    if not made:
        raise ValueError(f"{name} needs a classifier or a regressor.")
    said = ", ".join(f"{key}={value!r}" for key, value in settings.items())
    contenders = {
        task: Contender(
            name,
            f"{getattr(kind, '__name__', name)}({said}).fit(X, y)",
            partial(_make, kind, settings),
            prepare,
            settings={key: repr(value) for key, value in settings.items()},
        )
        for task, kind in made.items()
    }
    add_row(Row(name, "peer", default=contenders))


def _make(kind: Callable[..., Any], settings: dict[str, Any], *, random_state: Any, **parameters: Any) -> Any:
    """Make an estimator, with a seed if it takes one."""
    estimator = kind(**settings, **parameters)
    seeded = "random_state" in estimator.get_params(deep=False)
    return estimator.set_params(random_state=random_state) if seeded else estimator


def add_dataset(name: str, load: Callable[[], Any], target: str, task: Task | None = None) -> None:
    """Add a dataset to `edrvfl bench defaults`: `load` returns a pandas frame that has the column `target`.

    Five draws of 75 and 25 % of the rows are its splits. Without a `task` the target says what it holds.
    """
    if name in dataset_names([name] if name in ADDED else ["demo", "uci24", "frames"], frames=True):
        raise ValueError(f"There is a dataset {name!r} already; take another name.")
    ADDED[name] = partial(_load, name, load, target, task)


def _load(name: str, load: Callable[[], Any], target: str, task: Task | None) -> Dataset:
    table = load()
    if task is None:
        task = "classification" if are_classes(np.asarray(table[target])) else "regression"
    return frame_dataset(name, table.reset_index(drop=True), target, task)


def add_metric(
    name: str, score: Callable[[np.ndarray, np.ndarray], float], task: Task = "classification"
) -> None:
    """Add a metric to the records of `edrvfl bench defaults`, to what it prints and to the report's panels.

    `score` takes the codes 0..k-1 of the classes and the probabilities (rows, k), or values and predictions.
    """
    if name in METRICS_OF[task] or name in MORE[task]:
        raise ValueError(f"There is a metric {name!r} of {task} already; take another name.")
    MORE[task][name] = score


def load_plugins(files: Iterable[str | Path] = ()) -> None:
    """Run files that call these functions, each once, and let worker processes that start later do so too."""
    known = [path for path in os.environ.get(PLUGINS, "").split(os.pathsep) if path]
    for path in dict.fromkeys([*known, *(str(Path(file).resolve()) for file in files)]):
        name = f"edrvfl_plugin_{Path(path).stem}"
        if name in sys.modules:
            if sys.modules[name].__file__ != path:
                raise ValueError(f"{path}: another plugin has this name; rename the file.")
            continue
        if not Path(path).is_file():
            raise ValueError(f"{path}: there is no such file.")
        spec = importlib.util.spec_from_file_location(name, path)
        if spec is None or spec.loader is None:
            raise ValueError(f"{path}: expected a file of Python, whose name ends in .py.")
        module = sys.modules[name] = importlib.util.module_from_spec(spec)  # so that workers find its classes
        try:
            spec.loader.exec_module(module)
        except BaseException as error:
            del sys.modules[name]
            if isinstance(error, Exception):
                lines = [f.lineno for f in traceback.extract_tb(error.__traceback__) if f.filename == path]
                where = f"{path}, line {lines[-1]}" if lines else path  # no line of it ran
                raise ValueError(f"{where}: {type(error).__name__}: {error}") from error
            raise
        known = list(dict.fromkeys([*known, path]))
        os.environ[PLUGINS] = os.pathsep.join(known)
