"""The command `edrvfl predict`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any

import numpy
import typer

from . import options
from .models import Matched, classifies, load_model, match, note_unused
from .output import check_output, write_table
from .screen import plural, put, share_bar
from .tables import open_table


def predict(
    model: options.Model,
    table: Annotated[
        Path, typer.Argument(metavar="TABLE", help="A CSV or Parquet file that has the model's columns.")
    ],
    out: Annotated[
        Path, typer.Option(metavar="FILE", help="Where to write: Parquet if it ends so, or else CSV.")
    ],
    separator: options.Separator = ",",
    force: options.Force = False,
    quiet: options.Silent = False,
) -> int:
    """Predict every row of a table. Rows are read and written in blocks, so it may be larger than memory.

    The output has a row for each row, in the same order: the prediction and, for classes, the probability of
    each class.
    """
    check_output(out, force, [model, table])
    matched = match(load_model(model), open_table(table, separator), None)
    note_unused(matched, None, quiet)
    with share_bar("predicting", quiet) as report:
        found = answered(matched, report)
        first = next(found)  # a table has rows; these tell how many values the model gives for one
        n_rows = len(first)
        with write_table(out, output_names(matched.model, first.shape[1]), separator) as write:
            write(output_columns(matched.model, first))
            for answers in found:
                write(output_columns(matched.model, answers))
                n_rows += len(answers)
    if not quiet:
        put(f"{out}: {plural(n_rows, 'prediction')}")
    return 0


def answered(matched: Matched, report: Callable[[float], None]) -> Iterator[numpy.ndarray]:
    """Answer block by block, and tell how far it is."""
    for block in matched.table.blocks(list(matched.known)):
        yield matched.answers(block)
        report(block.done)


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
