"""The command `edrvfl` put together: models of one's own tables, and the study."""

from __future__ import annotations

import functools
import shlex
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Annotated, Any

import typer

from .compare import compare
from .doubt import doubt
from .ending import complain, ending, interrupted_by_signals
from .evaluate import evaluate
from .fit import fit
from .inspect import inspect
from .predict import predict
from .screen import drop_output, say

HELP = "Classification and regression of tables as they come. Begin with `edrvfl fit --help`."
SIGNALLED = 128  # exit statuses above it are of commands that a signal ended
MODEL_COMMANDS: dict[str, Callable[..., int]] = {
    "fit": fit,
    "predict": predict,
    "evaluate": evaluate,
    "doubt": doubt,
    "inspect": inspect,
    "compare": compare,
}
# What typer raises for bad options: a class that it does not export, above one that it does.
OptionError: Any = next(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException")


def call(arguments: Sequence[str], study: bool) -> int:
    """Run the command of these arguments and return its exit status."""
    asked = list(arguments)
    if asked in ([], ["bench"]):  # a command alone is a question
        asked.append("--help")
    try:
        with nullcontext() if study else interrupted_by_signals():
            status = int(_app(study)(args=asked, prog_name="edrvfl", standalone_mode=False) or 0)
    except OptionError as error:
        context = getattr(error, "ctx", None)  # where none is told, the command's name was right
        command = context.command_path if context else " ".join(["edrvfl", *asked[: 1 + study]])
        said = error.format_message().replace("Value error, ", "").rstrip(".")
        stop = "" if said.endswith("?") else "."
        status = complain(ValueError(f"{said}{stop} See `{command} --help`."), 2)
    except SystemExit as end:  # after it has completed a command, or when nobody reads the help
        status = int(end.code or 0)
    except OSError as error:  # the help itself cannot be written
        drop_output()
        status = complain(error, 2)
    if status > SIGNALLED:
        if study:
            say(f"\nInterrupted. What was done is stored; go on with\n  {shlex.join(['edrvfl', *arguments])}")
        else:
            say("\nInterrupted. Nothing was written.")
    return status


@functools.cache
def _app(study: bool) -> Callable[..., Any]:
    """Return the commands. Those of the study need more packages, so they are imported for their users."""
    app = typer.Typer(pretty_exceptions_enable=False, rich_markup_mode=None, help=HELP)
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
