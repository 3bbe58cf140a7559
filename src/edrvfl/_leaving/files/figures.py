"""Marks of fitted attributes that decide no answer: names, figures about the fit, the table of members."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy

from ..._seam.fields import Known, Mark

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


def figure(value: Any, _: Known) -> str:
    """Mark a number about a fit, of Python or NumPy."""
    return "" if _are([value], NUMBER) else "a number"


def names(value: Any, known: Known) -> str:
    """Mark a name for each column, in an array of objects."""
    d, given = known["d"], value.tolist()
    right = value.dtype == object and value.shape == (d,) and _are(given, (str,))
    return "" if right and len(set(given)) == d else f"{d} different names"


def proven(value: Any, _: Known) -> str:
    """Mark what became of parameters that had to prove themselves, by name."""
    known = {"input_scaling", "correct_weight", "prune_rate"} >= value.keys()
    right = known and _are(value.values(), (*NUMBER, str, type(None)))
    return "" if right else "a table of parameters that had to prove themselves"


def members(figures: Sequence[str]) -> Mark:
    """Return the mark of a table of a portfolio's members: lists of one length, by name.

    The figures are fitted attributes that each member has, too.
    """
    kinds = {**MEMBERS, **{name.removesuffix("_"): NUMBER for name in figures}}

    def wrong(value: Any, _: Known) -> str:
        columns = list(value.values())
        if not kinds.keys() <= value.keys() or not _are(value, (str,)):
            return f"a table with the columns {', '.join(kinds)}"
        if not all(isinstance(column, list) and len(column) == len(columns[0]) for column in columns):
            return "a table whose columns are lists of one length"
        bad = next((name for name, kind in kinds.items() if not _are(value[name], kind)), None)
        return "" if bad is None else f"a table whose column {bad} holds values of the right type"

    return wrong
