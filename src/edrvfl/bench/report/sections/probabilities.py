"""Log-loss and calibration error: how far the probabilities can be trusted, by the strict choice."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from ...comparison import (
    CriticalDifference,
    Friedman,
    Pairwise,
    average_ranks,
    comparable,
    compare_pairs,
    critical_difference,
    friedman,
    kind_of,
    mean,
    means,
    score_table,
    subject_first,
)
from ...figures import MISSING, probabilities_figure
from ...scores import CALIBRATION_BINS
from ..page import EMPTY, Grid, GridCell, GridRow, Picture, Section, number_cell, status_cell, text_cell
from ..sentences import count, p_text
from ..summary import Summary
from .ranks import diagram, pairs_grid, signs_grid

KEY, TITLE = "probabilities", "Log-loss and calibration"
DIGITS = 4
METRICS = {"log_loss": "log-loss", "calibration_error": "calibration error"}
AT_DEFAULTS = " (default)"  # after the name of a peer that is searched under the same name, too


@dataclass(frozen=True, slots=True, eq=False)
class Losses:
    """One metric, less is better: of the methods that are compared, and of peers at their defaults."""

    metric: str
    table: pd.DataFrame  # dataset by method; NaN where there is none
    compared: pd.DataFrame  # the methods that means, ranks and tests are about
    means: Mapping[str, float]
    ranks: Mapping[str, float]
    beside: Mapping[str, float]  # means of peers at their defaults, over the same datasets

    @property
    def common(self) -> tuple[str, ...]:
        """The datasets that all compared methods have."""
        return _common(self.compared)

    @property
    def by_rank(self) -> tuple[str, ...]:
        """The compared methods, best average rank first."""
        return tuple(sorted(self.ranks, key=lambda m: (self.ranks[m], self.means[m])))

    @property
    def columns(self) -> tuple[str, ...]:
        """The methods in the order of a table."""
        return subject_first(self.table.columns, self.ranks)


@dataclass(frozen=True, slots=True, eq=False)
class Tests:
    """What the tests say of log-loss."""

    friedman: Friedman | None
    pairs: Pairwise
    critical_difference: CriticalDifference | None


def show_probabilities(s: Summary) -> Section | None:
    """Show both metrics by dataset and method, their means and ranks, and the tests of log-loss."""
    losses, errors = (find_losses(s, metric) for metric in METRICS)
    if losses.table.empty:
        return None
    tests = run_tests(losses)
    rows = _rows(s, losses, errors)
    pictures = [_dots(losses, rows)] if losses.common else []
    if tests.critical_difference is not None:
        title = "Average ranks by log-loss"
        pictures.append(diagram(tests.critical_difference, "critical_difference_log_loss", title))
    grids = [_overview(losses, errors, rows)] if losses.common else []
    grids += [_grid(s, each) for each in (losses, errors) if not each.table.empty]
    if tests.pairs.comparisons and losses.common:
        grids.append(signs_grid(tests.pairs, "log-loss", "log-loss, strict choice"))
        what = "log-loss, strict choice"
        grids.append(pairs_grid(tests.pairs, "log-loss", what, better=-1, digits=DIGITS))
    text = (*_meanings(), *_sentences(s, losses, errors, tests))
    return Section(KEY, TITLE, text, pictures=tuple(pictures), grids=tuple(grids))


# --- the figures -----------------------------------------------------------------------------------------


def find_losses(s: Summary, metric: str) -> Losses:
    """Collect a metric of the searched methods and of our methods at their defaults, and compare them."""
    datasets = list(s.strict.scores.index)
    cells = {
        pair: value
        for pair, r in s.results.items()
        if "strict" in r.scored and (value := getattr(r.scored["strict"], metric)) is not None
    }
    searched = {method for _, method in cells} | set(s.strict.methods)
    as_they_come = _at_defaults(s, metric, datasets)
    cells |= {pair: v for pair, v in as_they_come.items() if _is_own(pair[1]) and pair[1] not in searched}
    methods = list(dict.fromkeys(method for _, method in cells))
    table = score_table(cells, datasets, methods, DIGITS)
    compared = comparable(table)
    common = _common(compared)
    peers = score_table(as_they_come, common, list(dict.fromkeys(m for _, m in as_they_come)), DIGITS)
    beside = {
        f"{m}{AT_DEFAULTS}": mean(peers[m], DIGITS)
        for m in peers
        if common and not _is_own(m) and peers[m].notna().all()
    }
    ranks = average_ranks(-compared)
    return Losses(metric, table, compared, means(compared, DIGITS), ranks, beside)


def _common(compared: pd.DataFrame) -> tuple[str, ...]:
    return tuple(compared.dropna().index) if len(compared.columns) else ()


def _is_own(method: str) -> bool:
    return kind_of(method) == "ours"


def _at_defaults(s: Summary, metric: str, datasets: Sequence[str]) -> dict[tuple[str, str], float]:
    records = {} if s.defaults is None else s.defaults.records
    return {
        pair: r.mean(metric)
        for pair, r in records.items()
        if pair[0] in datasets and r.status == "ok" and r.task == "classification"
    }


def run_tests(losses: Losses) -> Tests:
    """Run the tests that accuracy gets, on the negative log-loss, because they take more for better."""
    scores = -losses.compared
    return Tests(friedman(scores), compare_pairs(scores, digits=DIGITS), critical_difference(scores))


# --- sentences -------------------------------------------------------------------------------------------


def _meanings() -> tuple[str, ...]:
    return (
        "Log-loss is the mean of -log p, p being the probability that a method gives to the true class: it "
        "grows without bound when a method is sure and wrong. Calibration error is the gap between "
        f"confidence and accuracy in {CALIBRATION_BINS} bins of equal width of the largest probability, "
        "weighted by their rows. Less is better for both. All figures are by the strict choice, means over "
        "splits and seeds; our methods at their defaults are compared with the searched ones, peers at "
        "their defaults stand beside.",
    )


def _sentences(s: Summary, losses: Losses, errors: Losses, tests: Tests) -> list[str]:
    """Say who is best, whether it is chance, what changes from accuracy to log-loss, what is missing."""
    if not losses.common:
        return ["No dataset has a log-loss of all methods, so they cannot be ranked."]
    said = [_who_is_best(losses)]
    if len(losses.by_rank) > 1:
        said.append(_is_it_chance(losses, tests))
    said += _who_moves(s, losses)
    if errors.common:
        least, most = (pick(errors.means, key=errors.means.__getitem__) for pick in (min, max))
        over = count(len(errors.common), "dataset")
        said.append(
            f"The least mean calibration error is that of {least}, {errors.means[least]:.4f}, the largest "
            f"that of {most}, {errors.means[most]:.4f} (over {over})."
        )
    return said + _what_is_left_out(losses, errors)


def _who_is_best(losses: Losses) -> str:
    best, *others = losses.by_rank
    over, k = count(len(losses.common), "dataset"), len(losses.by_rank)
    said = (
        f"Over the {over} that all {count(k, 'compared method')} have, {best} has the best average rank by "
        f"log-loss, {losses.ranks[best]:.2f}, with a mean of {losses.means[best]:.4f}"
    )
    rival = next((m for m in others if _is_own(m) != _is_own(best)), None)
    if rival is None:
        return said + "."
    whose = "of the others" if _is_own(best) else "of ours"
    return (
        f"{said}; the best {whose} is {rival}, at place {losses.by_rank.index(rival) + 1} of {k} with rank "
        f"{losses.ranks[rival]:.2f} and a mean of {losses.means[rival]:.4f}."
    )


def _is_it_chance(losses: Losses, tests: Tests) -> str:
    best, second, alpha = losses.by_rank[0], losses.by_rank[1], tests.pairs.alpha
    overall = ""
    if tests.friedman is not None:
        f = tests.friedman
        differ = "differ" if f.p_value < alpha else "do not clearly differ"
        overall = (
            f"Friedman's test of log-loss: the ranks {differ}, chi-square {f.statistic:.2f}, "
            f"p = {p_text(f.p_value)}, {f.n_methods} methods, {f.n_datasets} datasets. "
        )
    rest = losses.by_rank[1:]
    beaten = [m for m in rest if tests.pairs.sign(best, m, holm=True) == "+"]
    clear = "significant" if second in beaten else "not significant"
    pair = tests.pairs.pair(best, second)
    return (
        f"{overall}The lead of {best} over {second} is {clear} at {alpha:g} (Wilcoxon with Holm, "
        f"p = {p_text(pair.p_holm)}); over "
        f"{len(beaten)} of the {count(len(rest), 'other method')} it is significant."
    )


def _who_moves(s: Summary, losses: Losses) -> list[str]:
    """Name the methods that gain and lose most places between accuracy and log-loss."""
    both = [m for m in s.strict.by_rank if m in losses.ranks]
    if len(both) < 3:
        return []
    by_loss = [m for m in losses.by_rank if m in both]
    moves = {m: by_loss.index(m) - both.index(m) for m in both}
    falls, rises = max(moves, key=moves.__getitem__), min(moves, key=moves.__getitem__)

    def places(m: str) -> str:
        return f"{m}, from place {both.index(m) + 1} by accuracy to place {by_loss.index(m) + 1} by log-loss"

    if moves[falls] == 0:
        return ["The order of the searched methods is the same by accuracy and by log-loss."]
    return [f"Of the {len(both)} searched methods {places(falls)}, falls most; {places(rises)}, rises most."]


def _what_is_left_out(losses: Losses, errors: Losses) -> list[str]:
    """Say once what has no figure: methods with fewer datasets, and records without calibration error."""
    said = []
    for each in (losses, errors):
        if behind := [m for m in each.columns if m not in each.compared]:
            metric = METRICS[each.metric]
            said.append(f"Not compared by {metric}, because they have fewer: {', '.join(behind)}.")
    measured = losses.table.notna()
    gaps = measured & ~errors.table.reindex_like(losses.table).notna()
    if n := int(gaps.to_numpy().sum()):
        whose = ", ".join(m for m in losses.columns if gaps[m].any())
        said.append(
            f"{n} of {count(int(measured.to_numpy().sum()), 'cell')} have no calibration error: their "
            f"records are older than this metric. Their places are empty ({whose})."
        )
    return said


# --- tables and pictures ---------------------------------------------------------------------------------

Row = tuple[str, str, bool, float, float]  # method, kind, searched, log-loss, calibration error


def _rows(s: Summary, losses: Losses, errors: Losses) -> list[Row]:
    """List the methods, best log-loss first. A method of one configuration is not searched."""
    log_losses, calibration = {**losses.means, **losses.beside}, {**errors.means, **errors.beside}
    searched = {method for (_, method), r in s.results.items() if r.configurations > 1}
    same = losses.common == errors.common  # means over other datasets do not belong beside these
    rows = [
        (m, kind_of(m), m in searched, loss, calibration.get(m, math.nan) if same else math.nan)
        for m, loss in log_losses.items()
    ]
    return sorted(rows, key=lambda row: (row[3], row[0]))


def _dots(losses: Losses, rows: list[Row]) -> Picture:
    best, worst = rows[0], rows[-1]
    return Picture(
        "log_loss_and_calibration",
        f"Mean log-loss and calibration error over {count(len(losses.common), 'dataset')} (strict choice)",
        f"A row for each method, sorted by log-loss; less is better. From {best[0]}, {best[3]:.3f}, to "
        f"{worst[0]}, {worst[3]:.3f}; the table below has every number.",
        pd.DataFrame(rows, columns=["method", "kind", "searched", "log_loss", "calibration_error"]),
        probabilities_figure,
    )


def _overview(losses: Losses, errors: Losses, found: list[Row]) -> Grid:
    rows = []
    for method, _, searched, loss, error in found:
        cells = (
            number_cell(loss, DIGITS),
            number_cell(losses.ranks.get(method)),
            number_cell(None if math.isnan(error) else error, DIGITS),
            number_cell(errors.ranks.get(method)),
            text_cell("searched" if searched else "defaults"),
        )
        rows.append(GridRow(method, cells, method.removesuffix(AT_DEFAULTS)))
    columns = (
        *("method", "mean log-loss", "rank by log-loss"),
        *("mean calibration error", "rank by calibration error", "settings"),
    )
    note = "A rank is among the compared methods; peers at their defaults have none."
    return Grid("probabilities-overview", "Probabilities in one table", columns, tuple(rows), notes=(note,))


def _grid(s: Summary, losses: Losses) -> Grid:
    metric, columns = METRICS[losses.metric], losses.columns
    rows = tuple(GridRow(d, tuple(_cell(s, losses, d, m) for m in columns)) for d in losses.table.index)
    foot = (
        GridRow("mean", tuple(number_cell(losses.means.get(m), DIGITS) for m in columns)),
        GridRow("average rank", tuple(number_cell(losses.ranks.get(m)) for m in columns)),
    )
    over = f"Means and ranks are over the {count(len(losses.common), 'dataset')} without a gap."
    return Grid(
        f"strict-{losses.metric.replace('_', '-')}",
        f"{metric.capitalize()} on the test rows, strict choice",
        ("dataset", *columns),
        rows,
        foot if losses.common else (),
        methods=(None, *columns),
        notes=(f"{over} The best of a dataset is marked with *.",),
    )


def _cell(s: Summary, losses: Losses, dataset: str, method: str) -> GridCell:
    row = losses.table.loc[dataset]
    value = float(row[method])
    if math.isnan(value):
        result = s.results.get((dataset, method))
        known = result is not None and result.status == "ok"  # an old record without this metric
        return EMPTY if known else status_cell(MISSING if result is None else result.status)
    best = len(row) > 1 and value == row.min()
    return GridCell(f"{value:.{DIGITS}f}", value, "best" if best else "")
