"""Blocks of files that pyarrow reads, with only the columns that are needed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy

PANDAS_INDEX = "__index_level_"  # how names of columns begin that pandas made of an index
FORMATS = {
    **{".parquet": "parquet", ".pq": "parquet", ".csv": "csv", ".orc": "orc"},
    **{".arrow": "ipc", ".ipc": "ipc", ".feather": "feather"},
}
BUFFER = 2**20  # bytes of a column that are read at once; without it a whole row group would be


@dataclass(frozen=True, slots=True, eq=False)
class Files:
    """A dataset of pyarrow, and which columns are what."""

    dataset: Any
    schema: Any  # of all files together
    features: list[str]
    targets: list[str]
    weight: str | None

    def blocks(self, rows: int, flat: bool) -> Iterator[tuple[Any, ...]]:
        """Read blocks (X, y) or (X, y, weight) of so many rows; `flat` makes y a vector."""
        for table in self._tables(rows):
            found = [read_target(table, name) for name in self.targets]
            y = found[0] if flat else numpy.column_stack(found)
            X = table.select(self.features)
            yield (X, y) if self.weight is None else (X, y, read_target(table, self.weight))

    def _tables(self, rows: int) -> Iterator[Any]:
        """Put batches together to tables of so many rows, however the files and their row groups are cut."""
        import pyarrow

        waiting: list[Any] = []
        n_waiting = 0
        for batch in self._batches(rows):
            while n_waiting + batch.num_rows >= rows:
                missing = rows - n_waiting
                yield pyarrow.Table.from_batches([*waiting, batch.slice(0, missing)])
                batch, waiting, n_waiting = batch.slice(missing), [], 0
            if batch.num_rows:
                waiting.append(batch)
                n_waiting += batch.num_rows
        if waiting:
            yield pyarrow.Table.from_batches(waiting)

    def _batches(self, rows: int) -> Iterator[Any]:
        """Read file after file. Nothing is read ahead here: a pass does that, and bounds what is held."""
        from pyarrow import ArrowException, dataset, parquet

        names = [*self.features, *self.targets, *([] if self.weight is None else [self.weight])]
        names = list(dict.fromkeys(names))
        fields = [self.schema.field(name) for name in names]
        for fragment in self.dataset.get_fragments():
            try:
                if isinstance(fragment, dataset.ParquetFileFragment) and _holds(fragment, fields):
                    # this reads page by page, where a scan of the dataset holds a row group
                    where = {"filesystem": fragment.filesystem, "buffer_size": BUFFER, "pre_buffer": False}
                    with parquet.ParquetFile(fragment.path, **where) as file:
                        for batch in file.iter_batches(rows, columns=names, use_threads=False):
                            yield batch.select(names)
                    continue
                ahead = {"batch_readahead": 1, "fragment_readahead": 1}
                yield from fragment.to_batches(schema=self.schema, columns=names, batch_size=rows, **ahead)
            except ArrowException as error:
                raise type(error)(f"{fragment.path}: {error}") from error


def _holds(fragment: Any, fields: list[Any]) -> bool:
    """Tell whether a file itself holds the columns, in the dataset's types, and all its rows are wanted."""
    there = fragment.physical_schema
    same = all(field.name in there.names and there.field(field.name).type == field.type for field in fields)
    whole = len(fragment.row_groups) == fragment.metadata.num_row_groups
    return same and whole


def read_target(table: Any, name: str) -> numpy.ndarray:
    """Return a column of labels, values or weights as an array. Labels of text become text of fixed width."""
    from pyarrow import types

    column = table.column(name)
    if column.null_count:
        raise ValueError(f"Column {name!r} has {column.null_count} missing values.")
    kind = column.type
    if types.is_dictionary(kind) or types.is_string(kind) or types.is_large_string(kind):
        if not types.is_dictionary(kind):
            column = column.dictionary_encode()
        column = column.combine_chunks()
        if not hasattr(column, "dictionary"):  # chunks, of which none is left
            column = column.chunk(0)
        places = column.indices.to_numpy(zero_copy_only=False)
        return numpy.asarray(column.dictionary.to_pylist())[places]
    return numpy.asarray(column.to_numpy())


