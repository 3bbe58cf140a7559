"""Marks of fitted attributes that decide no answer: names, figures about the fit, the table of members."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy

from ..._seam.fields import Known

NUMBER = (int, float, numpy.floating, numpy.integer)
# The columns that a table of members has at least, beside its figures, and what they hold.
MEMBERS: Mapping[str, tuple[type, ...]] = {
    "member": (str,),
    "weight": (float,),
    "n_layers": (int, type(None)),
    "n_hidden": (int, type(None)),
    "seconds": NUMBER,
    "settings": (object,),
}


def _are(values: Any, kinds: tuple[type, ...]) -> bool:
    return all(isinstance(value, kinds) and not isinstance(value, bool) for value in values)


@dataclass(frozen=True, slots=True)
class Figure:
    """A number about a fit, of Python or NumPy."""

    def wrong(self, value: Any, _: Known) -> str:
        return "" if _are([value], NUMBER) else "a number"


@dataclass(frozen=True, slots=True)
class Names:
    """A name for each column, in an array of objects."""

    def wrong(self, value: Any, known: Known) -> str:
        d, names = known["d"], value.tolist()
        right = value.dtype == object and value.shape == (d,) and _are(names, (str,))
        return "" if right and len(set(names)) == d else f"{d} different names"


@dataclass(frozen=True, slots=True)
class Proven:
    """What became of parameters that had to prove themselves, by name."""

    def wrong(self, value: Any, _: Known) -> str:
        known = {"input_scaling", "correct_weight", "prune_rate"} >= value.keys()
        right = known and _are(value.values(), (*NUMBER, str, type(None)))
        return "" if right else "a table of parameters that had to prove themselves"


@dataclass(frozen=True, slots=True)
class Members:
    """A table of the members of a portfolio: lists of one length, by name."""

    figures: tuple[str, ...]  # fitted attributes that each member has, too

    def wrong(self, value: Any, _: Known) -> str:
        kinds = {**MEMBERS, **{name.removesuffix("_"): NUMBER for name in self.figures}}
        columns = list(value.values())
        if not kinds.keys() <= value.keys() or not _are(value, (str,)):
            return f"a table with the columns {', '.join(kinds)}"
        if not all(isinstance(column, list) and len(column) == len(columns[0]) for column in columns):
            return "a table whose columns are lists of one length"
        bad = next((name for name, kind in kinds.items() if not _are(value[name], kind)), None)
        return "" if bad is None else f"a table whose column {bad} holds values of the right type"
