"""RowBlocks: rows for a fit that are read block by block, again for every layer."""

from __future__ import annotations

import mmap
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from numbers import Integral
from typing import Any

import numpy

from .._inputs.reading import RowSource
from .._seam.sklearn import _safe_indexing
from .._seam.threads import blas_threads
from .arrow import open_dataset
from .blocks import Reading
from .parts import Part, Parts
from .passes import sum_over

BLOCK_BYTES = 2**25  # of X: large enough that a block's overhead does not count, small beside any memory


class RowBlocks(RowSource):
    """Rows that are read block by block, as often as a fit needs them, and never held all at once.

    Every classifier and regressor takes it in place of X and y: ``fit(blocks)``. The rows are read a few
    times to learn labels, categories and the encoding, and then once for each layer of a network. A kernel
    voter fetches the rows that it would take in memory: all of up to 40,000, else a part of them. The fitted
    model is the one that a fit in memory gives, up to rounding.

    The next block is read while this one is computed, and at most `threads` + 2 blocks are in memory. Make
    blocks of some ten MiB: larger ones take more memory and save no time.

    Parameters
    ----------
    read : callable or iterable
        Returns an iterable over blocks (X, y) or (X, y, weight), the same blocks in the same order whenever
        it is called. X is an array, a pandas, polars or pyarrow table, or a pyarrow RecordBatch. An object
        that can be iterated over again and again, such as a list of blocks, will do too.

    device : str or device, default=None
        Where blocks are computed. None computes on the host.

    threads : int, default=None
        How many threads compute blocks at the same time, each with one BLAS thread. None takes as many as
        BLAS may use when the blocks are made, and one if a device computes. Sums are added in the order of
        the blocks: every fit gives the same bits, whatever the number, but for a single thread, which may use
        several BLAS threads and round otherwise.

    See Also
    --------
    RowBlocks.from_arrays : Blocks of arrays and memory maps.
    RowBlocks.from_parquet : Blocks of Parquet, Arrow and CSV files.
    RowBlocks.from_dask : Blocks that lie on the workers of a Dask cluster.

    Notes
    -----
    An error about a block begins with its number, counted from 0. A block that cannot be read is an OSError.
    Blocks that change between two passes are an error; a checksum of every block tells.

    Examples
    --------
    >>> import numpy
    >>> from edrvfl import EDRVFLClassifier, RowBlocks
    >>> def read():
    ...     for month in range(12):  # of course these would come from files
    ...         X = numpy.random.default_rng(month).normal(size=(500, 3))
    ...         yield X, X[:, 0] * X[:, 1] > 0
    >>> blocks = RowBlocks(read)
    >>> model = EDRVFLClassifier(n_hidden=50, random_state=0).fit(blocks)

    Predictions are made block by block as well:

    >>> right = [numpy.mean(model.predict(X) == y) for X, y, weight in blocks]
    >>> bool(numpy.mean(right) > 0.9)
    True
    """

    def __init__(
        self,
        read: Callable[[], Iterable[Any]] | Iterable[Any],
        *,
        device: Any = None,
        threads: int | None = None,
    ) -> None:
        self._read = read if callable(read) else _open_again(read)
        self._known = False  # whether a pass has gone through the blocks
        self.device = device
        if threads is None:  # asked once: while a fit runs, BLAS may use fewer
            threads = blas_threads() if device is None else 1
        self.threads = _at_least_one(threads, "threads")

    @classmethod
    def from_arrays(
        cls, X: Any, y: Any, sample_weight: Any = None, *, rows: int | None = None, **options: Any
    ) -> RowBlocks:
        """Make blocks of arrays, of memory maps or of frames.

        Parameters
        ----------
        X : array or frame of shape (n_samples, n_features)
            Rows. Those of a memory map are read when their block comes.

        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Labels or values.

        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows.

        rows : int, default=None
            How many rows a block has. None makes blocks whose X takes 32 MiB.

        **options
            ``device`` and ``threads``, as in :class:`RowBlocks`.

        Returns
        -------
        blocks : RowBlocks

        Examples
        --------
        >>> import numpy
        >>> from edrvfl import RowBlocks
        >>> X = numpy.zeros((1000, 4))  # or numpy.load("X.npy", mmap_mode="r")
        >>> [len(y) for X, y, weight in RowBlocks.from_arrays(X, X[:, 0], rows=400)]
        [400, 400, 200]
        """
        arrays = [X, y] if sample_weight is None else [X, y, sample_weight]
        if not all(hasattr(array, "shape") or hasattr(array, "__len__") for array in arrays):
            raise TypeError("from_arrays takes X and y with a length, and weights if there are some.")
        lengths = [array.shape[0] if hasattr(array, "shape") else len(array) for array in arrays]
        if len(set(lengths)) > 1:
            told = ", ".join(map(str, lengths))
            raise ValueError(f"X, y and the weights must have the same number of rows, got {told}.")
        if len(getattr(X, "shape", ())) != 2:
            raise ValueError("X must be an array or a frame with rows and columns.")
        size = getattr(getattr(X, "dtype", None), "itemsize", 8)
        step = rows_of_block(X.shape[1] * size) if rows is None else _at_least_one(rows, "rows")
        return cls(partial(_slices, arrays, lengths[0], step), **options)

    @classmethod
    def from_parquet(
        cls,
        where: Any,
        target: str | list[str],
        weight: str | None = None,
        *,
        columns: list[str] | None = None,
        rows: int | None = None,
        **options: Any,
    ) -> RowBlocks:
        """Make blocks of files that pyarrow reads: Parquet, Arrow, Feather, ORC and CSV, also as .csv.gz.

        Files are read in the order of their names, or of the list, and only the columns that are needed.
        Columns of text or of a dictionary are categories, or short text where it hardly repeats. A column
        that some files lack is missing there, and empty cells of CSV are missing, as in pandas.

        Parameters
        ----------
        where : path, list of paths, or pyarrow.dataset.Dataset
            Files, a folder, or a dataset. The first file's ending says which format they have.

        target : str or list of str
            The column of labels or values; several for a regressor with several outputs.

        weight : str, default=None
            The column of sample weights.

        columns : list of str, default=None
            The columns of X. None takes all others, but for an index that pandas wrote.

        rows : int, default=None
            How many rows a block has. None makes blocks whose X takes 32 MiB in float64.

        **options
            ``device`` and ``threads``, as in :class:`RowBlocks`.

        Returns
        -------
        blocks : RowBlocks
        """
        targets = [target] if isinstance(target, str) else list(target)
        files = open_dataset(where, targets, weight, columns)
        step = rows_of_block(8 * len(files.features)) if rows is None else _at_least_one(rows, "rows")
        return cls(partial(files.blocks, step, isinstance(target, str)), **options)

    @classmethod
    def from_dask(
        cls,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        target: str | list[str] | None = None,
        columns: list[str] | None = None,
        client: Any = None,
    ) -> RowBlocks:
        """Make blocks of the partitions of Dask collections, which the workers of a cluster compute.

        A fit computes the partitions, which stay on the workers until it ends, and lets the workers sum over
        them; sums come to the client, and at most 10,000 rows that leave-one-out judges. A worker that dies
        changes nothing, not even a bit: its partitions are computed again. Each thread of a worker computes
        with one BLAS thread, so give workers as many threads as cores.

        Parameters
        ----------
        X : Dask DataFrame or array of shape (n_samples, n_features)
            Rows. Partitions may have any sizes, also unknown ones, and may be empty.

        y : Dask array, Series or DataFrame of shape (n_samples,) or (n_samples, n_outputs), default=None
            Labels or values, if `target` does not name them. If the sizes of the partitions of X and y are
            known and differ, y is divided as X is; else they must have the same partitions.

        sample_weight : Dask array or Series of shape (n_samples,), or str, default=None
            Weights of the rows, divided as y is; with `target` the name of their column.

        target : str or list of str, default=None
            The column of X that holds labels or values; several for a regressor with several outputs.

        columns : list of str, default=None
            The columns that are fitted, with `target`. None takes all others.

        client : distributed.Client, default=None
            The client of the cluster. None: the one that Dask has when a fit begins.

        Returns
        -------
        blocks : RowBlocks

        Examples
        --------
        >>> import dask.array
        >>> from distributed import Client
        >>> from sklearn.datasets import load_wine
        >>> from edrvfl import EDRVFLClassifier, RowBlocks
        >>> X, y = (dask.array.from_array(part, chunks=50) for part in load_wine(return_X_y=True))
        >>> with Client(processes=False, n_workers=2, dashboard_address=":0"):
        ...     model = EDRVFLClassifier(n_layers=3, random_state=0).fit(RowBlocks.from_dask(X, y))
        ...     labels = X.map_blocks(model.predict, drop_axis=1, dtype=int).compute()
        >>> labels.shape
        (178,)
        """
        try:
            from .cluster import DaskBlocks, tasks_of_collections, tasks_of_frame
        except ImportError as error:
            raise ImportError(
                f"RowBlocks.from_dask needs Dask: pip install 'edrvfl[dask]' ({error})."
            ) from error
        if (y is None) == (target is None):
            raise TypeError("from_dask takes either y, or target: the name of a column of X.")
        if target is not None:
            return DaskBlocks(tasks_of_frame(X, target, sample_weight, columns), client)
        if columns is not None:
            raise TypeError("columns goes with target. Where y is apart, give X[columns].")
        return DaskBlocks(tasks_of_collections(X, y, sample_weight), client)

    def __iter__(self) -> Iterator[tuple[Any, Any, Any]]:
        """Read (X, y, weight) of every block; weight is None if there are no weights."""
        for part in Reading(self._read):
            yield part.X, part.y, part.weight

    @contextmanager
    def opened(self) -> Iterator[Parts]:
        """Get the blocks ready for the passes of a fit.

        Yields
        ------
        blocks : RowBlocks
            What the passes read.
        """
        yield self

    def total(self, function: Callable[[Part], Any], heard: Callable[[int], None] | None = None) -> Any:
        """Return the sum of function(part) over all blocks, by the operator + and in their order.

        Parameters
        ----------
        function : callable
            Takes a part: the block's ``number``, ``X``, ``y`` and ``weight``. None is nothing to add.

        heard : callable, default=None
            Is told, in the calling thread, how many blocks are done.

        Returns
        -------
        total : object
            None if there is no block.
        """
        opened = partial(Reading, self._read, not self._known)
        found = sum_over(opened, function, heard, self.threads)
        self._known = True
        return found


