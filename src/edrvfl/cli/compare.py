"""The command `edrvfl compare`."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer

import edrvfl
from edrvfl.bench.cells import texts_of
from edrvfl.bench.names import plural
from edrvfl.bench.tables import need_column, open_table

from . import options
from .fit import Columns, Training, doubt, said_warnings, target_words
from .models import naming
from .output import check_output
from .screen import put
from .screen import table as drawn

METHODS = "The others: linear model, RandomForest, HistGradientBoosting, LightGBM, XGBoost, CatBoost, ..."


# The signature is long because it is the list of the command's options.
def compare(
    table: options.Table,
    target: options.Target,
    methods: Annotated[list[str] | None, options.names(METHODS, "what is installed")] = None,
    task: options.TaskKind = "auto",
    groups: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="A column that says which rows belong together. It is no input."),
    ] = None,
    time: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="A column of times: splits go forward in it. It is no input."),
    ] = None,
    splits: Annotated[int, options.counted("Splits, each with its fits and test rows.")] = 5,
    seed: options.Seed = 0,
    picture: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw the differences: a PNG, SVG or PDF file.")
    ] = None,
    categories: options.Categories = None,
    ignore: options.Ignored = None,
    jobs: Annotated[int, options.counted("Fits at once, each on one thread.")] = 1,
    drop_missing_target: options.DropUnknown = False,
    separator: options.Separator = ",",
    force: options.Force = False,
    quiet: options.Silent = False,
) -> int:
    """Compare the portfolio with other packages on a table.

    Each is at its defaults and on the same splits.
    """
    if picture is not None:
        _check_picture(picture, force, table)
    opened = open_table(table, separator)
    need_column(opened, target, "--target")
    beside = [need_column(opened, name, f"--{o}") for o, name in (("groups", groups), ("time", time)) if name]
    columns = Columns.of(opened, target, categories, ignore, beside=beside)
    training = Training.of(opened, columns, task, drop_missing_target, quiet)
    frame, y, answers, classes = training.frame, training.y, training.answers, training.classes
    for name in columns.declared:
        frame[name] = _as_texts(frame[name])
    with naming(opened.source), said_warnings(quiet):
        compared = edrvfl.compare(
            frame,
            answers,
            methods=methods,
            task="classification" if classes else "regression",
            groups=groups,
            time=time,
            cv=splits,
            random_state=seed,
            n_jobs=jobs,
            verbose=False if quiet else "auto",
        )
    if not quiet:
        words = target_words(answers, classes) + doubt(y, classes, task)
        put(
            f"{opened.source}: {plural(len(frame), 'row')}{y.left_out_words()}; target {target!r}: {words}",
            "",
        )
    put(*compared.sentences(), "", drawn(*compared.rows()), "", compared.legend())
    if picture is not None:
        compared.plot().figure.savefig(picture)
    return 0


def _check_picture(picture: Path, force: bool, table: Path) -> None:
    """Refuse a picture that cannot be drawn before hours of fits."""
    if find_spec("matplotlib") is None:
        raise ValueError("--picture needs matplotlib: pip install 'edrvfl[demo]', or leave --picture out.")
    if picture.suffix.lower() not in (".png", ".svg", ".pdf"):
        raise ValueError(f"{picture}: the name of a picture ends in .png, .svg or .pdf.")
    check_output(picture, force, [table])
    os.environ.setdefault("MPLBACKEND", "Agg")  # no window is opened


def _as_texts(column: Any) -> Any:
    """Return numbers that are only names as texts, with gaps."""
    return (
        column.astype(object).where(column.notna(), None).map(lambda v: texts_of([v])[0], na_action="ignore")
    )
