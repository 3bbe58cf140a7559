"""The command `edrvfl` put together: models of one's own tables, and the study."""

from __future__ import annotations

import functools
import shlex
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import typer

import edrvfl

from .ending import INTERRUPTED, complain, ending
from .evaluate import evaluate
from .fit import fit
from .inspect import inspect
from .predict import predict
from .screen import say

MODEL_COMMANDS: dict[str, Callable[..., int]] = {
    "fit": fit,
    "predict": predict,
    "evaluate": evaluate,
    "inspect": inspect,
}


def call(arguments: Sequence[str]) -> int:
    """Run the command of these arguments and return its exit status."""
    asked, study = list(arguments), list(arguments[:1]) == ["bench"]
    if asked in ([], ["bench"]):  # a command alone is a question
        asked.append("--help")
    try:
        _app(study)(args=asked, prog_name="edrvfl")
        status = 0
    except SystemExit as end:  # typer ends every command so
        status = int(end.code or 0)
    except OSError as error:  # the help itself cannot be written
        status = complain(error, 2)
    if status == INTERRUPTED:
        if study:
            say(f"\nInterrupted. What was done is stored; go on with\n  {shlex.join(['edrvfl', *arguments])}")
        else:
            say("\nInterrupted. Nothing was written.")
    return status


@functools.cache
def _app(study: bool) -> Callable[..., Any]:
    """Return the commands. Those of the study need more packages, so they are imported for their users."""
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, help=edrvfl.__doc__)
    app.callback()(_top)
    for name, command in MODEL_COMMANDS.items():
        app.command(name)(ending(command))
    bench = typer.Typer(help="The study: methods on datasets by the paper's protocol.")
    app.add_typer(bench, name="bench")
    if study:
        from .study import add_commands

        add_commands(bench)
    return typer.main.get_command(app)


def _top(version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False) -> None:
    # `edrvfl.cli.main` answers --version before this module is imported; the option stands here for --help.
    pass
