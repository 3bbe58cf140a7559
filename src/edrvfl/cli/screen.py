"""What every command prints with: words, tables and notes, on standard output and on standard error."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from rich import box, progress
from rich.console import Console
from rich.table import Table

Row = Sequence[str]

UNBOUNDED = 10_000  # columns of a file or a pipe, in which a line may be as long as it likes


def plain(text: str) -> str:
    r"""Return a text of somebody's file as one line that a terminal can only show, never obey.

    >>> print(plain("Åre, two\nlines\x1b[31m"))
    Åre, two\nlines\x1b[31m
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def duration(seconds: float) -> str:
    """Write a time in words.

    >>> duration(42), duration(150), duration(3 * 3600)
    ('42 s', '2.5 min', '3.0 h')
    """
    size, unit = next(((n, u) for n, u in ((3600, "h"), (60, "min")) if seconds >= 2 * n), (1, "s"))
    return f"{seconds / size:.1f} {unit}" if size > 1 else f"{seconds:.0f} s"


def put(*parts: str | Table) -> None:
    """Print lines and tables on standard output."""
    with _writing():
        for part in () if sys.stdout is None else parts:  # None: closed by the caller, who wants none of it
            print(_in_its_letters(plain(part) if isinstance(part, str) else _drawn(part), sys.stdout))


def pour(text: str) -> None:
    """Write a text on standard output as it is."""
    with _writing():
        print(text, end="")


@contextmanager
def _writing() -> Iterator[None]:
    """Write at once, so that a full disk or a reader who left is noticed here."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a name that this encoding lacks ends no command
    try:
        yield
        print(end="", flush=True)
    except OSError as error:
        drop_output()
        if isinstance(error, BrokenPipeError):
            raise
        raise OSError(error.errno, error.strerror, "standard output") from error


def drop_output() -> None:
    """Forget what is left to write after an error, which would come once more when Python ends."""
    with suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def say(text: str) -> None:
    """Print on standard error."""
    lines = "\n".join(map(plain, text.split("\n")))
    print(_in_its_letters(lines, sys.stderr), file=sys.stderr)


def _in_its_letters(text: str, stream: Any) -> str:
    """Return a text without the signs that a stream lacks: R^2 and +- for R² and ±."""
    try:
        text.encode(getattr(stream, "encoding", None) or "utf-8")
    except UnicodeEncodeError:
        return text.replace("²", "^2").replace("±", "+-")
    return text


def table(header: Row, rows: Iterable[Row]) -> Table:
    """Align rows of text in columns."""
    drawn = Table(
        *header,
        box=box.SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        padding=(0, 1, 0, 0),
        header_style="bold",
    )
    for column in drawn.columns:
        column.overflow = "fold"  # on a narrow terminal a text goes on in the next line; nothing is cut off
    for row in rows:
        drawn.add_row(*map(plain, row))
    return drawn


def _drawn(table: Table) -> str:
    """Draw a table as wide as the terminal, or as wide as it likes where there is none."""
    width = None if sys.stdout.isatty() else UNBOUNDED
    # Names of datasets are a user's own: square brackets in them are no markup.
    console = Console(file=sys.stdout, width=width, markup=False, highlight=False, emoji=False)
    with console.capture() as captured:
        console.print(table)
    return "\n".join(line.rstrip() for line in captured.get().splitlines())


def progress_bar(
    *counts: progress.ProgressColumn, transient: bool = False, hidden: bool = False
) -> progress.Progress:
    """Make a bar on standard error, with what counts behind it; it is shown on a terminal alone."""
    console = Console(stderr=True, markup=False, highlight=False, emoji=False)
    text, line = progress.TextColumn("{task.description}", markup=False), progress.BarColumn(bar_width=None)
    columns = (text, line, *counts, progress.TimeRemainingColumn())
    hidden = hidden or not console.is_interactive
    return progress.Progress(*columns, console=console, transient=transient, disable=hidden)


@contextmanager
def share_bar(text: str, quiet: bool) -> Iterator[Callable[[float], None]]:
    """Give a function that is told how much is done, from 0 to 1; a terminal shows it as a bar."""
    with progress_bar(progress.TaskProgressColumn(), transient=True, hidden=quiet) as bar:
        task = bar.add_task(text, total=1.0)
        yield lambda done: bar.update(task, completed=done)


def size_words(n_bytes: int) -> str:
    """Write the size of a file in words.

    >>> size_words(900), size_words(253_000), size_words(2_400_000)
    ('0.9 kB', '253.0 kB', '2.4 MB')
    """
    return f"{n_bytes / 1e6:.1f} MB" if n_bytes >= 1e6 else f"{n_bytes / 1e3:.1f} kB"
