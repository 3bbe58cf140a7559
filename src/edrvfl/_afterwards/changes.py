"""Rows come to a fitted model, or go: every voter changes, and so does what is remembered."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy

from .._inputs.inputs import Inputs
from .._inputs.reading import as_ids, next_number
from .._inputs.rows import to_host
from .._loo.calibrate import log_losses
from .._models.coverage import Coverage
from .._models.memory import KernelMemory, Memory, NetworkMemory, RowsMemory
from .._models.portfolio import Portfolio
from .._ridge.solve import require_finite
from .._seam.arrays import Array, from_numpy, ignore_overflow
from .._seam.threads import suitable_threads
from .batch import Batch
from .kernels import change_kernel
from .networks import change_network
from .remembered import keys_of

NEWEST = 300  # rows whose loss tells of a drift: enough for a mean, and few enough to be new


def with_rows(
    model: Any, memory: Memory, X: Array, y: numpy.ndarray, counts: numpy.ndarray, ids: numpy.ndarray | None
) -> tuple[Any, Memory]:
    """Return the model as if rows had been there from the start, and what is remembered then."""
    known, n = memory.rows, len(y)
    weights = memory.weights(y, counts)
    losses = numpy.column_stack([_losses(model, memory, X, y), weights])
    ids = memory.number + numpy.arange(n) if ids is None else ids
    host = to_host(X)
    rows = RowsMemory(
        numpy.concatenate([known.keys, keys_of(host, y)]),
        numpy.concatenate(_of_one_kind(known.ids, ids)) if known.n_rows else ids,
        numpy.concatenate([known.counts, counts]),
        numpy.concatenate([known.losses, losses]),
        None if known.X is None else numpy.concatenate([known.X, host]),
        None if known.y is None else numpy.concatenate([known.y, y]),
        # the fit judged none of the new rows
        None
        if known.answers is None
        else numpy.pad(known.answers, ((0, n), (0, 0)), constant_values=numpy.nan),
    )
    places = numpy.arange(known.n_rows, rows.n_rows)
    batch = Batch(X, memory.targets(y, model.like), weights, rows, places, goes=False)
    number = next_number(memory.number + n, ids)
    memory = replace(memory, rows=rows, number=number, came=memory.came + n)
    return _changed(model, memory, batch)


def without_rows(
    model: Any, memory: Memory, places: numpy.ndarray, X: Array | None, y: numpy.ndarray | None
) -> tuple[Any, Memory]:
    """Return the model as if some of its rows had never been there, and what is remembered then.

    The rows themselves are given if they are not remembered.
    """
    known = memory.rows
    if known.X is not None and known.y is not None:
        X, y = from_numpy(known.X[places], model.like), known.y[places]
    assert X is not None
    assert y is not None
    stays = numpy.delete(numpy.arange(known.n_rows), places)
    rows = known.some(stays)
    weights = memory.weights(y, known.counts[places])
    batch = Batch(X, memory.targets(y, model.like), weights, rows, places, goes=True)
    return _changed(model, replace(memory, rows=rows, went=memory.went + len(places)), batch)


def _changed(model: Any, memory: Memory, batch: Batch) -> tuple[Any, Memory]:
    """Change every voter of a model."""
    voters = model.voters if isinstance(model, Portfolio) else (model,)
    changed, kept = [], []
    for voter, before in zip(voters, memory.voters, strict=True):
        with ignore_overflow(), suitable_threads(batch.X, *voter.product), _finite():
            after: tuple[Any, NetworkMemory | KernelMemory]
            if isinstance(before, NetworkMemory):
                after = change_network(voter, before, batch, memory)
                for beta in after[0].readouts:
                    require_finite(beta)
            else:
                after = change_kernel(voter, before, batch, memory)
                require_finite(after[0].voter.alpha)
        changed.append(after[0])
        kept.append(after[1])
    whole = replace(model, voters=tuple(changed)) if isinstance(model, Portfolio) else changed[0]
    return whole, replace(memory, voters=tuple(kept))


@contextmanager
def _finite() -> Iterator[None]:
    """Say of numbers that overflow whose they are."""
    try:
        yield
    except FloatingPointError as error:
        raise ValueError(
            "With these rows read-outs would not be finite: their values or weights are far larger than "
            "those of the fit. Nothing was changed."
        ) from error


def _losses(model: Any, memory: Memory, X: Array, y: numpy.ndarray) -> numpy.ndarray:
    """Return how wrong rows are foretold: -log P of their classes, or standardised squared errors."""
    P = to_host(model.answer(X)).astype(float)
    if memory.sd is None:
        return numpy.asarray(log_losses(P, y))
    with ignore_overflow():
        return numpy.asarray(numpy.square((P - y) / memory.sd).mean(axis=1))


def drift(memory: Memory) -> float | None:
    """Return the loss of the newest rows over that of the fit; None if one of both is not known."""
    losses = memory.rows.losses[-NEWEST:]
    if not len(losses) or not memory.loss:
        return None
    return float(numpy.average(losses[:, 0], weights=losses[:, 1])) / memory.loss


def _of_one_kind(names: numpy.ndarray, others: numpy.ndarray) -> tuple[numpy.ndarray, numpy.ndarray]:
    """Return names of rows, all as texts if some are."""
    if names.dtype == others.dtype:
        return names, others
    texts = [numpy.array([str(name) for name in some], dtype=object) for some in (names, others)]
    return texts[0], texts[1]


def named_rows(memory: Memory, ids: Any, held: str = "") -> numpy.ndarray:
    """Return the places of all rows that have one of these names, each of which some row must have.

    `held` says for an error which rows of the fit are not remembered.
    """
    known, wanted = _of_one_kind(memory.rows.ids, as_ids(ids))
    unknown = ~numpy.isin(wanted, known)
    if unknown.any():
        raise ValueError(
            f"No remembered row has the id {wanted.tolist()[unknown.argmax()]!r}: it never came, {held}or it "
            "was forgotten before. Nothing was forgotten."
        )
    return numpy.flatnonzero(numpy.isin(known, wanted))


def equal_rows(memory: Memory, X: Array, y: numpy.ndarray, held: str = "") -> numpy.ndarray:
    """Return the places of rows that equal those of X (b, d) with their targets, one for each of them.

    Of copies the newest are taken.
    """
    wanted, known = keys_of(to_host(X), y), memory.rows.keys
    order = numpy.argsort(known, kind="stable")
    last = numpy.searchsorted(known[order], wanted, side="right") - 1
    sorted_wanted = numpy.argsort(wanted, kind="stable")
    starts = numpy.searchsorted(wanted[sorted_wanted], wanted[sorted_wanted])
    rank = numpy.empty(len(wanted), dtype=numpy.int64)
    rank[sorted_wanted] = numpy.arange(len(wanted)) - starts  # the how manieth of equal ones
    at = last - rank
    found = at >= 0
    found[found] = known[order][at[found]] == wanted[found]
    if not found.all():
        raise ValueError(
            f"Row {int(found.argmin())} of X, counted from 0, equals no remembered row with its target: it "
            f"never came, {held}{'came in a RowBlocks, ' * (memory.elsewhere > 0)}or was forgotten before. "
            "Nothing was forgotten."
        )
    return numpy.asarray(order[at])


def _has_edges(inputs: Inputs) -> bool:
    """Tell whether encoded columns depend on single values of numbers."""
    if inputs.bins is not None or inputs.numbers is None:
        return inputs.bins is not None
    if inputs.numbers.ranks is not None or inputs.onehots is None:
        return inputs.numbers.ranks is not None
    return bool((to_host(inputs.onehots.columns) < inputs.numbers.divisor.shape[0]).any())


def frozen_parts(model: Any, memory: Memory, coverage: Coverage | None) -> tuple[str, ...]:
    """Name what stays as the fit learnt it and may hold single numbers of rows."""
    encodings = model.encodings()
    voters = model.voters if isinstance(model, Portfolio) else (model,)
    held = {
        "the scale of columns: largest values, medians, quartiles, means": any(
            inputs.numbers is not None for inputs in encodings
        ),
        "edges of bins and ranks": any(_has_edges(inputs) for inputs in encodings),
        "names of categories": model.columns is not None
        and any(values is not None for values in model.columns.categories),
        "names of classes": model.classes is not None,
        "the first day of dates": model.columns is not None
        and any(getattr(kind, "holds", None) == "date" for kind in model.columns.kind_of),
        "hidden weights that are differences of two rows": any(
            getattr(getattr(voter, "draws", None), "pair_share", 0) > 0 for voter in voters
        ),
        "landmarks": any(getattr(kept, "solver", "") == "landmarks" for kept in memory.voters),
        "errors and probabilities by leave-one-out, for intervals and sets": coverage is not None,
    }
    return tuple(name for name, there in held.items() if there)
