"""Who does the units of the cells: this process, several on this machine, or a Dask cluster.

One function, `run`, hides which. Every unit is done on one BLAS thread, since thread counts change last bits,
so the records are the same whoever does the work, and however often it is killed and taken up again.
"""

from __future__ import annotations

import importlib
import json
import multiprocessing
import os
import signal
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from .datasets import Dataset
from .methods import Method
from .protocol import Cell, RunRecord, compute, describe, expected_units, make_cell, pending, record
from .store import LEASE_SECONDS, Store, StoreError, Worker

POLL_SECONDS = 0.2  # how often a worker with nothing to do looks again
BEAT_SECONDS = 1.0  # how often a worker looks whether its parent lives
REPORT_SECONDS = 1.0
DEATHS = 3  # a unit over which so many processes died is given up
THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")


class StudyError(RuntimeError):
    """A run that cannot go on; what was done is stored."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run is, and the records that are new since the last report."""

    cells: int
    cells_done: int
    units: int  # at most; the true number is known when all cells are done
    units_done: int
    new: tuple[RunRecord, ...]


def grid(
    methods: Iterable[Method], datasets: Iterable[Dataset], trials: int, seeds: int, device: str = "cpu"
) -> Iterator[Cell]:
    """Every method on every dataset, dataset by dataset."""
    methods = tuple(methods)
    for dataset in datasets:
        for method in methods:
            yield make_cell(method, dataset, trials, seeds, device)


def run(
    cells: Iterable[Cell],
    store: str | Path,
    *,
    jobs: int = 1,
    scheduler: str | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> list[RunRecord]:
    """Bring cells to their records, doing only what the store does not hold yet.

    Parameters
    ----------
    cells : iterable of Cell
        What to do; records come back in this order.

    store : path
        The SQLite file; other processes may work on it at the same time, and they share the work.

    jobs : int, default=1
        1 works in this process, more in as many processes of their own.

    scheduler : str, default=None
        Address of a Dask scheduler: its workers compute, this process alone reads and writes the store.

    progress : callable, default=None
        Called about once a second with a `Progress`, and once at the end.
    """
    cells = tuple({cell.key: cell for cell in cells}.values())
    if jobs < 1:
        raise ValueError(f"jobs must be at least 1, got {jobs}.")
    with Store(store) as opened:
        opened.add_cells({cell.key: describe(cell) for cell in cells})
    with _reporting(cells, store, progress):
        if scheduler is not None:
            _on_dask(cells, store, scheduler)
        elif jobs == 1:
            _work(cells, store)
        else:
            _in_processes(cells, store, jobs)
    with Store(store) as opened:
        records = [opened.record(cell.key) for cell in cells]
    return [found for found in records if found is not None]


# --- one worker --------------------------------------------------------------------------------------


class _Board:
    """The cells that are still open, as one worker sees them."""

    def __init__(self, cells: Iterable[Cell], store: Store, worker: Worker) -> None:
        closed = store.finished()
        self.open = {cell.key: cell for cell in cells if cell.key not in closed}
        self._store, self._worker = store, worker
        self._done: dict[str, dict[str, Any]] = {key: {} for key in self.open}
        self._marks = dict.fromkeys(self.open, 0)

    def take(self) -> tuple[Cell, str] | None:
        """Lease the next unit, closing the cells that have all theirs; None if others hold what is left."""
        for key, cell in list(self.open.items()):
            new, self._marks[key] = self._store.values(key, self._marks[key])
            self._done[key] |= new
            units = pending(cell, self._done[key])
            if not units:
                self._store.add_record(record(cell, self._done.pop(key)))
                del self.open[key]
            elif (unit := self._store.take(key, units, self._worker)) is not None:
                return cell, unit
        return None


def _work(cells: Iterable[Cell], path: str | Path, parent: Any = None) -> None:
    """Do units until every cell has its record, or until the parent process, if there is one, has ended."""
    with Store(path) as store, _leasing(store, parent) as worker, threadpool_limits(1):
        board = _Board(cells, store, worker)
        while board.open and (parent is None or parent.is_alive()):
            if (task := board.take()) is not None:
                cell, unit = task
                store.finish(cell.key, unit, attempt(cell, unit))
            elif board.open:
                time.sleep(POLL_SECONDS)


def attempt(cell: Cell, unit: str) -> dict[str, Any]:
    """A unit's value; of a unit that fails, its error and the end of its traceback."""
    try:
        value = compute(cell, unit)
        json.dumps(value, allow_nan=False)  # a figure that is not finite is a failure
        return value
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}", "traceback": traceback.format_exc(limit=-3)}


