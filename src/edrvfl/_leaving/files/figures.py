"""The fitted attributes that decide no answer: names, figures about the fit, and the table of members."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy

from .relations import need

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


def check_names(names: Any, where: str, d: int) -> None:
    """Refuse what is not a name for each of d columns."""
    right = isinstance(names, numpy.ndarray) and names.dtype == object and names.shape == (d,)
    right = right and all(isinstance(name, str) for name in names.tolist())
    need(right and len(set(names.tolist())) == d, where, f"{d} different names")


def check_members(members: Any, figures: list[str]) -> None:
    """Refuse what is not a table of a portfolio's members with some figures of each."""
    kinds = {**MEMBERS, **dict.fromkeys(figures, NUMBER)}
    need(
        isinstance(members, dict) and kinds.keys() <= members.keys(),
        "members_",
        f"a dict with {', '.join(kinds)}",
    )
    columns = list(members.values())
    equal = all(isinstance(column, list) and len(column) == len(columns[0]) for column in columns)
    need(equal and all(isinstance(name, str) for name in members), "members_", "lists of one length, by name")
    for name, kind in kinds.items():
        right = all(isinstance(value, kind) and not isinstance(value, bool) for value in members[name])
        need(right, f"members_.{name}", f"values of the type {' or '.join(one.__name__ for one in kind)}")


def check_figures(figures: dict[str, Any], record: Any) -> None:
    """Refuse figures that are not numbers, or of a network not as many as the layers that were grown."""
    if not hasattr(record, "layers"):
        for name, value in figures.items():
            need(_are_numbers([value]), name, "a number")
        return
    own = {"n_layers_": len(record.layers), "n_hidden_": record.n_hidden}
    counts: dict[bool, set[int]] = {True: set(), False: set()}  # of leave-one-out, and of the others
    for name, value in figures.items():
        if name in own:
            need(value == own[name], name, str(own[name]))
            continue
        need(isinstance(value, tuple) and _are_numbers(value), name, "a tuple of numbers")
        if name != "fallback_layers_":
            counts[name.startswith("loo_")].add(len(value))
    (grown,) = counts[False] if len(counts[False]) == 1 else (0,)
    need(grown >= len(record.layers), "regularization_", "as long as the other figures of the layers")
    need(counts[True] in ({0}, {grown}), "loo_", "empty, or as long as the other figures of the layers")
    need(len(figures["fallback_layers_"]) <= grown, "fallback_layers_", "some of the layers")


def _are_numbers(values: Iterable[Any]) -> bool:
    return all(isinstance(value, NUMBER) and not isinstance(value, bool) for value in values)
