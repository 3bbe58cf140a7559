"""Make a summary of a study: plain data, everything that a report will say."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

import pandas as pd

from .. import paper
from ..comparison import Ranking, round_half_up, score_table
from ..methods import subject_first
from ..names import MISSING
from .standing import Standing, make_standing
from .study import Pair, Result, Study, choose_results

CHOICES = ("strict", "paper")  # the two ways to choose a configuration; docs/study.md explains them
NEVER_NOTED = "not part of any run in this store"


@dataclass(frozen=True, slots=True)
class Summary:
    """All that a report says, as plain values.

    Methods, results and choices are about searches; `standing` has the methods at their defaults as well.
    """

    methods: tuple[str, ...]  # the subject first, then by rank
    datasets: tuple[str, ...]
    results: Mapping[Pair, Result]  # every dataset with every method, in their order
    paper: Ranking  # by the paper's choice; `standing` is by the strict one
    against_paper: pd.DataFrame  # dataset, method, published, measured (paper's choice) of what both have
    checksums: Mapping[str, tuple[str, ...]]  # dataset -> the checksums that occur
    origins: Mapping[str, tuple[str, ...]]  # versions, commit, device, protocol -> the values that occur
    extents: tuple[tuple[int, int], ...]  # the numbers of configurations and seeds that occur
    n_not_shown: int  # finished results that gave way to another of the same method and dataset
    standing: Standing
    study: Study

    def with_status(self, status: str) -> tuple[Result, ...]:
        return tuple(r for r in self.results.values() if r.status == status)


def summarise(study: Study) -> Summary:
    """Summarise a study: one result for each method on each dataset, and what follows from all of them."""
    printed = paper.accuracies()
    searched, unsearched = ([r for r in study.results if r.tuned is side] for side in (True, False))
    datasets = _in_order((r.dataset for r in study.results), printed.index)
    chosen, others = choose_results(searched), choose_results(unsearched)
    strict, lines = _rank("strict", chosen.values()), _in_order((r.line for r in searched), printed.columns)
    methods = subject_first(lines, strict.ranks, set(lines) - set(strict.scores))
    pairs = [(d, m) for d in datasets for m in methods]
    results = {pair: chosen.get(pair) or Result(*pair, MISSING, NEVER_NOTED) for pair in pairs}
    shown = [r for r in results.values() if r.status != MISSING]
    return Summary(
        methods=methods,
        datasets=datasets,
        results=results,
        paper=_rank("paper", results.values()),
        against_paper=_against_paper(results.values(), printed),
        checksums={d: _occurring(r.checksum for r in shown if r.dataset == d) for d in datasets},
        origins=_origins([*(r.origins for r in (*shown, *others.values())), *study.origins]),
        extents=tuple(sorted({(r.configurations, r.seeds) for r in shown})),
        n_not_shown=sum(r.status != MISSING for r in searched) - len(shown),
        standing=make_standing(chosen, others, study.defaults, datasets),
        study=study,
    )


def _in_order(names: Iterable[str], known: Iterable[str]) -> tuple[str, ...]:
    """List the names that occur: the paper's in its order, then the others in alphabetical order."""
    occurring = set(names)
    first = [name for name in known if name in occurring]
    return (*first, *sorted(occurring - set(first)))


def _occurring(values: Iterable[str | None]) -> tuple[str, ...]:
    return tuple(sorted({value for value in values if value is not None}))


def _origins(found: Collection[Mapping[str, str]]) -> dict[str, tuple[str, ...]]:
    kinds = dict.fromkeys(kind for origins in found for kind in origins)
    return {kind: _occurring(origins.get(kind) for origins in found) for kind in kinds}


def _rank(choice: str, results: Collection[Result]) -> Ranking:
    """Rank the methods by one choice, on the datasets that have a figure."""
    cells = {(r.dataset, r.line): r.scored[choice].accuracy for r in results if choice in r.scored}
    measured = {method for _, method in cells}
    methods = dict.fromkeys(r.line for r in results if r.line in measured)
    return Ranking.of(score_table(cells, tuple(dict.fromkeys(d for d, _ in cells)), tuple(methods)))


def _against_paper(results: Iterable[Result], printed: pd.DataFrame) -> pd.DataFrame:
    rows = [
        (r.dataset, r.line, printed.loc[r.dataset, r.line], round_half_up(r.scored["paper"].accuracy))
        for r in results
        if "paper" in r.scored and r.dataset in printed.index and r.line in printed
    ]
    return pd.DataFrame(rows, columns=["dataset", "method", "published", "measured"])
