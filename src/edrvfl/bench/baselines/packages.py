"""Packages that only some methods need: whether one is installed, and what to type if it is not."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Iterable
from types import ModuleType


def missing_package(method: str, package: str, extra: str) -> str | None:
    """Return None if the package is installed, else a message that says how to install it.

    >>> missing_package("RandomForest", "sklearn", "peers")
    >>> missing_package("Oracle", "no_such_package", "peers")
    "Oracle needs the package no_such_package: pip install 'edrvfl[peers]'"
    """
    if importlib.util.find_spec(package) is not None:
        return None
    return f"{method} needs the package {package}: pip install 'edrvfl[{extra}]'"


def import_package(method: str, package: str, extra: str) -> ModuleType:
    """Import the package, or raise an ImportError with the message of `missing_package`."""
    # An installed package that fails while it is imported raises its own error, which says more than ours.
    if (message := missing_package(method, package, extra)) is not None:
        raise ImportError(message)
    return importlib.import_module(package)


def refuse_missing(messages: Iterable[str | None]) -> None:
    """Raise an error of all messages about packages that are missing."""
    if listed := "; ".join(dict.fromkeys(filter(None, messages))):
        raise ValueError(f"{listed}. Install what is missing, or leave the methods out that need it.")
