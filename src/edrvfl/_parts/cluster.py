"""Parts that lie on the workers of a Dask cluster, and sums over them that are made there."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, fields, is_dataclass
from itertools import islice
from typing import Any

import dask
import numpy
from dask.base import is_dask_collection
from dask.delayed import delayed
from dask.sizeof import sizeof
from distributed import get_client, wait
from distributed.protocol.pickle import dumps, loads

from .._seam.threads import one_blas_thread
from .arrow import choose_columns
from .parts import Part, add, block_name
from .source import RowBlocks

PATIENCE = 2.0  # seconds after which one looks whether there are workers
SAMPLE = 1000  # of a long collection so many items stand for all, when their bytes are counted


@dataclass(frozen=True, slots=True, eq=False)
class Parcel:
    """What a task hands to others, in one record of which Dask knows how to count the bytes."""

    content: Any


@sizeof.register((Part, Parcel))
def n_bytes(value: Any) -> int:
    """Return how many bytes a record holds, those of the records and collections in it included.

    Dask would count the bytes of the outermost record alone: it would think that partitions cost nothing to
    move, and would not see them when it has to spill.
    """
    if is_dataclass(value) and not isinstance(value, type):
        held: Iterable[Any] = [getattr(value, field.name) for field in fields(value)]
        return sum(map(n_bytes, held))
    if isinstance(value, dict):
        return n_bytes(tuple(value)) + n_bytes(tuple(value.values()))
    if isinstance(value, list | tuple | set | frozenset) and value:
        some = list(islice(value, SAMPLE))
        return int(sum(map(n_bytes, some)) * len(value) / len(some))
    return int(sizeof(value))


class DaskBlocks(RowBlocks):
    """Partitions of Dask collections, which `RowBlocks.from_dask` makes, and a cluster computes."""

    device = None

    def __init__(self, tasks: list[Any], client: Any) -> None:
        self._tasks, self._client = tasks, client

    def __iter__(self) -> Iterator[tuple[Any, Any, Any]]:
        """Bring one partition after another here, as (X, y, weight)."""
        for task in self._tasks:
            part = self._found_client().compute(task, sync=True)
            yield part.X, part.y, part.weight

    @contextmanager
    def opened(self) -> Iterator[DaskParts]:
        """Let the workers compute the partitions, and forget them at the end."""
        with closing(DaskParts(self._found_client(), self._tasks)) as parts:
            yield parts

    def total(self, function: Callable[[Part], Any], heard: Callable[[int], None] | None = None) -> Any:
        """Return the sum of function(part) over the partitions."""
        with self.opened() as parts:
            return parts.total(function, heard)

    def _found_client(self) -> Any:
        client = self._client
        if client is None:
            try:
                client = get_client()
            except ValueError as error:
                raise ValueError(
                    "Blocks of a Dask collection need a cluster, but there is no Dask client. Make one by "
                    "distributed.Client(), or pass one as client."
                ) from error
        if client.asynchronous:
            raise ValueError("Blocks of a Dask collection are waited for, but the client is asynchronous.")
        return client


class DaskParts:
    """Partitions that lie on the workers of a cluster, for the passes of one fit.

    The partitions are computed once and stay on the workers, which spill them to disk if memory is short. One
    that is lost with its worker is computed again. A sum is made on the workers, in the order of `TreeSum`,
    so that its rounding depends on the number of partitions alone. `close` lets the workers forget the
    partitions.
    """

    device = None

    def __init__(self, client: Any, tasks: list[Any]) -> None:
        self._client = client
        with client.as_current(), _telling_of_losses():  # `wait` takes the client of the moment
            self._parts = client.compute(tasks)
            try:
                self._wait(self._parts, [])
                self._raise_if_lost()
            except BaseException:
                self.close()
                raise

    def close(self) -> None:
        """Let the workers forget the partitions, whoever still holds this object."""
        _release(self._parts)
        self._parts = []

    def total(self, function: Callable[[Part], Any], heard: Callable[[int], None] | None = None) -> Any:
        """Return the sum of function(part) over the partitions; only the sum comes to the client."""
        # The function may be large, as it holds the layers so far. A task of its own sends it to one worker,
        # others fetch it from there, and it is not lost with a worker, as scattered data would be.
        asked = delayed(_unpack, pure=False)(dumps(function))
        pieces = level = [delayed(_work, pure=False)(asked, part) for part in self._parts]
        while len(level) > 1:
            pairs = [level[i : i + 2] for i in range(0, len(level), 2)]
            level = [delayed(_add, pure=False)(*pair) if len(pair) == 2 else pair[0] for pair in pairs]
        # one graph for the whole sum: Dask then adds pieces early, and a worker holds few of them at a time
        wanted = level if heard is None else [*level, *pieces]
        with (
            self._client.as_current(),
            _telling_of_losses(),
            dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 GiB"}),
        ):
            found, *each = self._client.compute(wanted)
            try:
                self._wait([found], each, heard)
                return found.result().content
            except Exception:
                self._raise_if_lost()
                raise
            finally:
                # an error keeps these names alive, and would keep what workers hold
                _release([found, *each])

    def _wait(
        self, futures: list[Any], pieces: list[Any], heard: Callable[[int], None] | None = None
    ) -> None:
        """Wait until futures are done, or failed; tell how many pieces are done, or that nobody works."""
        n_pieces, told, looked, over = len(pieces), 0, time.monotonic(), False
        while not over:
            with suppress(TimeoutError):
                wait(futures, timeout=0.05)
            over = all(future.done() for future in futures)
            # a piece that is told is forgotten, so that its worker need not keep it
            pieces[:] = [piece for piece in pieces if piece.status != "finished"]
            if heard is not None:
                left = 0 if all(future.status == "finished" for future in futures) else len(pieces)
                for n in range(told, n_pieces - left):
                    heard(n + 1)
                told = n_pieces - left
            if not over and time.monotonic() - looked > PATIENCE:
                looked = time.monotonic()
                if not self._client.nthreads():
                    warnings.warn("The Dask cluster has no workers. Waiting for some.", stacklevel=2)
                    looked = math.inf  # once is enough

    def _raise_if_lost(self) -> None:
        """If a partition could not be computed, raise an error that names it."""
        for number, part in enumerate(self._parts):
            if part.status == "error":
                raise named(part.exception(), number)


def _release(futures: list[Any]) -> None:
    for future in futures:
        future.release()


@contextmanager
def _telling_of_losses() -> Iterator[None]:
    """Say what happened if the cluster gave up."""
    try:
        yield
    except CancelledError as error:
        raise RuntimeError(
            "The Dask cluster gave up the computation. Either it was closed, or it lost rows that it cannot "
            "compute again, such as data that was scattered to a worker that is gone. Keep the cluster open, "
            "make the collections of files or arrays (dask.dataframe.read_parquet, dask.array.from_array), "
            "and fit again."
        ) from error


def _put_together(number: int, X: Any, y: Any, weight: Any = None) -> Part:
    sizes = [len(of_rows) for of_rows in (X, y, weight) if of_rows is not None]
    if len(set(sizes)) > 1:
        told = ", ".join(f"{name} {size}" for name, size in zip(("X", "y", "weights"), sizes, strict=False))
        raise ValueError(f"X, y and weights must have the same rows in each partition, got {told}.")
    return Part(number, X, y, weight)


def _take_columns(number: int, frame: Any, features: list[str], target: Any, weight: str | None) -> Part:
    """Return a partition whose target and weight are columns of the frame."""
    y = frame[target] if isinstance(target, str) else frame[target].to_numpy()
    return Part(number, frame[features], y, None if weight is None else frame[weight])


def _unpack(function: bytes) -> Parcel:
    return Parcel(loads(function))


def _work(asked: Parcel, part: Part) -> Parcel:
    """Compute one piece. Dask's own threads keep the cores busy, so each of them gets one BLAS thread."""
    try:
        with one_blas_thread():
            return Parcel(asked.content(part))
    except Exception as error:
        told = named(error, part.number)
        # an error that were its own cause would keep Dask looking for the first one
        raise told from (None if told is error else error)


