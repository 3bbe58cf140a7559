"""Records in, one frozen record of plain values out: all that a report will say."""

from __future__ import annotations

import math
import statistics as median_of
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from .. import published
from ..datasets import DEMO, UCI24
from ..experiments import NEUTRAL, Sensitivity, Timing
from ..protocol import RunRecord
from ..published import Table, Value, two_digits
from ..statistics import (
    CriticalDifference,
    Friedman,
    Pairwise,
    Scores,
    average_ranks,
    critical_difference,
    friedman,
    means,
    pairwise,
    round_half_up,
)
from ..store import CellState, Store

Pair = tuple[str, str]  # dataset, method

CHOICES: Mapping[str, str] = MappingProxyType(
    {
        "strict": (
            "Each split chooses its configuration and depth by its own validation rows. No test label of a "
            "split takes part in its choice. This is the figure to quote."
        ),
        "paper": (
            "One configuration and depth for all splits, by the mean validation accuracy of the four, as in "
            "the paper. The four draws overlap: 97 to 99 % of a split's test rows are fit or validation rows "
            "of another split, so test labels enter the choice through the other splits, and the figure "
            "is flattered. It is shown to be compared with the published one."
        ),
    }
)

ODDITIES: tuple[str, ...] = (
    "The four folds of the benchmark are four overlapping draws of 75 % and 25 %, not a partition: about "
    "68 % of the rows are a test row of at least one draw.",
    "Five datasets (adult, monks-3, pendigits, statlog-landsat, statlog-shuttle) have one fixed test file; "
    "their four splits differ in the validation rows only.",
    "Values were standardised before the data were published, with the test rows of the draws included, and "
    "training and test files each by its own mean and standard deviation.",
    "monks-3: its training and test files were standardised apart, so figures on it are near noise. The "
    "paper's 82 is not reached by honest tuning, which gives about 50 to 65.",
    "congressional-voting keeps only which answers are missing; 61 % is the rate of the larger class.",
    "oocytes_trisopterus_states_5b has 32 features and 3 classes; the paper prints 26 and 2.",
    "The paper's number of features counts the label.",
    "The SNN, MSRAinit, Highway and ResNet columns of Table 3 are figures of one split, quoted from "
    "Klambauer et al. (2017).",
    "The paper's means and average ranks follow from its Table 3 to the last digit. Its p-values (Table 4) "
    "and signs (Table 5) mostly do not.",
)

FIXED_TEST_FILE = frozenset({"adult", "monks-3", "pendigits", "statlog-landsat", "statlog-shuttle"})


# --- what is read ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Study:
    """A store's contents, as far as a report needs them."""

    records: tuple[RunRecord, ...]
    states: tuple[CellState, ...]
    depth_accuracies: Mapping[Pair, tuple[float, ...]]


def read_study(path: str | Path) -> Study:
    """Records, the state of every cell, and validation accuracy by depth, from a store."""
    with Store(path, create=False) as store:
        records, states = store.records(), store.states()
        depths = {}
        for record in _shown(records).values():
            if record.status == "ok" and (curve := _best_by_depth(store.values(record.key)[0])):
                depths[record.dataset, record.method] = curve
    return Study(tuple(records), tuple(states), depths)


def _best_by_depth(values: Mapping[str, Any]) -> tuple[float, ...]:
    """Of each depth the best configuration's validation accuracy in percent, mean over the splits."""
    parts = [np.array(value["scores"]) for unit, value in values.items() if unit.startswith("search/")]
    if not parts or len({part.shape[-2:] for part in parts}) > 1:  # an export may bring records alone
        return ()
    scores = np.concatenate(
        [part.reshape(-1, *part.shape[-2:]) for part in parts]
    )  # configuration, split, depth
    return tuple(100 * float(accuracy) for accuracy in scores.mean(axis=1).max(axis=0))


