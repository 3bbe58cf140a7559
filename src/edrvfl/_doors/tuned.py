"""A search is a classifier or a regressor, and answers as the networks that it tuned."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv
from sklearn.utils import get_tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from .._inputs.reading import read_labels, read_values
from .._models.coverage import Coverage
from .._models.model import Model
from .._seam.arrays import Array
from .._search.scorer import StandIn
from .answers import Classifies, Predicts, predicts, without_axis


def _best_has(method: str) -> Callable[[Any], bool]:
    """Return a check that the best estimator answers alone, and has a method."""

    def check(search: Tuned) -> bool:
        if search.ensemble_size > 1:
            raise AttributeError(f"{method} is that of one estimator; set ensemble_size=1.")
        if not hasattr(search._estimator(), method):
            kind = type(search._estimator()).__name__
            raise AttributeError(f"the estimator that this search tunes, {kind}, has no {method}.")
        return predicts(search)

    return check


class ClassStandIn(StandIn, ClassifierMixin, Classifies):
    """What a scorer sees in place of a classifier."""

    @property
    def classes_(self) -> numpy.ndarray | None:
        """All labels, those that the training rows of the split lack among them."""
        return self.scorer.scoring.classes


class ValueStandIn(StandIn, RegressorMixin, Predicts):
    """What a scorer sees in place of a regressor."""


class Tuned(Classifies):
    """An estimator that tunes another and answers as it does. Subclasses search."""

    scoring: Any
    cv: Any
    ensemble_size: int
    best_estimator_: Any
    estimators_: list[Any]

    def _estimator(self) -> Any:
        """Return the estimator that is tuned."""
        raise NotImplementedError

    @property
    def _classifies(self) -> bool:
        return bool(self._estimator()._classifies)

    @property
    def _stand_in(self) -> type:
        return ClassStandIn if self._classifies else ValueStandIn

    def _check_targets(self, y: Any) -> Any:
        return read_labels(self, y) if self._classifies else read_values(self, y)

    def _scorer(self) -> Any:
        estimator = self._estimator()
        scorer = check_scoring(estimator, scoring=self.scoring)
        asked = getattr(scorer, "_response_method", "predict")
        asked = (asked,) if isinstance(asked, str) else asked
        if not any(hasattr(estimator, method) for method in asked):
            raise ValueError(
                f"scoring={self.scoring!r} needs {' or '.join(asked)}, which {type(estimator).__name__} does "
                'not have. Take a scoring of values, for instance "r2" or "neg_mean_absolute_error".'
            )
        return scorer

    def _splitter(self, labels: Any = None) -> Any:
        return check_cv(self.cv, labels, classifier=self._classifies)

    def get_metadata_routing(self) -> MetadataRouter:
        """Say what the splitter and the scorer ask for, for scikit-learn's metadata routing.

        Returns
        -------
        router : MetadataRouter
            What scikit-learn asks before it passes weights and groups on.
        """
        router = MetadataRouter(owner=self).add_self_request(self)
        split, score = (MethodMapping().add(caller="fit", callee=callee) for callee in ("split", "score"))
        router.add(splitter=self._splitter(), method_mapping=split)
        return router.add(scorer=self._scorer(), method_mapping=score)

    @property
    def _model(self) -> Model:
        model: Model = self.best_estimator_._model
        return model

    def _coverage_for(self, coverage: Any) -> Coverage:
        found: Coverage = self.best_estimator_._coverage_for(coverage)
        return found

    @property
    def classes_(self) -> Array:
        """The labels that the winner knows."""
        return self.best_estimator_.classes_

    def _answers(self, X: Any, method: str) -> Array:
        """Return the mean of what the estimators answer."""
        self._check_fitted_alike(X, method)
        total: Array = 0.0
        for model in self.estimators_:
            total = total + model._answers(X, method)
        return total / len(self.estimators_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        own = get_tags(self._estimator())
        for name in ("estimator_type", "classifier_tags", "regressor_tags", "target_tags", "input_tags"):
            setattr(tags, name, getattr(own, name))
        return tags

    @available_if(predicts)
    def predict(self, X: Any, costs: Any = None) -> Array:
        """Return the most probable class of each row, or the values of each row for a regressor.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows with the columns of `fit`.

        costs : array-like of shape (n_classes, n_classes), default=None
            ``costs[i, j]`` is the cost of answering class j where it is i: the class of least expected cost
            is answered, as by the classifier that is tuned. Of regressors None.

        Returns
        -------
        y : array of shape (n_samples,), or (n_samples, n_outputs) for several outputs
            Labels as they came in `fit`, or values in its units.
        """
        if self._classifies:
            return self._priced(X, costs)
        if costs is not None:
            raise ValueError("costs are those of classes, and this search tunes a regressor. Leave them out.")
        return without_axis(self._answers(X, "predict"))

    @property
    def _calibration(self) -> str | None:
        found: str | None = self.best_estimator_.calibration
        return found

    @available_if(predicts)
    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy of `predict`, or R^2 for a regressor, whatever `scoring` is.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows with the columns of `fit`.

        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            The true labels or values.

        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows.

        Returns
        -------
        score : float
            1 is the best.
        """
        kind = ClassifierMixin if self._classifies else RegressorMixin
        return float(kind.score(self, X, y, sample_weight))

    @available_if(_best_has("save"))
    def save(self, path: str | os.PathLike[str]) -> None:
        """Save `best_estimator_` to a file, without pickle.

        :func:`edrvfl.load` gives the best estimator, not the search. The results of the search are not in
        the file. Where several estimators answer together (``ensemble_size`` above 1), save those of
        `estimators_`, each to a file of its own.

        Parameters
        ----------
        path : str or path-like
            The file; one that exists is replaced at once, when the new one is complete.
        """
        check_is_fitted(self)
        self.best_estimator_.save(path)

    predict_set = available_if(_best_has("predict_set"))(Classifies.predict_set)
    predict_interval = available_if(_best_has("predict_interval"))(Predicts.predict_interval)
