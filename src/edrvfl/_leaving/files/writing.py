"""A tree of records, lists and numbers becomes JSON and arrays.

JSON has no tuples, no arrays and no infinity: these are objects with one telling name, such as
{"array": "network_.readouts.0"}. An object never names a Python type: `Kinds` says which names there are.
"""

from __future__ import annotations

import dataclasses
import hashlib
import inspect
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy

from .container import NAMES

LONG = 32  # longer tuples of numbers or texts become arrays
LARGEST_INTEGER = 2**63
WIDEST = 2**24  # bytes of an array of texts of fixed width: a short text may ask for a wide array
SIZES = (8, 16, 32, 64)
NUMBERS = ("float32", "float64", "bool", *(f"{sign}int{bits}" for sign in ("", "u") for bits in SIZES))
KEYS = (str, bool, int, float, numpy.generic)  # what a dict may have as keys
KINDS_OF_TUPLE: Mapping[type, str] = {int: "int64", float: "float64", bool: "bool"}


@dataclass(frozen=True, slots=True)
class Kinds:
    """What a tree may hold, by the names that files use."""

    records: Mapping[str, type]
    shared: tuple[type, ...]  # records that are written once, however often they come
    estimators: Mapping[str, Any]  # by their names; to write one, its name is enough


def parameters(estimator: Any, kind: type) -> dict[str, Any]:
    """Return the parameters of an estimator, as they were given, that a class of it has."""
    return {name: getattr(estimator, name) for name in inspect.signature(kind).parameters}


def is_ours(kind: type, names: Mapping[str, Any]) -> bool:
    """Tell whether a class is the estimator of this library that has its name."""
    return kind.__name__ in names and kind.__module__.partition(".")[0] == "edrvfl"


