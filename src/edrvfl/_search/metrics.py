"""How answers are judged: the usual metrics for many networks at once, any other scorer one by one."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from numbers import Real
from typing import Any

import numpy
from sklearn.base import ClassifierMixin, RegressorMixin

from .._doors.base import Classifies, Predicts
from .._inputs.encoding import largest_width
from .._inputs.rows import as_matrix, to_host
from .._inputs.table import Columns
from .._seam.arrays import Array, array_namespace, from_numpy, itemsize, weighted_mean
from .._seam.sklearn import _safe_indexing
from .candidates import Candidate
from .plan import NetworkCandidate, Size

Split = tuple[numpy.ndarray, numpy.ndarray]  # indices of training and of test rows


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """Some rows: as an array for the networks, and in the user's own form for scorers."""

    X: Array
    labels: numpy.ndarray  # or values, in the shape in which they came
    weights: Array | None
    given: Any = None  # a frame, or an array in NumPy
    metadata: Mapping[str, Any] = field(default_factory=dict)  # what the scorer gets beside X and y

    def take(self, rows: numpy.ndarray) -> Sample:
        """Return the named rows."""

        def part(values: Any) -> Any:
            of_rows = numpy.shape(values)[:1] == self.labels.shape[:1]
            return _safe_indexing(values, rows) if of_rows else values

        metadata = {name: part(values) for name, values in self.metadata.items()}
        return Sample(part(self.X), part(self.labels), part(self.weights), part(self.given), metadata)


@dataclass(frozen=True, slots=True, eq=False)
class Search:
    """What all parts of a search have in common."""

    rows: Sample
    columns: Columns | None  # how the rows' columns were read
    classes: numpy.ndarray | None  # all labels; None if y holds values
    scoring: Any  # the name of a kernel, or a scorer
    error_score: Any  # what a network scores that fails, or "raise"
    stacked: bool  # whether networks are computed side by side, as suits a GPU
    widths: dict[Hashable, int] = field(default_factory=dict)  # of the inputs, at most, by encoder

    @property
    def kernel(self) -> Kernel | None:
        """The metric that is computed for many networks at once; None for a scorer that is called."""
        return kernel_of(self.scoring, classifies=self.classes is not None)

    def size(self, split: Split, candidate: NetworkCandidate) -> Size:
        """Return what decides the memory that networks with this candidate's inputs need on a split."""
        X, (m, v) = self.rows.X, (len(part) for part in split)
        key = candidate.plan.inputs
        if key not in self.widths:  # asked once, because it looks at all rows
            self.widths[key] = largest_width(X, key.encoder, self.columns)
        values = self.classes is None
        k = as_matrix(self.rows.labels).shape[1] if self.classes is None else len(self.classes)
        return Size(m, v, self.widths[key], k, itemsize(X), self.stacked, values)


@dataclass(frozen=True, slots=True, eq=False)
class SplitScorer:
    """Scores candidates on one split, and notes what goes wrong."""

    search: Search
    train: Sample
    test: Sample
    truth: Array  # of the test rows: the places (v,) of their labels among all classes, or values (v, k)
    failures: dict[tuple[int, int], str] = field(default_factory=dict)  # (candidate, depth) without a score

    @classmethod
    def of(cls, search: Search, split: Split) -> SplitScorer:
        """Take the rows of a split."""
        train, test = (search.rows.take(rows) for rows in split)
        xp = array_namespace(test.X)
        if search.classes is None:
            return cls(search, train, test, from_numpy(as_matrix(test.labels), test.X, xp.float64))
        codes = numpy.searchsorted(search.classes, test.labels)
        return cls(search, train, test, from_numpy(codes, test.X, xp.int64))

    def __call__(
        self,
        P: Array,
        trained: numpy.ndarray | None,
        candidates: Sequence[Candidate],
        depth: int = 1,
        fitted: Callable[[], Any] | None = None,
    ) -> Array:
        """Score the answers P (candidates, v, k) of candidates at one depth, as (candidates,).

        `trained` are the classes of the probabilities P; None if P holds values. `fitted` returns the
        candidate fitted, in NumPy, where there is one already.
        """
        P = self.spread(P, trained)
        if self.search.kernel is not None:
            return self.search.kernel(P, self.truth, self.test.weights)
        stand_in = ValueStandIn if self.search.classes is None else ClassStandIn
        # A scorer costs much more than a layer, so it is called only at the depths that are results.
        scores = [
            self._call_scorer(one, depth, stand_in(self, of_one, fitted or partial(self._fit, one, depth)))
            if depth in one.depths
            else numpy.nan
            for one, of_one in zip(candidates, to_host(P), strict=True)
        ]
        return numpy.array(scores)

    def spread(self, P: Array, trained: numpy.ndarray | None) -> Array:
        """Return P (..., k) with a column for every class: one that the training rows lack gets 0."""
        if trained is None or self.search.classes is None or len(trained) == len(self.search.classes):
            return P
        return P @ from_numpy(trained[:, None] == self.search.classes, P)

    def _call_scorer(self, candidate: Candidate, depth: int, model: Any) -> float:
        test = self.test
        try:
            score = self.search.scoring(model, test.given, test.labels, **test.metadata)
        except Exception as error:
            return self.excuse(error, candidate, [depth])
        if numpy.ndim(score) > 0 or not isinstance(numpy.asarray(score).item(), Real):
            raise ValueError(f"A scorer must return one number, but this one returned {score!r}.")
        return float(score)

    def _fit(self, candidate: Candidate, depth: int) -> Any:
        """Fit a candidate alone on the training rows, in NumPy."""
        train = self.train
        weights = None if train.weights is None else to_host(train.weights)
        return candidate.at(depth).fit(train.given, train.labels, weights)

    def excuse(self, error: Exception, candidate: Candidate, depths: Iterable[int]) -> float:
        """Record a failure at each of these depths and return the error score, or raise the error."""
        if self.search.error_score == "raise":
            raise error
        message = name_error(error)
        self.failures.update({(candidate.number, d): message for d in depths if d in candidate.depths})
        return float(self.search.error_score)


