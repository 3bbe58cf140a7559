"""What a way of searching has to offer; `together.py` and `alone.py` are the two."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from .._seam.arrays import Array
from .candidates import Candidate, ResultRow
from .material import Material


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """Some candidates that are scored in one go on one split."""

    split: int
    candidates: Sequence[Candidate]
    label: str  # of the line that a search prints
    call: Any  # for joblib; returns scores (candidates, depths), and what went wrong as `score_split` does


class Strategy(Protocol):
    """How configurations of an estimator are drawn, scored and asked. A module can be one."""

    def draw(
        self, estimator: Any, distributions: Any, n_iter: int | None, random_state: Any
    ) -> list[dict[str, Any]]:
        """Return the configurations to try."""

    def rows(self, estimator: Any, configurations: Sequence[Mapping[str, Any]]) -> list[ResultRow]:
        """Return the rows of the results, each configuration once; a bad configuration is an error."""

    def parts(
        self, material: Material, candidates: Sequence[Any], n_jobs: int | None, memory: int | None
    ) -> tuple[int, list[Part]]:
        """Return how many processes there are, and what they do."""

    def answer(self, shell: Any, X: Any, models: Sequence[Any]) -> Array:
        """Return the mean probabilities or values of fitted models."""
