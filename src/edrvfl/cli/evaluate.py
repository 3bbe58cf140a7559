"""The command `edrvfl evaluate`."""

from __future__ import annotations

from collections import Counter
from typing import Annotated, Any

import numpy
import typer
from sklearn.metrics import mean_absolute_error, r2_score, root_mean_squared_error

from edrvfl.bench.cells import Place, gaps_of, number_of, read_numbers, refuse_gaps, texts_of
from edrvfl.bench.names import plural, quoted
from edrvfl.bench.tables import Column, Table, need_column, open_table, said

from . import options
from .models import classifies, columns_of, load_model, match, note_unused
from .screen import put, say, share_bar
from .screen import table as drawn


def evaluate(
    model: options.Model,
    table: options.Table,
    target: Annotated[
        str | None,
        typer.Option(
            "--target",
            "-t",
            metavar="NAME",
            help="The column to compare with.",
            show_default="the one that the model was fitted to",
        ),
    ] = None,
    drop_missing_target: options.DropUnknown = False,
    separator: options.Separator = ",",
    quiet: options.Silent = False,
) -> int:
    """Compare the predictions of every row of a table with its target."""
    loaded, opened = load_model(model), open_table(table, separator)
    name = find_target(loaded, opened, target, quiet)
    matched = match(loaded, opened, name)
    note_unused(matched, [name], quiet)
    judge = ClassJudge(loaded) if classifies(loaded) else ValueJudge()
    n_rows = 0
    with share_bar("evaluating", quiet) as report:
        for block in opened.blocks([*matched.known, name]):
            cells, place = block.columns[name], Place(opened, name, block.start)
            gaps = gaps_of(cells, judge.labels)
            if not drop_missing_target:
                refuse_gaps(gaps, cells, place)
            judge.add(matched.answers(matched.frame(block)), cells, place, ~gaps)
            n_rows += int((~gaps).sum())
            report(block.done)
    if not n_rows:
        raise ValueError(f"{opened.source}: column {name!r}, the target, is missing in every row.")
    figures, *tables = judge.results()
    put(f"{plural(n_rows, 'row')}, compared with {name!r}: {figures}", *tables)
    return 0


def find_target(model: Any, table: Table, target: str | None, quiet: bool) -> str:
    """Return the column that holds the target: the one that was named, or the one that the model names.

    The file of a model that was fitted to an array does not name it; then it can only be a single column
    that the model lacks.
    """
    name = getattr(model, "target_name_", None)
    if target is not None:
        need_column(table, target, "--target")
        if hasattr(model, "feature_names_in_") and target in columns_of(model):
            whose = "which does not name its target" if name is None else f"whose target is {name!r}"
            raise ValueError(
                f"{table.source}: column {target!r} (--target) is an input of the model, {whose}. "
                "Name the column that holds the true answers."
            )
        return target
    if name is not None:
        if name not in table.names:
            raise ValueError(
                f"{table.source}: there is no column {name!r}, which the model predicts."
                f"{said(name, table.names)} If it has another name here, say --target NAME."
            )
        return name
    known = columns_of(model) if hasattr(model, "feature_names_in_") else ()
    left = [name for name in table.names if name and name not in known]
    if len(left) != 1:
        which = (
            f"does not know {quoted(left)}" if left else "reads all columns, so none is left to compare with"
        )
        raise ValueError(f"{table.source}: which column is the target? The model {which}. Say --target NAME.")
    if not quiet:
        say(f"Note: the model does not name its target; {left[0]!r} is the one column that it does not know.")
    return left[0]


class ClassJudge:
    """Counts right answers, and notes the probability that each row's own class got."""

    def __init__(self, model: Any) -> None:
        self.labels = model.classes_.tolist()
        self._numbers = model.classes_.dtype.kind in "biuf"
        self._place = {float(v) if self._numbers else str(v): i for i, v in enumerate(self.labels)}
        self._true: list[numpy.ndarray] = []
        self._said: list[numpy.ndarray] = []
        self._own: list[numpy.ndarray] = []  # probabilities of the true classes
        self._strangers: Counter[str] = Counter()

    def add(self, P: numpy.ndarray, cells: Column, place: Place, there: numpy.ndarray) -> None:
        """Look at the rows whose target is there."""
        keys = numpy.array(self._keys(cells, place), dtype=object)[there]
        # the places of the labels among the classes, -1 for one that the model does not know
        true = numpy.array([self._place.get(key, -1) for key in keys], dtype=int)
        self._strangers.update(f"{key:g}" if self._numbers else str(key) for key in keys[true < 0])
        self._true.append(true)
        self._said.append(P[there].argmax(axis=1))
        self._own.append(P[there][true >= 0, true[true >= 0]])

    def _keys(self, cells: Column, place: Place) -> list[Any]:
        """Return labels as the model writes them: 0.50 may be its 0.5."""
        if self._numbers:
            return [*map(float, read_numbers(cells, place))]
        texts = texts_of(cells)
        as_numbers = [str(number_of(text)) for text in texts]
        return [
            number if text not in self._place and number in self._place else text
            for text, number in zip(texts, as_numbers, strict=True)
        ]

    def results(self) -> tuple[Any, ...]:
        """Return the figures in words, and a table."""
        true, answers, own = map(numpy.concatenate, (self._true, self._said, self._own))
        if self._strangers:
            say(
                f"The model does not know the classes {quoted(sorted(self._strangers), 10)}: "
                f"{plural(self._strangers.total(), 'row')}, counted as wrong and left out of the log-loss."
            )
        own = numpy.maximum(own, numpy.finfo(own.dtype).eps)  # as scikit-learn does: no row costs infinity
        loss = f", log-loss {-numpy.log(own).mean():.4f}" if len(own) else ""
        right = true == answers
        rows = []
        for i, label in enumerate(self.labels):
            of_class, told = true == i, answers == i
            share = f"{right[of_class].mean():.4f}" if of_class.any() else "-"
            rows.append((str(label), str(of_class.sum()), str(told.sum()), share))
        header = ("class", "rows", "predicted", "share of its rows found")
        return f"accuracy {right.mean():.4f}{loss}", drawn(header, rows)


class ValueJudge:
    """Holds values and predictions."""

    labels = ()

    def __init__(self) -> None:
        self._true: list[numpy.ndarray] = []
        self._said: list[numpy.ndarray] = []

    def add(self, answers: numpy.ndarray, cells: Column, place: Place, there: numpy.ndarray) -> None:
        """Look at the rows whose target is there."""
        if answers.shape[1] != 1:
            raise ValueError(f"The model predicts {answers.shape[1]} values a row; evaluate compares one.")
        self._true.append(numpy.asarray(read_numbers(cells, place), dtype=numpy.float64)[there])
        self._said.append(answers[there, 0])

    def results(self) -> tuple[Any, ...]:
        """Return the figures in words."""
        true, answers = numpy.concatenate(self._true), numpy.concatenate(self._said)
        score = f"R² {r2_score(true, answers):.4f}, " if len(true) > 1 else ""  # R² needs two rows
        errors = (
            f"root mean squared error {root_mean_squared_error(true, answers):.6g}, "
            f"mean absolute error {mean_absolute_error(true, answers):.6g}"
        )
        return (f"{score}{errors}",)
