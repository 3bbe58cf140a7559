"""How answers are judged: by a metric for many networks at once, or by a scorer one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from numbers import Real
from typing import Any

import numpy

from .._fitting.settings import InputSettings
from .._inputs.encoding import largest_width
from .._inputs.rows import as_matrix, to_host
from .._inputs.table import Columns
from .._seam.arrays import Array, array_namespace, from_numpy, itemsize
from .._seam.sklearn import _safe_indexing
from .candidates import Candidate
from .metrics import Metric
from .plan import Size

Split = tuple[numpy.ndarray, numpy.ndarray]  # indices of training and of test rows


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """Some rows: as an array for the networks, and in the user's own form for scorers."""

    X: Array
    labels: numpy.ndarray  # or values, in the shape in which they came
    weights: Array | None
    given: Any = None  # a frame, or an array in NumPy
    metadata: Mapping[str, Any] = field(default_factory=dict)  # what the scorer gets beside X and y
    groups: numpy.ndarray | None = None  # the same number for rows that belong together

    def take(self, rows: numpy.ndarray) -> Sample:
        """Return the named rows."""

        def part(values: Any) -> Any:
            of_rows = numpy.shape(values)[:1] == self.labels.shape[:1]
            return _safe_indexing(values, rows) if of_rows else values

        metadata = {name: part(values) for name, values in self.metadata.items()}
        X, labels, weights, given = map(part, (self.X, self.labels, self.weights, self.given))
        return Sample(X, labels, weights, given, metadata, part(self.groups))


@dataclass(frozen=True, slots=True, eq=False)
class Scoring:
    """How answers become scores."""

    classes: numpy.ndarray | None  # all labels; None if y holds values
    metric: Metric | None  # for many networks at once; None calls the scorer
    scorer: Any = None
    stand_in: Any = None  # the class of what a scorer sees in place of a fitted estimator
    error_score: Any = "raise"  # what a network scores that fails, or "raise"


@dataclass(frozen=True, slots=True, eq=False)
class Search:
    """What all parts of a search have in common that read the columns in the same way."""

    rows: Sample
    columns: Columns | None  # how the rows' columns were read
    scoring: Scoring
    stacked: bool = False  # whether networks are computed side by side, as suits a GPU

    def size(self, split: Split, inputs: InputSettings) -> Size:
        """Return what decides the memory that networks with these inputs need on a split."""
        X, classes, (m, v) = self.rows.X, self.scoring.classes, (len(part) for part in split)
        k = as_matrix(self.rows.labels).shape[1] if classes is None else len(classes)
        d, groups = largest_width(X, inputs.encoder, self.columns), self.rows.groups
        n_groups = None if groups is None else len(numpy.unique(groups[split[0]]))
        return Size(m, v, d, k, itemsize(X), self.stacked, n_groups)


@dataclass(frozen=True, slots=True, eq=False)
class SplitScorer:
    """Scores candidates on one split, and notes what goes wrong."""

    scoring: Scoring
    train: Sample
    test: Sample
    truth: Array  # of the test rows: the places (v,) of their labels among all classes, or values (v, k)
    failures: dict[tuple[int, int], str] = field(default_factory=dict)  # (candidate, depth) without a score

    @classmethod
    def of(cls, search: Search, split: Split) -> SplitScorer:
        """Take the rows of a split."""
        scoring, (train, test) = search.scoring, (search.rows.take(rows) for rows in split)
        xp = array_namespace(test.X)
        if scoring.classes is None:
            return cls(scoring, train, test, from_numpy(as_matrix(test.labels), test.X, xp.float64))
        codes = numpy.searchsorted(scoring.classes, test.labels)
        return cls(scoring, train, test, from_numpy(codes, test.X, xp.int64))

    def __call__(
        self, P: Array, trained: numpy.ndarray | None, candidates: Sequence[Candidate], depth: int
    ) -> Array:
        """Score the answers P (candidates, v, k) of candidates at one depth, as (candidates,).

        `trained` are the classes of the probabilities P; None if P holds values.
        """
        P = self.spread(P, trained)
        if self.scoring.metric is not None:
            return self.scoring.metric(P, self.truth, self.test.weights)
        # A scorer costs much more than a layer, so it is called only at the depths that are results.
        scores = [
            self._call_scorer(one, depth, of_one) if depth in one.depths else numpy.nan
            for one, of_one in zip(candidates, to_host(P), strict=True)
        ]
        return numpy.array(scores)

    def spread(self, P: Array, trained: numpy.ndarray | None) -> Array:
        """Return P (..., k) with a column for every class: one that the training rows lack gets 0."""
        classes = self.scoring.classes
        if trained is None or classes is None or len(trained) == len(classes):
            return P
        return P @ from_numpy(trained[:, None] == classes, P)

    def _call_scorer(self, candidate: Candidate, depth: int, P: numpy.ndarray) -> float:
        """Ask the scorer about a candidate with the answers P (v, k)."""
        test, model = self.test, self.scoring.stand_in(self, P, partial(self._fit, candidate, depth))
        try:
            score = self.scoring.scorer(model, test.given, test.labels, **test.metadata)
            score = score.item() if getattr(score, "ndim", None) == 0 else score  # of any library
            if not isinstance(score, Real):
                raise TypeError(
                    f"A scorer must return one number, the higher the better, but {self.scoring.scorer} "
                    f"returned {score!r:.80}."
                )
        except Exception as error:
            return self.excuse(error, candidate, [depth])
        return float(score)

    def _fit(self, candidate: Candidate, depth: int) -> Any:
        """Fit a candidate alone on the training rows, in NumPy."""
        train = self.train
        weights = None if train.weights is None else to_host(train.weights)
        return candidate.at(depth).fit(train.given, train.labels, weights, train.groups)

    def excuse(self, error: Exception, candidate: Candidate, depths: Iterable[int]) -> float:
        """Record a failure at each of these depths and return the error score, or raise the error."""
        if self.scoring.error_score == "raise":
            raise error
        message = name_error(error)
        self.failures.update({(candidate.number, d): message for d in depths if d in candidate.depths})
        return float(self.scoring.error_score)


def name_error(error: Exception) -> str:
    """Return what warnings tell of an error."""
    return f"{type(error).__name__}: {error}"


class StandIn:
    """What a scorer sees in place of a fitted estimator.

    It knows the answers for the rows of the split. A scorer that asks about other rows, or about anything
    else that a fitted estimator has, gets it from the candidate fitted alone.
    """

    def __init__(self, scorer: SplitScorer, P: numpy.ndarray, fitted: Callable[[], Any]) -> None:
        self.scorer, self.P = scorer, P
        self._fitted = cache(fitted)

    def _answers(self, X: Any, method: str) -> Array:
        if X is self.scorer.test.given:
            return self.P
        model = self._fitted()
        return self.scorer.spread(model._answers(X, method), getattr(model, "classes_", None))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or "_fitted" not in vars(self):
            raise AttributeError(name)
        return getattr(self._fitted(), name)
