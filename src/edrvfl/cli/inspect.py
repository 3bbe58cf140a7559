"""The command `edrvfl inspect`."""

from __future__ import annotations

from typing import Any

import numpy

import edrvfl

from . import options
from .models import classifies, columns_of, loo_figures, loo_words
from .screen import Row, plain, put, size_words, table


def inspect(model: options.Model) -> int:
    """Tell what is in a model, and how good it would be by leave-one-out, from its file alone."""
    loaded = edrvfl.load(model)
    put(f"{model}: {type(loaded).__name__}, {size_words(model.stat().st_size)}")
    if hasattr(loaded, "predict"):
        put(_answers_words(loaded), loo_words(loaded))
    rows = [_column_row(name, categories) for name, categories in columns_of(loaded).items()]
    put("", table(("column", "kind", "categories"), rows))
    if hasattr(loaded, "members_"):
        put("", table(*_members(loaded.members_)))
    elif hasattr(loaded, "network_"):
        figures = loo_figures(loaded)
        rows = [
            (str(depth), *(f"{value:.4f}" for value in values))
            for depth, values in enumerate(zip(*figures.values(), strict=True), 1)
        ]
        put("", table(("layers", *(f"leave-one-out {name}" for name in figures)), rows))
    return 0


def _answers_words(model: Any) -> str:
    if not classifies(model):
        return "predicts numbers"
    labels = [plain(str(label)) for label in model.classes_.tolist()]
    return f"predicts {len(labels)} classes: {_some(labels, 20)}"


def _column_row(name: str, categories: numpy.ndarray | None) -> Row:
    if categories is None:
        return (name, "numbers", "")
    values = categories.tolist()
    texts = [value if isinstance(value, str) else f"{value:g}" for value in values]
    return (name, "categories", f"{len(values)}: {_some(texts, 6)}")


def _some(texts: list[str], most: int) -> str:
    return ", ".join(texts[:most]) + (", ..." if len(texts) > most else "")


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