def _open_again(blocks: Any) -> Callable[[], Iterable[Any]]:
    """Return a function that goes through the blocks of an object, which must be able to begin again."""
    how = "Give a function that returns a new iterator whenever it is called, or a list of blocks"
    if hasattr(blocks, "shape"):
        raise TypeError(
            f"RowBlocks takes blocks (X, y), but got one array or table. {how}, or use from_arrays."
        )
    if not hasattr(blocks, "__iter__"):
        raise TypeError(f"RowBlocks takes blocks (X, y), but got {blocks!r}. {how}.")
    if iter(blocks) is blocks:
        raise TypeError(
            f"RowBlocks reads its blocks once for every layer, but a {type(blocks).__name__} can be read "
            f"only once. {how}."
        )
    return partial(iter, blocks)


def _slices(arrays: list[Any], n_rows: int, step: int) -> Iterator[tuple[Any, ...]]:
    for start in range(0, n_rows, step):
        place = slice(start, min(start + step, n_rows))
        yield tuple(_slice(array, place) for array in arrays)


def _slice(array: Any, place: slice) -> Any:
    """Return some rows. Those of a memory map are copied, which reads them here and now."""
    if isinstance(array, numpy.ndarray):
        return numpy.array(array[place]) if _is_mapped(array) else array[place]
    return _safe_indexing(array, place)


def _is_mapped(array: Any) -> bool:
    while array is not None:
        if isinstance(array, (numpy.memmap, mmap.mmap)):
            return True
        array = getattr(array, "base", None)
    return False


def rows_of_block(row_bytes: int) -> int:
    """Return how many rows make a block of a good size."""
    return max(1, BLOCK_BYTES // max(1, row_bytes))


def _at_least_one(value: Any, name: str) -> int:
    if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
        raise ValueError(f"{name} must be a whole number from 1 on, got {value!r}.")
    return int(value)
