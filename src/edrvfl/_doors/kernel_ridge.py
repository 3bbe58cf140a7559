"""What LaplaceRidgeClassifier and LaplaceRidgeRegressor share: their fit."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from numbers import Real
from typing import Any

from scipy.linalg import LinAlgWarning

from .._fitting.history import Figures
from .._fitting.voters import Data, Member, fit_voter
from .._inputs.judged import judge_some
from .._inputs.table import Columns
from .._seam.arrays import Array, ignore_overflow
from .._seam.sklearn import Count, Interval, StrOptions
from .coverage import COMMON, CoveringShell, Evidence
from .encoder import ENCODERS, TabularEncoder, as_encoder, learn_network_inputs

# What the parameters that both estimators have may be.
CONSTRAINTS: Mapping[str, list[Any]] = {
    **COMMON,
    "bandwidth": [Interval(Real, 0, None, closed="neither"), StrOptions({"loo"})],
    "regularization": [Interval(Real, 0, None, closed="neither"), StrOptions({"loo"})],
    "n_landmarks": [Count(1), StrOptions({"auto"}), None],
    "encoder": [StrOptions(set(ENCODERS)), TabularEncoder, None],
    "input_scaling": [StrOptions({"gradient"}), None],
}


class LaplaceRidge(CoveringShell):
    """An estimator whose fit finds the coefficients of a kernel. Subclasses name parameters and figures."""

    _figures: Figures

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> None:
        """Fit the voter, and store it with what leave-one-out says about it."""
        table, y, columns = self._check_training_rows(X, y, as_encoder(self.encoder))
        seed = self._draw_seed()
        rows, held = self._divide_rows(table, y, sample_weight, seed)
        with ignore_overflow():
            inputs = learn_network_inputs(rows, self, columns, seed)
        data = Data(rows, columns, judge_some(rows.targets))
        done = fit_voter(data, Member("kernel", self, inputs, seed), self.calibration)
        self.model_, voter, stage = done.voter, done.voter.voter, done.chosen
        self.bandwidth_, self.regularization_ = voter.bandwidth, voter.lam
        self.n_landmarks_ = int(voter.landmarks.shape[0])
        for name, figure in self._figures.of_answer(stage.score, stage.loss).items():
            setattr(self, name, figure)
        self._learn_coverage(Evidence(rows, columns, data.judged, stage.P, held, seed))
        if self.verbose:
            print(
                f"[{type(self).__name__}] bandwidth {voter.bandwidth:g}, regularization {voter.lam:g}, "
                f"{self.n_landmarks_} landmarks: {self._figures.words(stage.score, stage.loss)}"
            )
        if done.fell_back:
            warnings.warn(
                f"The kernel matrix is numerically singular with regularization={self.regularization}; "
                f"{voter.lam:.3g} was taken instead. Increase regularization.",
                LinAlgWarning,
                stacklevel=4,
            )

    @property
    def _fitted_array(self) -> Array:
        return self.model_.voter.prior

    @property
    def _columns(self) -> Columns | None:
        return self.model_.columns

    def _answer(self, X: Array) -> Array:
        return self.model_.answer(X)
