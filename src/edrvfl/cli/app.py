"""The commands of `edrvfl` put together, and what becomes of their errors."""

from __future__ import annotations

import functools
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

import edrvfl
from edrvfl.bench.schedule import StudyError
from edrvfl.bench.store import StoreError

from . import data, measure, report, run, show, store

INTERRUPTED = 130  # what a shell calls a command that Ctrl-C ended

COMMANDS: dict[str, Callable[..., int]] = {
    "run": run.run,
    "status": store.show_status,
    "export": store.export_store,
    "import": store.import_files,
    "retry": store.retry_failures,
    "data": data.list_datasets,
    "report": report.write_page,
    "sensitivity": measure.measure_sensitivity,
    "timing": measure.measure_timing,
    "defaults": measure.measure_defaults,
}


def call(arguments: Sequence[str]) -> int:
    """Run the command of these arguments and return its exit status."""
    group = list(arguments) in ([], ["bench"])  # a command alone is a question
    asked = [*arguments, "--help"] if group else list(arguments)
    try:
        app(args=asked, prog_name="edrvfl")
        status = 0
    except SystemExit as end:  # typer ends every command so
        status = int(end.code or 0)
    except OSError as error:  # the help itself cannot be written
        status = _complain(error, 2)
    if status == INTERRUPTED:
        print("\nInterrupted. What was done is stored; go on with", file=sys.stderr)
        print(f"  {shlex.join(['edrvfl', *arguments])}", file=sys.stderr)
    return status


class SpacedLists(TyperCommand):
    """A command whose list options take `--name A B`, `--name A,B` and `--name A --name B` alike."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Write every list as the repeated option that typer knows, then let typer parse."""
        lists = {name for option in self.params if getattr(option, "multiple", False) for name in option.opts}
        return super().parse_args(ctx, list(repeat_options(args, lists)))


def repeat_options(arguments: Sequence[str], lists: set[str]) -> Iterator[str]:
    """Yield the arguments with each value of a list option behind an option of its own.

    Examples
    --------
    >>> list(repeat_options(["--methods", "A", "B,C", "--quiet"], {"--methods"}))
    ['--methods', 'A', '--methods', 'B', '--methods', 'C', '--quiet']
    """
    words = list(arguments)
    while words:
        word = words.pop(0)
        option, _, value = word.partition("=")
        if option not in lists:
            yield word
            continue
        values = [value or (words.pop(0) if words else "")]  # the first one may begin with a dash: -1
        while words and not words[0].startswith("-"):
            values.append(words.pop(0))
        parts = [part.strip() for part in ",".join(values).split(",") if part.strip()]
        yield from (text for part in parts for text in (option, part)) if parts else [option]


def _answer(command: Callable[..., int]) -> Callable[..., None]:
    """Wrap a command: its result becomes the exit status, its errors become one line."""

    @functools.wraps(command)
    def answer(**options: Any) -> None:
        try:
            status = command(**options)
        except KeyboardInterrupt:
            status = INTERRUPTED
        except BrokenPipeError:  # the reader, head or less, has seen enough
            status = 0
        except (StoreError, StudyError) as error:
            status = _complain(error, 1)
        except (ValueError, OSError) as error:  # a mistake in what was asked for
            status = _complain(error, 2)
        raise typer.Exit(status)

    return answer


def _complain(error: Exception, status: int) -> int:
    """Print an error in one line and return the exit status."""
    if isinstance(error, OSError) and error.filename is not None:
        show.say(f"edrvfl: {error.filename}: {error.strerror}")
    else:
        show.say(f"edrvfl: {error}")
    return status


app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, help=edrvfl.__doc__)
bench = typer.Typer(help="The study: methods on datasets by the paper's protocol.")
app.add_typer(bench, name="bench")
for _name, _command in COMMANDS.items():
    bench.command(_name, cls=SpacedLists)(_answer(_command))


@app.callback()
def _top(version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False) -> None:
    # `edrvfl.cli.main` answers --version before this module is imported; the option stands here for --help.
    pass
