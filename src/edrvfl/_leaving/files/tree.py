"""A tree of records, lists and numbers becomes JSON and arrays, and comes back the same.

JSON has no tuples, no arrays and no infinity: these are objects with one telling name, such as
{"array": "network_.readouts.0"}. An object never names a Python type: `Kinds` says which names there are.
"""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy

from .container import NAMES

LONG = 32  # longer tuples of numbers or texts become arrays
DEEP = 32  # no tree is deeper
LARGEST_INTEGER = 2**63
WIDEST = 2**24  # bytes of an array of texts of fixed width: a short text may ask for a wide array
NUMBERS = (
    "float32",
    "float64",
    "bool",
    *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)),
)
NOT_FINITE = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
KEYS = (str, bool, int, float, numpy.generic)  # what a dict may have as keys
KINDS_OF_TUPLE: Mapping[type, str] = {int: "int64", float: "float64", bool: "bool"}


@dataclass(frozen=True, slots=True)
class Kinds:
    """What a tree may hold, by the names that files use."""

    records: Mapping[str, type]
    shared: tuple[type, ...]  # records that are written once, however often they come
    estimators: Callable[[str], Any]  # name -> an object with `parameters(model)` and `build(...)`
    name_of: Callable[[Any], str | None]  # estimator -> its name, if it is one


@dataclass(slots=True)
class Writer:
    """Turns a tree into JSON, and collects its arrays and shared records."""

    kinds: Kinds
    arrays: dict[str, numpy.ndarray] = field(default_factory=dict)
    shared: list[Any] = field(default_factory=list)
    _known: dict[Any, Any] = field(default_factory=dict)

    def write(self, value: Any, path: str) -> Any:
        """Return a value as JSON. `path` tells where it stands, and names its arrays."""
        if isinstance(value, numpy.str_):
            value = str(value)
        if isinstance(value, numpy.generic):
            return self._scalar(value, path)
        if value is None or isinstance(value, (bool, str)):
            return value
        if isinstance(value, int):
            if not -LARGEST_INTEGER <= value < LARGEST_INTEGER:
                raise _unknown(path, "an integer of more than 64 bits")
            return int(value)
        if isinstance(value, float):
            return value if math.isfinite(value) else {"float": str(value)}
        if isinstance(value, list):
            return [self.write(v, f"{path}.{i}") for i, v in enumerate(value)]
        if isinstance(value, tuple):
            return self._tuple(value, path)
        if isinstance(value, Mapping):
            if other := [key for key in value if not isinstance(key, KEYS)]:
                raise _unknown(path, f"a dict with a {type(other[0]).__name__} as key")
            pairs = enumerate(value.items())
            return {
                "dict": [
                    [self.write(k, f"{path}.key{i}"), self.write(v, f"{path}.{k}")] for i, (k, v) in pairs
                ]
            }
        return self._compound(value, path)

    def _compound(self, value: Any, path: str) -> Any:
        if isinstance(value, numpy.ndarray):
            return self._array(value, path)
        if isinstance(value, numpy.random.RandomState):
            state: Any = value.get_state()
            if state[0] == "MT19937":
                rest = [self.write(part, path) for part in state[2:]]
                return {"random_state": [self._array(state[1], f"{path}.key"), *rest]}
        for name, kind in self.kinds.records.items():
            if type(value) is kind:
                return self._record(name, value, path)
        if (found := self.kinds.name_of(value)) is not None:
            params = self.kinds.estimators(found).parameters(value)
            return {"estimator": found, "params": self.fields(params, path)}
        raise _unknown(path, f"a {type(value).__name__}")

    def fields(self, values: Mapping[str, Any], path: str) -> dict[str, Any]:
        """Return named values as a JSON object."""
        return {name: self.write(value, f"{path}.{name}" if path else name) for name, value in values.items()}

    def _record(self, name: str, value: Any, path: str) -> Any:
        names = [part.name for part in dataclasses.fields(value)]
        found = {"record": name, "fields": self.fields({n: getattr(value, n) for n in names}, path)}
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
        return {"tuple": [self.write(v, f"{path}.{i}") for i, v in enumerate(value)]}

    def _array(self, value: numpy.ndarray, path: str) -> Any:
        if value.dtype.kind == "U" or (value.dtype == object and _all_texts(value)):
            return self._texts(value, path)
        if value.dtype == object and value.ndim == 1:
            return {"objects": [self.write(v, f"{path}.{i}") for i, v in enumerate(value.tolist())]}
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


