"""Who does the units of the cells: this process, several processes on this machine, or a Dask cluster.

`run` hides which. It owns the store and is the only one that writes it, units as soon as they are finished,
so whoever is killed loses no more than the units in work. Every unit is done on one BLAS thread, because
the number of threads changes last bits: the records are the same whoever does the work.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import threading
import time
import traceback
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Future, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar, cast

# joblib's own pool behind Parallel: unlike Parallel it takes new work while it runs, as refits need.
from joblib.executor import get_memmapping_executor
from scipy.linalg import LinAlgWarning
from threadpoolctl import threadpool_limits

from .cell import Cell, Unit, Value
from .data import Dataset
from .extend import load_plugins
from .protocol import StudyCell, make_cell
from .record import Record
from .searching import Method, check_installed
from .store import Store

REPORT_SECONDS = 1.0  # how often `progress` is called
WATCH_SECONDS = 0.5  # how often a worker process looks whether the run still lives
ONE_THREAD = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")

R = TypeVar("R", bound=Record)
Task = tuple[Cell[Any], Unit]


class StudyError(RuntimeError):
    """A run cannot go on. What was done is stored."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run is, and the records that are new since the last report."""

    cells: int
    cells_done: int
    units: int  # at most; the true number is known when all cells are done
    units_done: int
    new: tuple[Any, ...]  # of the type that the cells end in


def grid(
    methods: Iterable[Method], datasets: Iterable[Dataset], trials: int, seeds: int, device: str = "cpu"
) -> Iterator[StudyCell]:
    """Return every method on every dataset, dataset by dataset. A missing package is an error at once."""
    methods = tuple(methods)
    check_installed(methods)
    return (make_cell(m, dataset, trials, seeds, device) for dataset in datasets for m in methods)


def run(
    cells: Iterable[Cell[R]],
    store: str | Path,
    *,
    jobs: int = 1,
    scheduler: str | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> list[R]:
    """Bring cells to their records, in this order, and do only what the store does not hold yet.

    The store is owned by this run until it ends; a second run on it is an error. One job works in this
    process, more in as many processes of their own; with the address of a Dask `scheduler` its workers
    compute. `progress` is called at the start, about once a second, and at the end.
    """
    cells = tuple({cell.key: cell for cell in cells}.values())
    if jobs < 1:
        raise ValueError(f"jobs must be at least 1, got {jobs}.")
    with Store(store, own=True) as opened:
        opened.add_cells(cells)
        board = _Board(cells, opened)
        if scheduler is not None:
            start = _on_dask(scheduler, board.open)
        else:
            start = _in_this_process() if jobs == 1 else _in_processes(jobs)
        with start as workers:
            _work(board, workers, _Reporter(cells, opened, progress))
        return [cast(R, opened.record(cell.key)) for cell in cells]


def attempt(cell: Cell[Any], unit: Unit) -> Value:
    """Do a unit and return its value. If it fails, that is the error and the end of its traceback."""
    start = time.perf_counter()
    try:
        with warnings.catch_warnings():
            # The search tries penalties at which the Gram is singular; the least-norm answer is the method's.
            warnings.simplefilter("ignore", LinAlgWarning)
            value = cell.compute(unit)
        value = {**value, "seconds": time.perf_counter() - start}
        json.dumps(value, allow_nan=False)  # a figure that is not finite is a failure
        return value
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}", "traceback": traceback.format_exc(limit=-3)}


# --- what is left to do ------------------------------------------------------------------------------


@dataclass(slots=True)
class _Open:
    """A cell without a record: what is done, what waits, and how many units are in work."""

    cell: Cell[Any]
    done: dict[Unit, Value]
    waiting: deque[Unit] = field(default_factory=deque)
    in_work: int = 0


class _Board:
    """The cells that have no record yet, in the order in which they are to be done."""

    def __init__(self, cells: Iterable[Cell[Any]], store: Store) -> None:
        closed = store.finished()
        self._store = store
        self.open = {c.key: _Open(c, store.values(c.key)) for c in cells if c.key not in closed}

    def take(self) -> Task | None:
        """Return the next unit, and write the records of finished cells on the way.

        None means that whatever is left waits for units in work.
        """
        for key, cell in list(self.open.items()):
            if not cell.waiting and not cell.in_work:
                cell.waiting.extend(cell.cell.pending(cell.done))
                if not cell.waiting:
                    self._store.add_record(cell.cell.record(cell.done))
                    del self.open[key]
            if cell.waiting:
                cell.in_work += 1
                return cell.cell, cell.waiting.popleft()
        return None

    def finish(self, task: Task, value: Value) -> None:
        """Store the value of a unit. After a failure the cell's other units are not begun."""
        cell, unit = task
        self._store.finish(cell.key, unit, value)
        here = self.open[cell.key]
        here.done[unit] = value
        here.in_work -= 1
        if "error" in value:
            here.waiting.clear()


# --- the loop ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Workers:
    """Where units are done."""

    submit: Callable[[Cell[Any], Unit], Future[Value]]
    room: Callable[[], int]  # how many units may be in work at once
    advice: str  # what to do if the workers are lost


def _work(board: _Board, workers: _Workers, reporter: _Reporter) -> None:
    """Keep the workers busy until every cell has its record."""
    in_work: dict[Future[Value], Task] = {}
    reporter.report()
    while True:
        while len(in_work) < workers.room() and (task := board.take()) is not None:
            in_work[workers.submit(*task)] = task
        if not in_work:
            break
        finished, _ = wait(in_work, timeout=REPORT_SECONDS, return_when=FIRST_COMPLETED)
        lost = None
        for future in finished:
            try:
                value = future.result()
            except (BrokenExecutor, CancelledError) as error:
                lost = error  # the others of `finished` may still have good values
                continue
            except Exception as error:  # Dask gives up a unit over which several workers died
                value = {"error": f"{type(error).__name__}: {error}"}
            board.finish(in_work.pop(future), value)
        if lost is not None:
            units = "; ".join(
                f"{cell.describe()['method']} on {cell.describe()['dataset']}, {unit}"
                for cell, unit in in_work.values()
            )
            reason = str(lost).partition("\n")[0] or type(lost).__name__
            raise StudyError(f"{workers.advice} In work were: {units}. ({reason})") from lost
        reporter.report_if_due()
    reporter.report()


