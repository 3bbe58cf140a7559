"""The command `edrvfl predict`."""

from __future__ import annotations

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
    table: Annotated[Path, typer.Argument(metavar="TABLE", help="CSV or Parquet, with the model's columns.")],
    out: Annotated[Path, typer.Option(metavar="FILE", help="Where to write: CSV, or Parquet by its ending.")],
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
    n_rows = 0
    with (
        share_bar("predicting", quiet) as report,
        write_table(out, output_names(matched), separator) as write,
    ):
        for block in matched.table.blocks(list(matched.known)):
            columns = output_columns(matched.model, matched.answers(block))
            write(columns)
            n_rows += len(columns[0])
            report(block.done)
    if not quiet:
        put(f"{out}: {plural(n_rows, 'prediction')}")
    return 0


def output_names(matched: Matched) -> list[str]:
    """Return the names of the columns that are written."""
    model = matched.model
    if classifies(model):
        return ["prediction", *(f"probability_{label}" for label in model.classes_.tolist())]
    k = n_outputs(model)
    return ["prediction"] if k == 1 else [f"prediction_{i + 1}" for i in range(k)]


def output_columns(model: Any, answers: numpy.ndarray) -> list[numpy.ndarray]:
    """Return labels and probabilities, or values, column by column."""
    if classifies(model):
        return [model.classes_[answers.argmax(axis=1)], *answers.T]
    return list(answers.T)


def n_outputs(model: Any) -> int:
    """Return how many values a regressor gives for a row."""
    if hasattr(model, "portfolio_"):
        voter = model.portfolio_.voters[0]
        return int((voter.readouts[0] if hasattr(voter, "readouts") else voter.voter.alpha).shape[1])
    if hasattr(model, "network_"):
        return int(model.network_.readouts[0].shape[1])
    return int(model.model_.voter.alpha.shape[1])
