"""What a model in a file knows of tables: its columns, which a new table must have, and its answers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy

import edrvfl
from edrvfl.bench.cells import Known, make_frame
from edrvfl.bench.names import plural, quoted
from edrvfl.bench.tables import Block, Table, said

from .screen import say


@dataclass(frozen=True, slots=True)
class Matched:
    """A model and the columns of a table that it asks for."""

    model: Any
    table: Table
    known: Known  # by the names of the table
    named: bool  # whether the model knows names; if not, it knows an order

    def frame(self, block: Block) -> Any:
        """Return the rows of a block as the model wants them."""
        frame = make_frame(self.table, block, self.known)
        if not self.named:
            frame.columns = range(len(self.known))
        return frame

    def answers(self, frame: Any) -> numpy.ndarray:
        """Return the probabilities of a classifier, or the values of a regressor (rows, outputs)."""
        with naming(self.table.source):
            if classifies(self.model):
                return numpy.asarray(self.model.predict_proba(frame))
            return numpy.asarray(self.model.predict(frame)).reshape(len(frame), -1)


@contextmanager
def naming(source: object) -> Iterator[None]:
    """Make an error of the library about a table name the file."""
    try:
        yield
    except (TypeError, ValueError) as error:
        raise ValueError(f"{source}: {error}") from error


def classifies(model: Any) -> bool:
    """Tell whether a model has classes."""
    return hasattr(model, "classes_")


def load_model(path: Path) -> Any:
    """Return a model that predicts."""
    model = edrvfl.load(path)
    if not hasattr(model, "predict"):
        raise ValueError(
            f"{path}: holds a {type(model).__name__}, which prepares columns and predicts nothing."
        )
    return model


def columns_of(model: Any) -> dict[str, Any]:
    """Return the columns by name, with categories, what is known of dates and text, or None for numbers."""
    found = next(
        getattr(model, n) for n in ("portfolio_", "network_", "model_", "encoding_") if hasattr(model, n)
    )
    if found.columns is not None:
        columns = found.columns
        known = zip(columns.names, columns.categories, columns.kind_of, strict=True)
        return {name: categories if kind is None else kind for name, categories, kind in known}
    names = getattr(model, "feature_names_in_", [f"x{j}" for j in range(model.n_features_in_)])
    return dict.fromkeys(names)


def kind_words(known: Any) -> str:
    """Say what a column holds, by what a model knows of it."""
    if known is None:
        return "numbers"
    if isinstance(known, numpy.ndarray):
        return "categories"
    return f"{known.holds}s" if hasattr(known, "holds") else "text"


def match(model: Any, table: Table, target: str | None) -> Matched:
    """Find the columns of a model in a table."""
    known, named = columns_of(model), hasattr(model, "feature_names_in_")
    there = [name for name in table.names if name != target]
    if not named:
        if len(there) != len(known):
            raise ValueError(
                f"{table.source}: the model has {plural(len(known), 'column')}, by order and without names, "
                f"but here are {len(there)}{'' if target is None else ' beside the target'}: {quoted(there)}."
            )
        return Matched(model, table, dict(zip(there, known.values(), strict=True)), named)
    names = set(there)
    if missing := [name for name in known if name not in names]:
        words = (
            "a column of the model is" if len(missing) == 1 else f"{len(missing)} columns of the model are"
        )
        raise ValueError(f"{table.source}: {words} missing: {quoted(missing)}.{said(missing[0], there)}")
    return Matched(model, table, known, named)


def note_unused(matched: Matched, others: Sequence[str], quiet: bool) -> None:
    """Say which columns of a table are not looked at, beside some that are used otherwise."""
    used = {*matched.known, *others}
    unused = [name for name in matched.table.names if name not in used]
    if unused and not quiet:
        say(f"Not used: {quoted(unused)}.")


FIGURES = {  # fitted attributes of all kinds of models, in the order in which they are looked for
    "accuracy": ("loo_accuracy_", "loo_accuracies_"),
    "log-loss": ("loo_log_loss_", "loo_log_losses_"),
    "R²": ("loo_r2_score_", "loo_r2_scores_"),
}


def loo_figures(model: Any) -> dict[str, Sequence[float]]:
    """Return the leave-one-out figures of a model: one, or one for each depth, the last for all layers."""
    found: dict[str, Sequence[float]] = {}
    for words, names in FIGURES.items():
        values = next((getattr(model, name) for name in names if hasattr(model, name)), ())
        if values := values if isinstance(values, tuple) else (values,):
            found[words] = values
    return found


def loo_words(model: Any, way: str = "leave-one-out") -> str:
    """Say how good a model would be, by leave-one-out."""
    figures = [f"{words} {values[-1]:.4f}" for words, values in loo_figures(model).items()]
    return f"{way} {', '.join(figures)}" if figures else "no leave-one-out figures were asked for"
