"""Keep beside a model what its read-outs were solved from, and the rows or fingerprints of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy

from .._fitting.data import InParts
from .._fitting.kernel import KernelSolved
from .._fitting.parts import Reading
from .._inputs.reading import next_number
from .._inputs.rows import Rows, as_matrix, row_hashes, to_host
from .._inputs.targets import Values
from .._models.memory import KernelMemory, Memory, NetworkMemory, RowsMemory, VoterMemory

NO_LOSSES = numpy.empty((0, 2))
Solved = NetworkMemory | KernelSolved | None  # what a fit tells of a voter


def remember(keeps: str, reading: Reading, voters: Sequence[Solved], P: numpy.ndarray | None) -> Memory:
    """Return what a fit keeps: "sums", or "rows" too. P are the leave-one-out answers, if there are any."""
    data, rows = reading.data, reading.data.rows
    targets, costs = rows.targets, None
    elsewhere = data.parted.weights.n_rows if isinstance(data, InParts) else 0
    if rows.weights.costs is not None and not isinstance(targets, Values):
        costs = numpy.ones(targets.width)
        costs[to_host(targets.codes)] = to_host(rows.weights.costs)
    mean, sd = (
        (_as_floats(targets.mean), _as_floats(targets.sd)) if isinstance(targets, Values) else (None, None)
    )
    kept = _rows(keeps, reading, P)
    return Memory(
        tuple(_of_voter(voter, rows, reading.given is not None) for voter in voters),
        kept,
        targets.width,
        costs,
        mean,
        sd,
        None if P is None else data.jury.loss(P),
        elsewhere if reading.given is None else next_number(int(reading.given.X.shape[0]), kept.ids),
        elsewhere,
    )


def _as_floats(values: Any) -> numpy.ndarray:
    return to_host(values).astype(float)


def _of_voter(voter: Solved, rows: Rows, in_memory: bool) -> VoterMemory:
    """Return how a voter was solved, with a place for each row as it came."""
    came = rows.came
    assert voter is not None
    if isinstance(voter, NetworkMemory):
        at = came.at if in_memory and came is not None else numpy.empty(0, numpy.int64)
        return replace(voter, right=voter.right[:, at])
    assert came is not None
    lams = tuple(map(float, voter.lams))
    if voter.parts is None:
        part, sizes = numpy.zeros(len(came.at), numpy.int64), (int(voter.voter.landmarks.shape[0]),)
        return KernelMemory(voter.solver, lams, sizes, part, came.counts)
    drawn = numpy.stack(voter.parts)  # of many rows only some are drawn, which stand for others
    sizes = tuple((drawn > 0).sum(axis=1).tolist())
    part = numpy.where(drawn.any(axis=0), drawn.argmax(axis=0), -1)[came.at]
    shares = came.counts / numpy.bincount(came.at, came.counts)[came.at]
    return KernelMemory(voter.solver, lams, sizes, part, drawn.sum(axis=0)[came.at] * shares)


def _rows(keeps: str, reading: Reading, P: numpy.ndarray | None) -> RowsMemory:
    """Return the rows as they came, of which sums alone keep fingerprints."""
    given, rows, held = reading.given, reading.data.rows, reading.held
    if given is None:
        return RowsMemory(
            numpy.empty(0, numpy.uint64), numpy.empty(0, numpy.int64), numpy.empty(0), NO_LOSSES
        )
    assert rows.came is not None
    came = rows.came
    which = came.which if held is None or held.others is None else held.others[came.which]
    X = to_host(given.X)[which]
    if isinstance(rows.targets, Values):
        y = as_matrix(to_host(given.y))[which].astype(float)
    else:
        y = to_host(rows.targets.codes)[came.at].astype(numpy.int64)
    ids = which if given.ids is None else given.ids[which]
    kept = (X, y, _answers(reading, P)) if keeps == "rows" else ()
    return RowsMemory(keys_of(X, y), ids, came.counts, NO_LOSSES, *kept)


def _answers(reading: Reading, P: numpy.ndarray | None) -> numpy.ndarray | None:
    """Return the leave-one-out answers of all rows as they came, in the units of y."""
    data, rows = reading.data, reading.data.rows
    if P is None:
        return None
    assert rows.came is not None
    if isinstance(rows.targets, Values):
        P = P * _as_floats(rows.targets.sd) + _as_floats(rows.targets.mean)
    answers = numpy.full((rows.X.shape[0], P.shape[1]), numpy.nan)
    answers[slice(None) if data.judged is None else to_host(data.judged.rows)] = P
    return answers[rows.came.at]


def keys_of(X: numpy.ndarray, y: numpy.ndarray) -> numpy.ndarray:
    """Return one uint64 for each row of X (m, d) and its target: equal rows have equal ones."""
    numbers = numpy.column_stack([X, y]).astype(float)
    with numpy.errstate(invalid="ignore", over="ignore"):
        coarse = numbers.astype(numpy.float32).astype(float)
        fine = (numbers - coarse).astype(numpy.float32).astype(float)
        # three numbers in float32 have all digits of one in float64
        return row_hashes(numpy.column_stack([coarse, fine, numbers - coarse - fine]))
