"""The command `edrvfl fit`."""

from __future__ import annotations

import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy
import pandas
import typer

import edrvfl
from edrvfl.bench.cells import (
    Kind,
    Place,
    find_kinds,
    gaps_of,
    read_categories,
    read_dates,
    read_numbers,
    refuse_gaps,
    texts_of,
)
from edrvfl.bench.names import listing, plural
from edrvfl.bench.tables import Block, Table, column_names, need_column, open_table
from edrvfl.bench.targets import are_classes, are_whole

from . import options
from .models import columns_of, kind_words, loo_words, naming
from .output import SCREEN, check_output
from .screen import put, say, share_bar, size_words

NO_VALUE = "the target holds text ({}), and --task regression needs numbers. Correct it, or drop --task."


# The signature is long because it is the list of the command's options.
def fit(
    table: options.Table,
    target: options.Target,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="Where to save the model.")],
    task: options.TaskKind = "auto",
    model: options.ModelKind = "portfolio",
    seed: options.Seed = 0,
    categories: options.Categories = None,
    ignore: options.Ignored = None,
    groups: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="The column that tells which rows belong together, for instance the patient: leave-one-out "
            "then leaves out whole groups. The model does not see the column.",
        ),
    ] = None,
    remember: Annotated[
        bool, typer.Option("--remember", help="Keep the rows in the model, for `edrvfl predict --support`.")
    ] = False,
    drop_missing_target: options.DropUnknown = False,
    separator: options.Separator = ",",
    force: options.Force = False,
    quiet: options.Silent = False,
) -> int:
    """Fit a model to a table and save it. Text that repeats is categories; empty cells are missing values.

    Dates that are written are cells like 2024-01-31 or 2024-01-31T18:30.
    """
    if out == SCREEN:
        raise ValueError("A model is not written to standard output. Name a file: --out model.edrvfl")
    check_output(out, force, [table])
    opened = open_table(table, separator)
    columns = Columns.of(opened, target, categories, ignore, groups)
    training = Training.of(opened, columns, task, drop_missing_target, quiet)
    estimator = make_estimator(model, training.classes, seed, columns.declared, remember)
    begun = time.perf_counter()
    training.fit(estimator, quiet)
    seconds = time.perf_counter() - begun
    estimator.save(out)
    if not quiet:
        y, answers, classes = training.y, training.answers, training.classes
        put(
            f"{opened.source}: {plural(len(answers), 'row')}, {column_words(estimator)}{y.left_out_words()}",
            f"target {target!r}: {target_words(answers, classes)}{doubt(y, classes, task)}",
            loo_words(estimator) if groups is None else loo_words(estimator, "leave-one-group-out"),
            f"{out}: {type(estimator).__name__}, {size_words(out.stat().st_size)}, fitted in {seconds:.1f} s",
        )
    return 0


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns that a model sees, which of them are declared to hold categories, and those beside."""

    target: str
    names: list[str]
    declared: list[str]
    groups: str | None

    @classmethod
    def of(
        cls,
        table: Table,
        target: str,
        categories: list[str] | None,
        ignore: list[str] | None,
        groups: str | None = None,
        beside: Sequence[str] = (),
    ) -> Columns:
        """Find the columns that options name in a table. Those `beside` stay, even if ignored."""
        need_column(table, target, "--target")
        if groups is not None:
            need_column(table, groups, "--groups")
            if groups == target:
                raise ValueError(
                    f"--groups names {groups!r}, the target. Name the column of what rows belong to."
                )
        left_out = {target, groups, *column_names(table, ignore, "--ignore")}.difference(beside)
        names = [name for name in table.names if name not in left_out]
        declared = column_names(table, categories, "--categories")
        check_names(table, names, declared)
        return cls(target, names, declared, groups)


def check_names(table: Table, names: Sequence[str], declared: Sequence[str]) -> None:
    """Refuse columns without a name, no columns, and declared ones that are not there."""
    if not names:
        raise ValueError(f"{table.source}: there is no column to learn from beside the target.")
    if "" in names:
        raise ValueError(
            f"{table.source}: column {table.names.index('') + 1} has no name. Name it, or remove it if it "
            "only numbers the rows."
        )
    if outside := [name for name in declared if name not in names]:
        raise ValueError(f"--categories names {listing(outside)}, which the model does not see.")


# --- rows --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Target:
    """The column to predict: a Series of numbers or texts; `kind` tells what they stand for."""

    name: str
    kind: Kind
    values: Any
    rows: numpy.ndarray  # of the table, from which the values come
    n_missing: int

    def left_out_words(self) -> str:
        """Say how many rows were left out."""
        return f"; {plural(self.n_missing, 'row')} without a target left out" if self.n_missing else ""


def read_training(
    table: Table, names: Sequence[str], target: str, drop: bool, quiet: bool, declared: Sequence[str] = ()
) -> tuple[Any, Target]:
    """Return a frame and the target. The file is read twice: first to tell numbers from text.

    Dates are text in the target, and in columns that are declared to hold categories.
    """
    wanted, notes = [*names, target], list[str]()
    with share_bar("looking", quiet) as report:
        kinds = find_kinds(table, wanted, reported(table.blocks(wanted), report), notes.append)
    kinds |= {name: "text" for name in (*declared, target) if kinds[name] == "dates"}
    for note in () if quiet else notes:
        say(f"Note: {note}")
    parts: dict[str, list[Any]] = {name: [] for name in wanted}
    missing = []
    with share_bar("reading", quiet) as report:
        for block in reported(table.blocks(wanted), report):
            missing.append(gaps_of(block.columns[target]))
            if not drop:
                refuse_gaps(missing[-1], block.columns[target], Place(table, target, block.start))
            for name in wanted:
                cells, place = block.columns[name], Place(table, name, block.start)
                kind = kinds[name]
                if kind == "text":
                    parts[name].append(pandas.Series(read_categories(cells)))
                else:
                    read = read_dates if kind == "dates" else read_numbers
                    parts[name].append(pandas.Series(read(cells, place)))
    frame = pandas.DataFrame({name: pandas.concat(parts[name], ignore_index=True) for name in wanted})
    gaps = numpy.concatenate(missing)
    if gaps.all():
        raise ValueError(f"{table.source}: column {target!r}, the target, is missing in every row.")
    rows = numpy.flatnonzero(~gaps)
    frame = frame.iloc[rows].reset_index(drop=True) if gaps.any() else frame
    return frame[list(names)], Target(target, kinds[target], frame[target], rows, int(gaps.sum()))


def reported(blocks: Iterator[Block], report: Callable[[float], None]) -> Iterator[Block]:
    """Pass blocks on, and tell how far they are."""
    for block in blocks:
        yield block
        report(block.done)


# --- targets -----------------------------------------------------------------------------------------


def has_classes(y: Target, task: options.Task) -> bool:
    """Tell whether the target holds classes."""
    if task != "auto":
        return task == "classification"
    return y.kind != "numbers" or are_classes(y.values.to_numpy(dtype=numpy.float64))


def labels_of(table: Table, y: Target) -> numpy.ndarray:
    """Return labels: whole numbers, truth values, or text; refuse a single one."""
    if y.kind == "truth":
        labels = y.values.to_numpy(dtype=bool)
    elif y.kind == "numbers" and are_whole(y.values.to_numpy(dtype=numpy.float64)):
        labels = y.values.to_numpy(dtype=numpy.int64)
    else:
        if y.kind == "numbers" and numpy.abs(y.values).max() >= 2**53:
            raise ValueError(
                f"{table.source}: column {y.name!r} holds numbers too long to be told apart as classes. "
                "Write a letter before them, which makes them text."
            )
        labels = numpy.array(texts_of(y.values))
    if (labels == labels[0]).all():
        raise ValueError(
            f"{table.source}: column {y.name!r} holds one class only, {str(labels[0])!r}. A model "
            "needs rows of two classes or more."
        )
    return labels


def values_of(table: Table, y: Target) -> numpy.ndarray:
    """Return numbers; refuse text, with its row."""
    if y.kind != "text":
        return y.values.to_numpy(dtype=numpy.float64)
    cells = [""] * (int(y.rows[-1]) + 1)  # as in the table, so that a message can name the row
    for row, text in zip(y.rows, texts_of(y.values), strict=True):
        cells[row] = text
    return numpy.asarray(read_numbers(cells, Place(table, y.name, 0), NO_VALUE)[y.rows])


@dataclass(frozen=True, slots=True)
class Training:
    """The rows of a table, ready to be fitted."""

    source: object
    frame: Any
    y: Target
    answers: numpy.ndarray  # labels or values
    classes: bool
    groups: Any  # a Series that tells which rows belong together; None if each stands alone

    @classmethod
    def of(cls, table: Table, columns: Columns, task: options.Task, drop: bool, quiet: bool) -> Training:
        """Read the rows, and tell whether the target holds classes."""
        beside = [] if columns.groups is None else [columns.groups]
        names = [*columns.names, *beside]
        frame, y = read_training(table, names, columns.target, drop, quiet, columns.declared)
        classes = has_classes(y, task)
        answers = labels_of(table, y) if classes else values_of(table, y)
        groups = None if columns.groups is None else frame[columns.groups]
        return cls(table.source, frame[columns.names], y, answers, classes, groups)

    def fit(self, estimator: Any, quiet: bool) -> None:
        """Fit an estimator, and show how far it is."""
        with naming(self.source), fit_bar(estimator, quiet), said_warnings(quiet):
            estimator.fit(self.frame, pandas.Series(self.answers, name=self.y.name), groups=self.groups)


# --- the fit -----------------------------------------------------------------------------------------


def make_estimator(model: str, classes: bool, seed: int, declared: list[str], remember: bool) -> Any:
    """Return the estimator that a model's name stands for, with its defaults."""
    common: dict[str, Any] = {"random_state": seed, "remember": "rows" if remember else None}
    if model == "portfolio":
        portfolio = edrvfl.EDRVFLPortfolioClassifier if classes else edrvfl.EDRVFLPortfolioRegressor
        return portfolio(**common, categorical_features=declared or "from_dtype")
    network = (edrvfl.EDRVFLClassifier if classes else edrvfl.EDRVFLRegressor)(**common)
    if declared:
        network.set_params(encoder=edrvfl.TabularEncoder("standard", categorical_features=declared))
    return network