@contextmanager
def _leasing(store: Store, parent: Any = None) -> Iterator[Worker]:
    """A worker of this process, whose leases are renewed while it lives and given back when it leaves."""
    worker, over = Worker.here(), threading.Event()

    def beat() -> None:
        renewed = time.monotonic()
        with Store(store.path) as own:
            while not over.wait(BEAT_SECONDS):
                if parent is not None and not parent.is_alive():
                    os._exit(1)  # the run was killed: its workers end with it, even in the middle of a unit
                if time.monotonic() - renewed > LEASE_SECONDS / 6:
                    renewed = time.monotonic()
                    with suppress(StoreError):  # trouble is the worker's to report
                        own.renew(worker)

    heart = threading.Thread(target=beat, daemon=True)
    heart.start()
    try:
        yield worker
    finally:
        over.set()
        heart.join()
        with suppress(StoreError):
            store.release(worker)


# --- several processes -------------------------------------------------------------------------------


def _in_processes(cells: tuple[Cell, ...], path: str | Path, jobs: int) -> None:
    """Workers side by side on one store. One that dies is replaced; a unit that kills three is given up."""
    deaths: Counter[tuple[str, str] | None] = Counter()
    with _one_thread_each():
        workers = dict(_start(cells, path) for _ in range(jobs))
        try:
            while workers:
                wait([process.sentinel for process in workers])
                for process in [p for p in workers if not p.is_alive()]:
                    process.join()
                    with workers.pop(process) as messages, suppress(EOFError):  # most leave no message
                        raise StudyError(messages.recv())
                    if process.exitcode != 0:
                        _bury(process, path, deaths)
                        workers |= dict([_start(cells, path)])
        finally:
            for process in workers:
                process.terminate()
            for process in workers:
                process.join()


def _start(cells: tuple[Cell, ...], path: str | Path) -> tuple[SpawnProcess, Connection]:
    context = multiprocessing.get_context("spawn")
    messages, into = context.Pipe(duplex=False)
    process = context.Process(target=_process, args=(cells, path, into), daemon=True)
    with _deaf_to_interrupts():  # Ctrl-C is for the parent, which ends its workers
        process.start()
    into.close()
    return process, messages


def _process(cells: tuple[Cell, ...], path: str | Path, into: Connection) -> None:
    try:
        _work(cells, path, multiprocessing.parent_process())
    except Exception as error:
        expected = isinstance(error, StoreError)
        into.send(str(error) if expected else f"A worker process failed.\n{traceback.format_exc()}")
        raise SystemExit(1) from None


def _bury(process: SpawnProcess, path: str | Path, deaths: Counter[tuple[str, str] | None]) -> None:
    """Count the death against the unit the process was at."""
    with Store(path) as store:
        held = [(lease.cell, lease.unit) for lease in store.held() if lease.pid == process.pid]
        units: list[tuple[str, str] | None] = [*held] or [None]
        for unit in units:
            deaths[unit] += 1
            if deaths[unit] < DEATHS:
                continue
            message = f"{DEATHS} worker processes died over it (exit code {process.exitcode})"
            if unit is None:
                raise StudyError(f"Worker processes die before they begin: {message}. Try jobs=1 to see why.")
            store.finish(*unit, {"error": f"{message}; if memory ran out, retry with fewer jobs"})


