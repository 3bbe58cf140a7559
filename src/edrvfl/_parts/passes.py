"""One pass over the blocks of a source: they are read ahead, and several threads compute."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from queue import SimpleQueue
from typing import Any

from sklearn import config_context, get_config

from .._seam.threads import one_blas_thread
from .parts import Part, add

# Blocks that are read before anybody has time for them: the next one, and the one that is being read.
AHEAD = 2


def sum_over(
    open_source: Callable[[], Iterator[Part]],
    function: Callable[[Part], Any],
    heard: Callable[[int], None] | None,
    threads: int,
) -> Any:
    """Return the sum of function(part) over the parts that an iterator gives.

    Part i is added to sum i mod t by thread i mod t, and at the end the t sums are added in order: the result
    depends on the number of threads, by rounding, and on nothing else.
    """
    with one_blas_thread() if threads > 1 else nullcontext():
        return _Pass(open_source, function, threads).run(heard)


class _Pass:
    """A thread that reads, and threads that compute, of which the calling one is the first."""

    def __init__(
        self, open_source: Callable[[], Iterator[Part]], function: Callable[[Part], Any], threads: int
    ) -> None:
        self._open_source, self._function = open_source, function
        self._waiting: list[SimpleQueue[Part | None]] = [SimpleQueue() for _ in range(threads)]
        self._sums: list[Any] = [None] * threads
        self._room = threading.Semaphore(threads + AHEAD)  # for blocks in memory
        self._stop = threading.Event()
        self._done, self._told = 0, 0
        self._count = threading.Lock()
        self._failures: list[tuple[int, BaseException]] = []  # with the part's number

    def run(self, heard: Callable[[int], None] | None) -> Any:
        """Sum over all parts. Whatever happens, no thread is left when this ends."""
        numbers = range(1, len(self._waiting))
        helpers = [self._thread(self._work, number) for number in numbers]
        reader = self._thread(self._read)
        started = []
        try:
            for thread in (reader, *helpers):
                thread.start()
                started.append(thread)
            self._work(0, heard)
            for thread in helpers:
                thread.join()
        finally:
            self._stop.set()
            self._room.release()  # the reader may wait for it
            for thread in started:
                thread.join()
        if self._failures:
            # an interrupt first, then the error of the first part
            raise min(self._failures, key=lambda failure: (isinstance(failure[1], Exception), failure[0]))[1]
        if heard is not None and self._told < self._done:  # others were done after this thread
            heard(self._done)
        total = None
        for found in self._sums:
            total = add(total, found)
        return total

    def _thread(self, target: Callable[..., None], *args: Any) -> threading.Thread:
        """Return a thread with the settings of this one: NumPy's of overflows, and scikit-learn's."""
        context, config = contextvars.copy_context(), get_config()

        def work() -> None:
            with config_context(**config):
                target(*args)

        return threading.Thread(target=context.run, args=(work,), daemon=True)

    def _read(self) -> None:
        """Give each thread its parts, in order, and then None."""
        number, parts = 0, None
        try:
            parts = self._open_source()
            while True:
                self._room.acquire()
                if self._stop.is_set():
                    break
                part = next(parts, None)
                if part is None:
                    break
                self._waiting[number % len(self._waiting)].put(part)
                del part  # the thread that computes is to be the last to hold it
                number += 1
        except BaseException as error:
            self._fail(number, error)
        finally:
            if (close := getattr(parts, "close", None)) is not None:
                close()
            for waiting in self._waiting:
                waiting.put(None)

    def _work(self, number: int, heard: Callable[[int], None] | None = None) -> None:
        """Compute every t-th part and add up."""
        at = number
        try:
            while (part := self._waiting[number].get()) is not None and not self._stop.is_set():
                at = part.number
                value = self._function(part)
                del part
                self._room.release()
                self._sums[number] = add(self._sums[number], value)
                del value
                with self._count:
                    self._done += 1
                    done = self._done
                if heard is not None:
                    self._told = done
                    heard(done)
        except BaseException as error:
            self._fail(at, error)

    def _fail(self, number: int, error: BaseException) -> None:
        self._failures.append((number, error))
        self._stop.set()
        self._room.release()
