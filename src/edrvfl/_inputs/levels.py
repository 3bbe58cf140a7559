"""What a kernel sees of columns with many categories: the code itself, which equals another or does not."""

from __future__ import annotations

from dataclasses import replace

import numpy

from .._seam.arrays import Array, array_namespace, from_numpy
from .inputs import Categories, Inputs, OneHots
from .rows import to_host


def compared(inputs: Inputs) -> Inputs:
    """Return inputs in which a column of many categories is one column of codes, however many there are.

    A network needs a column for each category that it tells apart. A kernel only asks whether two rows agree.
    """
    if inputs.many is None:
        return inputs
    many = to_host(inputs.many).tolist()
    kept = numpy.flatnonzero(~numpy.isin(inputs.source, many))
    n_hot = 0 if inputs.onehots is None else int(inputs.onehots.columns.shape[0])
    hots = kept[kept >= inputs.width - n_hot] - (inputs.width - n_hot)
    categories, onehots = _without(inputs, many, hots)
    factors = inputs.factors
    if factors is not None:  # all that comes from one column of X has one factor
        places = [*kept.tolist(), *(inputs.source.index(j) for j in many)]
        factors = _some(factors, places)
    return replace(
        inputs,
        width=len(kept) + len(many),
        source=(*(inputs.source[i] for i in kept), *many),
        labels=(*(inputs.labels[i] for i in kept), *("code" for _ in many)),
        categories=categories,
        onehots=onehots,
        factors=factors,
        many=None,
        codes=inputs.many,
    )


def _without(
    inputs: Inputs, many: list[int], hots: numpy.ndarray
) -> tuple[Categories | None, OneHots | None]:
    """Return the categories of the other columns, and those of the one-hot columns that come from them."""
    if inputs.categories is None or inputs.onehots is None or not len(hots):
        return None, None
    places = to_host(inputs.onehots.columns)[hots]
    parts = (_some(getattr(inputs.onehots, end), hots) for end in ("low", "high", "on", "off"))
    others = numpy.flatnonzero(~numpy.isin(to_host(inputs.categories.columns), many))
    n = 0 if inputs.numbers is None else int(inputs.numbers.divisor.shape[0])
    # their places stand behind the numbers, as before
    places = numpy.where(places < n, places, n + numpy.searchsorted(others, places - n))
    like = inputs.categories.columns
    onehots = OneHots(from_numpy(places, like, array_namespace(like).int64), *parts)
    if not len(others):
        return None, onehots
    return _tables(inputs.categories, others), onehots


def _tables(categories: Categories, which: numpy.ndarray) -> Categories:
    """Return some of the columns of categories, with their tables alone."""
    starts, ends, table = (to_host(part) for part in (categories.start, categories.end, categories.table))
    tables = [table[int(starts[c]) : int(ends[c]) + 1] for c in which]
    after = numpy.cumsum([len(part) for part in tables])
    before = after - [len(part) for part in tables]
    table, start, end = (
        from_numpy(part, categories.table) for part in (numpy.concatenate(tables), before, after - 1)
    )
    return Categories(_some(categories.columns, which), table, start, end)


def _some(array: Array, which: numpy.ndarray | list[int]) -> Array:
    xp = array_namespace(array)
    return xp.take(array, from_numpy(numpy.asarray(which), array, xp.int64))