class Watch:
    """A callback of scikit-learn that tells how many of the pieces of a fit are done."""

    def __init__(self, report: Callable[[float], None]) -> None:
        self._report, self._done = report, 0

    def setup(self, estimator: Any, context: Any) -> None:
        """Nothing is to be prepared."""

    def teardown(self, estimator: Any, context: Any) -> None:
        """Nothing is to be closed."""

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None:
        """Only ends count."""

    def on_fit_task_end(self, estimator: Any, context: Any) -> None:  # noqa: ARG002
        """Count a piece: a layer, or a member."""
        if context.parent is not None and context.parent.max_subtasks:
            self._done += 1
            self._report(self._done / context.parent.max_subtasks)


@contextmanager
def fit_bar(estimator: Any, quiet: bool) -> Iterator[None]:
    """Show how far a fit is."""
    with share_bar("fitting", quiet) as report:
        estimator.set_callbacks(Watch(report))
        yield


@contextmanager
def said_warnings(quiet: bool) -> Iterator[None]:
    """Print warnings as notes: where in the code they arose is of no use here."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", DeprecationWarning)  # meant for those who write code
        yield
    for text in dict.fromkeys(str(warning.message) for warning in caught):
        if not quiet:
            say(f"Note: {text}")


# --- words -------------------------------------------------------------------------------------------


def column_words(model: Any) -> str:
    """Count the columns by what they hold."""
    counts = Counter({"numbers": 0, "categories": 0})
    counts.update(map(kind_words, columns_of(model).values()))
    numbers = f"{plural(counts.pop('numbers'), 'column')} of numbers"
    return ", ".join([numbers, *(f"{count} of {kind}" for kind, count in counts.items())])


def target_words(answers: numpy.ndarray, classes: bool) -> str:
    """Say what the target holds."""
    if not classes:
        return f"numbers from {answers.min():.6g} to {answers.max():.6g}"
    labels, counts = numpy.unique(answers, return_counts=True)
    some = [f"{label} ({count})" for label, count in zip(labels.tolist(), counts, strict=True)]
    return f"{len(some)} classes: {', '.join(some[:10])}{', ...' if len(some) > 10 else ''}"


def doubt(y: Target, classes: bool, task: options.Task) -> str:
    """Say what else numbers could have been taken for, and how."""
    if task != "auto" or y.kind != "numbers":
        return ""
    return f" (if these are {'amounts: --task regression' if classes else 'classes: --task classification'})"
