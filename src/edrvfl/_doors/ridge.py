"""The fit of the two kernel ridges: choose kernel and inputs, fit, and tell how good it is."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from numbers import Real
from typing import Any

from scipy.linalg import LinAlgWarning

from .._fitting.inputs import best_kernel, learn_network_inputs
from .._fitting.kernel import fit_kernel_model
from .._fitting.settings import kernel_settings
from .._models.kernel import KernelModel
from .._models.memory import Memory
from .._ridge.kernels import KERNELS
from .._seam.sklearn import Count, Interval, StrOptions
from .afterwards import Remembers
from .base import COMMON
from .encoder import ENCODERS, TabularEncoder

# What the parameters that both estimators have may be.
CONSTRAINTS: Mapping[str, list[Any]] = {
    **COMMON,
    "bandwidth": [Interval(Real, 0, None, closed="neither"), StrOptions({"loo"})],
    "regularization": [Interval(Real, 0, None, closed="neither"), StrOptions({"loo"})],
    "n_landmarks": [Count(1), StrOptions({"auto"}), None],
    "remember": [StrOptions({"rows"}), None],
    "kernel": [StrOptions({"loo", *KERNELS})],
    "encoder": [StrOptions({"loo", *ENCODERS}), TabularEncoder, None],
    "input_scaling": [StrOptions({"gradient", "loo"}), None],
}


class KernelRidge(Remembers):
    """A ridge with a kernel."""

    model_: KernelModel
    _record = "model_"

    def _fit(self, X: Any, y: Any, sample_weight: Any, groups: Any) -> None:
        """Fit a kernel model to rows in memory or in blocks, and store it with what leave-one-out says."""
        with self._read(X, y, sample_weight, groups) as reading:
            data = reading.data
            settings, proof = best_kernel(data, kernel_settings(self), reading.seed)
            learnt = learn_network_inputs(data, settings.inputs, reading.seed, proof)
            done = fit_kernel_model(data, settings, learnt, reading.seed)
            self.model_ = done.model
            self._keep_evidence(reading, [done.solved], done.stage.P)
        voter, stage, figures = done.model.voter, done.stage, self._figures
        self.bandwidth_, self.regularization_ = voter.bandwidth, voter.lam
        self.n_landmarks_ = int(voter.landmarks.shape[0])
        self.proven_ = {"input_scaling": learnt.scaling} if self.input_scaling == "loo" else {}
        for name, figure in figures.of_answer(stage.score, stage.loss).items():
            setattr(self, name, figure)
        if self.verbose:
            print(
                f"[{type(self).__name__}] {voter.kernel} kernel, bandwidth {voter.bandwidth:g}, "
                f"regularization {voter.lam:g}, {self.n_landmarks_} landmarks: "
                f"{figures.words(stage.score, stage.loss)}"
            )
        if done.fell_back:
            warnings.warn(
                f"The kernel matrix is numerically singular with regularization={self.regularization}; "
                f"{voter.lam:.3g} was taken instead. Increase regularization.",
                LinAlgWarning,
                stacklevel=4,
            )

    def _change(self, model: Any, memory: Memory) -> None:
        super()._change(model, memory)
        self.n_landmarks_ = int(model.voter.landmarks.shape[0])

    @property
    def kernel_(self) -> str:
        """The kernel, as given or as chosen."""
        return self.model_.voter.kernel