# --- the record ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Result:
    """One method on one dataset. Accuracies in percent, by choice."""

    dataset: str
    method: str
    status: str  # "ok", "failed", "started", "waiting" or "missing"
    message: str | None = None
    trials: int | None = None
    seeds: int | None = None
    accuracy: Mapping[str, float] = field(default_factory=dict)
    sd: Mapping[str, float | None] = field(default_factory=dict)
    balanced_accuracy: Mapping[str, float] = field(default_factory=dict)
    log_loss: Mapping[str, float] = field(default_factory=dict)
    depth: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    fit_seconds: float | None = None  # median over splits and seeds, strict choice
    search_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class ChoiceSummary:
    """Everything that follows from one way to choose."""

    name: str
    meaning: str
    scores: Scores
    compared: Scores  # of the methods that means, ranks and tests are about
    means: Mapping[str, float]
    ranks: Mapping[str, float]
    friedman: Friedman | None
    pairs: Pairwise
    critical_difference: CriticalDifference | None

    @property
    def common(self) -> tuple[str, ...]:
        """The datasets that all compared methods have: means, ranks and tests are over these."""
        return self.compared.complete().datasets

    def by_rank(self) -> tuple[str, ...]:
        return tuple(sorted(self.ranks, key=lambda m: (self.ranks[m], -self.means[m])))


@dataclass(frozen=True, slots=True)
class DatasetFacts:
    """What is known of a dataset: its shape, the paper's, its partitions, its checksums in the records."""

    name: str
    rows: int | None
    features: int | None
    classes: int | None
    printed: str  # rows / features / classes as the paper prints them
    partitions: str
    checksums: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Summary:
    """All that a report says, as plain values."""

    title: str
    answer: tuple[str, str, str]
    methods: tuple[str, ...]
    datasets: tuple[str, ...]
    results: tuple[Result, ...]  # every pair of them, in their order
    choices: Mapping[str, ChoiceSummary]
    facts: tuple[DatasetFacts, ...]
    versions: Mapping[str, tuple[str, ...]]  # what -> the values that occur
    notes: tuple[str, ...]  # on what is unequal or left out
    finished: tuple[str, str] | None  # first and last date
    depth: Table | None
    sensitivity: Sensitivity | None
    timing: Timing | None

    def result(self, dataset: str, method: str) -> Result:
        return next(r for r in self.results if (r.dataset, r.method) == (dataset, method))

    def with_status(self, *statuses: str) -> tuple[Result, ...]:
        return tuple(r for r in self.results if r.status in statuses)

    @property
    def strict(self) -> ChoiceSummary:
        return self.choices["strict"]

    @property
    def paper(self) -> ChoiceSummary:
        return self.choices["paper"]


def summarise(
    records: Sequence[RunRecord],
    *,
    states: Sequence[CellState] = (),
    depth_accuracies: Mapping[Pair, Sequence[float]] = MappingProxyType({}),
    methods: Sequence[str] | None = None,
    datasets: Sequence[str] | None = None,
    sensitivity: Sensitivity | None = None,
    timing: Timing | None = None,
    title: str = "edRVFL study",
) -> Summary:
    """All that a report will say of these records.

    Parameters
    ----------
    records : sequence of RunRecord
        Where a method has several on a dataset, the one that succeeded, then the one of the most
        configurations, seeds, and the latest is shown; a note says so.

    states : sequence of CellState
        Cells that are noted in a store, so that what is not finished is shown as missing.

    depth_accuracies : mapping
        (dataset, method) -> validation accuracy in percent at depths 1, 2, ...

    methods, datasets : sequences of str, optional
        Show these only; by default all that occur.

    sensitivity, timing : optional
        Results of sections 5.5 and 5.6.

    title : str
        Heading of the report.
    """
    pairs = [(r.dataset, r.method) for r in records] + [(s.dataset, s.method) for s in states]
    shown_methods = _ordered((m for _, m in pairs), published.accuracies().methods, methods)
    shown_datasets = _ordered((d for d, _ in pairs), UCI24, datasets)
    chosen = {
        pair: record
        for pair, record in _shown(records).items()
        if pair[0] in shown_datasets and pair[1] in shown_methods
    }
    open_cells = {(s.dataset, s.method): s for s in states if not s.finished}
    results = tuple(
        _result(d, m, chosen.get((d, m)), open_cells.get((d, m)))
        for d in shown_datasets
        for m in shown_methods
    )
    choices = {name: _choice(name, results, shown_datasets, shown_methods) for name in CHOICES}
    dates = sorted(r.finished for r in chosen.values() if r.finished)
    return Summary(
        title=title,
        answer=_answer(results, choices),
        methods=shown_methods,
        datasets=shown_datasets,
        results=results,
        choices=choices,
        facts=tuple(_facts(d, chosen) for d in shown_datasets),
        versions=_versions(chosen.values()),
        notes=_notes(records, chosen),
        finished=(dates[0], dates[-1]) if dates else None,
        depth=_depth_table(depth_accuracies, shown_methods, shown_datasets),
        sensitivity=sensitivity,
        timing=timing,
    )


