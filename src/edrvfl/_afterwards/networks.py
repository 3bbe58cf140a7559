"""Rows come to a network or go: their sums are added or subtracted, and every read-out is solved again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy

from .._inputs.rows import to_host
from .._inputs.targets import Targets, Values
from .._models.memory import Memory, NetworkMemory, Sums
from .._models.network import Network, features_by_layer
from .._ridge.equations import NormalEquations, Regression, normal_equations
from .._ridge.solve import ridge
from .._seam.arrays import Array, array_namespace, from_numpy, row_blocks
from .batch import Batch

TINY = 1e-300
MANY_DIGITS = 1e5  # times as large as what is left: a sum is computed anew from the rows, if they are there
ALL_DIGITS = 1e10  # so many times as large: nothing worth having is left of it


def change_network(
    network: Network, kept: NetworkMemory, batch: Batch, memory: Memory
) -> tuple[Network, NetworkMemory]:
    """beta = (G + sign D'WD + lam I)^-1 (R + sign D'WY), with the features D of the rows that come or go.

    The sums are in float64 and never inverted, so thousands of changes leave no more than their rounding. A
    row that is far out takes digits of the sums with it when it goes.
    """
    right, added = _sums_of_rows(network, kept, batch)
    signed = zip(kept.sums, added, strict=True)
    sums = tuple(Sums(old.G + batch.sign * new.G, old.R + batch.sign * new.R) for old, new in signed)
    rights = kept.right[:, batch.stays] if batch.goes else numpy.concatenate([kept.right, right], axis=1)
    if batch.goes and (lost := _lost(kept, sums, batch.rows.counts.sum() + memory.elsewhere)) > MANY_DIGITS:
        rows = batch.rows
        if rows.X is not None and rows.y is not None:
            X, targets = from_numpy(rows.X, network.like), memory.targets(rows.y, network.like)
            base, places = memory.weights(rows.y, rows.counts), numpy.arange(rows.n_rows)
            rest = replace(batch, X=X, targets=targets, base=base, places=places)
            anew = _sums_of_rows(network, replace(kept, right=rights), rest)[1]
            sums = tuple(Sums(one.G, one.R) for one in anew)
        elif lost > ALL_DIGITS:
            raise ValueError(
                "Some sums are nearly all of these rows, which may be far out, and what is left without them "
                'would be rounding. Fit again without these rows, and with remember="rows", which sums anew. '
                "Nothing was forgotten."
            )
    like, readouts = network.like, []
    for l, beta in enumerate(network.readouts):
        solution = _solved(sums[min(l, len(sums) - 1)], int(beta.shape[0]), kept.lams[l])
        readouts.append(batch.targets.in_units(from_numpy(solution, like), network.bias))
    return replace(network, readouts=tuple(readouts)), replace(kept, sums=sums, right=rights)


def _lost(kept: NetworkMemory, sums: tuple[Sums, ...], total: float) -> float:
    """Return how many times as large a sum was as it is now, at the most.

    Sums of squares are compared as they are, with the penalty, and sums of products with targets, whose
    deviation was 1 in the fit, with the largest that rows of this total weight and such targets could have.
    """
    found = [1.0]
    for old, new, lam in zip(kept.sums, sums, kept.lams[-len(sums) :], strict=True):
        before, after = numpy.diagonal(old.G), numpy.maximum(numpy.diagonal(new.G), 0.0) + lam
        found.append(float((before[before > 0] / numpy.maximum(after[before > 0], TINY)).max(initial=1.0)))
        products, most = numpy.abs(old.R).max(axis=1), numpy.sqrt(after * total)
        found.append(float((products[products > 0] / numpy.maximum(most[products > 0], TINY)).max(initial=1)))
    return max(found)


def _solved(sums: Sums, width: int, lam: float) -> numpy.ndarray:
    """Return the read-out (width, k) over the first columns."""
    G, R = sums.G[:width, :width], sums.R[:width]
    no_rows = Regression(G[:0], Values(R[:0]), summed=NormalEquations(G, R))
    return numpy.asarray(ridge(no_rows, lam).beta)


def _sums_of_rows(
    network: Network, kept: NetworkMemory, batch: Batch
) -> tuple[numpy.ndarray, list[NormalEquations]]:
    """Return which rows were right (layers, rows), and the sums over the rows for each read-out."""
    X, width = batch.X, max(int(beta.shape[0]) for beta in network.readouts)
    rights: list[numpy.ndarray] = []
    total: list[NormalEquations] = []
    for rows in row_blocks(X, X.shape[0], width + network.row_numbers):
        known = kept.right[:, batch.places[rows]] if batch.goes else None
        targets, base = batch.targets.some(rows), batch.base[rows]
        right: list[numpy.ndarray] = []
        each = []
        for D, omega in _seen(network, kept, (X[rows, :], targets, known), right):
            weights = base if omega is None else base * omega
            some = Regression(D, targets, from_numpy(weights, D))
            found = normal_equations(some, dtype=array_namespace(D).float64)
            each.append(NormalEquations(to_host(found.G), to_host(found.R)))
        total = each if not total else [a + b for a, b in zip(total, each, strict=True)]
        rights.append(numpy.stack(right))
    return numpy.concatenate(rights, axis=1), total


def _seen(
    network: Network,
    kept: NetworkMemory,
    rows: tuple[Array, Targets, numpy.ndarray | None],
    right: list[numpy.ndarray],
) -> Iterator[tuple[Array, numpy.ndarray | None]]:
    """Yield the features that each read-out is of, and the weights omega of the rows; fill in what was right.

    A row of the fit keeps the weight that it had. A new one gets it from the read-outs as they were fitted,
    which never saw the row.
    """
    X, targets, known = rows
    n, joined = network.n_hidden, []
    before: Array = None
    for l, D in enumerate(features_by_layer(network, X)):
        judge = kept.judges[l]
        found = numpy.ones(X.shape[0], dtype=bool)
        if known is not None:
            found = known[l]
        elif judge is not None:
            found = to_host(before) <= judge.bound
        right.append(found)
        if network.joint:
            joined += [D[:, n:] * 1.0] * (l == 0) + [D[:, :n] * 1.0]
            if l + 1 == len(network.layers):
                yield array_namespace(D).concat(joined, axis=1), None
            continue
        yield D, None if judge is None else numpy.where(found, judge.right, judge.wrong)
        following = kept.judges[l + 1] if l + 1 < len(kept.judges) else None
        if following is not None:
            before = targets.losses(D @ from_numpy(following.beta, D), slice(0, X.shape[0]))
