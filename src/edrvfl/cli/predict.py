"""The command `edrvfl predict`."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy
import pandas
import typer

from . import options
from .models import Matched, classifies, load_model, match, note_unused
from .output import check_output, write_table
from .screen import plural, put, share_bar
from .tables import Column, column_names, names_of, open_table


def predict(
    model: options.Model,
    table: Annotated[
        Path, typer.Argument(metavar="TABLE", help="A CSV or Parquet file that has the model's columns.")
    ],
    out: Annotated[
        Path, typer.Option(metavar="FILE", help="Where to write: Parquet if it ends so, or else CSV.")
    ],
    keep: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME,...", help="Columns of the table to write before the predictions: ids."),
    ] = None,
    separator: options.Separator = ",",
    force: options.Force = False,
    quiet: options.Silent = False,
) -> int:
    """Predict every row of a table. Rows are read and written in blocks, so it may be larger than memory.

    The output has a row for each row, in the same order: the prediction and, for classes, the probability of
    each class.
    """
    check_output(out, force, [model, table])
    opened = open_table(table, separator)
    kept = column_names(opened, keep, "--keep")
    matched = match(load_model(model), opened, None)
    note_unused(matched, kept, quiet)
    with share_bar("predicting", quiet) as report:
        found = answered(matched, kept, report)
        first = next(found)  # a table has rows; these tell how many values the model gives for one
        names = output_names(matched.model, first[1].shape[1])
        refuse_twice(kept, names)
        n_rows = 0
        with write_table(out, [*kept, *names], separator) as write:
            for ids, answers in itertools.chain([first], found):
                write([*ids, *output_columns(matched.model, answers)])
                n_rows += len(answers)
    if not quiet:
        put(f"{out}: {plural(n_rows, 'prediction')}")
    return 0


def answered(
    matched: Matched, kept: Sequence[str], report: Callable[[float], None]
) -> Iterator[tuple[list[numpy.ndarray], numpy.ndarray]]:
    """Return the kept columns and the answers block by block, and tell how far it is."""
    for block in matched.table.blocks(list(dict.fromkeys([*matched.known, *kept]))):
        yield [as_they_stand(block.columns[name]) for name in kept], matched.answers(block)
        report(block.done)


def as_they_stand(column: Column) -> numpy.ndarray:
    """Return the cells of a column; None, which is written as an empty cell, where a Series has a gap."""
    cells = pandas.Series(column, dtype=object)
    return cells.where(cells.notna(), None).to_numpy()


def refuse_twice(kept: Sequence[str], names: Sequence[str]) -> None:
    """Refuse to write two columns of one name."""
    if twice := [name for name in kept if name in names]:
        raise ValueError(f"--keep names {names_of(twice)}, which is also the name of a prediction's column.")


def output_names(model: Any, n_outputs: int) -> list[str]:
    """Return the names of the columns that are written."""
    if classifies(model):
        return ["prediction", *(f"probability_{label}" for label in model.classes_.tolist())]
    return ["prediction"] if n_outputs == 1 else [f"prediction_{i + 1}" for i in range(n_outputs)]


def output_columns(model: Any, answers: numpy.ndarray) -> list[numpy.ndarray]:
    """Return labels and probabilities, or values, column by column."""
    if classifies(model):
        return [model.classes_[answers.argmax(axis=1)], *answers.T]
    return list(answers.T)
