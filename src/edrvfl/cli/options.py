"""Options that several commands share, and the checks of single values."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from edrvfl.bench.targets import FEW

STORE = Path("study.db")

Store = Annotated[Path, typer.Option(metavar="FILE", help="The file that remembers what is done.")]
Folder = Annotated[
    Path | None,
    typer.Option(
        metavar="FOLDER",
        help="Where the paper's datasets are.",
        show_default="the environment variable EDRVFL_DATA, or else a download",
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", help="Print the result alone.")]


# Typer calls these on what was typed and on the default alike, so that a default may be a number already.


def count(text: str | int) -> int:
    """Read a whole number of at least 1."""
    number = int(text) if str(text).strip().isdecimal() else 0
    if number < 1:
        raise typer.BadParameter(f"expected a whole number of at least 1, got {text!r}")
    return number


def number(text: str | float) -> float:
    """Read a number; whether it is a sensible one is for the study to say."""
    try:
        return float(text)
    except ValueError:
        raise typer.BadParameter(f"expected a number, got {text!r}") from None


def counted(help: str, shown: str | bool = True) -> Any:
    """Make an option that is a whole number of at least 1. `shown` stands for its default, if not itself."""
    return typer.Option(metavar="N", parser=count, help=help, show_default=shown)


def numbers(metavar: str, help: str) -> Any:
    """Make an option that is a list of numbers."""
    return typer.Option(metavar=metavar, parser=number, help=help)


def names(help: str | None = None, shown: str | bool = True) -> Any:
    """Make an option that is a list of names. `shown` stands for its default, if not itself."""
    return typer.Option(metavar="NAME,...", help=help, show_default=shown)


def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


CUDA_JOBS = 8  # more processes than that only wait for each other on one GPU

Jobs = Annotated[
    int | None, counted("Processes to work in.", f"one a core, here {cores()}; with cuda at most {CUDA_JOBS}")
]


Task = Literal["auto", "classification", "regression"]

Target = Annotated[str, typer.Option("--target", "-t", metavar="NAME", help="The column to predict.")]
TaskKind = Annotated[
    Task,
    typer.Option(
        help="Whether the target holds classes or amounts. auto takes text and up to "
        f"{FEW} different whole numbers for classes."
    ),
]
ModelKind = Annotated[
    Literal["portfolio", "network"],
    typer.Option(
        help="portfolio fits several models that vote; network fits one, which is smaller and quicker."
    ),
]
Seed = Annotated[int, typer.Option(min=0, max=2**31 - 2, help="The number that decides all random draws.")]
Categories = Annotated[list[str] | None, names("Columns whose numbers are only names, such as codes.")]
Ignored = Annotated[list[str] | None, names("Columns that the model must not see, such as row numbers.")]
Out = Annotated[
    Path,
    typer.Option(
        "--out",
        "-o",
        metavar="FILE",
        help="Where to write: Parquet if it ends so, or else CSV; - is standard output.",
    ),
]


def separator(text: str) -> str:
    """Read the mark between the cells of a CSV file."""
    found = {"tab": "\t", "\\t": "\t"}.get(text, text)
    if len(found) != 1 or found in '"\r\n':
        raise typer.BadParameter(f"expected one character or the word tab, got {text!r}")
    return found


Model = Annotated[
    Path, typer.Argument(metavar="MODEL", help="A file that `edrvfl fit` or `model.save` wrote.")
]
Table = Annotated[
    Path,
    typer.Argument(
        metavar="TABLE", help="A CSV or Parquet file: a header, and rows below it; - is standard input."
    ),
]
Separator = Annotated[
    str,
    typer.Option(
        "--separator",
        "-s",
        metavar="MARK",
        parser=separator,
        help="What stands between the cells of a CSV file, for instance ; or the word tab.",
    ),
]
Force = Annotated[bool, typer.Option("--force", "-f", help="Replace the output file if it exists.")]
Silent = Annotated[bool, typer.Option("--quiet", "-q", help="Print no notes and no progress.")]
DropUnknown = Annotated[
    bool, typer.Option("--drop-missing-target", help="Leave out rows in which the target is missing.")
]
