"""Names and counts in words, and what a person types turned into names that the study knows."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence

MISSING = "missing"  # the word for a cell without a result


def resolve_names(
    asked: Sequence[str], known: Iterable[str], groups: Mapping[str, Sequence[str]], kind: str
) -> tuple[str, ...]:
    """Return the known names in the order asked for, each once, with groups expanded.

    Names and groups are asked for in any case; one text may hold several, separated by commas. `kind` says in
    messages what is named: "method" or "dataset".

    >>> groups = {"demo": ["iris", "digits"]}
    >>> resolve_names(["WINE,iris", "demo"], ["iris", "wine", "digits"], groups, "dataset")
    ('wine', 'iris', 'digits')
    """
    if isinstance(asked, str):
        raise TypeError(f"names must be a list of names, got the text {asked!r}: put it in a list")
    meaning = {name: (name,) for name in known} | {name: tuple(some) for name, some in groups.items()}
    exact_name = {name.casefold(): name for name in meaning}
    found: dict[str, None] = {}
    for name in (part.strip() for text in asked for part in text.split(",") if part.strip()):
        # An exact match wins: a group and a name may differ in case alone.
        match = name if name in meaning else exact_name.get(name.casefold())
        if match is None:
            there = ", ".join(exact_name.values())
            raise ValueError(
                f"there is no {kind} {name!r}.{did_you_mean(name, meaning)} Names and groups: {there}"
            )
        found |= dict.fromkeys(meaning[match])
    return tuple(found)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Ask whether the nearest of the known names was meant; the text is empty if none is near.

    >>> did_you_mean("wnie", ["iris", "Wine"]), did_you_mean("x", ["iris"])
    (" Did you mean 'Wine'?", '')
    """
    exact_name = {other.casefold(): other for other in known}
    near = difflib.get_close_matches(name.casefold(), exact_name, n=1)
    return f" Did you mean {exact_name[near[0]]!r}?" if near else ""


def plural(number: int, noun: str) -> str:
    """Count a thing in words."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def listing(names: Sequence[str]) -> str:
    """Join names as one would say them."""
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def quoted(names: Sequence[str], most: int = 20) -> str:
    """List names, each in quotation marks, and count the rest of many.

    >>> quoted(["a", "b", "c"], 2)
    "'a', 'b' and 1 more"
    """
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(map(repr, names[:most])) + more
