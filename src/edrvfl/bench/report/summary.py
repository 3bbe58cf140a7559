"""Make a summary of a study: plain data, everything that a report will say."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import pandas as pd

from .. import paper
from ..comparison import (
    Friedman,
    Pairwise,
    average_ranks,
    comparable,
    compare_pairs,
    friedman,
    means,
    round_half_up,
    score_table,
)
from ..defaults import Defaults
from ..figures import MISSING
from ..methods import subject_first
from ..sensitivity import Sensitivity
from ..timing import Timing
from .standing import Standing, make_standing
from .study import Pair, Result, Study, choose_results

CHOICES = ("strict", "paper")  # the two ways to choose a configuration; docs/study.md explains them


@dataclass(frozen=True, eq=False)
class ChoiceSummary:
    """Everything that follows from the paper's choice; `Standing` has the strict one."""

    scores: pd.DataFrame  # every accuracy that was measured
    compared: pd.DataFrame  # the methods that means, ranks and tests are about

    @cached_property
    def means(self) -> Mapping[str, float]:
        return means(self.compared)

    @cached_property
    def ranks(self) -> Mapping[str, float]:
        return average_ranks(self.compared)

    @cached_property
    def friedman(self) -> Friedman | None:
        return friedman(self.compared)

    @cached_property
    def pairs(self) -> Pairwise:
        return compare_pairs(self.compared)

    @property
    def methods(self) -> tuple[str, ...]:
        """The methods that have at least one accuracy."""
        return tuple(self.scores.columns)

    @property
    def common(self) -> tuple[str, ...]:
        """The datasets that all compared methods have. Means, ranks and tests are over these."""
        return tuple(self.compared.dropna().index)


@dataclass(frozen=True, slots=True)
class AgainstPaper:
    """An accuracy that the paper prints too, measured with the paper's choice."""

    dataset: str
    method: str
    published: float
    measured: float


@dataclass(frozen=True, slots=True)
class Summary:
    """All that a report says, as plain values.

    Methods, results and choices are about searches; `standing` has the methods at their defaults as well.
    """

    methods: tuple[str, ...]  # the subject first, then by rank
    datasets: tuple[str, ...]
    results: Mapping[Pair, Result]  # every dataset with every method, in their order
    paper: ChoiceSummary
    against_paper: tuple[AgainstPaper, ...]
    checksums: Mapping[str, tuple[str, ...]]  # dataset -> the checksums that occur
    origins: Mapping[str, tuple[str, ...]]  # versions, commit, device, protocol -> the values that occur
    extents: tuple[tuple[int, int], ...]  # the numbers of configurations and seeds that occur
    n_not_shown: int  # finished results that gave way to another of the same method and dataset
    standing: Standing
    study: Study

    def with_status(self, status: str) -> tuple[Result, ...]:
        return tuple(r for r in self.results.values() if r.status == status)

    @property
    def finished(self) -> tuple[Result, ...]:
        """The results that came to an end, good or bad."""
        return tuple(r for r in self.results.values() if r.status != MISSING)

    @property
    def sensitivity(self) -> Sensitivity | None:
        return self.study.sensitivity

    @property
    def timing(self) -> Timing | None:
        return self.study.timing

    @property
    def defaults(self) -> Defaults | None:
        return self.study.defaults


def summarise(study: Study) -> Summary:
    """Summarise a study: one result for each method on each dataset, and what follows from all of them."""
    printed = paper.accuracies()
    searched, unsearched = ([r for r in study.results if r.tuned is side] for side in (True, False))
    datasets = _in_order((r.dataset for r in study.results), printed.index)
    chosen, others = choose_results(searched), choose_results(unsearched)
    methods = _order_methods(chosen, _in_order((r.line for r in searched), printed.columns))
    results = {(d, m): chosen.get((d, m)) or _never_noted(d, m) for d in datasets for m in methods}
    shown = [r for r in results.values() if r.status != MISSING]
    n_finished = sum(r.status != MISSING for r in searched)
    return Summary(
        methods=methods,
        datasets=datasets,
        results=results,
        paper=_summarise_choice("paper", results.values()),
        against_paper=_against_paper(results.values(), printed),
        checksums={d: _occurring(r.checksum for r in shown if r.dataset == d) for d in datasets},
        origins=_origins([*(r.origins for r in (*shown, *others.values())), *study.origins]),
        extents=tuple(sorted({(r.configurations, r.seeds) for r in shown})),
        n_not_shown=n_finished - len(shown),
        standing=make_standing(chosen, others, study.defaults, datasets),
        study=study,
    )


def _order_methods(chosen: Mapping[Pair, Result], methods: Sequence[str]) -> tuple[str, ...]:
    """Put the subject of the study first, the others by their ranks, and what has no figure last."""
    cells = {pair: r.scored["strict"].accuracy for pair, r in chosen.items() if "strict" in r.scored}
    measured = [m for m in methods if any(m == method for _, method in cells)]
    scores = score_table(cells, tuple(dict.fromkeys(d for d, _ in cells)), measured)
    return subject_first(methods, average_ranks(comparable(scores)), set(methods) - set(measured))


def _in_order(names: Iterable[str], known: Iterable[str]) -> tuple[str, ...]:
    """List the names that occur: the paper's in its order, then the others in alphabetical order."""
    occurring = set(names)
    first = [name for name in known if name in occurring]
    return (*first, *sorted(occurring - set(first)))


def _never_noted(dataset: str, method: str) -> Result:
    return Result(dataset, method, MISSING, "not part of any run in this store")


def _occurring(values: Iterable[str | None]) -> tuple[str, ...]:
    return tuple(sorted({value for value in values if value is not None}))


def _origins(found: Sequence[Mapping[str, str]]) -> dict[str, tuple[str, ...]]:
    kinds = dict.fromkeys(kind for origins in found for kind in origins)
    return {kind: _occurring(origins.get(kind) for origins in found) for kind in kinds}


def _summarise_choice(name: str, results: Collection[Result]) -> ChoiceSummary:
    cells = {(r.dataset, r.line): r.scored[name].accuracy for r in results if name in r.scored}
    # Only datasets and methods with a number: others would leave no dataset that all methods have.
    datasets = dict.fromkeys(r.dataset for r in results if (r.dataset, r.line) in cells)
    measured = {method for _, method in cells}
    methods = dict.fromkeys(r.line for r in results if r.line in measured)
    scores = score_table(cells, tuple(datasets), tuple(methods))
    return ChoiceSummary(scores, comparable(scores))


def _against_paper(results: Iterable[Result], printed: pd.DataFrame) -> tuple[AgainstPaper, ...]:
    return tuple(
        AgainstPaper(
            r.dataset,
            r.line,
            float(printed.loc[r.dataset, r.line]),
            round_half_up(r.scored["paper"].accuracy),
        )
        for r in results
        if "paper" in r.scored and r.dataset in printed.index and r.line in printed
    )
