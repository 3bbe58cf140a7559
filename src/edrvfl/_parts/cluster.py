"""Parts that lie on the workers of a Dask cluster, and sums over them that are made there."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, fields, is_dataclass
from itertools import islice
from typing import Any

import dask
from dask.base import is_dask_collection
from dask.delayed import delayed
from dask.sizeof import sizeof
from distributed import wait
from distributed.protocol.pickle import dumps, loads

from .._seam.threads import one_blas_thread
from .parts import Part, add, block_name

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


class DaskParts:
    """The partitions of Dask collections as parts of a fit.

    The partitions are computed once and stay on the workers, which spill them to disk if memory is short. One
    that is lost with its worker is computed again. A sum is made on the workers, by pairs of neighbours, so
    that its order, and therefore its rounding, depends on the number of partitions alone. `close` lets the
    workers forget the partitions.
    """

    # features are not kept between passes: they would be lost with a worker
    spill, device, threads = False, None, 1

    def __init__(self, client: Any, X: Any, y: Any, weight: Any = None) -> None:
        self._client = client
        of_parts = zip(*(_partitions(of_rows) for of_rows in aligned(X, y, weight)), strict=True)
        # one task for each part, so that what belongs together lies together
        together = [delayed(_put_together, pure=False)(i, *parts) for i, parts in enumerate(of_parts)]
        with client.as_current():  # `wait` takes the client of the moment
            self._parts = client.compute(together)
            try:
                wait(self._parts)
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
            dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 GiB"}),
        ):
            found, *each = self._client.compute(wanted)
            try:
                if heard is not None:
                    _tell(heard, found, each)
                return found.result().content
            except Exception:
                self._raise_if_lost()
                raise
            finally:
                # an error keeps these names alive, and would keep what workers hold
                _release([found, *each])

    def _raise_if_lost(self) -> None:
        """If a partition could not be computed, raise an error that names it."""
        for number, part in enumerate(self._parts):
            if part.status == "error":
                raise named(part.exception(), number)


def _release(futures: list[Any]) -> None:
    for future in futures:
        future.release()


def _tell(heard: Callable[[int], None], found: Any, pieces: list[Any]) -> None:
    """Tell how many pieces are done until the sum is found, or cannot be found."""
    n_pieces, told, over = len(pieces), 0, False
    while not over:
        with suppress(TimeoutError):
            wait(found, timeout=0.05)
        over = found.done()
        # a piece that is told is forgotten, so that its worker need not keep it
        pieces[:] = [piece for piece in pieces if piece.status != "finished"]
        done = n_pieces if found.status == "finished" else n_pieces - len(pieces)
        for n in range(told, done):
            heard(n + 1)
        told = done


def _put_together(number: int, X: Any, y: Any, weight: Any = None) -> Part:
    sizes = [len(of_rows) for of_rows in (X, y, weight) if of_rows is not None]
    if len(set(sizes)) > 1:
        told = ", ".join(f"{name} {size}" for name, size in zip(("X", "y", "weights"), sizes, strict=False))
        raise ValueError(f"X, y and weights must have the same rows in each partition, got {told}.")
    return Part(number, X, y, weight)


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
                "memory are for the plain class, or become a Dask array by dask.array.from_array."
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


def _partitions(collection: Any) -> list[Any]:
    parts = collection.to_delayed()
    return list(parts) if is_frame(collection) else list(parts.ravel())