@dataclass(slots=True)
class Writer:
    """Turns a tree into JSON, and collects its arrays, shared records and the estimators in it."""

    kinds: Kinds
    arrays: dict[str, numpy.ndarray] = field(default_factory=dict)
    shared: list[Any] = field(default_factory=list)
    estimators: dict[str, type] = field(default_factory=dict)
    _known: dict[Any, Any] = field(default_factory=dict)

    def write(self, value: Any, path: str) -> Any:
        """Return a value as JSON. `path` tells where it stands, and names its arrays."""
        for name, record in self.kinds.records.items():
            if type(value) is record:
                return self._record(name, value, path)
        for types, writer in _WRITERS:
            if isinstance(value, types):
                return writer(self, value, path)
        if is_ours(kind := type(value), self.kinds.estimators):
            self.estimators[kind.__name__] = kind
            return {"estimator": kind.__name__, "params": self.fields(parameters(value, kind), path)}
        raise _unknown(path, f"a {type(value).__name__}")

    def fields(self, values: Mapping[str, Any], path: str) -> dict[str, Any]:
        """Return named values as a JSON object."""
        return {name: self.write(value, f"{path}.{name}" if path else name) for name, value in values.items()}

    def _plain(self, value: Any, _: str) -> Any:
        return value

    def _integer(self, value: int, path: str) -> int:
        if not -LARGEST_INTEGER <= value < LARGEST_INTEGER:
            raise _unknown(path, "an integer of more than 64 bits")
        return int(value)

    def _float(self, value: float, _: str) -> Any:
        return value if math.isfinite(value) else {"float": str(value)}

    def _list(self, value: Sequence[Any], path: str) -> list[Any]:
        return [self.write(v, f"{path}.{i}") for i, v in enumerate(value)]

    def _dict(self, value: Mapping[Any, Any], path: str) -> Any:
        if other := [key for key in value if not isinstance(key, KEYS)]:
            raise _unknown(path, f"a dict with a {type(other[0]).__name__} as key")
        keys = [self.write(key, f"{path}.key{i}") for i, key in enumerate(value)]
        items = [self.write(item, f"{path}.{key}") for key, item in value.items()]
        return {"dict": [list(pair) for pair in zip(keys, items, strict=True)]}

    def _random_state(self, value: numpy.random.RandomState, path: str) -> Any:
        state: Any = value.get_state()
        if state[0] != "MT19937":
            raise _unknown(path, f"a RandomState of {state[0]}")
        return {"random_state": [self._array(state[1], f"{path}.key"), *self._list(state[2:], path)]}

    def _record(self, name: str, value: Any, path: str) -> Any:
        parts = {part.name: getattr(value, part.name) for part in dataclasses.fields(value)}
        found = {"record": name, "fields": self.fields(parts, path)}
        if not isinstance(value, self.kinds.shared):
            return found
        key = json.dumps(found)
        if key not in self._known:
            self._known[key] = len(self.shared)
            self.shared.append(found)
        return {"shared": self._known[key]}

    def _scalar(self, value: numpy.generic, path: str) -> Any:
        name = value.dtype.name
        if name not in NUMBERS:
            raise _unknown(path, f"a {name}")
        return {"number": [name, self.write(value.item(), path)]}

    def _tuple(self, value: tuple[Any, ...], path: str) -> Any:
        if len(value) > LONG:
            if all(type(v) is str for v in value):
                return {"tuple": self._texts(numpy.array(value, dtype=object), path)}
            for kind, dtype in KINDS_OF_TUPLE.items():
                if all(type(v) is kind for v in value):
                    return {"tuple": self._array(numpy.array(value, dtype=dtype), path)}
        return {"tuple": self._list(value, path)}

    def _array(self, value: numpy.ndarray, path: str) -> Any:
        if value.dtype.kind == "U" or (value.dtype == object and _all_texts(value)):
            return self._texts(value, path)
        if value.dtype == object and value.ndim == 1:
            return {"objects": self._list(value.tolist(), path)}
        if value.dtype.newbyteorder("<") not in NAMES:
            raise _unknown(path, f"an array of {value.dtype}")
        # products may round otherwise if a matrix lies in memory otherwise
        turned = value.flags.f_contiguous and not value.flags.c_contiguous
        name = self._store(numpy.array(value.T if turned else value, order="C", ndmin=0), path)
        return {"array": name, "turned": True} if turned else {"array": name}

    def _texts(self, value: numpy.ndarray, path: str) -> Any:
        if value.ndim != 1:
            raise _unknown(path, f"an array of texts of {value.ndim} dimensions")
        parts = [str(v).encode("utf-8", "surrogatepass") for v in value.tolist()]
        raw = numpy.frombuffer(b"".join(parts), dtype=numpy.uint8)
        ends = numpy.cumsum([len(part) for part in parts], dtype=numpy.int64)
        width = 0 if value.dtype == object else value.dtype.itemsize // 4
        if len(parts) * width * 4 > WIDEST:
            raise _unknown(path, f"an array of texts that takes more than {WIDEST} bytes")
        names = [self._store(raw, f"{path}.text"), self._store(ends, f"{path}.ends")]
        return {"texts": [*names, width]}

    def _store(self, array: numpy.ndarray, path: str) -> str:
        """Keep an array once, however often it comes; return its name."""
        key = (array.dtype.str, array.shape, hashlib.sha256(array.tobytes()).digest())
        if key not in self._known:
            while path in self.arrays:  # the keys 1 and "1" of a dict give the same path
                path += "_"
            self._known[key] = path
            self.arrays[path] = array
        name: str = self._known[key]
        return name


# In this order: true is an integer, too, and some of NumPy's numbers are Python's.
_WRITERS: tuple[tuple[Any, Callable[[Writer, Any, str], Any]], ...] = (
    ((type(None), bool, str), Writer._plain),
    (numpy.generic, Writer._scalar),
    (int, Writer._integer),
    (float, Writer._float),
    (list, Writer._list),
    (tuple, Writer._tuple),
    (Mapping, Writer._dict),
    (numpy.ndarray, Writer._array),
    (numpy.random.RandomState, Writer._random_state),
)


def _all_texts(value: numpy.ndarray) -> bool:
    return value.ndim == 1 and all(isinstance(v, str) for v in value.tolist())


def _unknown(path: str, what: str) -> ValueError:
    return ValueError(
        f"{path} holds {what}, which a model file cannot hold. Set it to a number, a text, None, or lists "
        "and arrays of these before you save, or pickle the model."
    )
