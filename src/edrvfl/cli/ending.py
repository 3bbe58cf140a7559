"""How a command ends: its result becomes the exit status, its errors become one line."""

from __future__ import annotations

import functools
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from .screen import plain, say


def ending(command: Callable[..., int], failures: tuple[type[Exception], ...] = ()) -> Callable[..., int]:
    """Wrap a command. `failures` are errors that are nobody's misuse: they end it with 1 instead of 2."""

    @functools.wraps(command)
    def answer(**options: Any) -> int:
        try:
            return command(**options)
        except KeyboardInterrupt as stop:  # what a shell calls a command that a signal ended
            return 128 + (stop.args[0] if stop.args else signal.SIGINT)
        except BrokenPipeError:  # the reader, head or less, has seen enough
            return 0
        except failures as error:
            return complain(error, 1)
        except (ValueError, OSError) as error:  # a mistake in what was asked for
            return complain(error, 2)

    return answer


def complain(error: Exception, status: int) -> int:
    """Print an error in one line and return the exit status."""
    what = str(error)
    if isinstance(error, OSError) and error.filename is not None:
        what = f"{error.filename}: {error.strerror}"
    say(plain(f"edrvfl: {what}"))
    return status


@contextmanager
def interrupted_by_signals() -> Iterator[None]:
    """Let SIGTERM and SIGHUP end a command as Ctrl-C does, so that it leaves no half-written files."""

    def interrupt(number: int, frame: object) -> None:  # noqa: ARG001
        raise KeyboardInterrupt(number)

    wanted = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    if threading.current_thread() is not threading.main_thread():  # others cannot be told
        wanted = []
    # what is ignored stays so: nohup wants that
    before = {n: signal.signal(n, interrupt) for n in wanted if signal.getsignal(n) == signal.SIG_DFL}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