@contextmanager
def _one_thread_each() -> Iterator[None]:
    """An environment in which new processes start with one BLAS thread, so that none is even created."""
    before = {name: os.environ.get(name) for name in THREADS}
    os.environ.update(dict.fromkeys(THREADS, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})


@contextmanager
def _deaf_to_interrupts() -> Iterator[None]:
    """A child started in here ignores SIGINT from its first moment on."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


# --- Dask --------------------------------------------------------------------------------------------


def _on_dask(cells: tuple[Cell, ...], path: str | Path, address: str) -> None:
    """Lease units here, compute them there. Dask gives a dead worker's units to another."""
    try:
        distributed: Any = importlib.import_module("distributed")
    except ImportError as error:
        raise StudyError(f"A Dask scheduler needs Dask: pip install 'edrvfl[dask]' ({error}).") from error
    try:
        client = distributed.Client(address)
    except (OSError, ValueError) as error:
        raise StudyError(f"No Dask scheduler answers at {address!r}: {error}") from error
    try:
        with client, Store(path) as store, _leasing(store) as worker:
            _feed(distributed, client, _Board(cells, store, worker), store)
    except (OSError, distributed.CancelledError) as error:
        raise StudyError(f"The Dask scheduler at {address!r} was lost; run again to go on.") from error


def _feed(distributed: Any, client: Any, board: _Board, store: Store) -> None:
    """Keep the cluster's workers busy until every cell has its record."""
    # A cell is a task of its own, not data: if the worker that holds it dies, Dask makes it again.
    sent: dict[str, Any] = {}
    flying: dict[Any, tuple[Cell, str]] = {}
    while board.open or flying:
        room = 2 * max(4, sum(client.nthreads().values())) - len(flying)
        while room > 0 and (task := board.take()) is not None:
            cell, unit = task
            if cell.key not in sent:
                sent[cell.key] = client.submit(_cell, cell, key=f"edrvfl-{cell.key}")
            flying[client.submit(_unit, sent[cell.key], unit, pure=False)] = task
            room -= 1
        for key in sent.keys() - board.open.keys():
            del sent[key]
        if not flying:
            time.sleep(POLL_SECONDS)
            continue
        with suppress(TimeoutError):
            distributed.wait(list(flying), timeout=POLL_SECONDS, return_when="FIRST_COMPLETED")
        for future in [f for f in flying if f.done()]:
            cell, unit = flying.pop(future)
            if future.status not in ("finished", "error"):
                raise distributed.CancelledError(unit)
            died = future.exception()  # the unit killed several workers
            value = {"error": f"{type(died).__name__}: {died}"} if died else future.result()
            store.finish(cell.key, unit, value)


def _cell(cell: Cell) -> Cell:
    return cell


def _unit(cell: Cell, unit: str) -> dict[str, Any]:
    threadpool_limits(1)  # for good: threads of one Dask worker would undo each other's limits
    return attempt(cell, unit)


# --- progress ----------------------------------------------------------------------------------------


@contextmanager
def _reporting(
    cells: tuple[Cell, ...], path: str | Path, progress: Callable[[Progress], None] | None
) -> Iterator[None]:
    """Report from the store, which knows the work of all processes, in a thread of its own."""
    if progress is None:
        yield
        return
    over = threading.Event()
    most = {cell.key: expected_units(describe(cell)) for cell in cells}
    reported: set[str] = set()

    def report(store: Store) -> None:
        done, counts = store.finished() & most.keys(), store.counts()
        new = tuple(found for key in sorted(done - reported) if (found := store.record(key)))
        reported.update(done)
        units = {key: counts.get(key, 0) if key in done else most[key] for key in most}
        units_done = sum(counts.get(key, 0) for key in most)
        progress(Progress(len(most), len(done), sum(units.values()), units_done, new))

    def repeat() -> None:
        with suppress(StoreError), Store(path) as store:
            report(store)
            while not over.wait(REPORT_SECONDS):
                report(store)

    thread = threading.Thread(target=repeat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
    with Store(path) as store:
        report(store)
