"""The search over many networks at once: an estimator that tunes itself; a thin shell around `_paths`."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from types import MappingProxyType
from typing import Any, ClassVar

import numpy
from joblib import Parallel, delayed, effective_n_jobs
from scipy import stats
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.callback import CallbackContext
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv
from sklearn.utils import check_random_state
from sklearn.utils.metadata_routing import (
    MetadataRouter,
    MethodMapping,
    process_routing,
)

from . import _network
from ._arrays import Array, array_namespace, free_bytes, from_numpy, itemsize, on_accelerator, row_blocks
from ._classifier import (
    VARIANTS,
    EDRVFLClassifier,
    PredictsByProbabilities,
    counted,
    log_odds,
    row_costs,
    to_host,
    unchanged_on_failure,
)
from ._ensemble import combine, combine_staged
from ._paths import Draws, bytes_needed, path_scores
from ._readout import TIE_DIGITS
from ._sklearn import (
    Interval,
    StrOptions,
    _check_sample_weight,
    _fit_context,
    _routing_enabled,
)

Configuration = Mapping[str, Any]

READOUT = ("regularization", "correct_weight")  # networks that differ only in these share their features
HIDDEN = ("n_hidden", "activation", "renormalize", "norm_scale", "norm_shift", "prune_rate", "weight_from")
PASSED_ON = ("n_layers", "activation", "weight_from", "ensemble", "standardize", "class_weight")
DEFAULT_MEMORY = 2**30
MOST_READOUTS = 10
NEUTRAL_EVERY = 5  # of the box's draws of p one in five is 0, of omega_r one in five is 1

# The box of the paper's Table 2: lambda 2^-12 to 2^12, n 20 to 1000, gamma 0.5 to 2, alpha -2 to 2.
PAPER_BOX: Mapping[str, Any] = MappingProxyType(
    {
        "n_hidden": (20, 32, 50, 100, 200, 316, 500, 1000),
        "norm_scale": stats.uniform(0.5, 1.5),
        "norm_shift": stats.uniform(-2, 4),
        "prune_rate": stats.uniform(0, 0.999),
        "regularization": stats.loguniform(2.0**-12, 2.0**12),
        "correct_weight": stats.uniform(0.001, 0.999),
    }
)


def draw_configurations(
    n_iter: int, random_state: Any = None, variant: str = "WPedRVFL", space: Mapping[str, Any] | None = None
) -> list[dict[str, Any]]:
    """Configurations to try: hidden settings times read-outs, the form in which work can be shared.

    200 are 20 hidden settings with 10 read-outs each; in general there are twice as many hidden settings
    as read-outs, until a setting has 10. Every variant draws everything and keeps what it tunes, so
    variants with the same seed share their settings.

    Parameters
    ----------
    n_iter : int
        How many.

    random_state : int, RandomState instance or None, default=None
        Seed.

    variant : str, default="WPedRVFL"
        Method whose parameters are drawn from the paper's box.

    space : dict, default=None
        Parameter name to a list of values or a scipy distribution. None is the box of the paper's
        Table 2, in which one pruning rate in five is 0 and one weight omega_r in five is 1.

    Returns
    -------
    configurations : list of dict
        Parameters of :class:`EDRVFLClassifier`.

    Examples
    --------
    >>> from edrvfl import draw_configurations
    >>> draw_configurations(2, random_state=0, variant="edRVFL_O")
    [{'n_hidden': 200, 'regularization': 1.67381}, {'n_hidden': 100, 'regularization': 7.70094}]
    """
    if n_iter < 1:
        raise ValueError(f"n_iter must be at least 1, got {n_iter}.")
    if variant not in VARIANTS:
        raise ValueError(f"Unknown variant {variant!r}; choose one of {', '.join(VARIANTS)}.")
    tuned = set(PAPER_BOX) - set(VARIANTS[variant]) if space is None else set(space)
    if space is None and not VARIANTS[variant].get("renormalize", True):
        tuned -= {"norm_scale", "norm_shift"}
    box = PAPER_BOX if space is None else space
    unknown = set(box) - set(READOUT) - set(HIDDEN)
    if unknown:
        raise ValueError(
            f"space names parameters that cannot be searched: {', '.join(sorted(unknown))}. "
            f"Choose among {', '.join(HIDDEN + READOUT)}."
        )
    state = check_random_state(random_state)
    of_hidden, of_readout = (numpy.random.RandomState(state.randint(2**31 - 1)) for _ in range(2))
    readouts = min(MOST_READOUTS, max(1, round(math.sqrt(n_iter / 2))))
    bags: dict[str, list[Any]] = {}

    def draw(name: str, state: numpy.random.RandomState) -> Any:
        if hasattr(box[name], "rvs"):
            return float(f"{box[name].rvs(random_state=state):.6g}")
        if not bags.get(name):  # each value of a list comes equally often
            values = list(box[name])
            bags[name] = [values[i] for i in state.permutation(len(values))]
        value = bags[name].pop()
        return value.item() if isinstance(value, numpy.generic) else value

    drawn: list[dict[str, Any]] = []
    for h in range(math.ceil(n_iter / readouts)):
        setting = {name: draw(name, of_hidden) for name in HIDDEN if name in box}
        if space is None and h % NEUTRAL_EVERY == 0:
            setting["prune_rate"] = 0.0
        for r in range(readouts):
            readout = {name: draw(name, of_readout) for name in READOUT if name in box}
            if space is None and (h * readouts + r) % NEUTRAL_EVERY == 0:
                readout["correct_weight"] = 1.0
            drawn.append({name: value for name, value in (setting | readout).items() if name in tuned})
    return drawn[:n_iter]


def score_configurations(
    configurations: Sequence[Configuration],
    X: Array,
    y: Array,
    X_new: Array,
    metric: Callable[[Array], Array],
    *,
    n_classes: int,
    random_state: Any = None,
    s: Array | None = None,
    cost: Array | None = None,
    memory: int = DEFAULT_MEMORY,
    **params: Any,
) -> numpy.ndarray:
    """Score networks on new rows, many at a time, each as if it had been fitted alone.

    Parameters
    ----------
    configurations : sequence of dict
        Parameters of :class:`EDRVFLClassifier` that differ among the networks.

    X, y, s, cost : arrays
        Validated training rows, codes 0 to n_classes - 1, sample weights and costs.

    X_new : array of shape (v, d)
        Rows to score.

    metric : callable
        Takes probabilities (networks, layers, v, n_classes), gives scores (networks, layers).

    memory : int
        Bytes that may be held at a time.

    **params
        Parameters of :class:`EDRVFLClassifier` common to all.

    Returns
    -------
    scores : ndarray of shape (configurations, layers)
    """
    models = [EDRVFLClassifier(**{**params, **configuration}) for configuration in configurations]
    for model in models:
        model._validate_params()
        if model.regularization == "loo":
            raise ValueError(
                "regularization='loo' chooses a penalty for every layer by itself and cannot be searched. "
                "Search over numbers, or fit EDRVFLClassifier(regularization='loo')."
            )
    seed = int(check_random_state(random_state).randint(numpy.iinfo(numpy.int32).max))
    draws: Draws | None = None
    width = 0
    answer = None
    for group in _groups(models):
        for chunk in _chunks(group, models, X, X_new, n_classes, memory):
            settings = _stacked([[models[i] for i in readouts] for readouts in chunk], on_accelerator(X))
            if draws is None or settings.n_hidden != width:  # groups come by width: one is kept at a time
                width = settings.n_hidden
                draws = Draws(seed, X.shape[1], width, X)
            standardize, rule = models[chunk[0][0]].standardize, models[chunk[0][0]].ensemble
            scores = path_scores(X, y, n_classes, X_new, settings, draws, s, cost, standardize)
            values = _judged(scores, rule, metric)
            del scores
            if answer is None:
                answer = numpy.full((len(models), max(m.n_layers for m in models)), numpy.nan)
            order = list(itertools.chain.from_iterable(chunk))
            answer[order, : values.shape[1]] = values
    return answer if answer is not None else numpy.empty((0, 0))


def _judged(scores: Array, rule: str, metric: Callable[[Array], numpy.ndarray]) -> numpy.ndarray:
    """The metric of every network at every depth, a few networks at a time."""
    xp = array_namespace(scores)
    flat = xp.reshape(scores, (-1, *scores.shape[-3:]))  # (networks, layers, v, k)
    values = []
    for networks in row_blocks(flat, flat.shape[0], math.prod(flat.shape[1:]), least=1):
        P = combine_staged(xp.moveaxis(flat[networks, ...], 1, 0), rule)
        values.append(metric(xp.moveaxis(P, 0, 1)))
    return numpy.concatenate(values)


def _groups(models: Sequence[EDRVFLClassifier]) -> Iterator[list[list[int]]]:
    """Indices grouped twice: by what one stack must share, then by hidden setting."""
    stacks: dict[Any, dict[Any, list[int]]] = {}
    for i, m in enumerate(models):
        common = (m.n_hidden, m.n_layers, m.activation, m.renormalize, m.weight_from, m.ensemble)
        hidden = (m.norm_scale, m.norm_shift, m.prune_rate) if m.renormalize else (m.prune_rate,)
        key = (*common, m.standardize, m.prune_rate > 0)
        stacks.setdefault(key, {}).setdefault(hidden, []).append(i)
    for key in sorted(stacks, key=lambda k: k[0]):
        yield list(stacks[key].values())


def _chunks(
    group: list[list[int]],
    models: Sequence[EDRVFLClassifier],
    X: Array,
    X_new: Array,
    n_classes: int,
    memory: int,
) -> Iterator[list[list[int]]]:
    """Cut a group so that each piece fits the memory: several hidden settings on a GPU, else one."""
    gpu = on_accelerator(X)

    def need(stack: list[list[int]]) -> int:
        settings = _stacked([[models[i] for i in readouts] for readouts in stack], gpu)
        return bytes_needed(X.shape[0], X_new.shape[0], X.shape[1], n_classes, settings, itemsize(X), gpu)

    pieces: list[list[int]] = []
    for readouts in group:
        size = len(readouts)
        while need([readouts[:size]]) > memory:
            if size == 1:
                raise MemoryError(
                    f"One network of {models[readouts[0]].n_hidden} neurons on {X.shape[0]} + "
                    f"{X_new.shape[0]} rows needs about {math.ceil(need([readouts[:1]]) / 2**20)} MiB; the "
                    f"memory budget is {memory // 2**20} MiB. Give more memory or try fewer neurons."
                )
            size = (size + 1) // 2
        pieces += [readouts[j : j + size] for j in range(0, len(readouts), size)]
    if not gpu:
        yield from ([piece] for piece in pieces)
        return
    for _, alike in itertools.groupby(sorted(pieces, key=len), key=len):
        stack: list[list[int]] = []
        for piece in alike:
            if stack and need([*stack, piece]) > memory:
                yield stack
                stack = []
            stack.append(piece)
        yield stack


def _stacked(models: list[list[EDRVFLClassifier]], keep_axis: bool) -> _network.Settings:
    """Settings of hidden settings times read-outs; one hidden setting has no axis unless asked for."""
    first = models[0][0]

    def of_readouts(name: str) -> numpy.ndarray:
        values = numpy.array([[getattr(m, name) for m in readouts] for readouts in models], dtype=float)
        return values if keep_axis else values[0]

    def of_hidden(name: str) -> Any:
        values = numpy.array([getattr(readouts[0], name) for readouts in models], dtype=float)
        return values if keep_axis else float(values[0])

    return _network.Settings(
        n_layers=first.n_layers,
        n_hidden=first.n_hidden,
        activation=first.activation,
        renormalize=first.renormalize,
        lam=of_readouts("regularization"),
        gamma=of_hidden("norm_scale"),
        alpha=of_hidden("norm_shift"),
        omega_r=of_readouts("correct_weight"),
        p=of_hidden("prune_rate"),
        weight_from=first.weight_from,
    )


class EDRVFLClassifierCV(PredictsByProbabilities):
    """An edRVFL network that tunes itself by cross-validation, many networks at a time.

    Draws `n_iter` configurations, scores each of them at every depth on every split, and refits the
    best. Networks share their random layers, those with the same hidden setting share their features
    and Gram matrices as far as pruning lets them, and on a GPU they are trained in stacks. Every score
    is that of the network fitted alone.

    Parameters
    ----------
    variant : {"RVFL", "edRVFL_O", "edRVFL_N", "WedRVFL", "PedRVFL", "WPedRVFL"}, default="WPedRVFL"
        The method, which decides what is tuned.

    n_iter : int, default=200
        Configurations tried. Each is scored at every depth up to `n_layers`.

    space : dict or list of dict, default=None
        Parameter name to a list of values or a scipy distribution; a list is taken as the very
        configurations to try. None is the box of the paper's Table 2.

    cv : int, cross-validation splitter or iterable, default=5
        Splits, as in scikit-learn's searches.

    scoring : str or callable, default=None
        None is accuracy. "accuracy" and "neg_log_loss" are computed for whole stacks; any other scorer
        is called once for each network and depth.

    refit : bool, default=True
        Whether the best configurations are fitted on all rows, for `predict`.

    ensemble_size : int, default=1
        How many of the best different configurations, each at its own best depth, are refitted; their
        probabilities are averaged.

    n_layers : int, default=10
        Largest depth.

    activation : str, default="relu"
        Activation function, unless `space` draws it.

    weight_from : {"train", "loo"}, default="train"
        Whose predictions the weighting goes by, unless `space` draws it.

    ensemble : {"softmax", "mean", "vote"}, default="softmax"
        How layers become one answer.

    standardize : bool, default=True
        Whether inputs are brought to mean 0 and variance 1.

    class_weight : dict, "balanced" or None, default=None
        Weights of the classes' errors.

    memory : int, default=None
        MiB that the search, all its processes together, may hold above the data; there are fewer processes
        if it has no room for all. None is 1024 for each, and on a GPU half of what is free there.

    n_jobs : int, default=None
        Processes over splits and hidden settings, as in joblib; on a GPU it does nothing.

    random_state : int, RandomState instance or None, default=None
        Seed of the configurations, of the networks, and of shuffled splits given as an int.

    verbose : int, default=0
        1 prints a line for each part of the search. scikit-learn's callbacks are the other way to follow it:
        ``EDRVFLClassifierCV().set_callbacks(sklearn.callback.ProgressBar())``.

    Attributes
    ----------
    cv_results_ : dict of arrays
        A row for each configuration and depth, which is ``param_n_layers``: ``params``,
        ``split0_test_score`` and so on, ``mean_test_score``, ``std_test_score``, ``rank_test_score``.

    best_index_ : int
        Row of the winner: the best mean score, of equals the shallowest, of those the first drawn.

    best_params_ : dict
        All its parameters that are not defaults, with ``n_layers``: ``EDRVFLClassifier(**best_params_)``
        is the winner.

    best_score_ : float
        Its mean score over the splits.

    best_estimator_ : EDRVFLClassifier
        The winner fitted on all rows.

    estimators_ : list of EDRVFLClassifier
        The `ensemble_size` best.

    classes_, n_features_in_, feature_names_in_
        As in :class:`EDRVFLClassifier`.

    n_splits_ : int
        Number of splits.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from edrvfl import EDRVFLClassifierCV
    >>> X, y = load_iris(return_X_y=True)
    >>> search = EDRVFLClassifierCV(n_iter=20, cv=3, random_state=0).fit(X, y)
    >>> search.best_score_ > 0.95
    True
    >>> len(search.cv_results_["params"])
    200
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "variant": [StrOptions(set(VARIANTS))],
        "n_iter": [Interval(Integral, 1, None, closed="left")],
        "space": [dict, list, None],
        "cv": ["cv_object"],
        "scoring": [str, callable, None],
        "refit": ["boolean"],
        "ensemble_size": [Interval(Integral, 1, None, closed="left")],
        **{name: EDRVFLClassifier._parameter_constraints[name] for name in (*PASSED_ON, "random_state")},
        "memory": [Interval(Integral, 1, None, closed="left"), None],
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        *,
        variant: str = "WPedRVFL",
        n_iter: int = 200,
        space: Mapping[str, Any] | list[dict[str, Any]] | None = None,
        cv: Any = 5,
        scoring: Any = None,
        refit: bool = True,
        ensemble_size: int = 1,
        n_layers: int = 10,
        activation: str = "relu",
        weight_from: str = "train",
        ensemble: str = "softmax",
        standardize: bool = True,
        class_weight: Mapping[Any, float] | str | None = None,
        memory: int | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.variant = variant
        self.n_iter = n_iter
        self.space = space
        self.cv = cv
        self.scoring = scoring
        self.refit = refit
        self.ensemble_size = ensemble_size
        self.n_layers = n_layers
        self.activation = activation
        self.weight_from = weight_from
        self.ensemble = ensemble
        self.standardize = standardize
        self.class_weight = class_weight
        self.memory = memory
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None, **params: Any) -> EDRVFLClassifierCV:
        """Search, and refit the best.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Numeric, finite rows.

        y : array-like of shape (n_samples,)
            Labels of at least two classes.

        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows, in the fits and in the validation scores.

        **params
            ``groups`` for the splitter; with metadata routing on, what splitter and scorer ask for.

        Returns
        -------
        self : EDRVFLClassifierCV
            The fitted estimator. A fit that fails leaves it as it was.
        """
        with unchanged_on_failure(self):
            return self._fit(X, y, sample_weight, params)

    def _fit(self, X: Any, y: Any, sample_weight: Any, params: dict[str, Any]) -> EDRVFLClassifierCV:
        given = {"estimator": self, "X": X, "y": y, "metadata": {"sample_weight": sample_weight}}
        X, y = self._validated(X, y)
        counted_classes = counted(X, y, sample_weight, self.class_weight)[1]
        if counted_classes.shape[0] < 2:
            raise ValueError(
                f"{type(self).__name__} needs at least two classes, but y holds only one class in the rows "
                "with positive weight."
            )
        s = None
        if sample_weight is not None:
            s = _check_sample_weight(sample_weight, X, dtype=X.dtype, ensure_non_negative=True)
        _, classes, codes, _, _ = counted(X, y, None, None)  # of all rows, as the splits count them
        state = check_random_state(self.random_state)
        if isinstance(self.space, list):
            configurations = [dict(configuration) for configuration in self.space]
        else:
            configurations = draw_configurations(self.n_iter, state, self.variant, self.space)
        if not configurations:
            raise ValueError("space is an empty list: there is no configuration to try.")
        seed = self.random_state
        if not isinstance(seed, Integral):  # one seed for the networks of the search and of the refit
            seed = int(state.randint(numpy.iinfo(numpy.int32).max))
        fixed = {name: getattr(self, name) for name in PASSED_ON} | dict(VARIANTS[self.variant])
        default = EDRVFLClassifier().get_params()
        named = {name: value for name, value in fixed.items() if value != default[name]}
        fixed["random_state"] = seed
        host_y = to_host(codes)
        splits = list(self._splits(host_y, params))
        whole = self._init_callback_context(max_subtasks=1 + self.refit).call_on_fit_task_begin(**given)
        kernel = self.scoring in (None, "accuracy", "neg_log_loss")
        problem = _Problem(
            X,
            codes,
            classes,
            s,
            fixed,
            self.scoring if kernel else self._scorer(),
            process_routing(self, "fit", **params).scorer.score if _routing_enabled() and params else {},
        )
        scores = self._scores(problem, splits, configurations, whole, given)
        self.n_splits_ = len(splits)
        self.classes_ = counted_classes
        self.cv_results_ = _results([{**named, **configuration} for configuration in configurations], scores)
        order = _best_first(self.cv_results_)
        self.best_index_ = order[0]
        self.best_params_ = self.cv_results_["params"][order[0]]
        self.best_score_ = float(self.cv_results_["mean_test_score"][order[0]])
        if self.refit:
            chosen: dict[int, int] = {}
            for row in order:  # each configuration once, at its best depth
                chosen.setdefault(row // scores.shape[-1], row)
                if len(chosen) == self.ensemble_size:
                    break
            rows = [self.cv_results_["params"][row] for row in chosen.values()]
            self.estimators_ = self._refitted(
                [EDRVFLClassifier(**{**fixed, **row}) for row in rows], whole, given
            )
            self.best_estimator_ = self.estimators_[0]
        whole.call_on_fit_task_end(**given)
        return self

    def _refitted(
        self, models: list[EDRVFLClassifier], whole: CallbackContext, given: dict[str, Any]
    ) -> list[EDRVFLClassifier]:
        refit = whole.subcontext(task_name="refit", max_subtasks=len(models))
        refit.call_on_fit_task_begin(**given)
        for model in models:
            task = refit.subcontext(task_name="network").call_on_fit_task_begin(**given)
            with task.propagate_callback_context(model):
                model.fit(given["X"], given["y"], given["metadata"]["sample_weight"])
            task.call_on_fit_task_end(**given)
        refit.call_on_fit_task_end(**given)
        return models

    def _splits(self, y: numpy.ndarray, params: dict[str, Any]) -> Iterator[Any]:
        splitter = check_cv(self.cv, y, classifier=True)
        if _routing_enabled():
            routed = process_routing(self, "fit", **params).splitter.split
        else:
            routed = {"groups": params["groups"]} if params.get("groups") is not None else {}
            if unknown := set(params) - {"groups"}:
                raise TypeError(
                    f"fit got {', '.join(sorted(unknown))}; only groups can be passed while scikit-learn's "
                    "metadata routing is off."
                )
        for train, test in splitter.split(numpy.zeros((len(y), 1)), y, **routed):
            yield numpy.asarray(train), numpy.asarray(test)

    def _scores(
        self,
        problem: _Problem,
        splits: list[Any],
        configurations: list[dict[str, Any]],
        whole: CallbackContext,
        given: dict[str, Any],
    ) -> numpy.ndarray:
        """Validation scores (configuration, split, depth)."""
        jobs = 1 if on_accelerator(problem.X) else effective_n_jobs(self.n_jobs)
        budget = _budget(self.memory, problem.X, jobs)
        if jobs > 1:  # no more processes than the budget has room for, each with one network of any kind
            jobs = max(1, min(jobs, budget // _bytes_alone(problem, configurations, splits)))
        # one process keeps the networks of a width together, which share their random layers
        pieces = _pieces(configurations, HIDDEN if jobs > 1 else ("n_hidden",))
        tasks = [(i, piece) for i in range(len(splits)) for piece in pieces]
        parts = (([configurations[j] for j in piece], *splits[i]) for i, piece in tasks)
        search = whole.subcontext(task_name="search", max_subtasks=len(tasks)).call_on_fit_task_begin(**given)
        found: list[numpy.ndarray] = []
        try:
            for values in Parallel(n_jobs=jobs, return_as="generator")(
                delayed(_score_piece)(problem, *part, budget // jobs) for part in parts
            ):
                found.append(values)
                part = search.subcontext(task_name="part").call_on_fit_task_begin(**given)
                part.call_on_fit_task_end(**given)
                self._print_part(found, tasks, len(splits))
        except KeyboardInterrupt as interrupt:
            interrupt.add_note(
                f"{type(self).__name__} was interrupted after {len(found)} of {len(tasks)} parts of its "
                "search; it is as it was before."
            )
            raise
        search.call_on_fit_task_end(**given)
        scores = numpy.empty((len(configurations), len(splits), found[0].shape[1]))
        for (i, piece), values in zip(tasks, found, strict=True):
            scores[piece, i] = values
        return scores

    def _print_part(self, found: list[numpy.ndarray], tasks: list[Any], n_splits: int) -> None:
        if self.verbose:
            done, total = len(found), len(tasks)
            split, piece = tasks[done - 1]
            print(
                f"[{type(self).__name__}] {done:{len(str(total))}d}/{total}: split {split + 1}/{n_splits}, "
                f"{len(piece)} configurations, best {found[-1].max():.4f}"
            )

    def _scorer(self) -> Any:
        return check_scoring(EDRVFLClassifier(), scoring=self.scoring)

    def get_metadata_routing(self) -> MetadataRouter:
        """What the splitter and the scorer ask for, for scikit-learn's metadata routing."""
        router = MetadataRouter(owner=self).add_self_request(self)
        router.add(
            splitter=check_cv(self.cv, classifier=True),
            method_mapping=MethodMapping().add(caller="fit", callee="split"),
        )
        return router.add(
            scorer=self._scorer(), method_mapping=MethodMapping().add(caller="fit", callee="score")
        )

    @property
    def _fitted_array(self) -> Array:
        return self.best_estimator_._fitted_array

    def _can_predict(self) -> bool:
        if not self.refit:
            raise AttributeError("predictions need refit=True; this search only filled cv_results_.")
        return True

    def _probabilities(self, X: Any, method: str) -> Array:
        X = self._checked(X, method)
        return sum(model._by_blocks(X, (), combine) for model in self.estimators_) / len(self.estimators_)


@dataclass(frozen=True, slots=True, eq=False)
class _Problem:
    """What all parts of a search have in common."""

    X: Array
    codes: Array  # of the labels, as places in classes
    classes: Array
    s: Array | None  # the rows' weights
    fixed: dict[str, Any]  # parameters that are not searched
    scorer: Any  # the name of a kernel, or a scikit-learn scorer
    routed: dict[str, Any]  # what the scorer asked for


def _budget(memory: int | None, X: Array, jobs: int) -> int:
    """Bytes that all processes together may hold."""
    if memory is not None:
        return memory * 2**20
    free = free_bytes(X)
    return DEFAULT_MEMORY * jobs if free is None else free // 2


def _bytes_alone(problem: _Problem, configurations: list[dict[str, Any]], splits: list[Any]) -> int:
    """What the largest network needs on the largest split."""
    X = problem.X
    everything = numpy.arange(X.shape[0])
    m, v = max(((everything[train].size, everything[test].size) for train, test in splits), key=sum)
    alone = (
        _stacked([[EDRVFLClassifier(**{**problem.fixed, **configuration})]], False)
        for configuration in configurations
    )
    k = problem.classes.shape[0]
    return max(bytes_needed(m, v, X.shape[1], k, settings, itemsize(X), False) for settings in alone)


def _pieces(configurations: list[dict[str, Any]], alike: Sequence[str]) -> list[list[int]]:
    """Indices of the configurations that one task scores: those that agree in some parameters."""
    pieces: dict[Any, list[int]] = {}
    for i, c in enumerate(configurations):
        pieces.setdefault(tuple(c.get(name) for name in alike), []).append(i)
    # the widest first, so that no process is left with a long task at the end
    return sorted(pieces.values(), key=lambda piece: -configurations[piece[0]].get("n_hidden", 0))


def _score_piece(
    problem: _Problem,
    configurations: list[dict[str, Any]],
    train: numpy.ndarray,
    test: numpy.ndarray,
    memory: int,
) -> numpy.ndarray:
    """Scores (configuration, depth) of one split."""
    X, codes, classes, s = problem.X, problem.codes, problem.classes, problem.s
    fixed, scorer = problem.fixed, problem.scorer
    xp = array_namespace(X)
    everything = numpy.arange(X.shape[0])  # splits may be masks, and indices may be negative
    train, test = everything[train], everything[test]
    if s is not None:
        train = train[to_host(s)[train] > 0]
    train, test = (from_numpy(rows, X, xp.int64) for rows in (train, test))
    X_train, X_test = xp.take(X, train, axis=0), xp.take(X, test, axis=0)
    present = xp.unique_inverse(xp.take(codes, train))
    if present.values.shape[0] < 2:
        raise ValueError("A training split holds only one class. Use stratified splits or fewer of them.")
    weights = None if s is None else xp.take(s, train)
    cost = None
    if fixed["class_weight"] is not None:
        host = None if weights is None else to_host(weights)
        labels = to_host(classes)[to_host(xp.take(codes, train))]
        cost = from_numpy(row_costs(fixed["class_weight"], labels, host), X)
    y_test = xp.take(codes, test)
    test_weights = None if s is None else xp.take(s, test)

    def metric(P: Array) -> numpy.ndarray:
        # a class absent from the training rows has probability 0
        places = present.values[:, None] == from_numpy(range(classes.shape[0]), codes)
        full = P @ xp.astype(places, P.dtype)
        if callable(scorer):
            return _called(scorer, full, X_test, y_test, classes, test_weights, problem.routed, test)
        kernel = _log_loss if scorer == "neg_log_loss" else _accuracy
        return to_host(kernel(full, y_test, test_weights))

    given = {name: value for name, value in fixed.items() if name not in ("class_weight", "random_state")}
    return score_configurations(
        configurations,
        X_train,
        present.inverse_indices,
        X_test,
        metric,
        n_classes=present.values.shape[0],
        random_state=fixed["random_state"],
        s=weights,
        cost=cost,
        memory=memory,
        **given,
    )


def _accuracy(P: Array, y: Array, weights: Array | None) -> Array:
    """Share of rows, by weight, whose most probable class is theirs: (..., v, k) -> (...)."""
    xp = array_namespace(P)
    right = xp.astype(xp.argmax(P, axis=-1) == y, P.dtype)
    return xp.mean(right, axis=-1) if weights is None else xp.sum(right * weights, axis=-1) / xp.sum(weights)


def _log_loss(P: Array, y: Array, weights: Array | None) -> Array:
    """Mean, by weight, of the log-probability of the true class."""
    xp = array_namespace(P)
    of_truth = xp.take_along_axis(P, xp.broadcast_to(y[:, None], (*P.shape[:-1], 1)), axis=-1)[..., 0]
    log = xp.log(xp.clip(of_truth, float(xp.finfo(P.dtype).eps), 1.0))
    return xp.mean(log, axis=-1) if weights is None else xp.sum(log * weights, axis=-1) / xp.sum(weights)


class _Answers(ClassifierMixin, BaseEstimator):
    """What a network says of some rows, in the form that scorers ask."""

    def __init__(self, classes: Array, P: Array) -> None:
        self.classes_ = classes
        self.P = P

    def predict_proba(self, _: Any) -> Array:
        return self.P

    def decision_function(self, _: Any) -> Array:
        return log_odds(self.P)

    def predict(self, _: Any) -> Array:
        return self.classes_[self.P.argmax(axis=-1)]


def _called(
    scorer: Any,
    P: Array,
    X: Array,
    y: Array,
    classes: Array,
    weights: Array | None,
    routed: dict[str, Any],
    test: Array,
) -> numpy.ndarray:
    """Any scikit-learn scorer, one call for each network and depth."""
    host, names = to_host(P), to_host(classes)
    labels, rows = names[to_host(y)], to_host(X)
    index = to_host(test)
    given = {name: numpy.asarray(value)[index] for name, value in routed.items()}
    if weights is not None and not given:
        given["sample_weight"] = to_host(weights)
    return numpy.array(
        [[scorer(_Answers(names, depth), rows, labels, **given) for depth in network] for network in host]
    )


def _results(configurations: list[dict[str, Any]], scores: numpy.ndarray) -> dict[str, Any]:
    """cv_results_ with a row for each configuration and depth."""
    depths = scores.shape[-1]
    params = [{**c, "n_layers": l + 1} for c in configurations for l in range(depths)]
    results: dict[str, Any] = {}
    for name in dict.fromkeys(itertools.chain.from_iterable(params)):
        values = [row.get(name) for row in params]
        results[f"param_{name}"] = numpy.ma.MaskedArray(values, mask=[v is None for v in values])
    results["params"] = params
    for i in range(scores.shape[1]):
        results[f"split{i}_test_score"] = scores[:, i].reshape(-1)
    results["mean_test_score"] = scores.mean(axis=1).reshape(-1)
    results["std_test_score"] = scores.std(axis=1).reshape(-1)
    rounded = numpy.round(results["mean_test_score"], TIE_DIGITS)
    results["rank_test_score"] = stats.rankdata(-rounded, method="min").astype(numpy.int32)
    return results


def _best_first(results: dict[str, Any]) -> list[int]:
    """Rows by rank; of equals the shallower, of those the first drawn."""
    depth = numpy.asarray(results["param_n_layers"])
    order = numpy.lexsort((numpy.arange(len(depth)), depth, results["rank_test_score"]))
    return [int(i) for i in order]
