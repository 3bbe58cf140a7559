"""The first look at all rows: their columns, labels and weights."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy
from sklearn.base import clone

from .._inputs.moments import ValueScale
from .._inputs.reading import open_training_table, read_training_numbers
from .._inputs.rows import as_matrix, refuse_one_class
from .._inputs.table import Columns
from .._inputs.targets import WeightSums
from .columns import Kinds, look_at_columns, with_texts
from .parts import Part, about_block, add
from .watched import WatchedParts


@dataclass(frozen=True, slots=True, eq=False)
class Survey:
    """What a first look at some parts tells."""

    n_features: int
    named: tuple[str, ...] | None  # the names of the columns, if X has names
    kinds: Kinds | None  # what the columns hold; None where numbers are taken as they are
    single: bool  # whether all numbers are float32
    weighted: bool  # whether rows have sample weights
    weights: WeightSums
    labels: numpy.ndarray | None  # the classes that have weight, sorted; None if the targets are values
    class_weights: numpy.ndarray | None  # (k,), the weight of each
    # of each part: its number, its labels, and how many rows with a positive weight each label has; values
    # have no labels, and all rows form one group
    seen: list[tuple[int, Any, numpy.ndarray]]
    scale: ValueScale | None  # of the values

    @property
    def columns(self) -> Columns | None:
        """Which columns hold categories, and which; None where numbers are taken as they are."""
        return None if self.kinds is None else self.kinds.settled(self.single)

    def __add__(self, other: Survey) -> Survey:
        """Return what both sets of parts tell."""
        self._refuse_different(other)
        with about_block(other.seen[0][0]):
            kinds = add(self.kinds, other.kinds)
        numbers = (self.n_features, self.named, kinds, self.single and other.single, self.weighted)
        weights, seen = self.weights + other.weights, self.seen + other.seen
        if self.labels is None or other.labels is None:
            return Survey(*numbers, weights, None, None, seen, add(self.scale, other.scale))
        labels = numpy.unique(numpy.concatenate([self.labels, other.labels]))
        totals = numpy.zeros(len(labels))
        for one in (self, other):
            assert one.labels is not None
            assert one.class_weights is not None
            totals[numpy.searchsorted(labels, one.labels)] += one.class_weights
        return Survey(*numbers, weights, labels, totals, seen, None)

    @property
    def class_rows(self) -> dict[int, numpy.ndarray]:
        """By part, in order: how many rows with weight each of all labels has, (k,)."""
        if self.labels is None:
            return {number: sizes for number, _, sizes in self.seen}
        of_parts = {number: numpy.zeros(len(self.labels), dtype=int) for number, _, _ in self.seen}
        for number, labels, sizes in self.seen:
            of_parts[number][numpy.searchsorted(self.labels, labels)] = sizes
        return of_parts

    def _refuse_different(self, other: Survey) -> None:
        """Refuse parts that do not go together, by their numbers."""
        for ours, its in zip(_kinds(self), _kinds(other), strict=True):
            if ours != its:
                with about_block(other.seen[0][0]):
                    raise ValueError(f"It has {its}, but block {self.seen[0][0]} has {ours}.")


def _kinds(survey: Survey) -> tuple[str, str, str]:
    """Describe what all parts must have in common: columns, weights or none, and the kind of targets."""
    labels, scale = survey.labels, survey.scale
    if labels is not None:
        targets = f"labels that are {'numbers' if labels.dtype.kind in 'biuf' else 'text'}"
    else:
        targets = f"{0 if scale is None else len(scale.mean)} outputs in y"
    return _columns(survey), "weights" if survey.weighted else "no weights", targets


def _columns(survey: Survey) -> str:
    named = survey.named
    return f"{survey.n_features} columns" + (f" ({', '.join(named)})" if named else " without names")


def look_at(estimator: Any, encoder: Any, part: Part) -> Survey | None:
    """Look at a part for the first time, and return what it tells; None if it has no rows.

    Numbers and labels are checked as in a fit in memory. The estimator has the parameters of the fit but is
    not fitted, the encoder is a record that has `categorical_features` and `text_features`.
    """
    if not part.n_rows:
        return None
    with about_block(part.number):
        check = copy(estimator)  # takes the names of this part's columns
        y = numpy.asarray(estimator._check_targets(part.y))
        if encoder is not None:
            table = open_training_table(check, part.X)
            X, kinds = look_at_columns(table, encoder)
            single = table.dtype == numpy.float32
        else:
            X, kinds = read_training_numbers(check, part.X), None
            single = X.dtype == numpy.float32
        if X.shape[0] != part.n_rows:
            raise ValueError(f"X has {X.shape[0]} rows, but y has {part.n_rows}.")
        counts = part.counts()
        kept = counts > 0
        if not kept.all():
            y, counts = y[kept], counts[kept]
        names = getattr(check, "feature_names_in_", None)
        named = None if names is None else tuple(names)
        n_features = X.shape[1] if kinds is None else len(kinds.names)  # a date is several
        seen = (n_features, named, kinds, single, part.weight is not None, WeightSums.of(counts))
        if not estimator._classifies:
            scale = ValueScale.of(as_matrix(y).astype(float), counts)
            return Survey(*seen, None, None, [(part.number, None, numpy.asarray([len(y)]))], scale)
        labels, codes = numpy.unique(y, return_inverse=True)
        sizes = numpy.bincount(codes, minlength=len(labels))
        of_classes = numpy.bincount(codes, counts, minlength=len(labels))
        return Survey(*seen, labels, of_classes, [(part.number, labels, sizes)], None)


def take_survey(parts: WatchedParts, estimator: Any, encoder: Any) -> Survey:
    """Look at all parts for the first time, and note the columns in the estimator."""
    found: Survey | None = parts.total(partial(look_at, clone(estimator), encoder))
    name = type(estimator).__name__
    if found is None or found.weights.n_rows == 0:
        raise ValueError(f"{name} needs rows, but the source has none with a positive weight.")
    if found.labels is not None:
        refuse_one_class(found.labels, name)
    if found.kinds is not None:
        found = replace(found, kinds=with_texts(found.kinds, parts))
    estimator.n_features_in_ = found.n_features
    if found.named is not None:
        estimator.feature_names_in_ = numpy.asarray(found.named, dtype=object)
    elif hasattr(estimator, "feature_names_in_"):
        del estimator.feature_names_in_
    return found
