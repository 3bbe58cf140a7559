"""Deal rows into folds, so that each row is judged by a model that its own label did not shape.

Leave-one-out is exact for a read-out. But gradient factors, pairs of rows, sample weights, pruning and chosen
penalties have seen the label of the row that is left out. So where rows are few everything that looks at
labels is learnt once more without the rows of a fold; then the read-out is solved on all rows, and its exact
leave-one-out answers the rows of the fold. The model that answers new rows is another one, shaped by all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy

from .._inputs.chosen import Judged, ranking, strata
from .._inputs.inputs import Inputs
from .._inputs.rows import MIX, Rows, row_hashes, to_host
from .._inputs.targets import Values
from .._loo.jury import Dealt
from .._seam.arrays import Array, array_namespace, from_numpy, take_rows
from .systems import Pair

LEAST_DEALT = 3  # groups: without one of two, nothing could be left out to judge by
CALIBRATION_PARTS = 5  # a calibration of many classes wants more rows than two or three folds leave it


@dataclass(frozen=True, slots=True, eq=False)
class Fold:
    """The rows that shape a model, and those that judge it. They are taken from all rows when asked for."""

    rows: Rows
    order: numpy.ndarray  # of all rows, those outside first
    places: numpy.ndarray  # of the rows inside among the judged rows
    parts: numpy.ndarray  # of the rows inside, which are dealt once more, for those that calibrate

    @property
    def outside(self) -> Rows:
        """The rows that shape a model."""
        return self._some(self.order[: -len(self.places)])

    @property
    def riding(self) -> Rows:
        """All rows, those outside first."""
        return self._some(self.order)

    @property
    def judged(self) -> Judged:
        """The rows inside, as some of the riding rows; each stands for itself."""
        X, m, n = self.rows.X, len(self.order), len(self.places)
        rows = from_numpy(numpy.arange(m - n, m), X, array_namespace(X).int64)
        return Judged(rows, from_numpy(numpy.ones(n), X), last=True)

    def _some(self, which: numpy.ndarray) -> Rows:
        X = self.rows.X
        return self.rows.some(from_numpy(which, X, array_namespace(X).int64))


@dataclass(frozen=True, slots=True, eq=False)
class Learnt:
    """What a model sees of the columns, and what it would see if the rows of a fold had no labels."""

    inputs: Inputs
    of_folds: tuple[Inputs, ...] = ()  # one for each fold of the data; none where one fit judges itself
    ridges: tuple[Pair, ...] = ()  # the bandwidth and penalty that folds chose, if they did
    near: Pair | None = None  # a bandwidth and a penalty that suited some of the rows, if they were asked

    @property
    def scaling(self) -> str | None:
        """Whether columns are multiplied by factors that were learnt from labels."""
        return None if self.inputs.factors is None else "gradient"


def n_folds(m: int, d: int, n_groups: int | None = None) -> int:
    """Return into how many folds m rows of d columns are dealt; 0 where one fit is honest enough.

    Of rows in groups the groups are few or many: what saw the labels of one of ten groups saw a tenth.
    """
    # Paired on the same rows, leave-one-out accuracy of one fit was above that of two folds by 1.6 points
    # (600 x 10), 0.5 (1000 x 10) and none (1500 x 10, 2000 x 30) for weighting and pruning, and by 4.9
    # (600 x 100), 0.5 (1000 x 10) and 0.1 (1500 x 10) for a kernel with factors. That kernel was above new
    # rows by 0.8 points (1500 x 50), 0.4 (2000 x 60) and 0.3 (3000 x 100). Three folds were as honest as five
    # from 40 to 150 rows, for less time.
    if m >= 10_000 or (m if n_groups is None else n_groups) >= max(1_500, 33 * d):
        return 0
    return 3 if m <= 600 else 2


def column_ranks(X: numpy.ndarray) -> numpy.ndarray:
    """Return the place of each number among the different numbers of its column; gaps come last."""
    order = numpy.argsort(X, axis=0)
    ordered = numpy.take_along_axis(X, order, axis=0)
    same = (ordered[1:] == ordered[:-1]) | numpy.isnan(ordered[:-1])
    ranks = numpy.zeros(X.shape)
    places = numpy.concatenate([numpy.zeros((1, X.shape[1])), numpy.cumsum(~same, axis=0)])
    numpy.put_along_axis(ranks, order, places, axis=0)
    return ranks


def _mixed(x: numpy.ndarray) -> numpy.ndarray:
    """Spread uint64 numbers, as SplitMix64 does."""
    for shift, factor in ((30, MIX), (27, numpy.uint64(0x94D049BB133111EB))):
        x = (x ^ (x >> numpy.uint64(shift))) * factor
    return x ^ (x >> numpy.uint64(31))


def _hashes(ranks: numpy.ndarray) -> numpy.ndarray:
    """Return one number for each row, which the order of the columns does not change.

    A column is known by the ranks that it has in different rows, and then by the rows that have them.
    """
    first = numpy.unique(row_hashes(ranks), return_index=True)[1]
    cells = ranks.astype(numpy.uint64)
    with numpy.errstate(over="ignore"):  # integers wrap around
        of_columns = _mixed(cells[first]).sum(axis=0, dtype=numpy.uint64)
        of_rows = _mixed(cells ^ of_columns).sum(axis=1, dtype=numpy.uint64)
        of_columns = _mixed(cells[first] ^ of_rows[first, None]).sum(axis=0, dtype=numpy.uint64)
        found: numpy.ndarray = _mixed(cells ^ of_columns).sum(axis=1, dtype=numpy.uint64)
    return found


def deal_folds(rows: Rows, judged: Judged | None, n: int | None = None) -> tuple[Fold, ...]:
    """Deal the judged rows into n folds or as many as there can be, each class or range of values evenly.

    Hashes of rows decide, so that neither the order of the file matters nor the seed, and rows that are equal
    in all columns stay together, whatever their labels are, unless they agree by chance. They are hashes of
    ranks: units do not matter, and neither do the order of columns, the names of classes or the sign of
    values. Rows of one group stay together too.
    """
    (m, d), owners = rows.X.shape, rows.groups
    n = n_folds(m, d, None if owners is None else len(numpy.unique(owners))) if n is None else n
    if n == 0:
        return ()
    which = numpy.arange(m) if judged is None else to_host(judged.rows)
    _, place = numpy.unique(_hashes(column_ranks(to_host(rows.X)))[which], return_inverse=True)
    stratum = _strata(rows, which, place)
    if owners is not None:
        return _deal_groups(rows, which, (place, stratum, owners[which]), n)
    part = place
    if rows.apart:
        part = numpy.argsort(numpy.lexsort((stratum, place)))
        order, of = numpy.lexsort((place, stratum)), numpy.arange(len(which))
    else:
        strata_of = numpy.full(int(place.max()) + 1, len(which))
        numpy.minimum.at(strata_of, place, stratum)  # equal rows may differ in class
        order, of = numpy.lexsort((numpy.arange(len(strata_of)), strata_of)), place
    n = min(n, len(order) // 2)
    if n < 2:
        return ()
    turn = numpy.empty(len(order), dtype=int)
    turn[order] = numpy.arange(len(order))
    turn = turn[of]
    insides = [numpy.flatnonzero(turn % n == f) for f in range(n)]
    # Parts are not dealt evenly by class: if they were, those that calibrate a part would know which class
    # has more rows in it, and new rows have no more of that class (1.7 points of accuracy with 150 x 500).
    return tuple(_fold(rows, which, places, part[places] % CALIBRATION_PARTS) for places in insides)


def _deal_groups(
    rows: Rows, which: numpy.ndarray, known: tuple[numpy.ndarray, numpy.ndarray, numpy.ndarray], n: int
) -> tuple[Fold, ...]:
    """Deal whole groups of judged rows, of which place, stratum and group are known, into n folds or less.

    The largest come first. Each comes to the fold in which its strata, each as a share of its rows, are
    scarcest.
    """
    place, stratum, owners = known
    first = numpy.full(int(owners.max()) + 1, len(place))
    numpy.minimum.at(first, owners, place)
    # groups are numbered by their first hashes; equal rows of several groups have their order from the groups
    own = numpy.unique(first[owners] * (len(first) + 1) + owners, return_inverse=True)[1]
    n_groups = int(own.max()) + 1
    if n_groups < LEAST_DEALT:
        return ()
    n = min(n, n_groups)
    sizes = numpy.zeros((n_groups, int(stratum.max()) + 1))
    numpy.add.at(sizes, (own, stratum), 1.0)
    shares = sizes / numpy.maximum(sizes.sum(axis=0), 1.0)
    load, fold_of = numpy.zeros((n, shares.shape[1])), numpy.zeros(n_groups, dtype=int)
    for i in numpy.argsort(-sizes.sum(axis=1), kind="stable"):
        fold_of[i] = numpy.argmin(numpy.round(load @ shares[i] + 1e-6 * load.sum(axis=1), 12))
        load[fold_of[i]] += shares[i]
    insides = [numpy.flatnonzero(fold_of[own] == f) for f in range(n)]
    return tuple(_fold(rows, which, places, own[places] % CALIBRATION_PARTS) for places in insides)


def _strata(rows: Rows, which: numpy.ndarray, place: numpy.ndarray) -> numpy.ndarray:
    """Return the class or range of each judged row as a number; the rows have places by their hashes.

    That of the smallest hash has the number 0, whatever its name or sign.
    """
    if isinstance(rows.targets, Values):
        along = ranking(rows.targets, rows.weights.counts)[which]
        along = along[numpy.lexsort((numpy.abs(along), place))]
        along = along[numpy.abs(along) > 1e-6]
        if len(along) and along[0] < 0:  # a value between two ranges is in the upper one
            rows = replace(rows, targets=replace(rows.targets, Y=-rows.targets.Y))
    codes = strata(rows)[which]
    n = int(codes.max()) + 1
    smallest = numpy.full(n, len(place))
    numpy.minimum.at(smallest, codes, place)
    sizes, sums = numpy.bincount(codes, minlength=n), numpy.bincount(codes, place, n)
    number: numpy.ndarray = numpy.argsort(numpy.lexsort((sums, -sizes, smallest)))
    return number[codes]


def _fold(rows: Rows, which: numpy.ndarray, places: numpy.ndarray, parts: numpy.ndarray) -> Fold:
    outside = numpy.setdiff1d(numpy.arange(rows.X.shape[0]), which[places])
    return Fold(rows, numpy.concatenate([outside, which[places]]), places, parts)


def dealt(folds: Sequence[Fold]) -> Dealt | None:
    """Return in which fold and part each judged row is; None where there are no folds."""
    if not folds:
        return None
    numbers = numpy.repeat(numpy.arange(len(folds)), [len(fold.places) for fold in folds])
    order = numpy.argsort(numpy.concatenate([fold.places for fold in folds]))
    return Dealt(numbers[order], numpy.concatenate([fold.parts for fold in folds])[order])


def together(folds: Sequence[Fold], scores: Sequence[Array]) -> Array:
    """Put the scores (..., rows inside, k) of folds in the order of the judged rows."""
    xp = array_namespace(scores[0])
    order = numpy.argsort(numpy.concatenate([fold.places for fold in folds]))
    return take_rows(xp.concat(scores, axis=-2), from_numpy(order, scores[0], xp.int64))
