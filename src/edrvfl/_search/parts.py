"""Cut a search into parts, for one process or for several."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from joblib import effective_n_jobs
from sklearn.utils.parallel import delayed

from .candidates import Candidate
from .material import Material
from .plan import bytes_needed, groups, memory_budget
from .run import score_split


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """Some candidates that are scored in one go on one split."""

    split: int
    candidates: Sequence[Candidate]
    call: Any  # for joblib; `score_split` with its arguments


def cut_search(
    material: Material, candidates: Sequence[Candidate], n_jobs: int | None, memory: int | None
) -> tuple[int, list[Part]]:
    """Return how many processes there are, and which networks are scored together on which split."""
    searches, splits = material.searches, material.splits
    jobs, budget = _share_memory(material, candidates, n_jobs, memory)
    # One process keeps the networks of a width together, which share their random layers. The widest come
    # first, so that no process is left with a long task at the end.
    # With several processes smaller pieces balance better, at the price of drawing layers again.
    pieces = groups(candidates, lambda c: c.features if jobs > 1 else c.prepared)
    pieces.sort(key=lambda piece: -piece[0].settings.n_hidden)
    return jobs, [
        Part(i, piece, delayed(score_split)(searches[piece[0].reading], piece, splits[i], budget))
        for i, piece in itertools.product(range(len(splits)), pieces)
    ]


def _share_memory(
    material: Material, candidates: Sequence[Candidate], n_jobs: int | None, memory: int | None
) -> tuple[int, int]:
    """Return how many processes there are, and the bytes that each of them may use."""
    search = material.searches[candidates[0].reading]
    jobs = 1 if search.stacked else effective_n_jobs(n_jobs)
    budget = memory_budget(memory, search.rows.X)
    if jobs > 1:  # every process needs room for one network of any kind
        split = max(material.splits, key=lambda split: sum(map(len, split)))
        needs = [
            bytes_needed([[c]], material.searches[c.reading].size(split, c.inputs))
            for c in dict((c.stack, c) for c in candidates).values()
        ]
        jobs = max(1, min(jobs, budget // max(needs)))
    return jobs, budget // jobs


def seconds_left(parts: Sequence[Part], done: int, seconds: float) -> float:
    """Guess how long the other parts take if so many took so long: in proportion to the neurons."""
    neurons = [sum(c.settings.n_hidden * c.settings.n_layers for c in part.candidates) for part in parts]
    return seconds * sum(neurons[done:]) / sum(neurons[:done])