class _Reporter:
    """Calls `progress` with what the store holds of some cells."""

    def __init__(
        self, cells: Iterable[Cell[Any]], store: Store, progress: Callable[[Progress], None] | None
    ) -> None:
        self._most = {cell.key: int(cell.describe()["most_units"]) for cell in cells}
        self._store, self._progress = store, progress
        self._reported: set[str] = set()
        self._last = 0.0

    def report_if_due(self) -> None:
        if time.monotonic() - self._last >= REPORT_SECONDS:
            self.report()

    def report(self) -> None:
        if self._progress is None:
            return
        done, counts = self._store.finished() & self._most.keys(), self._store.counts()
        new = tuple(r for key in sorted(done - self._reported) if (r := self._store.record(key)))
        units = sum(counts.get(key, 0) if key in done else most for key, most in self._most.items())
        units_done = sum(counts.get(key, 0) for key in self._most)
        self._reported |= done
        self._progress(Progress(len(self._most), len(done), units, units_done, new))
        self._last = time.monotonic()


# --- three sorts of workers --------------------------------------------------------------------------


@contextmanager
def _in_this_process() -> Iterator[_Workers]:
    def submit(cell: Cell[Any], unit: Unit) -> Future[Value]:
        future: Future[Value] = Future()
        future.set_result(attempt(cell, unit))
        return future

    with threadpool_limits(1):
        yield _Workers(submit, lambda: 1, "The work was lost.")


@contextmanager
def _in_processes(jobs: int) -> Iterator[_Workers]:
    """Start worker processes, which end when the block ends and when this process is killed.

    joblib passes large arrays as memory maps, so the data are written once and not with every unit.
    """
    advice = (
        "A worker process died, killed from outside or because memory ran out. What was done is stored; run "
        "again to go on, with fewer jobs if memory is short."
    )
    # The pool starts a helper here that sets the signal mask anew, so it has to be made before we do.
    pool = get_memmapping_executor(jobs, initializer=_begin_worker, initargs=(os.getpid(),), env=ONE_THREAD)
    try:
        with _interrupts_delayed():
            pool.submit(os.getpid)  # starts all processes
        # One unit more than there are processes waits, so that none is idle while a value is stored.
        yield _Workers(lambda c, u: pool.submit(_attempt_on_one_thread, c, u), lambda: jobs + 1, advice)
    finally:
        _let_all_be_sent_on(pool)
        pool.terminate(kill_workers=True)


def _let_all_be_sent_on(pool: Any) -> None:
    """Wait until the pool's own thread has sent on what was submitted, which is a matter of milliseconds.

    Work that it has not yet sent on when the pool ends makes the thread fail, with a traceback. The thread
    takes work in order, so it is enough to see what becomes of one piece more.
    """
    with suppress(BrokenExecutor):  # a worker died: the pool has forgotten its work already
        last = pool.submit(os.getpid)
        if last.cancel():
            wait([last], timeout=10)


@contextmanager
def _interrupts_delayed() -> Iterator[None]:
    """Let Ctrl-C wait until the block ends. Processes started in it never see Ctrl-C: the run ends them."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _begin_worker(run: int) -> None:
    """Prepare a worker process: it leaves Ctrl-C to the run, and ends with the run even within a unit."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    load_plugins()  # whose classes the cells may hold

    def watch() -> None:
        while os.getppid() == run:
            time.sleep(WATCH_SECONDS)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _attempt_on_one_thread(cell: Cell[Any], unit: Unit) -> Value:
    threadpool_limits(1)  # for good: threads of one Dask worker would undo each other's limits
    return attempt(cell, unit)


@contextmanager
def _on_dask(address: str, open_cells: Mapping[str, Any]) -> Iterator[_Workers]:
    """Send units to a Dask cluster. Dask gives the units of a dead worker to another one."""
    try:
        distributed: Any = importlib.import_module("distributed")
    except ImportError as error:
        raise StudyError(f"A Dask scheduler needs Dask: pip install 'edrvfl[dask]' ({error}).") from error
    try:
        client = distributed.Client(address)
    except (OSError, ValueError) as error:
        raise StudyError(f"No Dask scheduler answers at {address!r}: {error}") from error
    sent: dict[str, Any] = {}

    def submit(cell: Cell[Any], unit: Unit) -> Future[Value]:
        for key in sent.keys() - open_cells.keys():
            del sent[key]  # the cluster forgets the data of finished cells
        if cell.key not in sent:
            # A cell is a task of its own, not data: if the worker that holds it dies, Dask makes it again.
            sent[cell.key] = client.submit(_return_cell, cell, key=f"edrvfl-{cell.key}")
        future: Future[Value] = executor.submit(_attempt_on_one_thread, sent[cell.key], unit)
        return future

    def room() -> int:
        return 2 * max(4, sum(client.nthreads().values()))

    advice = f"The Dask scheduler at {address!r} was lost. What was done is stored; run again to go on."
    with client:
        executor = client.get_executor(pure=False)
        try:
            yield _Workers(submit, room, advice)
        except OSError as error:  # the connection, noticed outside of a unit
            raise StudyError(advice) from error


def _return_cell(cell: Cell[Any]) -> Cell[Any]:
    return cell
