"""A fitted kernel model: a kernel ridge, and what it answers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated

from scipy.special import softmax

from .._inputs.inputs import Inputs
from .._inputs.table import Columns
from .._loo.calibrate import Calibration
from .._ridge.kernels import KERNELS, width_of
from .._seam.arrays import Array, array_namespace, device, ignore_overflow, row_blocks
from .._seam.fields import Between, Labels, OneOf, floats
from .._seam.threads import suitable_threads
from .model import Record


@dataclass(frozen=True, slots=True, eq=False)
class KernelVoter:
    """A fitted kernel ridge: score(x) = prior + scale * sum_s alpha_s K(x, z_s)."""

    inputs: Inputs  # how a row of X becomes encoded columns
    # encoded rows, in float32 if there were many training rows
    landmarks: Annotated[Array, floats("landmarks", "width", own=True)]
    alpha: Annotated[Array, floats("landmarks", "k", own=True)]  # in the same precision
    # what a step of 1 stands for in the units of y, in the precision of X; 1 for classes
    scale: Annotated[Array, floats("k")]
    # the classes' shares or the mean values, in the same units: the score far away
    prior: Annotated[Array, floats("k")]
    bandwidth: Annotated[float, Between(1e-30, 1e30)]
    lam: Annotated[float, Between(high=math.inf)]
    kernel: Annotated[str, OneOf(tuple(KERNELS))] = "laplace"

    @property
    def width(self) -> float:
        """The width of the kernel: the bandwidth times what 1 means over so many columns."""
        return width_of(self.kernel, self.bandwidth, self.inputs.n_compared)


@dataclass(frozen=True, slots=True, eq=False)
class KernelModel(Record):
    """A fitted classifier or regressor: everything that decides an answer."""

    columns: Columns | None  # how a frame becomes numbers and codes; None takes finite numbers as they are
    voter: KernelVoter
    classes: Annotated[Array, Labels("k")] | None  # as they came; None if it answers with values
    calibration: Calibration | None

    @property
    def n_outputs(self) -> int:
        """How many probabilities or values a row gets."""
        return int(self.voter.alpha.shape[-1])

    @property
    def like(self) -> Array:
        """An array of the model, which tells its library, device and precision."""
        return self.voter.prior

    @property
    def inputs(self) -> Inputs:
        """How columns become what the kernel compares."""
        return self.voter.inputs

    @property
    def product(self) -> tuple[int, int]:
        """The largest matrix product of an answer: a row's columns and distances, and the landmarks."""
        s, d = self.voter.landmarks.shape
        return int(s + d), int(s)

    def encodings(self) -> tuple[Inputs, ...]:
        """Return the only encoding."""
        return (self.inputs,)

    def answer(self, X: Array, Z: Array | None = None) -> Array:
        """Return the probabilities or values (rows, k) of rows that were checked, block by block.

        Z holds them encoded, if somebody did that already.
        """
        with suitable_threads(X, *self.product), ignore_overflow():
            P = kernel_scores(self.voter, X, Z)
            if self.classes is None:
                return P
            for rows in row_blocks(P, P.shape[0], 6 * P.shape[1]):
                scores = softmax(P[rows, :], axis=-1)
                P[rows, :] = scores if self.calibration is None else self.calibration(scores)
        return P


def kernel_scores(voter: KernelVoter, X: Array, Z: Array | None = None) -> Array:
    """Return the scores (rows, k) of new rows of X, block by block; Z holds the rows encoded, if known."""
    xp, (s, k), dtype = array_namespace(X), voter.alpha.shape, voter.alpha.dtype
    scores = xp.empty((X.shape[0], k), dtype=X.dtype, device=device(X))
    kernel = KERNELS[voter.kernel]
    measure = kernel.measure(voter.landmarks, voter.inputs.contrasts(voter.landmarks))
    for rows in row_blocks(X, X.shape[0], 3 * s + 2 * voter.inputs.width):
        encoded = voter.inputs.apply(X[rows, :]) if Z is None else Z[rows, :]
        apart = measure(xp.astype(encoded, dtype, copy=False))
        found = kernel.alike(apart, voter.width) @ voter.alpha
        scores[rows, :] = xp.astype(found, X.dtype, copy=False) * voter.scale + voter.prior
    return scores
