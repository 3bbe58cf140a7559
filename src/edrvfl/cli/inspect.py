"""The command `edrvfl inspect`."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy
from rich.table import Table

import edrvfl

from . import options
from .models import classifies, columns_of, kind_words, loo_figures, loo_words
from .screen import Row, put, size_words, table


def inspect(model: options.Model) -> int:
    """Tell what is in a model, and how good it would be.

    All of it is in the file; how good it would be is by leave-one-out.
    """
    loaded = edrvfl.load(model)
    try:
        parts = list(_told(loaded))
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:  # a file may come from anyone
        raise ValueError(f"{model}: what it says about its fit makes no sense ({error!r}).") from error
    put(f"{model}: {type(loaded).__name__}, {size_words(model.stat().st_size)}", *parts)
    return 0


def _told(model: Any) -> Iterator[str | Table]:
    """Yield lines and tables about a model."""
    if hasattr(model, "predict"):
        yield from (_answers_words(model), loo_words(model))
    rows = [_column_row(name, categories) for name, categories in columns_of(model).items()]
    yield from ("", table(("column", "kind", "categories"), rows))
    if hasattr(model, "members_"):
        yield from ("", table(*_members(model.members_)))
    elif hasattr(model, "network_"):
        figures = loo_figures(model)
        rows = [
            (str(depth), *(f"{value:.4f}" for value in values))
            for depth, values in enumerate(zip(*figures.values(), strict=True), 1)
        ]
        yield from ("", table(("layers", *(f"leave-one-out {name}" for name in figures)), rows))


def _answers_words(model: Any) -> str:
    name = getattr(model, "target_name_", None)
    if not classifies(model):
        return "predicts numbers" if name is None else f"predicts {name}: numbers"
    labels = [str(label) for label in model.classes_.tolist()]
    return f"predicts {f'{len(labels)} classes' if name is None else name}: {_some(labels, 60)}"


def _column_row(name: str, categories: Any) -> Row:
    if not isinstance(categories, numpy.ndarray):
        return (name, kind_words(categories), "")
    values = categories.tolist()
    texts = [value if isinstance(value, str) else f"{value:g}" for value in values]
    return (name, "categories", f"{len(values)}: {_some(texts, 30)}")


def _some(texts: list[str], width: int) -> str:
    """List as many texts as fit into a width, but at least one.

    >>> _some(["Lyon", "Oslo", "Porto"], 12)
    'Lyon, Oslo, ...'
    """
    ends = itertools.accumulate(len(text) + 2 for text in texts)
    shown = max(1, sum(end <= width + 2 for end in ends))
    return ", ".join(texts[:shown]) + (", ..." if len(texts) > shown else "")


def _members(members: dict[str, list[Any]]) -> tuple[Row, list[Row]]:
    """Return a table of the members of a portfolio, the heaviest first."""
    names = {
        "member": "{}",
        "weight": "{:.3f}",
        "loo_accuracy": "{:.4f}",
        "loo_log_loss": "{:.4f}",
        "loo_r2_score": "{:.4f}",
        "n_layers": "{}",
        "n_hidden": "{}",
        "seconds": "{:.1f}",
    }
    shown = {name: text for name, text in names.items() if name in members}
    order = numpy.argsort([-weight for weight in members["weight"]], kind="stable")
    rows: list[Row] = [
        tuple("-" if members[n][i] is None else text.format(members[n][i]) for n, text in shown.items())
        for i in order
    ]
    return tuple(name.replace("_", " ") for name in shown), rows