def open_dataset(where: Any, targets: list[str], weight: str | None, columns: list[str] | None) -> Files:
    """Find the files and their columns."""
    try:
        from pyarrow import dataset
    except ImportError as error:
        raise ImportError(
            'RowBlocks.from_parquet needs pyarrow: pip install "edrvfl[arrow]", or pip install pyarrow.'
        ) from error
    if isinstance(where, dataset.Dataset):
        schema = where.schema
    else:
        paths = [str(path) for path in where] if isinstance(where, (list, tuple)) else str(where)
        where = dataset.dataset(paths, format=_format(where), partitioning="hive")
        schema = _common_schema(where)
    return Files(where, schema, choose_columns(schema.names, targets, weight, columns), targets, weight)


def choose_columns(
    names: list[str], targets: list[str], weight: str | None, columns: list[str] | None
) -> list[str]:
    """Return the columns of X: those that are asked for, or all that are neither target nor weight."""
    taken = [*targets, *([] if weight is None else [weight])]
    if columns is None:
        columns = [name for name in names if name not in taken and not name.startswith(PANDAS_INDEX)]
    if unknown := [name for name in [*columns, *taken] if name not in names]:
        raise ValueError(
            f"There are no columns {', '.join(map(repr, unknown))}. There are {', '.join(map(repr, names))}."
        )
    if shared := [name for name in columns if name in taken]:
        raise ValueError(f"Columns of X cannot be target or weight as well: {', '.join(map(repr, shared))}.")
    return list(columns)


def _common_schema(files: Any) -> Any:
    """Return the columns of all files, each in a type that holds what every file holds there."""
    import pyarrow

    found: dict[str, tuple[Any, str]] = {}  # types, and a file where each was seen
    for fragment in files.get_fragments():
        for field in fragment.physical_schema:
            kind, path = found.setdefault(field.name, (field.type, fragment.path))
            if kind == field.type:
                continue
            try:
                found[field.name] = (_common_type(kind, field.type), path)
            except pyarrow.ArrowException as error:
                raise TypeError(
                    f"Column {field.name!r} holds {kind} in {path}, but {field.type} in {fragment.path}. "
                    "Write it with one type in all files."
                ) from error
    keys = [(field.name, field.type) for field in files.schema if field.name not in found]  # of folders
    return pyarrow.schema([*((name, kind) for name, (kind, _) in found.items()), *keys])


def _common_type(one: Any, other: Any) -> Any:
    """Return a type that holds the values of both."""
    import pyarrow

    if pyarrow.types.is_dictionary(one) != pyarrow.types.is_dictionary(other):
        one, other = (kind.value_type if pyarrow.types.is_dictionary(kind) else kind for kind in (one, other))
    schemas = [pyarrow.schema([("", kind)]) for kind in (one, other)]
    return pyarrow.unify_schemas(schemas, promote_options="permissive").field(0).type


def _format(where: Any) -> Any:
    """Return the format that the ending of the first file names. Empty cells of CSV are missing."""
    from pyarrow import csv, dataset

    first = Path(where[0] if isinstance(where, (list, tuple)) else where)
    if first.is_dir():
        files = sorted(path for path in first.rglob("*") if path.is_file() and path.name[0] not in "._")
        if not files:
            raise FileNotFoundError(f"There are no files in {first}.")
        first = files[0]
    endings = [ending.lower() for ending in first.suffixes]
    found = next((FORMATS[ending] for ending in reversed(endings) if ending in FORMATS), None)
    if found is None and endings:
        raise ValueError(
            f"The ending of {first} names no format that is known: {', '.join(FORMATS)}; .csv may be packed, "
            "as .csv.gz. Rename the files, or give a pyarrow.dataset.Dataset."
        )
    if found == "csv":
        missing = [*csv.ConvertOptions().null_values, "<NA>", "None"]  # as in pandas
        options = csv.ConvertOptions(null_values=missing, strings_can_be_null=True)
        return dataset.CsvFileFormat(convert_options=options)
    return found or "parquet"