def _ordered(found: Iterable[str], known: Iterable[str], asked: Sequence[str] | None) -> tuple[str, ...]:
    """The names that occur, the paper's first and in its order; only those asked for, in their order."""
    occur = set(found)
    if asked is not None:
        return tuple(dict.fromkeys(asked))
    first = [name for name in known if name in occur]
    return (*first, *sorted(occur - set(first)))


def _shown(records: Iterable[RunRecord]) -> dict[Pair, RunRecord]:
    """One record for each pair: ok before failed, then the larger study, then the later."""
    found: dict[Pair, RunRecord] = {}
    for record in sorted(
        records, key=lambda r: (r.status == "ok", r.n_configurations, r.seeds, r.finished or "", r.key)
    ):
        found[record.dataset, record.method] = record
    return found


def _result(dataset: str, method: str, record: RunRecord | None, state: CellState | None) -> Result:
    if record is None:
        if state is None:
            return Result(dataset, method, "missing", "not part of any run in this store")
        message = f"{state.done} of at most {state.units} units done"
        return Result(dataset, method, state.status, message, state.trials, state.seeds)
    size = (record.n_configurations, record.seeds)
    if record.status != "ok":
        return Result(dataset, method, "failed", record.message or "no message", *size)
    found = record.choices.items()
    seconds = (
        [s for row in record.choices["strict"].fit_seconds for s in row] if "strict" in record.choices else []
    )
    return Result(
        dataset,
        method,
        "ok",
        None,
        *size,
        accuracy={name: 100 * c.mean_and_sd()[0] for name, c in found},
        sd={name: _percent(c.mean_and_sd()[1]) for name, c in found},
        balanced_accuracy={name: 100 * c.mean_and_sd("balanced_accuracy")[0] for name, c in found},
        log_loss={name: c.mean_and_sd("log_loss")[0] for name, c in found},
        depth={name: c.depth for name, c in found},
        fit_seconds=median_of.median(seconds) if seconds else None,
        search_seconds=record.search_seconds,
    )


def _percent(share: float) -> float | None:
    return None if math.isnan(share) else 100 * share


def _choice(
    name: str, results: Sequence[Result], datasets: Sequence[str], methods: Sequence[str]
) -> ChoiceSummary:
    cells = {(r.dataset, r.method): r.accuracy[name] for r in results if name in r.accuracy}
    # A dataset or a method without any figure would leave no dataset that all methods have.
    measured = [m for m in methods if any(m == method for _, method in cells)]
    scores = Scores.of(cells, [d for d in datasets if any(d == dataset for dataset, _ in cells)], measured)
    compared = scores.comparable()
    return ChoiceSummary(
        name,
        CHOICES[name],
        scores,
        compared,
        means(compared),
        average_ranks(compared),
        friedman(compared),
        pairwise(compared),
        critical_difference(compared),
    )


