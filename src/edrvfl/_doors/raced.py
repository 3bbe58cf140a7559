"""The fit of the two portfolios: race the members, weigh them, and tell after each piece how good it is."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping, Sequence
from functools import partial
from numbers import Integral, Real
from typing import Any

from joblib import effective_n_jobs
from scipy.linalg import LinAlgWarning
from sklearn.base import clone
from sklearn.callback import CallbackContext, CallbackSupportMixin

from .._fitting.data import InMemory
from .._fitting.portfolio import prepare_members, weigh_members
from .._fitting.race import Member, Progress, Race
from .._fitting.settings import EFFORTS, guest_settings, voter_settings
from .._models.portfolio import Portfolio
from .._seam.arrays import on_accelerator
from .._seam.sklearn import Count, Interval, StrOptions
from .afterwards import Remembers
from .base import COMMON
from .members import check_member, members_of, refuse_to_remember
from .telling import Bar, Tasks

# What the parameters that both portfolios have may be.
CONSTRAINTS: Mapping[str, list[Any]] = {
    **COMMON,
    "members": [list, tuple, None],
    "effort": [StrOptions(set(EFFORTS))],
    "finalists": [Count(1), None],
    "weights": [StrOptions({"loo", "equal"})],
    "categorical_features": ["array-like", StrOptions({"from_dtype"}), None],
    "text_features": ["array-like", StrOptions({"from_dtype"}), None],
    "max_seconds": [Interval(Real, 0, None, closed="neither"), None],
    "n_jobs": [Integral, None],
    "verbose": ["verbose", StrOptions({"auto"})],
}


def named_members(estimator: Any) -> dict[str, Any]:
    """Return the members as given, after a look at what the portfolio decides itself."""
    members = estimator.members
    if members is None:
        return dict(estimator.default_members(effort=estimator.effort))
    if not members:
        raise ValueError("members must hold at least one (name, estimator); None takes the default table.")
    for entry in members:
        if not (isinstance(entry, tuple) and len(entry) == 2 and isinstance(entry[0], str)):
            raise ValueError(f"members must be a list of (name, estimator), but one of them is {entry!r}.")
        check_member(*entry, estimator._kinds, estimator._classifies)
    names = [name for name, _ in members]
    if len(set(names)) < len(names):
        raise ValueError(f"The names of members must differ, got {', '.join(names)}.")
    return dict(members)


class Raced(CallbackSupportMixin, Remembers):
    """A portfolio: its members race, and it keeps the model that they make together."""

    _encodes = True
    _table: Mapping[str, Any]  # the members by default
    _trees: Mapping[str, Any]  # the guests that may be added
    _kinds: tuple[type[Any], ...]  # of the members that are no guests
    portfolio_: Portfolio
    _record = "portfolio_"

    @classmethod
    def default_members(cls, trees: bool = False, effort: str = "usual") -> list[tuple[str, Any]]:
        """Return the table of members: names, and estimators that are not fitted.

        Parameters
        ----------
        trees : bool, default=False
            Whether scikit-learn's extra trees and histogram-based gradient boosting are members too. The
            second takes one output.

        effort : {"quick", "usual"}, default="usual"
            Whose table it is.

        Returns
        -------
        members : list of (str, estimator)
            A list to change, for the parameter `members`.
        """
        table = members_of(cls._table, EFFORTS[effort])
        return [
            (name, clone(estimator)) for name, estimator in {**table, **(cls._trees if trees else {})}.items()
        ]

    def _validate_params(self) -> None:
        super()._validate_params()
        for name, member in named_members(self).items():
            try:
                if hasattr(member, "_parameter_constraints"):  # as all have that are not from elsewhere
                    member._validate_params()
            except ValueError as error:
                raise type(error)(f"Member {name!r}: {error}") from error

    def _fit(self, X: Any, y: Any, sample_weight: Any, groups: Any) -> None:
        limit = self.max_seconds
        deadline = float("inf") if limit is None else time.time() + limit
        tasks = Tasks(self, X, y, sample_weight)
        heard = tasks.begin_reading(None)
        with Bar.of(self) as bar, self._read(X, y, sample_weight, groups, heard) as reading:
            data, given = reading.data, named_members(self)
            refuse_to_remember(self.remember, given, self._kinds)
            settings = {
                name: (voter_settings if isinstance(member, self._kinds) else guest_settings)(member)
                for name, member in given.items()
            }
            bar.expect(2 * len(settings))
            members = prepare_members(data, settings, reading.seed, EFFORTS[self.effort], bar.advance)
            bar.expect(len(members))
            # rows in parts are read by one process, and a GPU is one
            alone = on_accelerator(data.rows.X) or not isinstance(data, InMemory)
            race = Race(data, members, 1 if alone else effective_n_jobs(self.n_jobs), deadline)
            task = tasks.begin(race.n_pieces(self.finalists))
            tasks.end_blocks()
            report = partial(_report, self, task, tasks.given, bar)
            progress = {i: race.progress[i] for i in race.run(self.finalists, report)}
            weighed = weigh_members(
                data, members, progress, self.weights == "loo", getattr(self, "calibration", None)
            )
            self.portfolio_ = weighed.model
            for name, figure in self._figures.of_answer(weighed.score, weighed.loss).items():
                setattr(self, name, figure)
            self.members_ = _table(self, given, members, race.progress, weighed.weights)
            self._keep_evidence(reading, weighed.solved, weighed.P)
        _warn_of_fallbacks(members, race.progress)
        tasks.end(reconstruction_attributes=dict)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        members = self.members if isinstance(self.members, (list, tuple)) else ()
        given = [entry[-1] for entry in members if isinstance(entry, tuple) and entry]
        # guests take NumPy alone
        tags.array_api_support = all(isinstance(member, Remembers) for member in given)
        return tags


def _report(
    estimator: Any, task: CallbackContext, given: dict[str, Any], bar: Bar, member: Member, done: Progress
) -> bool:
    """Print a line or move the bar, and ask the callbacks whether to stop."""
    bar.advance()
    if estimator.verbose not in (0, "auto"):
        n = len(done.stages)
        layers = f", {n} {'layer' if n == 1 else 'layers'}" if member.settings.grows else ""
        print(
            f"[{type(estimator).__name__}] {member.name}{layers}: "
            f"{estimator._figures.words(done.chosen.score, done.chosen.loss)}, {done.seconds:.1f} s"
        )
    piece = task.subcontext(task_name="member").call_on_fit_task_begin(**given)
    return bool(piece.call_on_fit_task_end(**given))


def _table(
    estimator: Any,
    given: Mapping[str, Any],
    members: Sequence[Member],
    progress: Mapping[int, Progress],
    weights: Mapping[int, float],
) -> dict[str, list[Any]]:
    """Return a table of the members that were fitted, of those that were given."""
    table: dict[str, list[Any]] = {}
    for i in sorted(progress):
        member, done = members[i], progress[i]
        network = None if done.growing is None else done.growing.network
        fitted = member.settings if done.growing is None else done.growing.settings
        real = fitted.as_fitted(len(done.stages), member.learnt.scaling)
        row = {
            "member": member.name,
            "weight": weights.get(i, 0.0),
            **{
                name.removesuffix("_"): figure
                for name, figure in estimator._figures.of_answer(done.chosen.score, done.chosen.loss).items()
            },
            "n_layers": None if network is None else done.best,
            "n_hidden": None if network is None else network.n_hidden,
            "seconds": done.seconds,
            "settings": clone(given[member.name] if done.guest is None else done.guest).set_params(**real),
        }
        for name, value in row.items():
            table.setdefault(name, []).append(value)
    return table


def _warn_of_fallbacks(members: Sequence[Member], progress: Mapping[int, Progress]) -> None:
    fell = [members[i].name for i in sorted(progress) if progress[i].fell_back]
    if fell:
        warnings.warn(
            f"The system of {'members' if len(fell) > 1 else 'member'} {', '.join(fell)} is numerically "
            "singular with the given regularization; a larger one or the least-norm solution was taken. Set "
            'regularization="loo", or bring the weights closer together.',
            LinAlgWarning,
            stacklevel=5,
        )
