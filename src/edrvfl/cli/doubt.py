"""The command `edrvfl doubt`."""

from __future__ import annotations

from typing import Annotated, Any

import numpy

from edrvfl.bench.names import plural
from edrvfl.bench.tables import open_table

from . import options
from .fit import Columns, Training, make_estimator
from .models import loo_words
from .output import SCREEN, check_output, write_table
from .screen import put, say


# The signature is long because it is the list of the command's options.
def doubt(
    table: options.Table,
    target: options.Target,
    out: options.Out = SCREEN,
    most: Annotated[
        int | None, options.counted("How many rows to write, denied or not.", "those whose label is denied")
    ] = None,
    task: options.TaskKind = "auto",
    model: options.ModelKind = "portfolio",
    seed: options.Seed = 0,
    categories: options.Categories = None,
    ignore: options.Ignored = None,
    drop_missing_target: options.DropUnknown = False,
    separator: options.Separator = ",",
    force: options.Force = False,
    quiet: options.Silent = False,
) -> int:
    """List rows whose label a model without them denies.

    These are labels to check first. A model is fitted to the table, and answers each row by leave-one-out.
    The most doubtful rows come first.
    """
    if out != SCREEN:
        check_output(out, force, [table])
    opened = open_table(table, separator)
    columns = Columns.of(opened, target, categories, ignore)
    training = Training.of(opened, columns, task, drop_missing_target, quiet)
    estimator = make_estimator(model, training.classes, seed, columns.declared, remember=True)
    training.fit(estimator, quiet)
    found: dict[str, Any] = dict(estimator.doubtful_rows(n=most))
    n_rows = len(numpy.unique(found["row"]))
    found["row"] = training.y.rows[found["row"]] + 1  # as errors count: from 1 below the header
    with write_table(out, list(found), separator) as write:
        write(list(found.values()))
    if not quiet:
        words = f"{n_rows} of {plural(len(training.answers), 'row')} to check; {loo_words(estimator)}"
        (say if out == SCREEN else put)(f"{table if out == SCREEN else out}: {words}")
    return 0
