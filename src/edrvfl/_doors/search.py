"""EDRVFLSearchCV: tune a network by cross-validation, many networks at a time."""

from __future__ import annotations

import itertools
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import KW_ONLY
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy
from sklearn.base import clone
from sklearn.callback import CallbackContext, CallbackSupportMixin
from sklearn.exceptions import FitFailedWarning
from sklearn.utils import check_random_state
from sklearn.utils.parallel import Parallel

from .._fitting.portfolio import LARGEST_SEED
from .._inputs.reading import refuse_source
from .._seam.sklearn import Count, StrOptions, _fit_context
from .._search.candidates import Candidate, ResultRow, result_rows
from .._search.material import Material, prepare_material
from .._search.results import best_first, results_table
from .._search.run import cut_search, seconds_left
from .._search.scorer import name_error
from .._search.space import draw_configurations
from .base import fields_are_parameters, unchanged_on_failure
from .classifier import EDRVFLClassifier
from .regressor import EDRVFLRegressor
from .tuned import Tuned


@fields_are_parameters
class EDRVFLSearchCV(CallbackSupportMixin, Tuned):
    """Tune an edRVFL network by cross-validation, many networks at a time.

    Tries configurations of an estimator, scores each of them at every depth on every split, and refits the
    best. Networks share their random layers; those with the same hidden setting share their features and
    Gram matrices as far as pruning lets them; on a GPU they are grown in stacks. Every score is that of the
    network fitted alone: encoder and calibration, too, are learnt from the training rows of the split.

    For portfolios and kernel voters, which share no work and have one score on a split, take scikit-learn's
    ``RandomizedSearchCV``.

    The search is a classifier or a regressor, as the estimator is: only a search of a classifier has
    `classes_`, `predict_proba`, `predict_log_proba` and `decision_function`.

    Parameters
    ----------
    estimator : EDRVFLClassifier or EDRVFLRegressor, default=None
        What is tuned: its parameters hold where the search does not set them. None is
        ``EDRVFLClassifier()``, the paper's WPedRVFL with calibrated probabilities. :func:`edrvfl.variant`
        builds the paper's methods.

    param_distributions : dict or list of dict, default=None
        Parameter name to a list of values or a scipy distribution, as in scikit-learn's
        ``RandomizedSearchCV``. None is the box of the paper's Table 2, without the parameters that the
        estimator switches off or leaves to leave-one-out, see :func:`edrvfl.paper_configurations`.

    n_iter : int or None, default=200
        How many configurations are drawn; fewer are tried if lists have no more. None tries every
        combination of the lists, in order, as ``GridSearchCV`` does.

    scoring : str or callable, default=None
        None is accuracy, or R^2 for a regressor. "accuracy" and "neg_log_loss", or "r2",
        "neg_mean_squared_error", "neg_root_mean_squared_error" and "neg_mean_absolute_error", are computed
        for many networks at once; any other scorer is called once for each configuration and depth, and must
        return one number.

    n_jobs : int, default=None
        Processes over splits and hidden settings, as in joblib. On a GPU it does nothing.

    refit : bool, default=True
        Whether the best configurations are fitted on all rows, for `predict`.

    ensemble_size : int, default=1
        How many of the best configurations, each at its own best depth, are refitted; their probabilities
        or values are averaged.

    cv : int, cross-validation splitter or iterable, default=5
        Splits, as in scikit-learn's searches: a number is that of folds, stratified for a classifier.

    error_score : "raise" or float, default=nan
        The score of a configuration that fails, with a warning. "raise" raises the error.

    memory : int, default=None
        Memory limit in MiB for all processes together, not counting the data. If it is too small for
        `n_jobs` processes, fewer are started. None is half of the memory that is free on the machine or on
        the GPU.

    random_state : int, RandomState instance or None, default=None
        Seed of the configurations that are drawn. They are fitted with the estimator's own `random_state`;
        if that is no number, one seed for all of them is drawn, and the results name it.

    verbose : int, default=0
        1 prints a line for each part of the search, with how many parts there are and about how long the rest
        takes. scikit-learn's callbacks are the other way to follow it:
        ``EDRVFLSearchCV().set_callbacks(sklearn.callback.ProgressBar())``.

    Attributes
    ----------
    cv_results_ : dict of arrays
        A row for each configuration and depth: ``params``, ``param_n_layers`` and so on,
        ``split0_test_score`` and so on, ``mean_test_score``, ``std_test_score``, ``rank_test_score``. A
        configuration that names `n_layers` is scored at that depth alone.

    best_index_ : int
        Row of the winner: the best mean score; of several, the shallowest network, then the one drawn first.

    best_params_ : dict
        What the search set, with ``n_layers``, and with ``random_state`` where the estimator has no number
        there: ``clone(estimator).set_params(**best_params_)`` is the winner.

    best_score_ : float
        The winner's mean score over the splits.

    best_estimator_ : estimator
        The winner fitted on all rows.

    estimators_ : list of estimators
        The `ensemble_size` best.

    classes_, n_features_in_, feature_names_in_
        As in :class:`EDRVFLClassifier`; `classes_` are those of the winner, for a classifier only.

    n_splits_ : int
        Number of splits.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from edrvfl import EDRVFLClassifier, EDRVFLSearchCV
    >>> X, y = load_iris(return_X_y=True)
    >>> network = EDRVFLClassifier(n_layers=3, random_state=0)
    >>> search = EDRVFLSearchCV(network, n_iter=4, cv=3, random_state=0).fit(X, y)
    >>> search.best_score_ > 0.95
    True
    >>> len(search.cv_results_["params"])  # four configurations at three depths
    12

    A regressor is tuned in the same way:

    >>> from sklearn.datasets import load_diabetes
    >>> from edrvfl import EDRVFLRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> space = {"n_hidden": [16, 64], "activation": ["relu", "sigmoid"]}
    >>> network = EDRVFLRegressor(n_layers=3, random_state=0)
    >>> search = EDRVFLSearchCV(network, space, n_iter=None, cv=3).fit(X, y)
    >>> 0.4 < search.best_score_ < 0.6
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "estimator": "no_validation",  # see _validate_params
        "param_distributions": [dict, list, None],
        "n_iter": [Count(1), None],
        "scoring": [str, callable, None],
        "n_jobs": [Integral, None],
        "refit": ["boolean"],
        "ensemble_size": [Count(1)],
        "cv": ["cv_object"],
        "error_score": [StrOptions({"raise"}), Real],
        "memory": [Count(1), None],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    estimator: Any = None
    param_distributions: Mapping[str, Any] | list[Mapping[str, Any]] | None = None
    _: KW_ONLY
    n_iter: int | None = 200
    scoring: Any = None
    n_jobs: int | None = None
    refit: bool = True
    ensemble_size: int = 1
    cv: Any = 5
    error_score: str | float = numpy.nan
    memory: int | None = None
    random_state: Any = None
    verbose: int = 0

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, groups: Any = None, **params: Any
    ) -> EDRVFLSearchCV:
        """Search, and refit the best.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows, as the estimator takes them.

        y : array-like of shape (n_samples,), or for a regressor also (n_samples, n_outputs)
            Labels of at least two classes, or finite numbers.

        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows: in the fits, in the scores that are computed at once, and in other scorers
            that take weights. With metadata routing on, a scorer gets them if it requests them.

        groups : array-like of shape (n_samples,), default=None
            Which rows belong together: for the splitter, such as ``GroupKFold``, and for every fit, which
            then leaves out whole groups, as `fit` of the estimator says. A number as `cv` makes splits that
            ignore groups, as in scikit-learn.

        **params
            With metadata routing on, what splitter and scorer ask for.

        Returns
        -------
        self : EDRVFLSearchCV
            The fitted estimator. A fit that fails leaves it as it was.
        """
        with unchanged_on_failure(self):
            return self._search(X, y, {"sample_weight": sample_weight, "groups": groups}, params)

    def _search(self, X: Any, y: Any, of_rows: dict[str, Any], params: dict[str, Any]) -> EDRVFLSearchCV:
        refuse_source(self, X)
        given = {"estimator": self, "X": X, "y": y, "metadata": {"sample_weight": of_rows["sample_weight"]}}
        rows = self._rows()  # before the data are checked: a bad configuration fails at once
        candidates = list(dict.fromkeys(row.candidate for row in rows))
        if len(candidates) < (self.ensemble_size if self.refit else 1):
            raise ValueError(
                f"param_distributions gives {len(candidates)} different configurations to try, but at least "
                f"{self.ensemble_size} are needed (ensemble_size)."
            )
        material = prepare_material(self, X, y, of_rows, params, candidates)
        whole = self._init_callback_context(max_subtasks=1 + self.refit).call_on_fit_task_begin(**given)
        scores = self._score(material, candidates, whole, given)
        of_results = numpy.stack([scores[row.candidate.number, :, row.depth - 1] for row in rows])
        self.cv_results_ = results_table(rows, of_results)
        order = best_first(self.cv_results_["rank_test_score"], rows)
        self.best_index_, self.best_params_ = order[0], rows[order[0]].params
        self.best_score_ = float(self.cv_results_["mean_test_score"][order[0]])
        self.n_splits_ = len(material.splits)
        for name in ("estimators_", "best_estimator_"):  # what an earlier fit chose
            self.__dict__.pop(name, None)
        if self.refit:
            depths: dict[Candidate, int] = {}
            for i in order:  # each configuration once, at its best depth
                depths.setdefault(rows[i].candidate, rows[i].depth)
            best = itertools.islice(depths.items(), self.ensemble_size)
            self.estimators_ = [one.at(depth) for one, depth in best]
            with _task(whole, "refit", given, self.ensemble_size) as refit:
                for model in self.estimators_:
                    with _task(refit, "model", given) as task, task.propagate_callback_context(model):
                        model.fit(X, y, **of_rows)
            self.best_estimator_ = self.estimators_[0]
        whole.call_on_fit_task_end(**given)
        return self

    def _estimator(self) -> Any:
        return EDRVFLClassifier() if self.estimator is None else self.estimator

    def _validate_params(self) -> None:
        super()._validate_params()
        if not isinstance(self._estimator(), (EDRVFLClassifier, EDRVFLRegressor)):
            raise TypeError(
                f"{type(self).__name__} tunes an EDRVFLClassifier or an EDRVFLRegressor, but estimator is of "
                f"type {type(self.estimator).__name__}. Tune it with scikit-learn's RandomizedSearchCV."
            )

    def _rows(self) -> list[ResultRow]:
        """Return one row for each candidate and depth that is scored."""
        state = check_random_state(self.random_state)
        estimator = clone(self._estimator())
        drawn = draw_configurations(estimator, self.param_distributions, self.n_iter, state)
        own = estimator.random_state
        fixed = own if isinstance(own, Integral) else None
        seed = int((own or state).randint(LARGEST_SEED)) if fixed is None else fixed
        for one in drawn:  # one seed for the search and the refit, which the parameters of the winner name
            if one.get("random_state", fixed) is None:
                one["random_state"] = seed
        return result_rows(estimator, drawn)

    def _score(
        self, material: Material, candidates: list[Candidate], whole: CallbackContext, given: dict[str, Any]
    ) -> numpy.ndarray:
        """Return validation scores (candidate, split, depth)."""
        n_splits = len(material.splits)
        scores = numpy.full((len(candidates), n_splits, max(max(c.depths) for c in candidates)), numpy.nan)
        failures: list[str] = []
        for one in candidates:
            if one.reading in material.refused:
                scores[one.number, ...] = self.error_score
                failures += [name_error(material.refused[one.reading])] * (n_splits * len(one.depths))
        readable = [one for one in candidates if one.reading in material.searches]
        jobs, parts = cut_search(material, readable, self.n_jobs, self.memory)
        done, begun = 0, time.perf_counter()
        try:
            with _task(whole, "search", given, len(parts)) as context:
                for values, wrong in Parallel(n_jobs=jobs, return_as="generator")(p.call for p in parts):
                    part = parts[done]
                    scores[[c.number for c in part.candidates], part.split, : values.shape[1]] = values
                    failures += wrong.values()
                    done += 1
                    with _task(context, "part", given):
                        left = seconds_left(parts, done, time.perf_counter() - begun)
                        self._print(f"{done}/{len(parts)}: split {part.split + 1}/{n_splits}", values, left)
        except KeyboardInterrupt as interrupt:
            interrupt.add_note(
                f"{type(self).__name__} was interrupted after {done} of {len(parts)} parts of its search; it "
                "is as it was before."
            )
            raise
        self._warn_of_failures(failures, n_splits * sum(len(c.depths) for c in candidates))
        return scores

    def _print(self, part: str, values: numpy.ndarray, left: float) -> None:
        if self.verbose:
            best = numpy.max(values, initial=-numpy.inf, where=~numpy.isnan(values))
            networks = f"{len(values)} network{'s' * (len(values) > 1)}"
            print(f"[{type(self).__name__}] {part}, {networks}, best {best:.4f}, about {left:.0f} s left")

    def _warn_of_failures(self, failures: Sequence[str], total: int) -> None:
        if len(failures) == total:
            raise ValueError(f"All {total} scores failed. The first error was: {failures[0]}")
        if failures:
            warnings.warn(
                f"{len(failures)} of {total} scores are error_score={self.error_score}, because a fit or the "
                f"scorer failed. The first error was: {failures[0]}",
                FitFailedWarning,
                stacklevel=6,
            )


@contextmanager
def _task(
    parent: CallbackContext, name: str, given: dict[str, Any], max_subtasks: int = 0
) -> Iterator[CallbackContext]:
    """Tell scikit-learn's callbacks when a task begins and when it has ended without an error."""
    task = parent.subcontext(task_name=name, max_subtasks=max_subtasks).call_on_fit_task_begin(**given)
    yield task
    task.call_on_fit_task_end(**given)
