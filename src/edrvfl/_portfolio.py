"""EDRVFLPortfolioClassifier: diverse networks and a kernel voter, chosen and weighed by leave-one-out."""

from __future__ import annotations

import dataclasses
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy
from joblib import effective_n_jobs
from scipy.linalg import LinAlgWarning
from sklearn.base import clone
from sklearn.callback import CallbackContext, CallbackSupportMixin
from sklearn.utils import check_random_state

from ._answers.calibrate import Calibration
from ._answers.follow import CALIBRATIONS
from ._answers.jury import Jury
from ._answers.pool import equal_kinds, keep_heavy, pool_weights, pooled
from ._arrays import (
    Array,
    array_namespace,
    converted,
    device,
    from_numpy,
    ignore_overflow,
    on_accelerator,
    row_blocks,
)
from ._encoder import TabularEncoder, learn_network_inputs
from ._inputs.inputs import Inputs
from ._inputs.judged import judge_some
from ._inputs.rows import Rows
from ._inputs.table import Columns
from ._members.race import Race
from ._members.voters import Data, Member, Progress, Voter, answer
from ._roster import MEMBERS, check_member
from ._search.plan import encoder_key
from ._shell import LARGEST_SEED, ClassifierShell, unchanged_on_failure
from ._sklearn import Count, Interval, StrOptions, _fit_context


@dataclass(frozen=True, slots=True, eq=False)
class Portfolio:
    """A fitted portfolio: everything that decides an answer."""

    columns: Columns | None  # how a frame becomes numbers and codes
    classes: Array  # (k,), labels as they came
    voters: tuple[Voter, ...]
    weights: tuple[float, ...]  # of the voters; they add up to 1
    calibration: Calibration | None
    like: Array  # no rows; tells library, device and precision

    def __sklearn_array_api_convert__(self, converter: Callable[[Array], Array]) -> Portfolio:
        """Bring the arrays to another library or device. scikit-learn's mover of estimators calls this."""
        moved: Portfolio = converted(self, converter)
        # the categories stay in NumPy: frames are read with them
        voters = tuple(dataclasses.replace(voter, columns=self.columns) for voter in moved.voters)
        return dataclasses.replace(moved, columns=self.columns, voters=voters)