def _all_texts(value: numpy.ndarray) -> bool:
    return value.ndim == 1 and all(isinstance(v, str) for v in value.tolist())


def _unknown(path: str, what: str) -> ValueError:
    return ValueError(
        f"{path} holds {what}, which a model file cannot hold. Set it to a number, a text, None, or lists "
        "and arrays of these before you save, or pickle the model."
    )


@dataclass(slots=True)
class Reader:
    """Turns JSON back into a tree. Whatever is not as `Writer` writes it is refused."""

    kinds: Kinds
    arrays: Mapping[str, numpy.ndarray]
    shared: list[Any] = field(default_factory=list)
    _texts: dict[Any, numpy.ndarray] = field(default_factory=dict)

    def read(self, value: Any, depth: int = 0) -> Any:
        """Return the value that some JSON stands for."""
        if depth > DEEP:
            raise ValueError(f"Its description is nested more than {DEEP} deep.")
        if isinstance(value, int) and not -LARGEST_INTEGER <= value < LARGEST_INTEGER:
            raise ValueError("It holds an integer of more than 64 bits.")
        if value is None or isinstance(value, (bool, int, float, str)):
            return value
        if isinstance(value, list):
            return [self.read(v, depth + 1) for v in value]
        for tell, reader in _READERS.items():
            if tell in value:
                return reader(self, value, depth + 1)
        raise ValueError(f"Its description holds an object that is none of {', '.join(_READERS)}.")

    def fields(self, value: Any, depth: int = 0) -> dict[str, Any]:
        """Return the named values of a JSON object."""
        if not isinstance(value, dict):
            raise ValueError("Its description should hold named values where there are none.")
        return {name: self.read(v, depth + 1) for name, v in value.items()}

    def _record(self, value: dict[str, Any], depth: int) -> Any:
        name, given = _only(value, "record", "fields")
        kind = self.kinds.records.get(name) if isinstance(name, str) else None
        if kind is None:
            raise ValueError(
                f"Its description names a record {str(name)[:80]!r} that this edrvfl does not know."
            )
        found = self.fields(given, depth)
        parts = dataclasses.fields(kind)
        # a field with a default may have been added after the file was written
        missing = [p.name for p in parts if p.name not in found and p.default is dataclasses.MISSING]
        unknown = set(found) - {part.name for part in parts}
        if missing or unknown:
            raise ValueError(f"Record {name} has fields too few or too many: {[*missing, *unknown][:5]}.")
        return kind(**found)

    def _estimator(self, value: dict[str, Any], depth: int) -> Any:
        name, params = _only(value, "estimator", "params")
        return self.kinds.estimators(name).build(self.fields(params, depth))

    def _shared(self, value: dict[str, Any], _: int) -> Any:
        (number,) = _only(value, "shared")
        if type(number) is not int or not 0 <= number < len(self.shared):
            raise ValueError("Its description names a shared record that does not stand before.")
        return self.shared[number]

    def _tuple(self, value: dict[str, Any], depth: int) -> Any:
        (items,) = _only(value, "tuple")
        found = self.read(items, depth)
        if isinstance(found, numpy.ndarray) and found.ndim == 1:
            found = found.tolist()
        if not isinstance(found, list):
            raise ValueError("Its description has a tuple that is neither a list nor an array.")
        return tuple(found)

    def _dict(self, value: dict[str, Any], depth: int) -> Any:
        (pairs,) = _only(value, "dict")
        if not isinstance(pairs, list) or not all(isinstance(p, list) and len(p) == 2 for p in pairs):
            raise ValueError("Its description has a dict that is not a list of pairs.")
        found = {}
        for key, item in pairs:
            key = self.read(key, depth)
            if not isinstance(key, KEYS) or key in found:
                raise ValueError("Its description has a dict with a key that is none, or that comes twice.")
            found[key] = self.read(item, depth)
        return found

    def _float(self, value: dict[str, Any], _: int) -> float:
        (name,) = _only(value, "float")
        if not isinstance(name, str) or name not in NOT_FINITE:
            raise ValueError(f"Its description has a float that is none of {', '.join(NOT_FINITE)}.")
        return NOT_FINITE[name]

    def _number(self, value: dict[str, Any], depth: int) -> Any:
        (found,) = _only(value, "number")
        if not isinstance(found, list) or len(found) != 2 or found[0] not in NUMBERS:
            raise ValueError("Its description has a number of an unknown type.")
        item, dtype = self.read(found[1], depth), numpy.dtype(found[0])
        wanted = {"f": float, "b": bool}.get(dtype.kind, int)
        if type(item) is not wanted:
            raise ValueError(f"Its description has a {found[0]} that is none.")
        with numpy.errstate(over="ignore"):
            return dtype.type(item)

    def _named(self, name: Any) -> numpy.ndarray:
        if not isinstance(name, str) or name not in self.arrays:
            raise ValueError(f"Its description names an array {str(name)[:80]!r} that is not there.")
        return self.arrays[name]

    def _array(self, value: dict[str, Any], _: int) -> numpy.ndarray:
        if "turned" not in value:
            return self._named(*_only(value, "array"))
        name, turned = _only(value, "array", "turned")
        if turned is not True:
            raise ValueError("Its description has an array of which it does not say whether it is turned.")
        return self._named(name).T

    def _text_array(self, value: dict[str, Any], _: int) -> numpy.ndarray:
        (found,) = _only(value, "texts")
        if not isinstance(found, list) or len(found) != 3 or type(found[2]) is not int or found[2] < 0:
            raise ValueError("Its description has texts that are not two arrays and a width.")
        raw, ends, width = self._named(found[0]), self._named(found[1]), found[2]
        key = str(found[0]), str(found[1]), width
        if key not in self._texts:  # once, so that many references to long texts take no more memory
            self._texts[key] = _split_texts(raw, ends, width)
        return self._texts[key]

    def _objects(self, value: dict[str, Any], depth: int) -> numpy.ndarray:
        (items,) = _only(value, "objects")
        found = self.read(items, depth)
        if not isinstance(found, list) or not all(v is None or isinstance(v, KEYS) for v in found):
            raise ValueError("Its description has objects that are not a list of numbers and texts.")
        array = numpy.empty(len(found), dtype=object)
        array[:] = found
        return array

    def _random_state(self, value: dict[str, Any], depth: int) -> numpy.random.RandomState:
        (found,) = _only(value, "random_state")
        state = self.read(found, depth)
        if not isinstance(state, list) or [type(v) for v in state] != [numpy.ndarray, int, int, float]:
            raise ValueError("Its description has a random state that is none.")
        key, place, has_gauss, gauss = state
        if (
            key.shape != (624,)
            or key.dtype != numpy.uint32
            or not 0 <= place <= 624
            or has_gauss not in (0, 1)
        ):
            raise ValueError("Its description has a random state that is none.")
        random_state = numpy.random.RandomState()
        random_state.set_state(("MT19937", key, place, has_gauss, gauss))
        return random_state


