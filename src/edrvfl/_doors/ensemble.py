"""What the two portfolios share: a fit that races members, and weighs them by leave-one-out."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from numbers import Integral, Real
from typing import Any

import numpy
from joblib import effective_n_jobs
from scipy.linalg import LinAlgWarning
from sklearn.base import clone
from sklearn.callback import CallbackContext, CallbackSupportMixin

from .._fitting.history import Figures
from .._fitting.race import Race
from .._fitting.voters import Data, Member, Progress
from .._inputs.inputs import Inputs
from .._inputs.judged import judge_some
from .._inputs.rows import Rows
from .._inputs.table import Columns
from .._loo.follow import CALIBRATIONS
from .._loo.jury import jury_of
from .._loo.pool import equal_kinds, keep_heavy, pool_weights
from .._models.portfolio import Portfolio
from .._seam.arrays import (
    Array,
    array_namespace,
    converted,
    device,
    from_numpy,
    ignore_overflow,
    on_accelerator,
)
from .._seam.sklearn import Count, Interval, StrOptions
from .._search.plan import encoder_key
from .base import LARGEST_SEED
from .coverage import COMMON, CoveringShell, Evidence
from .encoder import TabularEncoder, learn_network_inputs
from .members import check_member

# What the parameters that both portfolios have may be.
CONSTRAINTS: Mapping[str, list[Any]] = {
    **COMMON,
    "members": [list, tuple, None],
    "finalists": [Count(1), None],
    "weights": [StrOptions({"loo", "equal"})],
    "categorical_features": ["array-like", StrOptions({"from_dtype"}), None],
    "max_seconds": [Interval(Real, 0, None, closed="neither"), None],
    "n_jobs": [Integral, None],
}


class PortfolioEstimator(CallbackSupportMixin, CoveringShell):
    """An estimator that is a portfolio. Subclasses name parameters, default members and figures."""

    _figures: Figures
    _table: Mapping[str, Any]  # the default members
    _kinds: tuple[type[Any], ...]  # what a member may be
    _pool: Any  # (answers, weights) -> the common answer, a static method

    @classmethod
    def default_members(cls) -> list[tuple[str, Any]]:
        """Return the table of members: names, and estimators that are not fitted."""
        return [(name, clone(estimator)) for name, estimator in cls._table.items()]

    @property
    def _encodes(self) -> bool:
        return True

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
            return list(self._table.items())
        if not self.members:
            raise ValueError(
                "members must hold at least one (name, estimator); None takes the default table."
            )
        for entry in self.members:
            if not (isinstance(entry, tuple) and len(entry) == 2 and isinstance(entry[0], str)):
                raise ValueError(
                    f"members must be a list of (name, estimator), but one of them is {entry!r}."
                )
            check_member(*entry, self._kinds)
        names = [name for name, _ in self.members]
        if len(set(names)) < len(names):
            raise ValueError(f"The names of members must differ, got {', '.join(names)}.")
        return list(self.members)

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> None:
        deadline = float("inf") if self.max_seconds is None else time.time() + self.max_seconds
        given = {"estimator": self, "X": X, "y": y, "metadata": {"sample_weight": sample_weight}}
        door = TabularEncoder(categorical_features=self.categorical_features)
        table, y, columns = self._check_training_rows(X, y, door)
        seed = self._draw_seed()
        rows, held = self._divide_rows(table, y, sample_weight, seed)
        members = list(self._prepared_members(rows, columns, seed))
        data = Data(rows, columns, judge_some(rows.targets))
        n_jobs = 1 if on_accelerator(rows.X) else effective_n_jobs(self.n_jobs)
        race = Race(data, members, n_jobs, deadline)
        n_pieces = race.n_pieces(self.finalists)
        task = self._init_callback_context(max_subtasks=n_pieces).call_on_fit_task_begin(**given)
        fitted = race.run(self.finalists, lambda member, done: self._report(member, done, task, given))
        P = self._keep(data, members, race.progress, fitted)
        self._learn_coverage(Evidence(rows, columns, data.judged, P, held, seed))
        self._warn_of_fallbacks(members, race.progress)
        task.call_on_fit_task_end(**given, reconstruction_attributes=dict)

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
                f"[{type(self).__name__}] {member.name}{layers}: "
                f"{self._figures.words(done.chosen.score, done.chosen.loss)}, {done.seconds:.1f} s"
            )
        piece = task.subcontext(task_name="member").call_on_fit_task_begin(**given)
        return bool(piece.call_on_fit_task_end(**given))

    def _keep(
        self, data: Data, members: Sequence[Member], progress: Mapping[int, Progress], fitted: list[int]
    ) -> numpy.ndarray:
        """Weigh the members, calibrate their common answer, and store what is kept.

        Return the leave-one-out answers of the judged rows.
        """
        rows = data.rows
        jury = jury_of(rows.targets, rows.weights, data.judged)
        answers = [progress[i].chosen.P for i in fitted]
        weights = equal_kinds([members[i].is_network for i in fitted])
        if self.weights == "loo":
            weights = keep_heavy(pool_weights(answers, jury, weights))
        P = self._pool(answers, weights.tolist())
        calibration = jury.calibration(P, CALIBRATIONS[self.calibration or "temperature"])
        calibrated = P if calibration is None else calibration(P)
        figures = jury.score(calibrated), jury.loss(calibrated)
        for name, figure in self._figures.of_answer(*figures).items():
            setattr(self, name, figure)
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
        self.members_ = self._members(members, progress, dict(zip(fitted, weights.tolist(), strict=True)))
        return P if self.calibration is None else calibrated

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
    def _fitted_array(self) -> Array:
        return self.portfolio_.like

    @property
    def _columns(self) -> Columns | None:
        return self.portfolio_.columns

    def _answer(self, X: Array) -> Array:
        return self.portfolio_.answer(X)

    def _members(
        self, members: Sequence[Member], progress: Mapping[int, Progress], weights: Mapping[int, float]
    ) -> dict[str, list[Any]]:
        """Return a table of the members that were fitted."""
        table: dict[str, list[Any]] = {}
        for i in sorted(progress):
            member, done = members[i], progress[i]
            figures = self._figures.of_answer(done.chosen.score, done.chosen.loss)
            row = {
                "member": member.name,
                "weight": weights.get(i, 0.0),
                **{name.removesuffix("_"): figure for name, figure in figures.items()},
                "n_layers": done.best if member.is_network else None,
                "n_hidden": done.voter.n_hidden if member.is_network else None,
                "seconds": done.seconds,
                "settings": clone(member.estimator),
            }
            for name, value in row.items():
                table.setdefault(name, []).append(value)
        return table
