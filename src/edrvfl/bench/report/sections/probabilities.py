"""Log-loss and calibration error: how far the probabilities can be trusted, by the strict choice."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import pandas as pd

from ...comparison import (
    FEWEST,
    Friedman,
    Pairwise,
    average_ranks,
    compare_pairs,
    critical_difference,
    friedman,
    means,
    score_table,
)
from ...figures import probabilities_figure
from ...methods import kind_of
from ..page import Grid, GridCell, GridRow, Picture, Section, number_cell, text_cell
from ..sentences import CALIBRATION_ERROR, count, p_text
from ..standing import Standing
from ..summary import Summary
from .ranks import diagram, pairs_grid, signs_grid

KEY, TITLE = "probabilities", "Log-loss and calibration"
DIGITS = 4
METRICS = {"log_loss": "log-loss", "calibration_error": "calibration error"}


@dataclass(frozen=True, eq=False)
class Losses:
    """One metric, less is better."""

    metric: str
    table: pd.DataFrame  # dataset by method, the subject first; NaN where there is none
    compared: pd.DataFrame  # the methods and datasets that means, ranks and tests are about

    @cached_property
    def means(self) -> dict[str, float]:
        return means(self.compared, DIGITS)

    @cached_property
    def ranks(self) -> dict[str, float]:
        return average_ranks(-self.compared)

    @cached_property
    def by_rank(self) -> tuple[str, ...]:
        """The compared methods, best average rank first."""
        averages, ranks = self.means, self.ranks
        return tuple(sorted(ranks, key=lambda m: (ranks[m], averages[m])))

    # The tests that accuracy gets, on the negative, because they take more for better.

    @cached_property
    def friedman(self) -> Friedman | None:
        return friedman(-self.compared)

    @cached_property
    def pairs(self) -> Pairwise:
        return compare_pairs(-self.compared, digits=DIGITS)


def show_probabilities(s: Summary) -> Section | None:
    """Show both metrics by dataset and method, their means and ranks, and the tests of log-loss."""
    losses, errors = (find_losses(s.standing, metric) for metric in METRICS)
    if losses.table.empty:
        return None
    rows = _rows(losses, errors)
    pictures = [_dots(losses, rows)] if rows else []
    if (cd := critical_difference(-losses.compared)) is not None:
        pictures.append(diagram(cd, "critical_difference_log_loss", "Average ranks by log-loss"))
    grids = [_overview(s.standing, losses, errors)] if rows else []
    grids += [_grid(each) for each in (losses, errors) if not each.table.empty]
    if losses.pairs.comparisons and len(losses.compared) >= FEWEST:
        what = "log-loss, strict choice"
        grids.append(signs_grid(losses.pairs, "log-loss", what))
        grids.append(pairs_grid(losses.pairs, "log-loss", what, better=-1, digits=DIGITS))
    text = (*_meanings(), *_sentences(s.standing, losses, errors))
    return Section(KEY, TITLE, text, pictures=tuple(pictures), grids=tuple(grids))


# --- the figures -----------------------------------------------------------------------------------------


def find_losses(standing: Standing, metric: str) -> Losses:
    """Collect a metric of all methods; those are compared that accuracy compares, on the same datasets."""
    cells = {
        (dataset, entry.name): value
        for entry in standing.entries.values()
        for dataset, r in entry.results.items()
        if not math.isnan(value := r.scored["strict"].mean(metric))
    }
    measured = {name for _, name in cells}
    methods = [name for name in standing.scores if name in measured]
    datasets = [d for d in standing.datasets if any(d == dataset for dataset, _ in cells)]
    table = score_table(cells, datasets, methods, DIGITS)
    common = [d for d in standing.common if d in table.index]
    ranked = [m for m in methods if m in standing.ranks]
    return Losses(metric, table, table.loc[common, ranked].dropna(axis="columns"))


def _is_own(method: str) -> bool:
    return kind_of(method) == "ours"


# --- sentences -------------------------------------------------------------------------------------------


def _meanings() -> tuple[str, ...]:
    return (
        "Log-loss is the mean of -log p, p being the probability that a method gives to the true class: it "
        f"grows without bound when a method is sure and wrong. Calibration error is {CALIBRATION_ERROR}. "
        "Less is better for both. All figures are on test rows, means over splits and seeds: of searches by "
        "the strict choice, and of methods at their defaults.",
    )


def _sentences(standing: Standing, losses: Losses, errors: Losses) -> list[str]:
    """Say who is best, whether it is chance, what changes from accuracy to log-loss, what is missing."""
    if losses.compared.empty:
        return ["No dataset has a log-loss of all methods, so they cannot be ranked."]
    said = [_who_is_best(losses)]
    if len(losses.by_rank) > 1 and len(losses.compared) >= FEWEST:
        said.append(_is_it_chance(losses))
    said += _who_moves(standing, losses)
    if not errors.compared.empty:
        averages = errors.means
        least, most = (pick(averages, key=averages.__getitem__) for pick in (min, max))
        over = count(len(errors.compared), "dataset")
        said.append(
            f"The least mean calibration error is that of {least}, {averages[least]:.4f}, the largest "
            f"that of {most}, {averages[most]:.4f} (over {over})."
        )
    return said + _what_is_left_out(losses, errors)


def _who_is_best(losses: Losses) -> str:
    best, *others = losses.by_rank
    over, k = count(len(losses.compared), "dataset"), len(losses.by_rank)
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


def _is_it_chance(losses: Losses) -> str:
    best, second, alpha = losses.by_rank[0], losses.by_rank[1], losses.pairs.alpha
    overall = ""
    if losses.friedman is not None:
        f = losses.friedman
        differ = "differ" if f.p_value < alpha else "do not clearly differ"
        overall = (
            f"Friedman's test of log-loss: the ranks {differ}, chi-square {f.statistic:.2f}, "
            f"p = {p_text(f.p_value)}, {f.n_methods} methods, {f.n_datasets} datasets. "
        )
    rest = losses.by_rank[1:]
    beaten = [m for m in rest if losses.pairs.sign(best, m, holm=True) == "+"]
    clear = "significant" if second in beaten else "not significant"
    pair = losses.pairs.pair(best, second)
    return (
        f"{overall}The lead of {best} over {second} is {clear} at {alpha:g} (Wilcoxon with Holm, "
        f"p = {p_text(pair.p_holm)}); over "
        f"{len(beaten)} of the {count(len(rest), 'other method')} it is significant."
    )


def _who_moves(standing: Standing, losses: Losses) -> list[str]:
    """Name the methods that gain and lose most places between accuracy and log-loss."""
    by_loss = losses.by_rank
    both = [m for m in standing.entries if m in by_loss]  # in the order of their ranks by accuracy
    if len(both) < 3:
        return []
    moves = {m: by_loss.index(m) - both.index(m) for m in both}
    falls, rises = max(moves, key=moves.__getitem__), min(moves, key=moves.__getitem__)

    def places(m: str) -> str:
        return f"{m}, from place {both.index(m) + 1} by accuracy to place {by_loss.index(m) + 1} by log-loss"

    if moves[falls] == 0:
        return ["The order of the methods is the same by accuracy and by log-loss."]
    return [f"Of the {len(both)} methods {places(falls)}, falls most; {places(rises)}, rises most."]


def _what_is_left_out(losses: Losses, errors: Losses) -> list[str]:
    """Say once what has no figure: methods with fewer datasets, and records without calibration error."""
    said = []
    if behind := [m for m in losses.table if m not in losses.compared]:
        said.append(f"Not compared, because they have fewer datasets: {'; '.join(behind)}.")
    measured = losses.table.notna()
    gaps = measured & ~errors.table.reindex_like(losses.table).notna()
    if n := int(gaps.to_numpy().sum()):
        whose = "; ".join(m for m in losses.table if gaps[m].any())
        said.append(
            f"{n} of {count(int(measured.to_numpy().sum()), 'cell')} have no calibration error: their "
            f"records are older than this metric ({whose})."
        )
    return said


# --- tables and pictures ---------------------------------------------------------------------------------

Row = tuple[str, str, float, float | None]  # method, kind, log-loss, calibration error


def _rows(losses: Losses, errors: Losses) -> list[Row]:
    """List the compared methods, best log-loss first."""
    calibration = errors.means
    rows = [(m, kind_of(m), loss, calibration.get(m)) for m, loss in losses.means.items()]
    return sorted(rows, key=lambda row: (row[2], row[0]))


def _dots(losses: Losses, rows: list[Row]) -> Picture:
    best, worst = rows[0], rows[-1]
    return Picture(
        "log_loss_and_calibration",
        f"Mean log-loss and calibration error over {count(len(losses.compared), 'dataset')} (strict choice)",
        f"Sorted by log-loss; less is better. From {best[0]}, {best[2]:.4f}, to {worst[0]}, {worst[2]:.4f}.",
        pd.DataFrame(rows, columns=["method", "kind", "log_loss", "calibration_error"]),
        probabilities_figure,
    )


def _overview(standing: Standing, losses: Losses, errors: Losses) -> Grid:
    ranks, error_ranks, rows = losses.ranks, errors.ranks, []
    for method, _, loss, error in _rows(losses, errors):
        cells = (
            number_cell(loss, DIGITS),
            number_cell(ranks[method]),
            number_cell(error, DIGITS),
            number_cell(error_ranks.get(method)),
            text_cell(standing.entries[method].configurations),
        )
        rows.append(GridRow(method, cells, method))
    columns = (
        *("method", "mean log-loss", "rank by log-loss"),
        *("mean calibration error", "rank by calibration error", "configurations tried"),
    )
    fewer = 0 < len(error_ranks) < len(ranks)
    among = f"Ranks by calibration error are among the {count(len(error_ranks), 'method')} with one."
    notes = (among,) if fewer else ()
    return Grid(
        "probabilities-overview",
        "Probabilities in one table",
        columns,
        tuple(rows),
        notes=notes,
        sorted_by=columns[1],
        least_is_best=frozenset(columns[1:5]),
    )


def _grid(losses: Losses) -> Grid:
    """Show a metric by dataset and method. It is missing where a record is older than the metric."""
    columns, averages, ranks = tuple(losses.table), losses.means, losses.ranks
    rows = tuple(GridRow(d, _cells(losses.table.loc[d])) for d in losses.table.index)
    foot = (
        GridRow("mean", tuple(number_cell(averages.get(m), DIGITS) for m in columns)),
        GridRow("average rank", tuple(number_cell(ranks.get(m)) for m in columns)),
    )
    over = f"Means and ranks are over {count(len(losses.compared), 'dataset')}."
    return Grid(
        f"strict-{losses.metric.replace('_', '-')}",
        f"{METRICS[losses.metric].capitalize()} on the test rows, strict choice",
        ("dataset", *columns),
        rows,
        foot if ranks else (),
        methods=(None, *columns),
        least_is_best=frozenset(columns),
        notes=(f"{over} The best of a dataset is marked with *.",),
    )


def _cells(row: pd.Series) -> tuple[GridCell, ...]:
    """Show a dataset's figures."""
    best = row.min() if len(row) > 1 else None

    def cell(value: float) -> GridCell:
        if math.isnan(value):
            return number_cell(None)
        return GridCell(f"{value:.{DIGITS}f}", value, "best" if value == best else "")

    return tuple(map(cell, map(float, row)))
