"""One pass over the blocks of a source: they are read ahead, and several threads compute."""

from __future__ import annotations

import contextvars
from collections import deque
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import closing, nullcontext
from typing import Any

from sklearn import config_context, get_config

from .._seam.threads import one_blas_thread
from .parts import Part, TreeSum


def sum_over(
    open_source: Callable[[], Iterator[Part]],
    function: Callable[[Part], Any],
    heard: Callable[[int], None] | None,
    threads: int,
) -> Any:
    """Return the sum of function(part) over the parts that an iterator gives.

    The sum is made in the order of the parts, whoever is done first: see `TreeSum`. Whatever happens, no
    thread is left when this ends.
    """
    found = TreeSum()
    with (
        one_blas_thread() if threads > 1 else nullcontext(),
        closing(_results(open_source, function, threads)) as results,
    ):
        for done, value in enumerate(results, start=1):
            found.add(value)
            if heard is not None:
                heard(done)
    return found.total()


def _results(
    open_source: Callable[[], Iterator[Part]], function: Callable[[Part], Any], threads: int
) -> Generator[Any, None, None]:
    """Yield function(part), part after part; at most `threads` + 2 parts are in memory.

    One thread reads, always the same one: some files and databases belong to the thread that opened them.
    """
    with ThreadPoolExecutor(1) as reader, ThreadPoolExecutor(threads) as workers:
        parts = _ask(reader, open_source).result()
        try:
            waiting: deque[Future[Any]] = deque()
            coming = _ask(reader, next, parts, None)
            while (failure := coming.exception()) is None and coming.result() is not None:
                waiting.append(_ask(workers, function, coming.result()))
                coming = _ask(reader, next, parts, None)
                if len(waiting) > threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
            if failure is not None:  # after those of the parts before
                raise failure
        finally:
            workers.shutdown(cancel_futures=True)
            _ask(reader, getattr(parts, "close", int)).result()


def _ask(pool: Executor, function: Callable[..., Any], *args: Any) -> Future[Any]:
    """Call a function in another thread, with the settings of this one: NumPy's and scikit-learn's."""
    config = get_config()

    def call() -> Any:
        with config_context(**config):
            return function(*args)

    return pool.submit(contextvars.copy_context().run, call)