class EDRVFLPortfolioClassifier(CallbackSupportMixin, ClassifierShell):
    """Diverse random networks and a kernel voter, weighed and calibrated by exact leave-one-out.

    It needs no tuning and no validation rows, takes frames as they come, with categories, text and missing
    values, and answers with calibrated probabilities.

    Its members are settings of :class:`EDRVFLClassifier` and :class:`LaplaceRidgeClassifier` that differ in
    how they see the inputs, in activation and in sparsity. Every network grows one layer, and those of the
    smallest leave-one-out log-loss grow on. Leave-one-out also chooses each member's penalties and depth, its
    weight in the common answer, and the calibration of that answer.

    Parameters
    ----------
    members : list of (str, estimator) or None, default=None
        Names and settings of the members. None is a table that was found on validation rows of 24 datasets;
        ``EDRVFLPortfolioClassifier.default_members()`` returns it as a list to change. The portfolio decides
        seeds, class weights, votes of layers, calibration and which columns hold categories; other values
        of these than the defaults in a member are an error.

    finalists : int or None, default=3
        How many networks grow beyond their first layer: those of the smallest leave-one-out log-loss. None
        lets all of them grow.

    weights : {"loo", "equal"}, default="loo"
        How much members count. "equal": the networks together count as much as the kernel voters together.
        "loo" minimises the log-loss of the common leave-one-out answer, pulled to these equal weights, and
        drops members of negligible weight.

    calibration : {"loo", "temperature", "matrix"} or None, default="loo"
        How the common answer becomes a probability, as for :class:`EDRVFLClassifier`.

    categorical_features : "from_dtype", None, or array-like of str, int or bool, default="from_dtype"
        Which columns hold categories, as for :class:`TabularEncoder`.

    class_weight : dict, "balanced" or None, default=None
        Weights of the classes' errors, as for :class:`EDRVFLClassifier`.

    max_seconds : float or None, default=None
        After so many seconds no new work begins. What was fitted until then is the model, and one layer of
        one network is fitted whatever the time. Such a model depends on the speed of the machine, so it is
        not reproducible.

    n_jobs : int or None, default=None
        Processes over the members, as in joblib, which shares the BLAS threads among them. On a GPU, and
        where there is too little to do, everything stays in one process.

    random_state : int, RandomState instance or None, default=None
        Seed of the members.

    verbose : int, default=0
        1 prints a line for each piece of work. scikit-learn's callbacks are the other way to follow a fit:
        ``EDRVFLPortfolioClassifier().set_callbacks(sklearn.callback.ProgressBar())``.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        The labels, as they were given to `fit`.

    n_features_in_ : int
        Number of columns seen in `fit`.

    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns, when `X` has string names.

    members_ : dict of lists
        A table with a row for each member that was fitted, for instance for ``pandas.DataFrame``: ``member``
        (its name), ``weight`` (0 for members that were dropped), ``loo_accuracy`` and ``loo_log_loss`` at
        its best depth, ``n_layers`` and ``n_hidden`` (None for the kernel), ``seconds``, and ``settings``, an
        estimator that is not fitted.

    loo_accuracy_ : float
        Leave-one-out accuracy of the common answer.

    loo_log_loss_ : float
        Leave-one-out log-loss of the common answer after calibration.

    portfolio_ : Portfolio
        Everything that decides an answer: the members that are kept, their weights, and the calibration.

    See Also
    --------
    EDRVFLClassifier : A single network, the paper's.
    LaplaceRidgeClassifier : The kernel voter alone.

    Notes
    -----
    Leave-one-out scores are exact given the features. Pruning, weighting and input scaling have seen the
    labels, so on small data `loo_log_loss_` is a little too good. Of more than 10,000 rows a network's
    training predictions are nearly its leave-one-out predictions, and decide what it weighs.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.model_selection import train_test_split
    >>> from edrvfl import EDRVFLPortfolioClassifier
    >>> X, y = load_wine(return_X_y=True)
    >>> X_train, X_test, y_train, y_test = train_test_split(X, y, stratify=y, random_state=0)
    >>> model = EDRVFLPortfolioClassifier(random_state=0).fit(X_train, y_train)
    >>> model.score(X_test, y_test) > 0.95
    True
    >>> round(sum(model.members_["weight"]), 6)
    1.0
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "members": [list, tuple, None],
        "finalists": [Count(1), None],
        "weights": [StrOptions({"loo", "equal"})],
        "calibration": [StrOptions(set(CALIBRATIONS)), None],
        "categorical_features": ["array-like", StrOptions({"from_dtype"}), None],
        "class_weight": [dict, StrOptions({"balanced"}), None],
        "max_seconds": [Interval(Real, 0, None, closed="neither"), None],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        *,
        members: Sequence[tuple[str, Any]] | None = None,
        finalists: int | None = 3,
        weights: str = "loo",
        calibration: str | None = "loo",
        categorical_features: Any = "from_dtype",
        class_weight: Mapping[Any, float] | str | None = None,
        max_seconds: float | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.members = members
        self.finalists = finalists
        self.weights = weights
        self.calibration = calibration
        self.categorical_features = categorical_features
        self.class_weight = class_weight
        self.max_seconds = max_seconds
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @staticmethod
    def default_members() -> list[tuple[str, Any]]:
        """Return the table of members: names, and estimators that are not fitted."""
        return [(name, clone(estimator)) for name, estimator in MEMBERS.items()]

    def _validate_params(self) -> None:
        super()._validate_params()
        for name, estimator in self._named_members():
            try:
                estimator._validate_params()
            except ValueError as error:
                raise type(error)(f"Member {name!r}: {error}") from error

    def _named_members(self) -> list[tuple[str, Any]]:
        """Return the members as given, after a look at what the portfolio decides itself."""
        if self.members is None:
            return list(MEMBERS.items())
        if not self.members:
            raise ValueError(
                "members must hold at least one (name, estimator); None takes the default table."
            )
        for entry in self.members:
            if not (isinstance(entry, tuple) and len(entry) == 2 and isinstance(entry[0], str)):
                raise ValueError(
                    f"members must be a list of (name, estimator), but one of them is {entry!r}."
                )
            check_member(*entry)
        names = [name for name, _ in self.members]
        if len(set(names)) < len(names):
            raise ValueError(f"The names of members must differ, got {', '.join(names)}.")
        return list(self.members)

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> EDRVFLPortfolioClassifier:
        """Fit the members, weigh and calibrate them.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training rows: a NumPy array, a pandas, polars or pyarrow table, or, with scikit-learn's array API
            dispatch on, a torch or CuPy array. Columns may hold numbers, booleans, categories or text, and
            missing values.

        y : array-like of shape (n_samples,)
            Labels of at least two classes: strings, integers or booleans.

        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows, not negative and not all zero. None gives every row the weight 1.

        Returns
        -------
        self : EDRVFLPortfolioClassifier
            The fitted estimator. A fit that fails leaves it as it was.
        """
        with unchanged_on_failure(self):
            return self._fit(X, y, sample_weight)

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> EDRVFLPortfolioClassifier:
        deadline = float("inf") if self.max_seconds is None else time.time() + self.max_seconds
        given = {"estimator": self, "X": X, "y": y, "metadata": {"sample_weight": sample_weight}}
        door = TabularEncoder(categorical_features=self.categorical_features)
        table, labels, columns = self._check_training_rows(X, y, door)
        rows = self._prepare_rows(table, labels, sample_weight)
        seed = int(check_random_state(self.random_state).randint(LARGEST_SEED))
        members = list(self._prepared_members(rows, columns, seed))
        data = Data(rows, columns, judge_some(rows.targets))
        n_jobs = 1 if on_accelerator(rows.X) else effective_n_jobs(self.n_jobs)
        race = Race(data, members, n_jobs, deadline)
        n_pieces = race.n_pieces(self.finalists)
        task = self._init_callback_context(max_subtasks=n_pieces).call_on_fit_task_begin(**given)
        fitted = race.run(self.finalists, lambda member, done: self._report(member, done, task, given))
        self._keep(data, members, race.progress, fitted)
        self._warn_of_fallbacks(members, race.progress)
        task.call_on_fit_task_end(**given, reconstruction_attributes=dict)
        return self

    def _prepared_members(self, rows: Rows, columns: Columns | None, seed: int) -> Iterator[Member]:
        """Yield the members with their inputs, which members of the same encoder and scaling share."""
        known: dict[Any, Inputs] = {}
        for i, (name, estimator) in enumerate(self._named_members()):
            key = encoder_key(estimator.encoder), estimator.input_scaling
            if key not in known:
                with ignore_overflow():
                    known[key] = learn_network_inputs(rows, estimator, columns, seed)
            child = numpy.random.SeedSequence(seed, spawn_key=(i,)).generate_state(1)
            yield Member(name, estimator, known[key], int(child[0]) % LARGEST_SEED)

    def _report(self, member: Member, done: Progress, task: CallbackContext, given: dict[str, Any]) -> bool:
        """Print a line and ask the callbacks whether to stop."""
        if self.verbose:
            layers = f", {len(done.stages)} layer(s)" if member.is_network else ""
            print(
                f"[{type(self).__name__}] {member.name}{layers}: leave-one-out accuracy "
                f"{done.chosen.accuracy:.4f}, log-loss {done.chosen.log_loss:.4f}, {done.seconds:.1f} s"
            )
        piece = task.subcontext(task_name="member").call_on_fit_task_begin(**given)
        return bool(piece.call_on_fit_task_end(**given))

    def _keep(
        self, data: Data, members: Sequence[Member], progress: Mapping[int, Progress], fitted: list[int]
    ) -> None:
        """Weigh the members, calibrate their common answer, and store what is kept."""
        rows = data.rows
        jury = Jury.of(rows.targets, rows.weights, data.judged)
        answers = [progress[i].chosen.P for i in fitted]
        weights = equal_kinds([members[i].is_network for i in fitted])
        if self.weights == "loo":
            weights = keep_heavy(pool_weights(answers, jury, weights))
        P = pooled(answers, weights.tolist())
        calibration = jury.calibration(P, CALIBRATIONS[self.calibration or "temperature"])
        P = calibration(P)
        self.loo_accuracy_, self.loo_log_loss_ = jury.accuracy(P), jury.log_loss(P)
        heavy = [(progress[i].kept, float(w)) for i, w in zip(fitted, weights, strict=True) if w > 0]
        if self.calibration is not None:
            calibration = converted(calibration, lambda array: from_numpy(array, rows.X))
        self.portfolio_ = Portfolio(
            data.columns,
            rows.classes,
            tuple(voter for voter, _ in heavy),
            tuple(weight for _, weight in heavy),
            calibration if self.calibration is not None else None,
            array_namespace(rows.X).empty((0,), dtype=rows.X.dtype, device=device(rows.X)),
        )
        self.members_ = _table(members, progress, dict(zip(fitted, weights.tolist(), strict=True)))

    def _warn_of_fallbacks(self, members: Sequence[Member], progress: Mapping[int, Progress]) -> None:
        fell = [members[i].name for i in sorted(progress) if progress[i].fell_back]
        if fell:
            warnings.warn(
                f"The system of member(s) {', '.join(fell)} is numerically singular with the given "
                "regularization; a larger one or the least-norm solution was taken. Set "
                'regularization="loo", or bring the weights closer together.',
                LinAlgWarning,
                stacklevel=5,
            )

    @property
    def classes_(self) -> Array:
        """The labels, as they came in `fit`."""
        return self.portfolio_.classes

    @property
    def _fitted_array(self) -> Array:
        return self.portfolio_.like

    @property
    def _columns(self) -> Columns | None:
        return self.portfolio_.columns

    def _probabilities(self, X: Any, method: str) -> Array:
        X = self._check_new_rows(X, method)
        portfolio = self.portfolio_
        k, calibration = portfolio.classes.shape[0], portfolio.calibration
        P = array_namespace(X).empty((X.shape[0], k), dtype=X.dtype, device=device(X))
        # the answers of all voters are held for a block of rows
        for rows in row_blocks(X, X.shape[0], X.shape[1] + (len(portfolio.voters) + 6) * k):
            pool = pooled([answer(voter, X[rows, :]) for voter in portfolio.voters], portfolio.weights)
            P[rows, :] = pool if calibration is None else calibration(pool)
        return P

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.categorical = tags.input_tags.string = True
        return tags


def _table(
    members: Sequence[Member], progress: Mapping[int, Progress], weights: Mapping[int, float]
) -> dict[str, list[Any]]:
    """Return a table of the members that were fitted."""
    table: dict[str, list[Any]] = {}
    for i in sorted(progress):
        member, done = members[i], progress[i]
        row = {
            "member": member.name,
            "weight": weights.get(i, 0.0),
            "loo_accuracy": done.chosen.accuracy,
            "loo_log_loss": done.chosen.log_loss,
            "n_layers": done.best if member.is_network else None,
            "n_hidden": done.voter.n_hidden if member.is_network else None,
            "seconds": done.seconds,
            "settings": clone(member.estimator),
        }
        for name, value in row.items():
            table.setdefault(name, []).append(value)
    return table