def _add(one: Parcel, other: Parcel) -> Parcel:
    return Parcel(add(one.content, other.content))


def named(error: BaseException, number: int) -> Exception:
    """Return an error of the same kind, where that is possible, that begins with the partition's number."""
    place = block_name(number)
    for kind in (ValueError, TypeError):
        if type(error) is kind:
            return error if str(error).startswith(place) else kind(f"{place}: {error}")
    return RuntimeError(f"{place}: {type(error).__name__}: {error}")


def is_frame(collection: Any) -> bool:
    """Tell whether a Dask collection is a DataFrame or a Series."""
    return hasattr(collection, "divisions")


def is_array(collection: Any) -> bool:
    """Tell whether a collection is a Dask array."""
    return hasattr(collection, "chunks") and is_dask_collection(collection)


def one_block_of_columns(X: Any) -> Any:
    """Return a Dask array that has all columns in one block."""
    return X.rechunk({1: -1}) if is_array(X) and X.ndim == 2 and X.numblocks[1] > 1 else X


def aligned(X: Any, y: Any, weight: Any = None) -> list[Any]:
    """Return X, y and, if there are any, weights, with the same partitions of rows."""
    found = []
    for name, of_rows in (("X", X), ("y", y), ("sample_weight", weight)):
        if of_rows is None and name == "sample_weight":
            continue
        if not (is_frame(of_rows) or is_array(of_rows)):
            raise TypeError(
                f"{name} must be a Dask array, DataFrame or Series, got {type(of_rows).__name__}. Rows in "
                "memory are for `fit(X, y)`, or become a Dask array by dask.array.from_array."
            )
        found.append(one_block_of_columns(of_rows))
    if found[0].ndim != 2:
        raise ValueError(f"X must have two dimensions, got {found[0].ndim}.")
    for i, name in enumerate(("y", "sample_weight")[: len(found) - 1], start=1):
        found[i] = _divided_alike(found[i], found[0], name)
    return found


