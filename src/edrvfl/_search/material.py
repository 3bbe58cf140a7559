"""Check the rows of a search, read them in every way that its candidates ask for, and split them."""

from __future__ import annotations

import inspect
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy
from sklearn.utils.metadata_routing import process_routing

from .._inputs.grouped import read_groups
from .._inputs.rows import to_host
from .._inputs.table import Columns
from .._seam.arrays import Array, on_accelerator
from .._seam.sklearn import _check_sample_weight, _routing_enabled
from .candidates import Candidate
from .metrics import metric_of
from .scorer import Sample, Scoring, Search, Split

Read = tuple[Array, Array, Columns | None]  # rows, labels or values, and how the rows' columns were read


@dataclass(frozen=True, slots=True, eq=False)
class Material:
    """What a search works on."""

    searches: Mapping[Hashable, Search]  # by how candidates read columns
    refused: Mapping[Hashable, Exception]  # why no row can be read, by how candidates read columns
    splits: list[Split]


def prepare_material(
    door: Any,
    X: Any,
    y: Any,
    of_rows: dict[str, Any],
    params: dict[str, Any],
    candidates: Sequence[Candidate],
) -> Material:
    """Check what was given to `fit` of a search estimator, and split it."""
    tables, refused = _read(door, X, y, candidates)
    table, y, columns = next(iter(tables.values()))
    given = _as_given(X, table, columns)
    sample_weight = of_rows["sample_weight"]
    groups = read_groups(of_rows["groups"], int(table.shape[0]))
    if groups is not None:
        params = {**params, "groups": of_rows["groups"]}
    if sample_weight is not None:
        sample_weight = _check_sample_weight(
            sample_weight, table, dtype=table.dtype, ensure_non_negative=True
        )
    metric = metric_of(door.scoring, door._classifies)
    of_split, of_score = _route(door, params, None if metric else sample_weight)
    labels = to_host(y)
    splits = _split(door._splitter(labels), given, labels, of_split)
    classes = numpy.unique(labels) if door._classifies else None
    scorer, seen = (door._scorer(), given) if metric is None else (None, None)
    scoring = Scoring(classes, metric, scorer, door._stand_in, door.error_score)
    gpu = on_accelerator(table)
    searches = {
        key: Search(Sample(table, labels, sample_weight, seen, of_score, groups), columns, scoring, gpu)
        for key, (table, _, columns) in tables.items()
    }
    return Material(searches, refused, splits)


def _read(
    door: Any, X: Any, y: Any, candidates: Sequence[Candidate]
) -> tuple[dict[Hashable, Read], dict[Hashable, Exception]]:
    """Read rows and labels once for each way in which candidates read columns; note where that fails."""
    tables: dict[Hashable, Read] = {}
    refused: dict[Hashable, Exception] = {}
    for key, inputs in {one.reading: one.inputs for one in candidates}.items():
        try:
            tables[key] = door._check_training_rows(X, y, inputs)
        except (TypeError, ValueError) as error:
            refused[key] = error
    if refused and (not tables or door.error_score == "raise"):
        raise next(iter(refused.values()))
    return tables, refused


def _as_given(X: Any, table: Array, columns: Columns | None) -> Any:
    """Return the rows as splitters and scorers see them: a frame, or an array in NumPy."""
    if hasattr(X, "columns"):  # they may ask for columns by name
        return X
    if columns is None or not (any(columns.categorical) or columns.kinds):
        return to_host(table)
    # codes mean nothing to a scorer
    return to_host(X) if hasattr(X, "__dlpack__") else numpy.asarray(X, dtype=object)


def _route(door: Any, params: dict[str, Any], sample_weight: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the keyword arguments of the splitter and of the scorer, which may get these weights."""
    weights = {} if sample_weight is None else {"sample_weight": to_host(sample_weight)}
    if _routing_enabled():
        routed = process_routing(door, "fit", **params, **weights)
        return routed.splitter.split, routed.scorer.score
    if unknown := set(params) - {"groups"}:
        raise TypeError(
            f"fit got {', '.join(sorted(unknown))}; only sample_weight and groups can be passed while "
            "scikit-learn's metadata routing is off."
        )
    return params, weights if weights and _takes_sample_weight(door._scorer()) else {}


def _takes_sample_weight(scorer: Any) -> bool:
    """Tell whether a scorer, or the metric inside it, has a parameter `sample_weight`."""
    try:
        return "sample_weight" in inspect.signature(getattr(scorer, "_score_func", scorer)).parameters
    except ValueError:  # a compiled function does not tell
        return False


def _split(splitter: Any, given: Any, labels: numpy.ndarray, params: dict[str, Any]) -> list[Split]:
    """Return training and test rows as indices."""
    every = numpy.arange(len(labels))  # splits may be masks, and indices may be negative
    splits = [(every[train], every[test]) for train, test in splitter.split(given, labels, **params)]
    if not splits:
        raise ValueError("cv gives no split. An iterator is used up after the first fit.")
    for i, (train, test) in enumerate(splits):
        if not (len(train) and len(test)):
            raise ValueError(f"Split {i} of cv has {len(train)} training rows and {len(test)} test rows.")
    return splits
