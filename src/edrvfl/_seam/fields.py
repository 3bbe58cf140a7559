"""What the fields of a record hold beside their type: said once, in the annotation, and checked in a file.

`Annotated[Array, floats("n", "k")]` is an array of n times k floats. Sides of one name have one length within
a model. A mark is called with a value, and says what this should have been, "" if it is right; it notes the
lengths of sides in `known`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy

MOST = 2**31  # columns, neurons, layers, rows
FLOATS = (numpy.dtype(numpy.float64), numpy.dtype(numpy.float32))

Known = dict[str, Any]  # the lengths of sides, and the precision of the model as "dtype"
Mark = Callable[[Any, Known], str]


def _fits(shape: Sequence[int], sides: Sequence[str | int], known: Known) -> bool:
    """Tell whether the lengths are those of the sides. A side of no name may have any length."""
    if len(shape) != len(sides):
        return False
    pairs = zip(sides, shape, strict=True)
    return all(
        side in ("", n) or (isinstance(side, str) and known.setdefault(side, n) == n) for side, n in pairs
    )


def floats(
    *sides: str | int,
    low: float = -math.inf,
    high: float = math.inf,
    positive: bool = False,
    infinite: bool = False,
    own: bool = False,
) -> Mark:
    """Return the mark of an array of floats with these sides, without NaN.

    Numbers may be infinite if `infinite`, and with `own` the precision need not be that of the model.
    """

    def wrong(value: Any, known: Known) -> str:
        kinds = FLOATS if own or "dtype" not in known else (known["dtype"],)
        array = isinstance(value, numpy.ndarray) and value.dtype in kinds
        if not array or not _fits(value.shape, sides, known):
            shape = ", ".join(str(known.get(str(side), side or "any")) for side in sides)
            return f"an array of {' or '.join(map(str, kinds))} of shape ({shape})"
        if numpy.isnan(value).any() or not (infinite or numpy.isfinite(value).all()):
            return "numbers, not NaN" if infinite else "finite numbers"
        if (value < low).any() or (value > high).any() or (positive and (value <= 0).any()):
            return "above 0" if positive else f"from {low} to {high}"
        return ""

    return wrong


@dataclass(frozen=True, slots=True)
class Places:
    """A list of places, as int64, among as many things as the sides of `among` have together."""

    side: str
    among: tuple[str, ...]

    def __call__(self, value: Any, known: Known) -> str:
        if not isinstance(value, numpy.ndarray) or value.dtype != numpy.int64 or value.ndim != 1:
            return "a list of int64"
        below = sum(known.get(side, 0) for side in self.among)
        right = not value.size or (value.min() >= 0 and value.max() < below)
        return "" if right and _fits(value.shape, (self.side,), known) else f"places from 0 to {below - 1}"


@dataclass(frozen=True, slots=True)
class Labels:
    """The labels of classes: two or more, no two alike."""

    side: str

    def __call__(self, value: Any, known: Known) -> str:
        if not isinstance(value, numpy.ndarray) or value.ndim != 1 or len(value) < 2:
            return "two or more labels"
        labels = value.tolist()
        finite = value.dtype.kind != "f" or bool(numpy.isfinite(value).all())
        alike = len({(type(label), label) for label in labels}) < len(labels)
        right = finite and not alike and _fits(value.shape, (self.side,), known)
        return "" if right else f"different labels, as many as the model has answers ({known.get(self.side)})"


@dataclass(frozen=True, slots=True)
class Between:
    """A number from `low` to `high`. It may be the length of a side, or a place among the things of one."""

    low: float = 0
    high: float = MOST
    side: str = ""
    among: str = ""

    def __call__(self, value: Any, known: Known) -> str:
        high = known[self.among] - 1 if self.among else self.high
        right = self.low <= value <= high and _fits((value,), (self.side,), known)
        return "" if right else f"from {self.low} to {high}"


@dataclass(frozen=True, slots=True)
class Long:
    """A tuple as long as a side."""

    side: str

    def __call__(self, value: Any, known: Known) -> str:
        return "" if _fits((len(value),), (self.side,), known) else f"a tuple of {known[self.side]}"


@dataclass(frozen=True, slots=True)
class OneOf:
    """One of some texts."""

    known: tuple[str, ...]

    def __call__(self, value: Any, _: Known) -> str:
        return "" if value in self.known else f"one of {', '.join(self.known)}"
