"""How a command ends: its result becomes the exit status, its errors become one line."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import typer

from .screen import say

INTERRUPTED = 130  # what a shell calls a command that Ctrl-C ended


def ending(command: Callable[..., int], failures: tuple[type[Exception], ...] = ()) -> Callable[..., None]:
    """Wrap a command. `failures` are errors that are nobody's misuse: they end it with 1 instead of 2."""

    @functools.wraps(command)
    def answer(**options: Any) -> None:
        try:
            status = command(**options)
        except KeyboardInterrupt:
            status = INTERRUPTED
        except BrokenPipeError:  # the reader, head or less, has seen enough
            status = 0
        except failures as error:
            status = complain(error, 1)
        except (ValueError, OSError) as error:  # a mistake in what was asked for
            status = complain(error, 2)
        raise typer.Exit(status)

    return answer


def complain(error: Exception, status: int) -> int:
    """Print an error in one line and return the exit status."""
    if isinstance(error, OSError) and error.filename is not None:
        say(f"edrvfl: {error.filename}: {error.strerror}")
    else:
        say(f"edrvfl: {error}")
    return status