def name_error(error: Exception) -> str:
    """Return what warnings tell of an error."""
    return f"{type(error).__name__}: {error}"


def _accuracy(P: Array, codes: Array, weights: Array | None) -> Array:
    """Return the share of rows, by weight, whose most probable class is theirs: (..., v, k) -> (...)."""
    return weighted_mean(array_namespace(P).argmax(P, axis=-1) == codes, weights)


def _log_loss(P: Array, codes: Array, weights: Array | None) -> Array:
    """Return the mean, by weight, of the log-probability of the true class."""
    xp = array_namespace(P)
    index = xp.broadcast_to(codes[:, None], (*P.shape[:-1], 1))
    of_truth = xp.take_along_axis(P, index, axis=-1)[..., 0]
    return weighted_mean(xp.log(xp.clip(of_truth, float(xp.finfo(P.dtype).eps), 1.0)), weights)


def _near_one(V: Array, Y: Array) -> tuple[Array, Array, Array]:
    """Divide values (..., v, k) by a power of two of each output, so that squares do not overflow.

    Return V, Y and the powers (k,). A power of two is an exact factor.
    """
    xp = array_namespace(V)
    largest = xp.max(xp.abs(Y), axis=0)
    unit = 2.0 ** xp.floor(xp.log2(xp.where(largest > 0, largest, xp.ones_like(largest))))
    return xp.astype(V, xp.float64) / unit, Y / unit, unit


def _squared_errors(V: Array, Y: Array, weights: Array | None) -> Array:
    """Return the mean squared error, by weight, of each output: (..., v, k) -> (..., k)."""
    xp = array_namespace(V)
    E = xp.astype(V, xp.float64) - Y
    return weighted_mean(xp.matrix_transpose(E * E), weights)


def _absolute_error(V: Array, Y: Array, weights: Array | None) -> Array:
    """Return minus the mean absolute error: (..., v, k) -> (...)."""
    xp = array_namespace(V)
    V, Y, unit = _near_one(V, Y)
    return -xp.mean(weighted_mean(xp.matrix_transpose(xp.abs(V - Y)), weights) * unit, axis=-1)


def _squared_error(V: Array, Y: Array, weights: Array | None) -> Array:
    """Return minus the mean squared error."""
    return -array_namespace(V).mean(_squared_errors(V, Y, weights), axis=-1)


def _root_squared_error(V: Array, Y: Array, weights: Array | None) -> Array:
    """Return minus the mean over the outputs of the root mean squared errors."""
    xp = array_namespace(V)
    V, Y, unit = _near_one(V, Y)
    return -xp.mean(xp.sqrt(_squared_errors(V, Y, weights)) * unit, axis=-1)


def _r2(V: Array, Y: Array, weights: Array | None) -> Array:
    """Return R^2, 1 - squared error / variance of y, as the mean over the outputs.

    An output that does not vary has the R^2 1 where every answer is right, and 0 elsewhere. One row has none.
    """
    xp = array_namespace(V)
    V, Y, _ = _near_one(V, Y)
    errors = _squared_errors(V, Y, weights)
    mean = weighted_mean(xp.matrix_transpose(Y), weights)
    variance = xp.broadcast_to(_squared_errors(mean[None, :], Y, weights), errors.shape)
    varies = variance != 0
    of_outputs = 1 - errors / xp.where(varies, variance, xp.ones_like(variance))
    of_outputs = xp.where(varies, of_outputs, xp.astype(errors == 0, errors.dtype))
    return xp.mean(of_outputs if Y.shape[0] > 1 else of_outputs * numpy.nan, axis=-1)


Kernel = Callable[[Array, Array, Array | None], Array]  # answers, truth, weights -> scores

# The metrics that are computed for many networks at once. None is the estimator's own score.
KERNELS: Mapping[str | None, Kernel] = {None: _accuracy, "accuracy": _accuracy, "neg_log_loss": _log_loss}
VALUE_KERNELS: Mapping[str | None, Kernel] = {
    None: _r2,
    "r2": _r2,
    "neg_mean_squared_error": _squared_error,
    "neg_root_mean_squared_error": _root_squared_error,
    "neg_mean_absolute_error": _absolute_error,
}


def kernel_of(scoring: Any, classifies: bool) -> Kernel | None:
    """Return the metric that is computed for many networks at once; None if the scorer is called."""
    if not (scoring is None or isinstance(scoring, str)):  # a scorer need not be hashable
        return None
    return (KERNELS if classifies else VALUE_KERNELS).get(scoring)


def takes_sample_weight(scorer: Any) -> bool:
    """Tell whether a scorer, or the metric inside it, has a parameter `sample_weight`."""
    try:
        return "sample_weight" in inspect.signature(getattr(scorer, "_score_func", scorer)).parameters
    except ValueError:  # a compiled function does not tell
        return False


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


class ClassStandIn(StandIn, ClassifierMixin, Classifies):
    """What a scorer sees in place of a classifier."""

    @property
    def classes_(self) -> numpy.ndarray | None:
        """All labels, those that the training rows of the split lack among them."""
        return self.scorer.search.classes


class ValueStandIn(StandIn, RegressorMixin, Predicts):
    """What a scorer sees in place of a regressor."""
