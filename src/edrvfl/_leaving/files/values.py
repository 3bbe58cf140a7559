"""What single values of a model must be before it is one: each check names the value that is not."""

from __future__ import annotations

import math
from typing import Any, NoReturn

import numpy

FLOATS = (numpy.dtype(numpy.float64), numpy.dtype(numpy.float32))
MOST = 2**31  # of columns, neurons, layers, rows


def refuse(where: str, wanted: str) -> NoReturn:
    """Say what should stand somewhere."""
    raise ValueError(f"{where} should be {wanted}.")


def need(condition: Any, where: str, wanted: str) -> None:
    """Refuse a value for which a condition does not hold."""
    if not condition:
        refuse(where, wanted)


def integer(value: Any, where: str, low: int = 0, high: int = MOST) -> int:
    """Return a value that is an integer from `low` to `high`."""
    if type(value) is not int or not low <= value <= high:
        refuse(where, f"an integer from {low} to {high}")
    return value


def number(value: Any, where: str, low: float = -math.inf, high: float = math.inf) -> float:
    """Return a value that is a finite float from `low` to `high`."""
    if type(value) is not float or not math.isfinite(value) or not low <= value <= high:
        refuse(where, f"a finite number from {low} to {high}")
    return value


def one_of(value: Any, where: str, known: Any) -> None:
    """Refuse what is none of some texts."""
    need(isinstance(value, str) and value in known, where, f"one of {', '.join(map(str, known))}")


def record(value: Any, where: str, kind: type) -> None:
    """Refuse what is no record of a kind."""
    need(type(value) is kind, where, f"a {kind.__name__}")


def items(value: Any, where: str, length: int | None = None) -> tuple[Any, ...]:
    """Return a value that is a tuple, of a length if one is given."""
    if not isinstance(value, tuple) or (length is not None and len(value) != length):
        refuse(where, "a tuple" if length is None else f"a tuple of {length}")
    return value


def floats(
    value: Any, where: str, shape: tuple[int, ...], dtype: Any = None, infinite: bool = False
) -> numpy.ndarray:
    """Return a value that is an array of floats of a shape, without NaN, and finite unless it need not be."""
    allowed = FLOATS if dtype is None else (dtype,)
    if not isinstance(value, numpy.ndarray) or value.dtype not in allowed or value.shape != shape:
        refuse(where, f"an array of {' or '.join(map(str, allowed))} of shape {shape}")
    if numpy.isnan(value).any() or not (infinite or numpy.isfinite(value).all()):
        refuse(where, "without NaN" if infinite else "finite")
    return value


def positive(value: numpy.ndarray, where: str) -> None:
    """Refuse an array with numbers that are 0 or below."""
    need((value > 0).all(), where, "above 0")


def indices(value: Any, where: str, below: int, ascending: bool = False) -> numpy.ndarray:
    """Return a value that is a list of places, as int64, from 0 to `below`."""
    if not isinstance(value, numpy.ndarray) or value.dtype != numpy.int64 or value.ndim != 1:
        refuse(where, "a list of places")
    if value.size and (value.min() < 0 or value.max() >= below):
        refuse(where, f"places below {below}")
    if ascending and (numpy.diff(value) <= 0).any():
        refuse(where, "in ascending order")
    return value
