"""How many BLAS threads a computation gets.

A product that takes a millisecond gains nothing from a second thread, and on a busy machine it waits for a
thread that gets no core: 4500 x 12 rows and the default network took 18 s on two busy cores with the threads
that BLAS takes by itself, and 5 s with one. On 16 idle cores a fit of 5000 x 20 rows with 512 neurons takes
2.3 times as long with 16 threads as with one, and 0.6 times as long with four. So work decides.

A factorisation waits for its threads at every step, so it suffers most: with two processes on two cores a
Cholesky factor of 200 columns takes 250 ms on two threads, and 0.3 ms on one.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import cache
from typing import Any

import joblib
from threadpoolctl import OpenBLASController, ThreadpoolController

from .arrays import Array, row_blocks

WORK_OF_A_THREAD = 3.2e7  # multiplications of one matrix product that keep a thread busy (measured)
PRODUCTS = 10  # so many of them, one after another, are worth a second thread: a tenth of a second
LARGE_SYSTEM = 400  # columns; a smaller one takes milliseconds, whatever the products around it are worth


@cache
def _blas() -> ThreadpoolController:
    return ThreadpoolController().select(user_api="blas")


def blas_threads() -> int:
    """Return how many threads BLAS may use: as many as the process has cores, or fewer if a limit is set."""
    counts = [library.num_threads for library in _blas().lib_controllers]
    return max(1, min([joblib.cpu_count(), *counts]))


@contextmanager
def suitable_threads(X: Array, width: int, n_hidden: int) -> Iterator[None]:
    """Use no more BLAS threads than the largest product keeps busy: a block of rows times the hidden weights.

    `width` is how many numbers are held for a row. Few rows, however wide, get one thread.
    """
    m = X.shape[0]
    block = next(row_blocks(X, m, width), slice(0, 0))
    rows = min(block.stop, m / PRODUCTS)
    with _usual.at_most(max(1, int(rows * width * n_hidden // WORK_OF_A_THREAD))):
        yield


@contextmanager
def threads_of_system(n_columns: int) -> Iterator[None]:
    """Use one BLAS thread to factorise a system that is not large."""
    with one_blas_thread() if n_columns < LARGE_SYSTEM else nullcontext():
        yield


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Use one BLAS thread for each product, where several Python threads compute at once.

    A computation around this one may have set a higher limit, which comes back afterwards.
    """
    with _usual.at_most(1), _alone.at_most(1):
        yield


class _Limit:
    """A limit of BLAS threads that several computations share.

    It counts for the whole process: the first computation sets it and the last one lifts it, so that several
    Python threads do not undo each other's.
    """

    _lock = threading.Lock()  # one for all limits

    def __init__(self) -> None:
        self._running = 0
        self._set: Any = None  # the limit that is set, while any computation runs

    @contextmanager
    def at_most(self, threads: int) -> Iterator[None]:
        """Limit the BLAS threads of a product."""
        with self._lock:
            # a limit that is lower already, set by the user or by joblib, stays
            if self._running == 0 and any(lib.num_threads > threads for lib in _blas().lib_controllers):
                self._set = _blas().limit(limits=threads)
                _release_control()
            self._running += 1
        try:
            yield
        finally:
            with self._lock:
                self._running -= 1
                if self._running == 0 and self._set is not None:
                    self._set.restore_original_limits()
                    _release_control()
                    self._set = None


_usual, _alone = _Limit(), _Limit()


def _release_control() -> None:
    """Let every Python thread change the limit again.

    From threadpoolctl 3.8 on, the Python thread that sets a limit of OpenBLAS is the only one that can change
    it: the last computation could not lift the limit that the first one had set in another Python thread.
    """
    release = getattr(OpenBLASController, "clear_controlling_thread", None)
    if release is not None:
        release()
