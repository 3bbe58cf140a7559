"""Networks are tuned together: those that share work are scored in one part, at every depth."""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Sequence
from typing import Any

from joblib import effective_n_jobs
from sklearn.utils.parallel import delayed

from .._inputs.reading import read_new_table
from .._seam.arrays import Array
from .candidates import door_of
from .material import Material
from .plan import NetworkCandidate, bytes_needed, groups, memory_budget, result_rows
from .run import score_split
from .space import draw_configurations
from .strategy import Part

draw, rows = draw_configurations, result_rows


def parts(
    material: Material, candidates: Sequence[NetworkCandidate], n_jobs: int | None, memory: int | None
) -> tuple[int, list[Part]]:
    """Return how many processes there are, and which networks are scored together on which split."""
    searches, splits = material.searches, material.splits
    jobs, budget = _share_memory(material, candidates, n_jobs, memory)
    # One process keeps the networks of a width together, which share their random layers. The widest come
    # first, so that no process is left with a long task at the end.
    # With several processes smaller pieces balance better, at the price of drawing layers again.
    pieces = groups(candidates, (lambda c: (c.stack_key, c.hidden)) if jobs > 1 else (lambda c: c.problem))
    pieces.sort(key=lambda piece: -piece[0].settings.n_hidden)
    return jobs, [
        Part(
            i,
            piece,
            f"{len(piece)} networks",
            delayed(score_split)(searches[piece[0].door], piece, splits[i], budget),
        )
        for i, piece in itertools.product(range(len(splits)), pieces)
    ]


def _share_memory(
    material: Material, candidates: Sequence[NetworkCandidate], n_jobs: int | None, memory: int | None
) -> tuple[int, int]:
    """Return how many processes there are, and the bytes that each of them may use."""
    searches, splits = material.searches, material.splits
    jobs = 1 if material.any_search.stacked else effective_n_jobs(n_jobs)
    budget = memory_budget(memory, material.any_search.rows.X)
    if jobs > 1:  # every process needs room for one network of any kind
        largest = max(
            bytes_needed([[c]], searches[c.door].size(split, c)) for c in candidates for split in splits
        )
        jobs = max(1, min(jobs, budget // largest))
    return jobs, budget // jobs


def answer(shell: Any, X: Any, models: Sequence[Any]) -> Array:
    """Return the mean probabilities or values of fitted networks."""
    tables: dict[Hashable, Array] = {}  # networks that read columns in the same way share what was read
    total: Array = 0.0
    for model in models:
        door = (door_of(model), model._fitted_array.dtype)
        if door not in tables:
            tables[door] = read_new_table(shell, X, model._columns, model._fitted_array)
        total = total + model.network_.answer(tables[door])
    return total / len(models)
