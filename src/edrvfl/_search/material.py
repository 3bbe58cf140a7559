"""Check the rows of a search, read them in every way that its candidates ask for, and split them."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy
from sklearn.utils.metadata_routing import process_routing

from .._inputs.rows import to_host
from .._inputs.table import Columns
from .._seam.arrays import Array, on_accelerator
from .._seam.sklearn import _check_sample_weight, _routing_enabled
from .candidates import Candidate
from .metrics import Sample, Search, Split, kernel_of, name_error, takes_sample_weight

Read = tuple[Array, Array, Columns | None]  # rows, labels or values, and how the rows' columns were read


@dataclass(frozen=True, slots=True, eq=False)
class Material:
    """What a search works on."""

    X: Any  # rows as they came: a frame or an array
    searches: Mapping[Hashable, Search]  # what parts of the search have in common, by candidates' door
    refused: Mapping[Hashable, Exception]  # why no row can be read, by candidates' door
    splits: list[Split]

    @property
    def any_search(self) -> Search:
        """A search, for what all of them have in common."""
        return next(iter(self.searches.values()))

    def readable(self, candidates: Sequence[Candidate]) -> list[Candidate]:
        """Return the candidates that can read the rows."""
        return [one for one in candidates if one.door not in self.refused]

    def refusals(self, candidates: Sequence[Candidate]) -> list[tuple[Candidate, str]]:
        """Return the candidates that cannot read the rows, with the reasons."""
        return [(one, name_error(self.refused[one.door])) for one in candidates if one.door in self.refused]


def prepare_material(
    shell: Any, X: Any, y: Any, sample_weight: Any, params: dict[str, Any], candidates: Sequence[Candidate]
) -> Material:
    """Check what was given to `fit` of a search estimator, and split it."""
    tables, refused = _read(shell, X, y, candidates)
    table, y, columns = next(iter(tables.values()))
    given = _as_given(X, table, columns)
    if sample_weight is not None:
        sample_weight = _check_sample_weight(
            sample_weight, table, dtype=table.dtype, ensure_non_negative=True
        )
    of_split, of_score = _route(shell, params, sample_weight)
    labels = to_host(y)
    splits = _split(shell._splitter(labels), given, labels, of_split)
    kernel = kernel_of(shell.scoring, shell._classifies)
    seen, scoring = (given, shell._scorer()) if kernel is None else (None, shell.scoring)
    classes = numpy.unique(labels) if shell._classifies else None
    common = (classes, scoring, shell.error_score, on_accelerator(table))
    searches = {
        door: Search(Sample(table, labels, sample_weight, seen, of_score), columns, *common)
        for door, (table, _, columns) in tables.items()
    }
    return Material(X if hasattr(X, "__dlpack__") else given, searches, refused, splits)


def _read(
    shell: Any, X: Any, y: Any, candidates: Sequence[Candidate]
) -> tuple[dict[Hashable, Read], dict[Hashable, Exception]]:
    """Read rows and labels once for each way in which candidates read columns; note where that fails."""
    tables: dict[Hashable, Read] = {}
    refused: dict[Hashable, Exception] = {}
    for one in candidates:
        if one.door in tables or one.door in refused:
            continue
        try:
            tables[one.door] = shell._check_training_rows(X, y, one.reader)
        except (TypeError, ValueError) as error:
            refused[one.door] = error
    if refused and (not tables or shell.error_score == "raise"):
        raise next(iter(refused.values()))
    return tables, refused


def _as_given(X: Any, table: Array, columns: Columns | None) -> Any:
    """Return the rows as splitters and scorers see them: a frame, or an array in NumPy."""
    if hasattr(X, "columns"):  # they may ask for columns by name
        return X
    if columns is None or not any(columns.categorical):
        return to_host(table)
    # codes mean nothing to a scorer
    return to_host(X) if hasattr(X, "__dlpack__") else numpy.asarray(X, dtype=object)


def _route(shell: Any, params: dict[str, Any], sample_weight: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the keyword arguments of the splitter and of the scorer."""
    weights = {} if sample_weight is None else {"sample_weight": to_host(sample_weight)}
    weights = weights if kernel_of(shell.scoring, shell._classifies) is None else {}
    if _routing_enabled():
        routed = process_routing(shell, "fit", **params, **weights)
        return routed.splitter.split, routed.scorer.score
    if unknown := set(params) - {"groups"}:
        raise TypeError(
            f"fit got {', '.join(sorted(unknown))}; only groups can be passed while scikit-learn's "
            "metadata routing is off."
        )
    return params, weights if takes_sample_weight(shell._scorer()) else {}


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
