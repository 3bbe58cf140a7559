"""EDRVFLSearchCV: tune an estimator of the family by cross-validation, many networks at a time."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy
from joblib import effective_n_jobs
from sklearn.base import clone
from sklearn.callback import CallbackContext, CallbackSupportMixin
from sklearn.exceptions import FitFailedWarning
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv
from sklearn.utils import check_random_state, get_tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.parallel import Parallel, delayed

from ._arrays import Array, on_accelerator
from ._classifier import LARGEST_SEED, EDRVFLClassifier
from ._encoder import as_encoder
from ._inputs.rows import to_host
from ._network.answer import probabilities
from ._search.metrics import Sample, Search, Split, is_kernel, takes_sample_weight
from ._search.plan import Candidate, ResultRow, bytes_needed, door_of, groups, memory_budget, result_rows
from ._search.results import best_first, results_table
from ._search.run import score_split
from ._search.space import draw_configurations
from ._shell import ClassifierShell, read_new_table, unchanged_on_failure
from ._sklearn import Count, StrOptions, _check_sample_weight, _fit_context, _routing_enabled


class EDRVFLSearchCV(CallbackSupportMixin, ClassifierShell):
    """Tune an edRVFL network by cross-validation, many networks at a time.

    Tries configurations of an estimator, scores each of them at every depth on every split, and refits the
    best. Networks share their random layers; those with the same hidden setting share their features and
    Gram matrices as far as pruning lets them; on a GPU they are grown in stacks. Every score is that of the
    network fitted alone: encoder and calibration, too, are learnt from the training rows of the split.

    Parameters
    ----------
    estimator : EDRVFLClassifier, default=None
        The network that is tuned: its parameters hold where the search does not set them. None is
        ``EDRVFLClassifier()``, the paper's WPedRVFL with calibrated probabilities. :func:`edrvfl.variant`
        builds the paper's methods.

    param_distributions : dict or list of dict, default=None
        Parameter name to a list of values or a scipy distribution, as in scikit-learn's
        ``RandomizedSearchCV``. None is the box of the paper's Table 2, without the parameters that the
        estimator switches off, see :func:`edrvfl.paper_configurations`.

    n_iter : int or None, default=200
        How many configurations are drawn; fewer are tried if lists have no more. None tries every
        combination of the lists, in order, as ``GridSearchCV`` does.

    scoring : str or callable, default=None
        None is accuracy. "accuracy" and "neg_log_loss" are computed for many networks at once; any other
        scorer is called once for each network and depth.

    n_jobs : int, default=None
        Processes over splits and hidden settings, as in joblib. On a GPU it does nothing.

    refit : bool, default=True
        Whether the best configurations are fitted on all rows, for `predict`.

    ensemble_size : int, default=1
        How many of the best configurations, each at its own best depth, are refitted; their probabilities
        are averaged.

    cv : int, cross-validation splitter or iterable, default=5
        Splits, as in scikit-learn's searches.

    error_score : "raise" or float, default=nan
        The score of a network that fails, with a warning. "raise" raises the error.

    memory : int, default=None
        Memory limit in MiB for all processes together, not counting the data. If it is too small for
        `n_jobs` processes, fewer are started. None is half of the memory that is free on the machine or on
        the GPU.

    random_state : int, RandomState instance or None, default=None
        Seed of the configurations that are drawn. The networks take the estimator's own `random_state`; if
        that is None, one seed for all of them is drawn from this one too.

    verbose : int, default=0
        1 prints a line for each part of the search. scikit-learn's callbacks are the other way to follow it:
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
        What the search set, with ``n_layers``: ``clone(estimator).set_params(**best_params_)`` is the winner.

    best_score_ : float
        The winner's mean score over the splits.

    best_estimator_ : EDRVFLClassifier
        The winner fitted on all rows.

    estimators_ : list of EDRVFLClassifier
        The `ensemble_size` best.

    classes_, n_features_in_, feature_names_in_
        As in :class:`EDRVFLClassifier`; `classes_` are those of the winner.

    n_splits_ : int
        Number of splits.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from edrvfl import EDRVFLClassifier, EDRVFLSearchCV
    >>> X, y = load_iris(return_X_y=True)
    >>> search = EDRVFLSearchCV(EDRVFLClassifier(random_state=0), n_iter=20, cv=3, random_state=0).fit(X, y)
    >>> search.best_score_ > 0.95
    True
    >>> len(search.cv_results_["params"])
    200
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "estimator": [EDRVFLClassifier, None],
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

    def __init__(
        self,
        estimator: EDRVFLClassifier | None = None,
        param_distributions: Mapping[str, Any] | list[Mapping[str, Any]] | None = None,
        *,
        n_iter: int | None = 200,
        scoring: Any = None,
        n_jobs: int | None = None,
        refit: bool = True,
        ensemble_size: int = 1,
        cv: Any = 5,
        error_score: str | float = numpy.nan,
        memory: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.estimator = estimator
        self.param_distributions = param_distributions
        self.n_iter = n_iter
        self.scoring = scoring
        self.n_jobs = n_jobs
        self.refit = refit
        self.ensemble_size = ensemble_size
        self.cv = cv
        self.error_score = error_score
        self.memory = memory
        self.random_state = random_state
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None, **params: Any) -> EDRVFLSearchCV:
        """Search, and refit the best.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows, as the estimator takes them.

        y : array-like of shape (n_samples,)
            Labels of at least two classes.

        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows: in the fits, in accuracy and log-loss, and in other scorers that take
            weights. With metadata routing on, a scorer gets them if it requests them.

        **params
            ``groups`` for the splitter; with metadata routing on, what splitter and scorer ask for.

        Returns
        -------
        self : EDRVFLSearchCV
            The fitted estimator. A fit that fails leaves it as it was.
        """
        with unchanged_on_failure(self):
            return self._fit(X, y, sample_weight, params)

    def _fit(self, X: Any, y: Any, sample_weight: Any, params: dict[str, Any]) -> EDRVFLSearchCV:
        given = {"estimator": self, "X": X, "y": y, "metadata": {"sample_weight": sample_weight}}
        rows = self._rows()  # before the data are checked: a bad configuration fails at once
        candidates = list(dict.fromkeys(row.candidate for row in rows))
        if len(candidates) < (self.ensemble_size if self.refit else 1):
            raise ValueError(
                f"param_distributions gives {len(candidates)} different configurations to try, but at least "
                f"{self.ensemble_size} are needed (ensemble_size)."
            )
        searches, splits = self._prepare(X, y, sample_weight, params, candidates)
        whole = self._init_callback_context(max_subtasks=1 + self.refit).call_on_fit_task_begin(**given)
        scores = self._score(searches, splits, candidates, whole, given)
        of_rows = numpy.stack([scores[row.candidate.number, :, row.depth - 1] for row in rows])
        self.cv_results_ = results_table(rows, of_rows)
        order = best_first(self.cv_results_["rank_test_score"], rows)
        self.best_index_, self.best_params_ = order[0], rows[order[0]].params
        self.best_score_ = float(self.cv_results_["mean_test_score"][order[0]])
        self.n_splits_ = len(splits)
        if self.refit:
            depths: dict[Candidate, int] = {}
            for i in order:  # each configuration once, at its best depth
                depths.setdefault(rows[i].candidate, rows[i].depth)
            best = itertools.islice(depths.items(), self.ensemble_size)
            self.estimators_ = [clone(one.estimator).set_params(n_layers=depth) for one, depth in best]
            with _task(whole, "refit", given, self.ensemble_size) as refit:
                for model in self.estimators_:
                    with _task(refit, "network", given) as task, task.propagate_callback_context(model):
                        model.fit(X, y, sample_weight)
            self.best_estimator_ = self.estimators_[0]
        whole.call_on_fit_task_end(**given)
        return self

    def _rows(self) -> list[ResultRow]:
        """Return one row for each network and depth that is scored."""
        state = check_random_state(self.random_state)
        estimator = EDRVFLClassifier() if self.estimator is None else clone(self.estimator)
        drawn = draw_configurations(estimator, self.param_distributions, self.n_iter, state)
        if not isinstance(estimator.random_state, Integral):  # one seed for the search and the refit
            own = state if estimator.random_state is None else estimator.random_state
            estimator.random_state = int(own.randint(LARGEST_SEED))
        return result_rows(estimator, drawn)

    def _prepare(
        self, X: Any, y: Any, sample_weight: Any, params: dict[str, Any], candidates: Sequence[Candidate]
    ) -> tuple[dict[Hashable, Search], list[Split]]:
        """Check rows, labels and weights, and split them.

        Return what the parts of the search have in common, for each way in which columns are read.
        """
        tables = {}
        for one in candidates:
            if one.door not in tables:
                tables[one.door] = self._check_training_rows(X, y, as_encoder(one.estimator.encoder))
        table, y, columns = next(iter(tables.values()))
        # A frame stays a frame: splitters and scorers may ask for columns by name.
        if hasattr(X, "columns"):
            given = X
        elif columns is None or not any(columns.categorical):
            given = to_host(table)
        else:  # codes mean nothing to a scorer
            given = to_host(X) if hasattr(X, "__dlpack__") else numpy.asarray(X, dtype=object)
        if sample_weight is not None:
            sample_weight = _check_sample_weight(
                sample_weight, table, dtype=table.dtype, ensure_non_negative=True
            )
        of_split, of_score = self._route(params, sample_weight)
        labels = to_host(y)
        splits = self._split(given, labels, of_split)
        kernel = is_kernel(self.scoring)
        given, scoring = (None, self.scoring) if kernel else (given, self._scorer())
        common = (numpy.unique(labels), scoring, self.error_score, on_accelerator(table))
        return {
            door: Search(Sample(table, labels, sample_weight, given, of_score), columns, *common)
            for door, (table, _, columns) in tables.items()
        }, splits

    def _route(self, params: dict[str, Any], sample_weight: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the keyword arguments of the splitter and of the scorer."""
        weights = {} if sample_weight is None else {"sample_weight": to_host(sample_weight)}
        weights = {} if is_kernel(self.scoring) else weights
        if _routing_enabled():
            routed = process_routing(self, "fit", **params, **weights)
            return routed.splitter.split, routed.scorer.score
        if unknown := set(params) - {"groups"}:
            raise TypeError(
                f"fit got {', '.join(sorted(unknown))}; only groups can be passed while scikit-learn's "
                "metadata routing is off."
            )
        return params, weights if takes_sample_weight(self._scorer()) else {}

    def _split(self, given: Any, labels: numpy.ndarray, params: dict[str, Any]) -> list[Split]:
        """Return training and test rows as indices."""
        every = numpy.arange(len(labels))  # splits may be masks, and indices may be negative
        splitter = check_cv(self.cv, labels, classifier=True)
        splits = [(every[train], every[test]) for train, test in splitter.split(given, labels, **params)]
        if not splits:
            raise ValueError("cv gives no split. An iterator is used up after the first fit.")
        for i, (train, test) in enumerate(splits):
            if not (len(train) and len(test)):
                raise ValueError(f"Split {i} of cv has {len(train)} training rows and {len(test)} test rows.")
        return splits

    def _score(
        self,
        searches: Mapping[Hashable, Search],
        splits: list[Split],
        candidates: list[Candidate],
        whole: CallbackContext,
        given: dict[str, Any],
    ) -> numpy.ndarray:
        """Return validation scores (candidate, split, depth)."""
        jobs, memory = self._share_memory(searches, splits, candidates)
        # One process keeps the networks of a width together, which share their random layers. The widest come
        # first, so that no process is left with a long task at the end.
        # With several processes smaller pieces balance better, at the price of drawing layers again.
        pieces = groups(candidates, (lambda c: (c.frame, c.hidden)) if jobs > 1 else (lambda c: c.problem))
        pieces.sort(key=lambda piece: -searches[piece[0].door].size(splits[0], piece[0]).width(piece[0]))
        tasks = list(itertools.product(range(len(splits)), pieces))
        calls = (
            delayed(score_split)(searches[piece[0].door], piece, splits[i], memory) for i, piece in tasks
        )
        depths = [c.settings.n_layers for c in candidates]
        scores = numpy.full((len(candidates), len(splits), max(depths)), numpy.nan)
        failures: list[str] = []
        done = 0
        try:
            with _task(whole, "search", given, len(tasks)) as context:
                for values, wrong in Parallel(n_jobs=jobs, return_as="generator")(calls):
                    i, piece = tasks[done]
                    scores[[c.number for c in piece], i, : values.shape[1]] = values
                    failures += wrong.values()
                    done += 1
                    with _task(context, "part", given):
                        self._print(f"{done}/{len(tasks)}: split {i + 1}/{len(splits)}", values)
        except KeyboardInterrupt as interrupt:
            interrupt.add_note(
                f"{type(self).__name__} was interrupted after {done} of {len(tasks)} parts of its search; it "
                "is as it was before."
            )
            raise
        self._warn_of_failures(failures, len(splits) * sum(len(c.depths) for c in candidates))
        return scores

    def _share_memory(
        self, searches: Mapping[Hashable, Search], splits: list[Split], candidates: list[Candidate]
    ) -> tuple[int, int]:
        """Return how many processes there are, and the bytes that each of them may use."""
        any_search = next(iter(searches.values()))
        jobs = 1 if any_search.stacked else effective_n_jobs(self.n_jobs)
        budget = memory_budget(self.memory, any_search.rows.X)
        if jobs > 1:  # every process needs room for one network of any kind
            largest = max(
                bytes_needed([[c]], searches[c.door].size(split, c)) for c in candidates for split in splits
            )
            jobs = max(1, min(jobs, budget // largest))
        return jobs, budget // jobs

    def _print(self, part: str, values: numpy.ndarray) -> None:
        if self.verbose:
            best = numpy.max(values, initial=-numpy.inf, where=~numpy.isnan(values))
            print(f"[{type(self).__name__}] {part}, {len(values)} networks, best {best:.4f}")

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

    def _scorer(self) -> Any:
        return check_scoring(EDRVFLClassifier(), scoring=self.scoring)

    def get_metadata_routing(self) -> MetadataRouter:
        """Say what the splitter and the scorer ask for, for scikit-learn's metadata routing."""
        router = MetadataRouter(owner=self).add_self_request(self)
        split, score = (MethodMapping().add(caller="fit", callee=callee) for callee in ("split", "score"))
        router.add(splitter=check_cv(self.cv, classifier=True), method_mapping=split)
        return router.add(scorer=self._scorer(), method_mapping=score)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        estimator = EDRVFLClassifier() if self.estimator is None else self.estimator
        tags.input_tags = get_tags(estimator).input_tags
        return tags

    @property
    def _fitted_array(self) -> Array:
        return self.best_estimator_._fitted_array

    @property
    def classes_(self) -> Array:
        """The labels that the winner knows."""
        return self.best_estimator_.classes_

    def _probabilities(self, X: Any, method: str) -> Array:
        self._check_fitted_alike(X, method)
        tables: dict[Hashable, Array] = {}  # networks that read columns in the same way share what was read
        total: Array = 0.0
        for model in self.estimators_:
            door = (door_of(model.encoder), model._fitted_array.dtype)
            if door not in tables:
                tables[door] = read_new_table(self, X, model._columns, model._fitted_array)
            total = total + probabilities(model.network_, tables[door])
        return total / len(self.estimators_)


@contextmanager
def _task(
    parent: CallbackContext, name: str, given: dict[str, Any], max_subtasks: int = 0
) -> Iterator[CallbackContext]:
    """Tell scikit-learn's callbacks when a task begins and when it has ended without an error."""
    task = parent.subcontext(task_name=name, max_subtasks=max_subtasks).call_on_fit_task_begin(**given)
    yield task
    task.call_on_fit_task_end(**given)
