"""Records must be what their annotations say before they are a model.

Whoever can write a checksum can write any numbers. A model that passes here may be wrong, but it answers.
"""

from __future__ import annotations

import math
import types
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from ..._layers.records import HiddenLayer
from ..._models.kernel import KernelModel
from ..._models.model import Voter
from ..._models.network import Network
from ..._models.stored import StoredLayer
from ..._seam.fields import Known
from .relations import RELATIONS, need

# What a file holds where an annotation says less: layers whose weights are drawn again, and kinds of voters.
IN_FILES: Mapping[Any, Any] = {HiddenLayer: StoredLayer, Voter: Network | KernelModel}
PLAIN = (str, bool, int, type(None))
_hints = cache(get_type_hints)


def check(value: Any, hint: Any, where: str, known: Known) -> None:
    """Refuse a value that is not what an annotation says. `known` has the lengths of sides so far."""
    if type(value) is hint and hint in PLAIN:  # at once: wide tables have many
        return
    hint = IN_FILES.get(hint, hint)
    kind, parts = get_origin(hint), get_args(hint)
    if kind is Annotated:
        check(value, parts[0], where, known)
        for mark in parts[1:]:
            wanted = mark(value, known)
            need(not wanted, where, wanted)
    elif kind in (Union, types.UnionType):
        _check_union(value, parts, where, known)
    elif kind is tuple:
        _check_tuple(value, parts, where, known)
    elif is_dataclass(hint):
        _check_record(value, hint, where, known)
    elif hint is not Any:
        need(type(value) is hint, where, f"of the type {getattr(hint, '__name__', hint)}")
        need(hint is not float or math.isfinite(value), where, "finite")


def _check_union(value: Any, options: tuple[Any, ...], where: str, known: Known) -> None:
    """Take the option that is the type of the value, else the first that fits."""
    if type(value) in options:
        return check(value, type(value), where, known)
    for option in (option for option in options if option is not type(None)):
        found = dict(known)
        try:
            check(value, option, where, found)
        except ValueError as error:
            problem = error
        else:
            return known.update(found)
    raise problem


def _check_tuple(value: Any, parts: tuple[Any, ...], where: str, known: Known) -> None:
    need(type(value) is tuple, where, "a tuple")
    hints = [parts[0]] * len(value) if parts[-1] is ... else parts
    need(len(value) == len(hints), where, f"a tuple of {len(hints)}")
    for i, (item, hint) in enumerate(zip(value, hints, strict=True)):
        # records side by side may have sides of other lengths
        check(item, hint, f"{where}.{i}", dict(known) if is_dataclass(item) else known)


def _check_record(value: Any, kind: Any, where: str, known: Known) -> None:
    need(type(value) is kind, where, f"a record {kind.__name__}")
    hints = _hints(kind, include_extras=True)
    for part in fields(kind):
        check(getattr(value, part.name), hints[part.name], f"{where}.{part.name}", known)
    if kind in RELATIONS:
        RELATIONS[kind](value, where, known)
