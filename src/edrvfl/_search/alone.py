"""Estimators that share no work are tuned one by one: each is fitted on each split."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import joblib
import numpy
from sklearn.utils.parallel import delayed

from .._inputs.rows import to_host
from .._leaving.moving import to_numpy
from .._seam.arrays import Array
from .._seam.sklearn import _safe_indexing
from .candidates import Candidate, ResultRow, configured
from .material import Material
from .metrics import Search, Split, SplitScorer
from .space import draw_independently
from .strategy import Part


def draw(estimator: Any, distributions: Any, n_iter: int | None, random_state: Any) -> list[dict[str, Any]]:
    """Return the configurations to try."""
    if distributions is None:
        raise ValueError(
            "param_distributions=None is the paper's box, which is for networks, but the estimator is "
            f"{type(estimator).__name__}. Say what to try, for instance {_example_for(estimator)}."
        )
    return draw_independently(distributions, n_iter, random_state)


def _example_for(estimator: Any) -> str:
    return '{"finalists": [1, 3]}' if hasattr(estimator, "finalists") else '{"encoder": ["standard", "bins"]}'


def rows(estimator: Any, configurations: Sequence[Mapping[str, Any]]) -> list[ResultRow]:
    """Return a row of results for each configuration that differs from those before it."""
    base = estimator.get_params(deep=False)
    found: dict[str, ResultRow] = {}
    for params in configurations:
        model = configured(estimator, base, params)
        # not by repr, which scikit-learn cuts short where members are many
        found.setdefault(joblib.hash(model), ResultRow(Candidate(len(found), model, {1}), 1, dict(params)))
    return list(found.values())


def parts(
    material: Material,
    candidates: Sequence[Candidate],
    n_jobs: int | None,
    memory: int | None,  # noqa: ARG001
) -> tuple[int, list[Part]]:
    """Return how many processes there are, and a part for each candidate and split."""
    search, splits = material.any_search, material.splits
    jobs = 1 if search.stacked else joblib.effective_n_jobs(n_jobs)
    # The candidates read the rows themselves; without columns the array still tells library and device.
    search = replace(search, rows=replace(search.rows, X=search.rows.X[:, :0]))
    return jobs, [
        Part(
            i,
            [one],
            f"configuration {one.number + 1}",
            delayed(score_alone)(search, material.X, one if jobs == 1 else _for_process(one), splits[i]),
        )
        for one, i in itertools.product(candidates, range(len(splits)))
    ]


def _for_process(candidate: Candidate) -> Candidate:
    """Return a candidate that starts no processes of its own."""
    if not hasattr(candidate.estimator, "n_jobs"):
        return candidate
    return replace(candidate, estimator=candidate.at(1).set_params(n_jobs=1))


def score_alone(
    search: Search, X: Any, candidate: Candidate, split: Split
) -> tuple[numpy.ndarray, dict[tuple[int, int], str]]:
    """Fit a candidate on the training rows of a split and score it on the test rows.

    Return its score as (1, 1), and what went wrong.
    """
    scorer = SplitScorer.of(search, split)
    train, test = (_safe_indexing(X, rows) for rows in split)
    try:
        model = candidate.at(1).fit(train, scorer.train.labels, scorer.train.weights)
        P = model._answers(test, "predict")
        classes = to_host(model.classes_) if model._classifies else None
        scores = to_host(scorer(P[None, ...], classes, [candidate], fitted=lambda: to_numpy(model)))
    except Exception as error:
        scores = numpy.array([scorer.excuse(error, candidate, [1])])
    return scores[:, None], scorer.failures


def answer(shell: Any, X: Any, models: Sequence[Any]) -> Array:  # noqa: ARG001
    """Return the mean probabilities or values of fitted models."""
    total: Array = 0.0
    for model in models:
        total = total + model._answers(X, "predict")
    return total / len(models)