def _divided_alike(other: Any, X: Any, name: str) -> Any:
    """Return y or weights with the partitions of X."""
    if is_array(X) and is_array(other):
        m, own = X.shape[0], other.shape[0]
        if not (math.isnan(m) or math.isnan(own)):
            if m != own:
                raise ValueError(f"X has {m} rows, but {name} has {own}.")
            return other if X.chunks[0] == other.chunks[0] else other.rechunk({0: X.chunks[0]})
    elif is_frame(X) and is_frame(other) and X.known_divisions and other.known_divisions:
        return other if X.divisions == other.divisions else other.repartition(divisions=X.divisions)
    if (count := _count(other)) != _count(X):
        raise ValueError(
            f"X has {_count(X)} partitions and {name} has {count}, and not all of their sizes are known, so "
            f"{name} cannot be divided as X is. Repartition one of them, or let Dask compute the sizes "
            "(compute_chunk_sizes of an array, to_dask_array(lengths=True) of a frame)."
        )
    return other


def _count(collection: Any) -> int:
    return int(collection.npartitions if is_frame(collection) else collection.numblocks[0])


def tasks_of_frame(X: Any, target: str | list[str], weight: Any, columns: list[str] | None) -> list[Any]:
    """Return a task for each partition of a frame that holds target and weight as well.

    Dask sees one collection, reads the columns in use alone, and may join small files.
    """
    if not (is_frame(X) and X.ndim == 2):
        raise TypeError(f"With target, X must be a Dask DataFrame, got {type(X).__name__}.")
    if not (weight is None or isinstance(weight, str)):
        raise TypeError("With target, sample_weight must be the name of a column.")
    targets = [target] if isinstance(target, str) else list(target)
    features = choose_columns(list(X.columns), targets, weight, columns)
    parts = X[[*features, *targets, *([] if weight is None else [weight])]].to_delayed()
    asked = (features, target if isinstance(target, str) else targets, weight)
    return [delayed(_take_columns, pure=False)(i, part, *asked) for i, part in enumerate(parts)]


def tasks_of_collections(X: Any, y: Any, weight: Any = None) -> list[Any]:
    """Return a task for each partition of X, y and weights: what belongs together lies together."""
    of_parts = zip(*(_partitions(of_rows) for of_rows in aligned(X, y, weight)), strict=True)
    return [delayed(_put_together, pure=False)(i, *parts) for i, parts in enumerate(of_parts)]


def _partitions(collection: Any) -> list[Any]:
    # a frame that Dask optimises alone may get other partitions: it joins files of which few columns are read
    return list(numpy.ravel(numpy.asarray(collection.to_delayed(optimize_graph=False), dtype=object)))
