"""Turn what a person types into names that the study knows: any case, commas or spaces, groups."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence


def resolve_names(
    asked: Sequence[str], known: Iterable[str], groups: Mapping[str, Sequence[str]], kind: str
) -> tuple[str, ...]:
    """Return the known names in the order asked for, each once, with groups expanded.

    Parameters
    ----------
    asked : sequence of str
        Names or groups, in any case. One text may hold several, separated by commas.

    known : iterable of str
        Every name there is.

    groups : mapping of str to sequence of str
        The names that a group stands for.

    kind : str
        What is named, for the messages: "method" or "dataset".

    Examples
    --------
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
            raise ValueError(_unknown(name, exact_name, kind))
        found |= dict.fromkeys(meaning[match])
    return tuple(found)


def _unknown(name: str, exact_name: Mapping[str, str], kind: str) -> str:
    """Write the message for a name that does not exist, with the nearest one if it is near."""
    near = difflib.get_close_matches(name.casefold(), exact_name, n=1, cutoff=0.6)
    hint = f" Did you mean {exact_name[near[0]]!r}?" if near else ""
    return f"there is no {kind} {name!r}.{hint} Names and groups: {', '.join(exact_name.values())}"