# --- the answer ------------------------------------------------------------------------------------------


def _answer(results: Sequence[Result], choices: Mapping[str, ChoiceSummary]) -> tuple[str, str, str]:
    """Three sentences: who is best, whether that is more than chance, how it compares with the paper."""
    strict, paper = choices["strict"], choices["paper"]
    if not strict.scores.methods:
        states = Counter(r.status for r in results)
        counted = ", ".join(f"{n} {status}" for status, n in states.items()) or "no cells at all"
        return (
            "There is no finished cell to report on.",
            f"The store holds {counted}.",
            "What follows from the published tables alone is below.",
        )
    return _who(strict, paper), _sure(strict), _against_paper(results)


def _who(strict: ChoiceSummary, paper: ChoiceSummary) -> str:
    k, every, common = len(strict.compared.methods), len(strict.scores.methods), strict.common
    if not common:
        return f"No dataset has a figure for all {k} methods, so they cannot be ranked."
    n = _count(len(common), "dataset")
    if k == 1:
        (only,) = strict.scores.methods
        return (
            f"{only} reaches a mean test accuracy of {strict.means[only]:.2f} % over {n} with the strict "
            f"choice and {paper.means[only]:.2f} % with the paper's."
        )
    best, theirs = strict.by_rank()[0], paper.by_rank()[0]
    same = "it is best too," if best == theirs else f"the best is {theirs},"
    who = f"all {k}" if k == every else f"{k} of the {every}"
    return (
        f"Over the {n} that {who} methods have, {best} has the best average rank, "
        f"{strict.ranks[best]:.2f}, with a mean test accuracy of {strict.means[best]:.2f} % (strict choice); "
        f"with the paper's choice {same} "
        f"at rank {paper.ranks[theirs]:.2f} and {paper.means[theirs]:.2f} %."
    )


def _sure(c: ChoiceSummary) -> str:
    if len(c.compared.methods) < 2:
        return "With one method there is nothing to rank or to test."
    if not c.common:
        return "Nothing can be tested without a dataset that all methods have."
    best, second = c.by_rank()[:2]
    pair = c.pairs.pair(best, second)
    adjusted = c.pairs.p_value(best, second, adjust=True)
    clear = "significant" if adjusted < c.pairs.alpha else "not significant"
    overall = ""
    if c.friedman is not None:
        differ = "differ" if c.friedman.p_value < c.pairs.alpha else "do not clearly differ"
        overall = f"The methods' ranks {differ} (Friedman p = {p_text(c.friedman.p_value)}); "
    sentence = (
        f"{overall}the lead of {best} over the second, {second}, is {pair.wins} wins, {pair.ties} ties and "
        f"{pair.losses} losses, which is {clear} at {c.pairs.alpha:g} (Wilcoxon p = {p_text(pair.p_normal)}, "
        f"after Holm {p_text(adjusted)})."
    )
    return sentence[0].upper() + sentence[1:]


def _against_paper(results: Sequence[Result]) -> str:
    rows = published_rows(results)
    if not rows:
        return "None of these cells is in the paper's Table 3, so nothing is compared with it."
    gaps = [measured - printed for _, _, printed, measured in rows]
    gap = sum(gaps) / len(gaps)
    dataset, method, printed, measured = max(rows, key=lambda r: abs(r[3] - r[2]))
    side = "above" if gap > 0 else "below"
    return (
        f"On the {_count(len(rows), 'cell')} that the paper prints too, the measured accuracy (the paper's "
        f"choice) is on average {abs(gap):.2f} points {side} the published one; farthest apart is {method} "
        "on "
        f"{dataset}, {measured:.2f} % measured and {printed:.2f} % published."
    )


def published_rows(results: Sequence[Result]) -> list[tuple[str, str, float, float]]:
    """(dataset, method, published, measured with the paper's choice) where there are both."""
    table = published.accuracies()
    return [
        (r.dataset, r.method, printed, round_half_up(r.accuracy["paper"]))
        for r in results
        if "paper" in r.accuracy and (printed := table.get(r.dataset, r.method)) is not None
    ]


