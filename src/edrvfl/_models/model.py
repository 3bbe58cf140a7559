"""What every fitted model can do: answer rows, say what it is made of, and move between array libraries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, Self

from .._inputs.inputs import Inputs
from .._inputs.table import Columns
from .._seam.arrays import Array, converted


class Record:
    """A fitted record, whose arrays can be brought to another library or device."""

    __slots__ = ()

    def __sklearn_array_api_convert__(self, converter: Callable[[Array], Array]) -> Self:
        """Bring the arrays to another library or device. scikit-learn's mover of estimators calls this."""
        moved: Self = converted(self, converter)
        return moved


class Model(Protocol):
    """Everything that decides an answer: a network, a kernel model or a portfolio."""

    @property
    def columns(self) -> Columns | None:
        """How a frame becomes numbers and codes; None takes finite numbers as they are."""

    @property
    def classes(self) -> Array | None:
        """The labels (k,) as they came; None if the model answers with values."""

    @property
    def n_outputs(self) -> int:
        """How many probabilities or values a row gets."""

    @property
    def like(self) -> Array:
        """An array of the model, which tells its library, device and precision."""

    def encodings(self) -> tuple[Inputs, ...]:
        """Return the different encodings of the columns that the model sees."""

    def answer(self, X: Array) -> Array:
        """Return the probabilities or values (rows, k) of rows that were checked, block by block."""


class Voter(Model, Protocol):
    """A model with one encoding, which can be a member of a portfolio."""

    @property
    def inputs(self) -> Inputs:
        """How columns become what the model sees."""

    @property
    def product(self) -> tuple[int, int]:
        """The largest matrix product of an answer: numbers held for a row, and columns of the factor."""

    def answer(self, X: Array, Z: Array | None = None) -> Array:
        """Answer rows; Z holds them encoded, if somebody did that already."""
