"""The command `edrvfl predict`."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Annotated, Any

import numpy
import typer

from edrvfl.bench.names import plural, quoted
from edrvfl.bench.tables import column_names, open_table

from . import options
from .models import Matched, classifies, load_model, match, naming, note_unused
from .output import SCREEN, check_output, write_table
from .screen import put, share_bar


def predict(
    model: options.Model,
    table: options.Table,
    out: options.Out,
    keep: Annotated[
        list[str] | None,
        typer.Option(
            "--keep",
            "-k",
            metavar="NAME,...",
            help="Columns of the table to write before the predictions: ids.",
        ),
    ] = None,
    coverage: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            help="Write sets of classes too, or intervals of values, which hold the truth in this share of "
            "rows: 0.9 for 90 %.",
        ),
    ] = None,
    support: Annotated[
        bool,
        typer.Option(
            "--support",
            help="Write how far each row is from those that were fitted: 0 in their midst, 1 beyond them. "
            "Needs `edrvfl fit --remember`.",
        ),
    ] = False,
    separator: options.Separator = ",",
    force: options.Force = False,
    quiet: options.Silent = False,
) -> int:
    """Predict every row of a table that has the model's columns.

    Rows are read and written in blocks, so the table may be larger than memory. The output has a row for each
    row, in the same order: the prediction and, for classes, the probability of each class.
    """
    if out != SCREEN:
        check_output(out, force, [model, table])
    loaded = load_model(model)  # first, so that who swaps the two files is told of the model
    opened = open_table(table, separator)
    kept = column_names(opened, keep, "--keep")
    if support and getattr(loaded, "memory_", None) is None:
        raise ValueError(f"{model}: remembers no rows, which --support needs. Fit it with --remember.")
    matched = match(loaded, opened, None)
    note_unused(matched, kept, quiet)
    with share_bar("predicting", quiet) as report:
        found = answered(matched, kept, coverage, support, report)
        first = next(found)  # a table has rows; these tell how many values the model gives for one
        refuse_twice(kept, first[1])
        n_rows = 0
        with write_table(out, [*kept, *first[1]], separator) as write:
            for ids, answers in itertools.chain([first], found):
                write([*ids, *answers.values()])
                n_rows += len(next(iter(answers.values())))
    if not quiet and out != SCREEN:
        put(f"{out}: {plural(n_rows, 'prediction')}")
    return 0


def answered(
    matched: Matched,
    kept: Sequence[str],
    coverage: float | None,
    support: bool,
    report: Callable[[float], None],
) -> Iterator[tuple[list[Any], dict[str, numpy.ndarray]]]:
    """Return the kept columns and the columns of answers block by block, and tell how far it is."""
    for block in matched.table.blocks(list(matched.known), kept):
        frame = matched.frame(block)
        columns = output_columns(matched.model, matched.answers(frame))
        if coverage is not None:
            with naming(matched.table.source):
                columns |= covering_columns(matched.model, frame, coverage)
        if support:
            with naming(matched.table.source):
                columns["support"] = matched.model.support(frame)
        yield block.kept, columns
        report(block.done)


def refuse_twice(kept: Sequence[str], names: Collection[str]) -> None:
    """Refuse to write two columns of one name."""
    if twice := [name for name in kept if name in names]:
        raise ValueError(f"--keep names {quoted(twice)}, which is also the name of a prediction's column.")


def output_columns(model: Any, answers: numpy.ndarray) -> dict[str, numpy.ndarray]:
    """Return labels and probabilities, or values, by the names of the columns that are written."""
    if classifies(model):
        names = [f"probability_{label}" for label in model.classes_.tolist()]
        labels = model.classes_[answers.argmax(axis=1)]
        return {"prediction": labels} | dict(zip(names, answers.T, strict=True))
    return dict(zip(_numbered("prediction", answers.shape[1]), answers.T, strict=True))


def covering_columns(model: Any, frame: Any, coverage: float) -> dict[str, numpy.ndarray]:
    """Return for each class whether the set of a row holds it, or the ends of the interval of a value."""
    if classifies(model):
        names = [f"in_set_{label}" for label in model.classes_.tolist()]
        return dict(zip(names, model.predict_set(frame, coverage).T, strict=True))
    found: dict[str, numpy.ndarray] = {}
    for name, ends in zip(("lower", "upper"), model.predict_interval(frame, coverage), strict=True):
        values = numpy.asarray(ends).reshape(len(frame), -1)
        found |= dict(zip(_numbered(name, values.shape[1]), values.T, strict=True))
    return found


def _numbered(name: str, n_outputs: int) -> list[str]:
    return [name] if n_outputs == 1 else [f"{name}_{i + 1}" for i in range(n_outputs)]
