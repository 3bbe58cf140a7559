"""Docstrings of estimators that are alike: what an entry says of several classes is written once."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar

Kind = TypeVar("Kind", bound=type)
ENTRY = re.compile(r"^( *)(\w+) : .*\n((?:\1 {4}.*\n)*)", re.MULTILINE)  # an indent, a name, and its words


def words_of(*others: type) -> Callable[[Kind], Kind]:
    """Give entries of a docstring that have no words those that other classes have for the name.

    So a parameter is explained once, and `help` and every page show it. Of several classes the first counts.
    """
    told = [entry for other in reversed(others) for entry in ENTRY.findall(other.__doc__ or "")]
    known = {name: words for _, name, words in told}

    def complete(kind: Kind) -> Kind:
        kind.__doc__ = ENTRY.sub(
            lambda entry: entry[0] if entry[3] else entry[0] + known.get(entry[2], ""), kind.__doc__ or ""
        )
        return kind

    return complete
