"""The commands of `edrvfl bench` put together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from edrvfl.bench.extend import load_plugins
from edrvfl.bench.schedule import StudyError
from edrvfl.bench.store import StoreError

from . import data, measure, run, store
from .ending import ending

COMMANDS: dict[str, Callable[..., int]] = {
    "run": run.run,
    "status": store.show_status,
    "export": store.export_store,
    "import": store.import_files,
    "compare": store.compare_runs,
    "retry": store.retry_failures,
    "data": data.list_datasets,
    "report": store.write_page,
    "sensitivity": measure.measure_sensitivity,
    "timing": measure.measure_timing,
    "defaults": measure.measure_defaults,
}


class SpacedLists(TyperCommand):
    """A command whose list options take `--name A B`, `--name A,B` and `--name A --name B` alike."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Write every list as the repeated option that typer knows, then let typer parse."""
        lists = {name for option in self.params if getattr(option, "multiple", False) for name in option.opts}
        return super().parse_args(ctx, list(repeat_options(args, lists)))


def repeat_options(arguments: Sequence[str], lists: set[str]) -> Iterator[str]:
    """Yield the arguments with each value of a list option behind an option of its own.

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


def run_plugins(
    plugin: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="A file of Python that adds methods, datasets or metrics."),
    ] = None,
) -> None:
    """The study: methods on datasets by the paper's protocol."""
    if status := ending(_load)(files=plugin or []):
        raise typer.Exit(status)


def _load(files: list[Path]) -> int:
    load_plugins(files)
    return 0


def add_commands(bench: typer.Typer) -> None:
    """Put the commands of the study into their group."""
    bench.callback()(run_plugins)
    for name, command in COMMANDS.items():
        bench.command(name, cls=SpacedLists)(ending(command, (StoreError, StudyError)))
