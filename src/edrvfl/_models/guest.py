"""A fitted guest: an estimator of scikit-learn in a portfolio, and what it answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy

from .._inputs.inputs import Inputs
from .._inputs.table import Columns
from .._loo.calibrate import Calibration
from .._seam.arrays import Array, ignore_overflow
from .model import Record

# How much of a guest's probabilities is the uniform distribution: those of trees may be 0, and a few zeros
# for the right class would make one temperature for all rows much too high.
UNIFORM = 1e-5
LARGEST = float(numpy.finfo(numpy.float32).max)  # trees hold numbers in float32, and refuse larger ones


@dataclass(frozen=True, slots=True, eq=False)
class GuestModel(Record):
    """A fitted estimator of scikit-learn: everything that decides an answer."""

    columns: Columns | None  # how a frame becomes numbers and codes
    estimator: Any  # fitted to the codes of classes, or to standardised values
    inputs: Inputs  # how a row of X becomes what the estimator sees
    classes: Array | None  # the labels (k,) as they came; None if it answers with values
    scale: Array  # (k,), what a step of 1 stands for in the units of y; 1 for classes
    prior: Array  # (k,), what 0 stands for; 0 for classes
    calibration: Calibration | None

    stays_in_numpy: ClassVar = True  # estimators of scikit-learn are not moved

    @property
    def n_outputs(self) -> int:
        """How many probabilities or values a row gets."""
        return int(self.prior.shape[0])

    @property
    def like(self) -> Array:
        """An array of the model, which tells its library, device and precision."""
        return self.prior

    @property
    def product(self) -> tuple[int, int]:
        """Guests decide about threads themselves: a product as small as can be."""
        return self.inputs.width, 1

    def encodings(self) -> tuple[Inputs, ...]:
        """Return the only encoding."""
        return (self.inputs,)

    def answer(self, X: Array, Z: Array | None = None) -> Array:
        """Return the probabilities or values (rows, k) of rows that were checked; Z holds them encoded."""
        found = guest_answers(self.estimator, self.inputs.apply(X) if Z is None else Z, self.classes is None)
        if self.classes is None:
            return (found * self.scale + self.prior).astype(X.dtype)
        P = mixed(found).astype(X.dtype)
        return P if self.calibration is None else self.calibration(P)


def guest_answers(estimator: Any, Z: numpy.ndarray, values: bool) -> numpy.ndarray:
    """Return the probabilities or values (rows, k) that a fitted estimator gives to encoded rows Z."""
    Z = numpy.clip(Z, -LARGEST, LARGEST)
    with ignore_overflow():
        answers = (estimator.predict if values else estimator.predict_proba)(Z)
    return numpy.asarray(answers, dtype=float).reshape(len(Z), -1)


def mixed(P: numpy.ndarray) -> numpy.ndarray:
    """Return probabilities above 0."""
    return (1 - UNIFORM) * P + UNIFORM / P.shape[1]
