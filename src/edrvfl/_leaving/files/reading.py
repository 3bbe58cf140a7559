"""JSON and arrays become a tree again. Whatever is not as `Writer` writes it is refused."""

from __future__ import annotations

import dataclasses
import inspect
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy

from ..._version import __version__
from .writing import KEYS, LARGEST_INTEGER, NUMBERS, WIDEST, Kinds

DEEP = 32  # no tree is deeper
# What a description may name, counted as often as it does, beside one value for each byte of the file: memory
# and time stay in proportion to the file. A record counts as so many values, because it has to answer.
BUDGET = 2**22
RECORD = 1000
# Estimators that were called otherwise in version 1 of the format.
RENAMED = {f"LaplaceRidge{kind}": f"KernelRidge{kind}" for kind in ("Classifier", "Regressor")}
NOT_FINITE = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


@dataclass(slots=True)
class Reader:
    """Turns JSON back into a tree."""

    kinds: Kinds
    arrays: Mapping[str, numpy.ndarray]
    budget: int  # of values that may still be read
    shared: Sequence[Any] = ()

    def read(self, value: Any, depth: int = 0) -> Any:
        """Return the value that some JSON stands for."""
        if depth > DEEP:
            raise ValueError(f"Its description is nested more than {DEEP} deep.")
        self._spend(1)
        if isinstance(value, int) and not -LARGEST_INTEGER <= value < LARGEST_INTEGER:
            raise ValueError("It holds an integer of more than 64 bits.")
        if value is None or isinstance(value, (bool, int, float, str)):
            return value
        if isinstance(value, list):
            return [self.read(v, depth + 1) for v in value]
        reader = _READERS.get(frozenset(value))
        names = ", ".join(value)[:200]
        if reader is None:
            raise ValueError(f"Its description has an object with the names {names}, which means nothing.")
        try:
            return reader(self, value, depth + 1)
        except (TypeError, KeyError, AttributeError) as error:
            raise ValueError(f"Its description has an invalid object with the names {names}.") from error

    def _spend(self, values: int) -> None:
        """Count values that are read. A small file that asks for many is refused."""
        self.budget -= values
        if self.budget < 0:
            raise ValueError("Its description names more values than a file of its size may.")

    def fields(self, value: Any, depth: int = 0) -> dict[str, Any]:
        """Return the named values of a JSON object."""
        _need(isinstance(value, dict), "named values")
        return {name: self.read(v, depth + 1) for name, v in value.items()}

    def read_shared(self, entries: list[Any]) -> None:
        """Read the records that are used in several places. None of them may use another."""
        shared = [self.read(entry) for entry in entries]
        _need(all(isinstance(record, self.kinds.shared) for record in shared), "shared records")
        self.shared = shared

    def _record(self, value: Any, depth: int) -> Any:
        kind = self.kinds.records.get(value["record"])
        if kind is None:
            name = str(value["record"])[:80]
            raise ValueError(f"Its description names a record {name!r} that this edrvfl does not know.")
        self._spend(RECORD)
        found, parts = self.fields(value["fields"], depth), dataclasses.fields(kind)
        # a field with a default may have been added after the file was written
        missing = [p.name for p in parts if p.name not in found and p.default is dataclasses.MISSING]
        if wrong := [*missing, *(set(found) - {part.name for part in parts})]:
            names = ", ".join(wrong)[:200]
            raise ValueError(f"A record {kind.__name__} has missing or unknown fields: {names}.")
        return kind(**found)

    def _estimator(self, value: Any, depth: int) -> Any:
        return build(self.kinds.estimators, value["estimator"], self.fields(value["params"], depth))

    def _shared(self, value: Any, _: int) -> Any:
        place = value["shared"]
        _need(type(place) is int and 0 <= place < len(self.shared), "reference to a shared record")
        return self.shared[place]

    def _tuple(self, value: Any, depth: int) -> Any:
        found = self.read(value["tuple"], depth)
        if isinstance(found, numpy.ndarray) and found.ndim == 1:
            found = found.tolist()
        _need(isinstance(found, list), "tuple")
        return tuple(found)

    def _dict(self, value: Any, depth: int) -> Any:
        pairs = [_several(pair, 2, "dict") for pair in value["dict"]]
        found = {self.read(key, depth): self.read(item, depth) for key, item in pairs}
        _need(len(found) == len(pairs) and all(isinstance(key, KEYS) for key in found), "key of a dict")
        return found

    def _float(self, value: Any, _: int) -> float:
        return NOT_FINITE[value["float"]]

    def _number(self, value: Any, _: int) -> Any:
        kind, item = _several(value["number"], 2, "number")
        _need(kind in NUMBERS, "type of a number")
        item, dtype = self.read(item), numpy.dtype(kind)
        _need(type(item) is {"f": float, "b": bool}.get(dtype.kind, int), kind)
        with numpy.errstate(over="ignore"):
            return dtype.type(item)

    def _named(self, name: Any) -> numpy.ndarray:
        if name not in self.arrays:
            raise ValueError(f"Its description names an array {str(name)[:80]!r} that is not there.")
        self._spend(self.arrays[name].size)
        return self.arrays[name]

    def _array(self, value: Any, _: int) -> numpy.ndarray:
        array = self._named(value["array"])
        _need(value.get("turned", True) is True, "turned array")
        return array.T if "turned" in value else array

    def _texts(self, value: Any, _: int) -> numpy.ndarray:
        raw, ends, width = _several(value["texts"], 3, "array of texts")
        raw, ends = self._named(raw), self._named(ends)
        _need(type(width) is int and width >= 0 and ends.ndim == 1, "array of texts")
        self._spend(len(ends) * width // 2)  # a letter takes half as much as a number
        return _split_texts(raw, ends, width)

    def _objects(self, value: Any, depth: int) -> numpy.ndarray:
        found = self.read(value["objects"], depth)
        _need(isinstance(found, list) and all(v is None or isinstance(v, KEYS) for v in found), "object")
        return _object_array(found)

    def _random_state(self, value: Any, depth: int) -> numpy.random.RandomState:
        state = self.read(value["random_state"], depth)
        key, place, has_gauss, gauss = _several(state, 4, "random state")
        valid = key.shape == (624,) and key.dtype == numpy.uint32 and type(gauss) is float
        valid = valid and type(place) is type(has_gauss) is int and 0 <= place <= 624
        _need(valid and has_gauss in (0, 1), "random state")
        random_state = numpy.random.RandomState()
        random_state.set_state(("MT19937", key, place, has_gauss, gauss))
        return random_state


def _need(condition: Any, what: str) -> None:
    if not condition:
        raise ValueError(f"The {what} is invalid.")


def _several(value: Any, n: int, what: str) -> list[Any]:
    """Return a value that is a list of n."""
    _need(isinstance(value, list) and len(value) == n, what)
    found: list[Any] = value
    return found


def build(estimators: Mapping[str, Any], name: Any, params: dict[str, Any]) -> Any:
    """Return an estimator that is not fitted, of parameters that it accepts."""
    name = RENAMED.get(name, name) if isinstance(name, str) else name
    if name not in estimators:
        known = ", ".join(estimators)
        raise ValueError(f"It holds a model {str(name)[:80]!r}, and this edrvfl knows {known}.")
    kind = estimators[name]
    if unknown := sorted(set(params) - set(inspect.signature(kind).parameters)):
        names = ", ".join(map(repr, unknown))[:200]
        raise ValueError(
            f"{name} has no parameter {names} in edrvfl {__version__}: it was written by a later edrvfl. "
            "Install that one."
        )
    if params.get("input_scaling") == "auto":  # which it was before it had to prove itself
        params = {**params, "input_scaling": "loo"}
    estimator = kind(**params)
    try:
        estimator._validate_params()
    except ValueError as error:  # its message holds the value, which may be long
        raise ValueError(f"It has a parameter that is invalid. {str(error)[:300]}") from None
    return estimator


def _object_array(values: list[Any]) -> numpy.ndarray:
    array = numpy.empty(len(values), dtype=object)
    array[:] = values
    return array


def _split_texts(raw: numpy.ndarray, ends: numpy.ndarray, width: int) -> numpy.ndarray:
    """Return the texts whose bytes stand one after another."""
    _need(raw.dtype == numpy.uint8 and raw.ndim == 1 and ends.dtype == numpy.int64, "array of texts")
    places = numpy.concatenate([[0], ends])
    ascends = (places[1:] >= places[:-1]).all()
    _need(ascends and places[-1] == len(raw), "array of the ends of texts")
    whole, cuts = raw.tobytes(), places.tolist()
    texts = [whole[a:b].decode("utf-8", "surrogatepass") for a, b in itertools.pairwise(cuts)]
    if width == 0:
        return _object_array(texts)
    _need(max(map(len, texts), default=0) <= width <= WIDEST / 4 / max(1, len(texts)), "width of texts")
    return numpy.array(texts, dtype=f"<U{width}")


_READERS: Mapping[frozenset[str], Callable[[Reader, Any, int], Any]] = {
    frozenset(names): reader
    for names, reader in (
        (("record", "fields"), Reader._record),
        (("estimator", "params"), Reader._estimator),
        (("shared",), Reader._shared),
        (("tuple",), Reader._tuple),
        (("dict",), Reader._dict),
        (("float",), Reader._float),
        (("number",), Reader._number),
        (("array",), Reader._array),
        (("array", "turned"), Reader._array),
        (("texts",), Reader._texts),
        (("objects",), Reader._objects),
        (("random_state",), Reader._random_state),
    )
}
