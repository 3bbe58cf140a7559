"""A guest: an estimator of scikit-learn as a member of a portfolio.

It has no exact leave-one-out. A forest answers each row by the trees that did not draw it; of any other
estimator, and where rows are in groups, five copies are fitted, each without a fold of the rows.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy
from sklearn.base import clone
from sklearn.utils import get_tags
from sklearn.utils.validation import has_fit_parameter

from .._inputs.rows import MOST_COMPARED, Rows
from .._inputs.table import Columns
from .._inputs.targets import Classes, RowWeights
from .._loo.follow import Follower, Stage, Votes
from .._models.guest import LARGEST, GuestModel, guest_answers, mixed
from .._seam.arrays import converted, from_numpy, ignore_overflow, is_numpy_array
from .data import Data
from .folds import Fold, Learnt, deal_folds
from .settings import GuestFit
from .systems import mean_targets

N_FOLDS = 5
# A row is drawn as often as it weighs. One of three times the mean weight is out of one bag in twenty; of a
# heavier one too few trees are left to answer it.
MOST_DRAWN = 3.0
MOST_CATEGORIES = 255  # of a column that histogram-based trees take as categories


@dataclass(frozen=True, slots=True, eq=False)
class GuestFitted:
    """A fitted guest, with what the answers of rows that it did not see say about it."""

    model: GuestModel
    stage: Stage
    guest: Any  # the estimator before it was fitted


def refuse_rows(name: str, settings: GuestFit, data: Data) -> None:
    """Refuse rows that a guest cannot learn from."""
    rows, guest = data.rows, settings.estimator
    who = f"Member {name!r} is a {type(guest).__name__}, which"
    if not is_numpy_array(rows.X):
        raise ValueError(
            f"{who} takes NumPy arrays and frames only, but the rows are in {type(rows.X).__module__}. Leave "
            "the member out, or bring the rows to NumPy."
        )
    if data.single_rows is not rows:
        raise ValueError(
            f"{who} needs all rows in memory, but they come in more parts than are held. Leave the member "
            "out, or fit a portfolio to fewer rows."
        )
    if rows.targets.width > 1 and rows.classes is None and not get_tags(guest).target_tags.multi_output:
        raise ValueError(
            f"{who} takes one output, but y has {rows.targets.width}. Wrap it: "
            f"sklearn.multioutput.MultiOutputRegressor({type(guest).__name__}(...))."
        )
    counts = _counts(rows)
    if counts is not None and not _takes_weights(guest) and not _are_few(counts):
        raise ValueError(
            f"{who} takes no sample_weight, but rows have weights that are not whole numbers, or classes "
            "have weights. Leave the member out, or all weights."
        )


def fit_guest(data: Data, settings: GuestFit, learnt: Learnt, seed: int) -> GuestFitted:
    """Fit a guest to all rows, and calibrate the answers of rows that it did not see."""
    rows, inputs = data.rows, learnt.inputs
    guest = prepared(settings.estimator, data.columns, seed)
    Z = numpy.clip(inputs.apply(rows.X), -LARGEST, LARGEST)
    seen = replace(rows, X=Z, weights=RowWeights(_counts(rows)))
    fitted, _ = train(guest, seen)
    which = numpy.arange(len(Z)) if data.judged is None else data.judged.rows
    P = out_of_bag(fitted, seen) if rows.groups is None else None  # a tree saw others of the group
    folds = deal_folds(rows, data.judged, N_FOLDS) if P is None else ()
    P = without_folds(guest, seen, folds, which) if P is None else P[which]
    if not numpy.isfinite(P).all():
        raise ValueError(f"the {type(guest).__name__} answers with numbers that are not finite.")
    P = P if rows.classes is None else mixed(P)
    stage = Follower(data.jury, Votes("value")).add(P)
    ends = numpy.ones(P.shape[1]), numpy.zeros(P.shape[1])
    scale, prior = rows.targets.in_units(from_numpy(numpy.stack(ends), rows.X))
    moved = converted(stage.calibration, lambda array: from_numpy(array, rows.X))
    model = GuestModel(data.columns, fitted, inputs, rows.classes, scale, prior, moved)
    return GuestFitted(model, stage, guest)


def prepared(estimator: Any, columns: Columns | None, seed: int) -> Any:
    """Return a copy of a guest with its seeds; it keeps out-of-bag answers and knows categories if it can."""
    guest = clone(estimator)
    given = guest.get_params()
    chosen: dict[str, Any] = {name: seed for name in given if name.split("__")[-1] == "random_state"}
    if "oob_score" in given and given.get("bootstrap"):
        chosen["oob_score"] = given["oob_score"] or True
    if columns is not None and str(given.get("categorical_features")) == "from_dtype":
        most = min(MOST_CATEGORIES, given.get("max_bins", MOST_CATEGORIES))
        known = ((start, columns.categories[j]) for j, start in enumerate(columns.starts[:-1]))
        few = [start for start, categories in known if categories is not None and len(categories) <= most]
        chosen |= {"categorical_features": few} if few else {}
    return guest.set_params(**chosen)


def train(guest: Any, rows: Rows) -> tuple[Any, numpy.ndarray]:
    """Fit a copy of a guest to encoded rows; return it, and which classes they have, or outputs."""
    X, targets, counts = rows.X, rows.targets, rows.weights.counts
    if isinstance(targets, Classes):
        columns, y = numpy.unique(targets.codes, return_inverse=True)
    else:
        columns, y = numpy.arange(targets.width), targets.Y
        y = y[:, 0] if targets.width == 1 else y
    weights = {}
    if counts is not None and _takes_weights(guest):
        weights["sample_weight"] = counts
    elif counts is not None:  # weight 2 is the row twice
        X, y = (numpy.repeat(values, counts.astype(int), axis=0) for values in (X, y))
    with ignore_overflow(), warnings.catch_warnings():  # rows that are in all bags are answered otherwise
        warnings.filterwarnings("ignore", "Some inputs do not have OOB scores")
        return clone(guest).fit(X, y, **weights), columns


def out_of_bag(fitted: Any, rows: Rows) -> numpy.ndarray | None:
    """Return the out-of-bag answers of all rows (m, k); None where there are none, or not for each row."""
    found = getattr(fitted, "oob_decision_function_", getattr(fitted, "oob_prediction_", None))
    counts = rows.weights.counts
    if found is None or (counts is not None and counts.max() > MOST_DRAWN * counts.mean()):
        return None
    if len(found) != len(rows.X):  # rows that came twice have a copy in the bag
        return None
    P = numpy.asarray(found, dtype=float).reshape(len(found), -1)
    # a row that was in all bags has zeros, or gaps
    return P if (numpy.isfinite(P).all(axis=1) & (P != 0).any(axis=1)).all() else None


def without_folds(guest: Any, rows: Rows, folds: Sequence[Fold], which: numpy.ndarray) -> numpy.ndarray:
    """Return what judged rows are answered by copies of a guest that did not see their fold.

    Where rows are so few that there are no folds, or a fold leaves one class, the others' mean answers.
    """
    P = _others_mean(rows, which)
    for fold in folds:
        n = len(fold.places)
        outside, inside = fold.order[:-n], fold.order[-n:]
        if rows.classes is not None and len(numpy.unique(rows.targets.some(outside).codes)) < 2:  # type: ignore[union-attr]
            continue
        fitted, columns = train(guest, rows.some(outside))
        P[fold.places] = 0.0
        P[fold.places[:, None], columns] = guest_answers(fitted, rows.X[inside], rows.classes is None)
    return P


def _others_mean(rows: Rows, which: numpy.ndarray) -> numpy.ndarray:
    """Return the shares of the classes, or the mean values, of all rows but one, for each of some rows.

    Where rows are in groups, of all rows but those of its group.
    """
    counts = numpy.ones(len(rows.X)) if rows.weights.counts is None else rows.weights.counts
    total, own = counts.sum(), counts[which, None]
    sums = own * numpy.asarray(rows.targets.rows(which), dtype=float)
    if rows.groups is not None:
        of = numpy.unique(rows.groups, return_inverse=True)[1]
        own = numpy.bincount(of, counts)[of[which], None]
        for k in range(rows.targets.width):
            codes = isinstance(rows.targets, Classes)
            column = rows.targets.codes == k if codes else rows.targets.Y[:, k]  # type: ignore[union-attr]
            sums[:, k] = numpy.bincount(of, counts * column)[of[which]]
    rest: numpy.ndarray = (total * mean_targets(rows) - sums) / numpy.maximum(total - own, 1e-30 * total)
    return rest


def _counts(rows: Rows) -> numpy.ndarray | None:
    """Return how often each row comes, times its class weight; None if all are alike."""
    base = rows.weights.base
    if base is None or (base == base[0]).all():
        return None
    return numpy.asarray(base, dtype=float) / rows.weights.unit


def _takes_weights(guest: Any) -> bool:
    return bool(has_fit_parameter(guest, "sample_weight"))


def _are_few(counts: numpy.ndarray) -> bool:
    """Tell whether rows can come as often as they count."""
    return bool((counts == counts.round()).all() and counts.sum() <= MOST_COMPARED)
