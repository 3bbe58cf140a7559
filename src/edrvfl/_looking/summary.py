"""Say in HTML what was fitted, below what scikit-learn shows of an estimator in a notebook."""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Sequence
from typing import Any

KERNELS = {"laplace": "Laplace", "matern": "Matern 3/2", "product": "Product", "additive": "Additive"}
# Colours are those of the page, so that it can be read in the dark too.
BOX = "margin: 0.4em 0 0.8em 0.4em; font-size: 0.92em; line-height: 1.5"
TABLE = "border-collapse: collapse; font-size: inherit; margin: 0.3em 0"
CELL = "padding: 0.1em 0.8em; white-space: nowrap; text-align: {side}; background: none; color: inherit"
MOST = 100  # rows of a table: a page should stay small
LINE = "; border-bottom: 1px solid color-mix(in srgb, currentColor 35%, transparent)"

Rows = Sequence[Sequence[Any]]


def summary(model: Any) -> str:
    """Describe a fitted estimator in HTML: a sentence, and a table that can be opened. Empty before a fit."""
    words = _description(model)
    return f'<div class="edrvfl-fitted" style="{BOX}">{words}</div>' if words else ""


def _description(model: Any) -> str:
    return next((describe(model) for name, describe in DESCRIPTIONS.items() if name in vars(model)), "")


def _network(model: Any) -> str:
    network = model.network_
    depth, width = len(network.layers), network.n_hidden
    whole = ", one read-out over all layers" if network.joint else ""
    loo = {words: getattr(model, name) for words, name in model._figures.by_layer.items()}
    loo = {words: figures for words, figures in loo.items() if len(figures)}
    last = {words: figures[depth - 1] for words, figures in loo.items()}
    seen = _inputs(model, network.inputs)
    said = f"{_count(depth, 'layer')} of {_count(width, 'neuron')}{whole}. {seen} {_loo(last)}"
    if not hasattr(model, "regularization_"):  # a callback looks at it while it grows
        return _sentence(said)
    n_grown = len(model.regularization_)
    head = ["layer", "kept neurons", "penalty", *loo]
    figures = [[_share(value) for value in by_layer] for by_layer in loo.values()]
    columns = [range(1, 1 + n_grown), model.neurons_kept_, model.regularization_, *figures]
    title = "layers, and leave-one-out for every depth" if loo else "layers"
    title += "" if depth == n_grown else f"; {depth} of {n_grown} answer"
    return _sentence(said) + _table(title, head, list(zip(*columns, strict=True)))


def _kernel(model: Any) -> str:
    over, penalty = _count(model.n_landmarks_, "training row"), _figure(model.regularization_)
    kernel = KERNELS[model.model_.voter.kernel]
    said = f"{kernel} kernel over {over}, bandwidth {_figure(model.bandwidth_)}, penalty {penalty}. "
    return _sentence(f"{said}{_inputs(model, model.model_.voter.inputs)} {_loo(_figures(model))}")


def _portfolio(model: Any) -> str:
    table = model.members_
    heavy = sum(weight > 0 for weight in table["weight"])
    said = f"{_count(len(table['member']), 'member')}, {heavy} with a say. {_loo(_figures(model))}"
    head = {"member": "member", "weight": "weight", "n_layers": "layers", "n_hidden": "neurons"}
    figures = {name.removesuffix("_"): words for words, name in model._figures.of_all.items()}
    columns = [*(table[name] for name in head), *([_share(v) for v in table[name]] for name in figures)]
    rows = sorted(zip(*columns, strict=True), key=lambda row: -row[1])
    return _sentence(said) + _table("members, with leave-one-out", [*head.values(), *figures.values()], rows)


def _search(model: Any) -> str:
    tried, splits = len(model.cv_results_["params"]), _count(model.n_splits_, "split")
    said = f"Best mean score over {splits}: {_figure(model.best_score_)}, of {tried:,} that were tried."
    chosen = _table("what was chosen", ["parameter", "value"], list(model.best_params_.items()))
    best = _description(model.best_estimator_) if hasattr(model, "best_estimator_") else ""
    return _sentence(said) + chosen + best


def _encoder(model: Any) -> str:
    columns, inputs = model.encoding_.columns, model.encoding_.inputs
    parts = columns.parts
    made = Counter(parts[source].column for source in inputs.source)
    rows = [(name, columns.words(j), made[j]) for j, name in enumerate(columns.names)]
    said = f"{_count(len(rows), 'column')} become {inputs.width}."
    return _sentence(said) + _table("by column", ["column", "holds", "encoded columns"], rows)


# The fitted attribute that tells the kind of an estimator, and what describes it.
DESCRIPTIONS = {
    "network_": _network,
    "model_": _kernel,
    "portfolio_": _portfolio,
    "cv_results_": _search,
    "encoding_": _encoder,
}


def _figures(model: Any) -> dict[str, float]:
    """Return the leave-one-out figures of an answer without layers."""
    return {words: getattr(model, name) for words, name in model._figures.of_all.items()}


def _loo(figures: dict[str, float]) -> str:
    if not figures:
        return "No leave-one-out figures were asked for."
    return "Leave-one-out: " + ", ".join(f"{words} {_share(value)}" for words, value in figures.items()) + "."


def _inputs(model: Any, inputs: Any) -> str:
    return f"{_count(model.n_features_in_, 'column')}, encoded as {inputs.width}."


def _count(n: int, noun: str) -> str:
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"


def _figure(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else "" if value is None else str(value)


def _share(value: float) -> str:
    return f"{value:.4f}"


def _sentence(words: str) -> str:
    return f"<div>{html.escape(words)}</div>"


def _table(title: str, head: Sequence[str], rows: Rows) -> str:
    """Return a table that is opened by a click. The first column holds names, the others mostly figures."""
    sides = ["left", *["right"] * (len(head) - 1)]
    lines = [_line("th", head, sides), *(_line("td", row, sides) for row in rows[:MOST])]
    table = f'<table style="{TABLE}">{"".join(lines)}</table>'
    table += f"<div>and {len(rows) - MOST:,} more</div>" if len(rows) > MOST else ""
    return f'<details><summary style="cursor: pointer">{html.escape(title)}</summary>{table}</details>'


def _line(tag: str, values: Sequence[Any], sides: Sequence[str]) -> str:
    line = LINE if tag == "th" else ""
    cells = (
        f'<{tag} style="{CELL.format(side=side)}{line}">{html.escape(_figure(value))}</{tag}>'
        for value, side in zip(values, sides, strict=True)
    )
    return f"<tr>{''.join(cells)}</tr>"