def p_text(p: float) -> str:
    """A p-value for the eye.

    Examples
    --------
    >>> p_text(0.5412), p_text(0.0123), p_text(0.000335)
    ('0.54', '0.012', '3.4e-4')
    """
    return f"{p:.2g}" if p >= 0.001 else two_digits(p)


def _count(n: int, noun: str) -> str:
    return f"{n} {noun}{'' if n == 1 else 's'}"


# --- facts -----------------------------------------------------------------------------------------------


def _facts(dataset: str, records: Mapping[Pair, RunRecord]) -> DatasetFacts:
    checksums = tuple(sorted({r.checksum for (d, _), r in records.items() if d == dataset}))
    entry = UCI24.get(dataset)
    if entry is None:
        drawn = "four stratified draws of 25 %, drawn by edrvfl"
        return DatasetFacts(
            dataset, None, None, None, "", drawn if dataset in DEMO else f"{drawn} (own table)", checksums
        )
    row = next(r for r in published.table("table1_datasets").records() if r["dataset"] == dataset)
    printed = f"{row['patterns']} / {row['features_printed']} / {row['classes']}"
    fixed = dataset in FIXED_TEST_FILE
    partitions = "published: one fixed test file" if fixed else "published: four overlapping draws of 25 %"
    return DatasetFacts(dataset, entry.rows, entry.features, entry.classes, printed, partitions, checksums)


def _versions(records: Iterable[RunRecord]) -> dict[str, tuple[str, ...]]:
    found: dict[str, set[str]] = {}
    for r in records:
        values = {
            **r.versions,
            "commit": r.commit or "unknown",
            "device": r.device,
            "protocol": str(r.protocol),
        }
        for what, value in values.items():
            found.setdefault(what, set()).add(str(value))
    return {what: tuple(sorted(values)) for what, values in found.items()}


def _notes(records: Sequence[RunRecord], chosen: Mapping[Pair, RunRecord]) -> tuple[str, ...]:
    notes = []
    several = Counter((r.dataset, r.method) for r in records if (r.dataset, r.method) in chosen)
    left_out = sum(several.values()) - len(several)
    if left_out:
        notes.append(
            f"{_count(left_out, 'record')} not shown: where a method has several on a dataset, the one that "
            "succeeded, then the one of the most configurations and seeds, then the latest is."
        )
    sizes = {(r.n_configurations, r.seeds) for r in chosen.values()}
    if len(sizes) > 1:
        listed = ", ".join(f"{trials} configurations and {seeds} seeds" for trials, seeds in sorted(sizes))
        notes.append(
            f"Cells were searched to different extents: {listed}. Their figures are not on equal terms."
        )
    sums: dict[str, set[str]] = {}
    for r in chosen.values():
        sums.setdefault(r.dataset, set()).add(r.checksum)
    if mixed := [d for d, values in sums.items() if len(values) > 1]:
        notes.append(f"Methods saw different data or partitions of the same name: {', '.join(mixed)}.")
    return tuple(notes)


def _depth_table(
    curves: Mapping[Pair, Sequence[float]], methods: Sequence[str], datasets: Sequence[str]
) -> Table | None:
    """Mean over the datasets that all methods with a depth have, for each depth."""
    deep = [m for m in methods if any(m == method and len(c) > 1 for (_, method), c in curves.items())]
    common = [d for d in datasets if deep and all(len(curves.get((d, m), ())) > 1 for m in deep)]
    if not common:
        return None
    rows: list[tuple[Value, ...]] = []
    for method in deep:
        deepest = min(len(curves[d, method]) for d in common)
        for l in range(deepest):
            accuracy = float(np.mean([curves[d, method][l] for d in common]))
            rows.append((method, l + 1, round(accuracy, 4), len(common)))
    title = f"Validation accuracy in percent by depth, mean over {_count(len(common), 'dataset')}"
    return Table("accuracy_by_depth", title, ("method", "depth", "accuracy", "datasets"), tuple(rows))