def _only(value: dict[str, Any], *names: str) -> Sequence[Any]:
    """Return the named entries of an object that has no others."""
    if set(value) != set(names):
        raise ValueError(f"Its description has an object with {sorted(value)[:5]}, expected {sorted(names)}.")
    return [value[name] for name in names]


def _split_texts(raw: numpy.ndarray, ends: numpy.ndarray, width: int) -> numpy.ndarray:
    """Return the texts whose bytes stand one after another."""
    if raw.dtype != numpy.uint8 or raw.ndim != 1 or ends.dtype != numpy.int64 or ends.ndim != 1:
        raise ValueError("Its texts are not bytes and their ends.")
    places = numpy.concatenate([[0], ends])
    if places[-1] != len(raw) or (numpy.diff(places) < 0).any() or places.min() < 0:
        raise ValueError("The ends of its texts do not ascend to the last byte.")
    whole, cuts = raw.tobytes(), places.tolist()
    try:
        texts = [whole[a:b].decode("utf-8", "surrogatepass") for a, b in itertools.pairwise(cuts)]
    except UnicodeDecodeError as error:
        raise ValueError(f"Its texts are not UTF-8 ({error}).") from error
    if width == 0:
        found = numpy.empty(len(texts), dtype=object)
        found[:] = texts
        return found
    if max(map(len, texts), default=0) > width or len(texts) * width * 4 > WIDEST:
        raise ValueError("Its texts are wider than their array, or their array is too wide.")
    return numpy.array(texts, dtype=f"<U{width}")


_READERS: Mapping[str, Callable[[Reader, dict[str, Any], int], Any]] = {
    "record": Reader._record,
    "estimator": Reader._estimator,
    "shared": Reader._shared,
    "tuple": Reader._tuple,
    "dict": Reader._dict,
    "float": Reader._float,
    "number": Reader._number,
    "array": Reader._array,
    "texts": Reader._text_array,
    "objects": Reader._objects,
    "random_state": Reader._random_state,
}
