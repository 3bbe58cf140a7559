"""The command `edrvfl evaluate`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy
import typer
from sklearn.metrics import mean_absolute_error, r2_score, root_mean_squared_error

from . import options
from .cells import Place, number_of, read_numbers, refuse_missing
from .models import Matched, classifies, columns_of, load_model, match, note_unused
from .screen import plural, put, say, share_bar
from .screen import table as drawn
from .tables import Block, Table, names_of, need_column, open_table


def evaluate(
    model: options.Model,
    table: Annotated[
        Path,
        typer.Argument(
            metavar="TABLE", help="A CSV or Parquet file with the model's columns and the target."
        ),
    ],
    target: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="The column to compare with.",
            show_default="the column that the model does not know",
        ),
    ] = None,
    separator: options.Separator = ",",
    quiet: options.Silent = False,
) -> int:
    """Compare the predictions of every row of a table with its target."""
    loaded, opened = load_model(model), open_table(table, separator)
    name = find_target(loaded, opened, target)
    matched = match(loaded, opened, name)
    note_unused(matched, [name], quiet)
    judge = ClassJudge(loaded) if classifies(loaded) else ValueJudge()
    with share_bar("evaluating", quiet) as report:
        for block in opened.blocks([*matched.known, name]):
            judge.add(matched, block, name)
            report(block.done)
    put(*judge.results())
    return 0


def find_target(model: Any, table: Table, target: str | None) -> str:
    """Return the column that holds the target: the one that was named, or the one that the model lacks."""
    if target is not None:
        return need_column(table, target, "--target")
    known = columns_of(model) if hasattr(model, "feature_names_in_") else ()
    left = [name for name in table.names if name and name not in known]
    if len(left) != 1:
        which = f"does not know {names_of(left)}" if left else "knows all columns"
        raise ValueError(f"{table.path}: which column is the target? The model {which}. Say --target NAME.")
    return left[0]


class ClassJudge:
    """Counts right answers, and notes the probability that each row's own class got."""

    def __init__(self, model: Any) -> None:
        self._labels = model.classes_.tolist()
        self._numbers = model.classes_.dtype.kind in "biuf"
        self._place = {float(v) if self._numbers else str(v): i for i, v in enumerate(self._labels)}
        self._true: list[numpy.ndarray] = []
        self._said: list[numpy.ndarray] = []
        self._own: list[numpy.ndarray] = []  # probabilities of the true classes
        self._strangers: Counter[str] = Counter()

    def add(self, matched: Matched, block: Block, target: str) -> None:
        """Look at some rows."""
        P, true = matched.answers(block), self._codes(matched.table, block, target)
        self._true.append(true)
        self._said.append(P.argmax(axis=1))
        known = true >= 0
        self._own.append(P[known, true[known]])

    def _codes(self, table: Table, block: Block, target: str) -> numpy.ndarray:
        """Return the places of the labels among the classes, -1 for one that the model does not know."""
        cells, place = block.columns[target], Place(table, target, block.start)
        refuse_missing(cells, place, self._labels)
        keys = [*map(float, read_numbers(cells, place))] if self._numbers else [*map(self._text, cells)]
        for key in keys:
            if key not in self._place:
                self._strangers[f"{key:g}" if self._numbers else str(key)] += 1
        return numpy.array([self._place.get(key, -1) for key in keys])

    def _text(self, label: Any) -> str:
        """Return a label as the model writes it: 0.50 may be its 0.5."""
        text = str(label)
        as_number = str(number_of(text))
        return as_number if text not in self._place and as_number in self._place else text

    def results(self) -> Sequence[Any]:
        """Return lines and a table to print."""
        true, answers, own = map(numpy.concatenate, (self._true, self._said, self._own))
        if self._strangers:
            say(
                f"The model does not know the classes {names_of(sorted(self._strangers), 10)}: "
                f"{plural(self._strangers.total(), 'row')}, counted as wrong and left out of the log-loss."
            )
        own = numpy.maximum(own, numpy.finfo(own.dtype).eps)  # as scikit-learn does: no row costs infinity
        loss = f", log-loss {-numpy.log(own).mean():.4f}" if len(own) else ""
        right = true == answers
        rows = []
        for i, label in enumerate(self._labels):
            of_class, told = true == i, answers == i
            share = f"{right[of_class].mean():.4f}" if of_class.any() else "-"
            rows.append((str(label), str(of_class.sum()), str(told.sum()), share))
        return (
            f"{plural(len(true), 'row')}: accuracy {right.mean():.4f}{loss}",
            drawn(("class", "rows", "predicted", "of these rows right"), rows),
        )


class ValueJudge:
    """Holds values and predictions."""

    def __init__(self) -> None:
        self._true: list[numpy.ndarray] = []
        self._said: list[numpy.ndarray] = []

    def add(self, matched: Matched, block: Block, target: str) -> None:
        """Look at some rows."""
        answers = matched.answers(block)
        if answers.shape[1] != 1:
            raise ValueError(f"The model predicts {answers.shape[1]} values a row; evaluate compares one.")
        cells, place = block.columns[target], Place(matched.table, target, block.start)
        refuse_missing(cells, place)
        self._true.append(numpy.asarray(read_numbers(cells, place), dtype=numpy.float64))
        self._said.append(answers[:, 0])

    def results(self) -> Sequence[Any]:
        """Return a line to print."""
        true, answers = numpy.concatenate(self._true), numpy.concatenate(self._said)
        score = f"R^2 {r2_score(true, answers):.4f}, " if len(true) > 1 else ""  # R^2 needs two rows
        errors = (
            f"root mean squared error {root_mean_squared_error(true, answers):.6g}, "
            f"mean absolute error {mean_absolute_error(true, answers):.6g}"
        )
        return (f"{plural(len(true), 'row')}: {score}{errors}",)