# --- tables of the figures, and of all results -------------------------------------------------------------


def long_table(summary: Summary) -> Table:
    """One row for each method, dataset and choice: the report as data."""
    rows: list[tuple[Value, ...]] = []
    table = published.accuracies()
    for r in summary.results:
        for choice in CHOICES:
            ok = choice in r.accuracy
            depth = "/".join(map(str, r.depth[choice])) if ok else None
            figures = (r.accuracy, r.sd, r.balanced_accuracy, r.log_loss)
            digits = (DIGITS, DIGITS, DIGITS, 4)
            values = [_rounded(f[choice], n) if ok else None for f, n in zip(figures, digits, strict=True)]
            times = (_rounded(r.fit_seconds, 4), _rounded(r.search_seconds, 2)) if ok else (None, None)
            printed = table.get(r.dataset, r.method)
            row: tuple[Value, ...] = (r.dataset, r.method, choice, r.status, *values, printed, depth)
            rows.append((*row, r.trials, r.seeds, *times, r.message))
    columns = ("dataset", "method", "choice", "status", "accuracy", "sd", "balanced_accuracy", "log_loss")
    more = ("published", "depth", "configurations", "seeds", "fit_seconds", "search_seconds", "message")
    return Table("results", "All results", (*columns, *more), tuple(rows))


DIGITS = 2


def _rounded(value: float | None, digits: int) -> float | None:
    return None if value is None else round_half_up(value, digits)


def heatmap_table(summary: Summary) -> Table | None:
    scores = summary.strict.scores
    rows = tuple((d, m, scores.get(d, m)) for d in scores.datasets for m in scores.methods)
    title = "Test accuracy in percent by dataset and method (strict choice)"
    return Table("accuracy_by_dataset", title, ("dataset", "method", "accuracy"), rows) if rows else None


def ranks_table(summary: Summary) -> Table | None:
    cd = summary.strict.critical_difference
    if cd is None:
        return None
    rows: tuple[tuple[Value, ...], ...] = tuple(
        (m, round(rank, 4), round(cd.difference, 4), *(float(f"{p:.4g}") for p in ps))
        for m, rank, ps in zip(cd.methods, cd.ranks, cd.p_values, strict=True)
    )
    title = f"Average ranks over {_count(cd.n_datasets, 'dataset')} (strict choice)"
    names = (f"p_against_{m}" for m in cd.methods)
    return Table(
        "critical_difference", title, ("method", "average_rank", "critical_difference", *names), rows
    )


def published_table(summary: Summary) -> Table | None:
    rows = tuple(published_rows(summary.results))
    title = "Measured accuracy against published, in percent (the paper's choice)"
    return (
        Table("ours_against_published", title, ("dataset", "method", "published", "measured"), rows)
        if rows
        else None
    )


def time_table(summary: Summary) -> Table | None:
    common = summary.strict.common
    rows: list[tuple[Value, ...]] = []
    for method in summary.strict.compared.methods:
        seconds = [summary.result(d, method).fit_seconds for d in common]
        known = [s for s in seconds if s is not None and s > 0]
        if known and len(known) == len(common):
            rows.append((method, round(median_of.geometric_mean(known), 6), summary.strict.means[method]))
    title = f"Time to fit against accuracy over {_count(len(common), 'dataset')} (strict choice)"
    return (
        Table("time_against_accuracy", title, ("method", "fit_seconds", "accuracy"), tuple(rows))
        if rows
        else None
    )


def sensitivity_tables(summary: Summary) -> dict[str, Table]:
    """The curves of section 5.5 by parameter; empty if they were not measured."""
    if summary.sensitivity is None:
        return {}
    tables = {parameter: summary.sensitivity.table(parameter) for parameter in NEUTRAL}
    return {parameter: table for parameter, table in tables.items() if table.rows}
